package rank

import (
	"svc/internal/query"
	"svc/internal/settings"
)

// farPair is the cost of two words that are not near.
const farPair = 3

// extraTerms is what an n-gram costs in proximity, for not being one word.
func extraTerms(v *query.Node) int { return v.Len - 1 }

// pairCosts computes the distance of two neighbouring nodes in each row.
func (s *search) pairCosts(b *batch, u, v int, costs []uint32) {
	s.left.words = s.gather(s.left.words[:0], b, u, asWords)
	s.left.last = s.gather(s.left.last[:0], b, u, asLastSlot)
	s.right.words = s.gather(s.right.words[:0], b, v, asWords)
	s.right.first = s.gather(s.right.first[:0], b, v, asFirstSlot)
	s.distances(costs)
}

// distances computes the distance of the nodes whose occurrences are left and right.
func (s *search) distances(costs []uint32) {
	for i := range costs {
		costs[i] = farPair
	}
	l, r := &s.left, &s.right
	if s.ix.Settings.ProximityPrecision == settings.ByAttribute {
		sameField(l.words, r.words, costs)
		sameField(l.last, r.words, costs)
		sameField(l.words, r.first, costs)
		sameField(l.last, r.first, costs)
		return
	}
	nearest(l.words, r.words, true, costs)
	nearest(l.last, r.words, false, costs)
	nearest(l.words, r.first, false, costs)
	nearest(l.last, r.first, false, costs)
}

// nearest lowers the costs of the rows where an occurrence of a stands up to 3 before
// one of b, or, when both ways count, up to 2 behind it, which costs one more.
func nearest(a, b []uint64, both bool, costs []uint32) {
	i := 0
	for _, y := range b {
		for i < len(a) && a[i] < y {
			i++
		}
		// a[i-1] < y ≤ a[i]
		if i > 0 && sameFieldAndRow(a[i-1], y) {
			if d := uint32(y - a[i-1] - 1); d < costs[indexOf(y)] {
				costs[indexOf(y)] = d
			}
		}
		if !both {
			continue
		}
		j := i
		if j < len(a) && a[j] == y {
			j++
		}
		if j < len(a) && sameFieldAndRow(a[j], y) {
			if d := uint32(a[j] - y); d < costs[indexOf(y)] {
				costs[indexOf(y)] = d
			}
		}
	}
}

// sameField sets the costs of the rows to 0 where a and b stand in one field, be it at one place: a word is in one
// field with itself.
func sameField(a, b []uint64, costs []uint32) {
	i := 0
	for _, y := range b {
		for i < len(a) && a[i]>>16 < y>>16 {
			i++
		}
		if i < len(a) && sameFieldAndRow(a[i], y) {
			costs[indexOf(y)] = 0
		}
	}
}
