package fastapi

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// fillLibrary fills a server with two indexes.
func fillLibrary(c *client) {
	c.t.Helper()
	for _, r := range []reply{
		c.json("PATCH", "/indexes/books/settings", `{"filterableAttributes": ["land"], "sortableAttributes": ["id"]}`),
		c.json("POST", "/indexes/books/documents", `[{"id": 1, "t": "red tide", "land": "FR"}, {"id": 2, "t": "tide", "land": "VN"}, {"id": 3, "t": "red sand", "land": "VN"}]`),
		c.json("PATCH", "/indexes/toys/settings", `{"filterableAttributes": ["land", "owner"]}`),
		c.json("POST", "/indexes/toys/documents?primaryKey=name", `[{"name": "red-car", "owner": "ann", "land": "FR"}, {"name": "car", "owner": "bo", "land": "DE"}]`),
	} {
		if got := c.wait(r); !strings.Contains(got, `"succeeded"`) {
			c.t.Fatal(got)
		}
	}
}

// TestMultiSearch checks both kinds of answers, and errors that need indexes.
func TestMultiSearch(t *testing.T) {
	c := newProtected(t)
	fillLibrary(c)
	books := c.as(c.makeKey(`["search"]`, `["books"]`))
	tenant := c.as(c.tenantToken(`{"searchRules": {"books": {"filter": "land = VN"}, "toys": null}}`))
	const tide = `{"indexUid": "books", "q": "tide", "attributesToRetrieve": ["id"]}`
	for _, tt := range []struct {
		what   string
		c      *client
		body   string
		status int
		want   string // or the error code
	}{
		{"two results", c, `{"queries": [` + tide + `, {"indexUid": "toys", "q": "car", "limit": 1, "attributesToRetrieve": ["name"]}]}`, 200,
			`{"results":[{"indexUid":"books","hits":[{"id":2},{"id":1}],"query":"tide",~,"limit":20,"offset":0,"estimatedTotalHits":2,"requestUid":~},` +
				`{"indexUid":"toys","hits":[{"name":"car"}],"query":"car",~,"limit":1,"offset":0,"estimatedTotalHits":2,"requestUid":~}]}`},
		{"nothing asked", c, `{"queries": []}`, 200, `{"results":[]}`},
		{"one list", c, `{"federation": {"limit": 2}, "queries": [` + tide + `, {"indexUid": "toys", "q": "car", "attributesToRetrieve": ["name"], "federationOptions": {"weight": 2}}]}`, 200,
			`{"hits":[{"name":"car","_federation":{"indexUid":"toys","queriesPosition":1,"weightedRankingScore":2.0}},` +
				`{"name":"red-car","_federation":{"indexUid":"toys","queriesPosition":1,"weightedRankingScore":1.8484848484848484}}],` +
				`~,"limit":2,"offset":0,"estimatedTotalHits":4,"requestUid":~}`},
		{"no queries to merge", c, `{"federation": {"hitsPerPage": 3}, "queries": []}`, 200, `{"hits":[],~,"hitsPerPage":3,"page":1,"totalPages":0,"totalHits":0,"requestUid":~}`},
		{"facets", c, `{"federation": {"limit": 0, "mergeFacets": {}, "facetsByIndex": {"toys": ["land"], "books": ["land"]}}, "queries": [{"indexUid": "books"}, {"indexUid": "toys"}]}`, 200,
			`{"hits":[],~,"limit":0,"offset":0,"estimatedTotalHits":5,"facetDistribution":{"land":{"DE":1,"FR":2,"VN":2}},"facetStats":{},"requestUid":~}`},
		{"missing index", c, `{"queries": [` + tide + `, {"indexUid": "nope"}]}`, 400, "index_not_found"},
		{"missing index in a federation", c, `{"federation": {}, "queries": [` + tide + `, {"indexUid": "nope"}]}`, 400, "index_not_found"},
		{"missing index of facets", c, `{"federation": {"facetsByIndex": {"nope": []}}, "queries": [` + tide + `]}`, 400, "index_not_found"},
		{"facets of what is not filterable", c, `{"federation": {"facetsByIndex": {"toys": ["name"]}}, "queries": [` + tide + `]}`, 400, "invalid_multi_search_facets"},
		{"first error", c, `{"queries": [{"indexUid": "books", "filter": "t = 1"}, {"indexUid": "nope"}]}`, 400, "invalid_search_filter"},

		{"key", books, `{"queries": [` + tide + `]}`, 200, `{"results":[{"indexUid":"books","hits":[{"id":2},{"id":1}],"query":"tide",~,"limit":20,"offset":0,"estimatedTotalHits":2,"requestUid":~}]}`},
		{"key for another index", books, `{"queries": [` + tide + `, {"indexUid": "toys"}]}`, 403, "invalid_api_key"},
		{"key for no such index", books, `{"federation": {}, "queries": [{"indexUid": "nope"}]}`, 403, "invalid_api_key"},
		{"facets of what the key does not reach", books, `{"federation": {"limit": 0, "facetsByIndex": {"toys": ["name"], "nope": ["x"]}}, "queries": [` + tide + `]}`, 200,
			`{"hits":[],~,"limit":0,"offset":0,"estimatedTotalHits":2,"requestUid":~}`},
		{"tenant", tenant, `{"queries": [` + tide + `, {"indexUid": "toys", "q": "red", "attributesToRetrieve": ["name"]}]}`, 200,
			`{"results":[{"indexUid":"books","hits":[{"id":2}],"query":"tide",~,"limit":20,"offset":0,"estimatedTotalHits":1,"requestUid":~},` +
				`{"indexUid":"toys","hits":[{"name":"red-car"}],"query":"red",~,"limit":20,"offset":0,"estimatedTotalHits":1,"requestUid":~}]}`},
		{"tenant's facets", tenant, `{"federation": {"limit": 0, "facetsByIndex": {"books": ["land"]}}, "queries": [{"indexUid": "books"}]}`, 200,
			`{"hits":[],~,"limit":0,"offset":0,"estimatedTotalHits":2,"facetsByIndex":{"books":{"distribution":{"land":{"VN":2}},"stats":{}}},"requestUid":~}`},
		{"no key", c.as(""), `{"queries": []}`, 401, "missing_authorization_header"},
	} {
		r := tt.c.json("POST", "/multi-search", tt.body)
		got := still(r.body)
		if tt.status != 200 {
			got = r.code()
		}
		if r.status != tt.status || got != tt.want {
			t.Errorf("%s: %d\ngot  %s\nwant %s", tt.what, r.status, still(r.body), tt.want)
		}
	}

	r := c.json("POST", "/multi-search", `{"queries": [`+tide+`, {"indexUid": "books", "sort": ["t:asc"]}]}`)
	if !strings.Contains(r.body, "Inside `.queries[1]`: ") {
		t.Errorf("the message does not name the query: %s", r.body)
	}
}

// TestSearchMetadata requests the index that answered, on all search routes.
func TestSearchMetadata(t *testing.T) {
	c := newProtected(t)
	fillLibrary(c)
	for _, tt := range []struct{ path, body, want string }{
		{"/indexes/toys/search", `{"q": "nothing"}`, `"metadata":{"queryUid":~,"indexUid":"toys","primaryKey":"name"}`},
		{"/multi-search", `{"queries": [{"indexUid": "toys", "q": "nothing"}]}`, `"metadata":{"queryUid":~,"indexUid":"toys","primaryKey":"name"}`},
		{"/multi-search", `{"federation": {}, "queries": [{"indexUid": "toys"}, {"indexUid": "books"}]}`,
			`"metadata":[{"queryUid":~,"indexUid":"toys","primaryKey":"name"},{"queryUid":~,"indexUid":"books","primaryKey":"id"}]`},
	} {
		for header, value := range map[string]string{"Svc-Include-Metadata": "true", "Meili-Include-Metadata": "true", "X-None": "true", "svc-include-metadata": "false", "SVC-Include-Metadata": "1"} {
			r := c.send("POST", tt.path, strings.NewReader(tt.body), "Content-Type", "application/json", header, value)
			want := value != "false" && header != "X-None"
			if got := strings.Contains(still(r.body), tt.want); r.status != 200 || got != want || strings.Contains(r.body, "metadata") != want {
				t.Errorf("%s with %s: %s\n%s", tt.path, header, value, r.body)
			}
		}
	}
}

// TestMultiSearchBesideWrites searches an index twice in one request while it changes: both must see the same state.
func TestMultiSearchBesideWrites(t *testing.T) {
	c, _ := newInstance(t, Options{Searches: 8, SearchQueue: 100})
	c.wait(c.json("POST", "/indexes/a/documents", `[{"id": 0}]`))
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer close(done)
		for i := range 12 {
			c.wait(c.json("POST", "/indexes/a/documents", fmt.Sprintf(`[{"id": %d}]`, i+1)))
		}
	})
	defer writer.Wait()
	query := `{"indexUid": "a", "limit": 0}`
	for {
		select {
		case <-done:
			return
		default:
		}
		r := c.json("POST", "/multi-search", `{"queries": [`+strings.Repeat(query+",", 7)+query+`]}`)
		totals := strings.Split(r.body, `"estimatedTotalHits":`)
		for _, after := range totals[2:] {
			first, _, _ := strings.Cut(totals[1], ",")
			if other, _, _ := strings.Cut(after, ","); first != other {
				t.Fatalf("the searches of one request see %s and %s documents", first, other)
			}
		}
	}
}

// TestFeaturesOfOneSearch enables one feature: other features that the search needs must still be required.
func TestFeaturesOfOneSearch(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/a/documents", `[{"id": 1}]`))
	c.json("PATCH", "/experimental-features", `{"network": true}`)
	for body, want := range map[string]string{
		`{"useNetwork": false}`:                                             "",
		`{"useNetwork": false, "filter": "_foreign(id, x = 1)"}`:            "feature_not_enabled",
		`{"useNetwork": false, "personalize": {"userContext": "a sailor"}}`: "feature_not_enabled",
	} {
		if r := c.json("POST", "/indexes/a/search", body); r.code() != want {
			t.Errorf("%s: %s", body, r.body)
		}
	}
	r := c.json("POST", "/multi-search", `{"federation": {}, "queries": [{"indexUid": "a", "useNetwork": true, "federationOptions": {"remote": "r"}}]}`)
	if r.code() != "invalid_multi_search_federation_options" {
		t.Errorf("a remote and the network: %s", r.body)
	}
	r = c.json("POST", "/multi-search", `{"federation": {}, "queries": [{"indexUid": "a", "federationOptions": {"remote": "r"}}]}`)
	if r.code() != "invalid_multi_search_remote" {
		t.Errorf("a remote that is not in the network: %s", r.body)
	}
	r = c.json("POST", "/multi-search", `{"federation": {}, "queries": [{"indexUid": "a", "federationOptions": {"queryPosition": 7}}]}`)
	if !strings.Contains(r.body, `"queriesPosition":7`) {
		t.Errorf("a position of its own: %s", r.body)
	}
}
