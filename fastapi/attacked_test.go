package fastapi

import (
	"slices"
	"strings"
	"testing"

	"svc/internal/network"
	"svc/internal/search"
)

// attacked says how tests attack a route: what cost_test.go sends to measure the cost, and what climb_test.go sends in the walks over
// keys, indexes and headers. Each new route needs a row.
type attacked struct {
	costs   []growth // requests that grow
	perByte int      // bytes that may be allocated per byte sent, whatever the result
	fixed   int      // bytes that may be allocated whatever is sent; 0: fixedCost

	walk  []string // bodies, with %s for an index; GET and DELETE have none
	reads bool     // changes nothing despite its method
	never bool     // the answer does not end by itself

	left string // why neither is tested
}

// Growths that fit most routes.
var (
	byQuery = slices.Concat(queries, segments)
	byBody  = slices.Concat(bodies, segments)
	byDocs  = slices.Concat(bodies, documentBodies, segments)
)

// routeRows has a row for each route. The routes of single settings share the rows of {setting}.
var routeRows = map[string]attacked{
	"GET /":                     {costs: byQuery},
	"GET /assets/{hash}/{name}": {costs: byQuery},
	"GET /demo":                 {costs: byQuery},
	"GET /health":               {costs: byQuery},
	"GET /licenses":             {costs: byQuery},
	"GET /docs":                 {costs: byQuery},
	"GET /docs/search":          {costs: byQuery},
	"GET /docs/{page}":          {costs: byQuery},
	"GET /openapi.json":         {costs: byQuery},
	"GET /version":              {costs: byQuery},

	"POST /logs/stream":   {costs: byBody, walk: []string{`{"mode": "none"}`}, never: true}, // always refused
	"DELETE /logs/stream": {costs: byQuery},
	"POST /logs/stderr":   {costs: byBody, walk: []string{`{"target": "off"}`}},
	"GET /metrics":        {costs: byQuery},
	"GET /metrics/recent": {costs: byQuery},
	"GET /stats":          {costs: byQuery},

	"GET /indexes":                      {costs: byQuery},
	"POST /indexes":                     {costs: byBody, walk: []string{`{"uid": "%s"}`}},
	"GET /indexes/{index_uid}":          {costs: byQuery},
	"PATCH /indexes/{index_uid}":        {costs: byBody, walk: []string{`{"uid": "theirs"}`, `{"uid": "theirs_new"}`}},
	"DELETE /indexes/{index_uid}":       {costs: byQuery},
	"POST /indexes/{index_uid}/compact": {costs: byBody, walk: []string{`{}`}},
	"GET /indexes/{index_uid}/stats":    {costs: byQuery},
	"POST /indexes/{index_uid}/fields":  {costs: byBody, walk: []string{`{}`}, reads: true},
	"GET /indexes/{index_uid}/segments": {costs: byQuery},
	"GET /aliases":                      {costs: byQuery},
	"POST /aliases":                     {costs: byBody, walk: []string{`[{"alias": "mine_alias", "indexUid": "theirs"}]`, `[{"alias": "theirs_alias", "indexUid": "mine"}]`, `[{"alias": "theirs_alias", "indexUid": null}]`}},
	"GET /aliases/{alias}":              {costs: byQuery},
	"PUT /aliases/{alias}":              {costs: byBody, walk: []string{`{"indexUid": "theirs"}`, `{"indexUid": "%s"}`}},
	"DELETE /aliases/{alias}":           {costs: byQuery},
	"POST /swap-indexes":                {costs: byBody, walk: []string{`[{"indexes": ["mine", "theirs"]}]`, `[{"indexes": ["theirs", "mine_2"], "rename": true}]`}},

	"GET /indexes/{index_uid}/documents":    {costs: byQuery},
	"POST /indexes/{index_uid}/documents":   {costs: byDocs, walk: []string{`[{"id": 2, "link": 1, "to": [1]}]`}},
	"PUT /indexes/{index_uid}/documents":    {costs: byDocs, walk: []string{`[{"id": 2, "link": 1}]`}},
	"PATCH /indexes/{index_uid}/documents":  {costs: byDocs, walk: []string{`[{"id": 1, "set": {"x": 1}}]`, `[{"id": 1, "set": {"x": 1}, "filter": "_foreign(link, secret = canary)"}]`}},
	"DELETE /indexes/{index_uid}/documents": {costs: byQuery},
	"POST /indexes/{index_uid}/documents/fetch": {costs: slices.Concat(byBody, cursorBodies), perByte: filterCost, reads: true,
		walk: []string{`{}`, `{"filter": "_foreign(link, secret = canary)"}`}},
	"POST /indexes/{index_uid}/documents/delete":          {costs: byDocs, walk: []string{`{"filter": "id = 2"}`, `{"filter": "_foreign(link, secret = canary)"}`}},
	"POST /indexes/{index_uid}/documents/delete-batch":    {costs: byDocs, walk: []string{`[77]`}},
	"POST /indexes/{index_uid}/documents/edit":            {costs: byBody, walk: []string{`{"function": "doc.x = 1", "filter": "_foreign(link, secret = canary)"}`, `{"function": "doc.x = 1"}`}},
	"GET /indexes/{index_uid}/documents/{document_id}":    {costs: byQuery},
	"DELETE /indexes/{index_uid}/documents/{document_id}": {costs: byQuery},

	"GET /indexes/{index_uid}/search": {costs: byQuery},
	"POST /indexes/{index_uid}/search": {costs: slices.Concat(byBody, cursorBodies), perByte: filterCost, reads: true,
		walk: []string{`{}`, `{"facets": ["*"]}`, `{"filter": "_foreign(link, secret = canary)"}`, `{"filter": "_foreign(hidden, x = 1)"}`, `{"sort": ["secret:asc"]}`, `{"useNetwork": true}`, `{"q": "canaru", "suggest": true}`}},
	"POST /indexes/{index_uid}/facet-search": {costs: slices.Concat(byBody, longTexts), walk: []string{`{"facetName": "link"}`}, reads: true},
	"GET /indexes/{index_uid}/similar":       {costs: byQuery},
	"POST /indexes/{index_uid}/similar":      {costs: byBody, walk: []string{`{"id": 1, "embedder": "e"}`}, reads: true},
	"POST /indexes/{index_uid}/compare":      {costs: byBody, walk: []string{`{}`}, reads: true},
	"POST /multi-search": {costs: byBody, reads: true,
		walk: []string{`{"queries": [{"indexUid": "mine"}, {"indexUid": "%s"}]}`, `{"federation": {}, "queries": [{"indexUid": "%s"}]}`,
			`{"federation": {}, "queries": [{"indexUid": "%s", "sort": ["secret:asc"]}]}`, `{"federation": {"distinct": "link"}, "queries": [{"indexUid": "%s"}]}`}},
	"POST /mcp": {costs: byBody, walk: []string{`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"index_uid": "%s"}}}`}},

	"GET /indexes/{index_uid}/settings": {costs: byQuery},
	"PATCH /indexes/{index_uid}/settings": {costs: byBody, perByte: settingsCost,
		walk: []string{`{"foreignKeys": [{"fieldName": "link", "foreignIndexUid": "theirs"}], "filterableAttributes": ["link", "secret"]}`}},
	"DELETE /indexes/{index_uid}/settings":                    {costs: byQuery},
	"PATCH /indexes/{index_uid}/settings/proximity-precision": {costs: ofSetting, walk: []string{`"byAttribute"`}},
	"PUT /indexes/{index_uid}/settings/synonyms":              {costs: ofSetting, perByte: settingsCost, walk: []string{`{"canary": ["mine"]}`}},
	"GET /indexes/{index_uid}/settings/{setting}":             {costs: byQuery},
	"PUT /indexes/{index_uid}/settings/{setting}":             {costs: ofSetting, perByte: settingsCost, walk: []string{`{}`}},
	"PATCH /indexes/{index_uid}/settings/{setting}":           {costs: ofSetting, perByte: settingsCost, walk: []string{`{}`}},
	"DELETE /indexes/{index_uid}/settings/{setting}":          {costs: byQuery},

	"GET /analytics/top-queries": {costs: byQuery},
	"GET /analytics/no-results":  {costs: byQuery},
	"GET /analytics/slow":        {costs: byQuery},
	"GET /analytics/filters":     {costs: byQuery},
	"DELETE /analytics":          {costs: byQuery},
	"POST /events":               {costs: slices.Concat(byBody, eventBodies), walk: []string{`[{"requestUid": "` + laterVersion + `", "type": "click"}]`}, reads: true},

	"GET /downloads/dumps":                {costs: byQuery},
	"GET /downloads/dumps/{dump}":         {costs: byQuery},
	"GET /downloads/snapshots":            {costs: byQuery},
	"GET /downloads/snapshots/{snapshot}": {costs: byQuery},
	"POST /dumps":                         {costs: byBody, walk: []string{`{}`}},
	"POST /snapshots":                     {costs: byBody, walk: []string{`{}`}},
	"POST /export":                        {costs: byBody, walk: []string{`{"url": "http://127.0.0.1:1"}`, `{"url": "http://127.0.0.1:1", "indexes": {"mine": {}}}`}},

	"GET /tasks":                     {costs: byQuery},
	"DELETE /tasks":                  {costs: byQuery},
	"POST /tasks/cancel":             {costs: slices.Concat(queries, bodies), walk: []string{`{}`}},
	"POST /tasks/compact":            {costs: bodies[:1], fixed: 64 << 20, walk: []string{`{}`}}, // always rewrites a file
	"GET /tasks/stream":              {costs: byQuery, never: true},
	"GET /tasks/{task_id}":           {costs: byQuery},
	"GET /tasks/{task_id}/documents": {costs: byQuery},
	"GET /batches":                   {costs: byQuery},
	"GET /batches/stream":            {costs: byQuery, never: true},
	"GET /batches/{batch_id}":        {costs: byQuery},

	"GET /keys": {costs: byQuery},
	"POST /keys": {costs: byBody, walk: []string{`{"actions": ["*"], "indexes": ["*"], "expiresAt": null}`, `{"actions": ["*"], "indexes": ["mine"], "expiresAt": null}`,
		`{"actions": ["search"], "indexes": ["theirs"], "expiresAt": null}`, `{"actions": ["search"], "indexes": ["mine"], "expiresAt": null}`,
		`{"actions": ["keys.create", "keys.get"], "indexes": ["*"], "expiresAt": null}`, `{"actions": ["search"], "indexes": ["*"], "expiresAt": null}`}},
	"GET /keys/{key}":    {costs: byQuery},
	"PATCH /keys/{key}":  {costs: byBody, walk: []string{`{"name": "changed"}`, `{"rateLimit": null}`, `{"rateLimit": {"concurrent": 1000}}`}},
	"DELETE /keys/{key}": {costs: byQuery},

	"GET /webhooks":              {costs: byQuery},
	"POST /webhooks":             {costs: byBody, walk: []string{`{"url": "http://127.0.0.1:1/"}`}},
	"GET /webhooks/{webhook}":    {costs: byQuery},
	"PATCH /webhooks/{webhook}":  {costs: byBody, walk: []string{`{"url": "http://127.0.0.1:1/"}`}},
	"DELETE /webhooks/{webhook}": {costs: byQuery},

	"GET /group":                     {costs: byQuery},
	"POST /group/transfer":           {costs: byBody, walk: []string{`{}`, `{"member": "ab"}`, `{"member": null}`}},
	"DELETE /group/members/{member}": {costs: byQuery},
	"POST /group/promote":            {costs: byBody, walk: []string{`{}`, `{"force": true}`}},
	"GET /network":                   {costs: byQuery},
	"PATCH /network":                 {costs: slices.Concat(bodies, networkBodies), walk: []string{`{"remotes": {"r": {"url": "http://127.0.0.1:1"}}}`, `{"leader": null}`, announcedNetwork}},
	"GET /network/outbox":            {costs: byQuery},
	"POST /network/change":           {costs: byBody, walk: []string{`{"version": "` + laterVersion + `", "remote": "b", "restored": true}`}, reads: true},
	"POST /network/transfer":         {costs: byBody, walk: []string{`{"version": "` + laterVersion + `", "remote": "b"}`, `{"version": "` + laterVersion + `", "remote": "b", "index": "%s"}`}, reads: true},

	"POST /network/documents": {costs: byBody, perByte: filterCost, reads: true,
		walk: []string{`{"indexUid": "%s", "shards": [{"limit": 20}]}`, `{"indexUid": "%s", "sort": ["secret:asc"], "values": true, "shards": [{"limit": 20, "ids": ["1"]}]}`}},
	"POST /network/facets":  {costs: byBody, walk: []string{`{"indexUid": "%s", "search": {"facetName": "secret"}}`, `{"indexUid": "%s", "shards": ["x"], "search": {"facetName": "link"}}`}, reads: true},
	"POST /network/words":   {costs: byBody, walk: []string{`{"indexUid": "%s", "search": {"q": "canari"}}`, `{"indexUid": "%s", "shards": ["x"], "search": {"q": "canari"}}`}, reads: true},
	"POST /network/foreign": {costs: byBody, walk: []string{`{"indexUid": "%s", "ids": ["1"]}`, `{"indexUid": "%s", "shards": ["x"], "filter": "secret = canary"}`}, reads: true},

	"GET /chats":                               {costs: byQuery},
	"GET /chats/{workspace}":                   {costs: byQuery},
	"DELETE /chats/{workspace}":                {costs: byQuery},
	"POST /chats/{workspace}/chat/completions": {costs: byBody, walk: []string{`{"model": "m", "stream": true, "messages": []}`}, reads: true},
	"GET /chats/{workspace}/settings":          {costs: byQuery},
	"PATCH /chats/{workspace}/settings":        {costs: byBody, walk: []string{`{"source": "vLlm", "baseUrl": "http://127.0.0.1:1"}`}},
	"DELETE /chats/{workspace}/settings":       {costs: byQuery},

	"POST /render-template": {costs: slices.Concat(byBody, templates), fixed: templateFixed, reads: true,
		walk: []string{`{"template": {"kind": "inlineDocumentTemplate", "inline": "{{doc.secret}}"}, "input": {"kind": "indexDocument", "indexUid": "%s", "id": "1"}}`,
			`{"template": {"kind": "inlineDocumentTemplate", "inline": "{{doc.secret}}"}, "input": {"kind": "indexDocument", "indexUid": "theirs", "id": "1"}}`}},

	"POST /dynamic-search-rules":              {costs: byBody, walk: []string{`{}`}, reads: true},
	"GET /dynamic-search-rules/{rule_uid}":    {costs: byQuery},
	"PATCH /dynamic-search-rules/{rule_uid}":  {costs: byBody, walk: []string{`{"active": false}`, `{"precedence": 1, "active": false}`}},
	"DELETE /dynamic-search-rules/{rule_uid}": {costs: byQuery},
	"DELETE /dynamic-search-rules":            {costs: byQuery},

	"GET /experimental-features":   {costs: byQuery},
	"PATCH /experimental-features": {costs: byBody, walk: []string{`{"containsFilter": true}`}},

	"GET /debug/pprof":           {left: profiles},
	"GET /debug/pprof/profile":   {left: profiles},
	"GET /debug/pprof/symbol":    {left: profiles},
	"POST /debug/pprof/symbol":   {left: profiles},
	"GET /debug/pprof/trace":     {left: profiles},
	"GET /debug/pprof/{profile}": {left: profiles},
}

const profiles = "net/http/pprof makes profiles, for who may do everything, and only with the option --pprof"

// rowOf returns the row of a route, or nil.
func rowOf(r *route) *attacked {
	name := r.method + " " + r.path
	row, ok := routeRows[name]
	if of, setting, _ := strings.Cut(name, "/settings/"); !ok && setting != "" {
		row, ok = routeRows[of+"/settings/{setting}"]
	}
	if !ok {
		return nil
	}
	row.reads = row.reads || r.method == methodGet
	return &row
}

// headerAttacked says how tests attack a header that requests may have.
type headerAttacked struct {
	costs    []string // names of growing values in headerGrowths; nil: see sized
	sized    string
	disguise string // disguise with which walks send it; "": see unwalked
	unwalked string
}

const (
	byClient  = "the HTTP client of the tests writes it; TestAmbiguousBodies and TestExpectations send it by hand"
	whoseWalk = "it is what walks are over"
	ofBodies  = "tests of bodies send it: TestBodyEncodings, TestContentTypes"
)

var anyValue = []string{"long", "commas", "escapes", "semicolons"}

var headerRows = map[requestHeader]headerAttacked{
	headerAccept:           {costs: anyValue, disguise: "a browser"},
	headerAcceptEncoding:   {costs: anyValue, disguise: "a browser"},
	headerAuthorization:    {costs: anyValue, unwalked: whoseWalk},
	headerContentEncoding:  {costs: anyValue, unwalked: ofBodies},
	headerContentLength:    {sized: byClient, unwalked: byClient},
	headerContentType:      {costs: anyValue, unwalked: ofBodies},
	headerExpect:           {sized: byClient, unwalked: byClient},
	headerHost:             {sized: byClient, unwalked: byClient},
	headerIfRange:          {costs: anyValue, disguise: "a browser"},
	headerOrigin:           {costs: anyValue, disguise: "a browser"},
	headerRange:            {costs: anyValue, disguise: "a browser"},
	headerPreflightHeaders: {costs: anyValue, disguise: "a browser"},
	headerPreflightMethod:  {costs: anyValue, disguise: "a browser"},
	headerTransferEncoding: {sized: byClient, unwalked: byClient},
	headerUserAgent:        {costs: anyValue, disguise: "a client library"},
	headerTraceparent:      {costs: anyValue, disguise: "a client library"},
	headerDryRun:           {costs: anyValue, disguise: "a replica"},
	headerTaskID:           {costs: anyValue, disguise: "a replica"},
	headerMaxStaleness:     {costs: anyValue, disguise: "a client of a group"},
	headerMinPosition:      {costs: anyValue, disguise: "a client of a group"},
	headerForwarded:        {costs: anyValue, disguise: "a client of a group"},
	headerIdempotencyKey:   {costs: anyValue, disguise: "a client of a group"},
	headerIncludeMetadata:  {costs: anyValue, disguise: "a client library"},
	headerNetworkVersion:   {costs: anyValue, disguise: "a remote that merges"},
	headerOriginNonce:      {costs: anyValue, disguise: "the leader"},
	headerOriginRemote:     {costs: anyValue, disguise: "the leader"},
	headerOriginTask:       {costs: anyValue, disguise: "the leader"},
	headerOriginVersion:    {costs: anyValue, disguise: "the leader"},
	headerProxyForeign:     {costs: anyValue, disguise: "a remote that merges"},
	headerProxySearch:      {costs: anyValue, disguise: "a remote that merges"},
	headerSearchTime:       {costs: anyValue, disguise: "a remote that merges"},
}

// laterVersion is a network version later than those of the tests.
const laterVersion = "fffffffe-c0c4-7cb1-b458-c00767017d4e"

// announcedNetwork is the body with which a leader announces a network.
const announcedNetwork = `{"self":"b","leader":"a","remotes":{"a":{"url":"http://127.0.0.1:1"},"b":{"url":"http://127.0.0.1:1"}},"shards":{"x":{"remotes":["a"]}},"previousRemotes":{},"previousShards":{}}`

// disguises are headers, as pairs of name and value, that walks send: they may make a client look like an instance or a proxy.
var disguises = map[string][]string{
	"no disguise":             nil,
	"the leader":              originHeaders("Svc-", "a", laterVersion, "5ca1ab1e"),
	"another leader":          originHeaders("Svc-", "z", laterVersion, "5ca1ab1e"),
	"a leader of before":      originHeaders("X-Svc-", "a", "00000000-0000-7000-8000-000000000000", "5ca1ab1e"),
	"the leader of an engine": originHeaders("X-Meili-", "a", laterVersion, ""),
	"half a leader":           {"Svc-Proxy-Origin-Remote", "a"},
	"a remote that merges":    {"Svc-Proxy-Search", "true", "Accept", search.PeerType + ", application/json", "Svc-Network-Version", laterVersion, "Svc-Proxy-Foreign", "theirs", "Svc-Proxy-Search-Time", "1"},
	"a remote of an engine":   {"Meili-Proxy-Search", "true"},
	"a client library":        {"Meili-Include-Metadata", "true", "Svc-Include-Metadata", "true", "User-Agent", "library", "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	"a browser":               {"Origin", "http://shop.test", "Accept", "text/html", "Accept-Encoding", "identity", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization", "Range", "bytes=0-", "If-Range", `"1-1"`},
	"a replica":               {"TaskId", "7", "DryRun", "true"},
	"a client of a group":     {"Svc-Min-Position", "1.1.1", "Svc-Max-Staleness", "1", "Idempotency-Key", "a key", "Svc-Forwarded", "1"},
}

// originHeaders returns the headers of a write that a leader forwards, under a prefix.
func originHeaders(prefix, remote, version, nonce string) []string {
	h := []string{prefix + "Proxy-Origin-Remote", remote, prefix + "Proxy-Origin-TaskUid", "7", prefix + "Proxy-Origin-Network-Version", version}
	if nonce != "" {
		h = append(h, prefix+"Proxy-Origin-Nonce", nonce)
	}
	return h
}

// messageAttacked says where walks send a message between instances of a network. internal/network has the table of what its answer costs.
type messageAttacked struct{ route, disguise string }

var messageRows = map[string]messageAttacked{
	"search":       {"POST /multi-search", "a remote that merges"},
	"documents":    {"POST /network/documents", "a remote that merges"},
	"facets":       {"POST /network/facets", "a remote that merges"},
	"foreign":      {"POST /network/foreign", "a remote that merges"},
	"words":        {"POST /network/words", "a remote that merges"},
	"write":        {"POST /indexes/{index_uid}/documents", "the leader"},
	"announcement": {"PATCH /network", "the leader"},
	"network":      {"GET /network", "no disguise"},
	"change":       {"POST /network/change", "no disguise"},
	"transfer":     {"POST /network/transfer", "no disguise"},
	"features":     {"GET /experimental-features", "no disguise"},
	"health":       {"GET /health", "no disguise"},
	"tasks":        {"GET /tasks", "no disguise"},
}

// TestEverythingIsAttacked checks that each route, header and message between instances has a row, so that tests attack it.
func TestEverythingIsAttacked(t *testing.T) {
	table := append(routes(), pprofRoutes()...)
	known := map[string]bool{}
	for i := range table {
		r := &table[i]
		name := r.method + " " + r.path
		known[name] = true
		row := rowOf(r)
		switch {
		case row == nil:
			t.Errorf("%s has no row in routeRows", name)
		case row.left != "":
			if i < len(routes()) {
				t.Errorf("%s is left out", name)
			}
		case len(row.costs) == 0:
			t.Errorf("%s names nothing that grows", name)
		case r.method != methodGet && r.method != methodDelete && len(row.walk) == 0:
			t.Errorf("%s names no body for walks", name)
		case (r.method == methodGet || r.method == methodDelete) && len(row.walk) > 0:
			t.Errorf("%s has a body for walks, but walks do not send it", name)
		}
	}
	for name := range routeRows {
		if !known[name] && !strings.HasSuffix(name, "{setting}") {
			t.Errorf("routeRows has %s, which is not a route", name)
		}
	}
	sent := map[string]bool{}
	for _, headers := range disguises {
		for i := 0; i < len(headers); i += 2 {
			sent[headers[i]] = true
		}
	}
	for _, name := range requestHeaders {
		row, ok := headerRows[name]
		switch {
		case !ok:
			t.Errorf("the header %s has no row in headerRows", name)
		case (len(row.costs) > 0) == (row.sized != ""):
			t.Errorf("the header %s has to grow, or say why it does not", name)
		case (row.disguise != "") == (row.unwalked != ""):
			t.Errorf("the header %s has to be walked with, or say why it is not", name)
		case row.disguise != "" && !slices.Contains(disguises[row.disguise], string(name)):
			t.Errorf("the disguise %q has no header %s", row.disguise, name)
		}
	}
	if len(headerRows) != len(requestHeaders) {
		t.Error("headerRows has unknown headers")
	}
	for _, m := range network.Messages {
		row, ok := messageRows[m.Name]
		method, path, _ := strings.Cut(row.route, " ")
		own, _, _ := strings.Cut(m.Path, "?")
		switch {
		case !ok:
			t.Errorf("the message %q has no row in messageRows", m.Name)
		case !known[row.route] || m.Method != "" && (method != m.Method || path != own):
			t.Errorf("the message %q does not go to %s", m.Name, row.route)
		case row.disguise != "no disguise" && disguises[row.disguise] == nil:
			t.Errorf("the message %q has the unknown disguise %q", m.Name, row.disguise)
		}
	}
	if len(messageRows) != len(network.Messages) {
		t.Error("messageRows has unknown messages")
	}
}
