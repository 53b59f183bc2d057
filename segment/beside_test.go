package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/numeric"
	"svc/internal/vfs"
)

// besideSegments writes the same rows twice: whole has columns of the fields 500 to 503, host only of 500 and 502. set has the columns of
// 501 and 503 for a file beside host.
func besideSegments(t testing.TB, fs vfs.FS, rows int) (whole, host *Reader, set *ColumnSet) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, uint64(rows)))
	set = NewColumnSet(rows, []FieldID{501, 503})
	both := []*Builder{NewBuilder(BuilderOptions{}), NewBuilder(BuilderOptions{})}
	for row := range rows {
		for _, b := range both {
			b.StartDoc(DocID(2*row), fmt.Append(nil, "d", row), fmt.Appendf(nil, `{"id":"d%d"}`, row))
		}
		for range rng.IntN(4) {
			f := FieldID(500 + rng.IntN(4))
			x, s := float64(rng.IntN(9)), fmt.Appendf(nil, "s%d", rng.IntN(40))
			shown := bytes.ToUpper(s)
			for i, b := range both {
				switch {
				case i == 1 && f%2 == 1:
					set.Number(Row(row), f, numeric.Of(x))
					set.String(Row(row), f, s, shown)
					set.Null(Row(row), f)
				default:
					b.Number(f, numeric.Of(x))
					b.String(f, s, shown)
					b.Null(f)
				}
			}
		}
		for _, b := range both {
			b.EndDoc()
		}
	}
	var readers []*Reader
	for i, b := range both {
		name := fmt.Sprint(i, ".seg")
		if _, err := b.Write(context.Background(), fs, name); err != nil {
			t.Fatal(err)
		}
		r, err := Open(fs, name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		readers = append(readers, r)
	}
	return readers[0], readers[1], set
}

func writeBeside(t testing.TB, fs vfs.FS, host *Reader, name string, sets ...*ColumnSet) {
	t.Helper()
	w, err := host.CreateColumns(fs, name, func(FieldID) bool { return true }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		if err := w.Add(set); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

// columnsText prints all contents of a segment's columns.
func columnsText(t *testing.T, r *Reader) string {
	var b strings.Builder
	for _, a := range asksOf(t, r) {
		if strings.Contains(a.what, "column") {
			fmt.Fprintf(&b, "%s: %s\n", a.what, a.answer(r))
		}
	}
	return b.String()
}

func TestColumnsBesideSegment(t *testing.T) {
	for _, rows := range []int{1, 7, 3000} {
		fs := vfs.NewMem()
		whole, host, set := besideSegments(t, fs, rows)
		before := host.Info().Bytes
		writeBeside(t, fs, host, "x.col", set)
		if err := VerifyFile(fs, "x.col"); err != nil {
			t.Fatal(err)
		}
		side, err := host.OpenColumns(fs, "x.col")
		if err != nil {
			t.Fatal(err)
		}
		host.AttachColumns(side)
		if info, err := fs.Stat("x.col"); err != nil || host.Info().Bytes != before+info.Size() {
			t.Errorf("%d bytes of files, want %d and those of the columns", host.Info().Bytes, before)
		}
		if !slices.Equal(host.ColumnFields(), []FieldID{500, 501, 502, 503}) && rows > 7 {
			t.Errorf("columns of the fields %d", host.ColumnFields())
		}
		if rows > 7 && columnsText(t, host) != columnsText(t, whole) {
			t.Error("columns beside the segment differ from those inside")
		}
		if err := host.CheckSums(context.Background()); err != nil {
			t.Error(err)
		}
		// A merge takes the columns in, with and without deleted rows.
		for name, deleted := range map[string]*roaring.Bitmap{"copied": nil, "merged": roaring.BitmapOf(0, 3, 5)} {
			var texts []string
			for i, in := range []*Reader{whole, host} {
				out := fmt.Sprint(name, i)
				if _, err := Merge(context.Background(), fs, out, []Live{{Reader: in, Deleted: deleted}}, MergeOptions{}); err != nil {
					t.Fatal(err)
				}
				r := openSegment(t, fs, out)
				if err := r.Verify(); err != nil {
					t.Error(err)
				}
				texts = append(texts, columnsText(t, r))
			}
			if rows > 7 && texts[0] != texts[1] {
				t.Errorf("%s: the columns of the merged segments differ", name)
			}
		}
	}
}

// TestColumnsInSeveralSetsAndFiles splits columns over sets, as limited memory requires, and over files.
func TestColumnsInSeveralSetsAndFiles(t *testing.T) {
	fs := vfs.NewMem()
	whole, host, set := besideSegments(t, fs, 200)
	low, high := NewColumnSet(200, []FieldID{501}), NewColumnSet(200, []FieldID{503})
	low.columns[501], high.columns[503] = set.columns[501], set.columns[503]
	writeBeside(t, fs, host, "both.col", low, high)
	writeBeside(t, fs, host, "high.col", high)
	writeBeside(t, fs, host, "low.col", low)
	for _, name := range []string{"high.col", "low.col"} {
		side, err := host.OpenColumns(fs, name)
		if err != nil {
			t.Fatal(err)
		}
		host.AttachColumns(side)
	}
	if columnsText(t, host) != columnsText(t, whole) {
		t.Error("columns in two files differ from those inside")
	}
	if _, err := host.OpenColumns(fs, "both.col"); !apierr.IsCorruption(err) {
		t.Errorf("a second column of a field: %v", err)
	}
	w, err := host.CreateColumns(fs, "bad.col", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(high); err != nil {
		t.Fatal(err)
	}
	if w.Add(low) == nil || w.Add(NewColumnSet(3, []FieldID{600})) == nil {
		t.Error("columns out of order or of another row count are written")
	}
	if err := w.Abort(errors.New("given up")); err == nil || err.Error() != "given up" {
		t.Error(err)
	}
	if _, err := fs.Stat("bad.col"); err == nil {
		t.Error("Abort leaves a file")
	}
}

// TestMismatchedColumnFiles checks that Open and OpenColumns refuse the wrong file and name it.
func TestMismatchedColumnFiles(t *testing.T) {
	fs := vfs.NewMem()
	whole, host, set := besideSegments(t, fs, 50)
	writeBeside(t, fs, host, "x.col", set)
	if _, err := Open(fs, "x.col"); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "beside a segment") {
		t.Errorf("Open of a column file: %v", err)
	}
	if _, err := Salvage(fs, "x.col"); !apierr.IsCorruption(err) {
		t.Errorf("salvaging documents from a column file: %v", err)
	}
	other, err := Merge(context.Background(), fs, "other.seg", []Live{{Reader: host}}, MergeOptions{KeepColumn: func(f FieldID) bool { return f != 500 }})
	if err != nil || other.Rows != 50 {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		of   *Reader
		file string
	}{
		"a segment":                 {host, "0.seg"},
		"of a segment with columns": {whole, "x.col"},
		"of other bytes":            {openSegment(t, fs, "other.seg"), "x.col"},
	} {
		_, err := c.of.OpenColumns(fs, c.file)
		var damage *apierr.Corruption
		if !errors.As(err, &damage) || damage.File != c.file {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := host.OpenColumns(fs, "missing.col"); err == nil {
		t.Error("OpenColumns accepts a missing file")
	}
}

func TestEveryKindOfSectionBesideASegment(t *testing.T) {
	defer lowerInfix(64, 16)()
	fs := vfs.NewMem()
	_, host, set := besideSegments(t, fs, 3000)
	writeBeside(t, fs, host, "x.col", set)
	data := readFile(t, fs, "x.col")
	_, sections, err := parseContainer("x.col", data)
	if err != nil {
		t.Fatal(err)
	}
	var are, want []tag
	for _, s := range sections {
		are = append(are, s.tag)
	}
	for _, k := range kindsOf(inColumns) {
		want = append(want, k.tag)
	}
	if !slices.Equal(are, want) {
		t.Errorf("sections %v, want %v", are, want)
	}
	// Open, an access of the column or an inspection of the segment finds damage of each section and reports it.
	for i, s := range sections {
		for _, at := range []int64{s.offset, s.offset + s.length/2, s.offset + s.length - 1} {
			flipped := bytes.Clone(data)
			flipped[at] ^= 16
			if err := vfs.WriteFile(fs, "f.col", flipped); err != nil {
				t.Fatal(err)
			}
			if err := VerifyFile(fs, "f.col"); !apierr.IsCorruption(err) {
				t.Errorf("%v: Verify returns %v", s.tag, err)
			}
			var printed bytes.Buffer
			if err := Inspect(&printed, fs, "f.col"); !apierr.IsCorruption(err) || !strings.Contains(printed.String(), "CHECKSUM WRONG") {
				t.Errorf("%v: Inspect returns %v", s.tag, err)
			}
			r := openSegment(t, fs, "1.seg")
			side, err := r.OpenColumns(fs, "f.col")
			if sectionKinds[slices.IndexFunc(sectionKinds, func(k sectionKind) bool { return k.tag == s.tag })].small {
				if !apierr.IsCorruption(err) {
					t.Errorf("%v at %d of section %d: OpenColumns returns %v", s.tag, at, i, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			r.OnDamage(func(d *apierr.Corruption) { told = append(told, d.File) })
			r.AttachColumns(side)
			if err := r.CheckSums(context.Background()); !apierr.IsCorruption(err) {
				t.Errorf("%v: CheckSums returns %v", s.tag, err)
			}
			if err := r.Inspect(func(int) error { return nil }); !apierr.IsCorruption(err) {
				t.Errorf("%v: an inspection returns %v", s.tag, err)
			}
			if len(told) < 2 || slices.Contains(told, "1.seg") {
				t.Errorf("%v: damage was reported for %q", s.tag, told)
			}
			met := mapped.Guard(func() error {
				for _, f := range side.ownColumns.fields {
					c := r.Column(f)
					for i := range c.Strings() {
						c.AddStringRows(roaring.New(), i, i+1)
						c.Original(i)
						c.String(i)
					}
					for i := range c.Numbers() {
						c.AddNumberRows(roaring.New(), i, i+1)
						c.Number(i)
					}
					for row := range Row(r.Rows()) {
						c.RowNumbers(nil, row)
						c.RowStrings(nil, row)
					}
					c.Null()
				}
				return nil
			})
			if !apierr.IsCorruption(met) {
				t.Errorf("%v at %d: reading the columns returns %v", s.tag, at, met)
			}
		}
	}
}

// FuzzOpenColumns opens damaged columns with valid checksums beside their segment and reads everything.
func FuzzOpenColumns(f *testing.F) {
	mem := vfs.NewMem()
	_, host, set := besideSegments(f, mem, 20)
	writeBeside(f, mem, host, "x.col", set)
	segment, err := vfs.ReadFile(mem, "1.seg")
	if err != nil {
		f.Fatal(err)
	}
	data, err := vfs.ReadFile(mem, "x.col")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add(segment)
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		fixChecksums(data)
		fs := vfs.NewMem()
		if err := errors.Join(vfs.WriteFile(fs, "1.seg", segment), vfs.WriteFile(fs, "x.col", data)); err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, fs, "1.seg")
		_ = VerifyFile(fs, "x.col")
		_ = Inspect(&bytes.Buffer{}, fs, "x.col")
		side, err := r.OpenColumns(fs, "x.col")
		if err != nil {
			return
		}
		sound := side.Verify() == nil
		r.AttachColumns(side)
		_ = r.CheckSums(context.Background())
		if !sound { // bitmaps are united only after Verify
			_ = mapped.Guard(func() error {
				for _, f := range side.ownColumns.fields {
					c := r.Column(f)
					for row := range Row(r.Rows() + 1) {
						c.RowNumbers(nil, row)
						c.RowStrings(nil, row)
					}
					for ord := range min(c.Strings(), 100) {
						c.StringCount(ord)
						c.String(ord)
						c.Original(ord)
					}
				}
				return nil
			})
			return
		}
		exercise(t, r)
		_, _ = Merge(context.Background(), fs, "out.seg", []Live{{Reader: r, Deleted: roaring.BitmapOf(2)}}, MergeOptions{})
	})
}
