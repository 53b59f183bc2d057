package fastapi

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"
	"github.com/valyala/fasthttp"
)

// compressed returns text in an encoding: br, gzip, zlib or flate.
func compressed(t testing.TB, encoding, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch encoding {
	case "br":
		w, err = brotli.NewWriter(&b, 4)
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	case "flate":
		w, err = flate.NewWriter(&b, 6)
	case "zstd":
		w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// chunked hides a reader's length, so that the body is sent without one.
type chunked struct{ io.Reader }

func TestBodyEncodings(t *testing.T) {
	c := newClient(t, Options{PayloadLimit: 50_000})
	on, large := `{"metrics": true}`, `{"metrics": true`+strings.Repeat(" ", 60_000)+`}`
	for _, tt := range []struct {
		name     string
		encoding string
		body     []byte
		status   int
		code     string
	}{
		{"plain", "", []byte(on), 200, ""},
		{"identity", "identity", []byte(on), 200, ""},
		{"an unknown encoding", "rot13", []byte(on), 200, ""},
		{"gzip, twice", "gzip, gzip", []byte(on), 415, "unsupported_media_type"},
		{"gzip in brotli", "gzip,br", compressed(t, "br", string(compressed(t, "gzip", on))), 415, "unsupported_media_type"},
		{"identity and gzip", "identity, gzip", compressed(t, "gzip", on), 415, "unsupported_media_type"},
		{"a list of one", "gzip,", compressed(t, "gzip", on), 415, "unsupported_media_type"},
		{"gzip", "gzip", compressed(t, "gzip", on), 200, ""},
		{"gzip in capitals", "GZip", compressed(t, "gzip", on), 200, ""},
		{"brotli", "br", compressed(t, "br", on), 200, ""},
		{"deflate as zlib", "deflate", compressed(t, "zlib", on), 200, ""},
		{"deflate bare", "deflate", compressed(t, "flate", on), 200, ""},
		{"zstd", "zstd", compressed(t, "zstd", on), 200, ""},
		{"invalid zstd", "zstd", []byte(on), 200, ""},
		{"zstd cut short", "zstd", compressed(t, "zstd", on)[:12], 400, "bad_request"},
		{"nothing in zstd", "zstd", nil, 400, "missing_payload"},
		{"too large inside zstd", "zstd", compressed(t, "zstd", large), 413, "payload_too_large"},
		{"invalid gzip", "gzip", []byte(on), 400, "bad_request"},
		{"gzip cut short", "gzip", compressed(t, "gzip", on)[:20], 400, "bad_request"},
		{"brotli cut short", "br", compressed(t, "br", on)[:8], 400, "bad_request"},
		{"deflate cut short", "deflate", compressed(t, "zlib", on)[:8], 400, "bad_request"},
		{"deflate of one byte", "deflate", []byte{0x78}, 400, "bad_request"},
		{"nothing in deflate", "deflate", nil, 400, "missing_payload"},
		{"too large", "", []byte(large), 413, "payload_too_large"},
		{"too large inside", "gzip", compressed(t, "gzip", large), 413, "payload_too_large"},
		{"too large inside brotli", "br", compressed(t, "br", large), 413, "payload_too_large"},
	} {
		for name, body := range map[string]io.Reader{"": bytes.NewReader(tt.body), ", chunked": chunked{bytes.NewReader(tt.body)}} {
			headers := []string{"Content-Type", "application/json"}
			if tt.encoding != "" {
				headers = append(headers, "Content-Encoding", tt.encoding)
			}
			r := c.send("PATCH", "/experimental-features", body, headers...)
			if r.status != tt.status || r.code() != tt.code {
				t.Errorf("%s%s: %d %s, want %d %s", tt.name, name, r.status, r.body, tt.status, tt.code)
			}
		}
	}
}

// TestBodyEncodingsOnLines sends encodings in several header lines, which form a list.
func TestBodyEncodingsOnLines(t *testing.T) {
	c := newClient(t, Options{})
	for _, lines := range [][]string{{"gzip", "gzip"}, {"identity", "gzip"}, {"gzip", ""}, {"", "gzip"}} {
		r, err := http.NewRequest("PATCH", "http://svc/experimental-features", bytes.NewReader(compressed(t, "gzip", `{"metrics": true}`)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Content-Encoding": lines}
		res, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 415 {
			t.Errorf("%q: %d", lines, res.StatusCode)
		}
	}
}

func TestContentTypes(t *testing.T) {
	c := newClient(t, Options{})
	const none = "\x00"
	for _, tt := range []struct{ path, kind, code string }{
		{"/indexes", none, "missing_content_type"},
		{"/indexes", "", "invalid_content_type"},
		{"/indexes", "text/plain", "invalid_content_type"},
		{"/indexes", "application/x-ndjson", "invalid_content_type"},
		{"/indexes", "application/vnd.api+json", "invalid_content_type"},
		{"/indexes", "multipart/form-data; boundary=x", "invalid_content_type"},
		{"/indexes", "application/json", "missing_index_uid"},
		{"/indexes", "APPLICATION/JSON", "missing_index_uid"},
		{"/indexes", "application/json; charset=utf-8", "missing_index_uid"},
		{"/indexes", "application/json;charset=UTF-8", "missing_index_uid"},
		{"/indexes/a/documents", none, "missing_content_type"},
		{"/indexes/a/documents", "", "invalid_content_type"},
		{"/indexes/a/documents", "json", "invalid_content_type"},
		{"/indexes/a/documents", "text/json", "invalid_content_type"},
		{"/indexes/a/documents", "application/csv", "invalid_content_type"},
		{"/indexes/a/documents?csvDelimiter=;", "application/json", "invalid_content_type"},
		{"/indexes/a/documents?csvDelimiter=;", "application/x-ndjson", "invalid_content_type"},
		{"/indexes/a/documents?csvDelimiter=;", none, "missing_content_type"},
	} {
		var headers []string
		if tt.kind != none {
			headers = []string{"Content-Type", tt.kind}
		}
		r := c.send("POST", tt.path, strings.NewReader("{}"), headers...)
		want := 415
		if tt.code == "missing_index_uid" {
			want = 400
		}
		if r.code() != tt.code || r.status != want {
			t.Errorf("%s with %q: %d %s, want %d %s", tt.path, tt.kind, r.status, r.code(), want, tt.code)
		}
	}
}

// TestConnectionStaysUsable sends bodies that no handler reads over one connection: the next request must be understood.
func TestConnectionStaysUsable(t *testing.T) {
	c := newClient(t, Options{})
	c.http.Transport.(*http.Transport).MaxConnsPerHost = 1
	for _, body := range []io.Reader{
		strings.NewReader("{broken"), strings.NewReader("null"), chunked{strings.NewReader("{broken")},
		strings.NewReader(strings.Repeat("x", 100_000)), chunked{strings.NewReader(strings.Repeat("x", 100_000))},
	} {
		if r := c.send("GET", "/health", body, "Content-Type", "application/json"); r.status != 200 {
			t.Errorf("%d %s", r.status, r.body)
		}
		if r := c.send("DELETE", "/indexes/not%20valid", body, "Content-Type", "text/csv"); r.code() != "invalid_index_uid" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if r := c.send("POST", "/nowhere", strings.NewReader(strings.Repeat("x", 3<<20))); r.status != 404 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := c.get("/health"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// rawServer starts a server for tests that write to connections directly, and returns its address.
func rawServer(t *testing.T) (address string) {
	t.Helper()
	return rawAddress(newTCPClient(t, Options{}))
}

// rawAddress returns the address of the server of a client.
func rawAddress(c *client) (address string) {
	c.get("/health")
	c.server.conns.mu.Lock()
	defer c.server.conns.mu.Unlock()
	for open := range c.server.conns.open {
		address = open.LocalAddr().String()
	}
	return address
}

// TestAmbiguousBodies sends bodies whose end a proxy may see elsewhere than svc: no later request on the connection may be answered.
func TestAmbiguousBodies(t *testing.T) {
	address := rawServer(t)
	const next = "GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, head := range map[string]string{
		"two lengths, the number last":  "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
		"two lengths, the number first": "Content-Length: 4\r\ntransfer-encoding: Chunked\r\n\r\n0\r\n\r\n",
		"no encoding, and a length":     "Transfer-Encoding: identity\r\nContent-Length: 4\r\n\r\n{}{}",
		"no encoding alone":             "Transfer-Encoding: identity\r\n\r\n",
		"two numbers":                   "Content-Length: 0\r\nContent-Length: 4\r\n\r\n",
		"a chunk without a length":      "Transfer-Encoding: chunked\r\n\r\nzz\r\n0\r\n\r\n",
		"a chunk beyond all lengths":    "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n0\r\n\r\n",
		"a chunk's length with 0x":      "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
		"the last length with 0x":       "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0x0\r\n\r\n",
		"the only length with 0x":       "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
		"a chunk with a wrong end":      "Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
	} {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = io.WriteString(nc, "PATCH /experimental-features HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+head+next)
		answers, readErr := io.ReadAll(nc) // to the end of the connection
		nc.Close()
		if err != nil || readErr != nil && !errors.Is(readErr, syscall.ECONNRESET) {
			t.Errorf("%s: %v, %v", name, err, readErr)
		}
		if !bytes.HasPrefix(answers, []byte("HTTP/1.1 400 ")) || bytes.Count(answers, []byte("HTTP/1.1 ")) != 1 {
			t.Errorf("%s: %q", name, answers)
		}
		if time.Since(start) > lingerTime {
			t.Errorf("%s: the server waits for the rest of the body", name)
		}
	}
}

// TestUnreadBodies sends malformed bodies to handlers that do not read them: no later request on the connection may be answered.
func TestUnreadBodies(t *testing.T) {
	address := rawServer(t)
	for _, route := range []string{"GET /health", "DELETE /nowhere"} {
		for _, body := range []string{
			"0x0\r\n\r\n",
			"0x2\r\n{}\r\n0\r\n\r\n",
			"2\r\n{}\r\n0x0\r\n\r\n",
			"zz\r\n0\r\n\r\n",
			"2\r\n{}XX0\r\n\r\n",
		} {
			nc, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(nc, route+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"+body+
				"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			answers, readErr := io.ReadAll(nc) // to the end of the connection
			nc.Close()
			if err != nil || readErr != nil && !errors.Is(readErr, syscall.ECONNRESET) {
				t.Errorf("%s, %q: %v, %v", route, body, err, readErr)
			}
			if bytes.Count(answers, []byte("HTTP/1.1 ")) != 1 {
				t.Errorf("%s, %q: %q", route, body, answers)
			}
		}
	}
}

func TestDeepBodies(t *testing.T) {
	c, _ := newInstance(t, Options{})
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	for body, want := range map[string]string{
		`{"q": "` + strings.Repeat(`\"[{`, 200) + `"}`:            "index_not_found",
		`{"filter": ` + nested(maxDepth-1) + `}`:                  "invalid_search_filter",
		`{"filter": ` + nested(maxDepth) + `}`:                    "malformed_payload",
		`{"filter": [` + strings.Repeat(`[],`, 200) + `[]` + `]}`: "index_not_found",
		`{"filter": ` + nested(5000) + `}`:                        "malformed_payload",
		`{"filter": ` + nested(20_000) + `}`:                      "malformed_payload",
	} {
		if r := c.json("POST", "/indexes/none/search", body); r.code() != want {
			t.Errorf("%.60s…: %d %s, want %s", body, r.status, r.body, want)
		}
	}
	deep := `{"embedders": {"e": {"source": "rest", "url": "http://example.com", "request": ` + strings.Repeat(`{"a":`, 4200) + `"{{text}}"` + strings.Repeat("}", 4200) + `, "response": "{{embedding}}"}}}`
	if r := c.json("PATCH", "/indexes/x/settings", deep); r.code() != "malformed_payload" {
		t.Errorf("deep settings: %d %s", r.status, r.body)
	}
}

func TestNegotiate(t *testing.T) {
	for accept, want := range map[string]string{
		"":                              "",
		"gzip":                          "gzip",
		"GZIP":                          "gzip",
		"deflate, gzip":                 "gzip",
		"gzip, deflate, br":             "br",
		"gzip, deflate, br, zstd":       "br",
		"zstd":                          "",
		"*":                             "",
		"identity":                      "",
		"br;q=0":                        "",
		"br;q=0, gzip;q=0.1":            "gzip",
		"br;q=0.2, gzip ; q=0.9":        "gzip",
		"identity;q=1, gzip;q=0.5":      "",
		"identity;q=0.5, deflate;q=0.5": "deflate",
		"gzip;q=x":                      "",
	} {
		if got := negotiate([]byte(accept)); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
}

func TestCompressedAnswers(t *testing.T) {
	c := newClient(t, Options{})
	plain := c.get("/version").body
	for _, encoding := range []string{"br", "gzip", "deflate"} {
		r := c.send("GET", "/version", nil, "Accept-Encoding", encoding)
		if r.header.Get("Content-Encoding") != encoding || !strings.Contains(strings.Join(r.header.Values("Vary"), ", "), "accept-encoding") {
			t.Errorf("%s: %v", encoding, r.header)
		}
		var response fasthttp.Response
		response.SetBodyString(r.body)
		response.Header.SetContentEncoding(encoding)
		body, err := response.BodyUncompressed()
		if err != nil || string(body) != plain {
			t.Errorf("%s: %q %v, want %q", encoding, body, err, plain)
		}
		// An empty answer is not compressed.
		if r := c.send("GET", "/nowhere", nil, "Accept-Encoding", encoding); r.header.Get("Content-Encoding") != "" || r.body != "" {
			t.Errorf("%s: an empty answer became %q", encoding, r.body)
		}
	}
	if r := c.get("/version"); r.header.Get("Content-Encoding") != "" {
		t.Errorf("compressed without being asked: %v", r.header)
	}
}

// TestCutOffBodies closes the connection in the middle of a body: the part that arrived must not be used.
func TestCutOffBodies(t *testing.T) {
	var o Options
	openInstance(t, &o)
	c := newTCPClient(t, o)
	address := rawAddress(c)
	long := strings.Repeat(" ", 20000) // fasthttp reads the beginning of a body itself
	for _, test := range []struct{ path, kind, sent string }{
		{"/indexes/films/documents", contentNDJSON, "{\"id\":1}\n{\"id\":2}\n"},
		{"/indexes/films/documents", "text/csv", "id,title\n1,a\n2,b\n"},
		{"/indexes/films/documents", contentJSON, `[{"id":1}]`},
		{"/indexes/films/documents/delete-batch", contentJSON, `[1,2]`},
		{"/indexes/films/search", contentJSON, `{}`},
	} {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(nc, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", test.path, test.kind, len(long)+len(test.sent)+9, long+test.sent)
		if err := nc.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(nc)
		nc.Close()
		if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) || !bytes.Contains(answer, []byte("unexpected EOF")) {
			t.Errorf("%s, %s: %v %q", test.path, test.kind, err, answer)
		}
	}
	if r := c.get("/tasks"); !strings.Contains(r.body, `"total":0`) {
		t.Errorf("incomplete bodies have tasks: %s", r.body)
	}
}
