package outbound

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRepeatOnly(t *testing.T) {
	var done []string
	mux := http.NewServeMux()
	mux.HandleFunc("/done", func(_ http.ResponseWriter, r *http.Request) { done = append(done, r.Method) })
	server := httptest.NewServer(mux)
	defer server.Close()
	elsewhere := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	for path, to := range map[string]struct {
		status int
		url    string
	}{
		"/307": {307, "/done"}, "/308": {308, server.URL + "/done"}, "/301": {301, "/done"}, "/302": {302, "/done"}, "/303": {303, "/done"},
		"/away": {307, elsewhere + "/done"}, "/round": {307, "/round"}, "/two": {308, "/307"},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to.url, to.status) })
	}
	client := http.Client{Transport: Any().Transport(), CheckRedirect: RepeatOnly}
	defer client.CloseIdleConnections()
	for _, tt := range []struct {
		method, path string
		status       int // 0: an error
		done         bool
	}{
		{"POST", "/done", 200, true}, {"POST", "/307", 200, true}, {"POST", "/308", 200, true}, {"PUT", "/two", 200, true},
		{"POST", "/301", 301, false}, {"PUT", "/302", 302, false}, {"POST", "/303", 303, false}, {"POST", "/away", 307, false}, {"GET", "/away", 307, false},
		{"GET", "/301", 200, true}, {"POST", "/round", 0, false},
	} {
		done = nil
		req, err := http.NewRequest(tt.method, server.URL+tt.path, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		status := 0
		if res, err := client.Do(req); err == nil {
			status = res.StatusCode
			res.Body.Close()
		}
		if status != tt.status || (len(done) == 1 && done[0] == tt.method) != tt.done {
			t.Errorf("%s %s: %d, done %v", tt.method, tt.path, status, done)
		}
	}

	down, _ := http.NewRequest("POST", "http://a/x", nil)
	from, _ := http.NewRequest("POST", "https://a/x", nil)
	if err := RepeatOnly(down, []*http.Request{from}); err != http.ErrUseLastResponse {
		t.Errorf("a request that was encrypted goes on in the clear: %v", err)
	}
	if err := RepeatOnly(from, []*http.Request{down}); err != nil {
		t.Errorf("a request does not go on encrypted: %v", err)
	}
}
