package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/trace/tracetest"
)

// TestTraces checks what a collector gets of a search that reaches two instances and an embedder, and of other work.
func TestTraces(t *testing.T) {
	c := tracetest.New(t)
	var mu sync.Mutex
	var forwarded []string // trace headers that the embedder got
	embedder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		forwarded = append(forwarded, r.Header.Get("traceparent"))
		io.WriteString(w, `{"v":[1,2]}`)
	}))
	t.Cleanup(embedder.Close)
	var all []*instance
	for range 2 {
		in := start(t, t.TempDir(), "--trace-endpoint", c.URL, "--trace-headers", "x-tenant=films, authorization=Bearer a=b", "--experimental-allowed-ip-networks", "any")
		all = append(all, in)
		in.call("PATCH", "/experimental-features", `{"network":true}`)
		in.call("PATCH", "/indexes/films/settings", `{"filterableAttributes":["year"],"embedders":{"e":{"source":"rest","url":"`+embedder.URL+`","dimensions":2,"request":"{{text}}","response":{"v":"{{embedding}}"}}}}`)
		in.call("POST", "/indexes/films/documents", `[{"id":1,"title":"Metropolis","year":1927},{"id":2,"title":"Stalker","year":1979}]`)
		in.idle()
		in.call("POST", "/indexes/films/documents", `[{"id":3,"title":"Playtime"}]`)
		in.call("POST", "/indexes/films/compact", ``)
		in.idle()
	}
	a, b := all[0], all[1]
	a.call("PATCH", "/network", fmt.Sprintf(`{"self":"a","remotes":{"a":{"url":%q},"b":{"url":%q}}}`, a.url, b.url))
	a.call("POST", "/indexes/films/search", `{"q":"stalker","filter":"year > 1900","hybrid":{"embedder":"e","semanticRatio":1}}`)
	a.call("POST", "/multi-search", `{"federation":{},"queries":[{"indexUid":"films","q":"a"},{"indexUid":"films","q":"a","federationOptions":{"remote":"b"}}]}`)
	a.call("GET", "/indexes/none", "")
	a.call("GET", "/health", "")
	// A stopping instance sends spans to the collector for one second, which may be too short on a loaded machine, so wait for the
	// last ones first.
	came := func() bool {
		missing, federated, batches := 0, 0, 0
		for _, s := range c.Spans() {
			switch {
			case s.Name == "GET /indexes/{index_uid}":
				missing++
			case s.Name == "POST /multi-search":
				federated++
			case s.Name == "batch" && s.Attributes["svc.type"] == "indexCompaction":
				batches++
			}
		}
		return missing == 1 && federated == 2 && batches == 2
	}
	for deadline := time.Now().Add(2 * time.Minute); !came(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("spans are missing: %+v", c.Spans())
		}
	}
	for _, in := range all {
		if err := in.stop(); err != nil {
			t.Fatal(err)
		}
	}
	spans := c.Spans()
	// find returns the span of an instance, below a parent if one is given.
	find := func(in *instance, name, parent string) tracetest.Span {
		t.Helper()
		i := slices.IndexFunc(spans, func(s tracetest.Span) bool {
			return s.Name == name && "http://"+s.Attributes["service.instance.id"].(string) == in.url && (parent == "" || s.Parent == parent)
		})
		if i < 0 {
			var names []string
			for _, s := range spans {
				names = append(names, s.Name)
			}
			t.Fatalf("no span %q below %q, got %q", name, parent, names)
		}
		return spans[i]
	}
	search := find(a, "POST /indexes/{index_uid}/search", "")
	if search.Attributes["svc.index"] != "films" || search.Attributes["http.response.status_code"] != int64(200) || search.Kind != "SPAN_KIND_SERVER" {
		t.Errorf("a search: %+v", search)
	}
	for _, stage := range []string{"wait in queue", "search > evaluate filter", "search > embed query", "search > format"} {
		find(a, stage, search.ID)
	}
	if call := find(a, "call to an embedder", search.ID); "http://"+call.Attributes["server.address"].(string) != embedder.URL {
		t.Errorf("a call to the embedder: %+v", call)
	}
	federated := find(a, "POST /multi-search", "")
	asked := find(a, "request to a remote", federated.ID)
	if answered := find(b, "POST /multi-search", asked.ID); answered.Trace != federated.Trace || asked.Attributes["svc.remote"] != "b" {
		t.Errorf("the other instance's part: %+v below %+v", answered, asked)
	}
	if missing := find(a, "GET /indexes/{index_uid}", ""); missing.Attributes["error.type"] != "index_not_found" || missing.Failed {
		t.Errorf("an error of the client: %+v", missing)
	}
	batch := slices.IndexFunc(spans, func(s tracetest.Span) bool { return s.Name == "batch" && s.Attributes["svc.type"] == "indexCompaction" })
	if batch < 0 {
		t.Fatal("no span for the batch of the compaction")
	}
	if i := slices.IndexFunc(spans, func(s tracetest.Span) bool { return s.Name == "merge" && s.Parent == spans[batch].ID }); i < 0 || spans[i].Attributes["svc.index"] != "films" {
		t.Error("no span for the merge of the compaction")
	}
	if slices.ContainsFunc(spans, func(s tracetest.Span) bool { return strings.Contains(s.Name, "/health") }) {
		t.Error("health checks are traced")
	}
	if len(forwarded) == 0 || slices.ContainsFunc(forwarded, func(h string) bool { return h != "" }) {
		t.Errorf("the embedder gets trace headers: %q", forwarded)
	}
	if h := c.Requests()[0].Header; h.Get("X-Tenant") != "films" || h.Get("Authorization") != "Bearer a=b" {
		t.Errorf("headers %v", h)
	}
}

func TestTraceOptions(t *testing.T) {
	for _, args := range [][]string{{"--trace-ratio", "1.5"}, {"--trace-ratio", "NaN"}, {"--trace-headers", "secret"}, {"--trace-headers", "a b=c"}, {"--trace-endpoint", "nowhere"}} {
		_, err := program{getenv: func(string) (string, bool) { return "", false }, out: io.Discard, err: io.Discard}.parse(args)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
