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

// TestRowsOfElementsBySlices compares the rows of elements with a number in a range, found by slices, with those found element by element.
// It covers few and many values, one or several values per element, and slices that are built or cached.
func TestRowsOfElementsBySlices(t *testing.T) {
	defer func(n, marked, moved int) { slicedFrom, markedFrom, movedTogether = n, marked, moved }(slicedFrom, markedFrom, movedTogether)
	slicedFrom, markedFrom, movedTogether = 1, 1<<20, 1<<20
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	const path, value = segment.FieldID(0), segment.FieldID(1)
	for round := range 8 {
		values, most := []int64{3, 40, 5000, 1 << 40}[round%4], 2-round/4
		b := segment.NewBuilder(segment.BuilderOptions{})
		for i := range 6000 {
			b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
			for range r.IntN(5) {
				b.EnterElement(path, 1)
				for range r.IntN(most + 1) {
					b.ElementNumber(value, numeric.OfInt(r.Int64N(values)))
				}
				b.ElementPresent(value)
				b.LeaveElement()
			}
			b.EndDoc()
		}
		s := source{Live: segment.Live{Reader: written(t, b)}}
		kept := s
		kept.scope = resultcache.New(1 << 24).Scope()
		e, marked := s.Elements(), 0
		for range 60 {
			low, high := numeric.OfInt(r.Int64N(values)), numeric.OfInt(r.Int64N(values))
			m := elementsMatch{path, rangeMatch{id: value, numeric: true, after: r.IntN(2) == 0, before: r.IntN(2) == 0}}
			kid := m.kid.(rangeMatch)
			if r.IntN(4) > 0 {
				kid.low = &low
			}
			if r.IntN(4) > 0 {
				kid.high = &high
			}
			m.kid = kid
			if _, ok := markedRows(kept, e, kid, nil); ok {
				marked++
			}
			if got, want := m.rows(kept, nil), m.rows(s, nil); !got.Equals(want) {
				t.Fatalf("seed %d, round %d: %v to %v: rows %v, want %v", seed, round, low, high, got, want)
			}
		}
		whole, from := 0, 0
		for k := range sliceCount {
			if _, ok := slicesOfRows.Get(kept.scope, kept.in(e).sliceKey(nil, value, k)); ok {
				whole++
			}
			if _, ok := slicesFrom.Get(kept.scope, kept.in(e).sliceKey(nil, value, k)); ok {
				from++
			}
		}
		switch {
		case marked == 0:
			t.Errorf("seed %d, round %d: marks found no rows", seed, round)
		case (whole > 0) != (most == 2 && values > 3), (from > 0) != (most == 1 && values > 5000):
			t.Errorf("seed %d, round %d: %d slices are cached, from %d on", seed, round, whole, from)
		}
	}
}

// TestConditionsOnElementsByMarks compares the rows of elements that pass several conditions, found by one bit per element, with those
// found as sets. All elements are at one path, or at several.
func TestConditionsOnElementsByMarks(t *testing.T) {
	defer func(n, marked, moved int) { slicedFrom, markedFrom, movedTogether = n, marked, moved }(slicedFrom, markedFrom, movedTogether)
	slicedFrom, markedFrom, movedTogether = 1, 1<<20, 1<<20
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 2))
	const path, value, kind, other, name, lacking = segment.FieldID(0), segment.FieldID(1), segment.FieldID(2), segment.FieldID(3), segment.FieldID(4), segment.FieldID(5)
	for round := range 12 {
		b := segment.NewBuilder(segment.BuilderOptions{})
		for i := range 400 {
			b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
			for range round%2 + r.IntN(4) {
				scope := path
				if round%4 >= 2 && r.IntN(3) == 0 {
					scope = other
				}
				b.EnterElement(scope, 1)
				for range 1 + r.IntN(1+round%3) { // if no element has two numbers, they are in planes
					b.ElementNumber(value, numeric.OfInt(r.Int64N(60)))
				}
				b.ElementPresent(value)
				b.ElementNumber(kind, numeric.OfInt(r.Int64N(3)))
				b.ElementPresent(kind)
				text := []byte(strconv.Itoa(r.IntN(7)) + "x")
				b.ElementString(name, text, text)
				b.LeaveElement()
			}
			b.EndDoc()
		}
		s := source{Live: segment.Live{Reader: written(t, b)}}
		kept := s
		kept.scope = resultcache.New(1 << 24).Scope()
		var condition func(depth int) bound
		condition = func(depth int) bound {
			low, high := numeric.OfInt(r.Int64N(60)), numeric.OfInt(r.Int64N(60))
			switch n := r.IntN(5 + 3*depth); n {
			case 0:
				return equalMatch{id: kind, floats: []float64{float64(r.IntN(3))}}
			case 1:
				return equalMatch{id: value, floats: []float64{3, 7, float64(r.IntN(60))}, keys: [][]byte{[]byte("3x")}}
			case 2:
				return equalMatch{id: name, keys: [][]byte{[]byte(strconv.Itoa(r.IntN(9)) + "x")}}
			case 3:
				return rangeMatch{id: value, numeric: true, low: &low, high: &high}
			case 4:
				return rangeMatch{id: []segment.FieldID{name, lacking}[r.IntN(2)], from: []byte("2"), to: []byte("4z")}
			case 5, 6, 7:
				parts := []bound{condition(depth - 1), condition(depth - 1)}
				if n == 5 {
					return anyOf(parts)
				}
				return allOf(parts)
			default:
				return noneOf{condition(depth - 1)}
			}
		}
		marked := 0
		for range 60 {
			m := elementsMatch{path, condition(2)}
			var among *roaring.Bitmap
			if r.IntN(2) == 0 {
				among = roaring.New()
				for row := range uint32(400) {
					if r.IntN(4) > 0 {
						among.Add(row)
					}
				}
			}
			var in *roaring.Bitmap
			if round%4 >= 2 {
				in = s.Elements().Scope(path)
			}
			if _, ok := markedRows(kept, s.Elements(), m.kid, in); ok {
				marked++
			}
			if got, want := m.rows(kept, among), m.rows(s, among); !got.Equals(want) {
				t.Fatalf("seed %d, round %d: %+v among %v: rows %v, want %v", seed, round, m.kid, among, got, want)
			}
		}
		if _, ok := rowsOfElements.Get(kept.scope, make([]byte, 4)); !ok || marked == 0 {
			t.Errorf("seed %d, round %d: marks found %d, rows of all elements at once: %v", seed, round, marked, ok)
		}
	}
}

// TestConditionsThatReadTextsAreNotMarked checks that conditions which are slow for each candidate reduce the candidates first.
func TestConditionsThatReadTextsAreNotMarked(t *testing.T) {
	few := equalMatch{id: 1, floats: []float64{1}}
	for _, b := range []bound{
		containsMatch{id: 1, part: []byte("x")}, allOf{few, containsMatch{id: 1, part: []byte("x")}}, noneOf{presentMatch{1}}, deepMatch{bound: few},
	} {
		if marks(b) {
			t.Errorf("%T is marked", b)
		}
	}
}
