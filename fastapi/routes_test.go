package fastapi

import (
	"slices"
	"strings"
	"testing"
)

// samplePath fills the variable segments of a route.
func samplePath(path string) string {
	return strings.NewReplacer("{index_uid}", "films", "{document_id}", "id-1", "{task_id}", "7", "{batch_id}", "7", "{profile}", "heap", "{key}", "some-key", "{webhook}", "9f8e7d6c-5b4a-4c3d-8e2f-1a0b9c8d7e6f", "{rule_uid}", "some-rule", "{page}", "errors").Replace(path)
}

// TestRoutesHaveActions checks that each route has an action: without one it would be closed to everyone.
func TestRoutesHaveActions(t *testing.T) {
	open := map[string]bool{"GET /": true, "GET /assets/{hash}/{name}": true, "GET /demo": true, "GET /health": true, "GET /licenses": true, "GET /openapi.json": true, "GET /docs": true, "GET /docs/search": true, "GET /docs/{page}": true}
	seen := map[string]bool{}
	for _, r := range append(routes(), pprofRoutes()...) {
		name := r.method + " " + r.path
		switch {
		case seen[name]:
			t.Errorf("%s is in the table twice", name)
		case r.action == "":
			t.Errorf("%s states no action", name)
		case (r.action == public) != open[name]:
			t.Errorf("%s: public is %t", name, r.action == public)
		case r.handle == nil:
			t.Errorf("%s has no handler", name)
		}
		seen[name] = true
	}
}

// TestEveryRouteIsClosed requests every route without a key.
func TestEveryRouteIsClosed(t *testing.T) {
	c := newClient(t, Options{Keys: openKeys(t, "a-master-key-of-16+bytes"), Pprof: true, Demo: true})
	for _, r := range append(routes(), pprofRoutes()...) {
		path := samplePath(r.path)
		if strings.HasPrefix(path, "/assets/") {
			path = "/assets/" + dashboardPage().hash + "/app.js"
		}
		got := c.send(r.method, path, nil)
		if r.action == public {
			if got.status != 200 {
				t.Errorf("%s %s: %d", r.method, r.path, got.status)
			}
			continue
		}
		if got.status != 401 || got.code() != "missing_authorization_header" {
			t.Errorf("%s %s: %d %s", r.method, r.path, got.status, got.body)
		}
		got = c.send(r.method, samplePath(r.path), nil, "Authorization", "Bearer wrong")
		if got.status != 403 || got.code() != "invalid_api_key" {
			t.Errorf("%s %s with a wrong key: %d %s", r.method, r.path, got.status, got.body)
		}
	}
	if got := c.get("/nowhere"); got.status != 404 {
		t.Errorf("an unknown path: %d", got.status)
	}
}

func TestWrongMethods(t *testing.T) {
	c := newClient(t, Options{})
	methods := map[string][]string{}
	for _, r := range routes() {
		methods[r.path] = append(methods[r.path], r.method)
		if r.method == "GET" {
			methods[r.path] = append(methods[r.path], "HEAD")
		}
	}
	for path, known := range methods {
		slices.Sort(known)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if slices.Contains(known, method) {
				continue
			}
			r := c.send(method, samplePath(path), nil)
			if r.status != 405 || r.body != "" || r.header.Get("Content-Type") != "" || r.header.Get("Allow") != strings.Join(known, ", ") {
				t.Errorf("%s %s: %d %q, Content-Type %q, Allow %q", method, path, r.status, r.body, r.header.Get("Content-Type"), r.header.Get("Allow"))
			}
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	c := newClient(t, Options{})
	for _, path := range []string{
		"/nothing", "/indexes/a/nothing", "/indexes/a/documents/1/more", "/tasks/1/nothing", "/Indexes", "/health/x",
		"/v1/indexes", "/indexes/a/settings/nothing", "/debug/pprof", "/indexes/a/documents/1/",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			r := c.send(method, path+"/x", nil)
			if r.status != 404 || r.body != "" || r.header.Get("Content-Type") != "" {
				t.Errorf("%s %s: %d %q %q", method, path, r.status, r.body, r.header.Get("Content-Type"))
			}
		}
	}
}

// TestPathForms requests equivalent and similar forms of paths. The invalid uid shows which route a request reached before any
// index is looked up.
func TestPathForms(t *testing.T) {
	c := newClient(t, Options{})
	for _, tt := range []struct {
		path   string
		status int
		code   string
	}{
		{"/health/", 200, ""},
		{"//health", 200, ""},
		{"/health//?x=1", 200, ""},
		{"/Health", 404, ""},
		{"/indexes/not%20valid", 400, "invalid_index_uid"},
		{"/indexes/not%20valid/", 400, "invalid_index_uid"},
		{"//indexes//not%20valid//documents/", 400, "invalid_index_uid"},
		{"/indexes/no%2Fway/documents/1", 400, "invalid_index_uid"},
		{"/indexes/%C3%A9t%C3%A9", 400, "invalid_index_uid"},
		{"/indexes/a.b/stats", 400, "invalid_index_uid"},
		{"/indexes/" + strings.Repeat("a", 401), 400, "invalid_index_uid"},
		// Ids that start like names of routes.
		{"/indexes/not%20valid/documents/d", 400, "invalid_index_uid"},
		{"/indexes/not%20valid/documents/deleted", 400, "invalid_index_uid"},
		{"/indexes/not%20valid/documents/delete-", 400, "invalid_index_uid"},
		{"/indexes/not%20valid/documents/edition", 400, "invalid_index_uid"},
		{"/indexes/not%20valid/documents/fetch", 405, ""},
		{"/tasks/cancel", 405, ""},
		{"/tasks/compact", 405, ""},
		{"/tasks/c", 400, "invalid_task_uids"},
		{"/tasks/ca", 400, "invalid_task_uids"},
		{"/tasks/cancel/documents", 400, "invalid_task_uids"},
		{"/tasks/cancelled", 400, "invalid_task_uids"},
		{"/tasks/x", 400, "invalid_task_uids"},
		{"/tasks/4294967296", 400, "invalid_task_uids"},
		{"/batches/x", 400, "invalid_batch_uids"},
	} {
		r := c.get(tt.path)
		if r.status != tt.status || r.code() != tt.code {
			t.Errorf("GET %s: %d %s, want %d %s", tt.path, r.status, r.code(), tt.status, tt.code)
		}
	}
}

func TestAuthorizationHeader(t *testing.T) {
	const key = "a-master-key-of-16+bytes"
	protected, open := newClient(t, Options{Keys: openKeys(t, key)}), newClient(t, Options{})
	const none = "\x00"
	for _, tt := range []struct {
		header          string
		protected, open string // error codes; "" when the request passes
	}{
		{none, "missing_authorization_header", ""},
		{"Bearer " + key, "", ""},
		{"Bearer " + key + "x", "invalid_api_key", ""},
		{"Bearer anything", "invalid_api_key", ""},
		{"Bearer  " + key, "invalid_api_key", ""},
		{"Bearer", "invalid_api_key", "invalid_api_key"},
		{"Bearer ", "invalid_api_key", "invalid_api_key"},
		{"bearer " + key, "missing_authorization_header", "missing_authorization_header"},
		{"Basic " + key, "missing_authorization_header", "missing_authorization_header"},
		{key, "missing_authorization_header", "missing_authorization_header"},
		{"", "missing_authorization_header", "missing_authorization_header"},
	} {
		for c, want := range map[*client]string{protected: tt.protected, open: tt.open} {
			var headers []string
			if tt.header != none {
				headers = []string{"Authorization", tt.header}
			}
			if r := c.send("GET", "/version", nil, headers...); r.code() != want || (r.status == 200) != (want == "") {
				t.Errorf("%q: %d %s, want %q", tt.header, r.status, r.code(), want)
			}
		}
	}
	if r := protected.send("GET", "/health", nil, "Authorization", "Bearer wrong"); r.status != 200 {
		t.Errorf("/health with a wrong key: %d", r.status)
	}
}

func TestCORS(t *testing.T) {
	c := newClient(t, Options{Keys: openKeys(t, "a-master-key-of-16+bytes")})
	r := c.send("OPTIONS", "/indexes/a/search", nil,
		"Origin", "http://shop.test", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
	if r.status != 200 || r.header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(r.header.Get("Access-Control-Allow-Methods"), "PATCH") ||
		r.header.Get("Access-Control-Allow-Headers") != "authorization,content-type" || r.header.Get("Access-Control-Max-Age") != "86400" {
		t.Errorf("preflight: %d %v", r.status, r.header)
	}
	// Errors must be readable too.
	for _, path := range []string{"/health", "/indexes", "/nowhere"} {
		if r := c.send("GET", path, nil, "Origin", "null"); r.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: no Access-Control-Allow-Origin", path)
		}
		if r := c.get(path); !strings.Contains(r.header.Get("Vary"), "Origin") || r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s without an origin: %v", path, r.header)
		}
	}
	if r := c.send("OPTIONS", "/health", nil); r.status != 405 {
		t.Errorf("plain OPTIONS: %d", r.status)
	}
}

// TestHead checks that HEAD is GET without the body, with the same length.
func TestHead(t *testing.T) {
	c := newClient(t, Options{})
	for _, path := range []string{"/health", "/version", "/indexes", "/tasks?limit=1", "/indexes/none", "/stats"} {
		get, head := c.get(path), c.send("HEAD", path, nil)
		if head.status != get.status || head.body != "" || head.header.Get("Content-Type") != get.header.Get("Content-Type") || head.header.Get("Content-Length") != get.header.Get("Content-Length") {
			t.Errorf("%s: %d %q %v, while GET is %d %v", path, head.status, head.body, head.header, get.status, get.header)
		}
	}
}
