package fastapi

import (
	"strconv"
	"strings"

	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/task"
)

// taskQuery is the query string of the routes that select tasks.
type taskQuery struct {
	task.Filter
	given bool // any filter was
}

// taskFilters are the filters of /tasks, /batches, cancellation and deletion. A `*` in a list, or for a date, means no filter, but
// counts as given.
var taskFilters = []param[taskQuery]{
	uidFilter("uids", "invalid_task_uids", func(q *taskQuery) *[]uint32 { return &q.UIDs }),
	uidFilter("batchUids", "invalid_batch_uids", func(q *taskQuery) *[]uint32 { return &q.BatchUIDs }),
	uidFilter("canceledBy", "invalid_task_canceled_by", func(q *taskQuery) *[]uint32 { return &q.CanceledBy }),
	listFilter("statuses", "invalid_task_statuses", oneOf(append(task.StatusNames(), "*")...), task.ParseStatus, func(q *taskQuery) *[]task.Status { return &q.Statuses }),
	listFilter("types", "invalid_task_types", oneOf(append(task.KindNames(), "*")...), task.ParseKind, func(q *taskQuery) *[]task.Kind { return &q.Kinds }),
	listFilter("indexUids", "invalid_index_uid", starOr(uidShape), parseIndexUID, func(q *taskQuery) *[]string { return &q.IndexUIDs }),
	dateFilter("beforeEnqueuedAt", "invalid_task_before_enqueued_at", task.ParseBefore, func(q *taskQuery) *time.Time { return &q.BeforeEnqueuedAt }),
	dateFilter("afterEnqueuedAt", "invalid_task_after_enqueued_at", task.ParseAfter, func(q *taskQuery) *time.Time { return &q.AfterEnqueuedAt }),
	dateFilter("beforeStartedAt", "invalid_task_before_started_at", task.ParseBefore, func(q *taskQuery) *time.Time { return &q.BeforeStartedAt }),
	dateFilter("afterStartedAt", "invalid_task_after_started_at", task.ParseAfter, func(q *taskQuery) *time.Time { return &q.AfterStartedAt }),
	dateFilter("beforeFinishedAt", "invalid_task_before_finished_at", task.ParseBefore, func(q *taskQuery) *time.Time { return &q.BeforeFinishedAt }),
	dateFilter("afterFinishedAt", "invalid_task_after_finished_at", task.ParseAfter, func(q *taskQuery) *time.Time { return &q.AfterFinishedAt }),
}

// taskListParams add the order and the page.
var taskListParams = append([]param[taskQuery]{
	{name: "limit", code: "invalid_task_limit", kind: textual, shape: uint32Shape, set: func(q *taskQuery, a *arg) error {
		n, err := parseUID(a)
		q.Limit = int(n)
		return err
	}},
	{name: "from", code: "invalid_task_from", kind: textual, shape: uint32Shape, set: func(q *taskQuery, a *arg) error {
		n, err := parseUID(a)
		q.From = &n
		return err
	}},
	{name: "reverse", code: "invalid_task_reverse", kind: flag, set: func(q *taskQuery, a *arg) error { q.Reverse = a.flag; return nil }},
}, taskFilters...)

func parseUID(a *arg) (uint32, error) {
	n, err := strconv.ParseUint(a.text, 10, 32)
	if err != nil {
		return 0, a.expected("a whole number from 0 to 4294967295")
	}
	return uint32(n), nil
}

func parseIndexUID(uid string) (string, error) {
	if !validUID(uid) && uid != task.RulesIndex {
		return "", apierr.New("invalid_index_uid", "`%s` in `indexUids` must be %s.", shorten([]byte(uid)), uidForm)
	}
	return uid, nil
}

func uidFilter(name string, code apierr.Code, field func(*taskQuery) *[]uint32) param[taskQuery] {
	return listFilter(name, code, starOr(uint32Shape), func(piece string) (uint32, error) {
		return parseUID(&arg{text: piece, name: name, code: code})
	}, field)
}

func listFilter[T any](name string, code apierr.Code, shape schema, parse func(string) (T, error), field func(*taskQuery) *[]T) param[taskQuery] {
	return param[taskQuery]{name: name, code: code, kind: textual, shape: listOf(shape), set: func(q *taskQuery, a *arg) error {
		q.given = true
		chosen := []T{}
		star := false
		for _, piece := range splitList(a.text) {
			if piece == "*" {
				star = true
				continue
			}
			x, err := parse(piece)
			if err != nil {
				return err
			}
			chosen = append(chosen, x)
		}
		if !star {
			*field(q) = chosen
		}
		return nil
	}}
}

func dateFilter(name string, code apierr.Code, parse func(string, apierr.Code) (time.Time, error), field func(*taskQuery) *time.Time) param[taskQuery] {
	return param[taskQuery]{name: name, code: code, kind: textual, shape: momentShape, set: func(q *taskQuery, a *arg) (err error) {
		q.given = true
		if a.text != "*" {
			*field(q), err = parse(a.text, code)
		}
		return err
	}}
}

func (s *Server) listTasks(ctx *fasthttp.RequestCtx) error {
	q := taskQuery{Filter: task.Filter{Limit: defaultLimit, Allowed: caller(ctx).Limit(), Room: roomFor(ctx)}}
	if err := decodeQuery(&q, ctx.QueryArgs(), taskListParams); err != nil {
		return err
	}
	followAll(ctx, q.IndexUIDs)
	tasks, err := s.queue.Tasks(q.Filter)
	if err != nil {
		return err
	}
	return answerList(s, ctx, tasks.Results, uidPage{tasks.Total, q.Limit, tasks.From, tasks.Next})
}

// uidPage has the paging members of a list that is cut by uids.
type uidPage struct {
	Total int     `json:"total"`
	Limit int     `json:"limit"`
	From  *uint32 `json:"from"`
	Next  *uint32 `json:"next"`
}

// uidInPath reads a number in the path.
func uidInPath(ctx *fasthttp.RequestCtx, name string, code apierr.Code) (uint32, error) {
	return parseUID(&arg{text: pathValue(ctx, name), name: name, code: code})
}

func (s *Server) getTask(ctx *fasthttp.RequestCtx) error {
	uid, err := uidInPath(ctx, "task_id", "invalid_task_uids")
	if err != nil {
		return err
	}
	t, err := s.queue.Shown(uid, caller(ctx).Limit(), roomFor(ctx))
	if err != nil {
		return err
	}
	return answer(ctx, t)
}

// taskDocuments streams the payload of an unfinished task, as NDJSON.
func (s *Server) taskDocuments(ctx *fasthttp.RequestCtx) error {
	uid, err := uidInPath(ctx, "task_id", "invalid_task_uids")
	if err != nil {
		return err
	}
	if err := s.features.need("getTaskDocumentsRoute", "reading the documents of a task"); err != nil {
		return err
	}
	if _, err := s.queue.Shown(uid, caller(ctx).Limit(), roomFor(ctx)); err != nil {
		return err
	}
	docs, err := s.queue.Documents(uid)
	if err != nil {
		return err
	}
	ctx.SetContentType(contentNDJSON)
	ctx.SetBodyStream(docs, -1)
	return nil
}

func (s *Server) cancelTasks(ctx *fasthttp.RequestCtx) error {
	return s.enqueueChosen(ctx, func(query string, uids []uint32) task.Content { return task.CancelTasks{Query: query, Tasks: uids} })
}

func (s *Server) deleteTasks(ctx *fasthttp.RequestCtx) error {
	return s.enqueueChosen(ctx, func(query string, uids []uint32) task.Content { return task.DeleteTasks{Query: query, Tasks: uids} })
}

// enqueueChosen enqueues a task on the tasks that the query string now selects.
func (s *Server) enqueueChosen(ctx *fasthttp.RequestCtx, content func(query string, uids []uint32) task.Content) error {
	q := taskQuery{Filter: task.Filter{Allowed: caller(ctx).Limit()}}
	if err := decodeQuery(&q, ctx.QueryArgs(), taskFilters); err != nil {
		return err
	}
	followAll(ctx, q.IndexUIDs)
	if !q.given {
		return apierr.New("missing_task_filters", "Select tasks by at least one of %s.", taskFilterNames())
	}
	uids, err := s.queue.Match(q.Filter)
	if err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{Content: content("?"+string(ctx.URI().QueryString()), uids)}, fasthttp.StatusOK)
}

// compactTasks shrinks the queue's file to the size of its tasks. Writes wait meanwhile; nothing has to be done afterwards.
func (s *Server) compactTasks(ctx *fasthttp.RequestCtx) error {
	if err := s.features.need("taskQueueCompactionRoute", "compacting the task queue"); err != nil {
		return err
	}
	before, after, err := s.queue.Compact()
	if err != nil {
		e := s.public(ctx, err)
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
		return answer(ctx, struct {
			Status       string `json:"status"`
			ErrorMessage string `json:"errorMessage"`
		}{"failed", e.Message})
	}
	return answer(ctx, struct {
		PreSize        string `json:"preSize"`
		PostSize       string `json:"postSize"`
		Status         string `json:"status"`
		ActionRequired string `json:"actionRequired"`
	}{task.FormatSize(before), task.FormatSize(after), "succeeded", "none: the queue continues with the smaller file"})
}

func taskFilterNames() string {
	names := make([]string, len(taskFilters))
	for i := range taskFilters {
		names[i] = "`" + taskFilters[i].name + "`"
	}
	return strings.Join(names, ", ")
}
