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
	return s.enqueueFile(ctx, task.CreateDump{Keys: keys}, "Svc-Directory", s.dumpDir)
}

// createSnapshot asks for a snapshot. A body says nothing.
func (s *Server) createSnapshot(ctx *fasthttp.RequestCtx) error {
	return s.enqueueFile(ctx, task.CreateSnapshot{}, "Svc-File", s.snapshotFile)
}

// enqueueFile enqueues a task that creates a file and names the place of the file in a header. If place is "", there is no header.
func (s *Server) enqueueFile(ctx *fasthttp.RequestCtx, c task.Content, header, place string) error {
	err := s.enqueue(ctx, task.New{Content: c}, fasthttp.StatusAccepted)
	if err == nil && place != "" {
		ctx.Response.Header.Set(header, place)
	}
	return err
}
