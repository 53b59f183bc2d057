package fastapi

import (
	"github.com/valyala/fasthttp"

	"svc/internal/task"
)

func (s *Server) listBatches(ctx *fasthttp.RequestCtx) error {
	q := taskQuery{Filter: task.Filter{Limit: defaultLimit, Allowed: caller(ctx).Limit(), Room: roomFor(ctx)}}
	if err := decodeQuery(&q, ctx.QueryArgs(), taskListParams); err != nil {
		return err
	}
	followAll(ctx, q.IndexUIDs)
	batches, err := s.queue.Batches(q.Filter)
	if err != nil {
		return err
	}
	return answerList(s, ctx, batches.Results, uidPage{batches.Total, q.Limit, batches.From, batches.Next})
}

func (s *Server) getBatch(ctx *fasthttp.RequestCtx) error {
	uid, err := uidInPath(ctx, "batch_id", "invalid_batch_uids")
	if err != nil {
		return err
	}
	b, err := s.queue.ShownBatch(uid, caller(ctx).Limit(), roomFor(ctx))
	if err != nil {
		return err
	}
	return answer(ctx, b)
}
