package segment

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/vfs"
)

// TestRowsOfAValueAmongOthers reads the rows of values with one row, with a list, and with a bitmap.
func TestRowsOfAValueAmongOthers(t *testing.T) {
	fs, rng := vfs.NewMem(), testRand(t)
	const rows = 70_000 // more than one container
	b := NewBuilder(BuilderOptions{})
	for i := range rows {
		b.StartDoc(DocID(i), fmt.Append(nil, i), []byte("{}"))
		for _, every := range []int{2, 30, 90, 700, rows} {
			if i%every == 1 {
				b.String(1, fmt.Appendf(nil, "one of %d", every), fmt.Appendf(nil, "One of %d", every))
				b.Number(2, numeric.Of(float64(every)))
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
	counts := make([]uint32, numbers.Numbers()-1)
	numbers.NumberCounts(counts, 1)
	for i, n := range counts {
		if int(n) != numbers.NumberCount(1+i) {
			t.Errorf("%d rows have %v, want %d", n, numbers.Number(1+i), numbers.NumberCount(1+i))
		}
	}
	counts = make([]uint32, strings.Strings())
	strings.StringCounts(counts, 0)
	for i, n := range counts {
		if int(n) != strings.StringCount(i) {
			t.Errorf("%d rows have %s, want %d", n, strings.String(i), strings.StringCount(i))
		}
	}
	few := []uint32{0, 1, 2, 701, 1401, 69_999, rows, rows + 5}
	ords, places := numbers.EachNumber(nil, nil, few)
	var wantOrds, wantPlaces []uint32
	for i, row := range few {
		wantOrds = numbers.RowNumbers(wantOrds, Row(row))
		for len(wantPlaces) < len(wantOrds) {
			wantPlaces = append(wantPlaces, uint32(i))
		}
	}
	if !slices.Equal(ords, wantOrds) || !slices.Equal(places, wantPlaces) || len(ords) < 8 {
		t.Errorf("numbers %d of rows %d, want %d of %d", ords, places, wantOrds, wantPlaces)
	}
	for i, x := range numbers.NumbersAt(nil, ords) {
		if x != numbers.Number(int(ords[i])) {
			t.Errorf("number %d is %v", ords[i], x)
		}
	}
	for _, ord := range []int{-1, strings.Strings()} {
		none := roaring.New()
		if strings.AddStringRowsAmong(none, ord, roaring.BitmapOf(1)); !none.IsEmpty() {
			t.Errorf("ordinal %d has %v", ord, none)
		}
	}
}

// TestNextValueAmongRows walks up and down the values of some rows, and compares with lookups of each value.
func TestNextValueAmongRows(t *testing.T) {
	for _, rows := range []int{200, 3000, 70_000} { // row numbers of one, two and four bytes
		fs, rng := vfs.NewMem(), testRand(t)
		b := NewBuilder(BuilderOptions{})
		for i := range rows {
			b.StartDoc(DocID(i), fmt.Append(nil, i), []byte("{}"))
			for _, every := range []int{2, 3, 30, 90, 700, rows} { // the first of them have bitmaps
				if i%every == 1 {
					b.String(1, fmt.Appendf(nil, "one of %d", every), fmt.Appendf(nil, "One of %d", every))
					b.Number(2, numeric.Of(float64(every)))
				}
			}
			if i%3 == 0 {
				few := rng.IntN(rows/8 + 1)
				b.String(1, fmt.Appendf(nil, "%d", few), fmt.Appendf(nil, "%d", few))
				b.Number(2, numeric.Of(float64(few)))
			}
			b.EndDoc()
		}
		if _, err := b.Write(context.Background(), fs, "a.seg"); err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, fs, "a.seg")
		strings, numbers := r.Column(1), r.Column(2)
		for _, of := range []int{1, 3, 100, rows / 4, rows + 1} {
			among := roaring.New()
			for range rows / of {
				among.Add(uint32(rng.IntN(rows)))
			}
			bits := among.ToDense()
			for _, c := range []struct {
				what       string
				size       int
				count      func(int, *roaring.Bitmap) int
				next, last func(int, []uint64) int
			}{
				{"numbers", numbers.Numbers(), numbers.CountNumberRows, numbers.NextMarkedNumber, numbers.LastMarkedNumber},
				{"strings", strings.Strings(), strings.CountStringRows, strings.NextMarkedString, strings.LastMarkedString},
			} {
				last := -1
				for ord := range c.size {
					if c.count(ord, among) == 0 {
						continue
					}
					for from := last + 1; from <= ord; from++ {
						if got := c.next(from, bits); got != ord {
							t.Fatalf("%s of %d rows, 1 of %d marked: from %d on the first is %d, want %d", c.what, rows, of, from, got, ord)
						}
					}
					for to := last; to < ord; to++ {
						if got := c.last(to, bits); got != last {
							t.Fatalf("%s of %d rows, 1 of %d marked: up to %d the last is %d, want %d", c.what, rows, of, to, got, last)
						}
					}
					last = ord
				}
				if next, got := c.next(last+1, bits), c.last(c.size-1, bits); next != c.size || got != last {
					t.Fatalf("%s of %d rows, 1 of %d marked: behind the last one, %d, is %d, and the last one is %d", c.what, rows, of, last, next, got)
				}
			}
		}
	}
}

// TestNextValueOfUnorderedBitmaps walks values whose bitmaps are out of order, as in a forged file: the walk never turns back.
func TestNextValueOfUnorderedBitmaps(t *testing.T) {
	rows, others := roaring.BitmapOf(1, 2, 3), roaring.BitmapOf(9)
	p, err := rows.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	q, err := others.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, ords := range [][]uint32{{3, 5}, {5, 6, 2}, {5, 6, 7, 1}, {6, 1, 2}, {7, 0, 7, 0}, {1 << 31, 2}} {
		v := inverse{column: append(slices.Clone(p), q...), ords: 8, width: 1, starts: make([]byte, 4*9)}
		for i, ord := range ords {
			list := []uint32{ord, 1, uint32(len(p)), uint32(len(q))} // of others
			if i == len(ords)-1 {
				list = []uint32{ord, 3, 0, uint32(len(p))}
			}
			for _, x := range list {
				v.heavy = binary.LittleEndian.AppendUint32(v.heavy, x)
			}
		}
		for _, among := range []*roaring.Bitmap{rows, others, roaring.BitmapOf(20)} {
			bits := among.ToDense()
			for ord := range v.ords {
				if next := v.nextMarked(ord, bits); next < ord {
					t.Errorf("bitmaps of %d: from %d on the first is %d", ords, ord, next)
				}
				if last := v.lastMarked(ord, bits); last > ord {
					t.Errorf("bitmaps of %d: up to %d the last is %d", ords, ord, last)
				}
			}
		}
	}
}
