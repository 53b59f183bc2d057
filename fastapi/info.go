package fastapi

import (
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"svc/docs/demo"
	"svc/internal/text"
)

// Version is what /version tells of the build.
type Version struct {
	Commit  string // hash, or "unknown"
	Date    string // of the commit, RFC 3339, or "unknown"
	Package string // of the API, as clients compare it: "1.42.1"
	Program string // svc's own: "0.2.0"
}

func (s *Server) getVersion(ctx *fasthttp.RequestCtx) error {
	return answer(ctx, struct {
		CommitSHA  string `json:"commitSha"`
		CommitSHA1 string `json:"commitSha1"`
		CommitDate string `json:"commitDate"`
		PkgVersion string `json:"pkgVersion"`
		SvcVersion string `json:"svcVersion"`
	}{s.version.Commit, s.version.Commit, s.version.Date, s.version.Package, s.version.Program})
}

// licenses returns the licences of the dictionaries in the program and of the libraries in its pages.
func (s *Server) licenses(ctx *fasthttp.RequestCtx) error {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString(text.Licenses() + demo.Licenses())
	return nil
}

// health answers 503 if searches are stalled, or if the member of a group is not ready. Damage and waiting tasks are only details of
// a 200.
func (s *Server) health(ctx *fasthttp.RequestCtx) error {
	ctx.SetContentType(contentJSON)
	if stalled := s.watchdog.since(time.Now()); stalled > 0 {
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		ctx.SetBodyString(fmt.Sprintf(`{"status":"unavailable","details":{"searchesStalledSeconds":%d}}`, int(stalled.Seconds())))
		return nil
	}
	if unready(s.member) {
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		ctx.SetBodyString(`{"status":"unavailable"}`)
		return nil
	}
	const sound = `{"status":"available"}`
	if s.catalog == nil {
		ctx.SetBodyString(sound)
		return nil
	}
	quarantined, segments := s.catalog.Damages()
	parked := 0
	if s.queue != nil {
		parked = len(s.queue.Parked())
	}
	if len(quarantined)+len(segments)+parked == 0 {
		ctx.SetBodyString(sound)
		return nil
	}
	damaged := 0
	for _, n := range segments {
		damaged += n
	}
	// Numbers, not names, because everybody may ask. The log and the metrics have the names.
	ctx.SetBodyString(fmt.Sprintf(`{"status":"available","details":{"indexesSetAside":%d,"damagedSegments":%d,"parkedIndexes":%d}}`, len(quarantined), damaged, parked))
	return nil
}
