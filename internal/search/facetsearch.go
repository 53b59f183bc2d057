package search

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/rank"
	"svc/internal/text"
	"svc/internal/turns"
)

// FacetSearch appends the response body to dst: the values of a facet that begin like the facet query, allowing a few typos, among
// the candidates of a search.
func FacetSearch(ctx context.Context, dst []byte, v *index.View, r *FacetRequest) ([]byte, error) {
	start := time.Now()
	found, err := searchFacet(ctx, v, r, v.Settings.Faceting.MaxValuesPerFacet)
	if err != nil {
		return nil, err
	}
	return append(appendFacetHits(dst, r, found, start), '}'), nil
}

// appendFacetHits appends the body without its closing brace.
func appendFacetHits(dst []byte, r *FacetRequest, found []facetValue, start time.Time) []byte {
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
	return strconv.AppendInt(dst, time.Since(start).Milliseconds(), 10)
}

// checkFacetSearch refuses a facet search that the index does not allow. It returns the embedder of a search by meaning, or nil.
func checkFacetSearch(v *index.View, r *FacetRequest) (*index.ViewEmbedder, error) {
	if !v.Settings.FacetSearch {
		return nil, apierr.New("facet_search_disabled", "Facet search is disabled on index `%s`. Set `facetSearch` to true in its settings first.", v.UID)
	}
	if !v.Fields.InfoOf(r.FacetName).FacetSearch {
		return nil, apierr.New("invalid_facet_search_facet_name", "Attribute %q cannot be searched as a facet. Add it to the index's filterable attributes with facet search on.", r.FacetName)
	}
	return r.Search.embedder(v)
}

// CheckFacetSearch refuses a facet search that an index does not allow.
func CheckFacetSearch(ctx context.Context, v *index.View, r *FacetRequest) error {
	if _, err := checkFacetSearch(v, r); err != nil {
		return err
	}
	if r.Search.Filter == nil {
		return nil
	}
	_, err := bind(ctx, v, r.Search.Filter, r.Search.filtering())
	return err
}

// searchFacet returns the matching values in their order, at most limit.
func searchFacet(ctx context.Context, v *index.View, r *FacetRequest, limit int) ([]facetValue, error) {
	start := time.Now()
	embedder, err := checkFacetSearch(v, r)
	if err != nil {
		return nil, err
	}
	rows, err := universe(ctx, v, r.Search.Filter, r.Search.filtering())
	if err != nil {
		return nil, err
	}
	// A search by meaning finds all that the filter allows.
	if embedder == nil && (r.Search.Query != "" || v.Settings.DistinctAttribute != "") {
		hits, exhaustive := 20, r.Exhaustive || r.Search.RankingScoreThreshold != nil
		switch {
		case exhaustive && v.Settings.DistinctAttribute != "": // the ranking decides which documents are duplicates
			hits = v.Settings.Pagination.MaxTotalHits
		case exhaustive:
			hits = 0
		}
		result, err := rank.Search(ctx, rankIndex(v), &rank.Request{
			Universe:   rows,
			Query:      r.Search.Query,
			Strategy:   r.Search.Strategy,
			Locales:    r.Search.Locales,
			SearchOn:   r.Search.SearchOn,
			Distinct:   v.Settings.DistinctAttribute,
			Limit:      hits,
			Exhaustive: exhaustive,
			MaxTotal:   v.Settings.Pagination.MaxTotalHits,
			WholeIfFew: v.Settings.DistinctAttribute != "",
			Threshold:  r.Search.RankingScoreThreshold,
			Deadline:   deadline(v, start),
		})
		if err != nil {
			return nil, err
		}
		rows = result.Candidates
	}
	return findFacetValues(ctx, v, r, rows, limit)
}

// findFacetValues returns the matching values of the facet that candidates have, in their order, at most limit.
func findFacetValues(ctx context.Context, v *index.View, r *FacetRequest, candidates []*roaring.Bitmap, limit int) ([]facetValue, error) {
	id, ok := v.Fields.ID(r.FacetName)
	if !ok {
		return nil, nil
	}
	field := facetField{id, r.FacetName, v.Settings.Faceting.Order(r.FacetName)}
	q := newFacetQuery(v, r)
	t := turns.Of(ctx)
	numbers, err := numbersFound(ctx, v, id, candidates, q)
	if err != nil {
		return nil, err
	}
	var matches []*facetMatches
	var rows []*roaring.Bitmap
	var all lowestSpellings
	for i, s := range v.Segments {
		if err := t.Yield(); err != nil {
			return nil, err
		}
		c := s.Column(id)
		if c == nil || c.Strings() == 0 {
			continue
		}
		in := &facetRows{Live: s, column: c}
		live := s.Rows()
		if s.Deleted != nil {
			in.among = s.LiveRows()
			live = int(in.among.GetCardinality())
		}
		all.add(in, i, candidates[i], live)
		if candidates[i].IsEmpty() {
			continue
		}
		m, err := newFacetMatches(ctx, v, in, id, i, q)
		if err != nil {
			return nil, err
		}
		matches, rows = append(matches, m), append(rows, candidates[i])
	}
	m := &matchedValues{view: v, field: field, found: matches, candidates: rows, query: q, limit: limit, all: &all}
	if len(numbers) == 0 {
		return orderOf(field.order).matches(m, ctx)
	}
	return m.withNumbers(ctx, numbers, countBoth(v, id, func(seg int) *roaring.Bitmap { return candidates[seg] }))
}

// sortByFold sorts values by their folded forms. Equal ones keep their order.
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

// clockValues is the number of values between two checks whether the client is gone.
const clockValues = 1 << 12
