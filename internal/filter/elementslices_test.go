package filter

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/resultcache"
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
		s := source{Live: segment.Live{Reader: written(t, b)}}
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

// TestConditionsOnElementsBySlices compares the rows of elements that pass two conditions, by cached slices and with rows that are found at
// once, with those that are found without a cache.
func TestConditionsOnElementsBySlices(t *testing.T) {
	defer func(n, moved int) { slicedFrom, movedTogether = n, moved }(slicedFrom, movedTogether)
	slicedFrom, movedTogether = 1, 1<<20
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 2))
	const path, value, kind = segment.FieldID(0), segment.FieldID(1), segment.FieldID(2)
	for round := range 6 {
		b := segment.NewBuilder(segment.BuilderOptions{})
		for i := range 400 {
			b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
			for range round%2 + r.IntN(4) {
				b.EnterElement(path, 1)
				for range 1 + r.IntN(1+round%3) { // if no element has two, its numbers are in planes, and there are no slices
					b.ElementNumber(value, numeric.OfInt(r.Int64N(60)))
				}
				b.ElementPresent(value)
				b.ElementNumber(kind, numeric.OfInt(r.Int64N(3)))
				b.ElementPresent(kind)
				b.LeaveElement()
			}
			b.EndDoc()
		}
		s := source{Live: segment.Live{Reader: written(t, b)}}
		kept := s
		kept.scope = resultcache.New(1 << 24).Scope()
		for range 40 {
			low, high := numeric.OfInt(r.Int64N(60)), numeric.OfInt(r.Int64N(60))
			m := elementsMatch{path, allOf{equalMatch{id: kind, floats: []float64{float64(r.IntN(3))}}, rangeMatch{id: value, numeric: true, low: &low, high: &high}}}
			var among *roaring.Bitmap
			if r.IntN(2) == 0 {
				among = roaring.New()
				for row := range uint32(400) {
					if r.IntN(4) > 0 {
						among.Add(row)
					}
				}
			}
			if got, want := m.rows(kept, among), m.rows(s, among); !got.Equals(want) {
				t.Fatalf("seed %d, round %d: %v to %v among %v: rows %v, want %v", seed, round, low, high, among, got, want)
			}
		}
		sliced := 0
		for k := range sliceCount {
			if _, ok := elementSlices.Get(kept.scope, []byte{byte(value), 0, byte(k)}); ok {
				sliced++
			}
		}
		if _, ok := rowsOfElements.Get(kept.scope, make([]byte, 4)); !ok || (sliced == 0) != (round%3 == 0) {
			t.Errorf("seed %d, round %d: %d slices are kept, rows of all elements at once: %v", seed, round, sliced, ok)
		}
	}
}
