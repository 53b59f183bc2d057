package fastapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/valyala/fasthttp"

	"svc/internal/task"
)

// withKey is a transport that adds a key.
type withKey struct {
	http.RoundTripper
	key string
}

func (w withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if w.key != "" {
		r.Header.Set("Authorization", "Bearer "+w.key)
	}
	return w.RoundTripper.RoundTrip(r)
}

// toolClient is a client of the protocol.
type toolClient struct {
	t *testing.T
	*mcp.ClientSession
}

// tools connects a protocol client of the SDK.
func (c *client) tools(t *testing.T, version string) toolClient {
	t.Helper()
	session, err := c.dialTools(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return toolClient{t, session}
}

func (c *client) dialTools(ctx context.Context, version string) (*mcp.ClientSession, error) {
	transport := &mcp.StreamableClientTransport{
		Endpoint: "http://localhost/mcp", MaxRetries: -1, HTTPClient: &http.Client{Transport: withKey{c.http.Transport, c.key}},
	}
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
}

func (c toolClient) names() []string {
	c.t.Helper()
	list, err := c.ListTools(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// call calls a tool with arguments in JSON and returns its text.
func (c toolClient) call(name, arguments string) (text string, failed bool) {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	if len(r.Content) != 1 {
		c.t.Fatalf("%s: %d parts", name, len(r.Content))
	}
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

func newToolServer(t *testing.T) *client {
	c := newProtected(t)
	c.json("PATCH", "/experimental-features", `{"mcp": true}`)
	c.json("PATCH", "/indexes/toys/settings", `{"filterableAttributes": ["kind", "owner"]}`)
	c.wait(c.json("POST", "/indexes/toys/documents", `[{"id": 1, "kind": "car", "owner": "ann"}, {"id": 2, "kind": "car", "owner": "bob"}, {"id": 3, "kind": "doll", "owner": "ann"}]`))
	return c
}

// TestTools calls all tools with each version of the protocol.
func TestTools(t *testing.T) {
	for _, version := range []string{"", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			c := newToolServer(t)
			m := c.tools(t, version)
			want := []string{"list_indexes", "search", "search_facet_values", "find_similar", "get_documents", "add_documents", "delete_documents", "get_settings",
				"update_settings", "list_tasks", "get_task"}
			if names := m.names(); !slices.Equal(names, want) {
				t.Errorf("tools: %q", names)
			}
			for _, tt := range []struct {
				name, arguments, want string
				failed                bool
			}{
				{"list_indexes", `{"limit": 5}`, `"uid":"toys"`, false},
				{"search", `{"indexUid": "toys", "q": "dol", "filter": "owner = ann"}`, `"hits":[{"id":3,`, false},
				{"search", `{"indexUid": "toys", "q": "dol", "limit": "many"}`, `"invalid_search_limit"`, true},
				{"search", `{"q": "doll"}`, "`indexUid` is missing", true},
				{"search", `{"indexUid": "toys", "qq": "doll"}`, "`qq` is unknown", true},
				{"search", `{"indexUid": "../../keys"}`, `"invalid_index_uid"`, true},
				{"search", `{"indexUid": "nothing"}`, `"index_not_found"`, true},
				{"search_facet_values", `{"indexUid": "toys", "facetName": "kind"}`, `{"value":"car","count":2}`, false},
				{"find_similar", `{"indexUid": "toys", "id": 1, "embedder": "e"}`, `"invalid_similar_embedder"`, true},
				{"get_documents", `{"indexUid": "toys", "ids": [2], "fields": ["owner"]}`, `"results":[{"owner":"bob"}]`, false},
				{"add_documents", `{"indexUid": "toys", "documents": [{"id": 4, "kind": "kite"}], "primaryKey": "id"}`, `"documentAdditionOrUpdate"`, false},
				{"delete_documents", `{"indexUid": "toys", "ids": [3, "1"]}`, `"documentDeletion"`, false},
				{"delete_documents", `{"indexUid": "toys"}`, "`ids` is missing", true},
				{"update_settings", `{"indexUid": "toys", "settings": {"stopWords": ["the"]}}`, `"settingsUpdate"`, false},
				{"get_task", `{"taskUid": 1}`, `"uid":1`, false},
				{"list_tasks", `{"statuses": "succeeded", "uids": [0, 1], "limit": 1}`, `"total":2,"limit":1`, false},
			} {
				text, failed := m.call(tt.name, tt.arguments)
				if failed != tt.failed || !strings.Contains(text, tt.want) {
					t.Errorf("%s %s: %t %s", tt.name, tt.arguments, failed, text)
				}
			}
			c.wait(reply{202, nil, `{"taskUid": 4}`})
			if text, _ := m.call("get_settings", `{"indexUid": "toys"}`); !strings.Contains(text, `"stopWords":["the"]`) {
				t.Errorf("settings: %s", text)
			}
			if text, _ := m.call("search", `{"indexUid": "toys", "attributesToRetrieve": ["id"]}`); !strings.Contains(text, `"hits":[{"id":2},{"id":4}]`) {
				t.Errorf("after changes: %s", text)
			}
		})
	}
}

// TestToolsNeedRights calls tools with keys that allow some of them, or some indexes.
func TestToolsNeedRights(t *testing.T) {
	c := newToolServer(t)
	c.wait(c.json("POST", "/indexes/other/documents", `[{"id": 9}]`))
	const all = `{"indexUid": "toys", "attributesToRetrieve": ["id"]}`
	for _, tt := range []struct {
		what, key, tools, found, other, added string // parts of results
	}{
		{"the master key", masterKey, "all", `"hits":[{"id":1},{"id":2},{"id":3}]`, `"id":9`, `"taskUid"`},
		{"a key for searches", c.makeKey(`["search"]`, `["*"]`), "search search_facet_values find_similar", `"id":3`, `"id":9`, "invalid_api_key"},
		{"a key for an index", c.makeKey(`["search", "documents.add"]`, `["toys"]`), "search search_facet_values find_similar add_documents", `"id":3`, "invalid_api_key", `"taskUid"`},
		{"a key for tasks", c.makeKey(`["tasks.get"]`, `["*"]`), "list_tasks get_task", "invalid_api_key", "invalid_api_key", "invalid_api_key"},
		{"a tenant token", c.tenantToken(`{"searchRules": {"toys": {"filter": "owner = ann"}}}`), "search search_facet_values find_similar", `"hits":[{"id":1},{"id":3}]`, "invalid_api_key", "invalid_api_key"},
	} {
		m := c.as(tt.key).tools(t, "")
		if names := strings.Join(m.names(), " "); names != tt.tools && tt.tools != "all" {
			t.Errorf("%s shows %s", tt.what, names)
		}
		for _, call := range [][3]string{
			{"search", all, tt.found}, {"search", `{"indexUid": "other"}`, tt.other}, {"add_documents", `{"indexUid": "toys", "documents": []}`, tt.added},
		} {
			if text, _ := m.call(call[0], call[1]); !strings.Contains(text, call[2]) {
				t.Errorf("%s, %s %s: %s, want %s", tt.what, call[0], call[1], text, call[2])
			}
		}
	}
	for what, key := range map[string]string{"no key": "", "a wrong key": "wrong", "a key that opens no tool": c.makeKey(`["stats.get"]`, `["*"]`)} {
		if m, err := c.as(key).dialTools(t.Context(), ""); err == nil {
			m.Close()
			t.Errorf("%s is accepted", what)
		}
	}
	c.json("PATCH", "/experimental-features", `{"mcp": false}`)
	if _, err := c.dialTools(t.Context(), ""); err == nil {
		t.Error("the tools exist without the feature")
	}
	if r := c.post(`{"jsonrpc": "2.0", "id": 1, "method": "ping"}`); r.code() != "feature_not_enabled" {
		t.Errorf("without the feature: %d %s", r.status, r.body)
	}
}

// post sends a raw message.
func (c *client) post(message string, headers ...string) reply {
	c.t.Helper()
	return c.send("POST", "/mcp", strings.NewReader(message), slices.Concat([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, headers)...)
}

const ping = `{"jsonrpc": "2.0", "id": 1, "method": "ping"}`

// TestToolOrigins checks requests by the headers that browsers send about the calling page.
func TestToolOrigins(t *testing.T) {
	closed := newToolServer(t)
	tcp := Options{}
	openInstance(t, &tcp)
	open := newTCPClient(t, tcp)
	open.json("PATCH", "/experimental-features", `{"mcp": true}`)
	for _, tt := range []struct {
		c            *client
		host, origin string
		status       int
	}{
		{closed, "", "", 200},
		{closed, "search.example.com", "", 200},
		{closed, "search.example.com", "https://search.example.com", 200},
		{closed, "search.example.com", "https://evil.example.com", 403},
		{closed, "search.example.com", "null", 403},
		{closed, "search.example.com", "http://localhost:6274", 200},
		{open, "localhost:7700", "", 200},
		{open, "[::1]:7700", "http://[::1]:3000", 200},
		{open, "127.0.0.1", "http://127.0.0.1:3000", 200},
		{open, "localhost", "https://evil.example.com", 403},
		{open, "localhost", "http://localhost.evil.example.com", 403},
		{open, "evil.example.com", "", 403},
		{open, "evil.example.com", "http://evil.example.com", 403},
	} {
		req, err := http.NewRequest("POST", "http://svc/mcp", strings.NewReader(ping))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		for name, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Origin": tt.origin, "Authorization": "Bearer " + tt.c.key} {
			if v != "" && v != "Bearer " {
				req.Header.Set(name, v)
			}
		}
		res, err := tt.c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if res.Body.Close(); err != nil || res.StatusCode != tt.status {
			t.Errorf("%s from %q: %d %s", tt.host, tt.origin, res.StatusCode, body)
		}
	}
}

// TestToolMessages sends hand-made messages, none of which may crash the server or keep it waiting.
func TestToolMessages(t *testing.T) {
	var logged bytes.Buffer
	o := Options{Keys: openKeys(t, masterKey), JSONLimit: 10000, MultiQueries: 3}
	openInstance(t, &o)
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	c := newClient(t, o)
	c.key = masterKey
	c.json("PATCH", "/experimental-features", `{"mcp": true}`)
	c.wait(c.json("POST", "/indexes/toys/documents", `[{"id": 1}]`))
	call := func(id int, arguments string) string {
		return fmt.Sprintf(`{"jsonrpc": "2.0", "id": %d, "method": "tools/call", "params": {"name": "search", "arguments": %s}}`, id, arguments)
	}
	for _, tt := range []struct {
		message string
		status  int
		want    string
	}{
		{ping, 200, `"result":{}`},
		{call(1, `{"indexUid": "toys"}`), 200, `\"hits\":[{\"id\":1}]`},
		{"[" + call(1, `{"indexUid": "toys"}`) + "," + call(2, `{"indexUid": "none"}`) + "]", 200, `index_not_found`},
		{"[" + strings.TrimSuffix(strings.Repeat(ping+",", 4), ",") + "]", 400, "at most 3"},
		{"[" + ping + "," + ping + "]", 200, `"result"`},
		{"[" + call(1, `{"indexUid": "toys"}`) + "," + call(1, `{"indexUid": "toys"}`) + "]", 200, `hits`},
		{"[" + call(1, `{"indexUid": "toys"}`) + `, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "x"}}]`, 200, `"id":1`},
		{"[]", 400, ""},
		{`{"jsonrpc": "2.0", "method": "notifications/initialized"}`, 202, ""},
		{`{"jsonrpc": "2.0", "id": 1, "result": {}}`, 202, ""},
		{`{"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {}}`, 200, "-32601"},
		{`{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}`, 200, "-32601"},
		{`{"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "debug"}}`, 200, "-32601"},
		{`{"jsonrpc": "2.0", "id": 1, "method": "nothing"}`, 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"nothing is not supported`},
		{`{"jsonrpc": "2.0", "id": "a\"b", "method": "no\"thing"}`, 200, `"id":"a\"b","error":{"code":-32601`},
		{`{"jsonrpc": "2.0", "method": "notifications/of/others"}`, 202, ""},
		{`{"jsonrpc": "2.0", "method": "nothing"}`, 400, ""},
		{`[{"jsonrpc": "2.0", "id": 1, "method": "nothing"}]`, 200, `[{"jsonrpc":"2.0","id":1,"error":{"code":-32601,`},
		{`[{"jsonrpc": "2.0", "id": 1, "method": "nothing"}, ` + ping + `]`, 200, `is not supported: this server offers only tools"}},{"jsonrpc":"2.0","id":1,"result":{}}]`},
		{`[{"jsonrpc": "2.0", "method": "nothing"}, ` + ping + `]`, 200, `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{`[{"jsonrpc": "2.0", "id": 8, "method": "tools/call"}, ` + ping + `]`, 200, `[{"jsonrpc":"2.0","id":8,"error":{"code":-32600,`},
		{`[{"jsonrpc": "2.0", "id": {}, "method": "ping"}, ` + ping + `]`, 200, `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{`[{"jsonrpc": "2.0", "method": "notifications/of/others"}, {"jsonrpc": "2.0", "method": "notifications/initialized"}]`, 202, ""},
		{`[5, 7]`, 400, "must be a JSON object, but it is a number"},
		{`{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}`, 400, "`id` of a message must be"},
		{`{"jsonrpc": "2.0", "id": 1e2, "method": "ping"}`, 400, "`id` of a message must be"},
		{`{"jsonrpc": "2.0", "id": {}, "method": "ping"}`, 400, "`id` of a message must be"},
		{`{"jsonrpc": "2.0", "id": -7, "method": "ping"}`, 200, `"id":-7`},
		{`{"jsonrpc": "2.0", "id": 1, "method": 5}`, 400, "`method` of a message must be"},
		{`{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}`, 400, "`params` of a message must be"},
		{`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}`, 400, "`params` of a message must be"},
		{`[` + ping + `, 7]`, 200, "must be a JSON object, but it is a number"},
		{`{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}`, 400, ""},
		{`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nothing"}}`, 200, "unknown tool"},
		{call(1, `[]`), 200, "must be a JSON object"},
		{call(1, `null`), 200, "must be a JSON object"},
		{call(1, `{"indexUid": {"a": 1}}`), 200, "invalid_index_uid"},
		{call(1, `{"indexUid": "toys", "indexUid": "none"}`), 200, "hits"},
		{`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_tasks", "arguments": {"limit": [[1]], "from": {}}}}`, 200, "invalid_task_from"},
		{`{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "search"}}`, 400, ""},
		{`{"id": 1}`, 400, ""},
		{`7`, 400, "must be a JSON object, but it is a number"},
		{`{"jsonrpc": "2.0"`, 400, "malformed_payload"},
		{`{"jsonrpc": "2.0", "id": "\ud800", "method": "ping"}`, 400, "malformed_payload"},
		{`"` + strings.Repeat("x", 10000) + `"`, 413, "payload_too_large"},
		{strings.Repeat("[", 5000), 400, "malformed_payload"},
	} {
		if r := c.post(tt.message); r.status != tt.status || !strings.Contains(r.body, tt.want) {
			t.Errorf("%.200s: %d %s", tt.message, r.status, r.body)
		}
	}
	subscription := `{"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": true}, "_meta": {` +
		`"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": {}}}}`
	if r := c.post(subscription, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"); !strings.Contains(r.body, "-32601") {
		t.Errorf("a subscription: %d %s", r.status, r.body)
	}
	if n := strings.Count(logged.String(), "request.route=/indexes/toys/search"); n < 3 {
		t.Errorf("calls are missing in the log: %s", logged.String())
	}
	if used := heldAtEnd(c.server); used != 0 {
		t.Errorf("%d bytes are still held", used)
	}
	for _, r := range []reply{
		c.send("POST", "/mcp", strings.NewReader(ping), "Content-Type", "application/json"), // without an Accept header
		c.post(`"no message"`), c.post(ping, "MCP-Protocol-Version", "1999-01-01"),
		c.post("["+ping+","+ping+"]", "MCP-Protocol-Version", "2025-06-18"), // which has no batches
	} {
		if r.status < 400 || r.status > 499 || !strings.HasPrefix(r.body, `{"`) || !json.Valid([]byte(r.body)) {
			t.Errorf("a refusal is %d %q", r.status, r.body)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		if r := c.send(method, "/mcp", nil, "Accept", "text/event-stream"); r.status != 405 || r.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, r.status, r.header.Get("Allow"))
		}
	}
}

// TestToolsStop sends batches of writes whose client has gone, and to a stopping server: no more writes may happen.
func TestToolsStop(t *testing.T) {
	c := newToolServer(t)
	write := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc": "2.0", "id": %d, "method": "tools/call", "params": {"name": "add_documents", "arguments": {"indexUid": "toys", "documents": [{"id": 9}]}}}`, id)
	}
	batch := "[" + write(1) + "," + write(2) + "]"
	tasks := func() int {
		uids, err := c.server.queue.Match(task.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return len(uids)
	}
	before := tasks()
	c.post(batch)
	if now := tasks(); now != before+2 {
		t.Fatalf("a batch of two writes: from %d tasks to %d", before, now)
	}

	outer := new(fasthttp.RequestCtx)
	r := c.server.begin(outer)
	defer r.Close()
	x := &exchange{server: c.server, outer: outer, credential: masterKey}
	r.context().cancel() // like a client that is known to have gone
	for i := range c.server.tools.list {
		if result, err := x.call(&c.server.tools.list[i], []byte(`{"indexUid": "toys", "documents": [{"id": 9}]}`)); result != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s for a client that has gone: %v, %v", c.server.tools.list[i].name, result, err)
		}
	}
	c.server.endSearches()
	if r := c.post(batch); r.status != http.StatusServiceUnavailable {
		t.Errorf("a stopping server answers %d %q", r.status, r.body)
	}
	if now := tasks(); now != before+2 {
		t.Errorf("%d tasks, want %d", now, before+2)
	}
}

// TestToolsKeepLimits checks that the limit of search answers applies to tools.
func TestToolsKeepLimits(t *testing.T) {
	o := Options{AnswerLimit: 100 << 10}
	openInstance(t, &o)
	c := newClient(t, o)
	c.json("PATCH", "/experimental-features", `{"mcp": true}`)
	c.wait(c.json("POST", "/indexes/i/documents", fmt.Sprintf(`[{"id": 1, "t": %q}, {"id": 2, "t": %[1]q}, {"id": 3, "t": %[1]q}, {"id": 4, "t": %[1]q}, {"id": 5, "t": %[1]q}]`, strings.Repeat("x ", 20<<10))))
	m := c.tools(t, "")
	if text, failed := m.call("search", `{"indexUid": "i", "limit": 1}`); failed {
		t.Errorf("one: %s", text)
	}
	if text, failed := m.call("search", `{"indexUid": "i"}`); !failed || !strings.Contains(text, "invalid_search_limit") {
		t.Errorf("all: %.200s", text)
	}
}

// TestToolsTakeTheTimeOfTheirCall checks that the rate limit of a key counts calls of tools, and that reports have their durations.
func TestToolsTakeTheTimeOfTheirCall(t *testing.T) {
	c := newCounting(t)
	c.json("PATCH", "/experimental-features", `{"mcp": true}`)
	r := c.json("POST", "/keys", `{"actions": ["search"], "indexes": ["*"], "expiresAt": null, "rateLimit": {"searchesPerSecond": 1}}`)
	var limited struct{ Key string }
	if err := json.Unmarshal([]byte(r.body), &limited); err != nil || limited.Key == "" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	const message = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"indexUid": "films", "q": "dune"}}}`
	batch := "[" + strings.TrimSuffix(strings.Repeat(message+",", 8), ",") + "]" // of less than a second
	answer := c.as(limited.Key).post(batch, "Mcp-Protocol-Version", "2025-03-26")
	if refused := strings.Count(answer.body, "api_key_rate_limit_exceeded"); refused == 0 || !strings.Contains(answer.body, "Dune") {
		t.Errorf("%d of 8 calls are refused: %d %s", refused, answer.status, answer.body)
	}
	var report struct{ Results []queryReport }
	if err := json.Unmarshal([]byte(c.get("/analytics/slow").body), &report); err != nil || len(report.Results) != 1 || report.Results[0].LongestMs > float64(time.Hour.Milliseconds()) {
		t.Errorf("the report is %+v, %v", report, err)
	}
}

// TestToolsDescribeParameters checks that each parameter of a tool is described, and that each description belongs to one.
func TestToolsDescribeParameters(t *testing.T) {
	used := map[string]bool{}
	for _, x := range tools() {
		for _, p := range x.takes {
			used[p.name] = true
			if p.kind == raw && p.form == nil && p.says == "" {
				t.Errorf("%s: the parameter %s has no description", x.name, p.name)
			}
		}
	}
	for _, words := range []map[string]property{pagingWords, searchWords, taskWords} {
		for name := range words {
			if !used[name] {
				t.Errorf("no tool has the parameter %s", name)
			}
		}
	}
}

// FuzzToolMessages sends any message.
func FuzzToolMessages(f *testing.F) {
	for _, seed := range []string{
		ping, `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`, `{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "list_indexes", "arguments": {"limit": 2}}}`,
		`[{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}]`,
		`{"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}`,
	} {
		f.Add(seed, "2025-11-25")
		f.Add(seed, "2026-07-28")
	}
	o := Options{}
	openInstance(f, &o)
	c := newClient(f, o)
	c.json("PATCH", "/experimental-features", `{"mcp": true}`)
	f.Fuzz(func(t *testing.T, message, version string) {
		c := *c
		c.t = t
		for _, b := range []byte(version) {
			if b <= ' ' || b >= 0x7f {
				return
			}
		}
		began := time.Now()
		r := c.post(message, "MCP-Protocol-Version", version)
		if took := time.Since(began); took > maxSearchTime/2 {
			t.Errorf("the answer took %v", took)
		}
		if r.status >= 500 {
			t.Errorf("%d %s", r.status, r.body)
		}
	})
}
