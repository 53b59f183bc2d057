package search

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/query"
	"svc/internal/rank"
	"svc/internal/settings"
	"svc/internal/text"
)

// FacetSearch appends the response body to dst: the values of a facet that
// begin as the facet query does, a few typos allowed, among the candidates of
// a search.
func FacetSearch(ctx context.Context, dst []byte, v *index.View, r *FacetRequest) ([]byte, error) {
	start := time.Now()
	info := v.Fields.InfoOf(r.FacetName)
	if !v.Settings.FacetSearch {
		return nil, apierr.New("facet_search_disabled", "Facet search is disabled on index `%s`. Set `facetSearch` to true in its settings first.", v.UID)
	}
	if !info.FacetSearch {
		return nil, apierr.New("invalid_facet_search_facet_name", "Attribute %q cannot be searched as a facet. Add it to the index's filterable attributes with facet search on.", r.FacetName)
	}
	embedder, err := r.Search.embedder(v)
	if err != nil {
		return nil, err
	}
	rows, err := universe(ctx, v, r.Search.Filter, "invalid_search_filter", r.Search.Contains, r.Search.Foreign, r.Search.Shards)
	if err != nil {
		return nil, err
	}
	// A search by meaning finds all that the filter allows.
	if embedder == nil && (r.Search.Query != "" || v.Settings.DistinctAttribute != "") {
		limit := 20
		if r.Exhaustive {
			limit = 0
		}
		result, err := rank.Search(ctx, rankIndex(v), &rank.Request{
			Universe:   rows,
			Query:      r.Search.Query,
			Strategy:   r.Search.Strategy,
			Locales:    r.Search.Locales,
			SearchOn:   r.Search.SearchOn,
			Distinct:   v.Settings.DistinctAttribute,
			Limit:      limit,
			Exhaustive: r.Exhaustive,
			MaxTotal:   v.Settings.Pagination.MaxTotalHits,
			Threshold:  r.Search.RankingScoreThreshold,
			Deadline:   deadline(v, start),
		})
		if err != nil {
			return nil, err
		}
		rows = result.Candidates
	}

	var found []facetValue
	var match func(value string) bool
	if r.FacetQuery != nil {
		match = facetMatcher(v, r)
	}
	byCount := v.Settings.Faceting.Order(r.FacetName) == settings.Count
	limit := v.Settings.Faceting.MaxValuesPerFacet
	if id, ok := v.Fields.ID(r.FacetName); ok {
		for i, s := range v.Segments {
			c := s.Column(id)
			if c == nil || rows[i].IsEmpty() {
				continue
			}
			counts := countOrdinals(c, true, rows[i], s.Rows())
			in := &facetRows{Live: s, column: c}
			if s.Deleted != nil {
				in.among = s.LiveRows()
			}
			// In the order of values, the first of all segments are among the first of each.
			before := len(found)
			looked := 0
			for ord := counts.up(0); ord < c.Strings(); ord = counts.up(ord + 1) {
				if !byCount && match == nil && len(found)-before == limit {
					break
				}
				if looked++; looked%clockValues == 0 && ctx.Err() != nil {
					return nil, ctx.Err()
				}
				n := counts.of(ord)
				if n == 0 || (match != nil && !match(string(c.String(ord)))) {
					continue
				}
				found = append(found, facetValue{key: c.String(ord), shown: c.Original(ord), count: n, in: in, ord: ord, varies: c.Varies(ord)})
			}
		}
	}
	found = new(facetMemory).merge(found)
	spell := func(values []facetValue) error {
		for i := range values {
			if err := cmp.Or(ctx.Err(), values[i].spell(facetField{name: r.FacetName})); err != nil {
				return err
			}
		}
		return nil
	}
	if byCount {
		// Among equal counts the spelling decides: of all that may be shown it has to be known.
		slices.SortFunc(found, func(a, b facetValue) int { return cmp.Compare(b.count, a.count) })
		n := min(len(found), limit)
		for n > 0 && n < len(found) && found[n].count == found[n-1].count {
			n++
		}
		found = found[:n]
		if err := spell(found); err != nil {
			return nil, err
		}
		slices.SortFunc(found, func(a, b facetValue) int {
			return cmp.Or(cmp.Compare(b.count, a.count), bytes.Compare(b.shown, a.shown))
		})
	} else if match != nil { // what is looked for folded comes in the order of what is folded
		sortByFold(found, r.Search.Locales)
	}
	found = found[:min(len(found), limit)]
	if !byCount {
		if err := spell(found); err != nil {
			return nil, err
		}
	}

	dst = append(dst, `{"facetHits":[`...)
	for i, f := range found {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"value":`...)
		dst = jsontext.AppendQuoted(dst, f.shown)
		dst = append(dst, `,"count":`...)
		dst = strconv.AppendInt(dst, int64(f.count), 10)
		dst = append(dst, '}')
	}
	dst = append(dst, `],"facetQuery":`...)
	if r.FacetQuery == nil {
		dst = append(dst, "null"...)
	} else {
		dst = jsontext.AppendQuoted(dst, *r.FacetQuery)
	}
	dst = append(dst, `,"processingTimeMs":`...)
	dst = strconv.AppendInt(dst, time.Since(start).Milliseconds(), 10)
	return append(dst, '}'), nil
}

// sortByFold sorts values by how they are folded to be looked for; equal ones keep their order.
func sortByFold(values []facetValue, l text.Locales) {
	type folded struct {
		key string
		facetValue
	}
	all := make([]folded, len(values))
	for i, v := range values {
		all[i] = folded{text.FacetSearchKey(string(v.key), l), v}
	}
	slices.SortStableFunc(all, func(a, b folded) int { return cmp.Compare(a.key, b.key) })
	for i := range all {
		values[i] = all[i].facetValue
	}
}

// clockValues is after how many values of a facet it is looked whether the caller is gone.
const clockValues = 1 << 12

// facetMatcher returns the test of a normalised value against the facet query
// (the index's typo settings apply, lengths counted in bytes).
func facetMatcher(v *index.View, r *FacetRequest) func(string) bool {
	asked := text.FacetSearchKey(*r.FacetQuery, r.Search.Locales)
	fold := func(value string) string { return text.FacetSearchKey(value, r.Search.Locales) }
	t := v.Settings.TypoTolerance
	if slices.ContainsFunc(t.DisableOnWords, func(w string) bool { return text.Fold(w) == asked }) {
		return func(value string) bool { return fold(value) == asked }
	}
	budget := 0
	if t.Enabled && !slices.Contains(t.DisableOnAttributes, r.FacetName) {
		switch {
		case len(asked) >= int(t.TwoTypos):
			budget = 2
		case len(asked) >= int(t.OneTypo):
			budget = 1
		}
	}
	if budget == 0 {
		return func(value string) bool { return strings.HasPrefix(fold(value), asked) }
	}
	runes := []rune(asked)
	return func(value string) bool { return query.PrefixDistance(runes, fold(value), budget) <= budget }
}
