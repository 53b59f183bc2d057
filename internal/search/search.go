package search

import (
	"context"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/rank"
)

// defaultCutoff is how long a search may rank when searchCutoffMs is null.
const defaultCutoff = 1500 * time.Millisecond

// Search answers r on the view, which must be held until the response is
// written. Errors are *apierr.Error or the context's.
func Search(ctx context.Context, v *index.View, r *Request) (*Response, error) {
	resp := &Response{view: v, request: r, start: time.Now()}
	resp.paginate()
	sort, err := parseSort(r.Sort, v.Fields, "invalid_search_sort")
	if err != nil {
		return nil, err
	}
	distinct, err := distinctField(v, r)
	if err != nil {
		return nil, err
	}
	if r.Facets != nil {
		if _, err := facetFields(v, r.Facets); err != nil {
			return nil, err
		}
	}
	rows, err := universe(v, r.Filter, "invalid_search_filter", r.Contains, r.Foreign)
	if err != nil {
		return nil, err
	}
	if resp.hydrate, err = r.Foreign.hydration(v); err != nil {
		return nil, err
	}
	resp.stage("filter")
	resp.result, err = rank.Search(ctx, rankIndex(v), &rank.Request{
		Universe:   rows,
		Query:      r.Query,
		Strategy:   r.Strategy,
		Locales:    r.Locales,
		SearchOn:   r.SearchOn,
		Sort:       sort,
		Distinct:   distinct,
		Offset:     resp.offset,
		Limit:      resp.limit,
		Exhaustive: resp.paged,
		MaxTotal:   v.Settings.Pagination.MaxTotalHits,
		Threshold:  r.RankingScoreThreshold,
		Scores:     r.ShowRankingScore || r.ShowRankingScoreDetails,
		Details:    r.ShowRankingScoreDetails,
		Deadline:   resp.start.Add(cutoff(v)),
	})
	if err != nil {
		return nil, err
	}
	resp.stage("ranking")
	if r.Facets != nil {
		if resp.facets, err = distribution(ctx, v, resp.result.Candidates, r.Facets); err != nil {
			return nil, err
		}
		resp.stage("facets")
	}
	if len(sort) > 0 {
		for i := range sort {
			if sort[i].Geo {
				resp.distanceFrom = &sort[i]
				break
			}
		}
	}
	return resp, nil
}

func rankIndex(v *index.View) *rank.Index {
	return &rank.Index{Segments: v.Segments, Settings: v.Settings, Fields: v.Fields, Analyzer: v.Analyzer, Cache: v.Cache}
}

func cutoff(v *index.View) time.Duration {
	if ms := v.Settings.SearchCutoffMs; ms != nil {
		return time.Duration(*ms) * time.Millisecond
	}
	return defaultCutoff
}

// distinctField is the field of the request's distinct parameter, which must
// be filterable, or else that of the settings.
func distinctField(v *index.View, r *Request) (string, error) {
	if r.Distinct == nil {
		return v.Settings.DistinctAttribute, nil
	}
	if info := v.Fields.InfoOf(*r.Distinct); *r.Distinct == "" || !info.Filters() {
		return "", apierr.New("invalid_search_distinct", "Attribute %q cannot be used as `distinct`. Add it to the index's filterable attributes first.", *r.Distinct)
	}
	return *r.Distinct, nil
}
