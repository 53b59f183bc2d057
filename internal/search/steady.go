package search

import "svc/internal/rank"

// steady returns the window to rank so that totals and facet counts do not depend on the page. A search that keeps its totals, and
// one with exact totals, know which documents are left out, as duplicates or for their scores, before they count. whole says that the
// window is the whole list, and the caller takes the page from it.
func (k *ranking) steady(w window) (ranked window, whole bool) {
	ranked, byScore := w, k.request.RankingScoreThreshold != nil
	counts := w.exhaustive && k.distinct != "" && w.grouping == nil && !k.unbounded
	switch {
	case !counts && (!k.steadyTotals || k.distinct == "" && !byScore):
		return ranked, false
	case !byScore && w.hitsOnly && rank.SingleValued(rankIndex(k.view), k.distinct):
		// The number of remaining documents does not depend on which document of a value is kept.
		ranked.exhaustive = true
		return ranked, false
	}
	ranked.offset, ranked.pageSize = 0, 0
	ranked.limit, ranked.exhaustive = k.maxTotal(), true
	return ranked, true
}

// cut keeps the hits of a page of the whole list.
func (f *rankedHits) cut(w window) {
	f.Hits = f.Hits[min(w.offset, len(f.Hits)):]
	f.Hits = f.Hits[:min(w.limit, len(f.Hits))]
}
