package search

import (
	"cmp"
	"slices"
	"strconv"

	"svc/internal/rank"
	"svc/internal/rule"
)

// pinnedHit is a hit with a fixed place in the results, from 0, given by a rule.
type pinnedHit[T any] struct {
	at  int
	hit T
}

// pin takes the documents that rules pin out of the ranking and records their places. Documents that the index does not have, or that
// the filter does not allow, are not pinned.
func (k *ranking) pin(pins []rule.Pin) {
	cloned := make([]bool, len(k.rows))
	for _, p := range pins {
		seg, row, ok := k.view.Find([]byte(p.ID))
		if !ok || !k.rows[seg].Contains(uint32(row)) {
			continue
		}
		if !cloned[seg] { // the bitmap may be shared
			k.rows[seg], cloned[seg] = k.rows[seg].Clone(), true
		}
		if k.rows[seg].Remove(uint32(row)); k.seen != nil && k.seen[seg].Contains(uint32(row)) { // on an earlier page
			continue
		}
		hit := rank.Hit{Segment: seg, Row: row, ID: k.view.Segments[seg].DocID(row), Score: 1}
		if k.request.ShowRankingScoreDetails {
			hit.Details = append(hit.Details, `{"pin":{"order":0,"position":`...)
			hit.Details = append(strconv.AppendUint(hit.Details, uint64(p.Position), 10), "}}"...)
		}
		at := int(p.Position)
		if k.page != nil {
			at = max(0, at-k.page.Before())
		}
		k.pins = append(k.pins, pinnedHit[rank.Hit]{at, hit})
	}
}

// weave merges pins, in the order of their places, with hits in their own order, and returns a page. A pin is at its place, or after
// earlier pins or, if there are not enough hits, directly after the last one.
func weave[T any](pins []pinnedHit[T], next func() (T, bool), offset, limit int) []T {
	var page []T
	end := offset + limit
	for i := 0; i < end; i++ {
		var hit T
		ok := false
		if len(pins) == 0 || pins[0].at > i {
			hit, ok = next()
		}
		switch {
		case ok:
		case len(pins) > 0:
			hit, pins = pins[0].hit, pins[1:]
		default:
			return page
		}
		if i >= offset {
			page = append(page, hit)
		}
	}
	return page
}

// weaveHits weaves pins into the hits of a ranking.
func weaveHits(pins []pinnedHit[rank.Hit], hits []rank.Hit, offset, limit int) []rank.Hit {
	next := func() (h rank.Hit, ok bool) {
		if len(hits) == 0 {
			return h, false
		}
		h, hits = hits[0], hits[1:]
		return h, true
	}
	return weave(pins, next, offset, limit)
}

// pin adds pins to the results of a ranking from the first rank on: to the totals, and to the page unless the window wants them
// separately.
func (f *rankedHits) pin(pins []pinnedHit[rank.Hit], w window, maxTotal int) {
	f.Candidates, f.AppendKey = slices.Clone(f.Candidates), nil
	cloned := make([]bool, len(f.Candidates))
	for _, p := range pins {
		seg := p.hit.Segment
		if !cloned[seg] {
			f.Candidates[seg], cloned[seg] = f.Candidates[seg].Clone(), true
		}
		f.Candidates[seg].Add(uint32(p.hit.Row))
	}
	f.Total = min(cardinality(f.Candidates), maxTotal)
	if w.apart {
		return
	}
	f.Hits = weaveHits(pins, f.Hits, w.offset, w.limit)
	f.semanticHits = 0
	for i := range f.Hits {
		h := &f.Hits[i]
		if bySimilarity(h) || f.kind == semantic && !isPin(pins, h) {
			f.semanticHits++
		}
	}
}

// isPin reports whether a hit is one of the pins.
func isPin(pins []pinnedHit[rank.Hit], h *rank.Hit) bool {
	return slices.ContainsFunc(pins, func(p pinnedHit[rank.Hit]) bool { return p.hit.Segment == h.Segment && p.hit.Row == h.Row })
}

// federatedPins returns the pins of all queries, of this and other instances, in the order of their places.
func federatedPins(queries []federated, remotes []*RemoteAnswer) []pinnedHit[federatedHit] {
	var pins []pinnedHit[federatedHit]
	for i := range queries {
		q := &queries[i]
		for n := range q.ranking.pins {
			pins = append(pins, pinnedHit[federatedHit]{q.ranking.pins[n].at, federatedHit{query: q, hit: n, pinned: true}})
		}
	}
	for _, r := range remotes {
		for n := range r.pins {
			pins = append(pins, pinnedHit[federatedHit]{r.pins[n].at, federatedHit{remote: r, hit: n, pinned: true}})
		}
	}
	slices.SortStableFunc(pins, func(a, b pinnedHit[federatedHit]) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.hit.queryPosition(), b.hit.queryPosition()))
	})
	return pins
}
