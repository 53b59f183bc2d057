package embed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"svc/internal/settings"
	"svc/internal/template"
)

// embedQuery renders and embeds a query.
func embedQuery(ctx context.Context, e *Embedder, q Query) ([]float32, error) {
	in, err := e.QueryInput(template.Work{}, q)
	if err != nil {
		return nil, err
	}
	return e.EmbedQuery(ctx, in)
}

// openAIAnswer answers like the OpenAI API, with status 400 if refuses returns true. A text gets [length], tokens get [0, their number].
func openAIAnswer(refuses func(input []any) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []any }
		if json.NewDecoder(r.Body).Decode(&body) != nil || refuses(body.Input) {
			w.WriteHeader(400)
			return
		}
		data := []any{}
		for _, in := range body.Input {
			v := []int{0, 0}
			switch in := in.(type) {
			case string:
				v[0] = len(in)
			case []any:
				v[1] = len(in)
			}
			data = append(data, map[string]any{"embedding": v})
		}
		json.NewEncoder(w).Encode(map[string]any{"data": data})
	}
}

// TestLaunchKeyStaysWithItsHost checks that settings cannot send the key of the operator to another host.
func TestLaunchKeyStaysWithItsHost(t *testing.T) {
	server := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) })
	for _, hosts := range [][]string{nil, {"api.openai.com"}, {"127.0.0.1.evil.test", "27.0.0.1"}} {
		pool, _ := testPool(t, Options{OpenAIKey: "from-environment", OpenAIHosts: hosts})
		_, err := open(t, pool, &settings.Embedder{Source: settings.OpenAI, URL: server.URL, Dimensions: 2}, 0).EmbedDocuments(t.Context(), texts("a"), &Stats{})
		wantError(t, err, "--openai-api-hosts")
	}
	for _, h := range server.headers {
		if h.Get("Authorization") != "" {
			t.Errorf("the key of the command line goes to another host: %v", h)
		}
	}
	pool, _ := testPool(t, Options{OpenAIHosts: []string{"relay.test", "relay.test:8080"}})
	for address, want := range map[string]bool{
		"https://api.openai.com/v1/embeddings": true, "https://API.openai.com:443/other": true, "http://api.openai.com/v1/embeddings": false, "https://api.openai.com:444/": false,
		"https://api.openai.com.evil.test/": false, "https://user@evil.test/api.openai.com": false, "https://api.openai.com@evil.test/": false, "http://relay.test": true, "https://relay.test:9/x": true,
		"https://xrelay.test": false, "http://[::1]:80": false, "%": false,
	} {
		if got := pool.trusts(address); got != want {
			t.Errorf("%s is trusted: %t", address, got)
		}
	}
}

func TestOpenAI(t *testing.T) {
	long := strings.Repeat("word ", 9000)
	server := newProvider(t, openAIAnswer(func(input []any) bool {
		for _, in := range input {
			if text, ok := in.(string); ok && len(text) > 40000 {
				return true
			}
		}
		return false
	}))
	pool, _ := testPool(t, Options{OpenAIKey: "from-environment", OpenAIHosts: []string{"other.test", strings.TrimPrefix(server.URL, "http://")}})
	cfg := &settings.Embedder{Source: settings.OpenAI, URL: server.URL, Dimensions: 2}
	e := open(t, pool, cfg, 0)
	if mean, sigma, ok := e.Distribution(); e.Dimensions() != 2 || mean != .75 || sigma != .1 || !ok || len(server.calls()) != 0 {
		t.Errorf("%d dimensions, distribution %g %g %t, %d calls", e.Dimensions(), mean, sigma, ok, len(server.calls()))
	}
	var stats Stats
	vectors, err := e.EmbedDocuments(t.Context(), texts("ab", long, "cde"), &stats)
	if got := fmt.Sprint(vectors); err != nil || got != "[[2 0] [0 8191] [3 0]]" {
		t.Errorf("%s, %v", got, err)
	}
	calls := server.calls()
	if total, failed, _ := stats.Counts(); total != 4 || failed != 1 || len(calls) != 4 {
		t.Fatalf("%d calls, counted %d, %d failed", len(calls), total, failed)
	}
	if want := `{"model":"text-embedding-3-small","input":["ab"],"dimensions":2}`; calls[1] != want || server.headers[0].Get("Authorization") != "Bearer from-environment" {
		t.Errorf("%s, %v", calls[1], server.headers[0])
	}
	if !strings.HasPrefix(calls[2], `{"model":"text-embedding-3-small","input":[[1178,3492,3492,`) {
		t.Errorf("tokens %.100s", calls[2])
	}

	ada := open(t, pool, &settings.Embedder{Source: settings.OpenAI, Model: "text-embedding-ada-002", URL: server.URL, APIKey: "own"}, 0)
	if mean, sigma, _ := ada.Distribution(); ada.Dimensions() != 1536 || mean != .9 || sigma != .08 {
		t.Errorf("%d dimensions, distribution %g %g", ada.Dimensions(), mean, sigma)
	}
	_, err = ada.EmbedDocuments(t.Context(), texts("ab"), &stats)
	wantError(t, err, "2 dimensions", "1536")
	if last := server.calls()[4]; last != `{"model":"text-embedding-ada-002","input":["ab"]}` || server.headers[4].Get("Authorization") != "Bearer own" {
		t.Errorf("%s, %v", last, server.headers[4])
	}

	refusing := newProvider(t, openAIAnswer(func([]any) bool { return true }))
	cfg = &settings.Embedder{Source: settings.OpenAI, URL: refusing.URL, Dimensions: 2}
	_, err = open(t, pool, cfg, 2).EmbedDocuments(t.Context(), texts("ab", "c"), &stats)
	if wantError(t, err, "user error", "400"); len(refusing.calls()) != 2 {
		t.Errorf("%d calls", len(refusing.calls()))
	}
}

func TestFirstTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, strings.Repeat("a b ", 2000): 0, strings.Repeat(" a", 8190): 0, strings.Repeat(" a", 8191): 8191, strings.Repeat("日本", 9000): 8191} {
		ids, err := firstTokens(text)
		if err != nil || len(ids) != want {
			t.Errorf("%.20q…, %d bytes: %d tokens, %v", text, len(text), len(ids), err)
		}
	}
}

func TestOllama(t *testing.T) {
	server := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model, Prompt string
			Input         []string
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.Model != "m" {
			w.WriteHeader(404)
			io.WriteString(w, `{"error":"model not found"}`)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/api/embeddings") {
			fmt.Fprintf(w, `{"embedding":[%d,7]}`, len(body.Prompt))
			return
		}
		var list []string
		for _, text := range body.Input {
			list = append(list, fmt.Sprintf("[%d,8]", len(text)))
		}
		fmt.Fprintf(w, `{"embeddings":[%s]}`, strings.Join(list, ","))
	})
	pool, _ := testPool(t, Options{OllamaURL: server.URL + "/api/embed"})
	for _, tt := range []struct{ url, want, call string }{
		{server.URL + "/api/embed", "[[1 8] [2 8]]", `{"model":"m","input":["a","bb"]}`},
		{"", "[[1 8] [2 8]]", `{"model":"m","input":["a","bb"]}`},
		{server.URL + "/api/embeddings", "[[1 7] [2 7]]", `{"model":"m","prompt":"bb"}`},
	} {
		e := open(t, pool, &settings.Embedder{Source: settings.Ollama, Model: "m", URL: tt.url}, 0)
		vectors, err := e.EmbedDocuments(t.Context(), texts("a", "bb"), new(Stats))
		if got := fmt.Sprint(vectors); err != nil || got != tt.want || e.Dimensions() != 2 || !strings.Contains(strings.Join(server.calls(), "\n"), tt.call) {
			t.Errorf("%s: %s, %v, %d dimensions, calls %v", tt.url, got, err, e.Dimensions(), server.calls())
		}
	}
	before := len(server.calls())
	_, err := pool.Open(t.Context(), &settings.Embedder{Source: settings.Ollama, Model: "other"}, 0, nil)
	if wantError(t, err, "user error", `"other"`, "pull"); len(server.calls()) != before+1 {
		t.Error("a missing model is requested again")
	}
	_, err = pool.Open(t.Context(), &settings.Embedder{Source: settings.Ollama, Model: "m", URL: server.URL + "/other"}, 0, nil)
	wantError(t, err, "/api/embeddings")
}

func TestInference(t *testing.T) {
	server := newProvider(t, script(500))
	pool, _ := testPool(t, Options{})
	cfg := restConfig(server.URL)
	cfg.Dimensions = 0
	if e := open(t, pool, cfg, 0); e.Dimensions() != 2 || len(server.calls()) != 2 || server.calls()[1] != `{"in":"test"}` {
		t.Errorf("%d dimensions, calls %v", e.Dimensions(), server.calls())
	}
	if e := open(t, pool, cfg, 2); e.Dimensions() != 2 || len(server.calls()) != 2 {
		t.Error("known dimensions are requested")
	}
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"out":[]}`) })
	_, err := pool.Open(t.Context(), cfg, 0, nil)
	wantError(t, err, "empty vector")
	e := open(t, pool, &settings.Embedder{Source: settings.UserProvided, Dimensions: 3}, 0)
	q := "x"
	_, err = embedQuery(t.Context(), e, Query{Q: &q})
	wantError(t, err, "user error", "`vector`")
	if inputs, err := e.Render(template.Work{}, []byte(`{}`), nil); e.Generates() || e.Dimensions() != 3 || inputs != nil || err != nil {
		t.Errorf("%t, %d, %v, %v", e.Generates(), e.Dimensions(), inputs, err)
	}
}

func TestComposite(t *testing.T) {
	server := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		var one struct{ In string }
		if json.NewDecoder(r.Body).Decode(&one) != nil {
			w.WriteHeader(400)
			return
		}
		switch r.URL.Path {
		case "/long":
			io.WriteString(w, `{"out":[1,2,3]}`)
		case "/other":
			fmt.Fprintf(w, `{"out":[1,%d]}`, -len(one.In))
		case "/near":
			fmt.Fprintf(w, `{"out":[1.01,%d]}`, len(one.In))
		default:
			fmt.Fprintf(w, `{"out":[1,%d]}`, len(one.In))
		}
	})
	pool, _ := testPool(t, Options{})
	config := func(search string) *settings.Embedder {
		i, s := restConfig(server.URL+"/same"), restConfig(server.URL+search)
		i.Dimensions, s.Dimensions, s.DocumentTemplate = 0, 0, nil
		return &settings.Embedder{Source: settings.Composite, IndexingEmbedder: i, SearchEmbedder: s,
			Distribution: &settings.Distribution{Mean: "0.4", Sigma: "0.2"}}
	}
	e := open(t, pool, config("/near"), 0)
	if n := len(server.calls()); n != 8 || e.Dimensions() != 2 {
		t.Errorf("%d calls, %d dimensions", n, e.Dimensions())
	}
	q := "abcd"
	v, err := embedQuery(t.Context(), e, Query{Q: &q})
	if fmt.Sprint(v) != "[1.01 4]" || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	vectors, err := e.EmbedDocuments(t.Context(), texts("abc"), new(Stats))
	if fmt.Sprint(vectors) != "[[1 3]]" || err != nil {
		t.Errorf("%v, %v", vectors, err)
	}
	if mean, sigma, ok := e.Distribution(); mean != .4 || sigma != .2 || !ok {
		t.Errorf("distribution %g %g %t", mean, sigma, ok)
	}
	_, err = pool.Open(t.Context(), config("/long"), 0, nil)
	wantError(t, err, "2 dimensions", "3")
	_, err = pool.Open(t.Context(), config("/other"), 0, nil)
	wantError(t, err, "same model", "distance")
	before := len(server.calls())
	if open(t, pool, config("/other"), 2); len(server.calls()) != before {
		t.Error("the halves of a known embedder are compared again")
	}
}

func TestFragments(t *testing.T) {
	server := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"out":[1,2]}`) })
	pool, _ := testPool(t, Options{CacheEntries: 10})
	cfg := restConfig(server.URL)
	cfg.Request, cfg.DocumentTemplate = json.RawMessage(`{"in":"{{fragment}}"}`), nil
	cfg.IndexingFragments = map[string]json.RawMessage{"b": json.RawMessage(`{"value":{"text":"{{doc.name}}","n":[1]}}`), "a": json.RawMessage(`{"value":"{{doc.color}}"}`)}
	cfg.SearchFragments = map[string]json.RawMessage{"words": json.RawMessage(`{"value":"{{q}}"}`), "picture": json.RawMessage(`{"value":["{{media.color}}"]}`)}
	e := open(t, pool, cfg, 0)
	for doc, want := range map[string]string{
		`{"name":"cup","color":"teal"}`: `[{"teal" a} {{"text":"cup","n":[1]} b}]`,
		`{"name":"cu\"p"}`:              `[{{"text":"cu\"p","n":[1]} b}]`,
		`{"x":1}`:                       `[]`,
	} {
		if inputs, err := e.Render(template.Work{}, []byte(doc), nil); err != nil || fmt.Sprint(inputs) != want {
			t.Errorf("%s: %v, %v", doc, inputs, err)
		}
	}
	q, media := "tea", json.RawMessage(`{ "color": "red", "more": 1 }`)
	for _, tt := range []struct {
		query Query
		body  string
		words string
	}{
		{Query{Q: &q}, `{"in":"tea"}`, ""},
		{Query{Media: media}, `{"in":["red"]}`, ""},
		{Query{Q: &q, Media: media}, "", "`picture` and `words`"},
		{Query{Media: json.RawMessage(`{"shape":"round"}`)}, "", "none of the searchFragments"},
		{Query{}, "", "none of the searchFragments"},
	} {
		before := len(server.calls())
		_, err := embedQuery(t.Context(), e, tt.query)
		calls := server.calls()[before:]
		if tt.words != "" {
			wantError(t, err, tt.words)
			if len(calls) != 0 {
				t.Errorf("calls %v", calls)
			}
		} else if err != nil || len(calls) != 1 || calls[0] != tt.body {
			t.Errorf("calls %v, %v", calls, err)
		}
	}
	if _, err := e.EmbedDocuments(t.Context(), []Input{{`{"text":"cup","n":[1]}`, "b"}}, new(Stats)); err != nil || server.calls()[2] != `{"in":{"text":"cup","n":[1]}}` {
		t.Errorf("%v, %v", server.calls(), err)
	}
	plain := open(t, pool, restConfig(server.URL), 2)
	_, err := embedQuery(t.Context(), plain, Query{Q: &q, Media: media})
	wantError(t, err, "searchFragments")
	_, err = embedQuery(t.Context(), plain, Query{})
	wantError(t, err, "`q`")
}

func TestCache(t *testing.T) {
	server := newProvider(t, lengths)
	pool, _ := testPool(t, Options{CacheEntries: 2})
	ask := func(cfg *settings.Embedder, q string) int {
		t.Helper()
		before := len(server.calls())
		v, err := embedQuery(t.Context(), open(t, pool, cfg, 2), Query{Q: &q})
		if err != nil || int(v[0]) != len(q) {
			t.Errorf("%q: %v, %v", q, v, err)
		}
		return len(server.calls()) - before
	}
	a, b := restConfig(server.URL), restConfig(server.URL+"/b")
	templated := restConfig(server.URL)
	templated.DocumentTemplate, templated.Distribution = new("x"), &settings.Distribution{Mean: "0.1", Sigma: "1"}
	long := strings.Repeat("x", maxCachedText+1)
	for i, tt := range []struct {
		cfg   *settings.Embedder
		q     string
		calls int
	}{
		{a, "one", 1}, {a, "one", 0}, {b, "one", 1}, {a, "one", 0}, {templated, "one", 0}, // a:one, b:one
		{a, "two", 1}, {b, "one", 1}, {a, "two", 0}, {a, "one", 1}, // the least recently used one is evicted
		{a, long, 1}, {a, long, 1}, {a, "one", 0}, {a, "two", 0},
	} {
		if n := ask(tt.cfg, tt.q); n != tt.calls {
			t.Errorf("query %d, %.10q: %d calls", i, tt.q, n)
		}
	}
	off, _ := testPool(t, Options{})
	q := "q"
	for range 2 {
		if _, err := embedQuery(t.Context(), open(t, off, a, 2), Query{Q: &q}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(strings.Join(server.calls(), ""), `"q"`); n != 2 {
		t.Errorf("without a cache, %d calls", n)
	}
}
