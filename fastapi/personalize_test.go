package fastapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"svc/internal/outbound"
	"svc/internal/rerank"
)

func TestPersonalize(t *testing.T) {
	var calls atomic.Int32
	var answer, sent atomic.Value
	answer.Store(`{"results": [{"index": 1}, {"index": 0}]}`)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent.Store(string(body))
		a := answer.Load().(string)
		if a == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, a)
	}))
	defer service.Close()
	reranker, err := rerank.New(service.URL, "key", outbound.Any())
	if err != nil {
		t.Fatal(err)
	}
	defer reranker.Close()
	c, _ := newInstance(t, Options{Reranker: reranker})
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "t": "red hat"}, {"id": 2, "t": "red sock"}, {"id": 3, "t": "blue"}]`))
	ids := func(body string) string {
		var list []string
		for _, part := range strings.Split(body, `{"id":`)[1:] {
			list = append(list, part[:1])
		}
		return strings.Join(list, " ")
	}
	for _, tt := range []struct{ method, path, body, answer, want string }{
		{"POST", "/indexes/i/search", `{"q": "red", "personalize": {"userContext": "\"feet\""}}`, `{"results": [{"index": 1}, {"index": 0}]}`, "2 1"},
		{"POST", "/indexes/i/search", `{"q": "red", "personalize": {"userContext": "x"}}`, `{"results": [{"index": 1}]}`, "2"},
		{"POST", "/indexes/i/search", `{"q": "red", "personalize": {"userContext": "x"}}`, `{"results": []}`, ""},
		{"GET", "/indexes/i/search?q=red&personalizeUserContext=x", ``, `{"results": [{"index": 1}, {"index": 0}]}`, "2 1"},
		{"POST", "/indexes/i/search", `{"q": "red", "personalize": null}`, ``, "1 2"},
		{"POST", "/indexes/i/search", `{"q": "zzz", "personalize": {"userContext": "x"}}`, ``, ""},
		{"POST", "/multi-search", `{"queries": [{"indexUid": "i", "q": "red"}, {"indexUid": "i", "q": "red", "personalize": {"userContext": "x"}}]}`, `{"results": [{"index": 1}, {"index": 0}]}`, "1 2 2 1"},
	} {
		answer.Store(tt.answer)
		r := c.send(tt.method, tt.path, nil)
		if tt.method == "POST" {
			r = c.json(tt.method, tt.path, tt.body)
		}
		if r.status != 200 || ids(r.body) != tt.want || !strings.Contains(r.body, "otalHits") {
			t.Errorf("%s %s: %d %s, want %s", tt.path, tt.body, r.status, r.body, tt.want)
		}
	}
	if n := calls.Load(); n != 5 {
		t.Errorf("the service got %d requests", n)
	}
	var got struct {
		Query     string
		Documents []string
	}
	if err := json.Unmarshal([]byte(sent.Load().(string)), &got); err != nil || got.Query != "User context: x\nQuery: red" || len(got.Documents) != 2 || got.Documents[0] != `{"id":1,"t":"red hat"}` {
		t.Errorf("sent: %s, %v", sent.Load(), err)
	}
	answer.Store("")
	for body, code := range map[string]string{
		`{"q": "red", "personalize": {"userContext": "x"}}`: "remote_invalid_api_key",
		`{"personalize": {}}`:                               "invalid_search_personalize",
		`{"personalize": "x"}`:                              "invalid_search_personalize",
		`{"personalize": {"userContext": 3}}`:               "invalid_search_personalize_user_context",
		`{"personalize": {"userContext": "x", "y": 1}}`:     "invalid_search_personalize",
	} {
		if r := c.json("POST", "/indexes/i/search", body); r.code() != code {
			t.Errorf("%s: %d %s, want %s", body, r.status, r.body, code)
		}
	}
	if r := c.json("POST", "/multi-search", `{"queries": [{"indexUid": "i"}, {"indexUid": "i", "personalize": {"userContext": "x"}}]}`); r.code() != "remote_invalid_api_key" || !strings.Contains(r.body, "queries[1]") {
		t.Errorf("in a multi-search: %d %s", r.status, r.body)
	}
	if r := c.json("POST", "/multi-search", `{"federation": {}, "queries": [{"indexUid": "i", "personalize": {"userContext": "x"}}]}`); r.code() != "invalid_multi_search_query_personalization" {
		t.Errorf("in a federated search: %d %s", r.status, r.body)
	}
	// A federated search sends the texts of all queries once, without pinned hits, which keep their places.
	c.wait(c.json("POST", "/indexes/j/documents", `[{"id": 4, "t": "red nose"}, {"id": 5, "t": "green"}]`))
	const federated = `{"federation": {"personalize": {"userContext": "x"}}, "queries": [{"indexUid": "i", "q": "red"}, {"indexUid": "j", "q": "nose"}, {"indexUid": "j", "q": "red"}]}`
	answer.Store(`{"results": [{"index": 2}, {"index": 0}, {"index": 1}]}`)
	if r := c.json("POST", "/multi-search", federated); r.status != 200 || ids(r.body) != "4 1 2" {
		t.Errorf("federated: %d %s", r.status, r.body)
	}
	if err := json.Unmarshal([]byte(sent.Load().(string)), &got); err != nil || got.Query != "User context: x\nQuery: red\nnose" || len(got.Documents) != 3 {
		t.Errorf("sent: %s, %v", sent.Load(), err)
	}
	c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": true}`)
	if r := c.json("PATCH", "/dynamic-search-rules/first", `{"actions": [{"selector": {"indexUid": "i", "id": "3"}, "action": {"type": "pin", "position": 1}}]}`); r.status != 201 {
		t.Fatalf("a rule: %d %s", r.status, r.body)
	}
	before := strings.Fields(ids(c.json("POST", "/multi-search", strings.Replace(federated, `"personalize": {"userContext": "x"}`, ``, 1)).body))
	if r := c.json("POST", "/multi-search", federated); len(before) != 4 || ids(r.body) != strings.Join([]string{before[3], "3", before[0], before[2]}, " ") {
		t.Errorf("federated with a pin: %v, then %d %s", before, r.status, r.body)
	}
	if err := json.Unmarshal([]byte(sent.Load().(string)), &got); err != nil || len(got.Documents) != 3 || strings.Contains(sent.Load().(string), "blue") {
		t.Errorf("sent: %s, %v", sent.Load(), err)
	}
	answer.Store(`{"results": [{"index": 1}, {"index": 0}]}`)
	if r := c.json("POST", "/indexes/i/search", `{"q": "red", "personalize": {"userContext": "x"}}`); ids(r.body) != "2 3 1" {
		t.Errorf("with a pin: %d %s", r.status, r.body)
	}
	answer.Store("")
	if r := c.json("POST", "/multi-search", federated); r.code() != "remote_invalid_api_key" {
		t.Errorf("federated, refused: %d %s", r.status, r.body)
	}
	c, _ = newInstance(t, Options{})
	if r := c.json("POST", "/indexes/i/search", `{"personalize": {"userContext": "x"}}`); r.code() != "feature_not_enabled" {
		t.Errorf("without a service: %d %s", r.status, r.body)
	}
}
