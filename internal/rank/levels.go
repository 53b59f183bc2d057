package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/rank/positions"
)

// anyLevel stands for all levels of a node together, as before the typo rule. The other values are the levels that the typo rule
// charged.
const anyLevel = query.Levels

var (
	everyLevel = []int{anyLevel}
	eachLevel  = []int{0, 1, 2}
)

// levelsIn returns the levels at which documents of a bucket with one interpretation may match a node: levels where the node matches
// something, within the typos that the other nodes leave. The caller must not modify the slice.
func (s *findings) levelsIn(b *bucket, node int) []int {
	switch {
	case !b.fixed:
		return everyLevel
	case b.typos == 0:
		return eachLevel[:1]
	}
	left := b.typos
	for _, n := range b.interpretations[0].nodes {
		if n != node && s.onlyAt[n] > 0 {
			left -= s.onlyAt[n]
		}
	}
	if level := s.onlyAt[node]; level >= 0 {
		return eachLevel[level : level+1]
	}
	return eachLevel[:min(query.Levels, max(0, left)+1)]
}

// onlyLevel returns the level at which all documents of a node match it, or −1 if they match at several.
func onlyLevel(v *query.Node) int {
	only := -1
	for i := range v.Segments {
		for level, at := range v.Segments[i].At {
			switch {
			case only == level || at.IsEmpty():
			case only >= 0:
				return -1
			default:
				only = level
			}
		}
	}
	return max(0, only)
}

// matchingIn returns the documents of a segment that match a node at a level, or nil if there are none.
func (s *findings) matchingIn(node, level, seg int) *roaring.Bitmap {
	if level == anyLevel {
		return s.docs[node][seg]
	}
	return s.graph.Nodes[node].Segments[seg].At[level]
}

// matching returns the documents of a node at a level.
func (s *findings) matching(node, level int) rows {
	if level == anyLevel {
		return s.docs[node]
	}
	v := &s.graph.Nodes[node]
	r := make(rows, len(v.Segments))
	for i := range r {
		r[i] = v.Segments[i].At[level]
	}
	return r
}

// levelsOf returns the level of each node of a bucket with one interpretation. ok is false if it differs between documents.
func (s *findings) levelsOf(b *bucket) (l positions.Levels, ok bool) {
	if !b.fixed || b.typos == 0 {
		return 0, true
	}
nodes:
	for _, n := range b.interpretations[0].nodes {
		for level := range query.Levels {
			switch s.matching(n, level).commonCount(b.rows) {
			case 0:
				continue
			case b.n:
				l.Set(n, level)
				continue nodes
			}
			return 0, false
		}
	}
	return l, true
}

// byLevels groups documents of a segment by the levels at which they match the nodes of a bucket with one interpretation, and calls f
// for each group until f returns false.
func byLevels(s *findings, b *bucket, seg int, in *roaring.Bitmap, f func(in *roaring.Bitmap, like batch) bool) bool {
	like := batch{fixed: b.fixed}
	if !b.fixed || b.typos == 0 {
		return f(in, like)
	}
	nodes := b.interpretations[0].nodes
	var split func(k int, in *roaring.Bitmap) bool
	split = func(k int, in *roaring.Bitmap) bool {
		if k == len(nodes) {
			return f(in, like)
		}
		levels := s.levelsIn(b, nodes[k])
		left := in.GetCardinality()
		for i, level := range levels {
			part := in // each document matches at one of them
			if i < len(levels)-1 || left < in.GetCardinality() {
				part = and(in, s.matchingIn(nodes[k], level, seg))
			}
			if part == nil {
				continue
			}
			left -= part.GetCardinality()
			like.levels.Set(nodes[k], level)
			if !split(k+1, part) {
				return false
			}
			if left == 0 {
				break
			}
		}
		return true
	}
	return split(0, in)
}

// levelBatch is a batch whose documents match a node at a level.
func levelBatch(nodes, at []int) batch {
	var b batch
	for i, n := range nodes {
		if at[i] != anyLevel {
			b.fixed = true
			b.levels.Set(n, at[i])
		}
	}
	return b
}
