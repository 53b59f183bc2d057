package search

import "svc/internal/rank"

// A total leaves out duplicates, and documents below a threshold, as far as ranking meets them. A search that ranks only its page may
// have another total on the next page. This file says which searches rank the whole list, so that all pages have the same total:
//
//   - wholeList: searches whose total must not depend on the page;
//   - wholeIfFew: searches that find fewer than maxTotalHits documents, and may drop some;
//   - federationPlan.wholeLists: all queries of a federated search, if one of them needs it or a hit may drop several of another query.

// wholeList returns the window to rank so that totals and facet counts do not depend on the page. A search that keeps its totals, and
// one with exact totals, know which documents are left out before they count. whole says that the window is the whole list, and the
// caller takes the page from it.
func (k *ranking) wholeList(w window) (ranked window, whole bool) {
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

// wholeIfFew reports whether the ranking of a window returns all hits if fewer than maxTotalHits documents are found.
func (k *ranking) wholeIfFew(w window) bool {
	return (k.distinct != "" || w.wholeIfFew) && k.kind != hybrid && !k.unbounded && w.grouping == nil
}

// wholeLists reports whether each query returns all its hits, because the merger has to meet all duplicates.
func (p *federationPlan) wholeLists() bool {
	return p.drops && (p.steadyTotals || p.paged || p.severalValues)
}

// cut keeps the hits of a page of the whole list.
func (f *rankedHits) cut(w window) {
	f.Hits = f.Hits[min(w.offset, len(f.Hits)):]
	f.Hits = f.Hits[:min(w.limit, len(f.Hits))]
}
