package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSnapshotOfAServerThatNamesNoFile checks that no path is printed if the server does not send one.
func TestSnapshotOfAServerThatNamesNoFile(t *testing.T) {
	for file, want := range map[string]string{"": "", "/snapshots/data.snapshot": "/snapshots/data.snapshot\n"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				if file != "" {
					w.Header().Set("Svc-File", file)
				}
				_, _ = w.Write([]byte(`{"taskUid":1}`))
				return
			}
			_, _ = w.Write([]byte(`{"uid":1,"status":"succeeded"}`))
		}))
		code, out, errs := runCommand("snapshot", "--url", server.URL, "--key", "k")
		server.Close()
		if code != 0 || out != want || (errs == "") != (file != "") {
			t.Errorf("%q: %d %q %q", file, code, out, errs)
		}
	}
}
