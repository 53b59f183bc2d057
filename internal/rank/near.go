package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/settings"
	"svc/segment"
)

// nearPairs is up to how many pairs of words are looked up for two neighbouring nodes.
const nearPairs = 256

// nearItems bounds the proximity of documents of a bucket with one path from below: each item is two neighbouring nodes, which
// cost nothing in the documents where they may be as near as can be, all that are and others, and at least 1 in the rest. Pairs of
// which segments keep too little are left out.
func (s *search) nearItems(b *bucket) []*classes {
	if s.ix.Settings.ProximityPrecision == settings.ByAttribute {
		return nil
	}
	var items []*classes
	nodes := b.paths[0].nodes
pairs:
	for i := 1; i < len(nodes); i++ {
		if !s.touch(nodes[i-1], nodes[i]) {
			continue
		}
		near := make(rows, len(b.rows))
		for seg, in := range b.rows {
			if in == nil {
				continue
			}
			found, ok := s.nearIn(b, nodes[i-1], nodes[i], seg)
			if !ok {
				continue pairs
			}
			near[seg] = and(in, found)
		}
		items = append(items, &classes{costs: []int{0}, rows: []rows{near}, rest: 1, covered: near})
	}
	return items
}

// nearIn returns rows of a segment where node v may stand directly behind u, at the levels of a bucket: all that have it so. ok is
// false when that is not known of the frequent words.
func (s *search) nearIn(b *bucket, u, v, seg int) (found *roaring.Bitmap, ok bool) {
	left, others := s.knownWords(b, u, seg)
	right, more := s.knownWords(b, v, seg)
	if len(left) == 0 || len(right) == 0 || len(left)*len(right) > nearPairs {
		return nil, false
	}
	reader := s.ix.Segments[seg]
	found = reader.Union(append(others, more...), nil)
	for _, n := range []int{u, v} {
		for level := range s.graph.Nodes[n].Levels {
			for _, p := range s.graph.Nodes[n].Levels[level].Phrases {
				found.Or(p.Segments[seg].Rows)
			}
		}
	}
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

// knownWords returns those words of a node, at the levels of a bucket, of which the segment keeps the neighbours, and the others.
func (s *search) knownWords(b *bucket, node, seg int) (known, others []segment.Posting) {
	v := &s.graph.Nodes[node]
	for _, at := range b.levelsIn() {
		for level := range v.Levels {
			if at != anyLevel && at != level {
				continue
			}
			for _, p := range v.Levels[level].Postings[seg] {
				if s.ix.Segments[seg].KnowsNeighbours(p) {
					known = append(known, p)
				} else {
					others = append(others, p)
				}
			}
		}
	}
	return known, others
}
