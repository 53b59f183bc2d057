package dump

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/outbound"
	"svc/internal/task"
)

// target is another instance that records its requests.
type target struct {
	*httptest.Server
	mu        sync.Mutex
	requests  []string // METHOD PATH BODY, in order; documents are sorted to the end of an index
	documents map[string][]string
	bodies    int // requests with documents
	largest   int // largest unpacked body, in bytes
	indexes   map[string]bool
	fail      func(r *http.Request) int
	key       string
}

func newTarget(t *testing.T) *target {
	s := &target{documents: map[string][]string{}, indexes: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *target) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = r.Header.Get("Authorization")
	if s.fail != nil {
		if status := s.fail(r); status != 0 {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"message":"no","code":"invalid_api_key"}`)
			return
		}
	}
	uid, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/indexes/"), "/")
	if rest == "documents" {
		z, err := gzip.NewReader(r.Body)
		if err != nil || r.Header.Get("Content-Encoding") != "gzip" || r.Header.Get("Content-Type") != "application/x-ndjson" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		b, _ := io.ReadAll(z)
		s.bodies++
		s.largest = max(s.largest, len(b))
		for line := range strings.Lines(string(b)) {
			s.documents[uid] = append(s.documents[uid], strings.TrimSpace(line))
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	b, _ := io.ReadAll(r.Body)
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(b)))
	if r.Method == http.MethodGet && !s.indexes[uid] {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"no","code":"index_not_found"}`)
	}
}

// source returns an instance with three indexes.
func source(t *testing.T, change func(*Options)) *instance {
	in := open(t, filepath.Join(t.TempDir(), "data"), func(o *Options, _ *task.Options) {
		if change != nil {
			change(o)
		}
	})
	in.run("fruits", update(t, `{"filterableAttributes":["n"],"chat":{"description":"d"}}`), "")
	var docs strings.Builder
	for i := range 100 {
		fmt.Fprintf(&docs, `{"id":%d,"n":%d}`+"\n", i, i%10)
	}
	in.run("fruits", add(docs.String()), docs.String())
	in.run("fruits_old", add(`{"id":1}`+"\n"), `{"id":1}`+"\n")
	in.run("secret", task.CreateIndex{}, "")
	return in
}

func export(url string, indexes map[string]task.ExportIndex) task.ExportTo {
	if indexes == nil {
		indexes = map[string]task.ExportIndex{"*": {}}
	}
	return task.ExportTo{URL: url, Indexes: indexes}
}

func TestExport(t *testing.T) {
	in, to := source(t, nil), newTarget(t)
	to.indexes["fruits_old"] = true
	c := export(to.URL+"/", nil)
	c.APIKey = "the key of the other side"
	done := in.run("", c, "")
	want := []string{
		`GET /indexes/fruits`,
		`POST /indexes {"primaryKey":"id","uid":"fruits"}`,
		`PATCH /indexes/fruits/settings`,
		`GET /indexes/fruits_old`,
		`GET /indexes/secret`,
		`POST /indexes {"primaryKey":null,"uid":"secret"}`,
		`PATCH /indexes/secret/settings`,
	}
	for i, r := range to.requests {
		if strings.HasPrefix(r, "PATCH") {
			method, body, _ := strings.Cut(r, " {")
			to.requests[i] = method
			if strings.Contains(body, `"chat"`) || strings.Contains(body, `"foreignKeys"`) || !strings.Contains(body, `"stopWords"`) {
				t.Errorf("settings %s", body)
			}
		}
	}
	if !slices.Equal(to.requests, want) {
		t.Errorf("requests %q, want %q", to.requests, want)
	}
	if len(to.documents["fruits"]) != 100 || !slices.Equal(to.documents["fruits_old"], []string{`{"id":1}`}) || to.bodies != senders+1 {
		t.Errorf("%d and %d documents in %d requests", len(to.documents["fruits"]), len(to.documents["fruits_old"]), to.bodies)
	}
	if to.key != "Bearer the key of the other side" {
		t.Errorf("authorized with %q", to.key)
	}
	details := `{"url":"` + to.URL + `/","apiKey":"theXXXXX...","indexes":{"fruits":{"filter":null,"overrideSettings":false,"matched_documents":100},"fruits_old":{"filter":null,"overrideSettings":false,"matched_documents":1},"secret":{"filter":null,"overrideSettings":false,"matched_documents":0}}}`
	if string(done.Details) != details {
		t.Errorf("details %s, want %s", done.Details, details)
	}
}

func TestExportOfSome(t *testing.T) {
	in, to := source(t, nil), newTarget(t)
	to.indexes["fruits"] = true
	c := export(to.URL, map[string]task.ExportIndex{
		"fruits": {Filter: json.RawMessage(`["n = 3"]`), OverrideSettings: true}, "f*": {Filter: json.RawMessage(`"id = 1"`)},
		"fruits_o*": {}, "nothing*": {},
	})
	c.PayloadSize = 1
	in.run("", c, "")
	if len(to.documents["fruits"]) != 10 || len(to.documents["fruits_old"]) != 1 || len(to.documents) != 2 || to.bodies != 11 {
		t.Errorf("%v in %d requests", to.documents, to.bodies)
	}
	if !slices.Contains(to.requests, `PATCH /indexes/fruits {"primaryKey":"id"}`) {
		t.Errorf("requests %q", to.requests)
	}
}

func TestExportPayloadSize(t *testing.T) {
	in, to := source(t, nil), newTarget(t)
	c := export(to.URL, map[string]task.ExportIndex{"fruits": {}})
	c.PayloadSize = 35 // a little more than two documents
	in.run("", c, "")
	slices.Sort(to.documents["fruits"])
	if n := len(slices.Compact(to.documents["fruits"])); n != 100 || to.largest > 35 || to.bodies < 50 {
		t.Errorf("%d documents in %d requests of up to %d bytes", n, to.bodies, to.largest)
	}
}

func TestExportFails(t *testing.T) {
	for name, tt := range map[string]struct {
		allowed outbound.Policy
		index   task.ExportIndex
		fail    func(*http.Request) int
		want    string
	}{
		"refused":     {allowed: outbound.Any(), fail: func(*http.Request) int { return 403 }, want: "invalid_api_key"},
		"documents":   {allowed: outbound.Any(), fail: func(r *http.Request) int { return map[bool]int{true: 413}[strings.HasSuffix(r.URL.Path, "documents")] }, want: "413"},
		"not allowed": {want: "--experimental-allowed-ip-networks"},
		"filter":      {allowed: outbound.Any(), index: task.ExportIndex{Filter: json.RawMessage(`"unknown = 1"`)}, want: "filter"},
		"no filter":   {allowed: outbound.Any(), index: task.ExportIndex{Filter: json.RawMessage(`12`)}, want: "filter"},
	} {
		t.Run(name, func(t *testing.T) {
			to := newTarget(t)
			to.fail = tt.fail
			in := source(t, func(o *Options) { o.Allowed = tt.allowed })
			c := export(to.URL, map[string]task.ExportIndex{"fruits": tt.index})
			done := in.wait(in.enqueue("", c, "").UID)
			if done.Status != task.Failed || done.Error.Code != "internal" || !strings.Contains(done.Error.Message, tt.want) {
				t.Errorf("%s: %v, want an internal error with %q", done.Status, done.Error, tt.want)
			}
		})
	}
}

// TestExportToRedirect exports to an address that redirects to another one.
func TestExportToRedirect(t *testing.T) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect} {
		to := newTarget(t)
		front := httptest.NewServer(http.RedirectHandler(strings.Replace(to.URL, "127.0.0.1", "localhost", 1), status))
		defer front.Close()
		in := source(t, func(o *Options) { o.Allowed = outbound.Any() })
		done := in.wait(in.enqueue("", export(front.URL, map[string]task.ExportIndex{"fruits": {}}), "").UID)
		if done.Status != task.Failed || !strings.Contains(done.Error.Message, "a redirect to http://localhost") || len(to.requests) > 0 {
			t.Errorf("%d: %s, %v, asked %q", status, done.Status, done.Error, to.requests)
		}
	}
}

// TestRetries exports to a server that recovers, and to one that never does.
func TestRetries(t *testing.T) {
	to := newTarget(t)
	left := 3
	to.fail = func(*http.Request) int {
		if left--; left >= 0 {
			return []int{503, 429, 500}[left]
		}
		return 0
	}
	r := newRemote(outbound.Any().Transport(), to.URL, "")
	defer r.close()
	r.firstWait = time.Millisecond
	if err := r.send(t.Context(), "POST", "/indexes", map[string]string{}); err != nil || left != -1 {
		t.Errorf("error %v, %d failures left", err, left)
	}
	to.fail = func(*http.Request) int { return 502 }
	r.giveUp = 20 * time.Millisecond
	var refused *refusedError
	if err := r.send(t.Context(), "POST", "/indexes", map[string]string{}); !errors.As(err, &refused) || refused.status != 502 {
		t.Errorf("error %v", err)
	}
	r.url, r.giveUp = "http://127.0.0.1:1", 20*time.Millisecond
	if err := r.send(t.Context(), "POST", "/indexes", map[string]string{}); err == nil {
		t.Error("an export to a closed port succeeds")
	}
}

func TestExportCanceled(t *testing.T) {
	in, to := source(t, nil), newTarget(t)
	started := make(chan struct{})
	var once sync.Once
	to.fail = func(*http.Request) int { once.Do(func() { close(started) }); return 503 }
	own := in.enqueue("", export(to.URL, nil), "")
	<-started
	in.run("", task.CancelTasks{Query: "?", Tasks: []uint32{own.UID}}, "")
	if got := in.wait(own.UID); got.Status != task.Canceled {
		t.Errorf("the export is %s", got.Status)
	}
}

func TestMatch(t *testing.T) {
	patterns := map[string]task.ExportIndex{}
	for _, p := range []string{"*", "a*", "ab*", "abc"} {
		patterns[p] = task.ExportIndex{Filter: json.RawMessage(p)}
	}
	for uid, want := range map[string]string{"z": "*", "a": "a*", "ab": "ab*", "abc": "abc", "abcd": "ab*"} {
		if got, ok := match(patterns, uid); !ok || !bytes.Equal(got.Filter, []byte(want)) {
			t.Errorf("%s: %s, want %s", uid, got.Filter, want)
		}
	}
	if _, ok := match(map[string]task.ExportIndex{"a": {}, "b*": {}}, "ab"); ok {
		t.Error("ab matches a or b*")
	}
}
