package search

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/rank"
	"svc/segment"
)

// runHybrid searches by words and by meaning, and merges the two lists. Every page is a part of that one list, so both searches run
// whatever the scores of the first hits by words. Only if the query cannot be embedded is the list by words the answer.
func (k *ranking) runHybrid(ctx context.Context, w window) (*rankedHits, error) {
	began := time.Now()
	both, whole := k.wholeList(w)
	if !whole {
		both.offset, both.limit = 0, w.offset+w.limit
		both.exhaustive = false // duplicates are counted once both lists are known
	}
	both.values, both.brief = true, false
	words, err := k.search(ctx, both, nil)
	if err != nil {
		return nil, err
	}
	f := &rankedHits{Result: words, kind: hybrid}
	lists := [][]rank.Hit{words.Hits, nil}
	q, err := k.vectorQuery(ctx, began, hybridPatience, w.limit > 0 || whole)
	switch {
	case err == nil:
		meaning, err := k.search(ctx, both, q)
		if err != nil {
			return nil, err
		}
		f.Result = &rank.Result{Highlights: words.Highlights, Degraded: words.Degraded || meaning.Degraded}
		if len(q.Vectors) > 0 {
			f.queryVector = q.Vectors[0]
		}
		lists[1] = meaning.Hits
		f.Candidates = make([]*roaring.Bitmap, len(words.Candidates))
		for i := range f.Candidates {
			f.Candidates[i] = roaring.Or(words.Candidates[i], meaning.Candidates[i])
		}
	case ctx.Err() != nil || apierr.From(err).Code != "vector_embedding_error":
		return nil, err
	default:
		k.noVector(ctx, "hybrid search continues without vectors", err)
	}
	var distinct *rank.Distinct
	if k.distinct != "" {
		distinct = rank.NewDistinct(rankIndex(k.view), k.distinct)
	}
	f.Hits, f.semanticHits = mergeHybrid(lists[0], lists[1], k.request.ratio(), distinct, w.offset, w.limit, whole)
	maxTotal := k.view.Settings.Pagination.MaxTotalHits
	if distinct != nil {
		most := math.MaxInt
		if w.hitsOnly {
			most = maxTotal
		}
		f.Candidates, f.AppendKey = distinct.Candidates(f.Candidates, true, most), nil
	}
	f.Total = min(cardinality(f.Candidates), maxTotal)
	return f, nil
}

// mergeHybrid merges the hits found by words and by meaning, each in its own order, and returns a page. distinct may be nil. whole
// says that distinct has to see all hits, and not only those up to the end of the page. semanticHits is the number of hits on the
// page that were also found by meaning.
func mergeHybrid(words, meaning []rank.Hit, ratio float64, distinct *rank.Distinct, offset, limit int, whole bool) (page []rank.Hit, semanticHits int) {
	seen := make(map[segment.DocID]bool, len(words)+len(meaning))
	for (len(page) < limit || whole && distinct != nil) && len(words)+len(meaning) > 0 {
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
		switch {
		case offset > 0:
			offset--
		case len(page) < limit:
			page = append(page, h)
			if !fromWords {
				semanticHits++
			}
		}
	}
	return page, semanticHits
}

// compareHybrid is negative if a hit found by words comes before one found by meaning.
func compareHybrid(words, meaning []rank.ScoreValue, ratio float64) int {
	return compareWeighted(words, meaning, 1-ratio, ratio)
}

// compareWeighted is negative if a hit with the values a comes before one with the values b. Scores are multiplied by p and q.
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

// scoreAgainstSort is negative if a score comes before the value of a sort: all scores do except 0.
func scoreAgainstSort(v *rank.ScoreValue) int {
	if v.Score == 0 {
		return 1
	}
	return -1
}
