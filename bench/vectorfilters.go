package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
	"svc/simd"
)

// rowFilter is rows that searches may find.
type rowFilter struct {
	name    string
	allowed *roaring.Bitmap
}

// filters are filters that leave random rows, and some that go by where rows lie.
func (s *vectorSet) filters() []rowFilter {
	var all []rowFilter
	for _, share := range []float64{0.99, 0.9, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001} {
		r := rand.New(rand.NewPCG(2, 2))
		allowed := roaring.New()
		for row := range s.base.rows {
			if r.Float64() < share {
				allowed.Add(uint32(row))
			}
		}
		all = append(all, rowFilter{fmt.Sprintf("%g%%", 100*share), allowed})
	}
	order := s.fromCentre()
	for _, share := range []float64{0.5, 0.2, 0.1, 0.01} {
		n := int(share * float64(len(order)))
		all = append(all, rowFilter{fmt.Sprintf("%g%%, nearest to a centre", 100*share), roaring.BitmapOf(order[:n]...)},
			rowFilter{fmt.Sprintf("%g%%, farthest from it", 100*share), roaring.BitmapOf(order[len(order)-n:]...)})
	}
	return all
}

// fromCentre returns all rows, ordered by their similarity to the mean of three random ones.
func (s *vectorSet) fromCentre() []uint32 {
	r := rand.New(rand.NewPCG(2, 3))
	centre := make([]float32, s.base.columns)
	for range 3 {
		for i, x := range s.base.row(r.IntN(s.base.rows)) {
			centre[i] += x
		}
	}
	order, similar := make([]uint32, s.base.rows), make([]float32, s.base.rows)
	for row := range order {
		order[row], similar[row] = uint32(row), simd.Dot(centre, s.base.row(row))
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(similar[b], similar[a]) })
	return order
}

// restriction has searches in which only some rows may be found.
type restriction struct {
	filter     string
	candidates int
	recall     float64
	each, scan time.Duration // a search; an exact scan of the candidates

	// The same with signs of the filter, which an index gathers when a filter is asked for again.
	gathered    bool
	again       time.Duration
	recallAgain float64
}

// restricted searches among the rows of a filter, and scans the same rows.
func (f *vectorFigures) restricted(v *segment.Vectors, filter rowFilter) restriction {
	allowed := filter.allowed
	rows := allowed.ToArray()
	large := f.set.large()
	if set := *f.set; large { // the scans take long
		set.queries = &matrix{rows: min(100, set.queries.rows), columns: set.queries.columns, data: set.queries.data}
		f = &vectorFigures{set: &set}
	}
	truth := f.set.truth(rows)
	x := restriction{filter: filter.name, candidates: len(rows)}
	search := func(i int, dst []segment.Scored) []segment.Scored {
		return v.Search(dst, f.set.queries.row(i), neighbours, allowed)
	}
	signs := v.GatherSigns(allowed)
	again := func(i int, dst []segment.Scored) []segment.Scored {
		return v.SearchGathered(dst, f.set.queries.row(i), neighbours, allowed, signs)
	}
	x.recall, x.gathered = recallOf(truth, search), signs != nil
	if x.gathered {
		x.recallAgain = recallOf(truth, again)
	}
	var searches, repeated, scans point
	for round := range vectorRounds {
		searches.offer(f.timed(search))
		if x.gathered {
			repeated.offer(f.timed(again))
		}
		if large && round > 0 {
			continue
		}
		scans.offer(f.timed(func(i int, dst []segment.Scored) []segment.Scored {
			f.set.nearest(f.set.queries.row(i), rows)
			return dst
		}))
	}
	n := f.set.queries.rows
	x.each, x.again, x.scan = each(searches.seconds, n), each(repeated.seconds, n), each(scans.seconds, n)
	return x
}
