package fastapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/manual"
	"svc/internal/settings"
)

// manualPages lists the pages of documents and errors on first use.
func manualPages(table []route) func() (*manual.Manual, error) {
	return sync.OnceValues(func() (*manual.Manual, error) { return manual.New(usesOfCodes(table)) })
}

// usesOfCodes returns which parameters each error code is about.
func usesOfCodes(table []route) manual.Uses {
	uses := manual.Uses{}
	add := func(code apierr.Code, use string) {
		if code != "bad_request" {
			uses[code] = append(uses[code], use)
		}
	}
	for i := range table {
		r := &table[i]
		at := fmt.Sprintf("`%s %s`", r.method, r.path)
		for _, f := range r.op.query {
			add(f.code, fmt.Sprintf("`%s` in the query string of %s", f.name, at))
		}
		if r.op.body != nil {
			usesOfMembers(r.op.body.schema, "", func(name string, code apierr.Code) { add(code, fmt.Sprintf("`%s` in the body of %s", name, at)) })
		}
	}
	for _, s := range settings.Shapes() {
		add(s.Code, fmt.Sprintf("the setting `%s`", s.Key))
	}
	return uses
}

// usesOfMembers calls add for the members of a schema that have codes of their own.
func usesOfMembers(s schema, path string, add func(string, apierr.Code)) {
	for _, key := range []string{"items", "additionalProperties"} {
		if in, ok := s[key].(schema); ok {
			usesOfMembers(in, path, add)
		}
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		for _, one := range alternatives {
			usesOfMembers(one.(schema), path, add)
		}
	}
	properties, _ := s["properties"].(schema)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		of := properties[name].(schema)
		if code, ok := of["x-error-code"].(apierr.Code); ok {
			add(strings.TrimPrefix(path+"."+name, "."), code)
		}
		usesOfMembers(of, path+"."+name, add)
	}
}

// getManual shows the README.
func (s *Server) getManual(ctx *fasthttp.RequestCtx) error { return s.showPage(ctx, manual.Root) }

// getManualPage shows another document, one of their pictures, or the page of errors.
func (s *Server) getManualPage(ctx *fasthttp.RequestCtx) error {
	return s.showPage(ctx, manual.Root+"/"+pathValue(ctx, "page"))
}

// manualQuery is a search in the documentation.
type manualQuery struct{ q string }

var manualParams = []param[manualQuery]{
	{name: "q", code: "bad_request", kind: textual, set: func(q *manualQuery, a *arg) error { q.q = a.text; return nil }},
}

// searchManual finds sections of the documents.
func (s *Server) searchManual(ctx *fasthttp.RequestCtx) error {
	var q manualQuery
	if err := decodeQuery(&q, ctx.QueryArgs(), manualParams); err != nil {
		return err
	}
	pages, err := s.manual()
	if err != nil {
		return err
	}
	page, err := pages.Search(q.q)
	if err != nil {
		return err
	}
	sendManual(ctx, page)
	return nil
}

func (s *Server) showPage(ctx *fasthttp.RequestCtx, at string) error {
	pages, err := s.manual()
	if err != nil {
		return err
	}
	page, ok, err := pages.Page(at)
	if err != nil {
		return err
	}
	if !ok {
		return apierr.New("route_not_found", "There is no page at `%s`. See `%s` for all pages.", shorten([]byte(at)), manual.Root)
	}
	sendManual(ctx, page)
	return nil
}

func sendManual(ctx *fasthttp.RequestCtx, page manual.Page) {
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderContentSecurityPolicy, manual.Policy)
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set(fasthttp.HeaderCacheControl, "no-cache")
	ctx.SetContentType(page.Type)
	ctx.Response.SetBodyRaw(page.Body)
}
