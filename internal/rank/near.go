package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/settings"
	"svc/segment"
)

// nearPairs is up to how many pairs of words are looked up for two neighbouring nodes.
const nearPairs = 256

// nearRows returns documents of a bucket with one path where each two neighbouring nodes may be as near as can be: all that are, and
// others. nil when what segments keep of neighbours says too little.
func (s *search) nearRows(b *bucket) rows {
	if s.ix.Settings.ProximityPrecision == settings.ByAttribute {
		return nil
	}
	near := make(rows, len(b.rows))
	for seg, in := range b.rows {
		nodes := b.paths[0].nodes
		for i := 1; i < len(nodes) && in != nil; i++ {
			if !s.touch(nodes[i-1], nodes[i]) {
				continue
			}
			pair, ok := s.nearIn(b, nodes[i-1], nodes[i], seg)
			if !ok {
				return nil
			}
			in = and(in, pair)
		}
		near[seg] = in
	}
	if 2*near.count() > b.n {
		return nil
	}
	return near
}

// nearIn returns rows of a segment where node v may stand directly behind u, at the levels of a bucket: all that have it so. ok is
// false when that is not known of the frequent words.
func (s *search) nearIn(b *bucket, u, v, seg int) (found *roaring.Bitmap, ok bool) {
	found = roaring.New()
	left, right := s.knownWords(b, u, seg, found), s.knownWords(b, v, seg, found)
	if len(left) == 0 || len(right) == 0 || len(left)*len(right) > nearPairs {
		return nil, false
	}
	reader := s.ix.Segments[seg]
	for _, p := range left {
		for k := range p.Fields() {
			f := p.Field(k).ID()
			if s.searchable[f] < 0 {
				continue
			}
			for _, q := range right {
				if r := reader.Neighbours(p, q, f); r != nil {
					found.Or(r)
				}
			}
		}
	}
	return found, true
}

// knownWords returns those words of a node, at the levels of a bucket, of which the segment keeps the neighbours. The rows of all
// else by which the node matches are added to others.
func (s *search) knownWords(b *bucket, node, seg int, others *roaring.Bitmap) (known []segment.Posting) {
	reader := s.ix.Segments[seg]
	v := &s.graph.Nodes[node]
	for _, at := range b.levelsIn() {
		for level := range v.Levels {
			if at != anyLevel && at != level {
				continue
			}
			for _, p := range v.Levels[level].Postings[seg] {
				if reader.KnowsNeighbours(p) {
					known = append(known, p)
				} else {
					p.AddRows(others)
				}
			}
			for _, p := range v.Levels[level].Phrases {
				others.Or(p.Segments[seg].Rows)
			}
		}
	}
	return known
}
