package fastapi

import (
	"strings"
	"testing"
)

// TestNoRoute requests unknown paths: clients that accept JSON get JSON, others what Meilisearch sends.
func TestNoRoute(t *testing.T) {
	c, _ := newInstance(t, Options{})
	for _, tt := range []struct {
		method, path, accept string
		status               int
		code                 string
	}{
		{"GET", "/nothing", "", 404, ""},
		{"GET", "/nothing", "text/html", 404, ""},
		{"GET", "/nothing", "*/*", 404, "route_not_found"},
		{"PUT", "/indexes/a/none", "text/html, application/json;q=0.9", 404, "route_not_found"},
		{"DELETE", "/health", "", 405, ""},
		{"DELETE", "/health", "application/json", 405, "method_not_allowed"},
	} {
		var headers []string
		if tt.accept != "" {
			headers = []string{"Accept", tt.accept}
		}
		r := c.send(tt.method, tt.path, nil, headers...)
		if r.status != tt.status || tt.code == "" && r.body != "" || !strings.Contains(r.body, tt.code) {
			t.Errorf("%s %s, Accept %q: %d %s", tt.method, tt.path, tt.accept, r.status, r.body)
		}
	}
}

// TestLoneSurrogates sends escaped halves of surrogate pairs: the error must give the position.
func TestLoneSurrogates(t *testing.T) {
	c, _ := newInstance(t, Options{})
	for body, at := range map[string]string{
		`{"q":"\ud800"}`:               "at byte 7",
		`{"q":"a\udc00"}`:              "at byte 8",
		`{"q":"\ud83dx\ude00"}`:        "at byte 7",
		`{"\ud83d":1}`:                 "at byte 3",
		`{"q":"\\ud800 \ud83d\ude00"}`: "",
	} {
		r := c.json("POST", "/multi-search", `{"queries":[`+body+`]}`)
		if got := strings.Contains(r.body, "surrogate"); got != (at != "") {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
		if r = c.json("PATCH", "/indexes/a/settings", body); at != "" && !strings.Contains(r.body, at) {
			t.Errorf("%s: %d %s, want %s", body, r.status, r.body, at)
		}
	}
}

// TestEmptyPrimaryKey gives an empty primary key, which no index has.
func TestEmptyPrimaryKey(t *testing.T) {
	c, _ := newInstance(t, Options{})
	if got := c.wait(c.json("POST", "/indexes", `{"uid":"a","primaryKey":""}`)); !strings.Contains(got, `"primaryKey":""`) || !strings.Contains(got, "succeeded") {
		t.Errorf("created: %s", got)
	}
	if got := c.wait(c.json("POST", "/indexes/a/documents", `[{"id":1,"cast":{"m":1,"list":[{"n":1},{"m":2}]}}]`)); !strings.Contains(got, "succeeded") {
		t.Errorf("documents: %s", got)
	}
	if got := c.wait(c.json("PATCH", "/indexes/a", `{"primaryKey":""}`)); !strings.Contains(got, "index_primary_key_already_exists") {
		t.Errorf("changed: %s", got)
	}
	// A path that ends early leaves the objects on the way.
	if got := c.get("/indexes/a/documents/1?fields=cast.n").body; got != `{"cast":{}}` {
		t.Errorf("fields: %s", got)
	}
	if got := c.get("/indexes/a/documents/1?fields=cast.list.n,id.x").body; got != `{"cast":{"list":[{"n":1}]}}` {
		t.Errorf("fields: %s", got)
	}
}

// TestFieldsListVectors checks that the reserved field is listed once a document has it, even for an unknown embedder.
func TestFieldsListVectors(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/a/documents", `[{"id":1,"t":"x"}]`))
	if got := c.json("POST", "/indexes/a/fields", `{}`).body; strings.Contains(got, "_vectors") {
		t.Errorf("before: %s", got)
	}
	if got := c.wait(c.json("POST", "/indexes/a/documents", `[{"id":2,"_vectors":{"x":1}}]`)); !strings.Contains(got, "invalid_vectors_type") {
		t.Errorf("an entry without vectors: %s", got)
	}
	c.wait(c.json("POST", "/indexes/a/documents", `[{"id":2,"_vectors":{"x":[1,2]}}]`))
	got := c.json("POST", "/indexes/a/fields", `{"filter":{"searchable":false}}`).body
	if !strings.Contains(got, `"name":"_vectors"`) || !strings.Contains(got, `"total":1`) {
		t.Errorf("after: %s", got)
	}
	if got := c.get("/indexes/a/stats").body; strings.Contains(got, "_vectors") {
		t.Errorf("stats: %s", got)
	}
}

// TestCSVDelimiterNUL uses NUL as a delimiter, which is an ASCII character.
func TestCSVDelimiterNUL(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.send("POST", "/indexes/a/documents?csvDelimiter=%00", strings.NewReader("id\x00t\n1\x00a,b\n"), "Content-Type", "text/csv"))
	if got := c.get("/indexes/a/documents").body; !strings.Contains(got, `{"id":"1","t":"a,b"}`) {
		t.Errorf("%s", got)
	}
}
