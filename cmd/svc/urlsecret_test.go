package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// guarded is a service that requires a user, a password and a token. It quotes the request and refuses it, so that there are errors.
type guarded struct {
	*httptest.Server
	mu       sync.Mutex
	admitted map[string]int // requests with all of them, by the first path element
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{admitted: map[string]int{}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		token := r.URL.Query().Get("api_token")
		place, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if user == "me" && password == "canary-1" && (token == "canary-2" || place == "remote") { // the URLs of remotes have no parameters
			g.mu.Lock()
			g.admitted[place]++
			g.mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"code":"refused","message":"%s and %s are refused","error":{"message":"%[1]s and %s are refused"}}`, password, token)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *guarded) count(place string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.admitted[place]
}

// TestSecretsOfURLsStayHidden checks that secrets in URLs are hidden in answers, tasks and the log, and that sending back what was shown
// changes nothing.
func TestSecretsOfURLsStayHidden(t *testing.T) {
	g := newGuarded(t)
	in := newMember(t, "svc", "--log-level", "DEBUG")
	in.must("PATCH", "/experimental-features", `{"network":true,"chatCompletions":true}`, nil)
	address := func(place string) string {
		return "http://me:canary-1@" + strings.TrimPrefix(g.URL, "http://") + "/" + place + "?api_token=canary-2&x=1"
	}
	hidden := func(place string) string {
		return "http://me:XXX...@" + strings.TrimPrefix(g.URL, "http://") + "/" + place + "?api_token=XXX...&x=1"
	}
	without := func(url string) string { at, _, _ := strings.Cut(url, "?"); return at }
	var said strings.Builder
	ask := func(method, path, body string) string {
		t.Helper()
		_, text, err := in.ask(method, path, body, nil)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		fmt.Fprintf(&said, "%s %s: %s\n", method, path, text)
		return text
	}
	embedder := func(url string) string {
		return fmt.Sprintf(`{"e":{"source":"rest","url":%q,"dimensions":2,"documentTemplate":"{{doc.t}}","request":"{{text}}","response":"{{embedding}}"}}`, url)
	}
	var hook struct{ UUID string }
	if err := json.Unmarshal([]byte(ask("POST", "/webhooks", fmt.Sprintf(`{"url":%q}`, address("hook")))), &hook); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		place         string
		url, shown    string
		method, path  string
		body          func(url string) string
		read          string
		use, with, at string // requests that use the service
	}{
		{"hook", address("hook"), hidden("hook"), "PATCH", "/webhooks/" + hook.UUID, func(url string) string { return fmt.Sprintf(`{"url":%q}`, url) },
			"/webhooks", "POST", `{"uid":"made"}`, "/indexes"},
		{"remote", without(address("remote")), without(hidden("remote")), "PATCH", "/network",
			func(url string) string { return fmt.Sprintf(`{"self":"a","remotes":{"b":{"url":%q}}}`, url) },
			"/network", "POST", `{"federation":{},"queries":[{"indexUid":"m","federationOptions":{"remote":"b"}}]}`, "/multi-search"},
		{"chat", address("chat"), hidden("chat"), "PATCH", "/chats/w/settings", func(url string) string { return fmt.Sprintf(`{"source":"vLlm","baseUrl":%q}`, url) },
			"/chats/w/settings", "", "", ""},
		{"embed", address("embed"), hidden("embed"), "PATCH", "/indexes/m/settings/embedders", embedder,
			"/indexes/m/settings/embedders", "POST", `[{"id":1,"t":"x"}]`, "/indexes/m/documents"},
		{"export", address("export"), hidden("export"), "POST", "/export", func(url string) string { return fmt.Sprintf(`{"url":%q,"indexes":{"m":{}}}`, url) },
			"/tasks?types=export", "", "", ""},
	} {
		settle := func() {
			t.Helper()
			for deadline := time.Now().Add(peace); ; time.Sleep(20 * time.Millisecond) {
				var left struct{ Total int }
				in.must("GET", "/tasks?statuses=enqueued,processing", "", &left)
				if left.Total == 0 {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s: tasks do not end", tt.place)
				}
			}
		}
		if tt.place == "export" { // each request has its own address, so there is nothing to send back
			ask(tt.method, tt.path, tt.body(without(tt.url)))
			settle()
			if text := ask("GET", tt.read, ""); !strings.Contains(text, without(tt.shown)) {
				t.Errorf("an export is shown as %s", text)
			}
			continue
		}
		ask(tt.method, tt.path, tt.body(tt.url))
		settle()
		shown := ask("GET", tt.read, "")
		if !strings.Contains(shown, tt.shown) {
			t.Errorf("%s: shown is %s", tt.place, shown)
		}
		ask(tt.method, tt.path, tt.body(tt.shown))
		settle()
		before := g.count(tt.place)
		for deadline := time.Now().Add(peace); g.count(tt.place) == before; time.Sleep(20 * time.Millisecond) {
			if tt.place == "chat" {
				fmt.Fprintf(&said, "a conversation: %s\n", converse(t, in))
			} else {
				ask(tt.use, tt.at, tt.with)
				settle()
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the secrets are lost: %s", tt.place, said.String())
			}
		}
		// sending them to another host gives none of them
		other := newGuarded(t)
		ask(tt.method, tt.path, tt.body(strings.Replace(tt.shown, strings.TrimPrefix(g.URL, "http://"), strings.TrimPrefix(other.URL, "http://"), 1)))
		settle()
		if tt.place == "chat" {
			fmt.Fprintf(&said, "a conversation: %s\n", converse(t, in))
		} else {
			ask(tt.use, tt.at, tt.with)
			settle()
		}
		if other.count(tt.place) > 0 {
			t.Errorf("%s: the secrets went to another host", tt.place)
		}
	}
	for _, path := range []string{"/tasks?limit=100", "/batches?limit=100", "/indexes", "/indexes/m/settings", "/webhooks", "/network"} {
		ask("GET", path, "")
	}
	in.must("GET", "/health", "", nil)
	fmt.Fprintf(&said, "log: %s\n", in.log.String())
	text := said.String()
	if at := strings.Index(text, "canary"); at >= 0 {
		t.Errorf("shown is …%s…", text[max(at-300, 0):min(at+60, len(text))])
	}
	if strings.Count(text, "XXX... are refused") < 3 {
		t.Error("no error quotes an answer of the service")
	}
}
