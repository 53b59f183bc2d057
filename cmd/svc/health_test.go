package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	in := start(t, filepath.Join(t.TempDir(), "data"), "--master-key", "a-master-key-of-16-bytes")
	cert, key := certificate(t)
	secure := start(t, filepath.Join(t.TempDir(), "data"), "--ssl-cert-path", cert, "--ssl-key-path", key)
	address, secureAddress := strings.TrimPrefix(in.url, "http://"), strings.TrimPrefix(secure.url, "http://")
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved/health" { // where no svc is
			http.Redirect(w, r, in.url+"/health", http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer sick.Close()
	t.Chdir(t.TempDir())
	for _, tt := range []struct {
		name string
		env  map[string]string
		args []string
		code int
		says string
	}{
		{"own address", map[string]string{"SVC_HTTP_ADDR": address}, nil, 0, "available\n"},
		{"own address of another product's name", map[string]string{"MEILI_HTTP_ADDR": address}, nil, 0, "available\n"},
		{"own address, every one", map[string]string{"SVC_HTTP_ADDR": "0.0.0.0" + address[strings.Index(address, ":"):]}, nil, 0, "available\n"},
		{"own address by HTTPS", map[string]string{"SVC_HTTP_ADDR": secureAddress, "SVC_SSL_CERT_PATH": cert, "SVC_SSL_KEY_PATH": key}, nil, 0, "available\n"},
		{"URL", nil, []string{"--url", in.url}, 0, "available\n"},
		{"URL with a slash", nil, []string{"--url", in.url + "/"}, 0, "available\n"},
		{"URL, whatever the environment says", map[string]string{"SVC_LOG_LEVEL": "loud"}, []string{"--url", in.url}, 0, "available\n"},
		{"untrusted certificate", nil, []string{"--url", "https://" + secureAddress}, exitFailure, "certificate"},
		{"no URL", nil, []string{"--url", "localhost"}, exitFailure, "absolute URL"},
		{"not available", nil, []string{"--url", sick.URL}, exitFailure, "503"},
		{"elsewhere", nil, []string{"--url", sick.URL + "/moved"}, exitFailure, "302"},
		{"nothing listens", nil, []string{"--url", "http://" + freeAddress()}, exitFailure, "does not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if code, out := runProgram(tt.env, append([]string{"health"}, tt.args...)...); code != tt.code || !strings.Contains(out, tt.says) {
				t.Errorf("exit code %d, printed %q", code, out)
			}
		})
	}
}
