package fastapi

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bytedance/sonic"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/task"
)

// encoding writes answers with sorted maps, so that equal answers are equal bytes.
var encoding = sonic.Config{SortMapKeys: true, NoValidateJSONMarshaler: true}.Froze()

// answer sends v as JSON.
func answer(ctx *fasthttp.RequestCtx, v any) error {
	if err := chargeAnswer(ctx, v); err != nil {
		return err
	}
	b, err := encoding.Marshal(v)
	if err != nil {
		return err
	}
	return answerCharged(ctx, b)
}

// chargeAnswer charges the request for v as JSON before it is encoded. The answer to a completed change is sent whatever the budget
// says.
func chargeAnswer(ctx *fasthttp.RequestCtx, v any) error {
	if err := roomFor(ctx).Hold(jsonBytes(v)); err != nil && ctx.IsGet() {
		return err
	}
	return nil
}

// answerCharged sends JSON text that may be long and is charged to the request. It takes ownership of b. The answer to a completed
// change is sent whatever the budget says.
func answerCharged(ctx *fasthttp.RequestCtx, b []byte) error {
	if err := requestOf(ctx).bytes().Answer(int64(len(b))); err != nil && ctx.IsGet() {
		return err
	}
	answerRaw(ctx, b)
	return nil
}

// answerRaw sends JSON text that is short, or already charged. It takes ownership of the text.
func answerRaw(ctx *fasthttp.RequestCtx, b []byte) {
	ctx.SetContentType(contentJSON)
	ctx.Response.SetBodyRaw(b)
}

// answerWith sends the JSON that write appends to the buffer of the answer.
func answerWith(ctx *fasthttp.RequestCtx, write func(dst []byte) ([]byte, error)) error {
	return answerAs(ctx, contentJSON, write)
}

// page is a list cut by offset and limit.
type page[T any] struct {
	Results []T `json:"results"`
	Offset  int `json:"offset"`
	Limit   int `json:"limit"`
	Total   int `json:"total"`
}

// cut returns a page of all: at most limit items from offset on.
func cut[T any](all []T, offset, limit int) page[T] {
	start := min(offset, len(all))
	end := start + min(limit, len(all)-start)
	results := all[start:end]
	if results == nil {
		results = []T{}
	}
	return page[T]{results, offset, limit, len(all)}
}

// enqueue makes a task and answers with its summary.
func (s *Server) enqueue(ctx *fasthttp.RequestCtx, n task.New, status int) error {
	if err := s.replicate(ctx, &n); err != nil {
		return err
	}
	var err error
	if n.Key, err = idempotencyKey(ctx); err != nil {
		return err
	}
	stored := s.spread(ctx, &n)
	// Not ctx: it ends with the server, and a request that is already under way is still finished.
	t, err := s.queue.Enqueue(context.Background(), n)
	stored()
	if err != nil {
		return err
	}
	if note := noteOf(ctx); note != nil {
		note.task = &t.UID
		if note.object == "" {
			note.object = t.IndexUID
		}
	}
	if n.Forward != nil {
		s.network.Await(t.UID, n.Forward.Remotes)
	}
	answerRaw(ctx, t.Summary())
	ctx.SetStatusCode(status)
	return nil
}

// maxIdempotencyKey is the maximum length of the header Idempotency-Key.
const maxIdempotencyKey = 255

// idempotencyKey returns a key by which repetitions of a request with the header Idempotency-Key are recognised, or "" without the
// header. It covers the header, the request line and the sender.
func idempotencyKey(ctx *fasthttp.RequestCtx) (string, error) {
	h := headerIdempotencyKey.in(&ctx.Request.Header)
	switch {
	case len(h) == 0:
		return "", nil
	case len(h) > maxIdempotencyKey:
		return "", apierr.New("bad_request", "The header `%s` has %d bytes, and at most %d are allowed.", headerIdempotencyKey, len(h), maxIdempotencyKey)
	}
	return fmt.Sprintf("%q %q %q %q", h, ctx.Method(), ctx.RequestURI(), credential(ctx)), nil
}

// replicate reads the headers with which another instance chooses the uid of a task, or only asks whether it would be accepted.
func (s *Server) replicate(ctx *fasthttp.RequestCtx, n *task.New) error {
	if !s.replication {
		return nil
	}
	h := &ctx.Request.Header
	if text := headerTaskID.in(h); len(text) > 0 {
		uid, err := strconv.ParseUint(string(text), 10, 32)
		if err != nil {
			return apierr.New("bad_request", "The header `TaskId` must be a whole number from 0 to 4294967295, but it is %q.", shorten(text))
		}
		chosen := uint32(uid)
		n.UID = &chosen
	}
	if text := headerDryRun.in(h); len(text) > 0 {
		switch strings.ToLower(string(text)) {
		case "true":
			n.DryRun = true
		case "false":
		default:
			return apierr.New("bad_request", "The header `DryRun` must be `true` or `false`, but it is %q.", shorten(text))
		}
	}
	return nil
}

// rfc3339 returns a time as the API shows it: UTC, with up to nine digits of a second.
func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// validUID reports whether uid can name an index.
func validUID(uid string) bool { return index.ValidUID(uid) }

// uidForm completes "must be …".
const uidForm = "an index uid: letters from a to z in either case, digits, - and _, at most 400 characters"

// indexUID returns the uid in the path.
func indexUID(ctx *fasthttp.RequestCtx) (string, error) {
	uid := pathValue(ctx, "index_uid")
	if !validUID(uid) {
		return "", apierr.New("invalid_index_uid", "`%s` in the path must be %s.", shorten([]byte(uid)), uidForm)
	}
	return uid, nil
}
