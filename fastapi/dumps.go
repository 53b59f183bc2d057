package fastapi

import (
	"github.com/valyala/fasthttp"

	"svc/internal/dump"
	"svc/internal/task"
)

// createDump enqueues a dump with the present API keys. It ignores the body.
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

// enqueueFile enqueues a task that creates a file and sends the place of the file in a header, unless place is "".
func (s *Server) enqueueFile(ctx *fasthttp.RequestCtx, c task.Content, header, place string) error {
	err := s.enqueue(ctx, task.New{Content: c}, fasthttp.StatusAccepted)
	if err == nil && place != "" {
		ctx.Response.Header.Set(header, place)
	}
	return err
}
