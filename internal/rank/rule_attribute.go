package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/segment"
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

// standing returns those of some documents of a segment where a node stands, at a level, in a field of a weight; nil for none.
func (s *search) standing(node, at int, weight int32, seg int, within *roaring.Bitmap) *roaring.Bitmap {
	v := &s.graph.Nodes[node]
	if at != anyLevel && len(v.Levels[at].Phrases) == 0 && len(v.Levels[at].Postings[seg]) == 1 {
		// Most often it is one word with one field of the weight.
		p := v.Levels[at].Postings[seg][0]
		only, n := segment.FieldPosting{}, 0
		for k := range p.Fields() {
			if f := p.Field(k); s.weights[f.ID()] == weight {
				only = f
				n++
			}
		}
		switch n {
		case 0:
			return nil
		case 1:
			return and(only.Rows(), within)
		}
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
	return and(found, within)
}
