package rank

import "svc/internal/query"

// To find which words a misspelt one may mean, and their documents, is dear, and the pages of most queries need it for the first word
// alone: first come documents with all words, and the fewest typos. So a query is tried with its other words as they are written. It
// finds the same documents, those with the first word, since the others may be dropped. And a document with one of the others misspelt
// has at least one typo more than the first word takes. Where so few typos fill the page, it is right; else the search starts anew.

// written is how far a search came with words as they are written.
type written uint8

const (
	whole  written = iota // it was not tried
	tried                 // it is not known yet whether they tell the page
	filled                // they do
	failed                // they do not
)

// asWritten searches with the words behind the first one as they are written. It returns nil where that does not tell the page.
func (s *search) asWritten(terms *query.Terms) (*Result, error) {
	if !s.mayTry(terms) {
		return nil, nil
	}
	q := (*query.Index)(s.ix)
	var err error
	if s.graph, err = q.BuildWritten(s.ctx, terms, s.fields, s.late); err != nil {
		return nil, err
	}
	s.prepare(q)
	var result *Result
	if m := s.memo(); m != nil && s.promising() {
		s.written = tried
		if result = s.recall(m); result == nil && s.written != failed && s.out.full == nil {
			s.written = tried
			result = s.rankAll(m)
			if result == nil && !s.isLate && s.ctx.Err() == nil && s.out.full == nil {
				q.OfSegment(m.large[0]).Put(m.key, (*leaders)(nil), 0)
			}
		}
	}
	if s.out.full != nil {
		return nil, s.out.full
	}
	if result == nil {
		s.written, s.grams, s.stands, s.declined = whole, false, nil, nil
		clear(s.tables)
	}
	return result, nil
}

// promisingPart is which part of a page is to be found where the words of a query stand in documents by chance. They mostly stand together
// more often than that. (A variable, so that tests can lower it.)
var promisingPart = 0.25

// promising reports whether so many documents may have all words as they are written that they fill the page.
func (s *search) promising() bool {
	all := 0
	for i := range s.ix.Segments {
		all += s.ix.Segments[i].Rows()
	}
	expected := float64(all)
	for _, n := range s.byTerm[:len(s.graph.Terms)] {
		expected *= float64(s.docs[n].count()) / float64(max(1, all))
	}
	return expected >= promisingPart*float64(min(s.r.Limit, s.r.MaxTotal))
}

// mayTry reports whether words as they are written may tell the page of a query.
func (s *search) mayTry(terms *query.Terms) bool {
	r := s.r
	if !r.Plain || r.Strategy != query.Last || len(terms.Terms) < 2 || min(r.Limit, r.MaxTotal) <= 0 || !s.remembers() {
		return false
	}
	for i := range terms.Terms {
		if terms.Terms[i].IsPhrase() {
			return false
		}
	}
	if len(terms.NegativeWords)+len(terms.NegativePhrases) > 0 || len(s.rules) < 2 {
		return false
	}
	_, byWords := s.rules[0].(words)
	_, byTypos := s.rules[1].(typo)
	return byWords && byTypos
}

// suffices notes, and reports, whether the first bucket of the typo rule fills the page, and no document with a misspelt word behind the
// first one may cost as little.
func (s *search) suffices(b *bucket, cost int) bool {
	least := 0 // typos of the first word
	for least < query.Levels-1 && s.matching(0, least).isEmpty() {
		least++
	}
	s.written = filled
	if b.terms < len(s.graph.Terms) || cost > least || b.n < s.out.missing() {
		s.written = failed
	}
	return s.written == filled
}
