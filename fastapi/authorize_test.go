package fastapi

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/auth"
)

// opened lists, as documented, which routes each action allows. Routes of single settings are listed once.
var opened = map[string][]string{
	"search": {"POST /mcp", "GET /indexes/{index_uid}/search", "POST /indexes/{index_uid}/search", "POST /indexes/{index_uid}/facet-search", "POST /multi-search", "POST /indexes/{index_uid}/compare",
		"GET /indexes/{index_uid}/similar", "POST /indexes/{index_uid}/similar", "POST /events"},
	"documents.get": {"POST /mcp", "GET /indexes/{index_uid}/documents", "GET /indexes/{index_uid}/documents/{document_id}",
		"POST /indexes/{index_uid}/documents/fetch"},
	"documents.add": {"POST /mcp", "POST /indexes/{index_uid}/documents", "PUT /indexes/{index_uid}/documents", "PATCH /indexes/{index_uid}/documents"},
	"documents.delete": {"POST /mcp", "DELETE /indexes/{index_uid}/documents", "DELETE /indexes/{index_uid}/documents/{document_id}",
		"POST /indexes/{index_uid}/documents/delete-batch", "POST /indexes/{index_uid}/documents/delete"},
	"indexes.get":          {"POST /mcp", "GET /indexes", "GET /indexes/{index_uid}", "GET /aliases", "GET /aliases/{alias}"},
	"indexes.create":       {"POST /indexes"},
	"indexes.update":       {"PATCH /indexes/{index_uid}"},
	"indexes.delete":       {"DELETE /indexes/{index_uid}"},
	"indexes.swap":         {"POST /swap-indexes", "POST /aliases", "PUT /aliases/{alias}", "DELETE /aliases/{alias}"},
	"indexes.compact":      {"POST /indexes/{index_uid}/compact"},
	"settings.get":         {"POST /mcp", "GET /indexes/{index_uid}/settings", "POST /render-template"},
	"settings.update":      {"POST /mcp", "PATCH /indexes/{index_uid}/settings", "PUT /indexes/{index_uid}/settings", "DELETE /indexes/{index_uid}/settings"},
	"fields.post":          {"POST /indexes/{index_uid}/fields"},
	"tasks.get":            {"POST /mcp", "GET /tasks", "GET /tasks/stream", "GET /tasks/{task_id}", "GET /tasks/{task_id}/documents", "GET /batches", "GET /batches/stream", "GET /batches/{batch_id}"},
	"tasks.cancel":         {"POST /tasks/cancel"},
	"tasks.delete":         {"DELETE /tasks"},
	"tasks.compact":        {"POST /tasks/compact"},
	"stats.get":            {"GET /stats", "GET /indexes/{index_uid}/stats", "GET /indexes/{index_uid}/segments"},
	"analytics.get":        {"GET /analytics/top-queries", "GET /analytics/no-results", "GET /analytics/slow", "GET /analytics/filters"},
	"analytics.delete":     {"DELETE /analytics"},
	"version":              {"GET /version"},
	"group.get":            {"GET /group"},
	"group.update":         {"POST /group/promote", "POST /group/transfer", "DELETE /group/members/{member}"},
	"metrics.get":          {"GET /metrics", "GET /metrics/recent", "POST /logs/stream"},
	"metrics.*":            {"GET /metrics", "GET /metrics/recent", "POST /logs/stream", "DELETE /logs/stream", "POST /logs/stderr"},
	"keys.get":             {"GET /keys", "GET /keys/{key}"},
	"keys.create":          {"POST /keys"},
	"keys.update":          {"PATCH /keys/{key}"},
	"keys.delete":          {"DELETE /keys/{key}"},
	"experimental.get":     {"GET /experimental-features"},
	"experimental.update":  {"PATCH /experimental-features"},
	"dumps.create":         {"POST /dumps"},
	"snapshots.create":     {"POST /snapshots"},
	"export":               {"POST /export"},
	"chats.get":            {"GET /chats", "GET /chats/{workspace}"},
	"chats.delete":         {"DELETE /chats/{workspace}"},
	"chatsSettings.get":    {"GET /chats/{workspace}/settings"},
	"chatsSettings.update": {"PATCH /chats/{workspace}/settings", "DELETE /chats/{workspace}/settings"},
	"webhooks.get":         {"GET /webhooks", "GET /webhooks/{webhook}"},
	"webhooks.create":      {"POST /webhooks"},
	"webhooks.update":      {"PATCH /webhooks/{webhook}"},
	"webhooks.delete":      {"DELETE /webhooks/{webhook}"},
}

// wildcards are the actions that include others. Only `documents.*` itself and `*` allow POST …/documents/edit.
var wildcards = map[string][]string{
	"documents.*":     {"documents.get", "documents.add", "documents.delete"},
	"indexes.*":       {"indexes.get", "indexes.create", "indexes.update", "indexes.delete", "indexes.swap", "indexes.compact"},
	"settings.*":      {"settings.get", "settings.update"},
	"tasks.*":         {"tasks.get", "tasks.cancel", "tasks.delete", "tasks.compact"},
	"stats.*":         {"stats.get"},
	"*.get":           {"search", "documents.get", "indexes.get", "settings.get", "fields.post", "tasks.get", "stats.get", "metrics.get", "analytics.get", "version", "experimental.get", "group.get", "webhooks.get", "chats.get", "chatsSettings.get"},
	"dumps.*":         {"dumps.create"},
	"webhooks.*":      {"webhooks.get", "webhooks.create", "webhooks.update", "webhooks.delete"},
	"chats.*":         {"chats.get", "chats.delete"},
	"chatsSettings.*": {"chatsSettings.get", "chatsSettings.update"},
	// Actions without one of the routes above.
	"chatCompletions": nil, "network.update": nil,
}

// onWhole are the paths that concern the whole instance.
var onWhole = map[string]bool{
	"/keys": true, "/keys/{key}": true, "/dumps": true, "/downloads/dumps": true, "/downloads/snapshots": true, "/downloads/dumps/{dump}": true, "/snapshots": true, "/downloads/snapshots/{snapshot}": true, "/export": true, "/tasks/compact": true, "/metrics": true, "/metrics/recent": true,
	"/logs/stream": true, "/logs/stderr": true, "/webhooks": true, "/webhooks/{webhook}": true, "/experimental-features": true,
	"/version": true, "/group": true, "/group/promote": true, "/group/transfer": true, "/group/members/{member}": true, "/network": true, "/network/control": true, "/chats": true, "/chats/{workspace}": true, "/chats/{workspace}/settings": true,
}

// ask authorizes a request directly.
func ask(s *Server, r route, credential, index string) error {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+credential)
	if strings.Contains(r.path, "{index_uid}") {
		ctx.SetUserValue("index_uid", index)
	}
	return s.authorize(&ctx, r.action)
}

// TestActionsOpenRoutes tries every route with every action, in an index that the key covers and in one that it does not.
func TestActionsOpenRoutes(t *testing.T) {
	keys := openKeys(t, masterKey)
	c := newClient(t, Options{Keys: keys})
	c.get("/health") // wait until it serves: otherwise it cannot be shut down
	s := c.server
	held := map[string][]string{"*": nil}
	for action := range opened {
		held[action] = []string{action}
	}
	for wildcard, actions := range wildcards {
		held[wildcard] = actions
	}
	known := map[string]bool{"POST /indexes/{index_uid}/documents/edit": true, "GET /downloads/dumps": true, "GET /downloads/dumps/{dump}": true, "GET /downloads/snapshots": true, "GET /downloads/snapshots/{snapshot}": true}
	for _, names := range opened {
		for _, name := range names {
			known[name] = true
		}
	}
	table := routes()
	for action, opens := range held {
		k, err := keys.Create(auth.Key{UID: uuid.New(), Actions: []string{action}, Indexes: []string{"mine*"}})
		if err != nil {
			t.Fatal(err)
		}
		everywhere, err := keys.Create(auth.Key{UID: uuid.New(), Actions: []string{action}, Indexes: []string{"x", "*"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range table {
			path := r.path
			if strings.HasPrefix(path, "/indexes/{index_uid}/settings/") {
				path = "/indexes/{index_uid}/settings"
			}
			name := r.method + " " + path
			if r.action == public || !known[name] {
				continue
			}
			want := action == "*" || action == "documents.*" && strings.HasSuffix(path, "/edit")
			for _, o := range opens {
				want = want || slices.Contains(opened[o], name)
			}
			for index, reached := range map[string]bool{"mine_1": true, "theirs": false, "not%20a%20uid": false} {
				if err := ask(s, r, keys.Value(everywhere), index); (err == nil) != want {
					t.Errorf("a key with %s for all indexes, %s %s, index %s: %v", action, r.method, r.path, index, err)
				}
				want := want && (reached || !strings.Contains(path, "{index_uid}")) && !onWhole[path]
				err := ask(s, r, keys.Value(k), index)
				if (err == nil) != want {
					t.Errorf("a key with %s, %s %s, index %s: %v", action, r.method, r.path, index, err)
				}
			}
			if err := ask(s, r, masterKey, "theirs"); err != nil {
				t.Errorf("the master key, %s %s: %v", r.method, r.path, err)
			}
		}
	}
	for name := range known {
		if !slices.ContainsFunc(table, func(r route) bool { return strings.HasPrefix(r.method+" "+r.path, name) }) {
			t.Errorf("there is no %s", name)
		}
	}
}

func TestClosedByDefault(t *testing.T) {
	keys := openKeys(t, masterKey)
	c := newClient(t, Options{Keys: keys})
	c.get("/health") // wait until it serves: otherwise it cannot be shut down
	s := c.server
	r := route{method: "GET", path: "/new"}
	for _, credential := range []string{masterKey, keys.Value(keys.List()[0])} {
		if ask(s, r, credential, "") == nil {
			t.Error("a route without an action is open")
		}
	}
}

// TestRestrictedKey checks what a key for some indexes may and may not do.
func TestRestrictedKey(t *testing.T) {
	c := newProtected(t)
	for _, uid := range []string{"mine", "mine_too", "theirs"} {
		c.wait(c.json("POST", "/indexes/"+uid+"/documents", `[{"id": 1}]`))
	}
	c.wait(c.json("POST", "/swap-indexes", `[{"indexes": ["mine", "mine_too"]}]`)) // task 3, of no index
	k := c.as(c.makeKey(`["*"]`, `["mine", "mine_*"]`))
	answers := func(r reply, status int, want string) {
		t.Helper()
		got := r.code()
		if got == "" {
			got = still(r.body)
		}
		if r.status != status || !strings.Contains(got, want) {
			t.Errorf("%d %s, want %d %s", r.status, got, status, want)
		}
	}
	refused := func(r reply) {
		t.Helper()
		answers(r, 403, "invalid_api_key")
	}
	refused(k.get("/indexes/theirs"))
	refused(k.get("/indexes/theirs_and_none"))
	refused(k.get("/indexes/the%69rs"))
	refused(k.get("/indexes/not%20a%20uid"))
	answers(k.get("/indexes/m%69ne/documents/1"), 200, `{"id":1}`)
	answers(k.get("/indexes/mine_none"), 404, "index_not_found")
	answers(k.get("/indexes"), 200, `"total":2}`)
	answers(k.get("/indexes?offset=1&limit=1"), 200, `{"results":[{"uid":"mine_too",`)
	if r := k.get("/stats"); strings.Contains(r.body, "theirs") || !strings.Contains(r.body, "mine_too") {
		t.Errorf("/stats shows %s", r.body)
	}

	answers(k.get("/tasks?limit=1"), 200, `{"results":[{"uid":1,`)
	answers(k.get("/tasks"), 200, `"total":2,"limit":20,"from":1,"next":null}`)
	answers(k.get("/tasks?indexUids=theirs"), 200, `{"results":[],"total":0,`)
	answers(k.get("/tasks/1"), 200, `"uid":1,`)
	answers(k.get("/tasks/2"), 404, "task_not_found")
	answers(k.get("/tasks/3"), 404, "task_not_found")
	answers(k.get("/batches"), 200, `"total":2,`)
	answers(k.get("/batches/0"), 200, `"uid":0,`)
	answers(k.get("/batches/2"), 404, "batch_not_found")
	for path, matched := range map[string]int{"/tasks/cancel?uids=0,1,2,3": 2, "/tasks/cancel?statuses=succeeded": 2, "/tasks/cancel?uids=2": 0} {
		if done := c.wait(k.send("POST", path, nil)); !strings.Contains(done, fmt.Sprintf(`"matchedTasks":%d,`, matched)) {
			t.Errorf("%s: %s", path, done)
		}
	}
	if done := c.wait(k.send("DELETE", "/tasks?uids=1,2,3", nil)); !strings.Contains(done, `"matchedTasks":1,"deletedTasks":1,`) {
		t.Error(done)
	}
	answers(c.get("/tasks/2"), 200, `"uid":2,`)

	refused(k.json("POST", "/indexes", `{"uid": "other"}`))
	answers(k.json("POST", "/indexes", `{"uid": 1}`), 400, "invalid_index_uid")
	refused(k.json("PATCH", "/indexes/mine", `{"uid": "other"}`))
	refused(k.json("POST", "/swap-indexes", `[{"indexes": ["mine", "theirs"]}]`))
	refused(k.json("POST", "/swap-indexes", `[{"indexes": ["mine", "mine_too"]}, {"indexes": ["mine_2", "theirs"], "rename": true}]`))
	const to = `{"url": "http://127.0.0.1:1"`
	refused(k.json("POST", "/export", to+`}`))
	refused(k.json("POST", "/export", to+`, "indexes": {"*": {}}}`))
	refused(k.json("POST", "/export", to+`, "indexes": {"mine": {}, "theirs": {}}}`))
	refused(k.json("POST", "/export", to+`, "indexes": {"mine": {}, "mine_*": {}}}`))
	answers(c.json("PATCH", "/experimental-features", `{"logsRoute": true}`), 200, `"logsRoute":true`)
	refused(k.json("POST", "/logs/stream", `{}`))

	for _, r := range []reply{
		k.json("POST", "/indexes", `{"uid": "mine_new"}`),
		k.json("PATCH", "/indexes/mine_new", `{"uid": "mine_newer"}`),
		k.json("POST", "/swap-indexes", `[{"indexes": ["mine", "mine_too"]}]`),
	} {
		if done := c.wait(r); !strings.Contains(done, `"succeeded"`) {
			t.Error(done)
		}
	}
}

// TestRightToCreate checks that documents and settings create an index only with the right to create indexes.
func TestRightToCreate(t *testing.T) {
	c := newProtected(t)
	const rights = `"documents.add", "settings.update"`
	without, with := c.as(c.makeKey(`[`+rights+`]`, `["*"]`)), c.as(c.makeKey(`[`+rights+`, "indexes.create"]`, `["*"]`))
	for _, tt := range []struct {
		k            *client
		method, path string
		body, want   string
	}{
		{without, "POST", "/indexes/a/documents", `[{"id": 1}]`, `"index_not_found"`},
		{with, "POST", "/indexes/a/documents", `[{"id": 1}]`, `"succeeded"`},
		{without, "POST", "/indexes/a/documents", `[{"id": 1}]`, `"succeeded"`},
		{without, "PATCH", "/indexes/b/settings", `{"stopWords": ["x"]}`, `"index_not_found"`},
		{without, "PUT", "/indexes/b/settings/stop-words", `["x"]`, `"index_not_found"`},
		{with, "PATCH", "/indexes/b/settings", `{"stopWords": ["x"]}`, `"succeeded"`},
	} {
		if done := c.wait(tt.k.json(tt.method, tt.path, tt.body)); !strings.Contains(done, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.method, tt.path, done, tt.want)
		}
	}
}

// tenantToken signs claims with the default key for searches.
func (c *client) tenantToken(claims string) string {
	c.t.Helper()
	return c.tokenOf("Default Search API Key", claims)
}

// tokenOf makes a tenant token of the key with that name.
func (c *client) tokenOf(name, claims string) string {
	c.t.Helper()
	all := c.server.keys.List()
	k := all[slices.IndexFunc(all, func(k *auth.Key) bool { return k.Name != nil && *k.Name == name })]
	var m jwt.MapClaims
	if err := encoding.Unmarshal([]byte(claims), &m); err != nil {
		c.t.Fatal(err)
	}
	m["apiKeyUid"] = k.UID.String()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, m).SignedString([]byte(c.server.keys.Value(k)))
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

func TestTenantTokens(t *testing.T) {
	c := newProtected(t)
	c.json("PATCH", "/indexes/toys/settings", `{"filterableAttributes": ["kind", "owner"]}`)
	c.wait(c.json("POST", "/indexes/toys/documents", `[{"id": 1, "kind": "car", "owner": "ann"}, {"id": 2, "kind": "car", "owner": "bob"},
		{"id": 3, "kind": "doll", "owner": "ann"}, {"id": 4, "kind": "robot", "owner": "cid"}]`))
	for _, tt := range []struct{ rules, filter, want string }{ // want: the ids, or a code
		{`["*"]`, ``, "1234"},
		{`["toys"]`, `"kind = car"`, "12"},
		{`["tools"]`, ``, "invalid_api_key"},
		{`{"toys": {"filter": "owner = ann OR owner = bob"}}`, ``, "123"},
		{`{"toys": {"filter": "owner = ann OR owner = bob"}}`, `"kind = car"`, "12"},
		{`{"toys": {"filter": "owner = ann OR owner = bob"}}`, `"kind = car OR kind = robot"`, "12"},
		{`{"toys": {"filter": "owner = ann OR owner = bob"}}`, `"owner = cid"`, ""},
		{`{"toys": {"filter": [["owner = ann", "owner = cid"], "kind != doll"]}}`, `["id = 1 OR kind = robot"]`, "invalid_search_filter"},
		{`{"toys": {"filter": [["owner = ann", "owner = cid"], "kind != doll"]}}`, `[["kind = car", "kind = robot"]]`, "14"},
		{`{"toys": {"filter": "owner = ann"}, "*": {"filter": "owner = bob"}}`, ``, "13"},
		{`{"toys": null, "*": {"filter": "owner = bob"}}`, ``, "1234"},
		{`{"toys": {"filter": ""}}`, ``, "invalid_api_key"},
		{`{"toys": {"filter": []}}`, `"kind = doll"`, "invalid_api_key"},
		{`{"toys": {"filter": "owner = ann", "other": 1}}`, ``, "invalid_api_key"},
		{`{"toys": {"filter": 12}}`, ``, "invalid_search_filter"},
		{`{"toys": {"filter": "owner ="}}`, ``, "invalid_search_filter"},
		{`{"toys": {"filter": "nothing = 1"}}`, ``, "invalid_search_filter"},
		{`{"toys": {"filter": "owner CONTAINS a"}}`, ``, "feature_not_enabled"},
	} {
		k := c.as(c.tenantToken(`{"searchRules": ` + tt.rules + `}`))
		body := `{"attributesToRetrieve": ["id"]`
		if tt.filter != "" {
			body += `, "filter": ` + tt.filter
		}
		r := k.json("POST", "/indexes/toys/search", body+`}`)
		got := r.code()
		if r.status == 200 {
			for _, id := range []string{"1", "2", "3", "4"} {
				if strings.Contains(r.body, `{"id":`+id+`}`) {
					got += id
				}
			}
		}
		if got != tt.want {
			t.Errorf("%s with %s: %s, want %s (%s)", tt.rules, tt.filter, got, tt.want, r.body)
		}
	}
	k := c.as(c.tenantToken(`{"searchRules": {"toys": {"filter": "owner = ann"}}}`))
	if r := k.get("/indexes/toys/search?filter=kind+=+car&attributesToRetrieve=id"); !strings.Contains(r.body, `"hits":[{"id":1}]`) {
		t.Errorf("in a query string: %s", r.body)
	}
	if r := k.json("POST", "/indexes/toys/facet-search", `{"facetName": "kind"}`); !strings.Contains(r.body, `[{"value":"car","count":1},{"value":"doll","count":1}]`) {
		t.Errorf("facet search: %s", r.body)
	}
	for _, path := range []string{"/indexes", "/indexes/toys", "/indexes/toys/documents", "/tasks", "/stats", "/keys", "/version"} {
		if r := k.get(path); r.status != 403 {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

// TestForeignDocumentsOfOthers checks that foreign keys do not lead a caller to indexes without access.
func TestForeignDocumentsOfOthers(t *testing.T) {
	c := newProtected(t)
	c.json("PATCH", "/experimental-features", `{"foreignKeys": true}`)
	c.json("PATCH", "/indexes/authors/settings", `{"filterableAttributes": ["land"]}`)
	c.json("POST", "/indexes/authors/documents", `[{"id": "ann", "land": "FR"}]`)
	c.json("PATCH", "/indexes/books/settings", `{"filterableAttributes": ["by"], "foreignKeys": [{"fieldName": "by", "foreignIndexUid": "authors"}]}`)
	c.wait(c.json("POST", "/indexes/books/documents", `[{"id": 1, "by": "ann"}]`))
	const raw, whole = `"hits":[{"id":1,"by":"ann"}]`, `"hits":[{"id":1,"by":{"id":"ann","land":"FR"}}]`
	const inFrance = `{"filter": "_foreign(by, land = FR)"}`
	for name, tt := range map[string]struct {
		key   string
		sees  bool
		token bool
	}{
		"master key":         {masterKey, true, false},
		"both indexes":       {c.makeKey(`["*"]`, `["books", "authors"]`), true, false},
		"books only":         {c.makeKey(`["*"]`, `["books"]`), false, false},
		"token":              {c.tenantToken(`{"searchRules": ["*"]}`), true, true},
		"token for books":    {c.tenantToken(`{"searchRules": ["books"]}`), false, true},
		"token with filter":  {c.tenantToken(`{"searchRules": {"books": null, "authors": {"filter": "land = VN"}}}`), false, true},
		"token, other rules": {c.tenantToken(`{"searchRules": {"books": null, "a*": {}}}`), true, true},
	} {
		k := c.as(tt.key)
		shown, code := raw, "index_not_found"
		if tt.sees {
			shown, code = whole, ""
		}
		if r := k.json("POST", "/indexes/books/search", `{}`); !strings.Contains(r.body, shown) {
			t.Errorf("%s: %s", name, r.body)
		}
		if r := k.json("POST", "/indexes/books/search", inFrance); r.code() != code || code != "" && strings.Contains(r.body, "authors") {
			t.Errorf("%s, filtered: %s", name, r.body)
		}
		if tt.token {
			continue
		}
		if r := k.json("POST", "/indexes/books/documents/fetch", inFrance); r.code() != code {
			t.Errorf("%s, fetched: %s", name, r.body)
		}
		if r := k.json("POST", "/indexes/books/documents/delete", `{"filter": "_foreign(by, land = VN)"}`); (r.status == 202) != (name == "master key") {
			t.Errorf("%s, deletion: %s", name, r.body)
		}
		if r := k.json("POST", "/indexes/books/documents/delete", `{"filter": "by = none"}`); r.status != 202 {
			t.Errorf("%s, plain deletion: %s", name, r.body)
		}
	}
}

// TestProfilesKeepSecrets requests the command line, which may have the master key, with a key that has all rights.
func TestProfilesKeepSecrets(t *testing.T) {
	c := newClient(t, Options{Keys: openKeys(t, masterKey), Pprof: true}).as(masterKey)
	for path, want := range map[string]int{"/debug/pprof": 200, "/debug/pprof/goroutine": 200, "/debug/pprof/cmdline": 404} {
		if r := c.get(path); r.status != want || strings.Contains(r.body, os.Args[0]+"\x00") {
			t.Errorf("%s: %d %.200s", path, r.status, r.body)
		}
	}
}

// TestHasHeader compares hasHeader with a search of all lines.
func TestHasHeader(t *testing.T) {
	slow := func(h *fasthttp.RequestHeader, name string) bool {
		for line := range strings.Lines(string(h.RawHeaders())) {
			if key, _, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.TrimSpace(key), name) {
				return true
			}
		}
		return false
	}
	names := []string{"Transfer-Encoding", "tRANSFER-eNCODING", "Trailer", "T", "Content-Length", "content-length", "Accept", "Authorization", "Transfer-Encoding2", "Host"}
	values := []string{"", "identity", "chunked", "4", ":", "Transfer-Encoding: x", " "}
	read, found := 0, 0
	for range 3000 {
		raw := "POST / HTTP/1.1\r\nHost: a\r\n"
		for range rand.IntN(6) {
			raw += names[rand.IntN(len(names))] + ":" + strings.Repeat(" ", rand.IntN(2)) + values[rand.IntN(len(values))] + []string{"\r\n", "\r\n", "\n"}[rand.IntN(3)]
		}
		var h fasthttp.RequestHeader
		if h.Read(bufio.NewReader(strings.NewReader(raw+"\r\n"))) != nil {
			continue
		}
		read++
		for _, name := range []requestHeader{headerTransferEncoding, headerContentLength, headerAuthorization} {
			want := slow(&h, string(name))
			if want {
				found++
			}
			if got := hasHeader(&h, name); got != want {
				t.Fatalf("%s: %t in %q", name, got, h.RawHeaders())
			}
		}
	}
	if read < 300 || found < 100 {
		t.Errorf("%d were read, %d found", read, found)
	}
}
