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

// addBegun adds documents with a phrase that is all of the query: all of them, or, of a segment where so many have the least cost and begin
// with the phrase that they fill the page, those up to the last of these, and the exact matches behind it. It adds none and returns false
// where the query is no such phrase, or few begin with it.
func (v *sieve) addBegun(with rows) bool {
	for seg, in := range with {
		if in == nil {
			continue
		}
		p, ok := v.s.phraseAlone(v.b, seg)
		if !ok || !v.addBegunIn(seg, in, p) {
			for i := range v.byCost {
				v.byCost[i].reset()
			}
			return false
		}
	}
	return true
}

// addBegunIn is addBegun for the documents of a segment. It returns false where few of the first ones begin with the phrase, or time is over.
func (v *sieve) addBegunIn(seg int, in *roaring.Bitmap, p placing) bool {
	s := v.s
	missing, all, judged, begun := s.out.missing(), int(in.GetCardinality()), 0, 0
	asks := true
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
		begun += v.judgeBegun(seg, rows, p, asks)
		judged += len(rows)
		few := judged < all && begun*all < missing*judged
		switch {
		case few && judged == len(rows):
			return false
		case few:
			asks = false
		case asks && begun >= missing:
			rest := in.Clone()
			rest.RemoveRange(0, uint64(rows[len(rows)-1])+1)
			if whole := s.fieldsOf(seg, rest, p.words, p.slots); len(whole) > 0 {
				v.judgeBegun(seg, whole, p, false)
			}
			return true
		}
	}
}

// judgeBegun adds some rows of a segment, and returns, where asked, how many of them have the least cost and begin with a phrase.
func (v *sieve) judgeBegun(seg int, rows []uint32, p placing, asks bool) (begun int) {
	s := v.s
	numbers := &s.list.numbers
	mark := numbers.used
	defer func() { numbers.used = min(mark, numbers.used) }()
	like := batch{fixed: v.b.fixed, segment: seg, rows: rows}
	costs := numbers.take(len(rows))
	v.eval(&like, costs)
	v.byCost[seg].add(rows, costs, tooMuch)
	first := like
	first.rows = numbers.take(len(rows))[:0]
	for i, c := range costs {
		if int(c) == v.least {
			first.rows = append(first.rows, rows[i])
		}
	}
	if len(first.rows) == 0 || !asks {
		return 0
	}
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
	return begun
}
