package fastapi

import (
	"strings"
	"testing"
)

// TestForeignKeys uses the routes on which foreign keys have an effect, and some on which they have none.
func TestForeignKeys(t *testing.T) {
	c, _ := newInstance(t, Options{})
	send := func(method, path, body string) reply {
		t.Helper()
		return c.send(method, path, strings.NewReader(body), "Content-Type", "application/json")
	}
	do := func(method, path, body string) {
		t.Helper()
		if got := c.wait(send(method, path, body)); !strings.Contains(got, `"succeeded"`) {
			t.Fatalf("%s %s: %s", method, path, got)
		}
	}
	hits := func(body string) string {
		t.Helper()
		r := send("POST", "/indexes/books/search", body)
		if r.status != 200 {
			return r.code()
		}
		list, _, _ := strings.Cut(strings.TrimPrefix(r.body, `{"hits":`), `,"query":`)
		return list
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
		}
	}
	const on, off = `{"foreignKeys": true}`, `{"foreignKeys": false}`
	const raw, inFrance = `{"id":1,"by":"ann"}`, `{"filter": "_foreign(by, land = FR)"}`

	send("PATCH", "/experimental-features", on)
	do("PATCH", "/indexes/authors/settings", `{"filterableAttributes": ["land"]}`)
	do("POST", "/indexes/authors/documents", `[{"id": "ann", "land": "FR"}, {"id": 7, "land": "VN"}]`)
	do("PATCH", "/indexes/books/settings", `{"filterableAttributes": ["by"], "foreignKeys": [{"fieldName": "by", "foreignIndexUid": "authors"}]}`)
	do("POST", "/indexes/books/documents", `[{"id": 1, "by": "ann"}, {"id": 2, "by": [7, "x"]}, {"id": 3, "by": 7}]`)

	expect("hydrated", hits(`{"limit": 2}`), `[{"id":1,"by":{"id":"ann","land":"FR"}},{"id":2,"by":[{"id":7,"land":"VN"},{}]}]`)
	expect("filtered", hits(inFrance), `[{"id":1,"by":{"id":"ann","land":"FR"}}]`)
	if r := c.get("/indexes/books/search?filter=_foreign(by,+land+=+FR)"); !strings.Contains(r.body, `[{"id":1,"by":{"id":"ann","land":"FR"}}]`) {
		t.Errorf("in a query string: %s", r.body)
	}
	expect("facet search", still(send("POST", "/indexes/books/facet-search", `{"facetName": "by", "filter": "_foreign(by, land = FR)"}`).body),
		`{"facetHits":[{"value":"ann","count":1}],"facetQuery":null,~}`)
	expect("one document", c.get("/indexes/books/documents/1").body, raw)
	expect("documents", send("POST", "/indexes/books/documents/fetch", inFrance).body, `{"results":[`+raw+`],"offset":0,"limit":20,"total":1}`)
	expect("fault of a document filter", send("POST", "/indexes/books/documents/fetch", `{"filter": "_foreign(id, land = FR)"}`).code(), "invalid_document_filter")
	do("POST", "/indexes/books/documents/delete", `{"filter": "_foreign(by, land = VN) AND NOT by = x"}`)
	expect("after the deletion", c.get("/indexes/books/documents?fields=id").body, `{"results":[{"id":1},{"id":2}],"offset":0,"limit":20,"total":2}`)

	send("PATCH", "/experimental-features", off)
	expect("feature off", hits(`{"limit": 1}`), `[`+raw+`]`)
	expect("filter with the feature off", hits(inFrance), "feature_not_enabled")
	expect("deletion with the feature off", send("POST", "/indexes/books/documents/delete", inFrance).code(), "feature_not_enabled")

	send("PATCH", "/experimental-features", on)
	do("DELETE", "/indexes/authors", "")
	expect("missing index", hits(`{}`), "index_not_found")
	expect("filter on a missing index", hits(inFrance), "index_not_found")
	expect("facet search needs no foreign document", still(send("POST", "/indexes/books/facet-search", `{"facetName": "by", "facetQuery": "x"}`).body),
		`{"facetHits":[{"value":"x","count":1}],"facetQuery":"x",~}`)
	expect("one document without the index", c.get("/indexes/books/documents/1").body, raw)
	if got := c.wait(send("POST", "/indexes/books/documents/delete", inFrance)); !strings.Contains(got, `"failed"`) || !strings.Contains(got, `"index_not_found"`) {
		t.Errorf("deletion by a missing index: %s", got)
	}
}
