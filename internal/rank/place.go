package rank

import (
	"slices"

	"svc/internal/query"
	"svc/internal/settings"
	"svc/segment"
)

// Up to so many rows of a segment there are for each row of a batch when positions are read in all of them: to decode those of one row
// after the other takes less time than to look for some.
const (
	placePer = 64
	pairPer  = 16
)

// denseRows is from how many rows of a batch on positions are read field by field, or in all rows between two. (A variable, so that
// tests can lower it.)
var denseRows = 256

const (
	// placeCosts is how many positions may cost differently, placeStarts how many places of a query have no others.
	placeCosts  = 2048
	placeStarts = placeCosts - 1025
)

// denseCosts returns room for costs of all rows from the first to the last one of a batch; ok is false where they are more than per for
// each of its rows.
func (s *search) denseCosts(b *batch, per int) (costs []uint8, ok bool) {
	n := int(b.rows[len(b.rows)-1]-b.rows[0]) + 1
	if len(b.rows) < denseRows || n > per*len(b.rows) {
		return nil, false
	}
	s.dense = slices.Grow(s.dense[:0], n)[:n]
	return s.dense, true
}

// placeDense lowers the costs of the rows of a batch by where words of node v stand in some fields; false where the rows lie too far
// apart.
func (s *search) placeDense(b *batch, v *query.Node, fields []segment.FieldPosting, costs []uint32) bool {
	if int(v.Start) >= placeStarts || v.Len > 255/farthestPosition {
		return false
	}
	dense, ok := s.denseCosts(b, placePer)
	if !ok {
		return false
	}
	for i := range dense {
		dense[i] = uint8(farthestPosition * v.Len)
	}
	nearest := fillPlaceCosts(&s.placeCosts, int(v.Start), v.Len)
	for _, f := range fields {
		f.LowerCosts(dense, b.rows[0], s.placeCosts[:], nearest)
	}
	for i, row := range b.rows {
		costs[i] = min(costs[i], uint32(dense[row-b.rows[0]]))
	}
	return true
}

// fillPlaceCosts computes the costs of all positions of a node of n terms with its place at start, and the first position that is not
// before its place: from there on costs do not fall.
func fillPlaceCosts(costs *[placeCosts]uint8, start, n int) (nearest int) {
	nearest = -1
	for from := 0; from < placeCosts; {
		to := bucketed(from) + 1 // all before it cost the same
		if exactPositions <= from && from < 24 {
			to = 24
		}
		if nearest < 0 && bucketed(from) >= start {
			nearest = from
		}
		of := costs[from:min(to, placeCosts)]
		c := uint8(placeCost(from, start, n))
		for i := range of {
			of[i] = c
		}
		from = to
	}
	return nearest
}

// pairDense computes the distance of two neighbouring nodes in each row, each of them one word; false where they are more, or the rows
// lie too far apart.
func (s *search) pairDense(b *batch, u, v int, costs []uint32) bool {
	if s.ix.Settings.ProximityPrecision == settings.ByAttribute {
		return false
	}
	left, ok := s.onlyWord(b, u)
	if !ok {
		return false
	}
	right, ok := s.onlyWord(b, v)
	if !ok {
		return false
	}
	dense, ok := s.denseCosts(b, pairPer)
	if !ok {
		return false
	}
	clear(dense) // rows of no batch are not looked at
	for _, row := range b.rows {
		dense[row-b.rows[0]] = farPair
	}
	others := s.searchableFields(right)
	for _, f := range s.searchableFields(left) {
		for len(others) > 0 && others[0].ID() < f.ID() {
			others = others[1:]
		}
		if len(others) > 0 && others[0].ID() == f.ID() {
			f.LowerDistances(others[0], dense, b.rows[0])
		}
	}
	for i, row := range b.rows {
		costs[i] = uint32(dense[row-b.rows[0]])
	}
	return true
}

// onlyWord returns the posting of a node that is one word, or one prefix, at the levels of a batch.
func (s *search) onlyWord(b *batch, node int) (p segment.Posting, ok bool) {
	mask, word := b.mask(node)
	if word || b.beside != nil {
		return p, false
	}
	n := 0
	for level := range query.Levels {
		if mask>>level&1 == 0 {
			continue
		}
		l := &s.graph.Nodes[node].Levels[level]
		if len(l.Phrases) > 0 {
			return p, false
		}
		if words := l.Postings[b.segment]; len(words) > 0 {
			n += len(words)
			p = words[0]
		}
	}
	return p, n == 1
}
