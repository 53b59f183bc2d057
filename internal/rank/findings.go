package rank

import (
	"slices"

	"svc/internal/query"
)

// buildAll finds all that the query may mean.
func buildAll(s *search, t *query.Terms) (err error) {
	if s.graph, err = s.ix.Build(s.ctx, t, s.fields, s.late); err == nil && len(t.Terms) > 0 {
		s.prepare()
	}
	return err
}

// countAll has all documents of Counted ranked if those that may not be hits matter to the others. If no document matches an n-gram, each
// number of missing terms has one interpretation.
func countAll(s *search) {
	if s.r.Counted == nil || needsOthers(&s.request, 0, s.nested) == needNothing {
		return
	}
	s.chosen = make(rows, len(s.ix.Segments))
	for seg := range s.chosen {
		s.chosen[seg] = allowed(&s.job, seg)
	}
	all := *s.r
	all.Universe, all.Filter = s.r.Counted.Universe, s.r.Counted.Filter
	s.r = &all
	s.r.Plan.note("", countOthers)
}

// begin makes the documents that the graph finds wait: the cached ones and those of small segments, or all.
func begin(s *search) {
	s.memo = memoOf(&s.job, s.lazy.unknown())
	if s.memo == nil || len(s.out.hits) > 0 || !recall(s, s.memo) {
		beginAll(s)
	}
}

// prepare looks at the graph once.
func (s *search) prepare() {
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
	searchable := s.ix.Weights()
	s.weights = searchable
	if s.fields != nil {
		s.weights = slices.Clone(s.weights)
		for i := range s.weights {
			if !s.fields[i] {
				s.weights[i] = -1
			}
		}
	}
	s.pos.Index, s.pos.Graph, s.pos.Words, s.pos.Searched, s.pos.Restricted = s.ix, s.graph, searchable, s.weights, s.fields != nil
	s.breakTies()
	if s.r.Plan != nil {
		s.pos.Dense = func(measure string) { s.r.Plan.note("", accessPath(measure+" in all rows of a range")) }
	}
}
