package fastapi

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/search"
	"svc/internal/settings"
	"svc/internal/template"
)

// renderInput is the body of a rendering.
type renderInput struct {
	template, input renderSource
	rendered        bool // input is given
}

// renderSource says where a template, or the object to render, comes from.
type renderSource struct {
	kind, uid, embedder, fragment, id string
	inline                            value // nil: not given
	maxBytes                          int
}

const (
	codeRenderTemplate apierr.Code = "invalid_render_template"
	codeRenderInput    apierr.Code = "invalid_render_input"
)

var renderParams = []param[renderInput]{
	{name: "template", code: codeRenderTemplate, kind: raw, shape: objectOf(renderTemplateParams), set: func(r *renderInput, a *arg) error {
		return decode(&r.template, a.json, renderTemplateParams, object{path: "template.", code: a.code, notCode: a.code})
	}},
	{name: "input", code: codeRenderInput, kind: raw, null: true, shape: objectOf(renderInputParams), set: func(r *renderInput, a *arg) error {
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
		renderParam("fragment", codeRenderTemplate, func(s *renderSource) *string { return &s.fragment }),
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

// rendering is a parsed template: of a text, or of a JSON value, such as a fragment of an embedder.
type rendering struct {
	work               template.Work
	source             json.RawMessage // of a value, as it is shown
	textSource         string          // of a text
	text               *template.Template
	value              *template.JSON // in place of text
	maxBytes           int            // of a text; 0: any number
	documents, queries bool           // what the template is rendered for
}

// renderFor is the object to render: a document or a query.
type renderFor struct {
	document  []byte // compact; nil: a query
	view      *index.View
	variables []template.Variable // of a query
}

// renderTemplate shows the result of a template for a document or a query, so that templates can be tried without indexing. It takes
// the turn of a large search: templates may do much work, and none is urgent.
func (s *Server) renderTemplate(ctx *fasthttp.RequestCtx) error {
	var r renderInput
	if err := readObject(s, ctx, &r, renderParams); err != nil {
		return err
	}
	limited, _, err := s.turn(ctx, largeHits+1)
	if err != nil {
		return err
	}
	defer limited.end()
	views := s.catalog.Views()
	defer views.Release()
	work := template.Work{Account: limited.Account(), Yield: limited.Yield}
	t, err := readRendering(ctx, work, views, &r.template)
	if err != nil {
		return err
	}
	var text string
	var value []byte
	if r.rendered {
		x, err := readRenderFor(ctx, views, &r.input)
		if err != nil {
			return err
		}
		if text, value, err = t.render(x); err != nil {
			return err
		}
	} else {
		value = []byte("null")
	}
	const around = 64
	size := around + len(t.source) + quotedSize(t.textSource) + len(value) + quotedSize(text)
	if err := requestOf(ctx).bytes().Answer(int64(size)); err != nil {
		return err
	}
	b := append(make([]byte, 0, size), `{"template":`...)
	if t.value == nil {
		b = jsontext.AppendQuoted(b, t.textSource)
	} else {
		b = append(b, t.source...)
	}
	b = append(b, `,"rendered":`...)
	if value == nil {
		b = jsontext.AppendQuoted(b, text)
	} else {
		b = append(b, value...)
	}
	answerRaw(ctx, append(b, '}'))
	return nil
}

// quotedSize is how many bytes a text has as a JSON string.
func quotedSize(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ':
			n += len(`\u0000`) - 1
		case c == '"', c == '\\':
			n++
		}
	}
	return n
}

// render returns the result of the template: a text, or a JSON value, which is then not nil.
func (t *rendering) render(x *renderFor) (text string, value []byte, err error) {
	switch {
	case x.document != nil && !t.documents:
		return "", nil, apierr.New(codeRenderInput, "A `searchFragment` needs a query: `input.kind` must be `inlineSearch`.")
	case x.document == nil && !t.queries:
		return "", nil, apierr.New(codeRenderInput, "The template needs a document: `input.kind` must be `inlineDocument` or `indexDocument`.")
	case t.value == nil:
		searchable := func(string) bool { return true }
		if x.view != nil {
			searchable = func(name string) bool { return x.view.Fields.InfoOf(name).Searchable }
		}
		text, err = t.text.Render(t.work, x.document, searchable, t.maxBytes)
	case x.document != nil:
		value, err = t.value.RenderDocument(t.work, x.document)
	default:
		value, err = t.value.Render(t.work, x.variables...)
	}
	if failed := (*template.RenderError)(nil); errors.As(err, &failed) {
		err = apierr.New(codeRenderTemplate, "The template cannot be rendered for the input: %v.", failed)
	}
	return text, value, err
}

// readRendering reads a template, of the request or of an index.
func readRendering(ctx *fasthttp.RequestCtx, work template.Work, views *index.Views, from *renderSource) (*rendering, error) {
	switch from.kind {
	case "inlineDocumentTemplate":
		source, ok := "", false
		if from.inline != nil {
			source, ok = from.inline.text()
		}
		if !ok {
			return nil, apierr.New(codeRenderTemplate, "`template.inline` must be a string: the template.")
		}
		return textRendering(work, source, from.maxBytes)
	case "inlineFragment":
		if from.inline == nil || from.inline.null() {
			return nil, apierr.New(codeRenderTemplate, "`template.inline` is missing. It is the value of the fragment, whose strings are templates.")
		}
		return valueRendering(work, json.RawMessage(from.inline), true, true)
	case "documentTemplate", "chatDocumentTemplate", "indexingFragment", "searchFragment":
	default:
		return nil, apierr.New(codeRenderTemplate, "`template.kind` must be `inlineDocumentTemplate`, `documentTemplate`, `chatDocumentTemplate`, `inlineFragment`, `indexingFragment` or `searchFragment`.")
	}
	uid, err := reach(ctx, from.uid)
	if err != nil {
		return nil, err
	}
	v, err := queriedPlain(views, uid)
	if err != nil {
		return nil, err
	}
	if from.kind == "chatDocumentTemplate" {
		return textRendering(work, v.Settings.Chat.DocumentTemplate, v.Settings.Chat.DocumentTemplateMaxBytes)
	}
	e, ok := v.Settings.Embedders[from.embedder]
	if !ok {
		return nil, apierr.New(codeRenderTemplate, "The index `%s` has no embedder `%s`.", from.uid, shorten([]byte(from.embedder)))
	}
	if half := e.SearchEmbedder; half != nil && from.kind == "searchFragment" {
		e = half
	} else if half := e.IndexingEmbedder; half != nil && from.kind != "searchFragment" {
		e = half
	}
	if from.kind == "documentTemplate" {
		if e.DocumentTemplate == nil {
			return nil, apierr.New(codeRenderTemplate, "The embedder `%s` of the index `%s` has no `documentTemplate`.", shorten([]byte(from.embedder)), from.uid)
		}
		maxBytes := 0
		if e.DocumentTemplateMaxBytes != nil {
			maxBytes = *e.DocumentTemplateMaxBytes
		}
		return textRendering(work, *e.DocumentTemplate, maxBytes)
	}
	return fragmentRendering(work, e, from)
}

// fragmentRendering reads a fragment of an embedder.
func fragmentRendering(work template.Work, e *settings.Embedder, from *renderSource) (*rendering, error) {
	indexing := from.kind == "indexingFragment"
	fragments := e.SearchFragments
	if indexing {
		fragments = e.IndexingFragments
	}
	raw, ok := fragments[from.fragment]
	if !ok {
		return nil, apierr.New(codeRenderTemplate, "The embedder `%s` of the index `%s` has no %s `%s`.", shorten([]byte(from.embedder)), from.uid, from.kind, shorten([]byte(from.fragment)))
	}
	var fragment struct{ Value json.RawMessage }
	if err := json.Unmarshal(raw, &fragment); err != nil {
		return nil, err
	}
	return valueRendering(work, fragment.Value, indexing, !indexing)
}

func textRendering(work template.Work, source string, maxBytes int) (*rendering, error) {
	t, err := template.Parse(work, source)
	if wrong := (*template.ParseError)(nil); errors.As(err, &wrong) {
		err = apierr.New(codeRenderTemplate, "The template cannot be read: %v.", wrong)
	}
	return &rendering{work: work, textSource: source, text: t, maxBytes: maxBytes, documents: true}, err
}

func valueRendering(work template.Work, source json.RawMessage, documents, queries bool) (*rendering, error) {
	t, err := template.ParseJSON(work, source)
	if wrong := (*template.ParseError)(nil); errors.As(err, &wrong) {
		err = apierr.New(codeRenderTemplate, "The fragment cannot be read: %v.", wrong)
	}
	return &rendering{work: work, source: source, value: t, documents: documents, queries: queries}, err
}

// readRenderFor reads a document or a query, or finds a document of an index.
func readRenderFor(ctx *fasthttp.RequestCtx, views *index.Views, from *renderSource) (*renderFor, error) {
	switch from.kind {
	case "inlineDocument":
		if from.inline == nil || !from.inline.object() {
			return nil, apierr.New(codeRenderInput, "`input.inline` must be an object: the document.")
		}
		doc, err := compact(from.inline) // as stored documents are
		return &renderFor{document: doc}, err
	case "inlineSearch":
		if from.inline == nil || !from.inline.object() {
			return nil, apierr.New(codeRenderInput, "`input.inline` must be an object: the query, with `q`, `media` or both.")
		}
		x := &renderFor{}
		return x, decode(x, from.inline, renderSearchParams, object{path: "input.inline.", code: codeRenderInput, notCode: codeRenderInput})
	case "indexDocument":
		// A tenant token may hide documents.
		uid := aliasesOf(ctx).Index(from.uid)
		if c := caller(ctx); !c.May(string(actionDocumentsGet), uid) || c.Filter(uid) != nil {
			return nil, c.Forbidden(from.uid)
		}
		v, err := queriedPlain(views, uid)
		if err != nil {
			return nil, err
		}
		seg, row, ok := v.Find([]byte(from.id))
		if !ok {
			return nil, apierr.New("render_document_not_found", "There is no document `%s` in the index `%s`.", shorten([]byte(from.id)), from.uid)
		}
		doc, err := search.AppendDocument(requestOf(ctx).bytes(), nil, v, seg, row, nil, false)
		return &renderFor{document: doc, view: v}, err
	}
	return nil, apierr.New(codeRenderInput, "`input.kind` must be `inlineDocument`, `indexDocument` or `inlineSearch`.")
}

// renderSearchParams are the parameters of a search that fragments see.
var renderSearchParams = []param[renderFor]{
	{name: "q", code: codeRenderInput, kind: textual, most: unlimited, null: true, set: func(x *renderFor, a *arg) error {
		x.variables = append(x.variables, template.Variable{Name: "q", Value: appendString(nil, a.text)})
		return nil
	}},
	{name: "media", code: codeRenderInput, kind: raw, null: true, shape: schema{"type": "object"}, set: func(x *renderFor, a *arg) error {
		if !a.json.object() {
			return a.expected("an object")
		}
		media, err := compact(a.json)
		x.variables = append(x.variables, template.Variable{Name: "media", Value: media})
		return err
	}},
}

func compact(v value) ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, v)
	return b.Bytes(), err
}
