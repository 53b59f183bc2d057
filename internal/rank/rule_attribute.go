package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
)

// attributeCosts charges each node the smallest weight of a searched field where it stands, for each term it covers.
func (s *search) attributeCosts(b *batch, nodes []int, costs []uint32) {
	clear(costs)
	mark := s.list.numbers.used
	best := s.list.numbers.take(len(b.rows))
	for _, n := range nodes {
		v := &s.graph.Nodes[n]
		worst := uint32(s.ix.Fields.MaxWeight())
		for i := range best {
			best[i] = worst
		}
		if worst > 0 { // else all fields are alike
			s.lowerWeights(best, b, n, asWords)
			s.lowerWeights(best, b, n, asStart)
		}
		for i, w := range best {
			costs[i] += w * uint32(v.Len)
		}
	}
	s.list.numbers.used = min(mark, s.list.numbers.used)
}

func (s *search) lowerWeights(best []uint32, b *batch, node int, as role) {
	s.scratch[0] = s.gather(s.scratch[0][:0], b, node, as)
	for _, o := range s.scratch[0] {
		if w := s.weights[fieldOf(o)]; w >= 0 {
			best[indexOf(o)] = min(best[indexOf(o)], uint32(w))
		}
	}
}

// weightsInUse returns the weights of the searched fields, ascending.
func (s *search) weightsInUse() []int {
	var weights []int
	for _, w := range s.weights {
		if w >= 0 {
			weights = append(weights, int(w))
		}
	}
	slices.Sort(weights)
	return slices.Compact(weights)
}

// standing returns the documents of a set where a node stands, at a level, in a field of a weight.
func (s *search) standing(node, at int, weight int32, of rows) rows {
	v := &s.graph.Nodes[node]
	out := make(rows, len(of))
	for seg, within := range of {
		if within == nil {
			continue
		}
		found := roaring.New()
		for level := range query.Levels {
			if at != anyLevel && at != level {
				continue
			}
			for _, p := range v.Levels[level].Postings[seg] {
				for k := range p.Fields() {
					if f := p.Field(k); s.weights[f.ID()] == weight {
						f.AddRows(found)
					}
				}
			}
			for _, p := range v.Levels[level].Phrases {
				ps := &p.Segments[seg]
				if ps.Rows.IsEmpty() {
					continue
				}
				for k := range ps.Words[0].Fields() {
					if f := ps.Words[0].Field(k); s.weights[f.ID()] == weight {
						found.Or(roaring.And(f.Rows(), ps.Rows))
					}
				}
			}
		}
		out[seg] = and(found, within)
	}
	return out
}
