package fastapi

import (
	"slices"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/index"
	"svc/internal/search"
	"svc/internal/task"
)

// paging is offset and limit, with their defaults.
type paging struct{ offset, limit int }

const defaultLimit = 20

func pagingParams(offsetCode, limitCode apierr.Code) []param[paging] {
	return []param[paging]{
		{name: "offset", code: offsetCode, kind: count, set: func(p *paging, a *arg) error { p.offset = a.count; return nil }},
		{name: "limit", code: limitCode, kind: count, set: func(p *paging, a *arg) error { p.limit = a.count; return nil }},
	}
}

var indexListParams = pagingParams("invalid_index_offset", "invalid_index_limit")

// indexView is an index as the API shows it.
type indexView struct {
	UID        string  `json:"uid"`
	CreatedAt  string  `json:"createdAt"`
	UpdatedAt  string  `json:"updatedAt"`
	PrimaryKey *string `json:"primaryKey"`
}

func viewIndex(v *index.Outline) indexView {
	shown := indexView{UID: v.UID, CreatedAt: rfc3339(v.CreatedAt), UpdatedAt: rfc3339(v.UpdatedAt)}
	if v.PrimaryKey != "" {
		shown.PrimaryKey = &v.PrimaryKey
	}
	return shown
}

// view takes a view of the index in the path for a search. The caller releases it.
func (s *Server) view(ctx *fasthttp.RequestCtx) (*index.View, error) {
	ix, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	return ix.View()
}

// plainView is view for routes other than searches.
func (s *Server) plainView(ctx *fasthttp.RequestCtx) (*index.View, error) {
	ix, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	return ix.ReadView()
}

// outline returns what is known about the index in the path without opening it.
func (s *Server) outline(ctx *fasthttp.RequestCtx) (*index.Outline, error) {
	ix, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	return ix.Outline(), nil
}

// index returns the index in the path.
func (s *Server) index(ctx *fasthttp.RequestCtx) (*index.Index, error) {
	uid, err := indexUID(ctx)
	if err != nil {
		return nil, err
	}
	ix := s.catalog.Get(uid)
	if ix == nil {
		return nil, s.catalog.Missing(uid)
	}
	return ix, nil
}

// foreign returns the indexes that foreign keys may lead a request to, or nil while the experimental feature is off. The caller
// releases them when the answer is written.
func (s *Server) foreign(ctx *fasthttp.RequestCtx) *search.Foreign {
	return s.foreignAmong(ctx, s.catalog.Views())
}

// foreignAmong is foreign for a request that already holds views, and releases them itself.
func (s *Server) foreignAmong(ctx *fasthttp.RequestCtx, views *index.Views) *search.Foreign {
	return s.foreignOf(caller(ctx), views)
}

// foreignOf is foreignAmong for a given caller, outside of a request.
func (s *Server) foreignOf(c *auth.Caller, views *index.Views) *search.Foreign {
	if !s.features.on("foreignKeys") {
		return nil
	}
	return &search.Foreign{Views: views, MayRead: c.Sees}
}

// reached returns the uids of the indexes that the caller has a right to, in order.
func (s *Server) reached(ctx *fasthttp.RequestCtx) []string {
	uids := s.catalog.UIDs()
	if allowed := caller(ctx).Limit(); allowed != nil {
		uids = slices.DeleteFunc(uids, func(uid string) bool { return !allowed(uid) })
	}
	return uids
}

func (s *Server) listIndexes(ctx *fasthttp.RequestCtx) error {
	p := paging{limit: defaultLimit}
	if err := decodeQuery(&p, ctx.QueryArgs(), indexListParams); err != nil {
		return err
	}
	return answerPage(s, ctx, s.reached(ctx), p.offset, p.limit, func(uid string) (shown indexView, ok bool) {
		ix := s.catalog.Get(uid)
		if ix == nil { // deleted since
			return shown, false
		}
		return viewIndex(ix.Outline()), true
	})
}

func (s *Server) getIndex(ctx *fasthttp.RequestCtx) error {
	o, err := s.outline(ctx)
	if err != nil {
		return err
	}
	return answer(ctx, viewIndex(o))
}

type indexChange struct {
	uid, primaryKey string
	emptyKey        bool // a primary key is given, and empty
}

func (c *indexChange) setUID(a *arg) error {
	if !validUID(a.text) {
		return a.expected(uidForm)
	}
	c.uid = a.text
	return nil
}

func (c *indexChange) setPrimaryKey(a *arg) error {
	c.primaryKey, c.emptyKey = a.text, a.text == ""
	return nil
}

var createIndexParams = []param[indexChange]{
	{name: "uid", code: "invalid_index_uid", kind: textual, shape: uidShape, set: (*indexChange).setUID},
	{name: "primaryKey", code: "invalid_index_primary_key", kind: textual, null: true, set: (*indexChange).setPrimaryKey},
}

func (s *Server) createIndex(ctx *fasthttp.RequestCtx) error {
	var c indexChange
	if err := readObject(s, ctx, &c, createIndexParams); err != nil {
		return err
	}
	if c.uid == "" {
		return apierr.New("missing_index_uid", "`uid` is missing. It is the name of the index.")
	}
	if err := within(ctx, c.uid); err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{IndexUID: c.uid, Content: task.CreateIndex{PrimaryKey: c.primaryKey, EmptyKey: c.emptyKey}}, fasthttp.StatusAccepted)
}

var updateIndexParams = []param[indexChange]{
	{name: "uid", code: "invalid_index_uid", kind: textual, null: true, shape: uidShape, set: (*indexChange).setUID},
	{name: "primaryKey", code: "invalid_index_primary_key", kind: textual, null: true, set: (*indexChange).setPrimaryKey},
	{name: "createdAt", code: "immutable_index_created_at", kind: raw, shape: refusedShape, set: immutable[indexChange]},
	{name: "updatedAt", code: "immutable_index_updated_at", kind: raw, shape: refusedShape, set: immutable[indexChange]},
}

// immutable refuses a field that the server alone sets.
func immutable[T any](_ *T, a *arg) error {
	return apierr.New(a.code, "`%s` cannot be changed. Leave it out.", a.path())
}

func (s *Server) updateIndex(ctx *fasthttp.RequestCtx) error {
	var c indexChange
	if err := readObject(s, ctx, &c, updateIndexParams); err != nil {
		return err
	}
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	if c.uid != "" {
		if err := within(ctx, c.uid); err != nil {
			return err
		}
	}
	return s.enqueue(ctx, task.New{IndexUID: uid, Content: task.UpdateIndex{PrimaryKey: c.primaryKey, EmptyKey: c.emptyKey, NewUID: c.uid}}, fasthttp.StatusAccepted)
}

func (s *Server) deleteIndex(ctx *fasthttp.RequestCtx) error {
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{IndexUID: uid, Content: task.DeleteIndex{}}, fasthttp.StatusAccepted)
}

func (s *Server) compactIndex(ctx *fasthttp.RequestCtx) error {
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{IndexUID: uid, Content: task.CompactIndex{}}, fasthttp.StatusAccepted)
}
