package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/bucket"
	"svc/internal/group"
	"svc/internal/publish"
)

// TestAnIndexIsRestoredIntoARunningServer restores indexes of earlier positions and of the last one into the server that publishes them.
func TestAnIndexIsRestoredIntoARunningServer(t *testing.T) {
	from := "file://" + filepath.ToSlash(t.TempDir())
	m := groupMember{start(t, filepath.Join(t.TempDir(), "data"), "--master-key", groupKey, "--publish", from, "--publish-interval", "10ms")}
	state := func(uid string) (all [2]any) {
		t.Helper()
		for i, what := range []string{"/settings", "/documents?retrieveVectors=true&limit=1000"} {
			b, _ := m.ask("GET", "/indexes/"+uid+what, "")
			if err := json.Unmarshal([]byte(b), &all[i]); err != nil {
				t.Fatalf("%s: %v", b, err)
			}
		}
		return all
	}
	change := func(method, path, body string) string {
		t.Helper()
		if b, _ := m.ask(method, path, body); !strings.Contains(b, "taskUid") {
			t.Fatalf("%s %s: %s", method, path, b)
		}
		(&pair{t: t, writer: m}).idle()
		_, header := m.ask("GET", "/health", "")
		return header.Get("Svc-Position")
	}
	published := func(position string) {
		t.Helper()
		untilPublished(t, restoreCommand{From: from, MasterKey: groupKey}, position)
	}
	_, header := m.ask("GET", "/health", "")
	published(header.Get("Svc-Position")) // later positions are published, earlier ones are not
	change("PATCH", "/indexes/films/settings", `{"filterableAttributes": ["year"], "embedders": {"own": {"source": "userProvided", "dimensions": 2}}}`)
	before := change("POST", "/indexes/films/documents?primaryKey=key", `[{"key": 1, "year": 1980, "_vectors": {"own": [0.5, 1]}}, {"key": 2, "year": 1990, "_vectors": {"own": null}}]`)
	first := state("films")
	change("POST", "/indexes/other/documents", `[{"id": 1}]`)
	change("POST", "/indexes/empty/documents", `[]`)
	change("DELETE", "/indexes/films/documents/2", "")
	change("POST", "/indexes/films/documents", `[{"key": 3}]`)
	m.ask("POST", "/aliases", `[{"alias": "movies", "indexUid": "films"}]`)
	published(change("PATCH", "/indexes/films", `{"uid": "renamed"}`))
	last := state("renamed")

	c := restoreCommand{From: from, MasterKey: groupKey}
	c.URL, c.Key = m.url, groupKey
	indexes := func() string {
		t.Helper()
		(&pair{t: t, writer: m}).idle()
		b, _ := m.ask("GET", "/indexes", "")
		var answer struct{ Results []struct{ UID string } }
		if err := json.Unmarshal([]byte(b), &answer); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(answer.Results)
	}
	work := t.TempDir()
	for _, x := range []struct {
		index, as, at string
		replace       bool
		want          [2]any
		fails         string
		indexes       string
	}{
		{index: "films", at: before, want: first, indexes: "[{empty} {films} {other} {renamed}]"},
		{index: "renamed", fails: "has an index renamed. Choose another name with --as", indexes: "[{empty} {films} {other} {renamed}]"},
		{index: "renamed", as: "copy", want: last, indexes: "[{copy} {empty} {films} {other} {renamed}]"},
		{index: "films", as: "copy", at: before, replace: true, want: first, indexes: "[{copy} {empty} {films} {other} {renamed}]"},
		{index: "renamed", as: "movies", replace: true, fails: "movies is an alias of the index renamed", indexes: "[{copy} {empty} {films} {other} {renamed}]"},
		{index: "empty", as: "void", want: state("empty"), indexes: "[{copy} {empty} {films} {other} {renamed} {void}]"},
		{index: "renamed", as: "x", at: before, fails: "there is no index renamed: the indexes are films", indexes: "[{copy} {empty} {films} {other} {renamed} {void}]"},
		{index: "a/b", fails: "--index"},
		{index: "films", as: "a b", fails: "--as"},
	} {
		c.Index, c.As, c.At, c.Replace, c.To = x.index, x.as, x.at, x.replace, work
		out, err := restore(t, c)
		name := x.as
		if name == "" {
			name = x.index
		}
		switch {
		case x.fails != "" && (err == nil || !strings.Contains(err.Error(), x.fails)):
			t.Errorf("%s as %s: %v, want %s", x.index, x.as, err, x.fails)
		case x.fails == "" && (err != nil || !strings.Contains(out, "index "+name+" of ")):
			t.Errorf("%s as %s: %v: %s", x.index, x.as, err, out)
		case x.fails == "":
			if got := state(name); !reflect.DeepEqual(got, x.want) {
				t.Errorf("%s at %s is restored as\n%v, want\n%v", x.index, x.at, got, x.want)
			}
		}
		if x.indexes != "" && indexes() != x.indexes {
			t.Errorf("after %s as %s the indexes are %s, want %s", x.index, x.as, indexes(), x.indexes)
		}
		if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
			t.Fatalf("%v, %v", left, err)
		}
	}
}

// TestAFailedRestoreOfAnIndex fails the requests of a restore one after the other: no part of the index may be left.
func TestAFailedRestoreOfAnIndex(t *testing.T) {
	from := "file://" + filepath.ToSlash(t.TempDir())
	dir := filepath.Join(t.TempDir(), "data")
	m := groupMember{start(t, dir, "--master-key", groupKey, "--publish", from, "--publish-interval", "10ms")}
	m.ask("POST", "/indexes/films/documents", `[{"id": 1}]`)
	(&pair{t: t, writer: m}).idle()
	_, header := m.ask("GET", "/health", "")
	c := restoreCommand{From: from, MasterKey: groupKey, restoreIndexOptions: restoreIndexOptions{Index: "films", As: "copy"}}
	untilPublished(t, c, header.Get("Svc-Position"))
	to, err := url.Parse(m.url)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	for n := 0; ; n++ {
		var asked []string // except requests for tasks
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/tasks/") {
				asked = append(asked, r.Method)
				if len(asked) == n+1 {
					w.WriteHeader(http.StatusForbidden)
					return
				}
			}
			pass.ServeHTTP(w, r)
		}))
		c.URL, c.Key, c.To = proxy.URL, groupKey, t.TempDir()
		_, err := restore(t, c)
		proxy.Close()
		(&pair{t: t, writer: m}).idle()
		indexes, _ := m.ask("GET", "/indexes", "")
		if len(asked) <= n { // no request failed
			if err != nil || !strings.Contains(indexes, `"copy"`) {
				t.Errorf("%v: %s", err, indexes)
			}
			if want := []string{"GET", "GET", "POST", "PATCH", "POST", "PATCH"}; !slices.Equal(asked, want) {
				t.Errorf("the requests are %q, want %q", asked, want)
			}
			return
		}
		if err == nil || !strings.Contains(indexes, `"total":1`) {
			t.Errorf("after %q: %v: %s", asked, err, indexes)
		}
	}
}

// TestLostAnswersAtTheEndOfARestore loses the answers to the last step of a restore in a proxy. If the command cannot know which index has
// the name, it must leave both the former and the restored one.
func TestLostAnswersAtTheEndOfARestore(t *testing.T) {
	from := "file://" + filepath.ToSlash(t.TempDir())
	m := groupMember{start(t, filepath.Join(t.TempDir(), "data"), "--master-key", groupKey, "--publish", from, "--publish-interval", "10ms")}
	m.ask("POST", "/indexes/films/documents", `[{"id": 1}]`)
	(&pair{t: t, writer: m}).idle()
	_, header := m.ask("GET", "/health", "")
	c := restoreCommand{From: from, MasterKey: groupKey, At: header.Get("Svc-Position"), restoreIndexOptions: restoreIndexOptions{Index: "films", As: "copy"}}
	untilPublished(t, c, c.At)
	to, err := url.Parse(m.url)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	store, err := bucket.Open(bucket.Options{URL: from})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		lost    string // what the proxy loses after the last request arrived
		replace bool
		fails   string // "": the restore succeeds
		left    int    // other indexes than films
	}{
		{"the answer", false, "it is unknown whether restore-", 1},
		{"the answer", true, "it is unknown whether restore-", 2},
		{"the first poll of the task", false, "", 1},
		{"the first poll of the task", true, "", 1},
		{"all polls of the task", false, "it is unknown whether restore-", 1},
		{"all polls of the task", true, "it is unknown whether restore-", 2},
		{"the command", false, "", 1}, // the command is interrupted
		{"the command", true, "", 1},
		{"the request", true, "is refused", 1},
	} {
		t.Run(fmt.Sprint(x.lost, x.replace), func(t *testing.T) {
			if x.replace {
				m.ask("POST", "/indexes/copy/documents", `[{"id": 7}, {"id": 8}]`)
				(&pair{t: t, writer: m}).idle()
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			named, looks := false, 0
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				last := r.URL.Path == "/swap-indexes" || r.Method == "PATCH" && !strings.HasSuffix(r.URL.Path, "/settings")
				if last && x.lost == "the request" {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = w.Write([]byte(`{"message": "it is refused", "code": "bad_request"}`))
					return
				}
				if last && x.lost == "the answer" {
					pass.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				}
				named = named || last
				if named && strings.HasPrefix(r.URL.Path, "/tasks/") {
					looks++
					if x.lost == "the command" {
						stop()
					}
					if x.lost == "all polls of the task" || x.lost == "the first poll of the task" && looks == 1 {
						w.WriteHeader(http.StatusForbidden)
						return
					}
				}
				pass.ServeHTTP(w, r)
			}))
			defer proxy.Close()
			c := c
			c.URL, c.Key, c.To, c.Replace = proxy.URL, groupKey, t.TempDir(), x.replace
			archive, err := publish.Open(ctx, store, groupKey)
			if err != nil {
				t.Fatal(err)
			}
			at, err := publish.ParseTarget(c.At)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err = c.restoreIndex(ctx, program{getenv: func(string) (string, bool) { return "", false }, out: &out, err: io.Discard}, archive, at)
			(&pair{t: t, writer: m}).idle()
			switch {
			case x.fails == "" && (err != nil || !strings.Contains(out.String(), "index copy of ")):
				t.Errorf("%v: %s", err, &out)
			case x.fails != "" && (err == nil || !strings.Contains(err.Error(), x.fails)):
				t.Errorf("%v", err)
			}
			if x.left == 2 && (err == nil || !strings.Contains(err.Error(), "took the place of copy")) {
				t.Errorf("the error does not name both indexes: %v", err)
			}
			var all struct{ Results []struct{ UID string } }
			b, _ := m.ask("GET", "/indexes", "")
			if err := json.Unmarshal([]byte(b), &all); err != nil {
				t.Fatal(err)
			}
			totals := map[string]bool{}
			for _, i := range all.Results {
				if i.UID == "films" {
					continue
				}
				b, _ := m.ask("GET", "/indexes/"+i.UID+"/documents", "")
				switch {
				case strings.Contains(b, `"total":1`):
					totals["restored"] = true
				case strings.Contains(b, `"total":2`):
					totals["former"] = true
				}
				m.ask("DELETE", "/indexes/"+i.UID, "")
			}
			(&pair{t: t, writer: m}).idle()
			if len(all.Results) != x.left+1 || x.replace && x.fails != "" && !totals["former"] || x.lost != "the request" && !totals["restored"] {
				t.Errorf("%d indexes are left, with %v", len(all.Results), totals)
			}
		})
	}
}

// untilPublished waits until a position, or a later one, can be restored.
func untilPublished(t *testing.T, c restoreCommand, position string) {
	t.Helper()
	want, err := group.ParsePosition(position)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if all := publishedRanges(t, c); len(all) > 0 && all[len(all)-1].To.Compare(want) >= 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("position %s is not published", position)
		}
	}
}
