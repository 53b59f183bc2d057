package segment

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/geo"
	"svc/internal/mapped"
	"svc/internal/numeric"
	"svc/internal/vfs"
)

// doc is the reference copy of a document, as it was given.
type doc struct {
	id         DocID
	externalID string
	raw        string
	text       string // text with a concordance; "": none
	present    map[FieldID]bool
	dotted     map[FieldID]bool // of present
	words      map[FieldID]map[string][]uint16
	wordCounts map[FieldID]int
	numbers    map[FieldID][]numeric.Value
	strings    map[FieldID][]string // normalised
	null       map[FieldID]bool
	empty      map[FieldID]bool
	geo        *[2]float64
	shape      []geo.ShapePart
	vectors    map[EmbedderID]DocVectors
	elements   []*element
}

// original spells a normalised string as the tests do.
func original(s string) string {
	if len(s)%2 == 0 {
		return s
	}
	return strings.ToUpper(s)
}

func testRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func randomWord(rng *rand.Rand) string {
	letters := []string{"a", "b", "c", "d", "é", "日", "z"}
	var b strings.Builder
	for range 1 + rng.IntN(6) {
		b.WriteString(letters[min(rng.IntN(len(letters)), rng.IntN(len(letters)))])
	}
	return b.String()
}

func randomDoc(rng *rand.Rand, id DocID) *doc {
	d := &doc{id: id, externalID: fmt.Sprintf("doc-%d", id), present: map[FieldID]bool{}, dotted: map[FieldID]bool{}, words: map[FieldID]map[string][]uint16{},
		wordCounts: map[FieldID]int{}, numbers: map[FieldID][]numeric.Value{}, strings: map[FieldID][]string{}, null: map[FieldID]bool{}, empty: map[FieldID]bool{}}
	var raw strings.Builder
	fmt.Fprintf(&raw, `{"id":%d`, id)
	fields := []FieldID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 300, 65535}
	for _, f := range fields {
		if rng.IntN(int(min(f, 20))+2) > 1 {
			continue
		}
		d.present[f] = true
		d.dotted[f] = f%3 == 0 && rng.IntN(3) == 0
		words := map[string][]uint16{}
		pos, n := 0, 0
		for range rng.IntN(12) {
			w := randomWord(rng)
			words[w] = append(words[w], uint16(pos))
			fmt.Fprintf(&raw, ` %s`, w)
			n++
			pos += 1 + rng.IntN(2)*7
			if rng.IntN(50) == 0 {
				pos += rng.IntN(60000)
			}
			if pos > 65535 {
				break
			}
		}
		if n > 0 {
			d.words[f], d.wordCounts[f] = words, n
			if rng.IntN(10) == 0 {
				d.wordCounts[f] = 25 + rng.IntN(10)
			}
		}
		for range rng.IntN(3) {
			d.numbers[f] = append(d.numbers[f], randomNumber(rng, f))
		}
		for range rng.IntN(3) {
			d.strings[f] = append(d.strings[f], randomWord(rng))
		}
		d.null[f] = rng.IntN(8) == 0
		d.empty[f] = rng.IntN(8) == 0
	}
	if rng.IntN(3) > 0 {
		d.geo = &[2]float64{rng.Float64()*180 - 90, rng.Float64()*360 - 180}
	}
	if rng.IntN(4) == 0 {
		d.shape = randomShape(rng)
	}
	d.vectors = randomVectors(rng, testEmbedders)
	if rng.IntN(3) > 0 {
		d.elements = randomElements(rng, 20, 1)
	}
	raw.WriteByte('}')
	d.raw = raw.String()
	if rng.IntN(6) == 0 {
		d.text = randomText(rng, rng.IntN(60))
		d.raw = fmt.Sprintf(`{"id":%d,"text":%s}`, id, escaped(rng, d.text))
	}
	return d
}

// randomNumber makes a number. In every other field it may be an integer that float64 cannot represent.
func randomNumber(rng *rand.Rand, f FieldID) numeric.Value {
	near := uint64(rng.IntN(9)) - 4
	switch n := rng.IntN(12); {
	case f%2 == 0 || n > 4:
		return numeric.Of(float64(rng.IntN(40)-10) / 2)
	case n == 0:
		return numeric.OfUint(1<<53 + near)
	case n == 1:
		return numeric.OfInt(-1<<53 - int64(near))
	case n == 2:
		return numeric.OfUint(1<<63 + near)
	case n == 3:
		return numeric.OfInt(math.MinInt64 + int64(near+4))
	default:
		return numeric.OfUint(math.MaxUint64 - (near + 4))
	}
}

// testAnalysis are the analysis versions of the words of tests.
var testAnalysis = []AnalysisPart{{Pipeline: 0, Version: 1}, {Pipeline: 23, Version: 2, List: 0x1234}}

func addDoc(b *Builder, rng *rand.Rand, d *doc) {
	b.Analyzed(testAnalysis)
	b.StartDoc(d.id, []byte(d.externalID), []byte(d.raw))
	concord(b, "text", d.text)
	for f := range d.present {
		b.Present(f)
		b.Present(f)
		if d.dotted[f] {
			b.DottedKey(f)
			b.DottedKey(f)
		}
	}
	for f, words := range d.words {
		for w, positions := range words {
			for _, p := range positions {
				b.Word(f, []byte(w), p)
			}
		}
		b.WordCount(f, d.wordCounts[f])
	}
	for f, numbers := range d.numbers {
		for _, x := range numbers {
			if x.Float == 0 && rng.IntN(2) == 0 {
				x.Float = math.Copysign(0, -1)
			}
			b.Number(f, x)
		}
	}
	for f, strings := range d.strings {
		for _, s := range strings {
			b.String(f, []byte(s), []byte(original(s)))
		}
	}
	for f, yes := range d.null {
		if yes {
			b.Null(f)
		}
	}
	for f, yes := range d.empty {
		if yes {
			b.Empty(f)
		}
	}
	if d.geo != nil {
		b.Geo(d.geo[0], d.geo[1])
	}
	for i := range d.shape {
		b.Shape(&d.shape[i])
	}
	for e, v := range d.vectors {
		b.Vectors(e, v)
	}
	addElements(b, d.elements)
	b.EndDoc()
}

func buildSegment(t testing.TB, fs vfs.FS, name string, rng *rand.Rand, docs []*doc, prefixes bool) *Reader {
	t.Helper()
	b := NewBuilder(BuilderOptions{Columns: []FieldID{77}, Prefixes: prefixes, Embedders: testEmbedders})
	for _, d := range docs {
		addDoc(b, rng, d)
	}
	info, err := b.Write(context.Background(), fs, name)
	if err != nil {
		t.Fatal(err)
	}
	r := openSegment(t, fs, name)
	if got := r.Info(); got != info {
		t.Fatalf("Info after Open is %+v, Write returned %+v", got, info)
	}
	return r
}

// openedQuickly counts opened segments. Every second one is opened by OpenQuick.
var openedQuickly atomic.Int64

func openSegment(t testing.TB, fs vfs.FS, name string) *Reader {
	t.Helper()
	r, err := open(fs, name, openedQuickly.Add(1)%2 == 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func rowsOf(b *roaring.Bitmap) []uint32 {
	if err := b.Validate(); err != nil && !b.IsEmpty() {
		panic(err)
	}
	return b.ToArray()
}

func wantRows(docs []*doc, has func(*doc) bool) []uint32 {
	rows := []uint32{}
	for i, d := range docs {
		if has(d) {
			rows = append(rows, uint32(i))
		}
	}
	return rows
}

// checkSegment compares all contents of a reader with the documents it was built from.
func checkSegment(t *testing.T, r *Reader, docs []*doc, rng *rand.Rand) {
	t.Helper()
	equal := func(what string, got, want any) {
		t.Helper()
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			t.Fatalf("%s: got %.300s, want %.300s", what, g, w)
		}
	}
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	equal("rows", r.Rows(), len(docs))
	equal("live rows", Live{Reader: r}.LiveRows().GetCardinality(), len(docs))
	var buf []byte
	for i, d := range docs {
		row := Row(i)
		equal("DocID", r.DocID(row), d.id)
		got, ok := r.RowOf(d.id)
		equal("RowOf", fmt.Sprint(got, ok), fmt.Sprint(row, true))
		if _, ok := r.RowOf(d.id + 1); ok != (i+1 < len(docs) && docs[i+1].id == d.id+1) {
			t.Fatalf("RowOf(%d) is %v", d.id+1, ok)
		}
		got, ok = r.Lookup([]byte(d.externalID))
		equal("Lookup", fmt.Sprint(got, ok), fmt.Sprint(row, true))
		equal("ExternalID", string(r.ExternalID(row)), d.externalID)
		var err error
		if buf, err = r.AppendDocument(append(buf[:0], "x"...), row); err != nil {
			t.Fatal(err)
		}
		equal("document", string(buf), "x"+d.raw)
	}
	if _, ok := r.Lookup([]byte("nobody")); ok {
		t.Fatal("Lookup finds an id that does not exist")
	}
	for row, d := range docs {
		want := ""
		if d.text != "" {
			want = wordsOf(d.text)
		}
		equal("concordance", concordanceText(r, Row(row), strings.Index(d.raw, `"text"`)), want)
	}
	checkWords(t, r, docs, rng)
	for f := range FieldID(400) {
		equal(fmt.Sprintf("Present %d", f), rowsOf(r.Present(f)), wantRows(docs, func(d *doc) bool { return d.present[f] }))
		equal(fmt.Sprintf("DottedKey %d", f), rowsOf(r.DottedKey(f)), wantRows(docs, func(d *doc) bool { return d.dotted[f] }))
	}
	for range 200 {
		f := FieldID(rng.IntN(12))
		if i := rng.IntN(len(docs) + 1); i < len(docs) {
			equal("WordCount", r.WordCount(f, Row(i)), min(docs[i].wordCounts[f], 31))
		}
	}
	equal("word count of no row", r.WordCount(0, Row(len(docs))), 0)
	for f := range FieldID(12) {
		n := 1 + rng.IntN(31)
		want := wantRows(docs, func(d *doc) bool { return min(d.wordCounts[f], 31) == n })
		equal(fmt.Sprintf("RowsOfCount %d of %d", n, f), rowsOf(r.RowsOfCount(f, n)), want)
	}
	for _, f := range []FieldID{0, 1, 2, 5, 10, 300, 65535, 77, 78} {
		checkColumn(t, r, f, docs, rng)
	}
	checkGeo(t, r, docs, rng)
	checkShapes(t, r, docs, rng)
	checkElements(t, r, docs)
	checkVectors(t, r, docs, testEmbedders, rng)
}

type place struct {
	row uint32
	pos []uint16
}

// twinPosting returns the reference posting of the matching words.
func twinPosting(docs []*doc, match func(word string) bool) map[FieldID][]place {
	p := map[FieldID][]place{}
	for i, d := range docs {
		for f, words := range d.words {
			var pos []uint16
			for w, list := range words {
				if match(w) {
					pos = append(pos, list...)
				}
			}
			if len(pos) > 0 {
				slices.Sort(pos)
				p[f] = append(p[f], place{uint32(i), slices.Compact(pos)})
			}
		}
	}
	return p
}

func checkPosting(t *testing.T, what string, p Posting, want map[FieldID][]place, rng *rand.Rand) {
	t.Helper()
	fields := slices.Sorted(maps.Keys(want))
	if p.Fields() != len(fields) {
		t.Fatalf("%s: %d fields, want %d", what, p.Fields(), len(fields))
	}
	all := roaring.New()
	for i, f := range fields {
		fp := p.Field(i)
		found, ok := p.Find(f)
		if fp.ID() != f || !ok || found.ID() != f || found.Count() != fp.Count() {
			t.Fatalf("%s: field %d is %d, found %v %d; want %d", what, i, fp.ID(), ok, found.ID(), f)
		}
		if _, ok := p.Find(f + 1); ok != slices.Contains(fields, f+1) {
			t.Fatalf("%s: Find(%d) is %v", what, f+1, ok)
		}
		var rows []uint32
		for _, x := range want[f] {
			rows = append(rows, x.row)
		}
		all.AddMany(rows)
		if got := rowsOf(fp.Rows()); !slices.Equal(got, rows) || fp.Count() != len(rows) {
			t.Fatalf("%s: field %d has rows %v (%d), want %v", what, f, got, fp.Count(), rows)
		}
		reader := fp.Positions()
		for _, x := range want[f] {
			if got := reader.Append([]uint16{7}, Row(x.row)); !slices.Equal(got[1:], x.pos) {
				t.Fatalf("%s: field %d row %d has positions %v, want %v", what, f, x.row, got[1:], x.pos)
			}
		}
		for range 5 {
			row := uint32(rng.IntN(len(want[f])*3 + 3))
			i := sort.Search(len(want[f]), func(i int) bool { return want[f][i].row >= row })
			var pos []uint16
			if i < len(want[f]) && want[f][i].row == row {
				pos = want[f][i].pos
			}
			if got := reader.Append(nil, Row(row)); !slices.Equal(got, pos) {
				t.Fatalf("%s: field %d row %d at random has positions %v, want %v", what, f, row, got, pos)
			}
		}
	}
	if got := p.Rows(); !got.Equals(all) {
		t.Fatalf("%s: rows %v, want %v", what, got, all)
	}
}

func checkWords(t *testing.T, r *Reader, docs []*doc, rng *rand.Rand) {
	t.Helper()
	dictionary := map[string]bool{}
	for _, d := range docs {
		for _, words := range d.words {
			for w := range words {
				dictionary[w] = true
			}
		}
	}
	words := slices.Sorted(maps.Keys(dictionary))
	it := r.Terms(nil, nil, nil)
	for _, w := range words {
		if !it.Next() || string(it.Word()) != w {
			t.Fatalf("the walk is at %q, want %q (%v)", it.Word(), w, it.Err())
		}
		if it.Posting().Fields() == 0 {
			t.Fatalf("%q has no fields", w)
		}
	}
	for range 2 {
		if it.Next() || it.Err() != nil {
			t.Fatalf("the walk continues at %q (%v)", it.Word(), it.Err())
		}
	}
	for range 20 {
		from, to := randomWord(rng), randomWord(rng)
		it := r.Terms([]byte(from), []byte(to), nil)
		for _, w := range words {
			if from <= w && w < to {
				if !it.Next() || string(it.Word()) != w {
					t.Fatalf("the walk from %q to %q is at %q, want %q", from, to, it.Word(), w)
				}
			}
		}
		if it.Next() {
			t.Fatalf("the walk from %q to %q continues at %q", from, to, it.Word())
		}
	}
	if _, ok := r.Term([]byte("nobody")); ok {
		t.Fatal("Term finds a word that does not exist")
	}
	for i := range 150 {
		if len(words) == 0 {
			break
		}
		w := words[rng.IntN(len(words))]
		if i < 7 {
			w = words[min(i*100, len(words)-1)]
		}
		p, ok := r.Term([]byte(w))
		if !ok {
			t.Fatalf("no term %q", w)
		}
		checkPosting(t, "term "+w, p, twinPosting(docs, func(x string) bool { return x == w }), rng)
	}
	prefixes := map[string]int{}
	for _, w := range words {
		for i := range w {
			if i > 0 && i <= 4 {
				prefixes[w[:i]]++
			}
		}
		if len(w) <= 4 {
			prefixes[w]++
		}
	}
	for prefix, n := range prefixes {
		p, ok := r.Prefix([]byte(prefix))
		if ok != (n >= minPrefixWords && r.HasPrefixes()) {
			t.Fatalf("prefix %q of %d words: %v", prefix, n, ok)
		}
		if ok {
			checkPosting(t, "prefix "+prefix, p, twinPosting(docs, func(x string) bool { return strings.HasPrefix(x, prefix) }), rng)
		}
	}
	if _, ok := r.Prefix(nil); ok {
		t.Fatal("the empty prefix has a posting")
	}
}

func checkColumn(t *testing.T, r *Reader, f FieldID, docs []*doc, rng *rand.Rand) {
	t.Helper()
	c := r.Column(f)
	numbers, texts, some := map[numeric.Value][]uint32{}, map[string][]uint32{}, f == 77
	for i, d := range docs {
		for _, x := range slices.Compact(slices.SortedFunc(slices.Values(d.numbers[f]), numeric.Value.Compare)) {
			numbers[x] = append(numbers[x], uint32(i))
		}
		for _, s := range slices.Compact(slices.Sorted(slices.Values(d.strings[f]))) {
			texts[s] = append(texts[s], uint32(i))
		}
		some = some || d.null[f] || d.empty[f]
	}
	if c == nil {
		if some || len(numbers)+len(texts) > 0 {
			t.Fatalf("field %d has no column", f)
		}
		return
	}
	fatal := func(what string, got, want any) {
		t.Helper()
		t.Fatalf("column %d: %s: got %v, want %v", f, what, got, want)
	}
	if got, want := rowsOf(c.Null()), wantRows(docs, func(d *doc) bool { return d.null[f] }); !slices.Equal(got, want) {
		fatal("null", got, want)
	}
	if got, want := rowsOf(c.Empty()), wantRows(docs, func(d *doc) bool { return d.empty[f] }); !slices.Equal(got, want) {
		fatal("empty", got, want)
	}
	values := slices.SortedFunc(maps.Keys(numbers), numeric.Value.Compare)
	if c.Numbers() != len(values) {
		fatal("numbers", c.Numbers(), len(values))
	}
	for ord, x := range values {
		if c.Number(ord) != x || math.Signbit(c.Number(ord).Float) != (x.Float < 0) || c.NumberCount(ord) != len(numbers[x]) || c.SearchNumber(x) != ord {
			fatal("number", c.Number(ord), x)
		}
		below, above := x, x
		below.Rest--
		above.Rest++
		if c.SearchNumber(below) != ord && (ord == 0 || values[ord-1] != below) || c.SearchNumber(above) != ord+1 {
			fatal("search beside a number", []int{c.SearchNumber(below), c.SearchNumber(above)}, ord)
		}
	}
	if c.SearchNumber(numeric.Of(1e90)) != len(values) {
		fatal("search", c.SearchNumber(numeric.Of(1e90)), len(values))
	}
	keys := slices.Sorted(maps.Keys(texts))
	if c.Strings() != len(keys) {
		fatal("strings", c.Strings(), len(keys))
	}
	for ord, s := range keys {
		if string(c.String(ord)) != s || string(c.Original(ord)) != original(s) || c.StringCount(ord) != len(texts[s]) ||
			c.SearchString([]byte(s)) != ord || c.SearchString([]byte(s+"\x00")) != ord+1 {
			fatal("string", string(c.String(ord))+" "+string(c.Original(ord)), s)
		}
	}
	for range 10 {
		lo, hi := rng.IntN(len(values)+2)-1, rng.IntN(len(values)+2)
		got, want := roaring.BitmapOf(9999999), roaring.BitmapOf(9999999)
		c.AddNumberRows(got, lo, hi)
		for ord, x := range values {
			if lo <= ord && ord < hi {
				want.AddMany(numbers[x])
			}
		}
		if !got.Equals(want) {
			fatal("rows of numbers", got, want)
		}
		lo, hi = rng.IntN(len(keys)+1), rng.IntN(len(keys)+2)
		got, want = roaring.New(), roaring.New()
		c.AddStringRows(got, lo, hi)
		for ord, s := range keys {
			if lo <= ord && ord < hi {
				want.AddMany(texts[s])
			}
		}
		if !got.Equals(want) {
			fatal("rows of strings", got, want)
		}
	}
	for row := range len(docs) + 1 {
		var want []uint32
		for ord, x := range values {
			if row < len(docs) && slices.Contains(docs[row].numbers[f], x) {
				want = append(want, uint32(ord))
			}
		}
		if got := c.RowNumbers(nil, Row(row)); !slices.Equal(got, want) {
			fatal("numbers of row", got, want)
		}
		want = nil
		if row < len(docs) {
			for _, s := range slices.Compact(slices.Sorted(slices.Values(docs[row].strings[f]))) {
				ord, _ := slices.BinarySearch(keys, s)
				want = append(want, uint32(ord))
			}
		}
		if got := c.RowStrings(nil, Row(row)); !slices.Equal(got, want) {
			fatal("strings of row", got, want)
		}
	}
	var rows []uint32
	for row := range uint32(r.Rows() + 3) { // some past the end
		if row%3 != 0 {
			rows = append(rows, row)
		}
	}
	numberCounts, stringCounts := make([]uint32, c.Numbers()), make([]uint32, c.Strings())
	c.CountNumbers(numberCounts, rows)
	c.CountStrings(stringCounts, rows)
	for _, row := range rows {
		for _, ord := range c.RowNumbers(nil, Row(row)) {
			numberCounts[ord]--
		}
		for _, ord := range c.RowStrings(nil, Row(row)) {
			stringCounts[ord]--
		}
	}
	if got := slices.Concat(numberCounts, stringCounts); slices.ContainsFunc(got, func(n uint32) bool { return n != 0 }) {
		fatal("counts less those of each row", got, "zeros")
	}
	in := func(ordinals []uint32, lo, hi int) bool {
		return slices.ContainsFunc(ordinals, func(ord uint32) bool { return lo <= int(ord) && int(ord) < hi })
	}
	for lo := range c.Numbers() {
		hi := lo + 1 + lo*lo%(c.Numbers()-lo)
		want := slices.DeleteFunc(slices.Clone(rows), func(row uint32) bool { return !in(c.RowNumbers(nil, Row(row)), lo, hi) })
		if got := c.RowsWithNumbers(nil, rows, lo, hi); !slices.Equal(got, want) {
			fatal("rows with numbers", got, want)
		}
	}
	among := roaring.BitmapOf(rows...)
	marked := among.ToDense()
	one := func(ord int, add func(dst *roaring.Bitmap, lo, hi int), addAmong func(dst *roaring.Bitmap, ord int, among *roaring.Bitmap)) {
		got, want := roaring.New(), roaring.New()
		addAmong(got, ord, among)
		add(want, ord, ord+1)
		if want.And(among); !got.Equals(want) {
			fatal("rows of a value among others", got, want)
		}
	}
	for _, row := range rows {
		if have := c.RowStrings(nil, Row(row)); len(have) > 1 && c.SingleStrings() {
			fatal("a row of a column where no row has several strings", have, "one")
		}
	}
	repeated := func(of string, n int, count func(ord int) int, got []uint32) {
		want := []uint32{7}
		for ord := range n {
			if count(ord) > 1 {
				want = append(want, uint32(ord))
			}
		}
		if !slices.Equal(got, want) {
			fatal(of+" that several rows have", got, want)
		}
	}
	repeated("numbers", c.Numbers(), c.NumberCount, c.RepeatedNumbers([]uint32{7}))
	repeated("strings", c.Strings(), c.StringCount, c.RepeatedStrings([]uint32{7}))
	for ord := range c.Numbers() {
		one(ord, c.AddNumberRows, c.AddNumberRowsAmong)
	}
	for ord := range c.Strings() {
		one(ord, c.AddStringRows, c.AddStringRowsAmong)
	}
	for lo := range c.Strings() {
		hi := lo + 1 + lo*lo%(c.Strings()-lo)
		want := slices.DeleteFunc(slices.Clone(rows), func(row uint32) bool { return !in(c.RowStrings(nil, Row(row)), lo, hi) })
		if got := c.RowsWithStrings(nil, rows, lo, hi); !slices.Equal(got, want) {
			fatal("rows with strings", got, want)
		}
		if got, want := c.CountMarkedStringRows(lo, among, marked), c.CountStringRows(lo, among); got != want {
			fatal("marked rows with a string", got, want)
		}
	}
}

func checkGeo(t *testing.T, r *Reader, docs []*doc, rng *rand.Rand) {
	t.Helper()
	g := r.Geo()
	want := wantRows(docs, func(d *doc) bool { return d.geo != nil })
	if g == nil {
		if len(want) > 0 {
			t.Fatal("no points")
		}
		return
	}
	if got := rowsOf(g.Rows()); !slices.Equal(got, want) {
		t.Fatalf("rows with points %v, want %v", got, want)
	}
	for i, d := range docs {
		lat, lng, ok := g.Point(Row(i))
		if ok != (d.geo != nil) || ok && (lat != d.geo[0] || lng != d.geo[1]) {
			t.Fatalf("row %d: %v %v %v, want %v", i, lat, lng, ok, d.geo)
		}
	}
	for range 20 {
		lat, lng, meters := rng.Float64()*180-90, rng.Float64()*360-180, math.Exp(rng.Float64()*17)
		got := roaring.New()
		g.AddRowsInCap(got, lat, lng, meters)
		if want := wantRows(docs, func(d *doc) bool { return d.geo != nil && geo.Distance(lat, lng, d.geo[0], d.geo[1]) <= meters }); !slices.Equal(rowsOf(got), want) {
			t.Fatalf("%v meters around %v,%v: %v, want %v", meters, lat, lng, got, want)
		}
		top, bottom, left, right := rng.Float64()*180-90, rng.Float64()*180-90, rng.Float64()*360-180, rng.Float64()*360-180
		got = roaring.New()
		g.AddRowsInBox(got, top, left, bottom, right)
		if want := wantRows(docs, func(d *doc) bool {
			return d.geo != nil && d.geo[0] <= top && d.geo[0] >= bottom &&
				(left <= right && left <= d.geo[1] && d.geo[1] <= right || left > right && (d.geo[1] >= left || d.geo[1] <= right))
		}); !slices.Equal(rowsOf(got), want) {
			t.Fatalf("box %v %v %v %v: %v, want %v", top, left, bottom, right, got, want)
		}
	}
}

func randomDocs(rng *rand.Rand, n int) []*doc {
	docs := make([]*doc, n)
	id := DocID(rng.IntN(100))
	for i := range docs {
		docs[i] = randomDoc(rng, id)
		id += 1 + DocID(rng.IntN(2))
	}
	return docs
}

func TestSegmentMatchesItsDocuments(t *testing.T) {
	rng := testRand(t)
	for _, n := range []int{0, 1, 2, 33, 700} {
		for _, prefixes := range []bool{false, true} {
			docs := randomDocs(rng, n)
			checkSegment(t, buildSegment(t, vfs.NewMem(), "a.seg", rng, docs, prefixes), docs, rng)
		}
	}
}

// TestWriteAfterAFailure checks that a builder keeps its rows after a failed write: the next write must produce the same file.
func TestWriteAfterAFailure(t *testing.T) {
	rng := testRand(t)
	mem := vfs.NewMem()
	var before func(vfs.Op) error
	fs := vfs.Hook(mem, func(o vfs.Op) error {
		if before == nil || o.Name != "a.seg" {
			return nil
		}
		return before(o)
	})
	b := NewBuilder(BuilderOptions{Columns: []FieldID{77}, Prefixes: true, Embedders: testEmbedders,
		Spool: func() (*mapped.Spool, error) { return mapped.NewSpool(fs, "spool") }})
	for _, d := range randomDocs(rng, 40) {
		addDoc(b, rng, d)
	}
	b.StartDoc(1000, []byte("large"), []byte(`{"t":"`+strings.Repeat("x", spooledDocument)+`"}`))
	b.EndDoc()
	written := func() ([]byte, error) {
		if _, err := b.Write(t.Context(), fs, "a.seg"); err != nil {
			return nil, err
		}
		content, err := vfs.ReadFile(mem, "a.seg")
		if err != nil {
			return nil, err
		}
		return content, mem.Remove("a.seg")
	}
	want, err := written()
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for at := int64(0); ; at++ {
		before = vfs.FailFrom(at, 1, nil, syscall.ENOSPC)
		_, err := written()
		before = nil
		if err == nil {
			break
		}
		failed++
		if _, err := mem.Stat("a.seg"); err == nil {
			t.Fatalf("operation %d failed: a file is left", at)
		}
		if got, err := written(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("operation %d failed: another file (%v)", at, err)
		}
	}
	if failed < 3 {
		t.Errorf("%d operations", failed)
	}
	b.Reset()
}

func TestMergeEqualsBuildOfLiveDocuments(t *testing.T) {
	rng := testRand(t)
	for round := range 12 {
		fs := vfs.NewMem()
		inputs := 1 + rng.IntN(4)
		all := randomDocs(rng, 30+rng.IntN(500))
		deletions := rng.IntN(3) // none, some, many
		var in []Live
		var live []*doc
		parts := make([][]*doc, inputs)
		for i, d := range all {
			p := i * inputs / len(all)
			if round%2 == 0 {
				p = rng.IntN(inputs)
			}
			parts[p] = append(parts[p], d)
		}
		for i, docs := range parts {
			l := Live{Reader: buildSegment(t, fs, fmt.Sprintf("%d.seg", i), rng, docs, rng.IntN(3) > 0)}
			if deletions > 0 {
				l.Deleted = roaring.New()
			}
			for row, d := range docs {
				if deletions > 0 && rng.IntN(10) < 4*deletions {
					l.Deleted.Add(uint32(row))
				} else {
					live = append(live, d)
				}
			}
			in = append(in, l)
		}
		slices.SortFunc(live, func(a, b *doc) int { return int(a.id) - int(b.id) })
		o := MergeOptions{Prefixes: round%3 > 0}
		if rng.IntN(2) == 0 {
			fresh := map[Row]string{}
			for row, d := range live {
				if d.text == "" && rng.IntN(3) > 0 {
					d.raw = `{"new":"` + strings.Repeat(randomWord(rng)+" ", rng.IntN(40)*rng.IntN(40)*rng.IntN(2)) + `"}` // up to some 15 KiB
					if rng.IntN(50) == 0 {
						d.raw = `{"new":"` + strings.Repeat(randomWord(rng)+" ", 9000) + `"}`
					}
					fresh[Row(row)] = d.raw
				}
			}
			o.Document = func(row Row) ([]byte, error) {
				if doc, ok := fresh[row]; ok {
					return []byte(doc), nil
				}
				return nil, nil
			}
		}
		info, err := Merge(context.Background(), fs, "out.seg", in, o)
		if err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, fs, "out.seg")
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
		if r.Info() != info {
			t.Fatalf("Info after Open is %+v, Merge returned %+v", r.Info(), info)
		}
		checkSegment(t, r, live, rng)
	}
}

func TestMain(m *testing.M) {
	m.Run()
	if n := mapped.Count(); n != 0 {
		panic(fmt.Sprintf("%d files are still mapped", n))
	}
}

func TestMergeOfOneInputChangesColumnsAndPrefixesOnly(t *testing.T) {
	rng := testRand(t)
	fs := vfs.NewMem()
	docs := randomDocs(rng, 400)
	a := buildSegment(t, fs, "a.seg", rng, docs, false)
	set := NewColumnSet(len(docs), []FieldID{500, 501})
	for i := range docs {
		set.Number(Row(i), 500, numeric.Of(float64(i%7)))
		set.String(Row(i), 1, []byte("replaced"), []byte("Replaced"))
	}
	_, err := Merge(context.Background(), fs, "b.seg", []Live{{Reader: a}}, MergeOptions{
		KeepColumn: func(f FieldID) bool { return f != 2 },
		Columns:    set,
		Prefixes:   true,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := openSegment(t, fs, "b.seg")
	for _, s := range b.sections {
		switch s.tag {
		case tagMeta, tagColumns, tagColumnDir, tagPrefixes, tagPrefixPosts, tagSums:
		default:
			if !bytes.Equal(b.section(s.tag), a.section(s.tag)) {
				t.Errorf("section %v is not copied", s.tag)
			}
		}
	}
	if b.Column(2) != nil || b.Column(501) == nil || b.Column(500).Numbers() != 7 || b.Column(1).Strings() != 1 || b.Column(0) == nil {
		t.Error("the columns are not those asked for")
	}
	for _, d := range docs {
		delete(d.strings, 1)
		delete(d.numbers, 1)
		delete(d.null, 1)
		delete(d.empty, 1)
		delete(d.strings, 2)
		delete(d.numbers, 2)
		delete(d.null, 2)
		delete(d.empty, 2)
		d.strings[1] = []string{"replaced"}
	}
	for _, f := range []FieldID{0, 2, 5, 10, 300} {
		checkColumn(t, b, f, docs, rng)
	}
	checkWords(t, b, docs, rng)
}

func TestReadersShareASegment(t *testing.T) {
	rng := testRand(t)
	docs := randomDocs(rng, 300)
	r := buildSegment(t, vfs.NewMem(), "a.seg", rng, docs, true)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			var doc []byte
			for row, d := range docs {
				var err error
				if doc, err = r.AppendDocument(doc[:0], Row(row)); err != nil || string(doc) != d.raw {
					t.Errorf("row %d: %q, %v", row, doc, err)
				}
				for f, words := range d.words {
					for w, positions := range words {
						p, _ := r.Term([]byte(w))
						fp, ok := p.Find(f)
						reader := fp.Positions()
						if got := reader.Append(nil, Row(row)); !ok || !slices.Equal(got, positions) {
							t.Errorf("row %d: %q is at %v, want %v", row, w, got, positions)
						}
					}
				}
			}
		})
	}
	wait.Wait()
}
