package fastapi

import (
	"github.com/valyala/fasthttp"

	"svc/internal/dump"
	"svc/internal/task"
)

// createDump asks for a dump with the API keys there are now. A body says nothing.
func (s *Server) createDump(ctx *fasthttp.RequestCtx) error {
	keys, err := dump.EncodeKeys(s.keys.List())
	if err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{Content: task.CreateDump{Keys: keys}}, fasthttp.StatusAccepted)
}

// createSnapshot asks for a snapshot. A body says nothing.
func (s *Server) createSnapshot(ctx *fasthttp.RequestCtx) error {
	return s.enqueue(ctx, task.New{Content: task.CreateSnapshot{}}, fasthttp.StatusAccepted)
}
