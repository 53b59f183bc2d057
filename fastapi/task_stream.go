package fastapi

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/task"
)

const (
	// maxTaskStreams is the maximum number of open streams of tasks and batches.
	maxTaskStreams = 1000

	// taskStreamTime ends a stream; clients connect again.
	taskStreamTime = time.Hour

	// A stream without events sends a comment this often, so that proxies keep it open, and checks whether its key is still valid.
	heartbeatPause = 15 * time.Second

	// streamPause times the number of streams is how long each collects changes before it reads them: all together they read the
	// queue at most ten thousand times a second.
	streamPause = 100 * time.Microsecond
)

// changed are tasks or batches as they are sent.
type changed interface{ AppendJSON([]byte) []byte }

func (s *Server) streamTasks(ctx *fasthttp.RequestCtx) error {
	return streamChanges(s, ctx, s.queue.WatchTasks, s.queue.ChangedTasks)
}

func (s *Server) streamBatches(ctx *fasthttp.RequestCtx) error {
	return streamChanges(s, ctx, s.queue.WatchBatches, s.queue.ChangedBatches)
}

func (s *Server) needTaskStreams() error {
	return s.features.need("tasksStreamingRoute", "streams of tasks and batches")
}

// streamChanges sends an event for each selected task or batch that changes from now on. If it changes again before the client has
// read it, it is sent once, in its latest state.
func streamChanges[T changed](s *Server, ctx *fasthttp.RequestCtx, open func() *task.Watch, next func(*task.Watch, task.Filter) ([]T, error)) error {
	if err := s.needTaskStreams(); err != nil {
		return err
	}
	var q taskQuery
	if err := decodeQuery(&q, ctx.QueryArgs(), taskFilters); err != nil {
		return err
	}
	followAll(ctx, q.IndexUIDs)
	if ctx.IsHead() {
		ctx.SetContentType(contentEvents)
		return nil
	}
	if s.taskStreams.Add(1) > maxTaskStreams {
		s.taskStreams.Add(-1)
		return apierr.New("too_many_search_requests", "%d streams of tasks and batches are open, which is the limit. Close some, or try again in a few seconds.", maxTaskStreams)
	}
	credential := credential(ctx)
	room := roomFor(ctx)
	q.Room = room
	w := open() // before the headers are sent, so that no change after that is missed
	s.streamEvents(ctx, func(ctx context.Context, e *eventStream) {
		defer s.taskStreams.Add(-1)
		defer w.Close()
		ctx, end := context.WithTimeout(ctx, taskStreamTime)
		defer end()
		err := sendChanges(ctx, s, e, w, func() ([]T, error) {
			room.Empty() // those before are sent
			if err := s.needTaskStreams(); err != nil {
				return nil, err
			}
			if s.keys.Protected() {
				c, err := s.keys.AuthorizeNamed(credential, string(actionTasksGet), "", "", s.catalog.Aliases().Of)
				if err != nil {
					return nil, err
				}
				q.Allowed = c.Limit()
			}
			return next(w, q.Filter)
		})
		// Log only errors of the server: a changed key or feature, and a client that left, are no errors.
		if errors.As(err, new(*apierr.Error)) && apierr.From(err).Code == apierr.Internal || apierr.IsCorruption(err) {
			s.log.LogAttrs(ctx, slog.LevelError, "a stream of tasks ended", slog.Any("error", err))
		}
	})
	return nil
}

// sendChanges sends what next returns whenever the watch reports changes, and comments in between, until ctx ends or the client
// disconnects.
func sendChanges[T changed](ctx context.Context, s *Server, e *eventStream, w *task.Watch, next func() ([]T, error)) error {
	heartbeat := time.NewTimer(heartbeatPause)
	defer heartbeat.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-w.Changed():
		case <-heartbeat.C:
			if err := e.comment(); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
		all, err := next()
		if err != nil {
			return err
		}
		var b []byte
		for _, x := range all {
			b = x.AppendJSON(b[:0])
			if err := e.send(b); err != nil {
				return err
			}
		}
		heartbeat.Reset(heartbeatPause)
		pause.Reset(time.Duration(s.taskStreams.Load()) * streamPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
	}
}
