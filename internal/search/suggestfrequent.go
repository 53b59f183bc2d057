package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"svc/internal/index"
	"svc/internal/settings"
	"svc/segment"
)

const (
	maxSuggestedBytes = 128  // of a facet value
	manyDocuments     = 1000 // from this number on, a word of a tenth of all documents is not useful
)

// SuggestionID returns the id of the suggestion of a query.
func SuggestionID(query string) string {
	sum := sha256.Sum256([]byte(query))
	return hex.EncodeToString(sum[:12])
}

// frequentTexts returns suggestions for an index without searches: the most frequent values of facets, at most half, and the most
// frequent words. Both are from displayed attributes and at least two documents.
func frequentTexts(ctx context.Context, v *index.View, rest func() error) ([]Suggestion, error) {
	wanted := v.Settings.Suggestions
	all, err := frequentFacets(ctx, v, wanted.Limit/2)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range all {
		known[strings.ToLower(s.Query)] = true
	}
	q := rankIndex(v)
	highest := v.Documents()
	if highest >= manyDocuments {
		highest /= 10
	}
	words, err := q.Frequent(q.Displayed(nil), v.LiveRows(), wanted.Limit-len(all), 2, highest, func(word string) bool {
		return !known[word] && !wanted.Blocks(word)
	}, rest)
	for _, w := range words {
		all = append(all, Suggestion{Query: w.Word, Source: FromWords, Count: w.Documents, Hits: w.Documents})
	}
	return all, err
}

// frequentFacets returns the most frequent texts among the values of displayed facets.
func frequentFacets(ctx context.Context, v *index.View, most int) ([]Suggestion, error) {
	var fields []facetField
	for i := range v.Fields.Len() {
		id := segment.FieldID(i)
		if f := v.Fields.Info(id); f.Filters() && f.Displayed && f.Name != v.PrimaryKey {
			fields = append(fields, facetField{id, f.Name, settings.Count})
		}
	}
	if len(fields) == 0 {
		return nil, nil
	}
	k, err := newRanking(ctx, v, &Request{}, nil)
	if err != nil {
		return nil, err
	}
	f, err := k.run(ctx, window{})
	if err != nil {
		return nil, err
	}
	facets, err := distribution(ctx, v, fields, f.Result, nil, false)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, of := range facets {
		for _, value := range of.values {
			text := string(value.shown)
			if value.isNumber || value.count < 2 || len(text) > maxSuggestedBytes || utf8.RuneCountInString(text) < 3 || v.Settings.Suggestions.Blocks(text) {
				continue
			}
			counts[text] = max(counts[text], value.count)
		}
	}
	all := make([]Suggestion, 0, len(counts))
	for text, n := range counts {
		all = append(all, Suggestion{Query: text, Source: FromFacets, Count: n, Hits: n})
	}
	slices.SortFunc(all, func(a, b Suggestion) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Query, b.Query)) })
	return all[:min(most, len(all))], nil
}
