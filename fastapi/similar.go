package fastapi

import (
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/search"
)

var similarParams = []param[search.SimilarRequest]{
	{name: "id", code: "invalid_similar_id", kind: raw, shape: schema{"type": []any{"string", "integer"}}, set: setSimilarID},
	{name: "embedder", code: "invalid_similar_embedder", kind: textual, set: func(r *search.SimilarRequest, a *arg) error {
		if a.text == "" {
			return a.expected("the name of an embedder")
		}
		r.Embedder = a.text
		return nil
	}},
	{name: "offset", code: "invalid_similar_offset", kind: count, set: func(r *search.SimilarRequest, a *arg) error { r.Offset = a.count; return nil }},
	{name: "limit", code: "invalid_similar_limit", kind: count, set: func(r *search.SimilarRequest, a *arg) error { r.Limit = a.count; return nil }},
	{name: "filter", code: "invalid_similar_filter", kind: raw, null: true, shape: filterShape, set: func(r *search.SimilarRequest, a *arg) error {
		var err error
		r.Filter, err = parseFilter(a)
		return err
	}},
	{name: "attributesToRetrieve", code: "invalid_similar_attributes_to_retrieve", kind: list, null: true, set: func(r *search.SimilarRequest, a *arg) error {
		r.AttributesToRetrieve = a.list
		return nil
	}},
	{name: "retrieveVectors", code: "invalid_similar_retrieve_vectors", kind: flag, set: func(r *search.SimilarRequest, a *arg) error { r.RetrieveVectors = a.flag; return nil }},
	{name: "showRankingScore", code: "invalid_similar_show_ranking_score", kind: flag, set: func(r *search.SimilarRequest, a *arg) error { r.ShowRankingScore = a.flag; return nil }},
	{name: "showRankingScoreDetails", code: "invalid_similar_show_ranking_score_details", kind: flag, set: func(r *search.SimilarRequest, a *arg) error {
		r.ShowRankingScoreDetails = a.flag
		return nil
	}},
	{name: "showPerformanceDetails", code: "invalid_similar_show_performance_details", kind: flag, set: func(r *search.SimilarRequest, a *arg) error {
		r.ShowPerformanceDetails = a.flag
		return nil
	}},
	{name: "rankingScoreThreshold", code: "invalid_similar_ranking_score_threshold", kind: number, null: true, shape: ratioShape, set: func(r *search.SimilarRequest, a *arg) error {
		if a.number < 0 || a.number > 1 {
			return a.expected("a number from 0 to 1")
		}
		threshold := a.number
		r.RankingScoreThreshold = &threshold
		return nil
	}},
}

// setSimilarID takes the id of a document: a string or a whole number.
func setSimilarID(r *search.SimilarRequest, a *arg) error {
	ok := document.ValidID([]byte(a.text))
	if a.json != nil {
		a.text, ok = a.json.id()
	}
	if !ok {
		return a.expected("a document id: a whole number of 64 bits, or a string of letters from a to z in either case, digits, - and _")
	}
	r.ID = a.text
	return nil
}

func (s *Server) similarBody(ctx *fasthttp.RequestCtx) error {
	r := search.SimilarRequest{Limit: defaultLimit}
	if err := readObject(s, ctx, &r, similarParams); err != nil {
		return err
	}
	return s.similar(ctx, &r)
}

func (s *Server) similarQuery(ctx *fasthttp.RequestCtx) error {
	r := search.SimilarRequest{Limit: defaultLimit}
	if err := decodeQuery(&r, ctx.QueryArgs(), similarParams); err != nil {
		return err
	}
	return s.similar(ctx, &r)
}

func (s *Server) similar(ctx *fasthttp.RequestCtx, r *search.SimilarRequest) error {
	switch {
	case r.ID == "":
		return apierr.New("bad_request", "`id` is missing: name the document to compare others with.")
	case r.Embedder == "":
		return apierr.New("bad_request", "`embedder` is missing: name the embedder whose vectors to compare.")
	}
	if err := s.checkFilter(r.Filter); err != nil {
		return err
	}
	var err error
	if r.Allowed, err = s.rule(ctx, pathValue(ctx, "index_uid")); err != nil {
		return err
	}
	r.Contains = s.features.on("containsFilter")
	r.Foreign = s.foreign(ctx)
	defer r.Foreign.Release()
	limited, waited, err := s.turn(ctx, r.Limit)
	if err != nil {
		return err
	}
	defer limited.end()
	r.Waited = waited
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	defer v.Release()
	return answerWith(ctx, func(dst []byte) ([]byte, error) { return search.Similar(limited, dst, v, r) })
}
