package fastapi

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"svc/internal/index"
	"svc/internal/logs/logstest"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// TestAnIndexThatCannotBeOpenedNow uses a server with so many indexes that the start opens none, and requests one whose files
// cannot be opened.
func TestAnIndexThatCannotBeOpenedNow(t *testing.T) {
	var refuses atomic.Bool
	fsys := vfs.Hook(vfs.NewMem(), func(op vfs.Op) error {
		if refuses.Load() && op.Kind == vfs.OpOpen && strings.HasSuffix(op.Name, ".seg") && strings.Contains(op.Name, "/000000/") {
			return syscall.EMFILE
		}
		return nil
	})
	said := new(logstest.Buffer)
	o := Options{}
	openInstance(t, &o)
	o.Logger = slog.New(slog.NewTextHandler(said, nil))
	opened := func() *index.Catalog {
		t.Helper()
		c, err := index.OpenCatalog("indexes", index.Options{FS: fsys, Logger: o.Logger})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	catalog := opened()
	batch := uint64(0)
	put := func(uid, change string, docs ...string) {
		t.Helper()
		batch++
		ix, err := catalog.Create(uid, "id", batch)
		if err != nil {
			t.Fatal(err)
		}
		if docs == nil {
			return
		}
		u, err := settings.ParseUpdate([]byte(change), settings.Features{ForeignKeys: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(fsys, "payload", []byte(strings.Join(docs, "\n")+"\n")); err != nil {
			t.Fatal(err)
		}
		batch++
		results, err := ix.Apply(t.Context(), batch, []index.Op{index.UpdateSettings{Update: u}, index.AddDocuments{Payload: "payload", Documents: len(docs)}}, nil)
		if err != nil || results[0].Err != nil || results[1].Err != nil {
			t.Fatal(err, results)
		}
	}
	put("authors", `{"filterableAttributes":["land"]}`, `{"id":"ann","land":"FR"}`)
	put("books", `{"filterableAttributes":["by"],"foreignKeys":[{"fieldName":"by","foreignIndexUid":"authors"}]}`, `{"id":1,"by":"ann"}`)
	const others = 70
	for i := range others {
		put(fmt.Sprintf("other%d", i), "")
	}
	if err := catalog.Close(); err != nil {
		t.Fatal(err)
	}

	refuses.Store(true)
	catalog = opened()
	t.Cleanup(func() {
		if err := catalog.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Catalog = catalog
	c := newClient(t, o)
	send := func(method, path, body string) reply {
		return c.send(method, path, strings.NewReader(body), "Content-Type", "application/json")
	}
	send("PATCH", "/experimental-features", `{"foreignKeys": true}`)
	asked := func(code string) {
		t.Helper()
		for path, body := range map[string]string{
			"/indexes/books/search":          `{}`,
			"/indexes/books/facet-search":    `{"facetName": "by", "filter": "_foreign(by, land = FR)"}`,
			"/indexes/books/documents/fetch": `{"filter": "_foreign(by, land = FR)"}`,
			"/indexes/authors/search":        `{}`,
		} {
			if r := send("POST", path, body); r.code() != code {
				t.Errorf("%s %s: %d %s, want %q", path, body, r.status, r.body, code)
			}
		}
		r := c.get("/stats?showInternalDatabaseSizes=true")
		var stats struct{ Indexes map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(r.body), &stats); err != nil || r.status != 200 {
			t.Fatalf("statistics: %d %s", r.status, r.body)
		}
		want := others + 2
		if code != "" {
			want--
		}
		if len(stats.Indexes) != want || stats.Indexes["books"] == nil || (stats.Indexes["authors"] == nil) != (code != "") {
			t.Errorf("statistics of %d indexes, want %d: %s", len(stats.Indexes), want, r.body)
		}
		if told := strings.Contains(said.String(), "statistics omit indexes that cannot be opened now\" indexes=1 first=authors"); told != (code != "") {
			t.Errorf("the log names the omitted index: %v\n%s", told, said)
		}
		if r := c.get("/indexes/authors/stats?showInternalDatabaseSizes=true"); r.code() != code {
			t.Errorf("statistics of the index: %d %s, want %q", r.status, r.body, code)
		}
	}
	asked("too_many_open_files")
	*said = logstest.Buffer{}
	refuses.Store(false)
	asked("")
}

// TestOnlySearchesReadAhead uses a server with so many indexes that the start opens none, and checks in its log which requests read ahead
// for vector searches.
func TestOnlySearchesReadAhead(t *testing.T) {
	fsys := vfs.NewMem()
	catalog, err := index.OpenCatalog("indexes", index.Options{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	u, err := settings.ParseUpdate([]byte(`{"filterableAttributes":["n"],"embedders":{"e":{"source":"userProvided","dimensions":2}}}`), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(fsys, "payload", []byte(`{"id":1,"n":1,"_vectors":{"e":[1,2]}}`+"\n")); err != nil {
		t.Fatal(err)
	}
	batch := uint64(0)
	for i := range 70 {
		batch++
		ix, err := catalog.Create(fmt.Sprintf("i%d", i), "id", batch)
		if err != nil {
			t.Fatal(err)
		}
		if batch++; i < 20 {
			if _, err := ix.Apply(t.Context(), batch, []index.Op{index.UpdateSettings{Update: u}, index.AddDocuments{Payload: "payload", Documents: 1}}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := catalog.Close(); err != nil {
		t.Fatal(err)
	}
	said := new(logstest.Buffer)
	o := Options{}
	openInstance(t, &o)
	debug := slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if catalog, err = index.OpenCatalog("indexes", index.Options{FS: fsys, Logger: debug}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := catalog.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Catalog = catalog
	c := newClient(t, o)
	c.send("PATCH", "/experimental-features", strings.NewReader(`{"renderRoute": true}`), "Content-Type", "application/json")
	const ahead = "reading ahead"
	for i, tt := range []struct {
		method, path, body string // with the index as %[1]s
		ahead              bool
	}{
		{"GET", "/indexes/%[1]s/documents?limit=1", "", false},
		{"GET", "/indexes/%[1]s/documents?retrieveVectors=true", "", false},
		{"POST", "/indexes/%[1]s/documents/fetch", `{"filter":"n = 1"}`, false},
		{"GET", "/indexes/%[1]s/documents/1", "", false},
		{"GET", "/indexes/%[1]s/stats?showInternalDatabaseSizes=true", "", false},
		{"GET", "/stats?showInternalDatabaseSizes=true", "", false},
		{"GET", "/indexes/%[1]s", "", false},
		{"GET", "/indexes/%[1]s/settings", "", false},
		{"POST", "/render-template", `{"template":{"kind":"inlineDocumentTemplate","inline":"{{doc.n}}"},"input":{"kind":"indexDocument","indexUid":"%[1]s","id":"1"}}`, false},
		{"POST", "/indexes/%[1]s/search", `{}`, true},
		{"POST", "/indexes/%[1]s/similar", `{"id":1,"embedder":"e"}`, true},
		{"POST", "/multi-search", `{"queries":[{"indexUid":"%[1]s"}]}`, true},
		{"POST", "/multi-search", `{"federation":{},"queries":[{"indexUid":"%[1]s"}]}`, true},
	} {
		uid := fmt.Sprintf("i%d", i)
		*said = logstest.Buffer{}
		path, body := strings.ReplaceAll(tt.path, "%[1]s", uid), strings.ReplaceAll(tt.body, "%[1]s", uid)
		if r := c.send(tt.method, path, strings.NewReader(body), "Content-Type", "application/json"); r.status != 200 {
			t.Fatalf("%s %s: %d %s", tt.method, path, r.status, r.body)
		}
		if got := strings.Contains(said.String(), ahead); got != tt.ahead {
			t.Errorf("%s %s %s: an index was read ahead: %v\n%s", tt.method, path, body, got, said)
		}
	}
}
