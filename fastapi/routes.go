package fastapi

import (
	"bytes"
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/settings"
)

// A handler answers a request. Its error becomes the answer.
type handler func(*Server, *fasthttp.RequestCtx) error

// route says who answers a method on a path, and what a caller must be allowed to do. An empty action lets nobody in.
type route struct {
	method string
	path   string
	action action
	handle handler
}

const (
	methodGet    = fasthttp.MethodGet
	methodPost   = fasthttp.MethodPost
	methodPut    = fasthttp.MethodPut
	methodPatch  = fasthttp.MethodPatch
	methodDelete = fasthttp.MethodDelete
)

// routes returns the table of all routes.
func routes() []route {
	table := []route{
		{methodGet, "/", public, (*Server).root},
		{methodGet, "/assets/{hash}/{name}", public, (*Server).getAsset},
		{methodGet, "/demo", public, (*Server).demo},
		{methodGet, "/health", public, (*Server).health},
		{methodGet, "/licenses", public, (*Server).licenses},
		{methodGet, "/version", actionVersion, (*Server).getVersion},
		{methodPost, "/logs/stream", actionMetricsGet, (*Server).streamLogs},
		{methodDelete, "/logs/stream", actionMetricsAll, (*Server).endLogStream},
		{methodPost, "/logs/stderr", actionMetricsAll, (*Server).filterConsole},
		{methodGet, "/metrics", actionMetricsGet, (*Server).getMetrics},
		{methodGet, "/metrics/recent", actionMetricsGet, (*Server).recentMetrics},
		{methodGet, "/stats", actionStatsGet, (*Server).stats},

		{methodGet, "/indexes", actionIndexesGet, (*Server).listIndexes},
		{methodPost, "/indexes", actionIndexesCreate, (*Server).createIndex},
		{methodGet, "/indexes/{index_uid}", actionIndexesGet, (*Server).getIndex},
		{methodPatch, "/indexes/{index_uid}", actionIndexesUpdate, (*Server).updateIndex},
		{methodDelete, "/indexes/{index_uid}", actionIndexesDelete, (*Server).deleteIndex},
		{methodPost, "/indexes/{index_uid}/compact", actionIndexesCompact, (*Server).compactIndex},
		{methodGet, "/indexes/{index_uid}/stats", actionStatsGet, (*Server).indexStats},
		{methodPost, "/indexes/{index_uid}/fields", actionFieldsPost, (*Server).listFields},
		{methodGet, "/indexes/{index_uid}/segments", actionStatsGet, (*Server).listSegments},
		{methodPost, "/swap-indexes", actionIndexesSwap, (*Server).swapIndexes},

		{methodGet, "/indexes/{index_uid}/documents", actionDocumentsGet, (*Server).getDocuments},
		{methodPost, "/indexes/{index_uid}/documents", actionDocumentsAdd, (*Server).replaceDocuments},
		{methodPut, "/indexes/{index_uid}/documents", actionDocumentsAdd, (*Server).updateDocuments},
		{methodDelete, "/indexes/{index_uid}/documents", actionDocumentsDelete, (*Server).clearDocuments},
		{methodPost, "/indexes/{index_uid}/documents/fetch", actionDocumentsGet, (*Server).fetchDocuments},
		{methodPost, "/indexes/{index_uid}/documents/delete", actionDocumentsDelete, (*Server).deleteByFilter},
		{methodPost, "/indexes/{index_uid}/documents/delete-batch", actionDocumentsDelete, (*Server).deleteByIDs},
		{methodPost, "/indexes/{index_uid}/documents/edit", actionDocumentsAll, (*Server).editDocuments},
		{methodGet, "/indexes/{index_uid}/documents/{document_id}", actionDocumentsGet, (*Server).getDocument},
		{methodDelete, "/indexes/{index_uid}/documents/{document_id}", actionDocumentsDelete, (*Server).deleteDocument},

		{methodGet, "/indexes/{index_uid}/search", actionSearch, (*Server).searchQuery},
		{methodPost, "/indexes/{index_uid}/search", actionSearch, (*Server).searchBody},
		{methodPost, "/indexes/{index_uid}/facet-search", actionSearch, (*Server).facetSearch},
		{methodGet, "/indexes/{index_uid}/similar", actionSearch, (*Server).similarQuery},
		{methodPost, "/indexes/{index_uid}/similar", actionSearch, (*Server).similarBody},
		{methodPost, "/multi-search", actionSearch, (*Server).multiSearch},
		{methodPost, "/indexes/{index_uid}/compare", actionSearch, (*Server).compareSearches},

		{methodGet, "/indexes/{index_uid}/settings", actionSettingsGet, (*Server).getSettings},
		{methodPatch, "/indexes/{index_uid}/settings", actionSettingsUpdate, (*Server).updateSettings},
		{methodDelete, "/indexes/{index_uid}/settings", actionSettingsUpdate, (*Server).resetSettings},
		// PUT takes the bare value, as for the other settings that are one word.
		{methodPatch, "/indexes/{index_uid}/settings/proximity-precision", actionSettingsUpdate, patchSetting("proximity-precision")},

		{methodPost, "/dumps", actionDumpsCreate, (*Server).createDump},
		{methodPost, "/snapshots", actionSnapshotsCreate, (*Server).createSnapshot},
		{methodPost, "/export", actionExport, (*Server).export},

		{methodGet, "/tasks", actionTasksGet, (*Server).listTasks},
		{methodDelete, "/tasks", actionTasksDelete, (*Server).deleteTasks},
		{methodPost, "/tasks/cancel", actionTasksCancel, (*Server).cancelTasks},
		{methodPost, "/tasks/compact", actionTasksCompact, (*Server).compactTasks},
		{methodGet, "/tasks/stream", actionTasksGet, (*Server).streamTasks},
		{methodGet, "/tasks/{task_id}", actionTasksGet, (*Server).getTask},
		{methodGet, "/tasks/{task_id}/documents", actionTasksGet, (*Server).taskDocuments},
		{methodGet, "/batches", actionTasksGet, (*Server).listBatches},
		{methodGet, "/batches/stream", actionTasksGet, (*Server).streamBatches},
		{methodGet, "/batches/{batch_id}", actionTasksGet, (*Server).getBatch},

		{methodGet, "/keys", actionKeysGet, (*Server).listKeys},
		{methodPost, "/keys", actionKeysCreate, (*Server).createKey},
		{methodGet, "/keys/{key}", actionKeysGet, (*Server).getKey},
		{methodPatch, "/keys/{key}", actionKeysUpdate, (*Server).updateKey},
		{methodDelete, "/keys/{key}", actionKeysDelete, (*Server).deleteKey},

		{methodGet, "/webhooks", actionWebhooksGet, (*Server).listWebhooks},
		{methodPost, "/webhooks", actionWebhooksCreate, (*Server).createWebhook},
		{methodGet, "/webhooks/{webhook}", actionWebhooksGet, (*Server).getWebhook},
		{methodPatch, "/webhooks/{webhook}", actionWebhooksUpdate, (*Server).updateWebhook},
		{methodDelete, "/webhooks/{webhook}", actionWebhooksDelete, (*Server).deleteWebhook},

		{methodGet, "/network", actionNetworkGet, (*Server).getNetwork},
		{methodPatch, "/network", actionNetworkUpdate, (*Server).updateNetwork},
		{methodGet, "/network/outbox", actionNetworkGet, (*Server).getOutbox},
		{methodPost, "/network/change", actionNetworkUpdate, (*Server).networkChange},
		{methodPost, "/network/transfer", actionNetworkUpdate, (*Server).networkTransfer},

		{methodGet, "/chats", actionChatsGet, (*Server).listChats},
		{methodGet, "/chats/{workspace}", actionChatsGet, (*Server).getChat},
		{methodDelete, "/chats/{workspace}", actionChatsDelete, (*Server).deleteChat},
		{methodPost, "/chats/{workspace}/chat/completions", actionChatCompletions, (*Server).converse},
		{methodGet, "/chats/{workspace}/settings", actionChatsSettingsGet, (*Server).getChatSettings},
		{methodPatch, "/chats/{workspace}/settings", actionChatsSettingsUpdate, (*Server).updateChatSettings},
		{methodDelete, "/chats/{workspace}/settings", actionChatsSettingsUpdate, (*Server).resetChatSettings},

		{methodPost, "/render-template", actionSettingsGet, (*Server).renderTemplate},

		{methodPost, "/mcp", actionTools, (*Server).modelContext},

		{methodPost, "/dynamic-search-rules", actionRulesGet, (*Server).listRules},
		{methodGet, "/dynamic-search-rules/{rule_uid}", actionRulesGet, (*Server).getRule},
		{methodPatch, "/dynamic-search-rules/{rule_uid}", actionRulesUpdate, (*Server).putRule},
		{methodDelete, "/dynamic-search-rules/{rule_uid}", actionRulesDelete, (*Server).deleteRule},

		{methodGet, "/experimental-features", actionFeaturesGet, (*Server).getFeatures},
		{methodPatch, "/experimental-features", actionFeaturesUpdate, (*Server).updateFeatures},
	}
	for name, method := range settings.Routes() {
		path := "/indexes/{index_uid}/settings/" + name
		table = append(table,
			route{methodGet, path, actionSettingsGet, getSetting(name)},
			route{method, path, actionSettingsUpdate, updateSetting(name)},
			route{methodDelete, path, actionSettingsUpdate, resetSetting(name)})
	}
	return table
}

// resource is a path with the routes on it.
type resource struct {
	path   string
	routes []route
	allow  string // value of the header Allow
	// searches tells what searches: its times are those of the searches of the last minutes.
	searches bool
	// named are the resources beside this one whose last segment is a word where this one has a variable, by that word.
	named map[string]*resource
}

// resourceKey is the place of the resource among the values of a request.
type resourceKey struct{}

// newRouter registers every path under all methods. The path is matched before the method: GET
// on /tasks/cancel is the wrong method for that path, not a task called "cancel".
func (s *Server) newRouter(pprof bool) *router.Router {
	table := routes()
	if pprof {
		table = append(table, pprofRoutes()...)
	}
	resources := map[string]*resource{}
	for _, r := range table {
		res := resources[r.path]
		if res == nil {
			res = &resource{path: r.path}
			resources[r.path] = res
		}
		res.routes = append(res.routes, r)
		res.searches = res.searches || r.action == actionSearch
	}
	variables := map[string]*resource{} // by the path without the last segment, which is a variable
	for path, res := range resources {
		var methods []string
		for _, r := range res.routes {
			methods = append(methods, r.method)
			if r.method == methodGet {
				methods = append(methods, fasthttp.MethodHead)
			}
		}
		slices.Sort(methods)
		res.allow = strings.Join(methods, ", ")
		if dir, last := cutLast(path); strings.HasPrefix(last, "{") {
			variables[dir] = res
		}
	}
	rt := router.New()
	rt.RedirectTrailingSlash = false
	rt.RedirectFixedPath = false
	rt.HandleMethodNotAllowed = false // dispatch does
	rt.HandleOPTIONS = false
	rt.NotFound = s.noRoute
	for path, res := range resources {
		dir, last := cutLast(path)
		if v := variables[dir]; v != nil && v != res {
			// The router takes what only begins like "cancel", such as "c", for neither the word nor the variable.
			if v.named == nil {
				v.named = map[string]*resource{}
			}
			v.named[last] = res
			continue
		}
		rt.ANY(path, func(ctx *fasthttp.RequestCtx) { s.dispatch(ctx, res) })
	}
	return rt
}

// cutLast cuts the last segment off a path.
func cutLast(path string) (dir, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

// dispatch finds the route of the method, checks the caller's right to it and runs it.
func (s *Server) dispatch(ctx *fasthttp.RequestCtx, res *resource) {
	if res.named != nil {
		path := ctx.URI().PathOriginal()
		if named := res.named[string(path[bytes.LastIndexByte(path, '/')+1:])]; named != nil {
			res = named
		}
	}
	ctx.SetUserValue(resourceKey{}, res)
	method := string(ctx.Method())
	if method == fasthttp.MethodHead {
		method = methodGet // whose answer is sent without its body
	}
	for i := range res.routes {
		r := &res.routes[i]
		if r.method != method {
			continue
		}
		err := s.authorize(ctx, r.action)
		asking := ctx.UserValue(askingKey{}) != nil
		if err == nil && !asking && r.action.spreads() {
			err = s.admitWrite(ctx)
		}
		if err == nil && asking {
			err = s.checkLength(ctx)
		}
		if err == nil && !asking {
			err = r.handle(s, ctx)
		}
		if err != nil {
			s.fail(ctx, err)
		}
		return
	}
	ctx.Response.Header.Set(fasthttp.HeaderAllow, res.allow)
	if !acceptsJSON(ctx) {
		ctx.SetStatusCode(fasthttp.StatusMethodNotAllowed)
		return
	}
	s.fail(ctx, apierr.New("method_not_allowed", "`%s` is not for %s: use %s.", shorten(ctx.URI().PathOriginal()), shorten([]byte(method)), res.allow))
}

// noRoute answers for paths that lead nowhere.
func (s *Server) noRoute(ctx *fasthttp.RequestCtx) {
	if !acceptsJSON(ctx) {
		ctx.SetStatusCode(fasthttp.StatusNotFound)
		return
	}
	s.fail(ctx, apierr.New("route_not_found", "There is nothing at `%s`: look at how the path is spelled.", shorten(ctx.URI().PathOriginal())))
}

// acceptsJSON reports whether the caller says that it takes JSON. One that says nothing gets no body where there is no route,
// as from Meilisearch; one that does can show what it gets.
func acceptsJSON(ctx *fasthttp.RequestCtx) bool {
	accept := ctx.Request.Header.Peek(fasthttp.HeaderAccept)
	return bytes.Contains(accept, []byte("*/*")) || bytes.Contains(accept, []byte("application/*")) || bytes.Contains(accept, []byte(contentJSON))
}
