package network

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"svc/internal/index"
	"svc/internal/logs/logstest"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// TestNetworkChangesDoNotReadAhead reads documents of closed indexes as changes of the network do. The log must show that no index was
// read ahead, which is useful only for vector searches.
func TestNetworkChangesDoNotReadAhead(t *testing.T) {
	fsys := vfs.NewMem()
	catalog, err := index.OpenCatalog("indexes", index.Options{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	u, err := settings.ParseUpdate([]byte(`{"embedders":{"e":{"source":"userProvided","dimensions":2}}}`), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(fsys, "payload", []byte(`{"id":1,"_vectors":{"e":[1,2]}}`+"\n")); err != nil {
		t.Fatal(err)
	}
	ops := []index.Op{index.UpdateSettings{Update: u}, index.AddDocuments{Payload: "payload", Documents: 1}}
	const closed = 4 // so many indexes that the start opens none
	for i := range uint64(70) {
		ix, err := catalog.Create(fmt.Sprint("i", i), "id", 2*i+1)
		if err != nil {
			t.Fatal(err)
		}
		if i < closed {
			if _, err := ix.Apply(t.Context(), 2*i+2, ops, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := catalog.Close(); err != nil {
		t.Fatal(err)
	}
	said := new(logstest.Buffer)
	log := slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if catalog, err = index.OpenCatalog("indexes", index.Options{FS: fsys, Logger: log}); err != nil {
		t.Fatal(err)
	}
	defer catalog.Close()
	leader := "a"
	to := &Network{Leader: &leader, Shards: map[string]*Shard{"x": {Remotes: []string{"b"}}}}
	uses := []struct {
		what string
		do   func(ix *index.Index) error
		told bool
	}{
		{"a search of documents that others own", func(ix *index.Index) error {
			ids, err := strangers(t.Context(), ix, func([]byte) bool { return false })
			if len(ids) != 1 {
				t.Errorf("strangers %q", ids)
			}
			return err
		}, false},
		{"documents that are sent", func(ix *index.Index) error {
			x, n := &export{}, &Node{o: Options{Catalog: catalog}}
			defer x.drop()
			return n.beginExport(x, to, nil, &Transfer{Index: ix.UID(), Remote: "b"}, pace.Of(t.Context()))
		}, false},
		{"documents that are filled in", func(ix *index.Index) error {
			r := &changing{ctx: t.Context()}
			return r.store(ix, "id", "b", &source{fills: true}, "payload")
		}, false},
		{"a search", func(ix *index.Index) error {
			v, err := ix.View()
			if err == nil {
				v.Release()
			}
			return err
		}, true},
	}
	for i, use := range uses {
		*said = logstest.Buffer{}
		if err := use.do(catalog.Get(fmt.Sprint("i", i))); err != nil {
			t.Fatalf("%s: %v", use.what, err)
		}
		if told := strings.Contains(said.String(), "reading ahead"); told != use.told {
			t.Errorf("%s: an index was read ahead: %v\n%s", use.what, told, said)
		}
	}
}
