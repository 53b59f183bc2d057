package segment

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"svc/internal/numeric"
	"svc/internal/vfs"
)

// formatThree returns a file of format 3 whose columns 0 and 1 rounded the integers from 2⁵³ to 2⁵³ + 39. A program of that
// version wrote it.
func formatThree(t *testing.T) *Reader {
	t.Helper()
	data, err := os.ReadFile("testdata/format3.seg")
	if err != nil {
		t.Fatal(err)
	}
	r, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestColumnsThatWereRounded reads, prints and merges rounded columns unchanged, and then replaces them by exact ones.
func TestColumnsThatWereRounded(t *testing.T) {
	old := formatThree(t)
	if got := old.RoundedColumns(); !slices.Equal(got, []FieldID{0, 1}) {
		t.Fatalf("columns %v are rounded", got)
	}
	if err := old.Verify(); err != nil {
		t.Fatal(err)
	}
	mem := vfs.NewMem()
	b := NewBuilder(BuilderOptions{})
	b.StartDoc(1000, []byte("exact"), []byte(`{"id":9007199254740993}`))
	b.Number(0, numeric.OfUint(1<<53+1))
	b.EndDoc()
	b.StartDoc(1001, []byte("small"), []byte(`{"id":1}`))
	b.Number(1, numeric.Of(1))
	b.EndDoc()
	if _, err := b.Write(context.Background(), mem, "exact.seg"); err != nil {
		t.Fatal(err)
	}
	exact := openSegment(t, mem, "exact.seg")
	if got := exact.RoundedColumns(); len(got) > 0 {
		t.Errorf("new columns %v are rounded", got)
	}
	for _, tt := range []struct {
		name    string
		in      []Live
		columns bool
		want    []FieldID
	}{
		{"copied.seg", []Live{{Reader: old}}, false, []FieldID{0, 1}},
		{"merged.seg", []Live{{Reader: old}, {Reader: exact}}, false, []FieldID{0, 1}},
		{"replaced.seg", []Live{{Reader: old}, {Reader: exact}}, true, []FieldID{1}},
		{"new.seg", []Live{{Reader: exact}}, false, nil},
	} {
		o := MergeOptions{}
		if tt.columns {
			o.Columns = NewColumnSet(old.Rows()+2, []FieldID{0})
			for row := range Row(old.Rows()) {
				o.Columns.Number(row, 0, numeric.OfUint(1<<53+uint64(row)))
			}
		}
		if _, err := Merge(context.Background(), mem, tt.name, tt.in, o); err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, mem, tt.name)
		if got := r.RoundedColumns(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: columns %v are rounded, want %v", tt.name, got, tt.want)
		}
		if err := r.Verify(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		var printed strings.Builder
		if err := Inspect(&printed, mem, tt.name); err != nil || !strings.Contains(printed.String(), "format version 4") {
			t.Errorf("%s: %v", tt.name, err)
		}
		c := r.Column(0)
		if ord := c.SearchNumber(numeric.OfUint(1<<53 + 1)); len(tt.in) > 1 && (c.Number(ord) != numeric.OfUint(1<<53+1) || c.NumberCount(ord) != 1) {
			t.Errorf("%s: %v of %d rows", tt.name, c.Number(ord), c.NumberCount(ord))
		}
	}
}
