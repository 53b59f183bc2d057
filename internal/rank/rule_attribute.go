package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
)

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
