package fastapi

import (
	"net/http"
	"net/http/pprof"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// pprofRoutes serve the profiles of the running program, for `go tool pprof`. They do not include the command line, which may contain
// the master key.
func pprofRoutes() []route {
	serve := func(h http.HandlerFunc) handler {
		adapted := fasthttpadaptor.NewFastHTTPHandlerFunc(h)
		return func(_ *Server, ctx *fasthttp.RequestCtx) error {
			adapted(ctx)
			return nil
		}
	}
	index := serve(pprof.Index) // also answers for the named profiles below its path
	return []route{
		{methodGet, "/debug/pprof", actionAll, index, operation{does: "Get a profile of the process.", as: "*/*"}},
		{methodGet, "/debug/pprof/profile", actionAll, serve(pprof.Profile), operation{does: "Get a profile of the process.", as: "*/*"}},
		{methodGet, "/debug/pprof/symbol", actionAll, serve(pprof.Symbol), operation{does: "Get a profile of the process.", as: "*/*"}},
		{methodPost, "/debug/pprof/symbol", actionAll, serve(pprof.Symbol), operation{does: "Get a profile of the process.", as: "*/*"}},
		{methodGet, "/debug/pprof/trace", actionAll, serve(pprof.Trace), operation{does: "Get a profile of the process.", as: "*/*"}},
		{methodGet, "/debug/pprof/{profile}", actionAll, index, operation{does: "Get a profile of the process.", as: "*/*"}},
	}
}
