package fastapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/logs"
	"svc/internal/logs/logstest"
)

func TestLogRoutes(t *testing.T) {
	heard := logs.New(io.Discard, logs.AtLeast(slog.LevelWarn), logs.Human)
	c := newClient(t, Options{Log: heard, Logger: heard.Logger()})
	for _, tt := range []struct {
		method, path, body string
		code               string
	}{
		{"POST", "/logs/stderr", `{"target": "info"}`, "feature_not_enabled"},
		{"POST", "/logs/stderr", `{"target": "loud"}`, "bad_request"}, // the body is checked first
		{"POST", "/logs/stream", `{}`, "feature_not_enabled"},
		{"DELETE", "/logs/stream", "", "feature_not_enabled"},
		{"PATCH", "/experimental-features", `{"logsRoute": true}`, ""},
		{"POST", "/logs/stderr", `{"target": "off,fastapi=debug"}`, ""},
		{"POST", "/logs/stderr", `{"target": null}`, "bad_request"},
		{"POST", "/logs/stderr", `{"mode": "human"}`, "bad_request"},
		{"POST", "/logs/stream", `{"mode": "loud"}`, "bad_request"},
		{"POST", "/logs/stream", `{"target": ""}`, "bad_request"},
		{"POST", "/logs/stream", `{"mode": "json", "profileMemory": true}`, "bad_request"},
		{"POST", "/logs/stream", ``, "missing_payload"},
		{"DELETE", "/logs/stream", "", ""}, // no listener
	} {
		r := c.json(tt.method, tt.path, tt.body)
		if r.code() != tt.code || tt.code == "" && r.status != 204 && tt.method != "PATCH" {
			t.Errorf("%s %s %s: %d %s, want %q", tt.method, tt.path, tt.body, r.status, r.body, tt.code)
		}
	}
	if !heard.Logger().Enabled(t.Context(), slog.LevelDebug) {
		t.Error("the console's filter has not changed")
	}
}

// listen opens a stream of logs and returns its lines.
func (c *client) listen(ctx context.Context, body string) (*http.Response, *bufio.Scanner) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://svc/logs/stream", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	r, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return r, bufio.NewScanner(r.Body)
}

func TestLogStream(t *testing.T) {
	heard := logs.New(io.Discard, logs.AtLeast(logs.LevelOff), logs.Human)
	c := newTCPClient(t, Options{Log: heard, Logger: heard.Logger()})
	c.json("PATCH", "/experimental-features", `{"logsRoute": true}`)

	r, lines := c.listen(t.Context(), `{"mode": "json", "target": "fastapi=info"}`)
	defer r.Body.Close()
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "application/octet-stream" || r.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	c.get("/indexes?limit=1")
	for lines.Scan() && !strings.Contains(lines.Text(), "/indexes") {
	}
	for _, part := range []string{`"message":"close"`, `"target":"svc::fastapi"`, `"query_parameters":"limit=1"`, `"status_code":200`} {
		if !strings.Contains(lines.Text(), part) {
			t.Errorf("no %s in %s", part, lines.Text())
		}
	}
	if other := c.json("POST", "/logs/stream", `{}`); other.code() != "bad_request" {
		t.Errorf("a second client: %d %s", other.status, other.body)
	}
	if end := c.send("DELETE", "/logs/stream", nil); end.status != 204 {
		t.Errorf("the end: %d %s", end.status, end.body)
	}
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream does not end properly: %v", err)
	}

	// A client that leaves makes room for the next, although nothing is logged at this level.
	ctx, leave := context.WithCancel(t.Context())
	r, _ = c.listen(ctx, `{"target": "error"}`)
	leave()
	r.Body.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r, _ = c.listen(t.Context(), `{"target": "error"}`)
		if r.StatusCode == 200 {
			break
		}
		r.Body.Close()
		if time.Now().After(deadline) {
			t.Fatal("a client that has left still listens")
		}
	}
	defer r.Body.Close() // ended by the server
}

// TestLogStreamNeedsItsKey checks that a stream ends at the first check after its key was deleted, although lines keep coming.
func TestLogStreamNeedsItsKey(t *testing.T) {
	heard := logs.New(io.Discard, logs.AtLeast(logs.LevelOff), logs.Human)
	filter, err := logs.ParseFilter("info")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := heard.Listen(filter, logs.JSON, false)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Stop()
	var allowed atomic.Bool
	allowed.Store(true)
	checks, sent := make(chan time.Time), new(logstest.Buffer)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		send(bufio.NewWriter(sent), listener, nil, checks, allowed.Load)
	}()
	checks <- time.Time{}
	heard.Logger().Info("before")
	for !strings.Contains(sent.String(), "before") {
		time.Sleep(time.Millisecond)
	}
	allowed.Store(false)
	checks <- time.Time{}
	<-ended
}

// TestMayReadLogs checks what a check of a stream finds.
func TestMayReadLogs(t *testing.T) {
	c := newProtected(t)
	c.json("PATCH", "/experimental-features", `{"logsRoute": true}`)
	var key struct{ Key, UID string }
	if err := json.Unmarshal([]byte(c.json("POST", "/keys", `{"actions": ["metrics.get"], "indexes": ["*"], "expiresAt": null}`).body), &key); err != nil {
		t.Fatal(err)
	}
	is := func(what, credential string, want bool) {
		t.Helper()
		if got := c.server.mayReadLogs(credential); got != want {
			t.Errorf("%s: %t", what, got)
		}
	}
	is("a key", key.Key, true)
	is("the master key", masterKey, true)
	is("a key for searches", c.makeKey(`["search"]`, `["*"]`), false)
	c.send("DELETE", "/keys/"+key.UID, nil)
	is("a deleted key", key.Key, false)
	c.json("PATCH", "/experimental-features", `{"logsRoute": false}`)
	is("without the feature", masterKey, false)
	open := newClient(t, Options{})
	open.json("PATCH", "/experimental-features", `{"logsRoute": true}`)
	if !open.server.mayReadLogs("") {
		t.Error("a server without a master key ends the stream")
	}
	open.server.endSearches()
	if open.server.mayReadLogs("") {
		t.Error("the stream of a server that has ended goes on")
	}
}

// TestCredentialsAreNotLogged sends keys wherever clients may put them, and checks that the log does not have them.
func TestCredentialsAreNotLogged(t *testing.T) {
	var log logstest.Buffer
	heard := logs.New(&log, logs.AtLeast(slog.LevelDebug), logs.JSON)
	keys := openKeys(t, masterKey)
	c, _ := newInstance(t, Options{Keys: keys, Features: allFeatures(t)})
	c.server.log = heard.Logger()
	c.key = masterKey
	value := keys.Value(keys.List()[0])
	token := c.tenantToken(`{"searchRules": ["*"]}`)
	escaped := fmt.Sprintf("%%%02x", value[0]) + value[1:]
	secrets := []string{masterKey, value, token, strings.ToUpper(value), escaped, value[1:]}
	requests := 0
	send := func(method, path string, headers ...string) {
		t.Helper()
		requests++
		c.sendStream(method, path, strings.NewReader("{}"), append(headers, "Content-Type", contentJSON)...)
	}
	table := routes()
	for i := range table {
		r := &table[i]
		if r.method == methodDelete || r.path == "/tasks/compact" {
			continue
		}
		for _, secret := range []string{masterKey, value, token, strings.ToUpper(value), escaped} {
			for _, variable := range variables.FindAllString(r.path, -1) {
				if variable != "{key}" && secret == masterKey { // nothing shows that it is a secret
					continue
				}
				send(r.method, samplePath(strings.Replace(r.path, variable, secret, 1)))
			}
			send(r.method, samplePath(r.path)+"?access_token="+secret+"&limit=1&"+secret)
			for _, f := range r.op.query[:min(len(r.op.query), 1)] {
				send(r.method, samplePath(r.path)+"?"+f.name+"="+secret)
			}
		}
	}
	for _, secret := range []string{masterKey, value, token, value[1:]} {
		for _, path := range []string{"/keys/" + secret, "/keys/" + secret + "/", "//keys//" + secret, "/keys/" + secret + "?a"} {
			send("DELETE", path, "X-Not", "sent")
			send("HEAD", path)
			send("PUT", path, "Accept", "*/*") // wrong method
		}
		if secret != value[1:] { // its form does not show that it is a key
			send("GET", "/key/"+secret, "Accept", "*/*") // unknown path
			send("GET", "/version", "User-Agent", "agent "+secret)
		}
	}
	text := strings.ReplaceAll(log.String(), `\u0026`, "&")
	if n := strings.Count(text, `"message":"close"`); n < requests*9/10 { // some are not answered in time
		t.Errorf("%d requests, %d are logged", requests, n)
	}
	for _, want := range []string{`"route":"/keys/` + value[:5] + `XXXXXX..."`, `"query_parameters":"access_token=XXX...&limit=1&XXX..."`, `"user_agent":"agent eyJ`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	for _, secret := range secrets {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("the log has %s: …%s…", secret, text[max(at-300, 0):min(at+100, len(text))])
		}
	}
}
