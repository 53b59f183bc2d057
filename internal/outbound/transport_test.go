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
	neighbour := httptest.NewServer(mux) // another port of the same host
	defer neighbour.Close()
	for path, to := range map[string]struct {
		status int
		url    string
	}{
		"/307": {307, "/done"}, "/308": {308, server.URL + "/done"}, "/301": {301, "/done"}, "/302": {302, "/done"}, "/303": {303, "/done"},
		"/away": {307, elsewhere + "/done"}, "/port": {308, neighbour.URL + "/done"}, "/round": {307, "/round"}, "/two": {308, "/307"},
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
		{"POST", "/301", 301, false}, {"PUT", "/302", 302, false}, {"POST", "/303", 303, false}, {"POST", "/away", 307, false}, {"GET", "/away", 307, false}, {"POST", "/port", 308, false}, {"GET", "/port", 308, false},
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

	for _, tt := range []struct {
		from, to string
		same     bool
	}{
		{"https://a/x", "http://a/x", false}, {"http://a/x", "https://a/x", false}, {"https://a/x", "https://a:443/y", true}, {"http://a:80/x", "http://A/x", true},
		{"http://a:443/x", "https://a/x", false}, {"https://a/x", "https://a:8443/x", false}, {"http://a:1/x", "http://a:2/x", false}, {"http://a@b/x", "http://a/x", false},
	} {
		from, _ := http.NewRequest("POST", tt.from, nil)
		to, _ := http.NewRequest("POST", tt.to, nil)
		if err := RepeatOnly(to, []*http.Request{from}); (err == nil) != tt.same {
			t.Errorf("from %s to %s: %v", tt.from, tt.to, err)
		}
	}
}
