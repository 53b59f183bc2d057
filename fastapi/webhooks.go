package fastapi

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/webhook"
)

// webhookView is a webhook as the API shows it: without its secrets.
type webhookView struct {
	UUID       uuid.UUID         `json:"uuid"`
	IsEditable bool              `json:"isEditable"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers"`
}

func viewWebhook(w *webhook.Webhook) webhookView {
	address, headers := w.Shown()
	return webhookView{w.UUID, w.Editable(), address, headers}
}

func (s *Server) listWebhooks(ctx *fasthttp.RequestCtx) error {
	shown := []webhookView{}
	for _, w := range s.webhooks.List() {
		shown = append(shown, viewWebhook(w))
	}
	return answer(ctx, struct {
		Results []webhookView `json:"results"`
	}{shown})
}

func webhookInPath(ctx *fasthttp.RequestCtx) (uuid.UUID, error) {
	text := pathValue(ctx, "webhook")
	id, err := uuid.Parse(text)
	if err != nil {
		return id, apierr.New("invalid_webhook_uuid", "`%s` in the path must be a UUID. `GET /webhooks` lists all webhooks.", shorten([]byte(text)))
	}
	return id, nil
}

func (s *Server) getWebhook(ctx *fasthttp.RequestCtx) error {
	id, err := webhookInPath(ctx)
	if err != nil {
		return err
	}
	w, err := s.webhooks.Get(id)
	if err != nil {
		return err
	}
	return answer(ctx, viewWebhook(w))
}

var webhookParams = []param[webhook.Change]{
	{name: "url", code: "invalid_webhook_url", kind: textual, shape: schema{"type": "string", "format": "uri"}, set: func(c *webhook.Change, a *arg) error {
		text := a.text
		c.URL = &text
		return nil
	}},
	{name: "headers", code: "invalid_webhook_headers", kind: raw, shape: orNull(mapOf(textOrNullShape)), set: setWebhookHeaders},
	{name: "uuid", code: "immutable_webhook_uuid", kind: raw, shape: refusedShape, set: immutable[webhook.Change]},
	{name: "isEditable", code: "immutable_webhook_is_editable", kind: raw, shape: refusedShape, set: immutable[webhook.Change]},
}

// setWebhookHeaders reads an object of texts and nulls, or null for no headers.
func setWebhookHeaders(c *webhook.Change, a *arg) error {
	if a.json.null() {
		c.ClearHeaders, c.Headers = true, nil
		return nil
	}
	if !a.json.object() {
		return a.expected("an object of header names and values, or null")
	}
	c.ClearHeaders, c.Headers = false, map[string]*string{}
	for quoted, v := range a.json.members() {
		name, ok := value(append(append([]byte{'"'}, quoted...), '"')).text()
		if !ok {
			return a.expected("an object of header names and values")
		}
		if v.null() {
			c.Headers[name] = nil
			continue
		}
		text, ok := v.text()
		if !ok {
			header := arg{json: v, in: "headers.", name: shorten(quoted), code: a.code}
			return header.expected("a string or null")
		}
		c.Headers[name] = &text
	}
	return nil
}

func (s *Server) createWebhook(ctx *fasthttp.RequestCtx) error {
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	id, _, err := requestID(ctx, body)
	if err != nil {
		return err
	}
	c := webhook.Change{UUID: id}
	if err := decode(&c, body, webhookParams, object{code: "bad_request"}); err != nil {
		return err
	}
	w, err := s.webhooks.Create(c)
	if err != nil {
		return err
	}
	concerns(ctx, w.UUID.String())
	ctx.SetStatusCode(fasthttp.StatusCreated)
	return answer(ctx, viewWebhook(w))
}

func (s *Server) updateWebhook(ctx *fasthttp.RequestCtx) error {
	id, err := webhookInPath(ctx)
	if err != nil {
		return err
	}
	var c webhook.Change
	if err := readObject(s, ctx, &c, webhookParams); err != nil {
		return err
	}
	w, err := s.webhooks.Update(id, c)
	if err != nil {
		return err
	}
	return answer(ctx, viewWebhook(w))
}

func (s *Server) deleteWebhook(ctx *fasthttp.RequestCtx) error {
	id, err := webhookInPath(ctx)
	if err != nil {
		return err
	}
	if err := s.webhooks.Delete(id); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}
