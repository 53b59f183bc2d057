package rank

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/settings"
	"svc/segment"
)

// Up to so many rows of a segment there are for each row of a batch when positions are read in all of them: to decode those of one row
// after the other takes less time than to look for some.
const (
	placePer = 64
	pairPer  = 16
	wordPer  = 8 // with the word in the field
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

// placeDense lowers the costs of the rows of a batch by where words of node v stand in some fields, and returns those fields in which the
// rows lie too far apart.
func (s *search) placeDense(b *batch, v *query.Node, fields []segment.FieldPosting, costs []uint32) (left []segment.FieldPosting) {
	if int(v.Start) >= placeStarts || v.Len > 255/farthestPosition {
		return fields
	}
	dense, ok := s.denseCosts(b, placePer)
	if !ok {
		return fields
	}
	s.r.Plan.note("", densePlaces)
	nearest := -1
	rows := s.ix.Segments[b.segment].Rows()
	for _, f := range fields {
		if f.Count()*len(dense)/rows > wordPer*len(b.rows) {
			left = append(left, f)
			continue
		}
		if nearest < 0 {
			nearest = fillPlaceCosts(&s.placeCosts, int(v.Start), v.Len)
			fill(dense, uint8(farthestPosition*v.Len))
		}
		f.LowerCosts(dense, b.rows[0], s.placeCosts[:], nearest)
	}
	if nearest >= 0 {
		for i, row := range b.rows {
			costs[i] = min(costs[i], uint32(dense[row-b.rows[0]]))
		}
	}
	return left
}

// fill sets all bytes to c. What is written already is copied, as the compiler has no quick loop for other bytes than 0.
func fill(bytes []uint8, c uint8) {
	bytes[0] = c
	for n := 1; n < len(bytes); n *= 2 {
		copy(bytes[n:], bytes[:n])
	}
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

// densePairs is up to how many words of a node are read in all rows between two, for each of those of its neighbour.
const densePairs = 4

// pairDense computes the distance of two neighbouring nodes in each row, each of them words without phrases; false where the rows lie too
// far apart, or one of them has no word that is read in all rows between two. What words are rarer is gathered.
func (s *search) pairDense(b *batch, u, v int, costs []uint32) bool {
	if s.ix.Settings.ProximityPrecision == settings.ByAttribute || b.beside != nil {
		return false
	}
	dense, ok := s.denseCosts(b, pairPer)
	if !ok {
		return false
	}
	left, leftAll := s.denseWords(b, u, len(dense))
	right, rightAll := s.denseWords(b, v, len(dense))
	if len(left) == 0 || len(right) == 0 {
		return false
	}
	s.r.Plan.note("", denseDistance)
	clear(dense) // rows of no batch are not looked at
	for _, row := range b.rows {
		dense[row-b.rows[0]] = farPair
	}
	for _, p := range left {
		for _, q := range right {
			others := fieldsIn(q, s.searchable)
			for _, f := range fieldsIn(p, s.searchable) {
				for len(others) > 0 && others[0].ID() < f.ID() {
					others = others[1:]
				}
				if len(others) > 0 && others[0].ID() == f.ID() {
					f.LowerDistances(others[0], dense, b.rows[0])
				}
			}
		}
	}
	for i, row := range b.rows {
		costs[i] = uint32(dense[row-b.rows[0]])
	}
	beside := *b
	l, r := &s.left, &s.right
	if !leftAll {
		if l.words = s.gatherBut(l.words[:0], b, u, left); len(l.words) > 0 {
			beside.beside = l.words
			r.words = s.gather(r.words[:0], &beside, v, asWords)
			nearest(l.words, r.words, true, costs)
		}
	}
	if !rightAll {
		if r.words = s.gatherBut(r.words[:0], b, v, right); len(r.words) > 0 {
			beside.beside = r.words
			l.words = s.gather(l.words[:0], &beside, u, asWords)
			nearest(l.words, r.words, true, costs)
		}
	}
	return true
}

// denseWords returns those words of a node, at the levels of a batch, that stand in so many of n rows that these are read one after the
// other, the most frequent ones; all: there are no others. None where the node has phrases there.
func (s *search) denseWords(b *batch, node, n int) (words []segment.Posting, all bool) {
	mask, word := b.mask(node)
	if word || s.hasPhrases(b, node) {
		return nil, false
	}
	all = true
	per := s.ix.Segments[b.segment].Rows()/n + 1
	for level := range query.Levels {
		if mask>>level&1 == 0 {
			continue
		}
		for _, p := range s.graph.Nodes[node].Levels[level].Postings[b.segment] {
			if p.Most()*sparseWord < len(b.rows)*per {
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

// sparseWord: a word that stands in fewer rows of a stretch than one for so many that are asked for is looked for in these.
const sparseWord = 8

// gatherBut appends the occurrences of the words of a node but some, sorted.
func (s *search) gatherBut(dst []uint64, b *batch, node int, but []segment.Posting) []uint64 {
	mask, _ := b.mask(node)
	begin, sources := len(dst), 0
	for level := range query.Levels {
		words := s.graph.Nodes[node].Levels[level].Postings[b.segment]
		if mask>>level&1 == 0 || len(words) == 0 {
			continue
		}
		if len(words) >= tablePostings {
			t := s.table(node, level, b.segment)
			words, dst = t.frequent, t.gather(dst, b)
			sources++
		}
		for _, p := range words {
			if !slices.ContainsFunc(but, p.Same) {
				dst = s.gatherPosting(dst, b, p)
				sources++
			}
		}
	}
	if sources > 1 {
		slices.Sort(dst[begin:])
	}
	return dst
}

// placeSets are the documents of a segment, which match some nodes at some levels, by what the positions of one of them cost. Together
// they cost no less.
type placeSets struct {
	segment int
	levels  levels
	rows    []*roaring.Bitmap // by cost, of each field, so that a document may stand in several; nil for none
}

// find finds those documents like the ones of a batch that have a cost. Documents that cost more, up to most, may be found, too. It returns
// false where to look for them in the whole segment takes longer than to place the documents of the batch.
func (p *placeSets) find(s *search, b *batch, nodes []int, cost, most int) bool {
	if cost < len(p.rows) && p.segment == b.segment && p.levels == b.levels {
		return true
	}
	*p = placeSets{segment: b.segment, levels: b.levels}
	least := beginningBytes*len(b.rows) + 1
	var v *query.Node
	var fields []segment.FieldPosting
	for _, node := range nodes {
		if !s.isFrequent(b, node) || s.hasPhrases(b, node) {
			continue
		}
		of := s.wordFields(b, node, asWords)
		if n := positionBytes(of); n < least {
			v, fields, least = &s.graph.Nodes[node], of, n
		}
	}
	if v != nil {
		most = min(most, 2*cost) // they are more and more
		p.rows = s.placedRows(b.segment, int(v.Start), v.Len, fields, most)
	}
	return len(p.rows) > 0
}

// positionBytes is how much is read to find the documents of words in some fields by what their positions cost.
func positionBytes(fields []segment.FieldPosting) (n int) {
	for _, f := range fields {
		n += f.PositionBytes()
	}
	return n
}

// placedRows returns the documents of a segment where words in some fields, of a node of n terms with its place at start, cost no more than
// most for their positions, by cost; nil where these would be too many. What costs less in another field stands there, too.
func (s *search) placedRows(seg, start, n int, fields []segment.FieldPosting, most int) []*roaring.Bitmap {
	if start >= placeStarts || n > 255/farthestPosition {
		return nil
	}
	nearest := fillPlaceCosts(&s.placeCosts, start, n)
	if int(s.placeCosts[max(nearest, segment.CostsApart)]) <= most {
		return nil
	}
	s.placeLists.reset()
	s.placeLists.at(most)
	lists := s.placeLists
	for _, f := range fields {
		f.AppendByCost(lists, s.placeCosts[:], nearest)
	}
	sets := make([]*roaring.Bitmap, len(lists))
	for cost, list := range lists {
		if len(list) > 0 {
			sets[cost] = bitmapOf(list, s.ix.Segments[seg].Rows())
		}
	}
	return sets
}

// hasPhrases reports whether phrases stand for a node in a batch, beside its words.
func (s *search) hasPhrases(b *batch, node int) bool {
	mask, _ := b.mask(node)
	for level := range query.Levels {
		if mask>>level&1 != 0 && len(s.graph.Nodes[node].Levels[level].Phrases) > 0 {
			return true
		}
	}
	return false
}
