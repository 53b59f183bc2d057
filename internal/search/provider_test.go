package search

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/turns"
)

// countingTurn counts how often a search pauses its turn.
type countingTurn struct {
	context.Context
	paused, resumed int
}

func (c *countingTurn) Yield() error             { return c.Err() }
func (c *countingTurn) Pause()                   { c.paused++ }
func (c *countingTurn) Resume()                  { c.resumed++ }
func (c *countingTurn) Account() *budget.Account { return budget.Of(c) }

func (c *countingTurn) Value(key any) any {
	if key == turns.Key {
		return c
	}
	return c.Context.Value(key)
}

// TestProviderThatFails has providers of query vectors that hang, refuse, or answer garbage or a vector of another length: a hybrid search
// falls back to words, and a semantic search fails.
func TestProviderThatFails(t *testing.T) {
	hanging := make(chan struct{})
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/good":
			fmt.Fprint(w, `{"v":[0,1]}`)
		case "/hangs":
			<-hanging
		case "/refuses":
			w.WriteHeader(http.StatusUnauthorized)
		case "/garbage":
			fmt.Fprint(w, `{"v":"x"}`)
		case "/long":
			fmt.Fprint(w, `{"v":[1,2,3]}`)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hanging) })
	l := newLibrary(t)
	var embedders []string
	for _, path := range []string{"good", "hangs", "refuses", "garbage", "long"} {
		embedders = append(embedders, fmt.Sprintf(`%q: {"source": "rest", "url": "%s/%[1]s", "request": {"t": "{{text}}"}, "response": {"v": "{{embedding}}"}, "dimensions": 2}`, path, server.URL))
	}
	vectors := func(v string) string {
		return fmt.Sprintf(`{"good": %[1]s, "hangs": %[1]s, "refuses": %[1]s, "garbage": %[1]s, "long": %[1]s}`, v)
	}
	for uid, cutoff := range map[string]int{"i": 60_000, "short": 2000} { // only the provider that hangs is called until the cutoff
		l.put(uid, fmt.Sprintf(`{"searchCutoffMs": %d, "embedders": {`, cutoff)+strings.Join(embedders, ",")+`}}`,
			`{"id": 1, "t": "red apple", "_vectors": `+vectors("[1, 0]")+`}`, `{"id": 2, "t": "sea", "_vectors": `+vectors("[0, 1]")+`}`)
	}
	one := 1.0
	for _, name := range []string{"good", "hangs", "refuses", "garbage", "long"} {
		uid := "i"
		if name == "hangs" {
			uid = "short"
		}
		var log bytes.Buffer
		turn := &countingTurn{Context: context.Background()}
		r := Request{Query: "red apples", Limit: 20, Hybrid: &Hybrid{Embedder: name}, Log: slog.New(slog.NewTextHandler(&log, nil))}
		got := l.answerIn(turn, uid, r)
		var ids []int
		for _, h := range got.Hits {
			ids = append(ids, h.ID)
		}
		want, hits := []int{1}, 0
		if name == "good" {
			want, hits = []int{2, 1}, 2
		}
		slices.Sort(ids)
		slices.Sort(want)
		if !slices.Equal(ids, want) || got.SemanticHits == nil || (*got.SemanticHits > 0) != (hits > 0) {
			t.Errorf("%s: hits %v, semantic %v", name, ids, got.SemanticHits)
		}
		if logged := strings.Contains(log.String(), "embedder="+name); logged == (name == "good") {
			t.Errorf("%s: the log says %q", name, log.String())
		}
		if turn.paused != 1 || turn.resumed != 1 {
			t.Errorf("%s: the turn was paused %d times and resumed %d times", name, turn.paused, turn.resumed)
		}

		r.Hybrid = &Hybrid{Embedder: name, Ratio: &one}
		v := held(l.c.Get(uid).View())
		_, err := Search(context.Background(), v, &r)
		v.Release()
		if (err == nil) != (name == "good") || err != nil && apierr.From(err).Code != "vector_embedding_error" {
			t.Errorf("%s: semantic search: %v", name, err)
		}
		address := strings.TrimPrefix(server.URL, "http://")
		if err != nil && strings.Contains(apierr.From(err).Message, address) {
			t.Errorf("%s: the error reveals the address of the provider: %s", name, apierr.From(err).Message)
		}
		if err != nil && name != "long" && !strings.Contains(log.String(), "search fails") { // the settings are wrong, not the provider
			t.Errorf("%s: the log says %q", name, log.String())
		}
		if name != "good" && name != "long" && !strings.Contains(log.String(), address) {
			t.Errorf("%s: the log lacks the address of the provider: %s", name, log.String())
		}
	}

	// Searches that need no query vector do not call the provider.
	before := asked.Load()
	if got := l.answer("i", Request{Query: "red", Hybrid: &Hybrid{Embedder: "good"}}); got.Estimated != 2 {
		t.Errorf("a page of no hits has a total of %d", got.Estimated)
	}
	l.answer("i", Request{Query: " ", Limit: 1, Hybrid: &Hybrid{Embedder: "unknown"}})
	l.answer("i", Request{Query: "red", Vector: []float32{1, 1}, Limit: 9, Hybrid: &Hybrid{Embedder: "hangs"}})
	if n := asked.Load() - before; n != 0 {
		t.Errorf("the provider was called %d times without need", n)
	}
}

// TestEmbeddingEndsWithTheCutoff has a provider that answers after the cutoff of one index and before that of another: the call must be
// cancelled at the cutoff, and not before.
func TestEmbeddingEndsWithTheCutoff(t *testing.T) {
	asked, ended := map[string]chan bool{}, map[string]chan bool{} // calls for each index, and whether the caller disconnected
	for _, uid := range []string{"short", "long"} {
		asked["/"+uid], ended["/"+uid] = make(chan bool, 1<<10), make(chan bool, 1<<10)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path] <- true
		_, _ = io.Copy(io.Discard, r.Body) // disconnects are noticed only after the body was read
		select {
		case <-r.Context().Done():
			ended[r.URL.Path] <- true
		case <-time.After(5 * time.Second):
			ended[r.URL.Path] <- false
			fmt.Fprint(w, `{"v":[0,1]}`)
		}
	}))
	t.Cleanup(server.Close)
	l := newLibrary(t)
	for uid, cutoff := range map[string]int{"short": 200, "long": 60_000} {
		l.put(uid, fmt.Sprintf(`{"searchCutoffMs": %d, "embedders": {"e": {"source": "rest", "url": %q, "request": {"t": "{{text}}"}, "response": {"v": "{{embedding}}"}, "dimensions": 2}}}`,
			cutoff, server.URL+"/"+uid), `{"id": 1, "t": "red apple", "_vectors": {"e": [1, 0]}}`, `{"id": 2, "t": "sea", "_vectors": {"e": [0, 1]}}`)
		r := Request{Query: "red", Limit: 20, Hybrid: &Hybrid{Embedder: "e"}}
		got := l.answer(uid, r)
		for n := 0; n < 100 && len(asked["/"+uid]) == 0; n++ { // on a loaded machine, the cutoff may pass before the call
			got = l.answer(uid, r)
		}
		if hungUp, short := <-ended["/"+uid], uid == "short"; hungUp != short || (got.SemanticHits == nil || *got.SemanticHits == 0) != short {
			t.Errorf("%s: the call was cancelled: %v; semantic hits: %v", uid, hungUp, got.SemanticHits)
		}
	}
}

// TestFederationWaitsForEmbedders federates queries whose embedder takes most of the search's time. That time must not count as ranking
// time of any query.
func TestFederationWaitsForEmbedders(t *testing.T) {
	const cutoff = 2500 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(cutoff - time.Second) // enough to rank these few
		fmt.Fprint(w, `{"v":[0,1]}`)
	}))
	t.Cleanup(server.Close)
	l := newLibrary(t)
	l.put("i", fmt.Sprintf(`{"searchCutoffMs": %d, "embedders": {"slow": {"source": "rest", "url": %q, "request": {"t": "{{text}}"}, "response": {"v": "{{embedding}}"}, "dimensions": 2}}}`,
		cutoff.Milliseconds(), server.URL),
		`{"id": 1, "t": "red apple", "_vectors": {"slow": [1, 0]}}`, `{"id": 2, "t": "sea", "_vectors": {"slow": [0, 1]}}`, `{"id": 3, "t": "red", "_vectors": {"slow": [1, 1]}}`)
	one, most := 1.0, 0.9
	query := func(ratio *float64) asked {
		r := Request{Query: "red", ShowRankingScore: true}
		if ratio != nil {
			r.Hybrid = &Hybrid{Embedder: "slow", Ratio: ratio}
		}
		return asked{uid: "i", weight: 1, Request: r}
	}
	right := func(q asked) (ok bool, ids, want []int, body string) {
		first := query(&one)
		first.weight = 0 // the other query decides
		got, body, err := l.federate(&FederatedRequest{Limit: 9}, nil, first, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range got.Hits {
			if h.Federation.Weighted > 0 {
				ids = append(ids, h.ID)
			}
		}
		want = []int{2, 3, 1}
		if q.Hybrid == nil {
			want = []int{3, 1}
		}
		ok = len(ids) <= len(want) && slices.Equal(ids[:min(len(ids), 2)], want[:2]) && !strings.Contains(body, "egraded")
		return ok, ids, want, body
	}
	for _, q := range []asked{query(&one), query(&most), query(nil)} {
		ok, ids, want, body := right(q)
		for n := 0; n < 5 && !ok; n++ { // a loaded machine may miss the cutoff
			ok, ids, want, body = right(q)
		}
		if !ok {
			t.Errorf("ratio %v: the hits are %v, want %v: %s", q.Hybrid, ids, want, body)
		}
	}
}
