package fastapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/network"
	"svc/internal/search"
)

// TestUseNetworkIsChecked sends invalid values of useNetwork, and valid ones while the feature is off.
func TestUseNetworkIsChecked(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id":1,"t":"red"}]`))
	const one, list, fetch, facets = "/indexes/i/documents/1", "/indexes/i/documents", "/indexes/i/documents/fetch", "/indexes/i/facet-search"
	try := func(method, path, value string) reply {
		switch {
		case method == "GET":
			return c.get(path + "?useNetwork=" + value)
		case path == facets:
			return c.json("POST", path, `{"facetName": "t", "useNetwork": `+value+`}`)
		}
		return c.json("POST", path, `{"useNetwork": `+value+`}`)
	}
	for _, tt := range []struct {
		method, path, value, code string
	}{
		{"GET", one, "1", "invalid_document_use_network"}, {"GET", one, "", "invalid_document_use_network"}, {"GET", list, "yes", "invalid_document_use_network"},
		{"POST", fetch, `"true"`, "invalid_document_use_network"}, {"POST", fetch, "{}", "invalid_document_use_network"}, {"POST", facets, "1", "invalid_search_use_network"},
		{"GET", one, "true", "feature_not_enabled"}, {"GET", list, "false", "feature_not_enabled"}, {"POST", fetch, "true", "feature_not_enabled"}, {"POST", facets, "false", "feature_not_enabled"},
		{"POST", fetch, "null", ""},
	} {
		if r := try(tt.method, tt.path, tt.value); r.code() != tt.code || tt.code == "" && r.status != 200 {
			t.Errorf("%s %s with useNetwork %s: %d %s, want %q", tt.method, tt.path, tt.value, r.status, r.body, tt.code)
		}
	}
}

// TestReadsNameFailedRemotes reads from a network without a leader whose other instance is away.
func TestReadsNameFailedRemotes(t *testing.T) {
	w := newWalked(t, "alone")
	w.settle()
	for !strings.Contains(w.get("/indexes/mine/documents").body, `"total":2}`) {
		time.Sleep(time.Millisecond)
	}
	const errs = `"remoteErrors":{"a":{"message":`
	for _, tt := range []struct {
		method, path, body string
		status             int
		has                string
	}{
		{"GET", "/indexes/mine/documents", "", 200, `"total":2}`},
		{"GET", "/indexes/mine/documents?useNetwork=true&fields=id", "", 200, `{"results":[{"id":1},{"id":2}],"offset":0,"limit":20,"total":2,` + errs},
		{"POST", "/indexes/mine/documents/fetch", `{"useNetwork": true, "ids": [1], "fields": ["id"]}`, 200, `{"results":[{"id":1}],"offset":0,"limit":20,"total":1,` + errs},
		{"POST", "/indexes/mine/documents/fetch", `{"useNetwork": true, "ids": []}`, 200, `"total":0}`},
		{"POST", "/indexes/mine/documents/fetch", `{"useNetwork": true, "sort": ["secret:desc"], "fields": ["id"]}`, 200, `{"results":[{"id":2},{"id":1}],`},
		{"POST", "/indexes/mine/documents/fetch", `{"useNetwork": true, "sort": ["secret:desc"], "offset": 1, "limit": 500, "fields": ["id"]}`, 200, `{"results":[{"id":1}],"offset":1,"limit":500,"total":2,`},
		{"POST", "/indexes/mine/documents/fetch", `{"useNetwork": true, "sort": ["secret:asc"], "offset": 99999, "limit": 2}`, 400, "invalid_document_offset"},
		{"POST", "/indexes/mine/documents/fetch", `{"sort": ["secret:asc"], "offset": 99999, "limit": 2}`, 200, `"total":2}`},
		{"POST", "/indexes/mine/documents/fetch", `{"useNetwork": true, "offset": 99999, "limit": 2}`, 200, `"total":2,` + errs},
		{"POST", "/indexes/mine/documents/fetch", `{"useNetwork": true, "sort": ["link:asc"]}`, 400, "invalid_document_sort"},
		{"GET", "/indexes/mine/documents/1?useNetwork=true", "", 200, `"id":1`},
		{"GET", "/indexes/mine/documents/9?useNetwork=true", "", 502, "remote_could_not_send_request"},
		{"GET", "/indexes/mine/documents/9", "", 404, "document_not_found"},
		{"GET", "/indexes/none/documents/1?useNetwork=true", "", 404, "index_not_found"},
		{"POST", "/indexes/mine/facet-search", `{"useNetwork": true, "facetName": "link"}`, 200, `{"facetHits":[{"value":"1","count":2}],"facetQuery":null,"processingTimeMs":`},
		{"POST", "/indexes/mine/facet-search", `{"useNetwork": true, "facetName": "link"}`, 200, errs},
		{"POST", "/indexes/mine/facet-search", `{"useNetwork": true, "facetName": "secret"}`, 400, "invalid_facet_search_facet_name"},
		{"POST", "/indexes/mine/facet-search", `{"facetName": "link"}`, 200, `{"value":"1","count":2}`},
	} {
		r := w.get(tt.path)
		if tt.method == "POST" {
			r = w.json(tt.method, tt.path, tt.body)
		}
		if r.status != tt.status || !strings.Contains(r.body, tt.has) {
			t.Errorf("%s %s %s: %d %s, want %d %s", tt.method, tt.path, tt.body, r.status, r.body, tt.status, tt.has)
		}
		if strings.Contains(r.body, "127.0.0.2") {
			t.Errorf("%s %s shows the address of a remote: %s", tt.method, tt.path, r.body)
		}
	}
}

// TestPeersRead sends requests between instances with all kinds of keys.
func TestPeersRead(t *testing.T) {
	w := newWalked(t, "leads")
	shared, _, _ := strings.Cut(w.secrets["the search key of a remote"], " ")
	documents, facets, foreign, words := "/network/documents", "/network/facets", "/network/foreign", "/network/words"
	bodies := map[string]string{
		documents: `{"indexUid": "mine", "sort": ["secret:asc"], "values": true, "shards": [{"name": "x", "limit": 20}]}`,
		facets:    `{"indexUid": "mine", "shards": ["x"], "search": {"facetName": "link"}}`,
		foreign:   `{"indexUid": "mine", "shards": ["x"], "ids": ["1"]}`,
		words:     `{"indexUid": "mine", "shards": ["x"], "search": {"q": "canari"}}`,
	}
	for what, tt := range map[string]struct {
		key   string
		opens string
	}{
		"the master key":                      {masterKey, documents + facets + foreign + words},
		"the key of the own entry":            {shared, facets + foreign + words},
		"a key that sees the network":         {w.makeKey(`["search", "network.get"]`, `["*"]`), facets + foreign + words},
		"a search key":                        {w.makeKey(`["search"]`, `["*"]`), ""},
		"a key for documents":                 {w.makeKey(`["search", "documents.get"]`, `["*"]`), documents},
		"a key for documents of some indexes": {w.makeKey(`["search", "documents.get"]`, `["mine*"]`), ""},
		"a tenant token":                      {w.tenantToken(`{"searchRules": ["*"]}`), ""},
		"a tenant token of everything":        {w.tokenOf("Default Admin API Key", `{"searchRules": ["*"]}`), ""},
	} {
		for path, body := range bodies {
			r := w.as(tt.key).json("POST", path, body)
			if open := strings.Contains(tt.opens, path); (r.status == 200) != open || open != (r.header.Get("Content-Type") == search.ReadType) || !open && r.code() != "invalid_api_key" {
				t.Errorf("%s, %s: %d %s", what, path, r.status, r.body)
			}
		}
	}
	for body, code := range map[string]string{
		`{"shards": []}`:                                                    "index_not_found",
		`{"indexUid": 1}`:                                                   "invalid_index_uid",
		`{"indexUid": "mine", "more": 1}`:                                   "bad_request",
		`{"indexUid": "mine", "shards": {}}`:                                "bad_request",
		`{"indexUid": "mine", "shards": [1]}`:                               "bad_request",
		`{"indexUid": "mine", "shards": [{"limit": -1}]}`:                   "bad_request",
		`{"indexUid": "mine", "shards": [{"name": "x", "more": 1}]}`:        "bad_request",
		`{"indexUid": "mine", "filter": "a =", "shards": []}`:               "invalid_document_filter",
		`{"indexUid": "mine", "sort": ["t:asc"], "shards": [{"name":"x"}]}`: "invalid_document_sort",
	} {
		if r := w.json("POST", documents, body); r.code() != code {
			t.Errorf("%s: %d %s, want %s", body, r.status, r.body, code)
		}
	}
}

// TestReadsEndWithTheirRequest fails here while a remote is asked: the call must end first, because it uses the memory of the request,
// which is reused.
func TestReadsEndWithTheirRequest(t *testing.T) {
	o := Options{Features: allFeatures(t)}
	openInstance(t, &o)
	c := newClient(t, o)
	if r := c.json("PATCH", "/network", `{"self":"b","remotes":{"a":{"url":"http://127.0.0.1:1"},"b":{"url":"http://127.0.0.1:2"}}}`); r.status >= 300 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	n := &networkRead{s: &Server{network: o.Network}, errs: new(search.RemoteErrors)}
	asks, asked := make(chan struct{}), atomic.Bool{}
	q := &network.ReadRequest{Message: network.Documents, Shards: []string{""}, Body: func([]int) []byte {
		close(asks)
		time.Sleep(20 * time.Millisecond)
		asked.Store(true)
		return []byte("{}")
	}}
	broken := errors.New("broken")
	err := n.read(t.Context(), q, map[string][]int{"a": {0}}, func() error { <-asks; return broken }, nil)
	if !errors.Is(err, broken) || !asked.Load() {
		t.Errorf("%v, the remote is still being asked: %v", err, !asked.Load())
	}
}

// TestReadsOfBoastfulRemotes lists documents together with a remote that claims to have billions of them and sends few. Memory for all
// that it claims would end the process.
func TestReadsOfBoastfulRemotes(t *testing.T) {
	const claimed = "\xff\xff\xff\xff\x0f" // 2^32 − 1
	var asked atomic.Int64
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", search.ReadType)
		answer := claimed
		if n := asked.Add(1); n > 1 && n < 4 && !strings.Contains(string(body), `"limit":0`) {
			answer += "\x01\x0a" + `{"id":"r"}` + "\x00"
		}
		_, _ = io.WriteString(w, answer+"\x00")
	}))
	defer remote.Close()
	o := Options{Features: allFeatures(t)}
	openInstanceIn(t, &o, network.Options{Allowed: onlyLoopback(t)})
	c := newClient(t, o)
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1}, {"id": 2}]`))
	if r := c.json("PATCH", "/network", `{"self":"a","remotes":{"b":{"url":"`+remote.URL+`"},"a":{"url":"http://127.0.0.1:2"}}}`); r.status >= 300 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	r := c.get("/indexes/i/documents?useNetwork=true&limit=9223372036854775807")
	if want := `{"results":[{"id":1},{"id":2},{"id":"r"},{"id":"r"}],"offset":0,"limit":9223372036854775807,"total":4294967297}`; r.status != 200 || r.body != want {
		t.Errorf("%d %s, want %s", r.status, r.body, want)
	}
}
