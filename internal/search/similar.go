package search

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/rank"
	"svc/internal/turns"
	"svc/segment"
)

// SimilarRequest asks for the documents nearest to one of the index.
type SimilarRequest struct {
	ID                      string
	Embedder                string
	Offset, Limit           int
	Filter                  *filter.Expr
	Allowed                 *filter.Expr // documents that the caller may see; the target has to be one of them
	AttributesToRetrieve    []string     // nil: all
	RetrieveVectors         bool
	ShowRankingScore        bool
	ShowRankingScoreDetails bool
	ShowPerformanceDetails  bool
	RankingScoreThreshold   *float64
	Contains                bool
	Foreign                 *Foreign // for filters: documents are not hydrated
	Waited                  time.Duration
}

// withoutUnfit removes the documents whose vectors do not fit the embedder, because no search compares them. It removes all if the
// vectors of the target do not fit.
func withoutUnfit(v *index.View, embedder *index.ViewEmbedder, rows []*roaring.Bitmap, seg int, target segment.Row) []*roaring.Bitmap {
	for _, id := range embedder.IDs()[1:] {
		for i, s := range v.Segments {
			vectors := s.Vectors(id)
			if vectors == nil {
				continue
			}
			if i == seg && vectors.Rows().Contains(uint32(target)) {
				none := make([]*roaring.Bitmap, len(rows))
				for i := range none {
					none[i] = roaring.New()
				}
				return none
			}
			rows[i] = roaring.AndNot(rows[i], vectors.Rows())
		}
	}
	return rows
}

// Similar appends the body of the answer to dst. Errors are *apierr.Error or the context's.
func Similar(ctx context.Context, dst []byte, v *index.View, r *SimilarRequest) ([]byte, error) {
	m := filtering{code: "invalid_similar_filter", contains: r.Contains, foreign: r.Foreign}
	start := time.Now()
	recorded := newStages(ctx, r.ShowPerformanceDetails, r.Waited)
	embedder, err := embedderOf(v, r.Embedder, "invalid_similar_embedder")
	if err != nil {
		return nil, err
	}
	seen, err := universe(ctx, v, r.Allowed, m)
	if err != nil {
		return nil, err
	}
	seg, row, ok := v.Find([]byte(r.ID))
	if !ok || !seen[seg].Contains(uint32(row)) {
		return nil, apierr.New("not_found_similar_id", "There is no document %q in the index `%s`.", r.ID, v.UID)
	}
	rows := seen
	if r.Filter != nil {
		if rows, err = universe(ctx, v, filter.And(r.Filter, r.Allowed), m); err != nil {
			return nil, err
		}
	}
	rows[seg] = rows[seg].Clone()
	rows[seg].Remove(uint32(row))
	rows = withoutUnfit(v, embedder, rows, seg, row)
	recorded.done("search > evaluate filter")

	opened, err := embedder.Open(ctx)
	if err != nil {
		return nil, err
	}
	q := &rank.VectorQuery{Embedder: embedder.ID, Shift: shiftOf(opened), Only: true}
	if vectors := v.Segments[seg].Vectors(embedder.ID); vectors != nil {
		target, _ := vectors.Row(nil, row)
		for all := target.Vectors; len(all) > 0; all = all[embedder.Dimensions:] {
			q.Vectors = append(q.Vectors, all[:embedder.Dimensions])
		}
	}
	w := window{offset: r.Offset, limit: r.Limit}
	ranked := w
	// With a threshold, the total is known only once the threshold is met. All pages within maxTotalHits must have the same total, so
	// up to that many documents are ranked for each page.
	if r.RankingScoreThreshold != nil {
		ranked = window{limit: max(addSaturated(r.Offset, r.Limit), v.Settings.Pagination.MaxTotalHits)}
	}
	result, err := rank.Search(ctx, rankIndex(v), &rank.Request{
		Universe:  rows,
		Vectors:   q,
		Offset:    ranked.offset,
		Limit:     ranked.limit,
		PageSize:  ranked.limit,
		MaxTotal:  math.MaxInt,
		Threshold: r.RankingScoreThreshold,
		Scores:    r.ShowRankingScore || r.ShowRankingScoreDetails,
		Details:   r.ShowRankingScoreDetails,
		Deadline:  deadline(v, start),
	})
	if err != nil {
		return nil, err
	}
	recorded.done("search > semantic ranking")
	similar := &rankedHits{Result: result}
	if ranked != w {
		similar.cut(w)
	}
	hits := &Response{view: v, result: similar, request: &Request{
		AttributesToRetrieve:    r.AttributesToRetrieve,
		RetrieveVectors:         r.RetrieveVectors,
		ShowRankingScore:        r.ShowRankingScore,
		ShowRankingScoreDetails: r.ShowRankingScoreDetails,
	}}
	dst, err = hits.appendHits(turns.Of(ctx), append(dst, '{'))
	if err != nil {
		return nil, err
	}
	recorded.done("search > format")
	recorded.add("search", time.Since(start))
	dst = jsontext.AppendQuoted(append(dst, `,"id":`...), []byte(r.ID))
	dst = append(dst, `,"processingTimeMs":`...)
	dst = strconv.AppendInt(dst, time.Since(start).Milliseconds(), 10)
	dst = appendInt(dst, `,"limit":`, r.Limit)
	dst = appendInt(dst, `,"offset":`, r.Offset)
	dst = appendInt(dst, `,"estimatedTotalHits":`, result.Total)
	if r.ShowPerformanceDetails {
		dst = recorded.appendJSON(append(dst, `,"performanceDetails":`...), nil)
	}
	return append(dst, '}'), nil
}
