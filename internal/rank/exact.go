package rank

import (
	"svc/internal/rank/positions"
	"svc/internal/settings"
)

// Documents with fields that equal the query as written, or begin with it. Exactness and access paths of earlier rules use them.

// Costs of documents with a field that equals the query as written, with a field that begins with it, and of others.
const (
	exactMatch   = positions.Whole
	matchesStart = positions.Start
	noExactMatch = positions.Apart
)

// hasExactForm reports whether a node, a phrase or a word of the index, may still match as it is written.
func (s *findings) hasExactForm(b *batch, n int) bool {
	v := &s.graph.Nodes[n]
	if v.Phrase {
		return true
	}
	mask, word := b.at().Mask(n)
	return v.Exists && (word || mask&1 != 0)
}

// exactNodes returns the nodes that an exact match needs. ok is false if no exact match is possible.
func exactNodes(s *findings, b *bucket, l positions.Levels) (nodes []int, ok bool) {
	like := batch{fixed: b.fixed, levels: l}
	next := 0
	for _, n := range b.interpretations[0].nodes {
		v := &s.graph.Nodes[n]
		if v.Len > 1 || !s.hasExactForm(&like, n) {
			continue
		}
		if v.Term != next {
			return nil, false
		}
		next++
		nodes = append(nodes, n)
	}
	return nodes, len(nodes) > 0
}

// exactOf returns the words of some nodes for an exact match. atStart says that the first word is known to be in its place.
func exactOf(s *search, nodes []int, seg int, atStart bool) (positions.Exact, bool) {
	e, ok := s.pos.ExactOf(nodes, seg)
	e.AtStart = atStart
	if len(nodes) == 1 && s.fields == nil && s.ix.Settings.ProximityPrecision != settings.ByAttribute {
		v := &s.graph.Nodes[nodes[0]]
		_, only := v.PhraseIn(seg)
		e.Together = v.Phrase && only
	}
	return e, ok
}
