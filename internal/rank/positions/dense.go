package positions

import (
	"cmp"
	"slices"

	"svc/internal/query"
	"svc/segment"
)

// If a batch has at least one in so many rows of a segment range, the positions of all rows in the range are decoded: decoding row
// after row takes less time than searching for some.
const (
	displacementPer = 64
	distancePer     = 16
	wordPer         = 8 // with the word in the field
)

// DenseRows is the number of rows of a batch from which positions are read field by field, in all rows between the first and the
// last. (A variable, so that tests can lower it.)
var DenseRows = 256

const (
	// tableSize is the number of positions with precomputed displacements, and tableStarts the number of query positions that need no
	// others.
	tableSize   = 2048
	tableStarts = tableSize - 1025
)

// denseRange returns room for measures of all rows from the first to the last one of a batch. ok is false if the batch is small, or if
// this range has more than per rows for each row of the batch.
func (r *Reader) denseRange(b *Batch, per int) (measures []uint8, ok bool) {
	n := int(b.Rows[len(b.Rows)-1]-b.Rows[0]) + 1
	if len(b.Rows) < DenseRows || n > per*len(b.Rows) {
		return nil, false
	}
	r.dense = slices.Grow(r.dense[:0], n)[:n]
	return r.dense, true
}

// denseDisplacements lowers the displacements of the rows of a batch by the positions of the words of node v in some fields, and
// returns the fields in which the rows are too far apart.
func (r *Reader) denseDisplacements(b *Batch, v *query.Node, fields []segment.FieldPosting, out []uint32) (left []segment.FieldPosting) {
	if int(v.Start) >= tableStarts || v.Len > 255/Farthest {
		return fields
	}
	dense, ok := r.denseRange(b, displacementPer)
	if !ok {
		return fields
	}
	nearest := -1
	rows := r.Segments[b.Segment].Rows()
	for _, f := range fields {
		if f.Count()*len(dense)/rows > wordPer*len(b.Rows) {
			left = append(left, f)
			continue
		}
		if nearest < 0 {
			nearest = fillDisplacements(&r.costs, int(v.Start), v.Len)
			fill(dense, uint8(Farthest*v.Len))
		}
		f.LowerCosts(dense, b.Rows[0], r.costs[:], nearest)
	}
	if nearest >= 0 {
		r.note("displacements")
		for i, row := range b.Rows {
			out[i] = min(out[i], uint32(dense[row-b.Rows[0]]))
		}
	}
	return left
}

func (r *Reader) note(measure string) {
	if r.Dense != nil {
		r.Dense(measure)
	}
}

// fill sets all bytes to c. It copies what is already written, because the compiler has a fast loop only for zeros.
func fill(bytes []uint8, c uint8) {
	bytes[0] = c
	for n := 1; n < len(bytes); n *= 2 {
		copy(bytes[n:], bytes[:n])
	}
}

// fillDisplacements computes the displacements of all positions of a node of n terms with its place at start, and the first position that
// is not before its place: from there on they do not fall.
func fillDisplacements(costs *[tableSize]uint8, start, n int) (nearest int) {
	nearest = -1
	for from := 0; from < tableSize; {
		to := Bucketed(from) + 1 // all before it are as far
		if Exactly <= from && from < 24 {
			to = 24
		}
		if nearest < 0 && Bucketed(from) >= start {
			nearest = from
		}
		of := costs[from:min(to, tableSize)]
		c := uint8(Displacement(from, start, n))
		for i := range of {
			of[i] = c
		}
		from = to
	}
	return nearest
}

// densePairs is the maximum number of words of a node that are read in all rows in between, for each such word of its neighbour.
const densePairs = 4

// denseDistances measures the distance of two neighbouring nodes in each row. Both are words without phrases. It returns false if the
// rows are too far apart, or if one of the nodes has no word that is read in all rows in between. Rarer words are gathered.
func (r *Reader) denseDistances(b *Batch, u, v int, distances []uint32) bool {
	if r.byField() || b.beside != nil {
		return false
	}
	dense, ok := r.denseRange(b, distancePer)
	if !ok {
		return false
	}
	left, leftAll := r.denseWords(b, u, len(dense))
	right, rightAll := r.denseWords(b, v, len(dense))
	if len(left) == 0 || len(right) == 0 {
		return false
	}
	r.note("distances")
	clear(dense) // rows of no batch are not looked at
	for _, row := range b.Rows {
		dense[row-b.Rows[0]] = FarPair
	}
	for _, p := range left {
		for _, q := range right {
			others := fieldsIn(q, r.Words)
			for _, f := range fieldsIn(p, r.Words) {
				for len(others) > 0 && others[0].ID() < f.ID() {
					others = others[1:]
				}
				if len(others) > 0 && others[0].ID() == f.ID() {
					f.LowerDistances(others[0], dense, b.Rows[0])
				}
			}
		}
	}
	for i, row := range b.Rows {
		distances[i] = uint32(dense[row-b.Rows[0]])
	}
	beside := *b
	l, o := &r.Left, &r.Right
	if !leftAll {
		if l.Words = r.gatherBut(l.Words[:0], b, u, left); len(l.Words) > 0 {
			beside.beside = l.Words
			o.Words = r.Gather(o.Words[:0], &beside, v, NodeWords)
			nearest(l.Words, o.Words, true, distances)
		}
	}
	if !rightAll {
		if o.Words = r.gatherBut(o.Words[:0], b, v, right); len(o.Words) > 0 {
			beside.beside = o.Words
			l.Words = r.Gather(l.Words[:0], &beside, u, NodeWords)
			nearest(l.Words, o.Words, true, distances)
		}
	}
	return true
}

// denseWords returns the words of a node, at the levels of a batch, that so many of n rows have that their positions are decoded row
// after row, most frequent first. all says that the node has no other words. It returns none if the node has phrases there.
func (r *Reader) denseWords(b *Batch, node, n int) (words []segment.Posting, all bool) {
	mask, word := b.Mask(node)
	if word || r.hasPhrases(b, node) {
		return nil, false
	}
	all = true
	per := r.Segments[b.Segment].Rows()/n + 1
	for level := range query.Levels {
		if mask>>level&1 == 0 {
			continue
		}
		for _, p := range r.Graph.Nodes[node].Levels[level].Postings[b.Segment] {
			if p.Most()*sparseWord < len(b.Rows)*per {
				all = false
				continue
			}
			words = append(words, p)
		}
	}
	if len(words) > densePairs {
		slices.SortFunc(words, func(a, b segment.Posting) int { return cmp.Compare(b.Most(), a.Most()) })
		words, all = words[:densePairs], false
	}
	return words, all
}

// sparseWord: words with fewer than 1/sparseWord of the required rows are not decoded row after row but searched for in the rows of
// the batch.
const sparseWord = 8

// gatherBut appends the occurrences of the words of a node but some, sorted.
func (r *Reader) gatherBut(dst []uint64, b *Batch, node int, but []segment.Posting) []uint64 {
	mask, _ := b.Mask(node)
	begin, sources := len(dst), 0
	for level := range query.Levels {
		words := r.Graph.Nodes[node].Levels[level].Postings[b.Segment]
		if mask>>level&1 == 0 || len(words) == 0 {
			continue
		}
		if len(words) >= tablePostings {
			t := r.table(node, level, b.Segment)
			words, dst = t.frequent, t.gather(dst, b)
			sources++
		}
		for _, p := range words {
			if !slices.ContainsFunc(but, p.Same) {
				dst = r.gatherPosting(dst, b, p)
				sources++
			}
		}
	}
	if sources > 1 {
		slices.Sort(dst[begin:])
	}
	return dst
}

// hasPhrases reports whether a node has phrases in a batch, in addition to its words.
func (r *Reader) hasPhrases(b *Batch, node int) bool {
	mask, _ := b.Mask(node)
	for level := range query.Levels {
		if mask>>level&1 != 0 && len(r.Graph.Nodes[node].Levels[level].Phrases) > 0 {
			return true
		}
	}
	return false
}
