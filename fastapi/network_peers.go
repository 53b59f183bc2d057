package fastapi

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/network"
	"svc/internal/task"
)

// write says where a write comes from, and whether other instances get it.
type write struct {
	origin  *task.Origin // the leader's request that caused it; nil: a user sent it
	forward bool
}

// writeKey is the key of the request value with the write.
type writeKey struct{}

// spreads reports whether all instances of a network with a leader execute a route. Such a route is for the leader.
func (a action) spreads() bool {
	switch a {
	case actionDocumentsAdd, actionDocumentsDelete, actionDocumentsAll, actionIndexesCreate, actionIndexesUpdate, actionIndexesDelete,
		actionIndexesSwap, actionSettingsUpdate:
		return true
	}
	return false
}

// admitWrite refuses a write that is for the leader (not_a_leader), and records the origin of a write.
func (s *Server) admitWrite(ctx *fasthttp.RequestCtx) error {
	origin, err := s.origin(ctx)
	if err != nil {
		return err
	}
	w := &write{origin: origin}
	if origin != nil {
		now := s.network.Network()
		switch own := now.Version.String(); {
		case origin.Nonce == "":
			return apierr.New("inconsistent_document_change_headers", "The header `%s` is missing. Every write forwarded by a leader has one.", headerOriginNonce)
		case origin.Version < own:
			return apierr.New("network_version_too_old", "The write has version %s of the network, which is older than the version of this instance.", origin.Version)
		case origin.Version > own || !now.Led():
			return apierr.New("network_version_mismatch", "This instance does not know the network of the write. Send PATCH /network to the leader, so that it announces the network again.")
		case now.Leads() || origin.Remote != *now.Leader:
			return apierr.New("not_a_leader", "`%s` is not the leader that this instance follows. Only its leader may forward writes.", shorten([]byte(origin.Remote)))
		}
	} else if w.forward, err = s.network.CheckWrite(); err != nil {
		return err
	}
	ctx.SetUserValue(writeKey{}, w)
	return nil
}

// unescaped returns the text of a header whose value has percent escapes.
func unescaped(h *fasthttp.RequestHeader, name requestHeader) (text string, given bool, err error) {
	v := name.in(h)
	if len(v) == 0 {
		return "", false, nil
	}
	if text, err = url.PathUnescape(string(v)); err != nil {
		err = apierr.New("invalid_header_value", "The header `%s` has an invalid escape.", name)
	}
	return text, true, err
}

// leaderHeaders identify the request of another instance that caused a request.
var leaderHeaders = [...]requestHeader{headerOriginRemote, headerOriginTask, headerOriginVersion, headerOriginNonce}

// sentOn reports whether the request has headers of an instance that sends a write on.
func (s *Server) sentOn(ctx *fasthttp.RequestCtx) bool {
	return slices.ContainsFunc(leaderHeaders[:], func(name requestHeader) bool { return len(name.in(&ctx.Request.Header)) > 0 })
}

// origin returns the request of another instance that caused this one, or nil. It refuses callers that may not change the network
// before it reads the headers.
func (s *Server) origin(ctx *fasthttp.RequestCtx) (*task.Origin, error) {
	h := &ctx.Request.Header
	names := leaderHeaders
	if !s.sentOn(ctx) {
		return nil, nil
	}
	if !caller(ctx).MayOnAll(string(actionNetworkUpdate)) {
		return nil, auth.Refuse("The headers `Svc-Proxy-Origin-…` are reserved for the leader of the network. Its `writeApiKey` for this instance needs the action `%s` on the indexes `*`: "+
			"create such a key here (POST /keys), and give it to the leader (PATCH /network).", actionNetworkUpdate)
	}
	var texts [len(names)]string
	for i, name := range names {
		text, given, err := unescaped(h, name)
		if err != nil {
			return nil, err
		}
		if texts[i] = text; !given && name != headerOriginNonce { // a leader that sends no nonce is not svc, and is told so
			return nil, apierr.New("inconsistent_document_change_headers", "`%s` is missing among the headers that name the origin of a write.", name)
		}
	}
	if err := s.features.need("network", "writes from another instance"); err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(texts[1], 10, 32)
	if err != nil {
		return nil, apierr.New("invalid_header_value", "The header `…-Origin-TaskUid` must be the uid of a task, but it is %q.", texts[1])
	}
	version, err := uuid.Parse(texts[2])
	if err != nil {
		return nil, apierr.New("invalid_header_value", "The header `…-Origin-Network-Version` must be a UUID, but it is %q.", texts[2])
	}
	return &task.Origin{Remote: texts[0], TaskUID: uint32(uid), Version: version.String(), Nonce: texts[3]}, nil
}

// spread adds to a new task what the network has to do with it. The caller calls stored when the task is stored.
func (s *Server) spread(ctx *fasthttp.RequestCtx, n *task.New) (stored func()) {
	w, _ := ctx.UserValue(writeKey{}).(*write)
	if w == nil {
		return func() {}
	}
	n.Origin = w.origin
	if !w.forward || n.DryRun {
		return func() {}
	}
	f, stored := s.network.Forward()
	f.Method = string(ctx.Method())
	f.Path = network.PathWithout(writtenPath(ctx), string(ctx.URI().QueryString()), "csvDelimiter")
	switch n.Content.(type) {
	case task.AddDocuments:
		f.ContentType = contentNDJSON
	default:
		f.ContentType, f.Body = string(headerContentType.in(&ctx.Request.Header)), sentBody(ctx)
	}
	n.Forward = f
	return stored
}

// bodyKey is the key of the request value with the JSON that a handler has read.
type bodyKey struct{}

// sentBody returns the JSON that the handler has read, nil for none.
func sentBody(ctx *fasthttp.RequestCtx) []byte {
	body, _ := ctx.UserValue(bodyKey{}).(value)
	return append([]byte(nil), body...)
}

// announceNetwork takes up a change that the leader announces.
func (s *Server) announceNetwork(ctx *fasthttp.RequestCtx, origin *task.Origin) error {
	if origin.Nonce == "" { // it would not recognise the next requests, and both would wait for ever
		return apierr.New("network_version_mismatch", "The leader `%s` is not svc, so it cannot lead instances of svc. Use a network without a leader, in which they are remotes of its searches.", origin.Remote)
	}
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	if origin.Version < s.network.Network().Version.String() {
		return apierr.New("network_version_too_old", "The change has version %s of the network, which is older than the version of this instance.", origin.Version)
	}
	t, err := s.network.Announced(context.Background(), origin, body)
	if err != nil {
		return err
	}
	answerRaw(ctx, t.Summary())
	ctx.SetStatusCode(fasthttp.StatusAccepted)
	return nil
}

// networkChange reports to another instance how far a change of the network has progressed here.
func (s *Server) networkChange(ctx *fasthttp.RequestCtx) error {
	if err := s.needNetwork(); err != nil {
		return err
	}
	var q changeQuery
	if err := readObject(s, ctx, &q, changeParams); err != nil {
		return err
	}
	return answer(ctx, s.network.State(q.version, q.remote, q.restored))
}

// changeQuery is a request of an instance about a change.
type changeQuery struct {
	version  uuid.UUID
	remote   string // the instance that asks
	restored bool   // it was restored from a snapshot
}

var changeParams = []param[changeQuery]{
	{name: "version", code: "bad_request", kind: textual, shape: uuidShape, set: func(q *changeQuery, a *arg) error {
		var err error
		if q.version, err = uuid.Parse(a.text); err != nil {
			return a.expected("a UUID")
		}
		return nil
	}},
	{name: "remote", code: "bad_request", kind: textual, set: func(q *changeQuery, a *arg) error { q.remote = a.text; return nil }},
	{name: "restored", code: "bad_request", kind: flag, set: func(q *changeQuery, a *arg) error { q.restored = a.flag; return nil }},
}

// transferParams are the parameters of a request for a transfer by another instance.
var transferParams = []param[network.Transfer]{
	{name: "version", code: "bad_request", kind: textual, shape: uuidShape, set: func(t *network.Transfer, a *arg) error {
		var err error
		if t.Version, err = uuid.Parse(a.text); err != nil {
			return a.expected("a UUID")
		}
		return nil
	}},
	{name: "remote", code: "bad_request", kind: textual, set: func(t *network.Transfer, a *arg) error { t.Remote = a.text; return nil }},
	{name: "index", code: "bad_request", kind: textual, set: func(t *network.Transfer, a *arg) error { t.Index = a.text; return nil }},
	{name: "shards", code: "bad_request", kind: list, null: true, set: func(t *network.Transfer, a *arg) error { t.Shards = a.list; return nil }},
	{name: "after", code: "bad_request", kind: count, null: true, set: func(t *network.Transfer, a *arg) error {
		after := uint32(min(a.count, 1<<32-1))
		t.After = &after
		return nil
	}},
}

// networkTransfer sends documents to an instance that will own them.
func (s *Server) networkTransfer(ctx *fasthttp.RequestCtx) error {
	if err := s.needNetwork(); err != nil {
		return err
	}
	var t network.Transfer
	if err := readObject(s, ctx, &t, transferParams); err != nil {
		return err
	}
	for _, a := range [...]action{actionDocumentsGet, actionSettingsGet} {
		if !caller(ctx).MayOnAll(string(a)) {
			return auth.Refuse("The answer contains documents and settings, so the `writeApiKey` of other instances for this one also needs the action `%s` on the indexes `*`.", a)
		}
	}
	page, err := s.network.Export(s.searching, &t)
	if err != nil {
		return err
	}
	for name, v := range page.Headers() {
		ctx.Response.Header.Set(name, v)
	}
	if t.Index == "" {
		ctx.SetContentType(contentJSON)
	} else {
		ctx.SetContentType(contentNDJSON)
		ctx.Response.Header.SetContentEncoding("gzip")
	}
	ctx.Response.SetBodyRaw(page.Body)
	return nil
}
