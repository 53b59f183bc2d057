package segment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/numeric"
	"svc/internal/vfs"
)

// mergeInputs makes three segments with interleaved documents, some of them deleted.
func mergeInputs(t *testing.T, fs vfs.FS, docs int) []Live {
	t.Helper()
	rng := testRand(t)
	var parts [3][]*doc
	for i, d := range randomDocs(rng, docs) {
		parts[i%3] = append(parts[i%3], d)
	}
	var in []Live
	for i, p := range parts {
		l := Live{Reader: buildSegment(t, fs, fmt.Sprintf("%d.seg", i), rng, p, true)}
		if i > 0 {
			l.Deleted = roaring.BitmapOf(1, 2, 5)
		}
		in = append(in, l)
	}
	return in
}

func mustNotExist(t *testing.T, fsys vfs.FS, name string) {
	t.Helper()
	if _, err := fsys.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is there: %v", name, err)
	}
}

func TestMergeStopsWhenCancelled(t *testing.T) {
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 90)
	ctx, cancel := context.WithCancel(context.Background())
	o := MergeOptions{Prefixes: true, Throttle: func(int) error { cancel(); return nil }}
	big := NewColumnSet(84, nil)
	for row := range Row(84) {
		big.String(row, 1, []byte(strings.Repeat("x", 60000)+fmt.Sprint(row)), nil)
	}
	o.Columns = big // large enough that the throttle is called before the end
	_, err := Merge(ctx, mem, "out.seg", in, o)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err == nil {
		t.Fatal("the merge did not stop")
	}
	mustNotExist(t, mem, "out.seg")
	cancel()
	if _, err := Merge(ctx, mem, "out.seg", in, MergeOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mustNotExist(t, mem, "out.seg")
}

func TestMergeStopsOnThrottleError(t *testing.T) {
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 60)
	stop := errors.New("stop")
	if _, err := Merge(context.Background(), mem, "out.seg", in, MergeOptions{Throttle: func(int) error { return stop }}); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	mustNotExist(t, mem, "out.seg")
}

func TestThrottleCountsEveryByte(t *testing.T) {
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 60)
	var sum int64
	info, err := Merge(context.Background(), mem, "out.seg", in, MergeOptions{Throttle: func(n int) error { sum += int64(n); return nil }})
	if err != nil || sum != info.Bytes {
		t.Fatalf("%d bytes of %d: %v", sum, info.Bytes, err)
	}
}

func TestMergeRefusesDamagedInput(t *testing.T) {
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 60)
	data := readFile(t, mem, "0.seg")
	data[sectionOf(data, tagPostings).offset] ^= 1
	bad, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	in[0].Reader = bad
	if _, err := Merge(context.Background(), mem, "out.seg", in, MergeOptions{}); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "post") {
		t.Fatal(err)
	}
	mustNotExist(t, mem, "out.seg")
}

func TestMergeRefusesDuplicateDocuments(t *testing.T) {
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 60)
	if _, err := Merge(context.Background(), mem, "out.seg", append(in, in[0]), MergeOptions{}); err == nil || !strings.Contains(err.Error(), "twice") && !strings.Contains(err.Error(), "two rows") {
		t.Fatal(err)
	}
	mustNotExist(t, mem, "out.seg")
}

func TestMergeRefusesColumnsOfAnotherRowCount(t *testing.T) {
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 60)
	if _, err := Merge(context.Background(), mem, "out.seg", in, MergeOptions{Columns: NewColumnSet(5, nil)}); err == nil {
		t.Fatal("no error")
	}
}

// TestFailedWriteLeavesNoFile makes each file operation of a build and of a merge fail once.
func TestFailedWriteLeavesNoFile(t *testing.T) {
	defer lowerThresholds(8, 16)() // the graph is built from the written file
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 60)
	broken := errors.New("broken")
	rng := testRand(t)
	docs := randomDocs(rng, 20)
	for name, write := range map[string]func(vfs.FS) error{
		"build": func(fs vfs.FS) error {
			b := NewBuilder(BuilderOptions{Prefixes: true, Embedders: testEmbedders, Infix: allFields})
			for _, d := range docs {
				addDoc(b, rng, d)
			}
			_, err := b.Write(context.Background(), fs, "out.seg")
			return err
		},
		"merge": func(fs vfs.FS) error {
			_, err := Merge(context.Background(), fs, "out.seg", in, MergeOptions{Prefixes: true})
			return err
		},
	} {
		for n := int64(0); ; n++ {
			hooked := vfs.Hook(mem, vfs.FailFrom(n, 1, func(o vfs.Op) bool { return o.Kind != vfs.OpRemove }, broken))
			err := write(hooked)
			if err == nil {
				if n < 3 { // at least create, write, sync and close
					t.Fatalf("%s: only %d operations", name, n)
				}
				if err := mem.Remove("out.seg"); err != nil {
					t.Fatal(err)
				}
				break
			}
			if !errors.Is(err, broken) {
				t.Fatalf("%s: operation %d: %v", name, n, err)
			}
			t.Logf("%s: operation %d: %v", name, n, err)
			mustNotExist(t, mem, "out.seg")
		}
	}
}

// TestMergeOfAnOlderSegment merges a file of features 1, without dotted keys, with a current one.
func TestMergeOfAnOlderSegment(t *testing.T) {
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 300)
	data := readFile(t, mem, "0.seg")
	_, sections, err := parseContainer("0.seg", data)
	if err != nil {
		t.Fatal(err)
	}
	table := data[len(data)-footerBytes-len(sections)*entryBytes:]
	for i, s := range sections {
		if s.tag == tagDottedKeys {
			copy(table[i*entryBytes:], "what") // an unknown kind
		}
	}
	data[len(data)-footerBytes+32] = 1
	fixChecksums(data)
	old, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := old.Verify(); err != nil {
		t.Fatal(err)
	}
	lost := in[0].DottedKey(0)
	if lost.IsEmpty() || !old.DottedKey(0).IsEmpty() {
		t.Fatalf("rows %v have a dotted key, in the older segment %v", lost, old.DottedKey(0))
	}
	in[0].Reader = old
	for name, part := range map[string][]Live{"one.seg": in[:1], "all.seg": in} {
		if _, err := Merge(context.Background(), mem, name, part, MergeOptions{}); err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, mem, name)
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
		if r.footer.features != 1 {
			t.Errorf("%s has features %d", name, r.footer.features)
		}
		var want uint64
		for _, l := range part {
			rows := l.LiveRows()
			rows.And(l.DottedKey(0))
			want += rows.GetCardinality()
		}
		if got := r.DottedKey(0).GetCardinality(); got != want {
			t.Errorf("%s: %d rows have a dotted key, want %d", name, got, want)
		}
	}
}

// TestManyPositionsAreCopied merges the same inputs with and without copying all positions from the inputs during the write, and
// compares the files.
func TestManyPositionsAreCopied(t *testing.T) {
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 900)
	merge := func(name string) string {
		t.Helper()
		if _, err := Merge(context.Background(), mem, name, in, MergeOptions{Prefixes: true}); err != nil {
			t.Fatal(err)
		}
		if err := openSegment(t, mem, name).Verify(); err != nil {
			t.Fatal(err)
		}
		b, err := vfs.ReadFile(mem, name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := merge("want.seg")
	old := copyFrom
	defer func() { copyFrom = old }()
	for _, copyFrom = range []int{0, 100, 1000} {
		if merge("got.seg") != want {
			t.Errorf("positions from %d bytes on are copied: the file differs", copyFrom)
		}
		if err := mem.Remove("got.seg"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyRows exceeds the 65,536 rows of a Roaring container in a build and in a merge.
func TestManyRows(t *testing.T) {
	mem := vfs.NewMem()
	const rows = 40000
	var in []Live
	for part := range 2 {
		b := NewBuilder(BuilderOptions{Prefixes: true})
		for i := range rows {
			id := DocID(2*i + part)
			b.StartDoc(id, fmt.Append(nil, id), []byte(`{}`))
			b.Present(1)
			b.Word(1, []byte("all"), uint16(id%1000))
			if id%3 == 0 {
				b.Word(1, []byte("third"), 7)
				b.Word(2, []byte("all"), 1)
				b.Number(3, numeric.Of(float64(id%2000)))
			}
			b.String(4, []byte("same"), []byte("Same"))
			b.WordCount(1, 1)
			b.EndDoc()
		}
		name := fmt.Sprintf("%d.seg", part)
		if _, err := b.Write(context.Background(), mem, name); err != nil {
			t.Fatal(err)
		}
		l := Live{Reader: openSegment(t, mem, name), Deleted: roaring.New()}
		for row := uint32(part); row < rows; row += 10 {
			l.Deleted.Add(row)
		}
		if err := l.Verify(); err != nil {
			t.Fatal(err)
		}
		in = append(in, l)
	}
	if _, err := Merge(context.Background(), mem, "out.seg", in, MergeOptions{Prefixes: true}); err != nil {
		t.Fatal(err)
	}
	r := openSegment(t, mem, "out.seg")
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	if r.Rows() != 2*rows*9/10 {
		t.Fatal(r.Rows())
	}
	all, _ := r.Term([]byte("all"))
	f, _ := all.Find(1)
	reader := f.Positions()
	third, equal := roaring.New(), 0
	var pos []uint16
	for row := range Row(r.Rows()) {
		id := r.DocID(row)
		if pos = reader.Append(pos[:0], row); len(pos) != 1 || pos[0] != uint16(id%1000) {
			t.Fatalf("document %d has positions %v", id, pos)
		}
		if id%3 == 0 {
			third.Add(uint32(row))
			if id%2000 == 302 {
				equal++
			}
		}
	}
	p, _ := r.Term([]byte("third"))
	if !p.Rows().Equals(third) || all.Rows().GetCardinality() != uint64(r.Rows()) {
		t.Fatal("rows are wrong")
	}
	c := r.Column(3)
	if ord := c.SearchNumber(numeric.Of(302)); c.NumberCount(ord) != equal {
		t.Fatalf("%d rows, want %d", c.NumberCount(ord), equal)
	}
	rows3 := roaring.New()
	c.AddNumberRows(rows3, 0, c.Numbers())
	if !rows3.Equals(third) {
		t.Fatal("rows of numbers are wrong")
	}
	if c := r.Column(4); c.StringCount(0) != r.Rows() || string(c.Original(0)) != "Same" {
		t.Fatal("strings are wrong")
	}
}
