package search

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/query"
)

// A search without hits may answer with other queries, on request. There are two sources: words of the index with few typos that
// replace words without documents, and queries of other users from the index of suggestions. Both respect the filter of the search
// and that of a tenant token: a word counts only in documents that the filters allow and in displayed attributes, and each suggestion
// has been searched and has hits. So users never learn words that they could not find.

const (
	maxSuggested = 3  // in an answer
	maxTried     = 12 // queries that are searched
	maxPopular   = 8  // of them, queries of other users
	maxNearWords = 3  // for a word of the query
	maxNearTold  = 12 // for a word of the query, from one instance of a network
	mostTypos    = 20 // that are counted

	maxSuggestible = 200 // bytes of a query
)

// searchSuggest is the error code of invalid uses of suggestions.
const searchSuggest apierr.Code = "invalid_search_suggest"

// SuggestionsSuffix is appended to the uid of an index for that of its suggestions.
const SuggestionsSuffix = "_suggestions"

// Suggestion is a document of an index of suggestions.
type Suggestion struct {
	ID     string `json:"id"`
	Query  string `json:"query"`
	Source string `json:"source"`
	Count  int    `json:"count"` // searches, or documents
	Hits   int    `json:"hits"`
}

// Sources of suggestions.
const (
	FromQueries = "queries"
	FromFacets  = "facets"
	FromWords   = "words"
)

// suggested is a query in place of one that finds nothing.
type suggested struct {
	query   string
	popular bool
	typos   int
	hits    int
}

// suggest finds queries in place of one that finds nothing.
func (r *Response) suggest(ctx context.Context) error {
	req := r.request
	if !req.suggestible() {
		return nil
	}
	until := deadline(r.view, r.start)
	m, err := findMisspelt(ctx, r.view, req, until, true)
	if err != nil {
		return err
	}
	tried := m.corrected()
	popular, err := r.popular(ctx)
	if err != nil {
		return err
	}
	for _, s := range likely(req.Query, popular, tried) {
		if len(r.suggestions) == maxSuggested || m.Late() {
			break
		}
		k, err := newRanking(ctx, r.view, req.suggesting(s.query), nil)
		if err != nil {
			return err
		}
		f, err := k.run(ctx, r.window(until)) // the total may depend on the page
		if err != nil {
			return err
		}
		if f.Total > 0 && !f.Degraded {
			s.hits = f.Total
			r.suggestions = append(r.suggestions, s)
		}
	}
	r.stages.done("search > suggestions")
	return nil
}

// suggestible reports whether there can be suggestions for the query.
func (r *Request) suggestible() bool {
	return strings.TrimSpace(r.Query) != "" && len(r.Query) <= maxSuggestible && r.kind() == keyword
}

// likely returns alternative queries, those with the fewest typos first. It omits queries of other users that are too different.
func likely(q string, popular, corrected []suggested) []suggested {
	asked := []rune(strings.Join(strings.Fields(strings.ToLower(q)), " "))
	known := map[string]bool{string(asked): true}
	var all []suggested
	for _, s := range slices.Concat(popular, corrected) {
		if known[s.query] {
			continue
		}
		known[s.query] = true
		if s.typos = query.Distance(asked, s.query, mostTypos); !s.popular || 2*s.typos <= len(asked) {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b suggested) int { return a.typos - b.typos })
	return all
}

// suggesting returns the request with another query, whose hits are only counted.
func (r *Request) suggesting(q string) *Request {
	other := *r
	other.Query, other.Facets, other.Aggregations, other.Cursor, other.GroupBy = q, nil, nil, nil, nil
	other.ShowPerformanceDetails, other.ExplainPlan = false, false
	return &other
}

// popular returns queries of other users that resemble that of the search.
func (r *Response) popular(ctx context.Context) ([]suggested, error) {
	if r.request.Popular == nil || r.view.Settings.Suggestions == nil {
		return nil, nil
	}
	v, err := r.request.Popular(r.view.UID + SuggestionsSuffix)
	if v == nil || err != nil {
		return nil, err
	}
	defer v.Release()
	k, err := newRanking(ctx, v, &Request{Query: r.request.Query, Strategy: query.All}, nil)
	if err != nil {
		return nil, err
	}
	f, err := k.run(ctx, window{limit: 2 * maxPopular, brief: true, hitsOnly: true, deadline: deadline(v, r.start)})
	if err != nil {
		return nil, err
	}
	var found []suggested
	var doc []byte
	for _, h := range f.Hits {
		if doc, err = v.Segments[h.Segment].AppendDocument(doc[:0], h.Row); err != nil {
			return nil, err
		}
		if s, own := ParseSuggestion(doc); own && s.Source == FromQueries && !r.view.Settings.Suggestions.Blocks(s.Query) {
			found = append(found, suggested{query: s.Query, popular: true})
		}
	}
	return found[:min(len(found), maxPopular)], nil
}

// ParseSuggestion reads a document of an index of suggestions. It returns false for one that svc did not create.
func ParseSuggestion(doc []byte) (s Suggestion, own bool) {
	if err := json.Unmarshal(doc, &s); err != nil {
		return s, false
	}
	known := s.Source == FromQueries || s.Source == FromFacets || s.Source == FromWords
	return s, known && s.ID == SuggestionID(s.Query)
}

// appendSuggestions appends the member with the suggestions.
func appendSuggestions(dst []byte, all []suggested) []byte {
	dst = append(dst, `,"suggestions":[`...)
	for i, s := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendQuoted(append(dst, `{"query":`...), s.query)
		dst = append(appendInt(dst, `,"estimatedTotalHits":`, s.hits), '}')
	}
	return append(dst, ']')
}

// checkSuggest refuses suggestions for pages by cursor and for grouped hits.
func (r *Request) checkSuggest() error {
	other := ""
	switch {
	case !r.Suggest:
		return nil
	case r.Cursor != nil:
		other = "cursor"
	case r.GroupBy != nil:
		other = "groupBy"
	default:
		return nil
	}
	return apierr.New(searchSuggest, "`suggest` and `%s` exclude each other: leave one of them out.", other)
}

// Suggestions returns the suggestions of an index: those of queries, with their numbers of searches, that have hits or, if there are
// none, frequent words and facet values. It calls rest now and then; an error of rest ends the work.
func Suggestions(ctx context.Context, v *index.View, queries []Suggestion, rest func() error) ([]Suggestion, error) {
	wanted := v.Settings.Suggestions
	all := make([]Suggestion, 0, min(wanted.Limit, 1024))
	known := map[string]bool{}
	for _, s := range queries {
		if err := rest(); err != nil {
			return nil, err
		}
		if len(all) == wanted.Limit {
			break
		}
		if s.Count < wanted.MinCount || known[s.Query] || wanted.Blocks(s.Query) {
			continue
		}
		known[s.Query] = true
		k, err := newRanking(ctx, v, &Request{Query: s.Query}, nil)
		if err != nil {
			return nil, err
		}
		f, err := k.run(ctx, window{limit: 1, brief: true, hitsOnly: true})
		if err != nil {
			return nil, err
		}
		if len(f.Hits) > 0 {
			s.Hits, s.Source = f.Total, FromQueries
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		var err error
		if all, err = frequentTexts(ctx, v, rest); err != nil {
			return nil, err
		}
	}
	for i := range all {
		all[i].ID = SuggestionID(all[i].Query)
	}
	slices.SortFunc(all, func(a, b Suggestion) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}
