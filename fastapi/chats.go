package fastapi

import (
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/chat"
)

// chatView is a workspace as lists show it.
type chatView struct {
	UID string `json:"uid"`
}

func (s *Server) needChats() error { return s.features.need("chatCompletions", "chats") }

// workspace returns the name in the path.
func workspace(ctx *fasthttp.RequestCtx) string { return pathValue(ctx, "workspace") }

func (s *Server) listChats(ctx *fasthttp.RequestCtx) error {
	if err := s.needChats(); err != nil {
		return err
	}
	p := paging{limit: defaultLimit}
	if err := decodeQuery(&p, ctx.QueryArgs(), indexListParams); err != nil {
		return err
	}
	return answerPage(s, ctx, s.chats.Names(), p.offset, p.limit, func(name string) (chatView, bool) { return chatView{name}, true })
}

func (s *Server) getChat(ctx *fasthttp.RequestCtx) error {
	if err := s.needChats(); err != nil {
		return err
	}
	if _, err := s.chats.Get(workspace(ctx)); err != nil {
		return err
	}
	return answer(ctx, chatView{workspace(ctx)})
}

func (s *Server) deleteChat(ctx *fasthttp.RequestCtx) error {
	if err := s.needChats(); err != nil {
		return err
	}
	if err := s.chats.Delete(workspace(ctx)); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

func (s *Server) getChatSettings(ctx *fasthttp.RequestCtx) error {
	if err := s.needChats(); err != nil {
		return err
	}
	w, err := s.chats.Get(workspace(ctx))
	if err != nil {
		return err
	}
	return answer(ctx, w.Shown())
}

func (s *Server) resetChatSettings(ctx *fasthttp.RequestCtx) error {
	if err := s.needChats(); err != nil {
		return err
	}
	w, err := s.chats.Reset(workspace(ctx))
	if err != nil {
		return err
	}
	return answer(ctx, w.Shown())
}

// textOrNull takes a string, or null for none.
func textOrNull[T any](name string, place func(*T) **string) param[T] {
	return param[T]{name: name, code: "bad_request", kind: raw, shape: textOrNullShape, set: func(dst *T, a *arg) error {
		if a.json.null() {
			*place(dst) = nil
			return nil
		}
		text, ok := a.json.text()
		if !ok {
			return a.expected("a string or null")
		}
		*place(dst) = &text
		return nil
	}}
}

var chatParams = []param[chat.Settings]{
	{name: "source", code: "bad_request", kind: raw, shape: textOrNullShape, set: func(s *chat.Settings, a *arg) error {
		if a.json.null() {
			s.Source = chat.New().Source
			return nil
		}
		name, ok := a.json.text()
		if !ok {
			return a.expected("the name of a source")
		}
		s.Source = chat.Source(name)
		return nil
	}},
	textOrNull("orgId", func(s *chat.Settings) **string { return &s.OrgID }),
	textOrNull("projectId", func(s *chat.Settings) **string { return &s.ProjectID }),
	textOrNull("apiVersion", func(s *chat.Settings) **string { return &s.APIVersion }),
	textOrNull("deploymentId", func(s *chat.Settings) **string { return &s.DeploymentID }),
	textOrNull("baseUrl", func(s *chat.Settings) **string { return &s.BaseURL }),
	{name: "apiKey", code: "bad_request", kind: raw, shape: textOrNullShape, set: func(s *chat.Settings, a *arg) error {
		if a.json.null() {
			s.APIKey = nil
			return nil
		}
		key, ok := a.json.text()
		if !ok {
			return apierr.New(a.code, "`%s` must be a string or null, but it is %s.", a.path(), a.json.kind()) // never quote a secret
		}
		s.APIKey = &key
		return nil
	}},
	{name: "prompts", code: "bad_request", kind: raw, shape: orNull(objectOf(promptParams)), set: func(s *chat.Settings, a *arg) error {
		if a.json.null() {
			s.Prompts = chat.Prompts{}
			return nil
		}
		return decode(&s.Prompts, a.json, promptParams, object{path: a.path() + ".", code: a.code, notCode: a.code})
	}},
}

var promptParams = []param[chat.Prompts]{
	textOrNull("system", func(p *chat.Prompts) **string { return &p.System }),
	textOrNull("searchDescription", func(p *chat.Prompts) **string { return &p.SearchDescription }),
	textOrNull("searchQParam", func(p *chat.Prompts) **string { return &p.SearchQParam }),
	textOrNull("searchFilterParam", func(p *chat.Prompts) **string { return &p.SearchFilterParam }),
	textOrNull("searchIndexUidParam", func(p *chat.Prompts) **string { return &p.SearchIndexUIDParam }),
}

func (s *Server) updateChatSettings(ctx *fasthttp.RequestCtx) error {
	if err := s.needChats(); err != nil {
		return err
	}
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	w, err := s.chats.Update(workspace(ctx), func(w *chat.Settings) error {
		return decode(w, body, chatParams, object{code: "bad_request"})
	})
	if err != nil {
		return err
	}
	return answer(ctx, w.Shown())
}
