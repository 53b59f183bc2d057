package search

import (
	"cmp"
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/rank"
	"svc/segment"
)

// surelyGood is the weighted score from which on hits by words need no company: they would come first anyway.
const surelyGood = 0.45

// runHybrid searches by words, then by meaning, and merges what both found.
func (k *ranking) runHybrid(ctx context.Context, w window) (*found, error) {
	ratio := k.request.ratio()
	both := window{limit: w.offset + w.limit, exhaustive: w.exhaustive, values: true, deadline: w.deadline}
	words, err := k.search(ctx, both, nil)
	if err != nil {
		return nil, err
	}
	alone := func() *found {
		words.Hits = words.Hits[min(w.offset, len(words.Hits)):]
		return &found{Result: words, kind: hybrid}
	}
	good := words.Hits
	if len(k.pins) > 0 {
		good = weaveHits(k.pins, good, 0, both.limit)
	}
	if w.limit == 0 || suffices(good, both.limit, ratio) {
		return alone(), nil
	}
	q, err := k.vectorQuery(ctx, hybridPatience)
	if err != nil {
		if ctx.Err() != nil || apierr.From(err).Code != "vector_embedding_error" {
			return nil, err
		}
		k.noVector(ctx, err)
		return alone(), nil
	}
	meaning, err := k.search(ctx, both, q)
	if err != nil {
		return nil, err
	}
	var distinct *rank.Distinct
	if k.distinct != "" {
		distinct = rank.NewDistinct(rankIndex(k.view), k.distinct)
	}
	f := &found{Result: &rank.Result{Highlights: words.Highlights, Degraded: words.Degraded || meaning.Degraded},
		kind: hybrid, queryVector: q.Vectors[0]}
	f.Hits, f.semanticHits = mergeHybrid(words.Hits, meaning.Hits, ratio, distinct, w.offset, w.limit)
	f.Candidates = make([]*roaring.Bitmap, len(words.Candidates))
	for i := range f.Candidates {
		f.Candidates[i] = roaring.Or(words.Candidates[i], meaning.Candidates[i])
	}
	if distinct != nil {
		f.Candidates = distinct.Candidates(f.Candidates, w.exhaustive)
	}
	f.Total = min(cardinality(f.Candidates), k.view.Settings.Pagination.MaxTotalHits)
	return f, nil
}

// suffices reports whether hits by words fill the page and are all so good that no vector is needed.
func suffices(hits []rank.Hit, wanted int, ratio float64) bool {
	if len(hits) < wanted {
		return false
	}
	for i := range hits[:wanted] {
		if hits[i].Score*(1-ratio) < surelyGood {
			return false
		}
	}
	return true
}

// mergeHybrid merges what was found by words and by meaning, each in its own order, and cuts out a page. distinct may be
// nil. It returns the number of hits on the page that were found by meaning, too.
func mergeHybrid(words, meaning []rank.Hit, ratio float64, distinct *rank.Distinct, offset, limit int) (page []rank.Hit, semanticHits int) {
	seen := make(map[segment.DocID]bool, len(words)+len(meaning))
	for len(page) < limit && len(words)+len(meaning) > 0 {
		fromWords := len(meaning) == 0 ||
			len(words) > 0 && compareHybrid(words[0].Values, meaning[0].Values, ratio) < 0
		list := &meaning
		if fromWords {
			list = &words
		}
		h := (*list)[0]
		*list = (*list)[1:]
		if seen[h.ID] || distinct != nil && !distinct.Keep(h.Segment, h.Row) {
			continue
		}
		seen[h.ID] = true
		if offset > 0 {
			offset--
			continue
		}
		page = append(page, h)
		if !fromWords {
			semanticHits++
		}
	}
	return page, semanticHits
}

// compareHybrid is negative when a hit found by words comes before one found by meaning.
func compareHybrid(words, meaning []rank.ScoreValue, ratio float64) int {
	return compareWeighted(words, meaning, 1-ratio, ratio)
}

// compareWeighted is negative when a hit with the values a, whose scores are multiplied by p, comes before one with b and q.
func compareWeighted(a, b []rank.ScoreValue, p, q float64) int {
	for i := range min(len(a), len(b)) {
		v, w := &a[i], &b[i]
		c := 0
		switch {
		case v.Kind.IsScore() && w.Kind.IsScore():
			c = rank.CompareScores(v.Score*p, w.Score*q)
		case v.Kind.IsScore():
			c = scoreAgainstSort(v)
		case w.Kind.IsScore():
			c = -scoreAgainstSort(w)
		case v.Kind == w.Kind && v.Desc == w.Desc:
			c = v.Sort.Compare(&w.Sort, v.Desc)
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(b), len(a)) // which ends first loses
}

// scoreAgainstSort is negative when a score comes before the value of a sort: all do but 0.
func scoreAgainstSort(v *rank.ScoreValue) int {
	if v.Score == 0 {
		return 1
	}
	return -1
}
