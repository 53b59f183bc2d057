package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// shrink sets maxAnswer for a test.
func shrink(t *testing.T, most int) {
	before := maxAnswer
	maxAnswer = most
	t.Cleanup(func() { maxAnswer = before })
}

// endless is a text that repeats without end.
type endless struct {
	begin string
	read  int
}

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	if e.read == 0 {
		copy(b, e.begin)
	}
	e.read += len(b)
	return len(b), nil
}

// TestEndlessSources reads documents from servers that ignore parameters of the request, or whose documents are too large.
func TestEndlessSources(t *testing.T) {
	shrink(t, 64<<10)
	list := func(n int, document, total string) string {
		return `{"results":[` + strings.TrimSuffix(strings.Repeat(document+",", max(n, 0)), ",") + `]` + total + `}`
	}
	large := func(bytes int) string { return `"` + strings.Repeat("x", bytes) + `"` }
	for what, tt := range map[string]struct {
		answer func(limit, offset int) string
		read   int    // documents
		err    string // "": none
	}{
		"a good one":       {func(limit, offset int) string { return list(min(limit, 2500-offset), `{"id":1}`, `,"total":2500`) }, 2500, ""},
		"large pages":      {func(limit, offset int) string { return list(min(limit, 50-offset), large(10<<10), `,"total":50`) }, 50, ""},
		"nothing":          {func(int, int) string { return list(0, "", `,"total":0`) }, 0, ""},
		"no offset":        {func(limit, _ int) string { return list(min(limit, 700), `{"id":1}`, `,"total":700`) }, 700, "ignores the offset"},
		"one page again":   {func(limit, _ int) string { return list(limit, `{"id":1}`, `,"offset":0,"total":2000`) }, 1000, "ignores the offset"},
		"no limit":         {func(int, int) string { return list(1001, `{"id":1}`, `,"total":1001`) }, 0, "the limit was 1000"},
		"no total":         {func(limit, _ int) string { return list(limit, `{"id":1}`, "") }, 0, "does not report the number"},
		"a negative total": {func(limit, _ int) string { return list(limit, `{"id":1}`, `,"total":-1`) }, 0, "ignores the offset"},
		"a total that grows": {func(limit, offset int) string {
			return list(limit, `{"id":1}`, fmt.Sprintf(`,"total":%d`, offset+limit+1))
		}, 12000, "adds documents faster"},
		"one large document": {func(int, int) string { return list(1, large(80<<10), `,"total":1`) }, 0, "document 1 of "},
		"a later one": {func(limit, offset int) string {
			if offset+limit <= 7 {
				return list(limit, `{"id":1}`, `,"total":9`)
			}
			return list(1, large(80<<10), `,"total":9`)
		}, 7, "document 8 of "},
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			limit, _ := strconv.Atoi(r.FormValue("limit"))
			offset, _ := strconv.Atoi(r.FormValue("offset"))
			_, _ = io.WriteString(w, tt.answer(limit, offset))
		}))
		c, err := New(server.URL, "", false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(c.Documents("i"))
		if len(got) != tt.read || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || requests > 30 {
			t.Errorf("%s: %d documents in %d requests, %v", what, len(got), requests, err)
		}
		server.Close()
	}
}

// TestEndlessAnswers sends requests to a server whose answers have no end.
func TestEndlessAnswers(t *testing.T) {
	shrink(t, 64<<10)
	for _, status := range []int{200, 400, 503} {
		var sent atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			n, _ := io.Copy(w, &endless{begin: `{"message":"`})
			sent.Add(n)
		}))
		c, err := New(server.URL, "", false)
		if err != nil {
			t.Fatal(err)
		}
		var large *tooLargeError
		if err := c.Call(t.Context(), "GET", "/stats", nil, nil); !errors.As(err, &large) {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
		if sent.Load() > 64<<20 {
			t.Errorf("%d: %d bytes were read", status, sent.Load())
		}
	}
	refused := &Error{Status: 400, Code: "x", Message: "a\x1b[2Jb\nc" + strings.Repeat("é", 5000)}
	if got := refused.Error(); !strings.HasPrefix(got, "a\ufffd[2Jb\nc") || len(got) > 2100 {
		t.Errorf("a message is shown as %.50q", got)
	}
}

// TestAServerThatStops sends requests to servers that send nothing, or a part of an answer. The request must end, and say why.
func TestAServerThatStops(t *testing.T) {
	defer func(before time.Duration) { stallTime = before }(stallTime)
	stallTime = 100 * time.Millisecond
	for _, part := range []string{"", `{"results":[`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if part != "" {
				_, _ = io.WriteString(w, part)
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		}))
		c, err := New(server.URL, "", false)
		if err != nil {
			t.Fatal(err)
		}
		c.Patience = 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := c.Call(ctx, "GET", "/indexes", nil, nil); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "stopped responding") {
			t.Errorf("after %q: %v", part, err)
		}
		cancel()
		server.Close()
	}
}

// TestEndlessFiles reads an endless document in each format.
func TestEndlessFiles(t *testing.T) {
	shrink(t, 64<<10)
	for format, begin := range map[Format]string{JSON: `[{"id":1},{"id":"`, NDJSON: "{\"id\":1}\n{\"id\":\"", CSV: "id,t\n1,x\n2,\""} {
		e := &endless{begin: begin}
		d, err := Open(e, format, "")
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		var large *tooLargeError
		if got, err := read(d); len(got) > 1 || !errors.As(err, &large) || e.read > 8*bufferBytes {
			t.Errorf("%s: %d documents, %v after %d bytes", format, len(got), err, e.read)
		}
	}
	var many strings.Builder
	const documents = 200 // as large as is allowed
	for i := range documents {
		fmt.Fprintf(&many, "{\"id\":%d,\"t\":%q}\n", i, strings.Repeat("x", 50<<10))
	}
	for _, format := range []Format{NDJSON, JSON} {
		d, err := Open(strings.NewReader(many.String()), format, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read(d); len(got) != documents || err != nil {
			t.Errorf("%s: %d documents, %v", format, len(got), err)
		}
	}
}
