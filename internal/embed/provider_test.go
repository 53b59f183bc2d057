package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/outbound"
	"svc/internal/settings"
	"svc/internal/template"
)

// provider is a server with a scripted handler that records its requests.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	bodies   []string
	headers  []http.Header
	inFlight int
	most     int // calls at the same time
}

func newProvider(t *testing.T, answer http.HandlerFunc) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		p.mu.Lock()
		p.bodies, p.headers = append(p.bodies, string(body)), append(p.headers, r.Header)
		p.inFlight++
		p.most = max(p.most, p.inFlight)
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			p.inFlight--
			p.mu.Unlock()
		}()
		answer(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.bodies)
}

// testPool returns a pool that may call this machine and does not really wait; waits records the waits.
func testPool(t *testing.T, o Options) (pool *Pool, waits *[]time.Duration) {
	o.Policy = outbound.Any()
	pool = New(o)
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	waits = new([]time.Duration)
	pool.caller.random = func() float64 { return 0.5 }
	pool.caller.sleep = func(ctx context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return ctx.Err()
	}
	return pool, waits
}

func restConfig(url string) *settings.Embedder {
	return &settings.Embedder{Source: settings.Rest, URL: url, Dimensions: 2, DocumentTemplate: new("{{doc.t}}"),
		Request: json.RawMessage(`{"in":"{{text}}"}`), Response: json.RawMessage(`{"out":"{{embedding}}"}`)}
}

func batchConfig(url string) *settings.Embedder {
	cfg := restConfig(url)
	cfg.Request, cfg.Response = json.RawMessage(`{"in":["{{text}}","{{..}}"]}`), json.RawMessage(`{"out":["{{embedding}}","{{..}}"]}`)
	return cfg
}

// lengths answers with a vector [length of the text, 1] for each text, in the forms of restConfig and batchConfig.
func lengths(w http.ResponseWriter, r *http.Request) {
	var one struct{ In string }
	var many struct{ In []string }
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &one) == nil {
		fmt.Fprintf(w, `{ "out": [%d, 1] }`, len(one.In))
		return
	}
	if json.Unmarshal(body, &many) != nil {
		w.WriteHeader(400)
		return
	}
	list := [][]int{}
	for _, text := range many.In {
		list = append(list, []int{len(text), 1})
	}
	json.NewEncoder(w).Encode(map[string]any{"out": list})
}

func open(t *testing.T, p *Pool, cfg *settings.Embedder, dimensions int) *Embedder {
	t.Helper()
	e, err := p.Open(t.Context(), cfg, dimensions, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func texts(list ...string) []Input {
	var inputs []Input
	for _, text := range list {
		inputs = append(inputs, Input{Text: text})
	}
	return inputs
}

// wantError checks the code of an error for users, and words in it.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	var e *apierr.Error
	if !errors.As(err, &e) || e.Code != failure {
		t.Fatalf("a %T: %v", err, err)
	}
	for _, word := range words {
		if !strings.Contains(e.Message, word) {
			t.Errorf("%q is not in: %s", word, e.Message)
		}
	}
}

// script answers with one status after another, and then like lengths.
func script(statuses ...int) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		status := 200
		if len(statuses) > 0 {
			status, statuses = statuses[0], statuses[1:]
		}
		mu.Unlock()
		if status != 200 {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			io.WriteString(w, `{"error":"no"}`)
			return
		}
		lengths(w, r)
	}
}

func repeat(status, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = status
	}
	return list
}

func TestRetries(t *testing.T) {
	ms := func(list ...float64) string {
		var s []string
		for _, x := range list {
			s = append(s, time.Duration(x*1.5*float64(time.Millisecond)).String())
		}
		return strings.Join(s, " ")
	}
	for _, tt := range []struct {
		name     string
		statuses []int
		calls    int
		waits    string
		fails    string // part of the error
	}{
		{"at once", nil, 1, "", ""},
		{"errors of the server", repeat(500, 3), 4, ms(1, 10, 100), ""},
		{"too many requests", repeat(429, 2), 3, ms(101, 110), ""},
		{"mixed", []int{503, 429, 500}, 4, ms(1, 110, 100), ""},
		{"forever", repeat(500, 20), 11, ms(1, 10, 100, 1000, 10000, 60000, 60000, 60000, 60000, 60000), "runtime error"},
		{"forever too many", repeat(429, 20), 11, ms(101, 110, 200, 1100, 10100, 60000, 60000, 60000, 60000, 60000), "too many requests"},
		{"bad request", []int{400}, 1, "", "user error"},
		{"unauthorized", []int{401}, 1, "", "apiKey"},
		{"not found after an error", []int{500, 404}, 2, ms(1), "404"},
		{"redirect", []int{302}, 1, "", "redirect"},
		{"lasting redirect", []int{308}, 1, "", "redirect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newProvider(t, script(tt.statuses...))
			pool, waits := testPool(t, Options{})
			e := open(t, pool, restConfig(server.URL), 2)
			var stats Stats
			vectors, err := e.EmbedDocuments(t.Context(), texts("abc"), &stats)
			if tt.fails == "" {
				if err != nil || fmt.Sprint(vectors) != "[[3 1]]" {
					t.Errorf("%v, %v", vectors, err)
				}
			} else {
				wantError(t, err, tt.fails)
			}
			var waited []string
			for _, w := range *waits {
				waited = append(waited, w.String())
			}
			if got := strings.Join(waited, " "); got != tt.waits {
				t.Errorf("waits %s\n want %s", got, tt.waits)
			}
			failed := tt.calls - 1
			if tt.fails != "" {
				failed++
			}
			if a, b, last := stats.Counts(); int(a) != tt.calls || int(b) != failed || (last != "") != (failed > 0) || len(server.calls()) != tt.calls {
				t.Errorf("%d calls, counted %d, %d failed, last %q", len(server.calls()), a, b, last)
			}
		})
	}
}

func TestBadAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		calls      int
		words      string
	}{
		{"garbage", "<html>", 11, "not JSON"},
		{"no UTF-8", "{\"out\":\"\xff\"}", 11, "not JSON"},
		{"another member", `{"outs":[1,2]}`, 1, "did you mean `outs`"},
		{"another length", `{"out":[1,2,3]}`, 1, "3 dimensions"},
		{"no numbers", `{"out":["1","2"]}`, 1, "array of numbers"},
		{"beyond float32", `{"out":[1e60,2]}`, 1, "beyond 32 bits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tt.body) })
			pool, _ := testPool(t, Options{})
			_, err := open(t, pool, restConfig(server.URL), 2).EmbedDocuments(t.Context(), texts("a"), new(Stats))
			wantError(t, err, tt.words)
			if n := len(server.calls()); n != tt.calls {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestHanging checks that unanswered calls end: after their timeout, at the deadline, and when they are canceled.
func TestHanging(t *testing.T) {
	release := make(chan struct{})
	server := newProvider(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	pool, _ := testPool(t, Options{Timeout: 20 * time.Millisecond})
	q := "hello"
	_, err := embedQuery(t.Context(), open(t, pool, restConfig(server.URL), 2), Query{Q: &q})
	wantError(t, err, "runtime error", "within 20ms")

	pool, _ = testPool(t, Options{Timeout: time.Hour})
	e := open(t, pool, restConfig(server.URL), 2)
	limited, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = embedQuery(limited, e, Query{Q: &q})
	wantError(t, err, "runtime error", "deadline of the embedding")

	cancelled, stop := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, stop)
	if _, err := e.EmbedDocuments(cancelled, texts("a", "b"), new(Stats)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestDeadlineBoundsWaits calls a provider that always fails, with a short deadline.
func TestDeadlineBoundsWaits(t *testing.T) {
	server := newProvider(t, script(repeat(500, 100)...))
	pool, _ := testPool(t, Options{})
	var waits []time.Duration
	pool.caller.sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		if len(waits) == 7 {
			return context.DeadlineExceeded
		}
		return nil
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q := "x"
	_, err := embedQuery(limited, open(t, pool, restConfig(server.URL), 2), Query{Q: &q})
	wantError(t, err, "status 500")
	if last := waits[len(waits)-1]; len(waits) != 7 || last > 90*time.Second || last < 30*time.Second {
		t.Errorf("waits %v", waits)
	}
}

func TestUnreachable(t *testing.T) {
	server := newProvider(t, lengths)
	pool := New(Options{})
	defer pool.Close()
	_, err := open(t, pool, restConfig(server.URL), 2).EmbedDocuments(t.Context(), texts("a"), new(Stats))
	wantError(t, err, "user error", "127.0.0.1", "--experimental-allowed-ip-networks")
	if len(server.calls()) != 0 {
		t.Error("a refused address was called")
	}
	const closedAddress = "http://127.0.0.1:9" // nothing listens there; the address of a closed server may belong to another by now
	anywhere, waits := testPool(t, Options{})
	_, err = open(t, anywhere, restConfig(closedAddress+"/secret-path?key=secret-query"), 2).EmbedDocuments(t.Context(), texts("a"), new(Stats))
	wantError(t, err, "runtime error", "cannot call")
	if len(*waits) != maxRetries || strings.Contains(err.Error(), "secret-query") {
		t.Errorf("%d waits: %v", len(*waits), err)
	}
	for _, url := range []string{"", "ftp://x/", "nowhere", "http://"} {
		_, err := anywhere.Open(t.Context(), restConfig(url), 2, nil)
		wantError(t, err, "user error", "http")
	}
}

func TestGroups(t *testing.T) {
	server := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		lengths(w, r)
	})
	pool, _ := testPool(t, Options{})
	var list []string
	for i := range 1005 {
		list = append(list, strings.Repeat("x", i%50))
	}
	vectors, err := open(t, pool, batchConfig(server.URL), 2).EmbedDocuments(t.Context(), texts(list...), new(Stats))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		if len(v) != 2 || int(v[0]) != i%50 {
			t.Fatalf("text %d has %v", i, v)
		}
	}
	if n := len(server.calls()); n != 101 || server.most > parallel || server.most < 2 {
		t.Errorf("%d calls, %d at once", n, server.most)
	}
	if vectors, err := open(t, pool, batchConfig(server.URL), 2).EmbedDocuments(t.Context(), nil, new(Stats)); err != nil || len(vectors) != 0 {
		t.Errorf("no texts: %v, %v", vectors, err)
	}
}

func TestFailureModes(t *testing.T) {
	for text, want := range map[string]FailureModes{
		"": {}, " , ,": {}, "ignore_embedder_failures": {IgnoreProviders: true},
		" ignore_document_template_failures,ignore_embedder_failures ,": {true, true},
	} {
		var m FailureModes
		if err := m.UnmarshalText([]byte(text)); err != nil || m != want {
			t.Errorf("%q: %v, %v", text, m, err)
		}
	}
	if err := new(FailureModes).UnmarshalText([]byte("ignore_everything")); err == nil {
		t.Error("an unknown mode is accepted")
	}
	server := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "bad") {
			w.WriteHeader(400)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		lengths(w, r)
	})
	list := make([]string, 15)
	list[12] = "bad"
	pool, _ := testPool(t, Options{Failures: FailureModes{IgnoreTemplates: true, IgnoreProviders: true}})
	e := open(t, pool, batchConfig(server.URL), 2)
	var stats Stats
	vectors, err := e.EmbedDocuments(t.Context(), texts(list...), &stats)
	total, failed, last := stats.Counts()
	if err != nil || vectors[9] == nil || vectors[10] != nil || vectors[14] != nil || total != 2 || failed != 1 || last == "" {
		t.Errorf("%v, %v, %d of %d: %q", vectors, err, failed, total, last)
	}
	if inputs, err := e.Render(template.Work{}, []byte(`{"other":1}`), nil); err != nil || inputs != nil {
		t.Errorf("a document without the field: %v, %v", inputs, err)
	}
	strict, _ := testPool(t, Options{})
	e = open(t, strict, batchConfig(server.URL), 2)
	_, err = e.EmbedDocuments(t.Context(), texts(list...), new(Stats))
	wantError(t, err, "user error")
	_, err = e.Render(template.Work{}, []byte(`{"other":1}`), nil)
	if apierr.From(err).Code != "invalid_document_fields" || !strings.Contains(err.Error(), "`other`") {
		t.Errorf("%v", err)
	}
	if inputs, err := e.Render(template.Work{}, []byte(`{"t":"x"}`), nil); err != nil || !slices.Equal(inputs, texts("x")) {
		t.Errorf("%v, %v", inputs, err)
	}
}

// TestSecrets checks that keys are not in errors, statistics or log lines.
func TestSecrets(t *testing.T) {
	server := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(401)
		fmt.Fprintf(w, "no such key: %s, %s, %s, %s", r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.URL.RawQuery, r.FormValue("token"))
	})
	pool, _ := testPool(t, Options{})
	cfg := restConfig(server.URL + "?version=2&token=hidden-token")
	cfg.APIKey, cfg.Headers = "hidden-key-1", map[string]string{"X-Key": "hidden-key-2", "X-Empty": ""}
	var stats Stats
	_, err := open(t, pool, cfg, 2).EmbedDocuments(t.Context(), texts("a"), &stats)
	wantError(t, err, "XXX...", "no such key")
	if _, _, last := stats.Counts(); strings.Contains(err.Error()+last, "hidden") {
		t.Errorf("%v\n%s", err, last)
	}
	h := server.headers[0]
	if h.Get("Authorization") != "Bearer hidden-key-1" || h.Get("X-Key") != "hidden-key-2" || h.Get("Content-Type") != "application/json" {
		t.Errorf("%v", h)
	}
	cfg.Headers = map[string]string{"Authorization": "Basic abcd", "Content-Type": "text/json"}
	open(t, pool, cfg, 2).EmbedDocuments(t.Context(), texts("a"), &stats)
	if h := server.headers[1]; h.Get("Authorization") != "Basic abcd" || h.Get("Content-Type") != "text/json" {
		t.Errorf("headers of the settings are not used: %v", h)
	}
}
