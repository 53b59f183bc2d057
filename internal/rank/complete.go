package rank

import (
	"slices"

	"svc/internal/query"
)

// rank ranks all documents that the graph finds; nil without an error when there are fewer than so many, or the page is untold.
func (s *search) rank(least int) (*Result, error) {
	r, placeholder := s.r, len(s.graph.Terms) == 0
	var result *Result
	m := memoOf(&s.job)
	if m != nil {
		result = recall(s, m)
	}
	if result == nil && s.out.err == nil {
		s.untold = false
		result = s.rankAll(m, least)
	}
	if s.untold = s.untold || result != nil && result.Total < least; s.untold {
		return nil, nil
	}
	if r.Values { // many lists of hits are kept to be merged
		s.out.hold(len(s.out.hits))
	}
	if s.out.err != nil {
		return nil, s.out.err
	}
	switch {
	case r.Vectors != nil:
		s.stage("semantic ranking")
	case placeholder:
		s.stage("placeholder ranking")
	default:
		s.stage("keyword ranking")
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	result.Highlights = s.graph.Highlights
	result.Degraded = s.isLate
	return result, nil
}

// rankAll ranks all documents that the query finds, and remembers the first of them; nil when there are fewer than so many, or the page is
// untold.
func (s *search) rankAll(m *memo, least int) *Result {
	root := find(&s.job, func(int) bool { return true }, true, hitsAlone(&s.request))
	for seg := range root.rows {
		root.n += countIn(&s.view, root, seg)
	}
	s.stage("evaluate query")
	if s.untold = root.n < least; s.untold {
		return nil
	}
	s.out.start(s, root.rows, root.n)
	s.push(set{bucket: root})
	s.out.fill()
	if s.untold {
		return nil
	}
	if m != nil && s.out.err == nil {
		remember(s, m, root)
	}
	result := collected(s)
	result.Total = min(result.Total, root.n) // a raw bucket has more
	return result
}

// hitsAlone reports whether of the documents that miss the most terms only those are asked for that it takes to fill the page.
func hitsAlone(s *request) bool {
	r := s.r
	return r.HitsOnly && r.Distinct == "" && r.Threshold == nil && len(s.rules) > 0 && s.rules[0].traits().missing
}

// prepare looks at the graph once.
func (s *search) prepare(q *query.Index) {
	s.ranks = s.graph.Ranks(s.r.Strategy)
	removable, phraseWords := 0, 0
	for i, t := range s.graph.Terms {
		if s.ranks[i] != query.Mandatory {
			removable++
		}
		if t.IsPhrase() {
			phraseWords += t.Words()
		}
	}
	s.wordsMax = uint64(1 + max(0, phraseWords-1) + removable)

	s.docs = make([]rows, len(s.graph.Nodes))
	s.matches = make([]bool, len(s.graph.Nodes))
	s.onlyAt = make([]int, len(s.graph.Nodes))
	s.byTerm = make([]int, len(s.graph.Terms)+1)
	for n := len(s.graph.Nodes) - 1; n >= 0; n-- {
		v := &s.graph.Nodes[n]
		s.byTerm[v.Term] = n
		s.docs[n] = make(rows, len(s.ix.Segments))
		s.onlyAt[n] = onlyLevel(v)
		for i := range s.docs[n] {
			if r := v.Segments[i].Any; !r.IsEmpty() {
				s.docs[n][i] = r
				s.matches[n] = true
			}
		}
		s.grams = s.grams || v.Len > 1 && s.matches[n]
	}
	s.byTerm[len(s.graph.Terms)] = len(s.graph.Nodes)
	s.nested = s.r.Strategy != query.Frequency && !s.grams
	searchable := q.Weights()
	s.weights = searchable
	if s.fields != nil {
		s.weights = slices.Clone(s.weights)
		for i := range s.weights {
			if !s.fields[i] {
				s.weights[i] = -1
			}
		}
	}
	s.pos.Index, s.pos.Graph, s.pos.Words, s.pos.Searched, s.pos.Restricted = q, s.graph, searchable, s.weights, s.fields != nil
	s.breakTies()
	if s.r.Plan != nil {
		s.pos.Dense = func(measure string) { s.r.Plan.note("", accessPath(measure+" in all rows of a range")) }
	}
}
