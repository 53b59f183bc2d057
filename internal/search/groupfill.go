package search

import (
	"context"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/rank"
	"svc/internal/settings"
)

// search is a round that ranks some of what the first one found.
func (g *grouper) search(ctx context.Context, rows []*roaring.Bitmap, w window) (err error) {
	g.last, err = g.k.within(ctx, rows, g.first).find(ctx, w)
	if err == nil {
		g.first.Degraded = g.first.Degraded || g.last.Degraded
	}
	return err
}

// within returns the ranking of some documents, which are among those that this one found.
func (k *ranking) within(ctx context.Context, rows []*roaring.Bitmap, f *rankedHits) *ranking {
	in, request := *k, *k.request
	in.request = &request
	in.only(ctx, rows)
	switch { // the query is embedded once
	case f.queryVector != nil:
		request.Vector = f.queryVector
	case k.kind == hybrid:
		in.kind = keyword
	}
	in.parts = slices.Clone(k.parts)
	for i := range in.parts {
		part := make([]*roaring.Bitmap, len(rows))
		for seg := range rows {
			part[seg] = roaring.And(rows[seg], in.parts[i].rows[seg])
		}
		in.parts[i].rows = part
	}
	return &in
}

// fill ranks the documents of groups that miss hits.
func (g *grouper) fill(ctx context.Context, page []*group) error {
	open := slices.DeleteFunc(slices.Clone(page), func(one *group) bool { return len(one.hits) >= min(g.by.Hits, one.count) })
	if g.first.Degraded {
		return nil
	}
	if g.pulls {
		return g.pullMore(ctx, open)
	}
	for w := (window{values: g.values, deadline: g.end}); len(open) > 0; {
		rows, missing := make([]*roaring.Bitmap, len(g.base)), 0
		for seg := range rows {
			rows[seg] = roaring.New()
		}
		for _, one := range open {
			missing += min(g.by.Hits, one.count) - len(one.hits)
			one.seen = make(map[spot]bool, len(one.hits))
			for _, h := range one.hits {
				one.seen[spotOf(&h)] = true
			}
			for seg, base := range g.base {
				in := rowsOf(g.columns, seg, &one.key, base)
				for at := range one.seen {
					if at.segment == seg {
						in.Remove(uint32(at.row))
					}
				}
				rows[seg].Or(in)
			}
		}
		w.limit = max(2*w.limit, 2*missing, fillHits)
		if err := g.search(ctx, rows, w); err != nil {
			return err
		}
		for i := range g.last.Hits {
			h := &g.last.Hits[i]
			for _, key := range g.keysOf(h.Segment, h.Row) {
				one := g.groups[key]
				if one == nil || one.seen == nil || one.seen[spotOf(h)] || len(one.hits) >= g.by.Hits {
					continue
				}
				one.hits = append(one.hits, *h)
			}
		}
		for _, one := range open {
			one.seen = nil
		}
		if g.first.Degraded || len(g.last.Hits) < w.limit {
			return nil
		}
		open = slices.DeleteFunc(open, func(one *group) bool { return len(one.hits) >= min(g.by.Hits, one.count) })
	}
	return nil
}

// pullMore pulls the hits of groups that miss some, again from the first one on.
func (g *grouper) pullMore(ctx context.Context, open []*group) error {
	if len(open) == 0 {
		return nil
	}
	asked := &rank.Grouping{Field: g.by.Attribute, Known: make(map[rank.GroupKey]int, len(open))}
	of := make(map[rank.GroupKey]*group, len(open))
	for _, one := range open {
		one.hits = slices.DeleteFunc(one.hits, func(h rank.Hit) bool { return !isPin(g.k.pins, &h) })
		asked.Known[one.key], of[one.key] = g.by.Hits-len(one.hits), one
	}
	if err := g.search(ctx, g.base, window{limit: math.MaxInt32, values: g.values, deadline: g.end, grouping: asked}); err != nil {
		return err
	}
	g.collect(g.last.Result, of, false)
	return nil
}

// fillHits is the minimum number of hits that are ranked for groups that lack some. (A variable, so that tests can lower it.)
var fillHits = 64

func spotOf(h *rank.Hit) spot { return spot{h.Segment, h.Row} }

// sort gives groups the first hits of their own order.
func (g *grouper) sort(ctx context.Context, page []*group) error {
	keys, err := parseSort(ctx, g.k.view, g.by.Sort, g.k.request.Contains, searchGroupBy)
	if err != nil {
		return err
	}
	ix := rankIndex(g.k.view)
	onlySort := *g.k.view.Settings
	onlySort.RankingRules = []settings.RankingRule{{Kind: settings.Sort}}
	ix.Settings = &onlySort
	asked := &rank.Grouping{Field: g.by.Attribute, Known: make(map[rank.GroupKey]int, len(page))}
	of := make(map[rank.GroupKey]*group, len(page))
	for _, one := range page {
		asked.Known[one.key], of[one.key] = g.by.Hits, one
		one.hits = nil
	}
	sorted, err := rank.Search(ctx, ix, &rank.Request{Universe: g.all, Sort: keys, Grouping: asked, Limit: math.MaxInt32, MaxTotal: math.MaxInt32, Scores: g.values, Values: g.values,
		Deadline: g.end})
	if err != nil {
		return err
	}
	g.first.Degraded = g.first.Degraded || sorted.Degraded
	g.collect(sorted, of, false)
	chosen, n := make([]*roaring.Bitmap, len(g.base)), 0
	for seg := range chosen {
		chosen[seg] = roaring.New()
	}
	for _, h := range sorted.Hits {
		if g.base[h.Segment].Contains(uint32(h.Row)) && chosen[h.Segment].CheckedAdd(uint32(h.Row)) {
			n++
		}
	}
	ranked := make(map[spot]*rank.Hit, n)
	// What hits show of their ranking is known after they are ranked.
	if n > 0 && !g.whole && (g.k.kind != keyword || g.values || g.k.request.ShowRankingScore || g.k.request.ShowRankingScoreDetails) {
		if err := g.search(ctx, chosen, window{limit: n, values: g.values, deadline: g.end}); err != nil {
			return err
		}
	}
	for i := range g.last.Hits {
		ranked[spotOf(&g.last.Hits[i])] = &g.last.Hits[i]
	}
	for i := range g.k.pins {
		ranked[spotOf(&g.k.pins[i].hit)] = &g.k.pins[i].hit
	}
	for _, one := range page {
		if g.values {
			one.order = make([][]rank.ScoreValue, len(one.hits))
		}
		for i := range one.hits {
			if g.values {
				one.order[i] = one.hits[i].Values
			}
			if h := ranked[spotOf(&one.hits[i])]; h != nil {
				one.hits[i] = *h
			}
		}
	}
	return nil
}
