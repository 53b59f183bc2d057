package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestASignalStopsTheDeletionOfIndexes interrupts the deletion of three indexes during the second one.
func TestASignalStopsTheDeletionOfIndexes(t *testing.T) {
	own, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var deleted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deleted = append(deleted, r.URL.Path)
		if len(deleted) == 2 {
			if err := own.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	code, out := runProgram(nil, "index", "delete", "a", "b", "c", "--url", server.URL, "--key", "k")
	server.Close()
	if want := []string{"/indexes/a", "/indexes/b"}; code != exitFailure || !slices.Equal(deleted, want) || !strings.Contains(out, "a: ") || !strings.Contains(out, "b: ") {
		t.Errorf("%d after %q, want %q: %s", code, deleted, want, out)
	}
}
