package fastapi

import (
	"bytes"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/search"
	"svc/internal/template"
)

// renderInput is the body of a rendering.
type renderInput struct {
	template, input renderSource
	rendered        bool // input is given
}

// renderSource says where a template or a document comes from.
type renderSource struct {
	kind, uid, embedder, id string
	inline                  value // nil: not given
	maxBytes                int
}

const (
	codeRenderTemplate apierr.Code = "invalid_render_template"
	codeRenderInput    apierr.Code = "invalid_render_input"
)

var renderParams = []param[renderInput]{
	{name: "template", code: codeRenderTemplate, kind: raw, set: func(r *renderInput, a *arg) error {
		return decode(&r.template, a.json, renderTemplateParams, object{path: "template.", code: a.code, notCode: a.code})
	}},
	{name: "input", code: codeRenderInput, kind: raw, null: true, set: func(r *renderInput, a *arg) error {
		r.rendered = true
		return decode(&r.input, a.json, renderInputParams, object{path: "input.", code: a.code, notCode: a.code})
	}},
}

func renderParam(name string, code apierr.Code, field func(*renderSource) *string) param[renderSource] {
	return param[renderSource]{name: name, code: code, kind: textual, null: true, set: func(s *renderSource, a *arg) error { *field(s) = a.text; return nil }}
}

var (
	renderTemplateParams = []param[renderSource]{
		renderParam("kind", codeRenderTemplate, func(s *renderSource) *string { return &s.kind }),
		renderParam("indexUid", codeRenderTemplate, func(s *renderSource) *string { return &s.uid }),
		renderParam("embedder", codeRenderTemplate, func(s *renderSource) *string { return &s.embedder }),
		{name: "inline", code: codeRenderTemplate, kind: raw, null: true, set: func(s *renderSource, a *arg) error { s.inline = a.json; return nil }},
		{name: "documentTemplateMaxBytes", code: codeRenderTemplate, kind: count, null: true, set: func(s *renderSource, a *arg) error { s.maxBytes = a.count; return nil }},
	}
	renderInputParams = []param[renderSource]{
		renderParam("kind", codeRenderInput, func(s *renderSource) *string { return &s.kind }),
		renderParam("indexUid", codeRenderInput, func(s *renderSource) *string { return &s.uid }),
		renderParam("id", codeRenderInput, func(s *renderSource) *string { return &s.id }),
		{name: "inline", code: codeRenderInput, kind: raw, null: true, set: func(s *renderSource, a *arg) error { s.inline = a.json; return nil }},
	}
)

// renderTemplate shows what a document template makes of a document, so that templates can be tried without indexing anything.
func (s *Server) renderTemplate(ctx *fasthttp.RequestCtx) error {
	var r renderInput
	if err := readObject(s, ctx, &r, renderParams); err != nil {
		return err
	}
	views := s.catalog.Views()
	defer views.Release()
	source, maxBytes, err := renderedTemplate(ctx, views, &r.template)
	if err != nil {
		return err
	}
	t, err := template.Parse(source)
	if err != nil {
		return apierr.New(codeRenderTemplate, "The template cannot be read: %v.", err)
	}
	b := append(appendString([]byte(`{"template":`), source), `,"rendered":`...)
	if !r.rendered {
		answerRaw(ctx, append(b, "null}"...))
		return nil
	}
	doc, v, err := renderedDocument(ctx, views, &r.input)
	if err != nil {
		return err
	}
	searchable := func(string) bool { return true }
	if v != nil {
		searchable = func(name string) bool { return v.Fields.InfoOf(name).Searchable }
	}
	text, err := t.Render(doc, searchable, maxBytes)
	if err != nil {
		return apierr.New(codeRenderTemplate, "The template cannot be rendered for the document: %v.", err)
	}
	answerRaw(ctx, append(appendString(b, text), '}'))
	return nil
}

// renderedTemplate returns a template, and how many bytes it may make; 0: any number.
func renderedTemplate(ctx *fasthttp.RequestCtx, views *index.Views, from *renderSource) (source string, maxBytes int, err error) {
	if from.kind == "inlineDocumentTemplate" {
		source, ok := "", false
		if from.inline != nil {
			source, ok = from.inline.text()
		}
		if !ok {
			return "", 0, apierr.New(codeRenderTemplate, "`template.inline` must be a string: the template.")
		}
		return source, from.maxBytes, nil
	}
	if from.kind != "documentTemplate" && from.kind != "chatDocumentTemplate" {
		return "", 0, apierr.New(codeRenderTemplate, "`template.kind` must be `inlineDocumentTemplate`, `documentTemplate` or `chatDocumentTemplate`.")
	}
	if err := within(ctx, from.uid); err != nil {
		return "", 0, err
	}
	v, err := queriedView(views, from.uid)
	if err != nil {
		return "", 0, err
	}
	if from.kind == "chatDocumentTemplate" {
		return v.Settings.Chat.DocumentTemplate, v.Settings.Chat.DocumentTemplateMaxBytes, nil
	}
	e, ok := v.Settings.Embedders[from.embedder]
	switch {
	case !ok:
		return "", 0, apierr.New(codeRenderTemplate, "The index `%s` has no embedder `%s`.", from.uid, shorten([]byte(from.embedder)))
	case e.DocumentTemplate == nil:
		return "", 0, apierr.New(codeRenderTemplate, "The embedder `%s` of the index `%s` has no `documentTemplate`.", shorten([]byte(from.embedder)), from.uid)
	case e.DocumentTemplateMaxBytes != nil:
		maxBytes = *e.DocumentTemplateMaxBytes
	}
	return *e.DocumentTemplate, maxBytes, nil
}

// renderedDocument returns a document, with the view of its index where it comes from one.
func renderedDocument(ctx *fasthttp.RequestCtx, views *index.Views, from *renderSource) ([]byte, *index.View, error) {
	switch from.kind {
	case "inlineDocument":
		if from.inline == nil || !from.inline.object() {
			return nil, nil, apierr.New(codeRenderInput, "`input.inline` must be an object: the document.")
		}
		var doc bytes.Buffer // compact, as stored documents are
		err := json.Compact(&doc, from.inline)
		return doc.Bytes(), nil, err
	case "indexDocument":
		// A tenant token may hide documents.
		if c := caller(ctx); !c.May(string(actionDocumentsGet), from.uid) || c.Filter(from.uid) != nil {
			return nil, nil, c.Forbidden(from.uid)
		}
		v, err := queriedView(views, from.uid)
		if err != nil {
			return nil, nil, err
		}
		seg, row, ok := v.Find([]byte(from.id))
		if !ok {
			return nil, nil, apierr.New("render_document_not_found", "There is no document `%s` in the index `%s`.", shorten([]byte(from.id)), from.uid)
		}
		doc, err := search.AppendDocument(nil, v, seg, row, nil, false)
		return doc, v, err
	}
	return nil, nil, apierr.New(codeRenderInput, "`input.kind` must be `inlineDocument` or `indexDocument`.")
}
