package search

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/turns"
	"svc/segment"
)

// Codes of errors of aggregations.
const (
	searchAggregations   apierr.Code = "invalid_search_aggregations"
	federatedAggregation apierr.Code = "invalid_multi_search_aggregations"
	fetchAggregations    apierr.Code = "invalid_document_aggregations"
)

// aggregated computes aggregations of the candidates. The view is held until the result is written.
func aggregated(ctx context.Context, v *index.View, r *aggregate.Request, found *rank.Result, end time.Time, code apierr.Code) (*aggregate.Result, error) {
	counts := candidateCounts{ctx: ctx, view: v, found: found}
	source := &aggregate.Source{
		Segments: v.Segments,
		Fields:   v.Fields,
		Count:    found.Count,
		Rows:     func(seg int) *roaring.Bitmap { return found.In(seg) },
		Ordinals: func(seg int, field segment.FieldID, c *segment.Column, strings bool) aggregate.Ordinals {
			in := &facetRows{Live: v.Segments[seg], column: c, found: found, segment: seg}
			k := counts.count(field, in, strings, 0)
			return k.Ordinals
		},
		Deadline: end,
	}
	if states := statesOf(&counts, r); states != nil {
		source.Kept, source.Keep = states.get, states.put
		counted := source.Ordinals
		source.Ordinals = func(seg int, field segment.FieldID, c *segment.Column, strings bool) aggregate.Ordinals {
			if states.stale { // the index is being updated: deleted rows can be subtracted from counts, and other states are not recomputed
				return counted(seg, field, c, strings)
			}
			if rows := v.Segments[seg].Rows(); found.Count(seg) < rows {
				return aggregate.CountOrdinals(c, strings, found.In(seg), rows)
			}
			return aggregate.Ordinals{Strings: strings, Column: c, Inverse: true}
		}
	}
	result := r.New()
	err := result.Compute(turns.Of(ctx), source, code)
	return result, err
}

// appendAggregations appends the members of an answer that show a result.
func appendAggregations(t turns.Turn, dst []byte, r *aggregate.Result, code apierr.Code) ([]byte, error) {
	dst, err := r.AppendJSON(t, append(dst, `,"aggregations":`...), code)
	if err == nil && r.Degraded {
		dst = append(dst, `,"degraded":true`...)
	}
	return dst, err
}

// aggregationsCode returns the code of errors of the aggregations.
func (r *FederatedRequest) aggregationsCode() apierr.Code {
	if r.AsSearch != nil {
		return searchAggregations
	}
	return federatedAggregation
}

// checkAggregations refuses attributes that are not filterable in an index that is searched here.
func (r *FederatedRequest) checkAggregations() error {
	if r.Aggregations == nil {
		return nil
	}
	checked := map[string]bool{}
	for i := range r.Queries {
		v := r.Queries[i].View
		if checked[v.UID] {
			continue
		}
		checked[v.UID] = true
		if err := r.Aggregations.Check(v.Fields, r.aggregationsCode()); err != nil {
			if r.AsSearch != nil {
				return err
			}
			e := apierr.From(err)
			return apierr.New(e.Code, "Inside `.federation.aggregations`: in the index `%s`: %s", v.UID, e.Message)
		}
	}
	return nil
}

// aggregate computes the aggregations of the local results of the queries: a document found by several queries of an index counts
// once.
func (r *FederatedResponse) aggregate(ctx context.Context, sets map[string]*indexSet, spread Spread) error {
	uids := slices.Sorted(maps.Keys(sets))
	results := make([]*aggregate.Result, len(uids))
	code := r.request.aggregationsCode()
	err := spread(len(uids), func(ctx context.Context, i int) (err error) {
		set := sets[uids[i]]
		results[i], err = aggregated(ctx, set.view, r.request.Aggregations, &rank.Result{Candidates: set.candidates}, deadline(set.view, r.start), code)
		return err
	})
	if err != nil {
		return err
	}
	r.aggregations = r.request.Aggregations.New()
	for i, result := range results {
		if i == 0 {
			r.aggregations = result
		} else if err := r.aggregations.Merge(turns.Of(ctx), result, code); err != nil {
			return err
		}
	}
	r.aggregations.Degraded = r.Degraded()
	return nil
}

// addRemoteAggregations adds the aggregations of other instances.
func (r *FederatedResponse) addRemoteAggregations(ctx context.Context) error {
	if r.aggregations == nil {
		return nil
	}
	for _, a := range r.remotes {
		if a.aggregations == nil {
			continue
		}
		if err := r.aggregations.Merge(turns.Of(ctx), a.aggregations, r.request.aggregationsCode()); err != nil {
			return err
		}
	}
	return nil
}
