package positions

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"svc/internal/query"
	"svc/segment"
)

const (
	// Farthest is the displacement of a word that is as far from its place in the query as can be.
	Farthest = 10

	// Exactly is how many positions are distinguished one by one.
	Exactly = 16

	// TooFar stands for a displacement above the limit of the caller.
	TooFar = math.MaxInt32
)

// Bucketed is the resolution at which positions are compared: exact up to 15, then coarser and coarser.
func Bucketed(position int) int {
	switch {
	case position < Exactly:
		return position
	case position < 24:
		return 24
	case position <= 32:
		return 32
	default:
		return min(1<<bits.Len(uint(position-1)), 65535)
	}
}

// step is the displacement of a distance from the place in the query.
func step(distance int) uint32 {
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
		return Farthest
	}
}

// Displacement is the distance of a node of n terms, found at a position, from its place at start.
func Displacement(position, start, n int) uint32 {
	distance := Bucketed(position) - start
	if distance < 0 {
		distance = -distance
	}
	sum := uint32(0)
	for i := range n {
		sum += step(distance + i)
	}
	return sum
}

// Displacements returns, per row, the sum of the displacements of nodes. Rows with a sum above most get TooFar: once the sum of a row
// is too large, its other nodes are not read.
func (r *Reader) Displacements(b *Batch, nodes []int, most int, sums []uint32) {
	if len(nodes) == 1 && most >= Farthest*r.Graph.Nodes[nodes[0]].Len {
		r.NodeDisplacements(b, nodes[0], sums)
		return
	}
	mark := r.Numbers.Mark()
	left := r.Numbers.Take(len(b.Rows))
	index := r.Numbers.Take(len(b.Rows)) // of those left, in b.Rows
	one := r.Numbers.Take(len(b.Rows))
	copy(left, b.Rows)
	for i := range index {
		index[i] = uint32(i)
	}
	clear(sums)
	part := *b
	for _, node := range nodes {
		if part.Rows = left; len(left) == 0 {
			break
		}
		r.NodeDisplacements(&part, node, one[:len(left)])
		n := 0
		for k, i := range index[:len(left)] {
			if sums[i] += one[k]; int(sums[i]) > most {
				sums[i] = TooFar
				continue
			}
			left[n], index[n] = left[k], i
			n++
		}
		left = left[:n]
	}
	r.Numbers.Release(mark)
}

// NodeDisplacements measures the displacement of one node in many rows, by its nearest word in any field, or the nearest first word
// of its phrases in a searched field. Rows with displacement 0 are not read again, so short fields come first.
func (r *Reader) NodeDisplacements(b *Batch, node int, out []uint32) {
	v := &r.Graph.Nodes[node]
	for i := range out {
		out[i] = uint32(Farthest * v.Len)
	}
	lower := func(i int, o uint64) {
		if out[i] > 0 {
			out[i] = min(out[i], Displacement(PositionOf(o), int(v.Start), v.Len))
		}
	}
	for _, as := range []Role{PhraseStarts, NodeWords} {
		if !r.fieldByField(b, node, as) {
			r.Right.Words = r.Gather(r.Right.Words[:0], b, node, as)
			for _, o := range r.Right.Words {
				lower(IndexOf(o), o)
			}
			continue
		}
		if as == NodeWords {
			r.Right.Words = r.gatherRare(r.Right.Words[:0], b, node)
			for _, o := range r.Right.Words {
				lower(IndexOf(o), o)
			}
		}
		if fields := r.denseDisplacements(b, v, r.nodeFields(b, node, as), out); len(fields) > 0 {
			r.fieldDisplacements(b, v, fields, out)
		}
	}
}

// fieldDisplacements lowers displacements by the positions of a node in some fields, one after the other.
func (r *Reader) fieldDisplacements(b *Batch, v *query.Node, fields []segment.FieldPosting, out []uint32) {
	mark := r.Numbers.Mark()
	rows := r.Numbers.Take(len(b.Rows))
	index := r.Numbers.Take(len(rows)) // of rows, in b.Rows
	n := 0
	for i, row := range b.Rows {
		if out[i] > 0 {
			rows[n], index[n] = row, uint32(i)
			n++
		}
	}
	for _, f := range fields {
		rows, index = rows[:n], index[:n]
		if v.Start == 0 { // the lowest position is the nearest one
			r.lowest = f.FirstPositions(r.lowest[:0], rows)
			for k, at := range r.lowest {
				if at != segment.NoPosition {
					out[index[k]] = min(out[index[k]], Displacement(int(at), 0, v.Len))
				}
			}
		} else {
			r.Right.Words = f.AppendOccurrences(r.Right.Words[:0], rows, 0)
			for _, o := range r.Right.Words {
				i := index[IndexOf(o)]
				out[i] = min(out[i], Displacement(PositionOf(o), int(v.Start), v.Len))
			}
		}
		n = 0
		for k, i := range index {
			if out[i] > 0 {
				rows[n], index[n] = rows[k], i
				n++
			}
		}
	}
	r.Numbers.Release(mark)
}

// fieldByField reports whether the words of a node in a batch, or those at the start of its phrases, are looked at field by field.
func (r *Reader) fieldByField(b *Batch, node int, as Role) bool {
	if _, word := b.Mask(node); word || len(b.Rows) < DenseRows {
		return false
	}
	v := &r.Graph.Nodes[node]
	if as == NodeWords || !v.Phrase {
		return as == NodeWords
	}
	_, only := v.PhraseIn(b.Segment)
	return only // else the phrase stands in some of the rows only
}

// gatherRare appends the occurrences of those words of a node that nodeFields leaves out.
func (r *Reader) gatherRare(dst []uint64, b *Batch, node int) []uint64 {
	mask, _ := b.Mask(node)
	for level := range query.Levels {
		if mask>>level&1 != 0 && len(r.Graph.Nodes[node].Levels[level].Postings[b.Segment]) >= tablePostings {
			dst = r.table(node, level, b.Segment).gather(dst, b)
		}
	}
	return dst
}

// nodeFields returns the fields of the words of a node, or of the first word of its only phrase there, by weight: fields that are
// searched first are mostly short. If there are many words, it returns the fields of the frequent ones.
func (r *Reader) nodeFields(b *Batch, node int, as Role) []segment.FieldPosting {
	var fields []segment.FieldPosting
	mask, _ := b.Mask(node)
	for level := range query.Levels {
		if mask>>level&1 == 0 {
			continue
		}
		l := &r.Graph.Nodes[node].Levels[level]
		words, weights := l.Postings[b.Segment], r.Words
		if len(words) >= tablePostings {
			words = r.table(node, level, b.Segment).frequent
		}
		if as == PhraseStarts {
			words, weights = nil, r.Searched
			if p, _ := r.Graph.Nodes[node].PhraseIn(b.Segment); level == 0 && p != nil {
				words = p.Segments[b.Segment].Words[:1]
			}
		}
		for _, p := range words {
			for k := range p.Fields() {
				if f := p.Field(k); weights[f.ID()] >= 0 {
					fields = append(fields, f)
				}
			}
		}
	}
	slices.SortStableFunc(fields, func(a, b segment.FieldPosting) int {
		return cmp.Compare(r.Words[a.ID()], r.Words[b.ID()])
	})
	return fields
}
