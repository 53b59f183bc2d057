package rank

import "svc/internal/query"

// Documents that have a word as it is written come before those that have it misspelt, and no more of them are counted than the settings
// say. So where a query is a word that so many documents have, nobody sees by which other words it might be meant: they are not looked for.

// writtenFirst reports whether the page and the total of a query may be told by its word as it is written.
func (s *search) writtenFirst(t *query.Terms) bool {
	r := s.r
	switch {
	case !r.HitsOnly || len(t.Terms) != 1 || t.Terms[0].IsPhrase() || len(t.NegativeWords)+len(t.NegativePhrases) > 0:
		return false
	case s.scored || r.Distinct != "" || r.Filter != nil || r.Universe != nil && !s.isLive(r.Universe):
		return false
	}
	rules := s.rules
	if len(rules) > 0 && rules[0] == rule(words{}) { // none is missing
		rules = rules[1:]
	}
	return len(rules) > 0 && rules[0] == rule(typo{})
}

// rankWritten ranks the documents that have the word as it is written; nil without an error when they are fewer than the total may be.
func (s *search) rankWritten(q *query.Index, t *query.Terms) (_ *Result, err error) {
	most := s.r.MaxTotal
	if s.graph, err = q.BuildWritten(t, s.fields, s.late, most); s.graph == nil || err != nil {
		return nil, err
	}
	s.prepare(q)
	return s.rank(most)
}
