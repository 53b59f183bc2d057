package search

import (
	"context"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/turns"
)

// defaultCutoff is the time limit of ranking if searchCutoffMs is not set. (A variable, so that tests can raise it.)
var defaultCutoff = 1500 * time.Millisecond

// longestCutoff is the first cutoff that counts as none: searches are cancelled long before.
const longestCutoff = 24 * time.Hour

// Search answers r on the view, which must be held until the response is
// written. Errors are *apierr.Error or the context's.
func Search(ctx context.Context, v *index.View, r *Request) (*Response, error) {
	resp := &Response{view: v, request: r, start: time.Now()}
	resp.stages = newStages(ctx, r.ShowPerformanceDetails || r.RecordStages, r.Waited)
	resp.paginate()
	page, err := r.openPage(ctx, v)
	if err != nil {
		return nil, err
	}
	if page != nil {
		defer page.Close()
		resp.offset, resp.limit = page.Before(), pageLimit(r.Limit, v.Settings.Pagination.MaxTotalHits)
	}
	k, err := newRankingOf(ctx, v, r, page, resp.stages)
	if err != nil {
		return nil, err
	}
	if resp.hydrate, err = r.Foreign.hydration(v); err != nil {
		return nil, err
	}
	var all *rankedHits // whose candidates are counted
	switch {
	case page != nil:
		all, err = resp.turnTo(ctx, k)
	case r.GroupBy != nil:
		resp.result, resp.groups, err = k.group(ctx, r.GroupBy, resp.offset, resp.limit, resp.start)
	default:
		resp.result, err = k.run(ctx, resp.window(time.Time{}))
	}
	if err != nil {
		return nil, err
	}
	if all == nil {
		all = resp.result
	}
	resp.plan, resp.pins, resp.scoring = k.plan, k.pins, k.scoring
	if r.Facets != nil {
		if resp.facets, err = distribution(ctx, v, k.facets, all.Result, nil, false); err != nil {
			return nil, err
		}
		resp.stages.done("search > facet distribution")
	}
	if r.Aggregations != nil {
		found, err := aggregated(ctx, v, r.Aggregations, all.Result, deadline(v, resp.start), searchAggregations)
		if err != nil {
			return nil, err
		}
		found.Degraded = found.Degraded || resp.result.Degraded
		if resp.aggregations, err = appendAggregations(turns.Of(ctx), nil, found, searchAggregations); err != nil {
			return nil, err
		}
		resp.cut = found.Degraded
		resp.stages.done("search > aggregations")
	}
	if r.Suggest && resp.None() {
		if err := resp.suggest(ctx); err != nil {
			return nil, err
		}
	}
	resp.distanceFrom = firstPoint(k.sort)
	return resp, nil
}

// firstPoint returns the first key that is a point, nil when none is.
func firstPoint(keys []rank.SortKey) *rank.SortKey {
	for i := range keys {
		if keys[i].Geo {
			return &keys[i]
		}
	}
	return nil
}

func rankIndex(v *index.View) *rank.Index {
	return &rank.Index{Segments: v.Segments, Settings: v.Settings, Fields: v.Fields, Analyzer: v.Analyzer, Older: v.OlderAnalyzers(), Synonyms: v.Synonyms(), Cache: v.Cache}
}

// deadline returns when a ranking that starts now has to end by searchCutoffMs; zero: no limit.
func deadline(v *index.View, start time.Time) time.Time {
	switch ms := v.Settings.SearchCutoffMs; {
	case ms == nil:
		return start.Add(defaultCutoff)
	case *ms >= uint64(longestCutoff/time.Millisecond):
		return time.Time{}
	default:
		return start.Add(time.Duration(*ms) * time.Millisecond)
	}
}

// distinctField returns the field of the request's distinct parameter, which must be filterable, or else that of the settings.
func distinctField(v *index.View, r *Request) (string, error) {
	if r.Distinct == nil {
		return v.Settings.DistinctAttribute, nil
	}
	if info := v.Fields.InfoOf(*r.Distinct); *r.Distinct == "" || !info.Filters() {
		return "", apierr.New("invalid_search_distinct", "Attribute %q cannot be used as `distinct`. Add it to the index's filterable attributes first.", *r.Distinct)
	}
	return *r.Distinct, nil
}
