package dump

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// TestExportByAForeignIndexThatCannotBeOpened filters by an index whose files cannot be opened now: the error must say so, instead of that
// the index does not exist.
func TestExportByAForeignIndexThatCannotBeOpened(t *testing.T) {
	var refuses atomic.Bool
	o := limits()
	o.FS = vfs.Hook(vfs.NewMem(), func(op vfs.Op) error {
		if refuses.Load() && op.Kind == vfs.OpOpen && strings.HasSuffix(op.Name, ".seg") && strings.Contains(op.Name, "/000000/") {
			return syscall.EMFILE
		}
		return nil
	})
	catalog, err := index.OpenCatalog("indexes", o)
	must(t, err)
	batch := uint64(0)
	put := func(uid, change, doc string) {
		t.Helper()
		batch++
		ix, err := catalog.Create(uid, "id", batch)
		must(t, err)
		if doc == "" {
			return
		}
		u, err := settings.ParseUpdate([]byte(change), settings.Features{ForeignKeys: true})
		must(t, err)
		must(t, vfs.WriteFile(o.FS, "payload", []byte(doc+"\n")))
		batch++
		_, err = ix.Apply(t.Context(), batch, []index.Op{index.UpdateSettings{Update: u}, index.AddDocuments{Payload: "payload", Documents: 1}}, nil)
		must(t, err)
	}
	put("authors", `{"filterableAttributes":["land"]}`, `{"id":"ann","land":"FR"}`)
	put("books", `{"filterableAttributes":["by"],"foreignKeys":[{"fieldName":"by","foreignIndexUid":"authors"},{"fieldName":"lost","foreignIndexUid":"nowhere"}]}`,
		`{"id":1,"by":"ann"}`)
	for i := range 70 { // so many that the start opens none
		put(fmt.Sprintf("other%d", i), "", "")
	}
	must(t, catalog.Close())
	refuses.Store(true)
	catalog, err = index.OpenCatalog("indexes", o)
	must(t, err)
	defer func() { must(t, catalog.Close()) }()

	frozen, err := catalog.Freeze()
	must(t, err)
	defer frozen.Release()
	e := &exporter{ctx: t.Context(), frozen: frozen}
	v, err := frozen.View(1)
	must(t, err)
	if v.UID != "books" {
		t.Fatalf("the second index is %s", v.UID)
	}
	for _, tt := range []struct {
		filter  string
		refused bool
		code    apierr.Code // "": one document
	}{
		{`"_foreign(by, land = FR)"`, true, "too_many_open_files"},
		{`"_foreign(lost, land = FR)"`, true, apierr.Internal},
		{`"_foreign(by, land = FR)"`, false, ""},
	} {
		refuses.Store(tt.refused)
		_, n, err := e.rows(v, json.RawMessage(tt.filter))
		switch {
		case tt.code == "" && (err != nil || n != 1):
			t.Errorf("%s: %d, %v, want one document", tt.filter, n, err)
		case tt.code != "" && (err == nil || apierr.From(err).Code != tt.code):
			t.Errorf("%s: %d, %v, want %s", tt.filter, n, err, tt.code)
		}
	}
}
