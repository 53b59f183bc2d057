package rank

import (
	"svc/internal/query"
	"svc/internal/settings"
)

// farPair is the cost of two words that are not near.
const farPair = 3

// extraTerms is what an n-gram costs in proximity, for not being one word.
func extraTerms(v *query.Node) int { return v.Len - 1 }

// proximityCosts charges each two neighbouring nodes by their smallest distance.
func (s *search) proximityCosts(b *batch, nodes []int, costs []uint32) {
	base := 0
	for _, n := range nodes {
		base += extraTerms(&s.graph.Nodes[n])
	}
	for i := range costs {
		costs[i] = uint32(base)
	}
	mark := s.list.numbers.used
	pair := s.list.numbers.take(len(b.rows))
	for i := 1; i < len(nodes); i++ {
		if !s.touch(nodes[i-1], nodes[i]) {
			continue
		}
		s.pairCosts(b, nodes[i-1], nodes[i], pair)
		for k, c := range pair {
			costs[k] += c
		}
	}
	s.list.numbers.used = min(mark, s.list.numbers.used)
}

// pairCosts computes the distance of two neighbouring nodes in each row.
func (s *search) pairCosts(b *batch, u, v int, costs []uint32) {
	for i := range costs {
		costs[i] = farPair
	}
	keys := &s.scratch
	left := s.gather(keys[0][:0], b, u, asWords)
	right := s.gather(keys[1][:0], b, v, asWords)
	leftPhrases := s.gather(keys[2][:0], b, u, asLastSlot)
	rightPhrases := s.gather(keys[3][:0], b, v, asFirstSlot)
	keys[0], keys[1], keys[2], keys[3] = left, right, leftPhrases, rightPhrases
	if s.ix.Settings.ProximityPrecision == settings.ByAttribute {
		sameField(left, right, costs)
		sameField(leftPhrases, right, costs)
		sameField(left, rightPhrases, costs)
		sameField(leftPhrases, rightPhrases, costs)
		return
	}
	nearest(left, right, true, costs)
	nearest(leftPhrases, right, false, costs)
	nearest(left, rightPhrases, false, costs)
	nearest(leftPhrases, rightPhrases, false, costs)
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

// sameField sets the costs of the rows to 0 where occurrences of a and of b stand in one field, at different places.
func sameField(a, b []uint64, costs []uint32) {
	i := 0
	for _, y := range b {
		for i < len(a) && a[i]>>16 < y>>16 {
			i++
		}
		for j := i; j < len(a) && sameFieldAndRow(a[j], y); j++ {
			if a[j] != y {
				costs[indexOf(y)] = 0
				break
			}
		}
	}
}
