package filter

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"svc/internal/numeric"
	"svc/internal/resultcache"
	"svc/internal/vfs"
	"svc/segment"
)

// TestRowsOfElementsBySlices compares the rows of elements with a number in a range, as slices have them, with those of the elements one by
// one: of few values that many elements have and of many, with slices that are made and kept.
func TestRowsOfElementsBySlices(t *testing.T) {
	defer func(n int) { slicedFrom = n }(slicedFrom)
	slicedFrom = 1
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	const path, value = segment.FieldID(0), segment.FieldID(1)
	for round := range 6 {
		values := []int{3, 40, 5000}[round%3]
		b := segment.NewBuilder(segment.BuilderOptions{})
		for i := range 400 {
			b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
			for range r.IntN(4) {
				b.EnterElement(path, 1)
				for range r.IntN(3) {
					b.ElementNumber(value, numeric.OfInt(r.Int64N(int64(values))))
				}
				b.ElementPresent(value)
				b.LeaveElement()
			}
			b.EndDoc()
		}
		fs := vfs.NewMem()
		if _, err := b.Write(context.Background(), fs, "s.seg"); err != nil {
			t.Fatal(err)
		}
		file, err := segment.Open(fs, "s.seg")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		s := source{Live: segment.Live{Reader: file}}
		kept := s
		kept.scope = resultcache.New(1 << 24).Scope()
		e, sliced := s.Elements(), 0
		for range 60 {
			low, high := numeric.OfInt(r.Int64N(int64(values))), numeric.OfInt(r.Int64N(int64(values)))
			m := elementsMatch{path, rangeMatch{id: value, numeric: true, low: &low, high: &high, after: r.IntN(2) == 0, before: r.IntN(2) == 0}}
			if m.kid.(rangeMatch).elementRows(kept, e) != nil {
				sliced++
			}
			if got, want := m.rows(kept, nil), m.rows(s, nil); !got.Equals(want) {
				t.Fatalf("seed %d, round %d: %v to %v: rows %v, want %v", seed, round, low, high, got, want)
			}
		}
		if sliced == 0 && values > 3 {
			t.Errorf("seed %d, round %d: no range was put together of slices", seed, round)
		}
	}
}
