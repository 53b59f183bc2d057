package fastapi

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestAnswersBeforeTheBody sends the beginnings of bodies whose end the server need not wait for. The client must see the answer without
// sending more. What it sends afterwards must be dropped: a reset would fail its writes.
func TestAnswersBeforeTheBody(t *testing.T) {
	const (
		search    = "POST /indexes/none/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
		documents = "POST /indexes/none/documents HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n" // refused before the body is read
	)
	first := strings.Repeat("x", 16<<10) // fasthttp reads half of this before it calls the handler
	for _, secure := range []bool{false, true} {
		for name, tt := range map[string]struct{ request, want string }{
			"too large by its length":   {search + "Content-Length: 9000000000\r\n\r\n{" + first, "payload_too_large"},
			"a wrong type, by length":   {documents + "Content-Length: 900000\r\n\r\n" + first, "invalid_content_type"},
			"a wrong type, in chunks":   {documents + "Transfer-Encoding: chunked\r\n\r\n2\r\nxx\r\n", "invalid_content_type"},
			"a route without a body":    {"DELETE /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" + first, "404 Not Found"},
			"much more than is dropped": {documents + "Content-Length: 900000\r\n\r\n" + strings.Repeat("x", 500_000), "invalid_content_type"},
		} {
			dial := lingerServer(t, secure)
			nc := dial()
			if _, err := io.WriteString(nc, tt.request); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(nc) // to the end of the answers
			if err != nil || !bytes.Contains(answer, []byte(tt.want)) || !bytes.Contains(answer, []byte("Connection: close")) {
				t.Errorf("%s, TLS %v: %q, %v", name, secure, answer, err)
			}
			for range 64 { // more than the buffers of the system hold
				if _, err := nc.Write(bytes.Repeat([]byte{'x'}, 64<<10)); err != nil {
					t.Errorf("%s, TLS %v: the rest of the body is refused: %v", name, secure, err)
					break
				}
			}
			nc.Close()
		}
	}
}

// lingerServer starts a server, and returns a function that connects to it.
func lingerServer(t *testing.T, secure bool) func() net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	dial := func() (net.Conn, error) { return net.Dial("tcp", address) }
	if secure {
		certified := httptest.NewTLSServer(nil)
		certified.Close()
		roots := x509.NewCertPool()
		roots.AddCert(certified.Certificate())
		l = tls.NewListener(l, &tls.Config{Certificates: certified.TLS.Certificates})
		dial = func() (net.Conn, error) {
			return tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "example.com"})
		}
	}
	connect(t, Options{}, l, dial)
	return func() net.Conn {
		nc, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		return nc
	}
}

// TestShortRestsKeepTheConnection sends bodies that are refused at their beginning and end soon: the next request on the connection is
// answered.
func TestShortRestsKeepTheConnection(t *testing.T) {
	dial := lingerServer(t, false)
	nc := dial()
	defer nc.Close()
	for _, n := range []int{2, 5000, 100_000, 200_000} {
		fmt.Fprintf(nc, "POST /indexes/none/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{]%s", n, strings.Repeat("x", n-2))
	}
	fmt.Fprint(nc, "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	answers, err := io.ReadAll(nc)
	if err != nil || bytes.Count(answers, []byte("HTTP/1.1 400")) != 4 || bytes.Count(answers, []byte("HTTP/1.1 200")) != 1 {
		t.Errorf("%q, %v", answers, err)
	}
}

// answersTo sends a request and then one for the health, on one connection, and returns the statuses of all answers.
func answersTo(t *testing.T, address, first string) (statuses []int) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { // the server may close the connection before it has read all
		_, _ = io.WriteString(conn, first+"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	}()
	for in := bufio.NewReader(conn); ; {
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		statuses = append(statuses, answer.StatusCode)
	}
}

// TestNoPartOfABodyIsARequest sends bodies with requests in them to handlers that read no body.
func TestNoPartOfABodyIsARequest(t *testing.T) {
	c := newTCPClient(t, Options{})
	inner := strings.Repeat("GET /missing HTTP/1.1\r\nHost: a\r\n\r\n", 2000)
	headers := fmt.Sprintf("Host: a\r\nContent-Length: %d\r\n", len(inner))
	for head, want := range map[string]int{
		"OPTIONS /indexes HTTP/1.1\r\nOrigin: http://b\r\nAccess-Control-Request-Method: GET\r\n": 200, // a preflight
		"OPTIONS /indexes HTTP/1.1\r\n":                   405,
		"PUT /health HTTP/1.1\r\n":                        405,
		"GET /health HTTP/1.1\r\n":                        200,
		"POST /missing HTTP/1.1\r\n":                      404,
		"POST /dumps HTTP/1.1\r\nAuthorization: none\r\n": 401,
	} {
		if statuses := answersTo(t, c.address, head+headers+"\r\n"+inner); !slices.Equal(statuses, []int{want, 200}) {
			t.Errorf("%q: the answers are %d, want %d and 200", head, statuses, want)
		}
	}
}
