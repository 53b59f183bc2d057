package fastapi

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/logs"
)

func TestLogRoutes(t *testing.T) {
	heard := logs.New(io.Discard, logs.AtLeast(slog.LevelWarn), logs.Human)
	c := newClient(t, Options{Log: heard, Logger: heard.Logger()})
	for _, tt := range []struct {
		method, path, body string
		code               string
	}{
		{"POST", "/logs/stderr", `{"target": "info"}`, "feature_not_enabled"},
		{"POST", "/logs/stderr", `{"target": "loud"}`, "bad_request"}, // the body first
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
		{"DELETE", "/logs/stream", "", ""}, // nobody listens
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
	c.get("/health?x=1")
	for lines.Scan() && !strings.Contains(lines.Text(), "/health") {
	}
	for _, part := range []string{`"message":"close"`, `"target":"svc::fastapi"`, `"query_parameters":"x=1"`, `"status_code":200`} {
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
		t.Errorf("the stream does not end as it should: %v", err)
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
			t.Fatal("a client that has left is listening still")
		}
	}
	defer r.Body.Close() // the server's end ends this one
}
