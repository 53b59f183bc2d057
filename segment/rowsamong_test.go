package segment

import (
	"context"
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
)

// TestRowsOfAValueAmongOthers asks for the rows of values that one row has, some, and so many that there is a bitmap of them.
func TestRowsOfAValueAmongOthers(t *testing.T) {
	fs, rng := vfs.NewMem(), testRand(t)
	const rows = 70_000 // more than one container
	b := NewBuilder(BuilderOptions{})
	for i := range rows {
		b.StartDoc(DocID(i), fmt.Append(nil, i), []byte("{}"))
		for _, every := range []int{2, 30, 90, 700, rows} {
			if i%every == 1 {
				b.String(1, fmt.Appendf(nil, "one of %d", every), fmt.Appendf(nil, "One of %d", every))
				b.Number(2, float64(every))
			}
		}
		b.EndDoc()
	}
	if _, err := b.Write(context.Background(), fs, "a.seg"); err != nil {
		t.Fatal(err)
	}
	r := openSegment(t, fs, "a.seg")
	strings, numbers := r.Column(1), r.Column(2)
	for _, of := range []int{1, 3, 100, 50_000} {
		among := roaring.New()
		for range rows / of {
			among.Add(uint32(rng.IntN(rows)))
		}
		for ord := range strings.Strings() {
			got, want := roaring.BitmapOf(rows), roaring.New()
			strings.AddStringRowsAmong(got, ord, among)
			strings.AddStringRows(want, ord, ord+1)
			want.And(among)
			if want.Add(rows); !got.Equals(want) {
				t.Errorf("1 of %d rows, %s: %d, want %d", of, strings.String(ord), got.GetCardinality(), want.GetCardinality())
			}
		}
		for ord := range numbers.Numbers() {
			got, want := roaring.New(), roaring.New()
			numbers.AddNumberRowsAmong(got, ord, among)
			numbers.AddNumberRows(want, ord, ord+1)
			if want.And(among); !got.Equals(want) {
				t.Errorf("1 of %d rows, %v: %d, want %d", of, numbers.Number(ord), got.GetCardinality(), want.GetCardinality())
			}
		}
	}
	for _, ord := range []int{-1, strings.Strings()} {
		none := roaring.New()
		if strings.AddStringRowsAmong(none, ord, roaring.BitmapOf(1)); !none.IsEmpty() {
			t.Errorf("ordinal %d has %v", ord, none)
		}
	}
}
