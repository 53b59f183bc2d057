package fastapi

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"svc/docs/demo"
	"svc/internal/apierr"
)

// The page is plain HTML, CSS and JavaScript modules, sent as in this directory: there is no build step. It uses the API like any
// client.
//
//go:embed dashboard
var dashboardFiles embed.FS

// asset is a file of a page.
type asset struct {
	content     []byte
	contentType string
}

// website is a page and its files, whose path contains the hash of all of them, so that browsers cache them for ever.
type website struct {
	page   []byte
	hash   string
	assets map[string]asset // by name
}

// The pages are read on first use.
var (
	dashboardPage = sync.OnceValue(func() *website { return readWebsite(dashboardFiles, "dashboard") })
	demoPage      = sync.OnceValue(func() *website { return readWebsite(demo.Files, ".") })
)

// readWebsite reads index.html, in which {{assets}} stands for the path of the other files.
func readWebsite(files embed.FS, dir string) *website {
	w := &website{assets: map[string]asset{}}
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		panic(err) // the files are in the program
	}
	sum := xxhash.New()
	for _, e := range entries {
		b, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			panic(err)
		}
		_, _ = sum.Write(b)
		w.assets[e.Name()] = asset{b, assetTypes[path.Ext(e.Name())]}
	}
	w.hash = fmt.Sprintf("%016x", sum.Sum64())
	const index = "index.html"
	w.page = bytes.ReplaceAll(w.assets[index].content, []byte("{{assets}}"), []byte("/assets/"+w.hash))
	delete(w.assets, index)
	return w
}

// assetTypes are the media types of files by extension. (Package mime depends on the machine, and has thousands of them.)
var assetTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// dashboardPolicy lets the page load its own files and call its own server. Pictures of documents may come from anywhere; the page
// can hide them.
const dashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: https: http:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// root shows the page to people. Programs in production get a line of text, and so do all clients if the page is disabled.
func (s *Server) root(ctx *fasthttp.RequestCtx) error {
	if s.noDashboard || s.production && !bytes.Contains(headerAccept.in(&ctx.Request.Header), []byte("text/html")) {
		ctx.SetContentType(contentJSON)
		ctx.SetBodyString(`{"status":"svc is running"}`)
		return nil
	}
	sendPage(ctx, dashboardPage(), dashboardPolicy)
	return nil
}

// demoPolicy is the policy of a page that shows no pictures and has an empty icon.
const demoPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// demo shows the page that searches with InstantSearch, if it is enabled.
func (s *Server) demo(ctx *fasthttp.RequestCtx) error {
	if !s.demoed {
		s.noRoute(ctx)
		return nil
	}
	sendPage(ctx, demoPage(), demoPolicy)
	return nil
}

// sendPage sends a page that cannot be framed, with a policy that names its scripts.
func sendPage(ctx *fasthttp.RequestCtx, w *website, policy string) {
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderContentSecurityPolicy, policy)
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set(fasthttp.HeaderXFrameOptions, "DENY")
	h.Set(fasthttp.HeaderReferrerPolicy, "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set(fasthttp.HeaderCacheControl, "no-cache")
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.Response.SetBodyRaw(w.page)
}

// getAsset sends a file of a page that is served.
func (s *Server) getAsset(ctx *fasthttp.RequestCtx) error {
	hash, _ := ctx.UserValue("hash").(string)
	name, _ := ctx.UserValue("name").(string)
	var file asset
	ok := false
	switch {
	case !s.noDashboard && hash == dashboardPage().hash:
		file, ok = dashboardPage().assets[name]
	case s.demoed && hash == demoPage().hash:
		file, ok = demoPage().assets[name]
	}
	if !ok {
		return apierr.New("route_not_found", "The page has no such file. Reload the page.")
	}
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set(fasthttp.HeaderCacheControl, "public, max-age=31536000, immutable")
	ctx.SetContentType(file.contentType)
	ctx.Response.SetBodyRaw(file.content)
	return nil
}
