package fastapi

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"svc/internal/analytics"
	"svc/internal/apierr"
	"svc/internal/search"
	"svc/internal/settings"
)

// A handler answers a request. Its error becomes the answer.
type handler func(*Server, *fasthttp.RequestCtx) error

// route has the handler of a method on a path, the action that the caller needs, and what the API document says about it. An empty
// action refuses every caller.
type route struct {
	method string
	path   string
	action action
	handle handler
	op     operation
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
		{methodGet, "/", public, (*Server).root, operation{does: "Get the dashboard, or a status line for programs.", as: "text/html"}},
		{methodGet, "/assets/{hash}/{name}", public, (*Server).getAsset, operation{does: "Get a file of the dashboard.", as: "*/*"}},
		{methodGet, "/demo", public, (*Server).demo, operation{does: "Get the demo page, if it is enabled.", as: "text/html", refuses: []int{fasthttp.StatusNotFound}}},
		{methodGet, "/health", public, (*Server).health, operation{does: "Get the health of the server.", gives: objectShape}},
		{methodGet, "/licenses", public, (*Server).licenses, operation{does: "Get the licences of dictionaries.", as: "text/plain"}},
		{methodGet, "/docs", public, (*Server).getManual, operation{does: "Get the README.", as: "text/html"}},
		{methodGet, "/docs/search", public, (*Server).searchManual, operation{does: "Search the documentation.", query: fields(manualParams), as: "text/html"}},
		{methodGet, "/docs/{page}", public, (*Server).getManualPage, operation{does: "Get a documentation page.", as: "*/*"}},
		{methodGet, "/openapi.json", public, (*Server).getOpenAPI, operation{does: "Get this document.", gives: objectShape}},
		{methodGet, "/version", actionVersion, (*Server).getVersion, operation{does: "Get the version.", gives: objectShape}},
		{methodPost, "/logs/stream", actionMetricsGet, (*Server).streamLogs, operation{does: "Stream the log.", body: body(streamParams), as: "application/octet-stream"}},
		{methodDelete, "/logs/stream", actionMetricsAll, (*Server).endLogStream, operation{does: "End the log stream.", answers: noContent}},
		{methodPost, "/logs/stderr", actionMetricsAll, (*Server).filterConsole, operation{does: "Change what is logged to stderr.", body: body(consoleParams), answers: noContent}},
		{methodGet, "/metrics", actionMetricsGet, (*Server).getMetrics, operation{does: "Get metrics for Prometheus.", query: fields(metricsParams), loose: true, as: "text/plain"}},
		{methodGet, "/metrics/recent", actionMetricsGet, (*Server).recentMetrics, operation{does: "Get figures of the last five minutes, or of a day.", query: fields(recentParams), gives: objectShape}},
		{methodGet, "/stats", actionStatsGet, (*Server).stats, operation{does: "Get statistics of all indexes.", query: fields(statsParams), loose: true, gives: objectShape}},

		{methodGet, "/indexes", actionIndexesGet, (*Server).listIndexes, operation{does: "List indexes.", query: fields(indexListParams), gives: shown[page[indexView]]()}},
		{methodPost, "/indexes", actionIndexesCreate, (*Server).createIndex, operation{does: "Create an index.", body: body(createIndexParams, "uid"), answers: accepted, gives: taskShape}},
		{methodGet, "/indexes/{index_uid}", actionIndexesGet, (*Server).getIndex, operation{does: "Get an index.", gives: shown[indexView]()}},
		{methodPatch, "/indexes/{index_uid}", actionIndexesUpdate, (*Server).updateIndex, operation{does: "Rename an index, or set its primary key.", body: body(updateIndexParams), answers: accepted, gives: taskShape}},
		{methodDelete, "/indexes/{index_uid}", actionIndexesDelete, (*Server).deleteIndex, operation{does: "Delete an index.", answers: accepted, gives: taskShape}},
		{methodPost, "/indexes/{index_uid}/compact", actionIndexesCompact, (*Server).compactIndex, operation{does: "Compact an index.", answers: accepted, gives: taskShape}},
		{methodGet, "/indexes/{index_uid}/stats", actionStatsGet, (*Server).indexStats, operation{does: "Get statistics of an index.", query: fields(statsParams), loose: true, gives: shown[indexStatistics]()}},
		{methodPost, "/indexes/{index_uid}/fields", actionFieldsPost, (*Server).listFields, operation{does: "List the fields of an index.", body: body(fieldQueryParams), gives: shown[page[fieldView]]()}},
		{methodGet, "/indexes/{index_uid}/segments", actionStatsGet, (*Server).listSegments, operation{does: "List the segment files of an index.", query: []field{}, gives: objectShape}},
		{methodGet, "/aliases", actionIndexesGet, (*Server).listAliases, operation{does: "List aliases.", query: fields(indexListParams), gives: shown[page[aliasView]]()}},
		{methodPost, "/aliases", actionIndexesSwap, (*Server).moveAliases, operation{does: "Move several aliases at once.", body: jsonBody(schema{"type": "array", "items": objectOf(aliasMoveParams, "alias", "indexUid"), "maxItems": maxListEntries}), refuses: moveErrors, gives: objectShape}},
		{methodGet, "/aliases/{alias}", actionIndexesGet, (*Server).getAlias, operation{does: "Get an alias.", gives: shown[aliasView]()}},
		{methodPut, "/aliases/{alias}", actionIndexesSwap, (*Server).putAlias, operation{does: "Point an alias at an index.", body: body(aliasParams, "indexUid"), refuses: conflict, gives: shown[aliasView]()}},
		{methodDelete, "/aliases/{alias}", actionIndexesSwap, (*Server).deleteAlias, operation{does: "Delete an alias.", answers: noContent, refuses: conflict}},
		{methodPost, "/swap-indexes", actionIndexesSwap, (*Server).swapIndexes, operation{does: "Swap or rename indexes.", body: jsonBody(schema{"type": "array", "items": objectOf(swapParams, "indexes")}), answers: accepted, gives: taskShape}},

		{methodGet, "/indexes/{index_uid}/documents", actionDocumentsGet, (*Server).getDocuments, operation{does: "List documents.", query: fields(fetchParams), gives: shown[page[map[string]any]]()}},
		{methodPost, "/indexes/{index_uid}/documents", actionDocumentsAdd, (*Server).replaceDocuments, operation{does: "Add or replace documents.", query: fields(additionParams), body: documentsBody, answers: accepted, gives: taskShape}},
		{methodPut, "/indexes/{index_uid}/documents", actionDocumentsAdd, (*Server).updateDocuments, operation{does: "Add or update documents.", query: fields(additionParams), body: documentsBody, answers: accepted, gives: taskShape}},
		{methodPatch, "/indexes/{index_uid}/documents", actionDocumentsAdd, (*Server).patchDocuments, operation{does: "Update documents partially, by operations.", query: fields(patchParams), body: operationsBody, answers: accepted, gives: taskShape}},
		{methodDelete, "/indexes/{index_uid}/documents", actionDocumentsDelete, (*Server).clearDocuments, operation{does: "Delete all documents.", query: fields(deletionParams), answers: accepted, gives: taskShape}},
		{methodPost, "/indexes/{index_uid}/documents/fetch", actionDocumentsGet, (*Server).fetchDocuments, operation{does: "List documents.", body: body(fetchBodyParams), gives: shown[page[map[string]any]]()}},
		{methodPost, "/indexes/{index_uid}/documents/delete", actionDocumentsDelete, (*Server).deleteByFilter, operation{does: "Delete documents by a filter.", query: fields(deletionParams), body: body(filterDeletionParams, "filter"), answers: accepted, gives: taskShape}},
		{methodPost, "/indexes/{index_uid}/documents/delete-batch", actionDocumentsDelete, (*Server).deleteByIDs, operation{does: "Delete documents by their ids.", query: fields(deletionParams), body: jsonBody(schema{"type": "array"}), answers: accepted, gives: taskShape}},
		{methodPost, "/indexes/{index_uid}/documents/edit", actionDocumentsAll, (*Server).editDocuments, operation{does: "Edit documents by a function.", query: fields(deletionParams), body: body(editionParams, "function"), answers: accepted, gives: taskShape}},
		{methodGet, "/indexes/{index_uid}/documents/{document_id}", actionDocumentsGet, (*Server).getDocument, operation{does: "Get a document.", query: fields(oneParams), gives: objectShape}},
		{methodDelete, "/indexes/{index_uid}/documents/{document_id}", actionDocumentsDelete, (*Server).deleteDocument, operation{does: "Delete a document.", query: fields(deletionParams), answers: accepted, gives: taskShape}},

		{methodGet, "/indexes/{index_uid}/search", actionSearch, (*Server).searchQuery, operation{does: "Search.", query: fields(searchQueryParams), refuses: fromElsewhere, gives: objectShape}},
		{methodPost, "/indexes/{index_uid}/search", actionSearch, (*Server).searchBody, operation{does: "Search.", body: body(searchBodyParams), refuses: fromElsewhere, gives: objectShape}},
		{methodPost, "/indexes/{index_uid}/facet-search", actionSearch, (*Server).facetSearch, operation{does: "Search the values of a facet.", body: looseBody(facetSearchParams, "facetName"), refuses: fromElsewhere, gives: objectShape}},
		{methodGet, "/indexes/{index_uid}/similar", actionSearch, (*Server).similarQuery, operation{does: "Find similar documents.", query: fields(similarParams), gives: objectShape}},
		{methodPost, "/indexes/{index_uid}/similar", actionSearch, (*Server).similarBody, operation{does: "Find similar documents.", body: body(similarParams, "id", "embedder"), gives: objectShape}},
		{methodPost, "/mcp", actionTools, (*Server).modelContext, operation{does: "Speak the Model Context Protocol.", body: jsonBody(schema{}), answers: []int{fasthttp.StatusOK, fasthttp.StatusAccepted}, refuses: []int{fasthttp.StatusNotFound, fasthttp.StatusNotAcceptable}, as: "*/*"}},
		{methodPost, "/multi-search", actionSearch, (*Server).multiSearch, operation{does: "Run several searches, optionally merged into one list.", body: body(multiParams, "queries"), refuses: fromElsewhere, gives: objectShape}},
		{methodPost, "/indexes/{index_uid}/compare", actionSearch, (*Server).compareSearches, operation{does: "Compare a search under two sets of parameters and settings.", body: body((*Server)(nil).comparisonParams()), refuses: fromElsewhere, gives: objectShape}},

		{methodGet, "/indexes/{index_uid}/settings", actionSettingsGet, (*Server).getSettings, operation{does: "Get all settings.", gives: objectShape}},
		{methodPatch, "/indexes/{index_uid}/settings", actionSettingsUpdate, (*Server).updateSettings, operation{does: "Change settings.", body: jsonBody(settingsShape()), answers: accepted, gives: taskShape}},
		{methodDelete, "/indexes/{index_uid}/settings", actionSettingsUpdate, (*Server).resetSettings, operation{does: "Reset all settings.", answers: accepted, gives: taskShape}},
		// PUT takes the bare value, as for the other one-word settings.
		{methodPatch, "/indexes/{index_uid}/settings/proximity-precision", actionSettingsUpdate, patchSetting("proximity-precision"), operation{does: "Change a setting.", body: jsonBody(schema{"type": "object"}), answers: accepted, gives: taskShape}},

		{methodGet, "/analytics/top-queries", actionAnalyticsGet, reportQueries(analytics.MostSearched), operation{does: "List the most frequent queries.", query: fields(reportParams), gives: shown[reportView[queryReport]]()}},
		{methodGet, "/analytics/no-results", actionAnalyticsGet, reportQueries(analytics.MostOftenNone), operation{does: "List the queries that find nothing.", query: fields(reportParams), gives: shown[reportView[queryReport]]()}},
		{methodGet, "/analytics/slow", actionAnalyticsGet, reportQueries(analytics.Slowest), operation{does: "List the slowest queries.", query: fields(reportParams), gives: shown[reportView[queryReport]]()}},
		{methodGet, "/analytics/filters", actionAnalyticsGet, (*Server).reportFilters, operation{does: "List the most frequent filters.", query: fields(reportParams), gives: shown[reportView[filterReport]]()}},
		{methodDelete, "/analytics", actionAnalyticsDelete, (*Server).deleteAnalytics, operation{does: "Delete counts of searches.", query: fields(rangeParams), answers: noContent}},
		{methodPost, "/events", actionSearch, (*Server).postEvents, operation{does: "Record clicks and conversions.", body: eventsBody, gives: shown[eventsView]()}},

		{methodGet, "/downloads/dumps", actionAll, (*Server).listDumps, operation{does: "List the dumps in the directory of dumps. Only the master key may.", query: []field{}, gives: shown[copiesView]()}},
		{methodGet, "/downloads/dumps/{dump}", actionAll, (*Server).getDump, operation{does: "Download a dump, or a range of its bytes. Only the master key may.", as: "application/octet-stream", answers: wholeOrPart}},
		{methodGet, "/downloads/snapshots", actionAll, (*Server).listSnapshots, operation{does: "List the snapshot in the directory of snapshots. Only the master key may.", query: []field{}, gives: shown[copiesView]()}},
		{methodGet, "/downloads/snapshots/{snapshot}", actionAll, (*Server).getSnapshot, operation{does: "Download the snapshot, or a range of its bytes. Only the master key may.", as: "application/octet-stream", answers: wholeOrPart}},
		{methodPost, "/dumps", actionDumpsCreate, (*Server).createDump, operation{does: "Create a dump.", answers: accepted, gives: taskShape}},
		{methodPost, "/snapshots", actionSnapshotsCreate, (*Server).createSnapshot, operation{does: "Create a snapshot.", answers: accepted, gives: taskShape}},
		{methodPost, "/export", actionExport, (*Server).export, operation{does: "Export documents and settings to another instance.", body: body(exportParams, "url"), gives: taskShape}},

		{methodGet, "/tasks", actionTasksGet, (*Server).listTasks, operation{does: "List tasks.", query: fields(taskListParams), gives: uidPageShape}},
		{methodDelete, "/tasks", actionTasksDelete, (*Server).deleteTasks, operation{does: "Delete tasks.", query: fields(taskFilters), gives: taskShape}},
		{methodPost, "/tasks/cancel", actionTasksCancel, (*Server).cancelTasks, operation{does: "Cancel tasks.", query: fields(taskFilters), gives: taskShape}},
		{methodPost, "/tasks/compact", actionTasksCompact, (*Server).compactTasks, operation{does: "Compact the task queue.", gives: objectShape}},
		{methodGet, "/tasks/stream", actionTasksGet, (*Server).streamTasks, operation{does: "Stream changes of tasks.", query: fields(taskFilters), as: contentEvents}},
		{methodGet, "/tasks/{task_id}", actionTasksGet, (*Server).getTask, operation{does: "Get a task.", gives: objectShape}},
		{methodGet, "/tasks/{task_id}/documents", actionTasksGet, (*Server).taskDocuments, operation{does: "Get the documents of a task.", as: contentNDJSON}},
		{methodGet, "/batches", actionTasksGet, (*Server).listBatches, operation{does: "List batches.", query: fields(taskListParams), gives: uidPageShape}},
		{methodGet, "/batches/stream", actionTasksGet, (*Server).streamBatches, operation{does: "Stream changes of batches.", query: fields(taskFilters), as: contentEvents}},
		{methodGet, "/batches/{batch_id}", actionTasksGet, (*Server).getBatch, operation{does: "Get a batch.", gives: objectShape}},

		{methodGet, "/keys", actionKeysGet, (*Server).listKeys, operation{does: "List API keys.", query: fields(keyListParams), gives: shown[page[keyView]]()}},
		{methodPost, "/keys", actionKeysCreate, (*Server).createKey, operation{does: "Create an API key.", body: body(createKeyParams, "actions", "indexes", "expiresAt"), answers: created, refuses: conflict, gives: shown[keyView]()}},
		{methodGet, "/keys/{key}", actionKeysGet, (*Server).getKey, operation{does: "Get an API key.", gives: shown[keyView]()}},
		{methodPatch, "/keys/{key}", actionKeysUpdate, (*Server).updateKey, operation{does: "Change the name or description of an API key.", body: body(updateKeyParams), gives: shown[keyView]()}},
		{methodDelete, "/keys/{key}", actionKeysDelete, (*Server).deleteKey, operation{does: "Delete an API key.", answers: noContent}},

		{methodGet, "/webhooks", actionWebhooksGet, (*Server).listWebhooks, operation{does: "List webhooks.", gives: objectShape}},
		{methodPost, "/webhooks", actionWebhooksCreate, (*Server).createWebhook, operation{does: "Create a webhook.", body: body(webhookParams, "url"), answers: created, gives: shown[webhookView]()}},
		{methodGet, "/webhooks/{webhook}", actionWebhooksGet, (*Server).getWebhook, operation{does: "Get a webhook.", gives: shown[webhookView]()}},
		{methodPatch, "/webhooks/{webhook}", actionWebhooksUpdate, (*Server).updateWebhook, operation{does: "Change a webhook.", body: body(webhookParams), gives: shown[webhookView]()}},
		{methodDelete, "/webhooks/{webhook}", actionWebhooksDelete, (*Server).deleteWebhook, operation{does: "Delete a webhook.", answers: noContent}},

		{methodGet, "/group", actionGroupGet, (*Server).getGroup, operation{does: "Get the state of the group that the server belongs to.", query: []field{}, gives: objectShape}},
		{methodPost, "/group/promote", actionGroupUpdate, (*Server).promote, operation{does: "Make this reader the writer of its group.", body: body(promotionParams), refuses: conflict, gives: objectShape}},
		{methodPost, "/group/transfer", actionGroupUpdate, (*Server).transferLead, operation{does: "Have another voter lead the group.", body: body(transferLeadParams), answers: accepted, refuses: append(conflict, fasthttp.StatusNotFound), gives: objectShape}},
		{methodDelete, "/group/members/{member}", actionGroupUpdate, (*Server).removeMember, operation{does: "Remove a member from the group.", answers: noContent, refuses: conflict}},
		{methodGet, "/network", actionNetworkGet, (*Server).getNetwork, operation{does: "Get the network.", gives: objectShape}},
		{methodPatch, "/network", actionNetworkUpdate, (*Server).updateNetwork, operation{does: "Change the network.", body: body(networkParams), answers: []int{fasthttp.StatusOK, fasthttp.StatusAccepted}, refuses: ofNetwork, gives: objectShape}},
		{methodGet, "/network/outbox", actionNetworkGet, (*Server).getOutbox, operation{does: "Get writes that other instances have not received yet.", gives: objectShape}},
		{methodPost, "/network/change", actionNetworkUpdate, (*Server).networkChange, operation{does: "Report the progress of a network change, between instances.", body: body(changeParams), refuses: ofNetwork, gives: objectShape}},
		{methodPost, "/network/transfer", actionNetworkUpdate, (*Server).networkTransfer, operation{does: "Transfer documents to their new owner, between instances.", body: body(transferParams), refuses: append(ofNetwork, fasthttp.StatusNotFound), as: "*/*"}},
		{methodPost, "/network/documents", actionDocumentsGet, (*Server).networkDocuments, operation{does: "Get documents for a list over all instances, between instances.", body: body(peerDocumentsParams, "indexUid", "shards"), refuses: append(ofNetwork, fasthttp.StatusNotFound), as: search.ReadType}},
		{methodPost, "/network/facets", actionSearch, (*Server).networkFacets, operation{does: "Get facet values to merge, between instances.", body: body(peerFacetsParams, "indexUid", "search"), refuses: append(ofNetwork, fasthttp.StatusNotFound), as: search.ReadType}},
		{methodPost, "/network/words", actionSearch, (*Server).networkWords, operation{does: "Get words that a misspelt query may mean, between instances.", body: body(peerWordsParams, "indexUid", "search"), refuses: append(ofNetwork, fasthttp.StatusNotFound), as: search.ReadType}},
		{methodPost, "/network/foreign", actionSearch, (*Server).networkForeign, operation{does: "Get documents of a foreign index, between instances.", body: body(peerForeignParams, "indexUid"), refuses: append(ofNetwork, fasthttp.StatusNotFound), as: search.ReadType}},

		{methodGet, "/chats", actionChatsGet, (*Server).listChats, operation{does: "List chat workspaces.", query: fields(indexListParams), gives: shown[page[chatView]]()}},
		{methodGet, "/chats/{workspace}", actionChatsGet, (*Server).getChat, operation{does: "Get a chat workspace.", gives: shown[chatView]()}},
		{methodDelete, "/chats/{workspace}", actionChatsDelete, (*Server).deleteChat, operation{does: "Delete a chat workspace.", answers: noContent}},
		{methodPost, "/chats/{workspace}/chat/completions", actionChatCompletions, (*Server).converse, operation{does: "Chat with the model of a workspace.", body: jsonBody(chatShape), refuses: []int{fasthttp.StatusNotImplemented, fasthttp.StatusBadGateway}, as: contentEvents}},
		{methodGet, "/chats/{workspace}/settings", actionChatsSettingsGet, (*Server).getChatSettings, operation{does: "Get the settings of a workspace.", gives: objectShape}},
		{methodPatch, "/chats/{workspace}/settings", actionChatsSettingsUpdate, (*Server).updateChatSettings, operation{does: "Change the settings of a workspace.", body: body(chatParams), gives: objectShape}},
		{methodDelete, "/chats/{workspace}/settings", actionChatsSettingsUpdate, (*Server).resetChatSettings, operation{does: "Reset the settings of a workspace.", gives: objectShape}},

		{methodPost, "/render-template", actionSettingsGet, (*Server).renderTemplate, operation{does: "Render a template for a document or a query.", body: body(renderParams, "template"), refuses: []int{fasthttp.StatusNotFound}, gives: objectShape}},

		{methodPost, "/dynamic-search-rules", actionRulesGet, (*Server).listRules, operation{does: "List search rules.", body: body(ruleQueryParams), gives: objectShape}},
		{methodGet, "/dynamic-search-rules/{rule_uid}", actionRulesGet, (*Server).getRule, operation{does: "Get a search rule.", gives: objectShape}},
		{methodPatch, "/dynamic-search-rules/{rule_uid}", actionRulesUpdate, (*Server).putRule, operation{does: "Create or change a search rule.", query: fields(deletionParams), body: jsonBody(schema{"anyOf": []any{objectOf(ruleParams), newerRuleShape()}}), answers: []int{fasthttp.StatusOK, fasthttp.StatusCreated, fasthttp.StatusAccepted}, refuses: ofNetwork, gives: objectShape}},
		{methodDelete, "/dynamic-search-rules/{rule_uid}", actionRulesDelete, (*Server).deleteRule, operation{does: "Delete a search rule.", query: fields(deletionParams), answers: []int{fasthttp.StatusNoContent, fasthttp.StatusAccepted}, refuses: ofNetwork, gives: taskShape}},
		{methodDelete, "/dynamic-search-rules", actionRulesDelete, (*Server).clearRules, operation{does: "Delete all search rules.", query: fields(deletionParams), answers: accepted, refuses: ofNetwork, gives: taskShape}},

		{methodGet, "/experimental-features", actionFeaturesGet, (*Server).getFeatures, operation{does: "Get experimental features.", gives: mapOf(schema{"type": "boolean"})}},
		{methodPatch, "/experimental-features", actionFeaturesUpdate, (*Server).updateFeatures, operation{does: "Enable or disable experimental features.", body: body(featureParams), gives: mapOf(schema{"type": "boolean"})}},
	}
	for _, st := range settings.Shapes() {
		path := "/indexes/{index_uid}/settings/" + st.Route
		table = append(table,
			route{methodGet, path, actionSettingsGet, getSetting(st.Route), operation{does: "Get " + st.Key + ".", gives: schema{}}},
			route{st.Method, path, actionSettingsUpdate, updateSetting(st.Route),
				operation{does: "Change " + st.Key + ".", body: jsonBody(st.Schema), answers: accepted, gives: taskShape}},
			route{methodDelete, path, actionSettingsUpdate, resetSetting(st.Route),
				operation{does: "Reset " + st.Key + ".", answers: accepted, gives: taskShape}})
	}
	return table
}

// setNewest changes the routes of a table where v1.42 and v1.54 of the API differ.
func setNewest(table []route) {
	for i := range table {
		switch r := &table[i]; r.method + " " + r.path {
		case "POST /dynamic-search-rules":
			r.op.body = body(newestRuleQueryParams)
		case "DELETE /dynamic-search-rules/{rule_uid}":
			r.op.answers = accepted
		case "GET /indexes/{index_uid}/stats":
			r.op.gives = newestStats()
		}
	}
}

// resource is a path with the routes on it.
type resource struct {
	path   string
	routes []route
	allow  string // value of the header Allow
	// searches is set for routes that search: their times count as those of searches in the figures of the last minutes.
	searches bool
	// named has resources whose last segment is a word where this one has a variable, by that word.
	named map[string]*resource
}

// resourceKey is the key of the request value with the resource.
type resourceKey struct{}

// newRouter registers every path under all methods. The path is matched before the method: GET on /tasks/cancel is the wrong method
// for that path, not a task called "cancel".
func (s *Server) newRouter(pprof bool) *router.Router {
	table := routes()
	if pprof {
		table = append(table, pprofRoutes()...)
	}
	s.manual = manualPages(table)
	if s.newest {
		setNewest(table)
	}
	s.openAPI = sync.OnceValues(func() ([]byte, error) { return describeAPI(table, s.version) })
	resources := map[string]*resource{}
	for _, r := range table {
		res := resources[r.path]
		if res == nil {
			res = &resource{path: r.path}
			resources[r.path] = res
		}
		res.routes = append(res.routes, r)
		res.searches = res.searches || r.action == actionSearch && r.path != "/events"
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
			// The router matches a prefix of a word, such as "c" of "cancel", neither as the word nor as the variable.
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

// route returns the route of a method, or nil. HEAD is GET with the body of the answer left out.
func (res *resource) route(method []byte) *route {
	if string(method) == fasthttp.MethodHead {
		method = []byte(methodGet)
	}
	for i := range res.routes {
		if r := &res.routes[i]; r.method == string(method) {
			return r
		}
	}
	return nil
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
	if r := res.route(ctx.Method()); r != nil {
		if r.action != actionSearch { // searches do so themselves if they are not short
			wakeMonitor()
		}
		asking := ctx.UserValue(askingKey{}) != nil
		reads := s.forward != nil
		if reads && (r.answerer() == byWriter || r.action == actionSearch && s.forPeer(ctx)) { // it checks the key, counts the request and logs it in its audit log
			if asking {
				return
			}
			letGo(ctx)
			if err := s.pass(ctx); err != nil {
				s.fail(ctx, err)
			}
			return
		}
		s.followAlias(ctx)
		err := s.authorize(ctx, r.action)
		// The key may be new. A request without a key costs the leader nothing.
		if err != nil && reads && !asking && s.awaits(ctx) && credential(ctx) != "" {
			switch wait := s.awaitPosition(ctx); {
			case wait == nil:
				s.followAlias(ctx)
				err = s.authorize(ctx, r.action)
			case apierr.From(wait).Status() == fasthttp.StatusServiceUnavailable: // it is unknown whether the key exists
				err = wait
			}
		}
		if !asking || err != nil {
			s.beginAudit(ctx, r)
		}
		if err == nil && !asking {
			err = admit(ctx, r.action)
		}
		if err == nil && !asking {
			if err = s.awaitPosition(ctx); err == nil && s.awaits(ctx) { // the key and the alias may have changed up to that position
				s.followAlias(ctx)
				err = s.authorize(ctx, r.action)
			}
		}
		if err == nil && !asking && r.action.spreads() {
			err = s.admitWrite(ctx)
		}
		if err == nil && asking {
			err = s.checkLength(ctx)
		}
		if err == nil && !asking {
			err = r.handle(s, ctx)
		}
		if err != nil && reads && r.answerer() == byWriterIfMissing && apierr.From(err).Status() == fasthttp.StatusNotFound {
			err = s.passMissing(ctx, err)
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
	s.fail(ctx, apierr.New("method_not_allowed", "`%s` does not support %s. Use %s.", shorten([]byte(s.loggedPath(ctx))), shorten(ctx.Method()), res.allow))
}

// noRoute answers for paths that lead nowhere.
func (s *Server) noRoute(ctx *fasthttp.RequestCtx) {
	if !acceptsJSON(ctx) {
		ctx.SetStatusCode(fasthttp.StatusNotFound)
		return
	}
	s.fail(ctx, apierr.New("route_not_found", "There is no route `%s`. Check the spelling of the path.", shorten([]byte(s.loggedPath(ctx)))))
}

// acceptsJSON reports whether the client accepts JSON explicitly. Without that, a request without a route gets no body, as in
// Meilisearch.
func acceptsJSON(ctx *fasthttp.RequestCtx) bool {
	accept := headerAccept.in(&ctx.Request.Header)
	return bytes.Contains(accept, []byte("*/*")) || bytes.Contains(accept, []byte("application/*")) || bytes.Contains(accept, []byte(contentJSON))
}
