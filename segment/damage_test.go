package segment

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cespare/xxhash/v2"

	"svc/ann"
	"svc/internal/apierr"
	"svc/internal/geo"
	"svc/internal/mapped"
	"svc/internal/numeric"
	"svc/internal/vfs"
	"svc/segment/fst"
)

// readFile returns the contents of a file.
func readFile(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// openBytes opens a segment of these bytes.
func openBytes(t testing.TB, data []byte) (*Reader, error) {
	t.Helper()
	fs := vfs.NewMem()
	f, err := fs.Create("x.seg")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return Open(fs, "x.seg")
}

// openAndVerify returns the corruption that Open or Verify reports.
func openAndVerify(t testing.TB, data []byte) error {
	r, err := openBytes(t, data)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Verify()
}

// baseSegment is a segment in which no section is empty.
var baseSegment = sync.OnceValue(func() []byte {
	rng := rand.New(rand.NewPCG(7, 0))
	fs := vfs.NewMem()
	defer lowerThresholds(8, 16)()
	b := NewBuilder(BuilderOptions{Prefixes: true, Embedders: testEmbedders, Infix: allFields})
	for _, d := range randomDocs(rng, 60) {
		addDoc(b, rng, d)
	}
	if _, err := b.Write(context.Background(), fs, "a.seg"); err != nil {
		panic(err)
	}
	f, err := fs.Open("a.seg")
	if err != nil {
		panic(err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		panic(err)
	}
	return data
})

func TestEveryFlippedByteIsFound(t *testing.T) {
	rng := testRand(t)
	data := append([]byte(nil), baseSegment()...)
	if err := openAndVerify(t, data); err != nil {
		t.Fatal(err)
	}
	step := 1 + len(data)/3000
	for i := rng.IntN(step); i < len(data); i += 1 + rng.IntN(2*step) {
		bit := byte(1) << rng.IntN(8)
		data[i] ^= bit
		if err := openAndVerify(t, data); !apierr.IsCorruption(err) {
			t.Fatalf("bit %d of byte %d: %v", bit, i, err)
		}
		data[i] ^= bit
	}
	for i := len(data) - footerBytes; i < len(data); i++ {
		data[i] ^= 1
		if err := openAndVerify(t, data); !apierr.IsCorruption(err) {
			t.Fatalf("byte %d: %v", i, err)
		}
		data[i] ^= 1
	}
}

func TestOpenFindsEveryTruncation(t *testing.T) {
	data := baseSegment()
	for n := 0; n < len(data); n += 1 + n/20 {
		r, err := openBytes(t, data[:n])
		if !apierr.IsCorruption(err) || r != nil {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
}

func TestDamageNamesFileAndSection(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(data []byte)
		section string
		reason  string
	}{
		"magic":   {func(d []byte) { d[0] = 'x' }, "header", "magic"},
		"end":     {func(d []byte) { d[len(d)-1] = 'x' }, "footer", "cut"},
		"version": {func(d []byte) { d[len(d)-footerBytes+28] = 9; fixFooter(d) }, "footer", "version 9"},
		"table":   {func(d []byte) { d[len(d)-footerBytes-1] ^= 1 }, "table", "checksum"},
		"terms":   {func(d []byte) { d[sectionOf(d, tagTerms).offset+20] ^= 1 }, "term", "checksum"},
	} {
		data := append([]byte(nil), baseSegment()...)
		c.change(data)
		_, err := openBytes(t, data)
		var damage *apierr.Corruption
		if !errors.As(err, &damage) || damage.File != "x.seg" || damage.Section != c.section || !strings.Contains(damage.Reason, c.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerifyFindsKeyOfMissingField(t *testing.T) {
	fs := vfs.NewMem()
	fixedSegment(t, fs, "small.seg")
	data := readFile(t, fs, "small.seg")
	s := sectionOf(data, tagDottedKeys)
	data[s.offset+s.length-1]++ // its only row
	fixChecksums(data)
	if err := openAndVerify(t, data); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "field 4 is a key of 1 rows, of which 0 have it") {
		t.Fatal(err)
	}
}

func fixFooter(data []byte) {
	f := data[len(data)-footerBytes:]
	binary.LittleEndian.PutUint64(f[48:], xxhash.Sum64(f[:48]))
}

func sectionOf(data []byte, t tag) section {
	_, sections, err := parseContainer("x.seg", data)
	if err != nil {
		panic(err)
	}
	for _, s := range sections {
		if s.tag == t {
			return s
		}
	}
	panic("no section " + t.String())
}

// fixChecksums recomputes the checksums of changed bytes, as far as the table can be parsed.
func fixChecksums(data []byte) {
	if len(data) < headerBytes+footerBytes {
		return
	}
	at := len(data) - footerBytes
	f := data[at:]
	from, n := binary.LittleEndian.Uint64(f), uint64(binary.LittleEndian.Uint32(f[24:]))
	if from > uint64(at) || n*entryBytes > uint64(at)-from {
		return
	}
	table := data[from : from+n*entryBytes]
	if n > 0 {
		if s := parseEntry(table[(n-1)*entryBytes:]); s.tag == tagSums && s.offset >= 0 && s.offset <= int64(at) && s.length >= 0 && s.length <= int64(at)-s.offset {
			for i, block := 0, data[:s.offset]; len(block) > 0 && sumBytes*(i+1) <= int(s.length); i++ {
				size := min(blockBytes, len(block))
				binary.LittleEndian.PutUint32(data[int(s.offset)+sumBytes*i:], uint32(xxhash.Sum64(block[:size])))
				block = block[size:]
			}
		}
	}
	for i := range int(n) {
		e := table[i*entryBytes:]
		if s := parseEntry(e); s.offset >= 0 && s.length >= 0 && s.offset <= int64(at) && s.length <= int64(at)-s.offset {
			binary.LittleEndian.PutUint64(e[24:], xxhash.Sum64(data[s.offset:s.offset+s.length]))
		}
	}
	binary.LittleEndian.PutUint64(f[8:], xxhash.Sum64(table))
	fixFooter(data)
}

// exercise calls every method on a segment that may be damaged, which must not panic or loop forever. Methods that work on whole bitmaps
// run only if Verify found no damage.
func exercise(t testing.TB, r *Reader) {
	sound := r.Verify() == nil
	var buf []byte
	var known []Posting
	try := func(f func()) { // recovers as every caller does
		_ = mapped.Guard(func() error { f(); return nil })
	}
	for row := range Row(r.Rows() + 1) {
		buf, _ = r.AppendDocument(buf[:0], row)
		r.RowOf(r.DocID(row))
		try(func() { r.Lookup(r.ExternalID(row)) })
		try(func() { r.WordCount(FieldID(row%12), row) })
		try(func() { r.RowsOfCount(FieldID(row%12), 1+int(row)%31) })
		try(func() { concordanceText(r, row, 7) })
	}
	rows := make([]uint32, r.Rows()+1)
	for i := range rows {
		rows[i] = uint32(i)
	}
	posting := func(p Posting) {
		defer func() {
			if e := recover(); e != nil && mapped.Damage(e) == nil {
				panic(e)
			}
		}()
		var dst []uint16
		p.Most()
		for i := range min(p.Fields(), 20) {
			f := p.Field(i)
			p.Find(f.ID())
			reader := f.Positions()
			for row := range Row(r.Rows() + 1) {
				dst = reader.Append(dst[:0], row)
			}
			reader.Append(dst[:0], 0)
			exercisePositions(f, rows)
			if r.KnowsNeighbours(p) {
				known = append(known, p)
			}
			if sound {
				f.Rows()
			}
		}
		if sound {
			p.Rows()
		}
	}
	it := r.Terms(nil, nil, &fst.Budget{Left: 20000})
	for n := 0; n < 2000 && it.Next(); n++ {
		try(func() { posting(it.Posting()) })
		try(func() { r.Term(it.Word()) })
	}
	_ = it.Err()
	for i, p := range known {
		try(func() {
			r.AddNeighbours(make([]uint64, (r.Rows()+63)/64), known[i:i+1], known, func(FieldID) bool { return true })
		})
		for n := range min(8, len(known)) { // a part of all pairs, with every posting first and second
			q := known[(i+n*n*n)%len(known)]
			try(func() { r.NeighboursIn(p, q, func(FieldID) bool { return true }) })
			try(func() {
				for f := range FieldID(20) {
					if rows := r.Neighbours(p, q, f); sound && rows != nil {
						rows.ToArray()
					}
				}
			})
		}
	}
	for _, p := range []string{"a", "b", "aa", "é", "日", "aaaa"} {
		try(func() {
			if x, ok := r.Prefix([]byte(p)); ok {
				posting(x)
			}
		})
	}
	for _, f := range r.ColumnFields() {
		try(func() {
			c := r.Column(f)
			c.SearchNumber(numeric.Of(1))
			c.SearchString([]byte("b"))
			for ord := range min(c.Numbers(), 100) {
				c.NumberCount(ord)
			}
			for ord := range min(c.Strings(), 100) {
				c.StringCount(ord)
				c.String(ord)
				c.Original(ord)
			}
			var ords []uint32
			for row := range Row(r.Rows() + 1) {
				ords = c.RowNumbers(ords[:0], row)
				ords = c.RowStrings(ords[:0], row)
			}
			if sound {
				c.Null()
				c.Empty()
				c.AddNumberRows(roaring.New(), 0, c.Numbers())
				c.AddStringRows(roaring.New(), 0, c.Strings())
			}
		})
	}
	try(func() {
		if g := r.Geo(); g != nil {
			g.AddRowsInCap(roaring.New(), 1, 2, 1e6)
			g.AddRowsInBox(roaring.New(), 50, 10, -50, -10)
			g.Point(3)
		}
		if s := r.Shapes(); s != nil {
			s.AddRowsMeeting(roaring.New(), geo.BoxRegion(60, -100, -60, 100))
			s.AddRowsMeeting(roaring.New(), geo.CircleRegion(1, 2, 1e6, 9))
			if sound {
				s.Rows()
			}
		}
		if sound {
			for f := range FieldID(12) {
				r.Present(f)
				r.DottedKey(f)
			}
		}
	})
	for _, e := range testEmbedders {
		try(func() {
			v := r.Vectors(e.ID)
			if v == nil {
				return
			}
			q := make([]float32, v.Dimensions())
			q[0] = 1
			for row := range Row(r.Rows() + 1) {
				v.Row(nil, row)
			}
			v.Search(nil, q, 5, nil)
			v.Search(nil, q, 5, roaring.BitmapOf(1, 2, 3, 1000))
			if g, err := v.graph(); g != nil && err == nil {
				var s vectorSearch
				s.begin(v, q)
				s.encode()
				g.Search(nil, s.code, ann.Reach{Pool: 10}, nil, v.signs, 0)
			}
			if sound {
				for _, b := range []*roaring.Bitmap{v.Rows(), v.Given(), v.Regenerate(), v.Fragment(1)} {
					b.ToArray()
				}
				v.CountIn(v.Rows())
			}
		})
	}
	fs := vfs.NewMem()
	_, err := Merge(context.Background(), fs, "merged.seg", []Live{{Reader: r, Deleted: roaring.BitmapOf(0, 3)}}, MergeOptions{Prefixes: true})
	if !sound {
		return
	}
	if err != nil {
		t.Fatalf("merge of a segment that passed Verify: %v", err)
	}
	m, err := Open(fs, "merged.seg")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Verify(); err != nil {
		t.Fatal(err)
	}
}

// exercisePositions calls all methods that read the positions of a word in many rows at once.
func exercisePositions(f FieldPosting, rows []uint32) {
	f.First()
	f.AppendRows(nil)
	f.FirstPositions(nil, rows)
	f.AppendStarting(nil)
	some := []uint32{rows[0], rows[len(rows)-1]}
	for _, in := range [][]uint32{rows, some} {
		f.AppendOccurrences(nil, in, 0)
	}
	cost := make([]uint8, 3*payload)
	for _, nearest := range []int{0, 3} {
		for at := range cost {
			cost[at] = uint8(min(max(at-nearest, nearest-at), 9))
		}
		f.LowerCosts(make([]uint8, len(rows)), 0, cost, nearest)
	}
	f.LowerDistances(f, slices.Repeat([]uint8{FarApart}, len(rows)), 0)
}

func oneFile(t testing.TB, data []byte) vfs.FS {
	fs := vfs.NewMem()
	f, err := fs.Create("x.seg")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// damage applies edits to a copy of the base segment. An edit has 4 bytes: 3 of the offset and the new byte. An odd first byte
// truncates the file.
func damage(edits []byte) []byte {
	data := append([]byte(nil), baseSegment()...)
	if len(edits) == 0 {
		return data
	}
	cut := edits[0]&1 != 0
	for e := edits[1:]; len(e) >= 4; e = e[4:] {
		at := int(uint32(e[0])|uint32(e[1])<<8|uint32(e[2])<<16) % len(data)
		if cut {
			data = append(data[:at:at], data[len(data)-footerBytes:]...)
			break
		}
		data[at] = e[3]
	}
	fixChecksums(data)
	return data
}

func FuzzDamage(f *testing.F) {
	data := baseSegment()
	for _, k := range kindsOf(inSegments) {
		at := sectionOf(data, k.tag).offset
		f.Add([]byte{0, byte(at), byte(at >> 8), byte(at >> 16), 0xff})
		f.Add([]byte{0, byte(at + 9), byte(at >> 8), byte(at >> 16), 0x80})
	}
	f.Add([]byte{1, 200, 5, 0, 0})
	f.Add([]byte("00#\x01\x06")) // a field twice in a posting: it once made a merge loop forever
	f.Fuzz(func(t *testing.T, edits []byte) {
		if r, err := openBytes(t, damage(edits)); err == nil {
			exercise(t, r)
			_ = Inspect(io.Discard, oneFile(t, r.data), "x.seg")
			r.Close()
		} else if !apierr.IsCorruption(err) {
			t.Fatal(err)
		}
	})
}

func TestHostileBytes(t *testing.T) {
	rng := testRand(t)
	data := baseSegment()
	_, sections, _ := parseContainer("x.seg", data)
	opened, sound := 0, 0
	for i := range 500 {
		s := sections[rng.IntN(len(sections))]
		edits := []byte{0}
		for range 1 + rng.IntN(3) {
			at := s.offset + rng.Int64N(s.length)
			if rng.IntN(3) == 0 {
				at = s.offset + rng.Int64N(min(s.length, 64))
			}
			v := byte(rng.IntN(256))
			if rng.IntN(2) == 0 {
				v = data[at] ^ 1<<rng.IntN(8)
			}
			edits = append(edits, byte(at), byte(at>>8), byte(at>>16), v)
		}
		r, err := openBytes(t, damage(edits))
		if err != nil {
			if !apierr.IsCorruption(err) {
				t.Fatal(err)
			}
			continue
		}
		opened++
		if r.Verify() == nil {
			sound++
		}
		exercise(t, r)
		if i%8 == 0 {
			_ = Inspect(io.Discard, oneFile(t, r.data), "x.seg")
		}
		r.Close()
	}
	t.Logf("%d opened, %d of them sound", opened, sound)
}

func TestVerifyOfVectors(t *testing.T) {
	fs := vfs.NewMem()
	fixedSegment(t, fs, "small.seg")
	for name, c := range map[string]struct {
		tag    tag
		aux    uint32
		at     int64 // negative: from the end
		to     byte
		reason string
	}{
		"no entries":             {tagVectors, 0, 8, 0, "do not fit its counts"},
		"one entry more":         {tagVectors, 6, 8, 4, "do not fit its counts"},
		"row of an entry":        {tagVectors, 6, 576, 9, "entry 0 is of row 9"},
		"end of an entry":        {tagVectors, 6, 588, 1, "vector 1 is of row 1 and of row 0"},
		"owner of a vector":      {tagVectors, 6, 600, 1, "vector 0 is of row 0 and of row 1"},
		"fragment of a vector":   {tagVectors, 6, 621, 0, "vector 3 is made of fragment 65535"},
		"kind of an entry":       {tagVectors, 6, -1, 4, "entry 2 is of kind 4"},
		"bit beyond":             {tagVectors, 1, 65, 1, "bits beyond 5 dimensions"},
		"row of a list":          {tagVectorSets, 6, -1, 1, "the rows of list 10 are not those of the entries"},
		"kind of an entry alone": {tagVectors, 0, -1, 2, "the rows of list 1 are not"},
		"code":                   {tagCodes, 6, 64, 120, "vector 0 has code 120, 127 expected"},
		"code in the padding":    {tagCodes, 6, 64 + 40, 1, "vector 0 has code 1, 0 expected"},
		"outlier":                {tagCodes, 6, -4, 2, "vector 3 is short and no outlier"},
		"outlier beyond":         {tagCodes, 6, -4, 4, "vector 4 of 4"},
		"embedder":               {tagCodes, 6, 8, 5, "do not fit its 4 vectors"},
	} {
		data := readFile(t, fs, "small.seg")
		_, sections, err := parseContainer("x.seg", data)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sections {
			if s.tag == c.tag && s.aux == c.aux {
				if c.at < 0 {
					c.at += s.length
				}
				data[s.offset+c.at] = c.to
			}
		}
		fixChecksums(data)
		if err := openAndVerify(t, data); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, want %q", name, err, c.reason)
		}
	}
}
