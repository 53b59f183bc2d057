package search

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"svc/internal/apierr"
	"svc/internal/jsontext"
	"svc/internal/rank"
	"svc/internal/selection"
	"svc/internal/settings"
	"svc/internal/turns"
)

// indexFacets are the facets of one index.
type indexFacets struct {
	uid    string
	facets []facet
}

// facetFields validates the facets requested for each index and resolves their names.
func (r *FederatedRequest) facetFields() (map[string][]facetField, error) {
	fields := make(map[string][]facetField)
	type order struct {
		of    settings.FacetOrder
		index string
	}
	orders := make(map[string]order)
	for _, asked := range r.Facets {
		if asked.Names == nil {
			continue
		}
		v := asked.View
		found, err := facetFields(v, asked.Names, "invalid_multi_search_facets")
		if err != nil {
			e := apierr.From(err)
			return nil, apierr.New(e.Code, "Inside `.federation.facetsByIndex.%s`: %s", v.UID, e.Message)
		}
		fields[v.UID] = found
		if r.MergeFacets == nil {
			continue
		}
		var names []string
		for _, name := range asked.Names {
			if name == "*" || !isPattern(name) {
				names = append(names, name)
				continue
			}
			for _, f := range found {
				if settings.Covers(name, f.name) {
					names = append(names, f.name)
				}
			}
		}
		for _, name := range names {
			own := order{v.Settings.Faceting.Order(name), v.UID}
			if other, known := orders[name]; !known {
				orders[name] = own
			} else if other.of != own.of {
				return nil, apierr.New("invalid_multi_search_facet_order",
					"The facet %q of the indexes `%s` and `%s` cannot be merged: the values of one are sorted by %s, those of the other by %s. "+
						"Use the same `faceting.sortFacetValuesBy` in both, or remove `mergeFacets`.", name, other.index, own.index, other.of, own.of)
			}
		}
	}
	return fields, nil
}

// countFacets counts the facets of the queried indexes among the local results of their queries.
func (r *FederatedResponse) countFacets(fields map[string][]facetField, sets map[string]*indexSet, spread Spread) error {
	var counted []int // places in r.facets
	for _, asked := range r.request.Facets {
		if asked.Names == nil {
			continue
		}
		if sets[asked.View.UID] != nil {
			counted = append(counted, len(r.facets))
		}
		r.facets = append(r.facets, indexFacets{uid: asked.View.UID})
	}
	merged := r.request.Remotes != nil || r.request.Proxy
	return spread(len(counted), func(ctx context.Context, i int) error {
		of := &r.facets[counted[i]]
		set := sets[of.uid]
		var err error
		of.facets, err = distribution(ctx, set.view, fields[of.uid], &rank.Result{Candidates: set.candidates}, set.less, merged)
		return err
	})
}

// addRemoteFacets adds the counts of other instances. It omits indexes that no instance has searched.
func (r *FederatedResponse) addRemoteFacets(ctx context.Context, sets map[string]*indexSet) error {
	r.facets = slices.DeleteFunc(r.facets, func(of indexFacets) bool {
		return sets[of.uid] == nil && !slices.ContainsFunc(r.remotes, func(a *RemoteAnswer) bool { return a.facets[of.uid] != nil })
	})
	if len(r.remotes) == 0 {
		return nil
	}
	for _, a := range r.remotes {
		a.settle()
	}
	t := turns.Of(ctx)
	merging := Reading{Hold: t.Account().Hold, Yield: t.Yield}
	for i := range r.facets {
		of := &r.facets[i]
		asked := r.request.Facets[slices.IndexFunc(r.request.Facets, func(f IndexFacets) bool { return f.View.UID == of.uid })]
		faceting := &asked.View.Settings.Faceting
		all := []indexFacets{*of}
		for _, a := range r.remotes {
			for k := range a.facets[of.uid] {
				f := &a.facets[of.uid][k]
				f.order = faceting.Order(askedName(asked.Names, f.name))
			}
			all = append(all, indexFacets{of.uid, a.facets[of.uid]})
		}
		if of.facets = mergeFacets(&merging, all, &faceting.MaxValuesPerFacet); merging.ended != nil {
			return merging.ended
		}
	}
	return nil
}

// askedName is the name under which a facet was asked for.
func askedName(names []string, facet string) string {
	for _, name := range names {
		if name == "*" || selection.Covers(name, facet) {
			return name
		}
	}
	return facet
}

// mergeFacets merges the facets of several indexes into one list, adding up counts of the same value. limit, if not nil, limits the
// values of a facet. If merging ended early, the result is unusable.
func mergeFacets(merging *Reading, indexes []indexFacets, limit *int) []facet {
	var merged []facet
	var lists [][][]facetValue // by facet
	places := map[string]int{}
	for _, ix := range indexes {
		for _, f := range ix.facets {
			if merging.step() != nil {
				return nil
			}
			i, ok := places[f.name]
			if !ok {
				if merging.make(3*facetBytes+indexBytes) != nil { // includes the growth of both lists
					return nil
				}
				places[f.name] = len(merged)
				merged, lists = append(merged, f), append(lists, [][]facetValue{f.values})
				continue
			}
			lists[i] = append(lists[i], f.values)
			switch m := &merged[i]; {
			case m.stats == nil:
				m.stats = f.stats
			case f.stats != nil:
				m.stats.Merge(0, f.stats, 0)
			}
		}
	}
	for i := range merged {
		m := &merged[i]
		bound := math.MaxInt
		if limit != nil {
			bound = *limit
		}
		order, most := orderOf(m.order), math.MaxInt
		if order.byValue {
			most = bound
		}
		m.values = order.top(sumValues(merging, lists[i], most), bound)
	}
	slices.SortFunc(merged, func(a, b facet) int { return cmp.Compare(a.name, b.name) })
	return merged
}

// compareValue orders values by their texts. A value that another index spells differently is a different value.
func compareValue(a, b facetValue) int { return a.compareText(&b) }

func (v *facetValue) compareText(o *facetValue) int {
	if c := bytes.Compare(v.text(), o.text()); c != 0 {
		return c
	}
	return bytes.Compare(v.shown, o.shown)
}

// sumValues merges lists, without modifying them, into one in the order of compareValue, adding up the counts of equal values, up to
// most values. It does not sort lists that are in that order already.
func sumValues(merging *Reading, lists [][]facetValue, most int) []facetValue {
	n := 0
	left := make([][]facetValue, len(lists))
	for i, list := range lists {
		if !slices.IsSortedFunc(list, compareValue) {
			if merging.make(len(list)*valueBytes) != nil {
				return nil
			}
			list = slices.Clone(list)
			slices.SortStableFunc(list, merging.compareValue)
		}
		left[i] = list
		n += len(list)
	}
	if merging.make(min(n, most)*valueBytes) != nil {
		return nil
	}
	summed := make([]facetValue, 0, min(n, most))
	for range n {
		if merging.step() != nil {
			return nil
		}
		first := -1
		for i := range left {
			if len(left[i]) > 0 && (first < 0 || left[i][0].compareText(&left[first][0]) < 0) {
				first = i
			}
		}
		v := &left[first][0]
		left[first] = left[first][1:]
		if last := len(summed) - 1; last >= 0 && bytes.Equal(summed[last].shown, v.shown) {
			summed[last].count = addSaturated(summed[last].count, v.count)
		} else if len(summed) == most {
			break
		} else {
			summed = append(summed, *v)
		}
	}
	return summed
}

// appendFacets appends the facets of the answer, or nothing if none were requested for the queried indexes.
func (r *FederatedResponse) appendFacets(t turns.Turn, dst []byte) ([]byte, error) {
	if len(r.facets) == 0 {
		return dst, nil
	}
	if m := r.request.MergeFacets; m != nil && !r.request.Proxy {
		merging := Reading{Hold: t.Account().Hold, Yield: t.Yield}
		merged := mergeFacets(&merging, r.facets, m.MaxValues)
		return appendDistribution(dst, merged), merging.ended
	}
	dst = append(dst, `,"facetsByIndex":{`...)
	for i, ix := range r.facets {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendQuoted(dst, ix.uid)
		dst = appendCounts(append(dst, `:{"distribution":`...), ix.facets)
		dst = append(appendStats(append(dst, `,"stats":`...), ix.facets), '}')
	}
	return append(dst, '}'), nil
}
