package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Where many documents begin with the phrase that is the query, the first of them fill the page. No others come before them but those of
// which a field is the phrase.

// phraseAlone returns what rows of a segment are asked for that may match exactly, where a phrase is all of the query that counts in a
// bucket with one path.
func (s *search) phraseAlone(b *bucket, seg int) (p placing, ok bool) {
	levels, ok := s.levelsOf(b)
	if !ok {
		return p, false
	}
	nodes, ok := s.exactNodes(b, levels)
	if !ok || len(nodes) != 1 || len(b.paths[0].nodes) != 1 {
		return p, false
	}
	v := &s.graph.Nodes[nodes[0]]
	if !v.Phrase || v.Start >= exactPositions || v.Levels[0].Phrases[0].StartsWithHole() {
		return p, false
	}
	return s.placingOf(nodes, seg, true)
}

// addBegun adds documents of a segment, which have a phrase, in ascending order. It adds all of them, unless so many have the least cost
// and begin with the phrase that they fill the page: then it leaves out those behind them that are no exact match.
func (v *sieve) addBegun(seg int, in *roaring.Bitmap, p placing) bool {
	s := v.s
	numbers := &s.list.numbers
	like := batch{fixed: v.b.fixed, segment: seg}
	missing, left, judged, begun := s.out.missing(), int(in.GetCardinality()), 0, 0
	few := false // that begin with the phrase
	judge := func(rows []uint32) {
		mark := numbers.used
		defer func() { numbers.used = min(mark, numbers.used) }()
		like.rows = rows
		costs := numbers.take(len(rows))
		v.eval(&like, costs)
		v.byCost[seg].add(rows, costs, tooMuch)
		judged += len(rows)
		if few {
			return
		}
		first := like
		first.rows = numbers.take(len(rows))[:0]
		for i, c := range costs {
			if int(c) == v.least {
				first.rows = append(first.rows, rows[i])
			}
		}
		if len(first.rows) > 0 {
			exact := costs[:len(first.rows)]
			for i := range exact {
				exact[i] = noExactMatch
			}
			s.placeWords(&first, p, exact)
			for _, c := range exact {
				if c < noExactMatch {
					begun++
				}
			}
		}
		few = begun*left < missing*judged
	}
	it := in.ManyIterator()
	for next := min(askRows, stopRows); ; next = min(2*next, stopRows) {
		s.inSet = slices.Grow(s.inSet[:0], next)
		rows := s.inSet[:it.NextMany(s.inSet[:next])]
		switch {
		case len(rows) == 0:
			return true
		case s.late():
			return false
		}
		judge(rows)
		if begun >= missing {
			rest := in.Clone()
			rest.RemoveRange(0, uint64(rows[len(rows)-1])+1)
			if whole := s.fieldsOf(seg, rest, p.words, p.slots); len(whole) > 0 {
				judge(whole)
			}
			return true
		}
	}
}
