package fastapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/budget"
	"svc/internal/chat"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/mapped"
	"svc/internal/query"
	"svc/internal/search"
	"svc/internal/settings"
	"svc/segment"
)

const (
	// maxConversations is how many are held at once. Each waits for its provider most of the time.
	maxConversations = 1000

	// chatRetry is how long clients that connect again by themselves are to wait before they do.
	chatRetry = 10 * time.Second
)

// converse holds a conversation with the model of a workspace. Errors after the start of the stream are sent as events in it.
func (s *Server) converse(ctx *fasthttp.RequestCtx) error {
	if err := s.needChats(); err != nil {
		return err
	}
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	r, err := chat.ParseRequest(body)
	if err != nil {
		return err
	}
	name := workspace(ctx)
	w, err := s.chats.Get(name)
	if err != nil {
		return err
	}
	if s.conversations.Add(1) > maxConversations {
		s.conversations.Add(-1)
		return apierr.New("too_many_search_requests", "%d conversations are running, which is the limit. Try again in a few seconds.", maxConversations)
	}
	streams := false
	defer func() {
		if !streams { // also after a panic: a segment may be damaged
			s.conversations.Add(-1)
		}
	}()
	searcher := &chatSearcher{s: s, workspace: name, credential: credential(ctx)}
	indexes, err := s.chatIndexes(ctx)
	if err != nil {
		return err
	}
	streams = true
	s.streamEvents(ctx, func(ctx context.Context, e *eventStream) {
		defer s.conversations.Add(-1)
		if e.retry(chatRetry) != nil {
			return
		}
		begin := time.Now()
		report := s.providers.Converse(ctx, w, r, indexes, searcher, e.send)
		s.metrics.talked(name, r.Model, &report)
		attrs := []slog.Attr{
			slog.String("workspace", name), slog.String("model", shorten([]byte(r.Model))), slog.Int("rounds", report.Rounds), slog.Int("searches", report.Searches),
			slog.Int("tokens", report.Usage.Total), slog.Duration("time", time.Since(begin)),
		}
		level := slog.LevelInfo
		if err := report.Err; err != nil {
			attrs = append(attrs, slog.Any("error", err))
			if !errors.Is(err, errLeft) && !errors.Is(err, errStopping) {
				level = slog.LevelWarn
			}
		}
		s.log.LogAttrs(ctx, level, "conversation ended", attrs...)
	})
	return nil
}

// chatIndexes returns the indexes that the caller may search, with the fields to filter by. It reveals nothing about documents that a
// tenant token hides.
func (s *Server) chatIndexes(ctx *fasthttp.RequestCtx) ([]chat.Index, error) {
	limited, _, err := s.turn(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer limited.end()
	c := caller(ctx)
	var all []chat.Index
	hinted := 0
	for _, uid := range s.catalog.UIDs() {
		ix := s.catalog.Get(uid)
		if ix == nil || !c.May(string(actionSearch), uid) {
			continue
		}
		x, err := s.chatIndex(limited, ix, c, hinted < chat.MaxHintBytes)
		if err != nil {
			if e := new(apierr.Error); errors.As(err, &e) && e.Status()/100 == 4 { // the filter of the caller's token: each search would fail
				continue
			}
			return nil, err
		}
		for _, f := range x.Fields {
			hinted += len(f.Name) + len(strings.Join(f.Values, ", "))
		}
		all = append(all, x)
	}
	return all, nil
}

// chatIndex describes an index to a language model: its contents and, if hints is set, the filterable fields and some of their
// values, as far as the caller may see them. It describes an index without hints that is damaged or cannot be opened: the other indexes
// can be searched, and a search of this one has an error that says why.
func (s *Server) chatIndex(ctx context.Context, ix *index.Index, c *auth.Caller, hints bool) (chat.Index, error) {
	o := ix.Outline()
	x := chat.Index{UID: o.UID, Description: o.Settings.Chat.Description}
	if !hints {
		return x, nil
	}
	rule, err := s.ruleFor(c, o.UID)
	if err != nil || rule == nil && !filters(o.Fields) {
		return x, err
	}
	v, err := ix.View()
	if err != nil {
		s.withoutHints(ctx, o.UID, err)
		return x, nil
	}
	defer v.Release()
	foreign := s.foreignOf(c, s.catalog.Views())
	defer foreign.Release()
	err = mapped.Guard(func() error {
		fields, err := search.FilterHints(ctx, v, rule, s.features.on("containsFilter"), foreign)
		for _, f := range fields {
			x.Fields = append(x.Fields, chat.Field{Name: f.Field, Values: f.Values})
		}
		return err
	})
	if apierr.IsCorruption(err) {
		s.withoutHints(ctx, o.UID, err)
		return x, nil
	}
	return x, err
}

// filters reports whether filters may use a field.
func filters(fields *settings.Fields) bool {
	for id := range fields.Len() {
		if fields.Info(segment.FieldID(id)).Filters() {
			return true
		}
	}
	return false
}

// withoutHints logs why a model is not told about the fields of an index.
func (s *Server) withoutHints(ctx context.Context, uid string, err error) {
	s.log.LogAttrs(ctx, slog.LevelWarn, "a conversation begins without the filterable fields of an index", slog.String("index", uid), slog.Any("error", err))
}

// chatSearcher searches for a model, with the key of the client. It outlives the request.
type chatSearcher struct {
	s          *Server
	workspace  string
	credential string
}

// Search runs a search, for which it takes a slot.
func (c *chatSearcher) Search(ctx context.Context, q chat.Query) (*chat.Found, error) {
	s := c.s
	s.metrics.chatSearches.WithLabelValues(chatSearchType).Inc()
	found, err := c.recovered(ctx, q)
	if err == nil || errors.As(err, new(*apierr.Error)) && apierr.From(err).Code != apierr.Internal {
		return found, err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, searchTimeout()
	case errors.Is(err, budget.ErrFull):
		return nil, tooManySearches()
	case ctx.Err() != nil: // the client has left, or the server stops: the conversation ends
		return nil, context.Cause(ctx)
	}
	s.log.LogAttrs(ctx, slog.LevelError, "a search of a conversation failed", slog.String("workspace", c.workspace), slog.String("index", q.Index), slog.Any("error", err))
	if e := apierr.From(err); e.Code != apierr.Internal {
		return nil, e
	}
	return nil, apierr.New(apierr.Internal, "The search failed. The server log has the cause.")
}

// recovered is search with the error of a panic, such as that of a damaged segment. Otherwise the stream would end without an event that
// says why.
func (c *chatSearcher) recovered(ctx context.Context, q chat.Query) (found *chat.Found, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if damage := mapped.Damage(p); damage != nil {
			err = damage
			return
		}
		err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}()
	return c.search(ctx, q)
}

// search runs a search that the model asks for, with the rights of the conversation's caller. An invalid
// search is an answer to the model, which can do better, and no error.
func (c *chatSearcher) search(ctx context.Context, q chat.Query) (*chat.Found, error) {
	s := c.s
	if !validUID(q.Index) {
		return nil, apierr.New("invalid_index_uid", "`%s` must be %s.", shorten([]byte(q.Index)), uidForm)
	}
	var who *auth.Caller
	aliases, named := s.catalog.Aliases(), q.Index
	q.Index = aliases.Index(named)
	if s.keys.Protected() {
		var err error
		if who, err = s.keys.AuthorizeNamed(c.credential, string(actionSearch), q.Index, named, aliases.Of); err != nil {
			return nil, err
		}
	}
	rule, err := s.ruleFor(who, q.Index)
	if err != nil {
		return nil, err
	}
	var asked *filter.Expr
	if q.Filter != "" {
		if asked, err = filter.FromJSON(jsontext.AppendQuoted(nil, q.Filter), "invalid_search_filter"); err == nil {
			err = s.checkFilter(asked)
		}
		if err != nil {
			return nil, err
		}
	}
	ix := s.catalog.Get(q.Index)
	if ix == nil {
		return nil, s.catalog.Missing(q.Index)
	}
	limited, end, err := s.turnBeside(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	v, err := ix.View()
	if err != nil {
		return nil, err
	}
	defer v.Release()
	foreign := s.foreignOf(who, s.catalog.Views())
	defer foreign.Release()
	r := chatRequest(v)
	r.Query, r.Filter = q.Q, filter.And(asked, rule)
	r.Contains, r.Foreign, r.Rules = s.features.on("containsFilter"), foreign, s.activeRules()
	r.Log = s.log
	text, documents, err := search.Passages(limited, v, r)
	if refused := new(apierr.Error); errors.As(err, &refused) && strings.HasPrefix(string(refused.Code), "invalid_search_") {
		return &chat.Found{Text: refused.Message, Documents: []byte("[]")}, nil // the model can do better
	}
	if err != nil {
		return nil, err
	}
	return &chat.Found{Text: text, Documents: documents}, nil
}

// chatRequest is a search as the chat settings of an index want it.
func chatRequest(v *index.View) *search.Request {
	p := &v.Settings.Chat.SearchParameters
	r := &search.Request{Limit: defaultLimit, Distinct: p.Distinct, RankingScoreThreshold: p.RankingScoreThreshold}
	if p.Limit != nil {
		r.Limit = *p.Limit
	}
	if p.Sort != nil {
		r.Sort = *p.Sort
	}
	if p.AttributesToSearchOn != nil {
		r.SearchOn = *p.AttributesToSearchOn
	}
	if p.MatchingStrategy != nil {
		switch *p.MatchingStrategy {
		case "all":
			r.Strategy = query.All
		case "frequency":
			r.Strategy = query.Frequency
		}
	}
	if h := p.Hybrid; h != nil {
		r.Hybrid = &search.Hybrid{Embedder: h.Embedder}
		if ratio, err := h.SemanticRatio.Float64(); err == nil {
			r.Hybrid.Ratio = &ratio
		}
	}
	return r
}
