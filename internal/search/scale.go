package search

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/document"
	"svc/internal/jsontext"
	"svc/internal/rank"
	"svc/internal/rule"
)

// scaled has the documents whose scores rules multiply by the same factor.
type scaled struct {
	factor float64
	rows   []*roaring.Bitmap // by segment
}

// maxScaled limits the number of parts into which rules cut the ranking: each is a ranking of its own.
const maxScaled = 32

// scale cuts the documents into parts by the factors with which rules multiply scores, and removes hidden ones. If several rules
// select a document, their factors are multiplied. A filter that cannot be evaluated in the index selects nothing. Rules that would
// lead to too many parts have no effect.
func (k *ranking) scale(ctx context.Context, scales []rule.Scale) {
	parts := []scaled{{1, k.rows}}
	var applied []ruleRows
	for _, s := range scales {
		selected, ok := k.selected(ctx, s.Selector)
		if !ok {
			continue
		}
		cut := make([]scaled, 0, 2*len(parts))
		for _, p := range parts {
			in, out := make([]*roaring.Bitmap, len(p.rows)), make([]*roaring.Bitmap, len(p.rows))
			for i := range p.rows {
				in[i], out[i] = roaring.And(p.rows[i], selected[i]), roaring.AndNot(p.rows[i], selected[i])
			}
			cut = addScaled(addScaled(cut, scaled{p.factor, out}), scaled{product(p.factor, s.Factor), in})
		}
		if len(cut) > maxScaled {
			break
		}
		parts = cut
		if k.request.ShowRankingScoreDetails {
			applied = append(applied, ruleRows{s.Rule, selected})
		}
	}
	hidden := func(p scaled) bool { return p.factor == 0 }
	k.counted = &rank.Allowed{Universe: slices.Clone(k.rows)} // scores are multiples of those without rules
	if i := slices.IndexFunc(parts, hidden); i >= 0 {
		for seg := range k.rows { // the bitmaps may be shared
			k.rows[seg] = roaring.AndNot(k.rows[seg], parts[i].rows[seg])
		}
		parts = slices.Delete(parts, i, i+1)
	}
	if len(parts) > 1 || len(parts) == 1 && parts[0].factor != 1 {
		k.parts, k.scalers = parts, applied
	}
}

// ruleRows is a rule with the documents whose scores it multiplies, by segment.
type ruleRows struct {
	uid  string
	rows []*roaring.Bitmap
}

// addScaled adds a part, if it has documents, to the one with the same factor.
func addScaled(parts []scaled, p scaled) []scaled {
	if cardinality(p.rows) == 0 {
		return parts
	}
	i := slices.IndexFunc(parts, func(other scaled) bool { return other.factor == p.factor })
	if i < 0 {
		return append(parts, p)
	}
	for seg := range p.rows {
		parts[i].rows[seg] = roaring.Or(parts[i].rows[seg], p.rows[seg])
	}
	return parts
}

// selected returns the documents that a rule selects, by segment.
func (k *ranking) selected(ctx context.Context, s *rule.Selector) ([]*roaring.Bitmap, bool) {
	rows, err := universe(ctx, k.view, s.Filter, filtering{code: "invalid_search_filter", contains: k.request.Contains, shards: k.request.Shards})
	if err != nil {
		return nil, false
	}
	if s.ID != nil {
		err = restrict(ctx, k.view, rows, []string{*s.ID})
	}
	if s.IDs != nil && err == nil {
		err = restrict(ctx, k.view, rows, s.IDs)
	}
	return rows, err == nil
}

// search ranks the documents that are not pinned: as a whole, or each part by itself, with the hits merged by their scaled scores.
func (k *ranking) search(ctx context.Context, w window, vectors *rank.VectorQuery) (*rank.Result, error) {
	ix := rankIndex(k.view)
	if k.parts == nil {
		return rank.Search(ctx, ix, k.rankRequest(ctx, w, vectors))
	}
	if w.deadline.IsZero() { // the parts share the time
		w.deadline = deadline(k.view, time.Now())
	}
	merged := &rank.Result{Whole: true}
	lists := make([][]rank.Hit, len(k.parts))
	part := window{limit: w.offset + w.limit, pageSize: w.pageSize, exhaustive: w.exhaustive, values: true, wholeIfFew: w.wholeIfFew, deadline: w.deadline}
	if w.limit > 0 && k.distinct != "" && !k.unbounded && !rank.SingleValued(ix, k.distinct) { // one hit may drop several hits of another part
		part.limit = max(part.limit, k.maxTotal())
	}
	for i, p := range k.parts {
		r := k.rankRequest(ctx, part, vectors)
		r.Universe = p.rows
		if t := r.Threshold; t != nil {
			least := unscaled(*t, p.factor)
			r.Threshold = &least
		}
		found, err := rank.Search(ctx, ix, r)
		if err != nil {
			return nil, err
		}
		lists[i] = found.Hits
		for n := range found.Hits {
			k.scaleHit(&found.Hits[n], p.factor)
		}
		merged.Highlights, merged.Degraded = found.Highlights, merged.Degraded || found.Degraded
		merged.Whole = merged.Whole && found.Whole
		if merged.Candidates == nil {
			merged.Candidates = found.Candidates
			continue
		}
		for seg, rows := range found.Candidates {
			found.Candidates[seg] = roaring.Or(merged.Candidates[seg], rows)
		}
		merged.Candidates = found.Candidates
	}
	var distinct *rank.Distinct
	if k.distinct != "" {
		distinct = rank.NewDistinct(ix, k.distinct)
	}
	merged.Whole = merged.Whole && cardinality(merged.Candidates) < k.maxTotal()
	if merged.Whole {
		w.offset, w.limit = 0, math.MaxInt
	}
	merged.Hits = mergeScaled(lists, distinct, w.offset, w.limit)
	if distinct != nil {
		merged.Candidates = distinct.Candidates(merged.Candidates, w.exhaustive, math.MaxInt)
	}
	merged.Total = min(cardinality(merged.Candidates), k.view.Settings.Pagination.MaxTotalHits)
	return merged, nil
}

// product multiplies a score, a weight or a factor by another one. The result is finite, and 0 only if one of them is, because factor
// 0 hides documents.
func product(x, y float64) float64 {
	p := x * y
	switch {
	case p == 0 && x != 0 && y != 0:
		return math.Copysign(math.SmallestNonzeroFloat64, p)
	case math.IsInf(p, 0):
		return math.Copysign(math.MaxFloat64, p)
	}
	return p
}

// unscaled returns the least score whose product with a factor reaches a threshold: rounding may move the quotient past it.
func unscaled(threshold, factor float64) float64 {
	const steps = 4 // products that underflow are all equal
	least := threshold / factor
	for range steps {
		if product(least, factor) < threshold {
			least = math.Nextafter(least, math.Inf(1))
		} else if before := math.Nextafter(least, 0); product(before, factor) >= threshold {
			least = before
		}
	}
	return least
}

// scaleHit multiplies the scores of a hit, and adds the factor and its rules to the details.
func (k *ranking) scaleHit(h *rank.Hit, factor float64) {
	if factor == 1 {
		return
	}
	h.Score = product(h.Score, factor)
	for i := range h.Values {
		if v := &h.Values[i]; v.Kind.IsScore() {
			v.Score = product(v.Score, factor)
		}
	}
	if h.Details == nil {
		return
	}
	order := 0
	// The details are an object.
	_ = document.Fields(h.Details, func(_, _ []byte) error { order++; return nil })
	d := h.Details[:len(h.Details)-1]
	if order > 0 {
		d = append(d, ',')
	}
	d = strconv.AppendInt(append(d, `"scale":{"order":`...), int64(order), 10)
	d = append(jsontext.AppendFloat(append(d, `,"factor":`...), factor), `,"rules":[`...)
	last := ""
	for _, r := range k.scalers {
		if r.uid == last || !r.rows[h.Segment].Contains(uint32(h.Row)) {
			continue
		}
		if last != "" {
			d = append(d, ',')
		}
		last = r.uid
		d = jsontext.AppendQuoted(d, last)
	}
	h.Details = append(d, "]}}"...)
}

// mergeScaled merges lists of hits, each in its own order, and returns a page. distinct may be nil.
func mergeScaled(lists [][]rank.Hit, distinct *rank.Distinct, offset, limit int) (page []rank.Hit) {
	for len(page) < limit {
		best := -1
		for i := range lists {
			if len(lists[i]) > 0 && (best < 0 || compareScaled(&lists[i][0], &lists[best][0]) < 0) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		h := lists[best][0]
		lists[best] = lists[best][1:]
		switch {
		case distinct != nil && !distinct.Keep(h.Segment, h.Row):
		case offset > 0:
			offset--
		default:
			page = append(page, h)
		}
	}
	return page
}

// compareScaled is negative if a comes before b. If no rule looks at a query, only the factors differ.
func compareScaled(a, b *rank.Hit) int {
	return cmp.Or(compareWeighted(a.Values, b.Values, 1, 1), rank.CompareScores(a.Score, b.Score), cmp.Compare(a.Spelling, b.Spelling), cmp.Compare(a.ID, b.ID))
}
