package fastapi

import (
	"bytes"
	"embed"
	"fmt"
	"mime"
	"path"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"
)

// The page is plain HTML, CSS and JavaScript modules, sent as they stand here: there is nothing to build, and nothing
// but this directory to read. It talks to the API as any client does.
//
//go:embed dashboard
var dashboardFiles embed.FS

// asset is a file of the page.
type asset struct {
	content     []byte
	contentType string
}

// dashboard is the page and its files, which have the hash of all of them in their path: a browser keeps them for ever.
type dashboard struct {
	page   []byte
	hash   string
	assets map[string]asset // by name
}

var dashboardPage = readDashboard()

func readDashboard() *dashboard {
	d := &dashboard{assets: map[string]asset{}}
	entries, err := dashboardFiles.ReadDir("dashboard")
	if err != nil {
		panic(err) // the files are in the program
	}
	sum := xxhash.New()
	for _, e := range entries {
		b, err := dashboardFiles.ReadFile(path.Join("dashboard", e.Name()))
		if err != nil {
			panic(err)
		}
		_, _ = sum.Write(b)
		d.assets[e.Name()] = asset{b, assetType(e.Name())}
	}
	d.hash = fmt.Sprintf("%016x", sum.Sum64())
	const index = "index.html"
	d.page = bytes.ReplaceAll(d.assets[index].content, []byte("{{assets}}"), []byte("/assets/"+d.hash))
	delete(d.assets, index)
	return d
}

// assetType is the media type of a file by its name.
func assetType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	default:
		return mime.TypeByExtension(ext)
	}
}

// dashboardPolicy lets the page load its own files and talk to its own server. Pictures of documents, which people ask for one by
// one or by a switch, come from where the documents say.
const dashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: https: http:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// root shows the page to people, and a line to programs in production, and to everybody where the page was left out.
func (s *Server) root(ctx *fasthttp.RequestCtx) error {
	if s.noDashboard || s.production && !bytes.Contains(ctx.Request.Header.Peek(fasthttp.HeaderAccept), []byte("text/html")) {
		ctx.SetContentType(contentJSON)
		ctx.SetBodyString(`{"status":"svc is running"}`)
		return nil
	}
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderContentSecurityPolicy, dashboardPolicy)
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set(fasthttp.HeaderXFrameOptions, "DENY")
	h.Set(fasthttp.HeaderReferrerPolicy, "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set(fasthttp.HeaderCacheControl, "no-cache")
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.SetBody(dashboardPage.page)
	return nil
}

// getAsset sends a file of the page.
func (s *Server) getAsset(ctx *fasthttp.RequestCtx) error {
	hash, _ := ctx.UserValue("hash").(string)
	name, _ := ctx.UserValue("name").(string)
	file, ok := dashboardPage.assets[name]
	if !ok || hash != dashboardPage.hash || s.noDashboard {
		ctx.SetStatusCode(fasthttp.StatusNotFound)
		return nil
	}
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set(fasthttp.HeaderCacheControl, "public, max-age=31536000, immutable")
	ctx.SetContentType(file.contentType)
	ctx.SetBody(file.content)
	return nil
}
