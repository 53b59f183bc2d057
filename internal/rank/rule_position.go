package rank

import (
	"cmp"
	"math/bits"
	"slices"

	"svc/internal/query"
	"svc/segment"
)

// farthestPosition is the cost of a word that is as far from its place in the query as can be.
const farthestPosition = 10

// exactPositions is the number of positions that are told apart one by one.
const exactPositions = 16

// bucketed is the resolution at which positions are compared: exact up to 15, then coarser and coarser.
func bucketed(position int) int {
	switch {
	case position < exactPositions:
		return position
	case position < 24:
		return 24
	case position <= 32:
		return 32
	default:
		return min(1<<bits.Len(uint(position-1)), 65535)
	}
}

// positionCost is the cost of a distance from the place in the query.
func positionCost(distance int) uint32 {
	switch {
	case distance <= 1:
		return uint32(distance)
	case distance <= 4:
		return 2
	case distance <= 7:
		return 3
	case distance <= 11:
		return 4
	case distance <= 16:
		return 5
	case distance <= 24:
		return 6
	case distance <= 64:
		return 7
	case distance <= 256:
		return 8
	case distance <= 1024:
		return 9
	default:
		return farthestPosition
	}
}

// placeCost is the cost of a node of n terms that stands at a position, with its place at start.
func placeCost(position, start, n int) uint32 {
	distance := bucketed(position) - start
	if distance < 0 {
		distance = -distance
	}
	cost := uint32(0)
	for i := range n {
		cost += positionCost(distance + i)
	}
	return cost
}

// placeNode computes the position costs of one node in many rows. Rows that have the
// word in its place already are not looked at again, so short fields come first.
func (s *search) placeNode(b *batch, node int, costs []uint32) {
	v := &s.graph.Nodes[node]
	for i := range costs {
		costs[i] = uint32(farthestPosition * v.Len)
	}
	lower := func(i int, o uint64) {
		if costs[i] > 0 {
			costs[i] = min(costs[i], placeCost(positionOf(o), int(v.Start), v.Len))
		}
	}
	for _, as := range []role{asStart, asWords} {
		if as == asWords && !s.isFrequent(b, node) || as == asStart {
			s.right.words = s.gather(s.right.words[:0], b, node, as)
			for _, o := range s.right.words {
				lower(indexOf(o), o)
			}
			continue
		}
		rows := append([]uint32(nil), b.rows...)
		index := make([]uint32, len(rows)) // of rows, in b.rows
		for i := range index {
			index[i] = uint32(i)
		}
		for _, f := range s.wordFields(b, node) {
			if v.Start == 0 {
				// The lowest position is the nearest one.
				s.firsts = f.FirstPositions(s.firsts[:0], rows)
				n := 0
				for k, at := range s.firsts {
					i := index[k]
					if at != segment.NoPosition {
						costs[i] = min(costs[i], placeCost(int(at), 0, v.Len))
					}
					if costs[i] > 0 {
						rows[n], index[n] = rows[k], i
						n++
					}
				}
				rows, index = rows[:n], index[:n]
				continue
			}
			s.right.words = f.AppendOccurrences(s.right.words[:0], rows, 0)
			for _, o := range s.right.words {
				lower(int(index[indexOf(o)]), o)
			}
			n := 0
			for k, i := range index {
				if costs[i] > 0 {
					rows[n], index[n] = rows[k], i
					n++
				}
			}
			rows, index = rows[:n], index[:n]
		}
	}
}

// isFrequent reports whether the words of a node in a batch are few, so that looking at them field by field pays.
func (s *search) isFrequent(b *batch, node int) bool {
	mask, word := b.mask(node)
	if word || len(b.rows) < frequentRows {
		return false
	}
	n := 0
	for level := range query.Levels {
		if mask>>level&1 != 0 {
			n += len(s.graph.Nodes[node].Levels[level].Postings[b.segment])
		}
	}
	return n < tablePostings
}

// wordFields returns the fields of the words of a node, by weight: what is searched first is mostly short.
func (s *search) wordFields(b *batch, node int) []segment.FieldPosting {
	var fields []segment.FieldPosting
	mask, _ := b.mask(node)
	for level := range query.Levels {
		if mask>>level&1 == 0 {
			continue
		}
		for _, p := range s.graph.Nodes[node].Levels[level].Postings[b.segment] {
			for k := range p.Fields() {
				if f := p.Field(k); s.searchable[f.ID()] >= 0 {
					fields = append(fields, f)
				}
			}
		}
	}
	slices.SortStableFunc(fields, func(a, b segment.FieldPosting) int {
		return cmp.Compare(s.searchable[a.ID()], s.searchable[b.ID()])
	})
	return fields
}
