package fastapi

import (
	"github.com/valyala/fasthttp"
)

// segmentView is a segment of an index as it is shown.
type segmentView struct {
	Number        uint64 `json:"number"`
	Rows          int    `json:"rows"`
	Deleted       int    `json:"deletedRows"`
	Bytes         int64  `json:"bytes"`
	DocumentBytes int64  `json:"documentBytes"`
	Merging       bool   `json:"merging"`
}

// mergeView is a merge that runs.
type mergeView struct {
	Segments []uint64 `json:"segments"`
	Bytes    int64    `json:"bytes"`
	Began    string   `json:"startedAt"`
}

// listSegments answers with the segments of an index, and with the merges that run on them.
func (s *Server) listSegments(ctx *fasthttp.RequestCtx) error {
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	if err := decodeQuery(&struct{}{}, ctx.QueryArgs(), nil); err != nil {
		return err
	}
	ix := s.catalog.Get(uid)
	if ix == nil {
		return s.catalog.Missing(uid)
	}
	segments, merges, err := ix.Segments()
	if err != nil {
		return err
	}
	shown := struct {
		Segments []segmentView `json:"segments"`
		Merges   []mergeView   `json:"merges"`
	}{[]segmentView{}, []mergeView{}}
	for _, x := range segments {
		shown.Segments = append(shown.Segments, segmentView(x))
	}
	for _, m := range merges {
		shown.Merges = append(shown.Merges, mergeView{m.Segments, m.Bytes, rfc3339(m.Began)})
	}
	return answer(ctx, shown)
}
