package index

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/script"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// TestViews holds one state of each index while the indexes change.
func TestViews(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	b.create("gone")
	b.apply(ix, b.payload(`{"id":1}`))
	views := b.c.Views()
	if v := views.Get("a"); v == nil || v.Documents() != 1 || views.Get("late") != nil || views.Get("gone") == nil {
		t.Fatal("the views differ from the catalog")
	}
	b.apply(ix, b.payload(`{"id":2}`))
	b.create("late")
	b.batch++
	if _, err := b.c.Delete("gone", b.batch); err != nil {
		t.Fatal(err)
	}
	if views.Get("a").Documents() != 1 || views.Get("late") != nil || views.Get("gone") == nil {
		t.Error("the views changed during a request")
	}
	views.Release()
	if v := views.Get("a"); v.Documents() != 2 || views.Get("late") == nil || views.Get("gone") != nil {
		t.Error("after Release the views are still the old ones")
	}
	views.Release() // otherwise close waits for ever
}

// TestForeignFilters deletes and edits documents by conditions on other indexes.
func TestForeignFilters(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	authors, books := b.create("authors"), b.create("books")
	b.apply(authors, update(t, `{"filterableAttributes":["land"]}`), b.payload(`{"id":"ann","land":"FR"}`))
	b.apply(authors, b.payload(`{"id":7,"land":"FR"}`, `{"id":"bo","land":"VN"}`)) // another segment
	u, err := settings.ParseUpdate([]byte(`{"filterableAttributes":["author","next"],"foreignKeys":[{"fieldName":"author","foreignIndexUid":"authors"},`+
		`{"fieldName":"lost","foreignIndexUid":"nowhere"},{"fieldName":"next","foreignIndexUid":"books"}]}`), settings.Features{ForeignKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	b.apply(books, UpdateSettings{u}, b.payload(`{"id":1,"author":"ann","next":2}`, `{"id":2,"author":7}`, `{"id":3,"author":["bo","ann"],"next":4}`, `{"id":4}`))

	// A filter sees an addition of the same batch, but not as a foreign document.
	results := b.apply(books, b.payload(`{"id":5,"author":"ann"}`), DeleteByFilter{[]byte(`"_foreign(author, land = FR) AND NOT _foreign(next, author EXISTS)"`)})
	if got := slices.Sorted(maps.Keys(documents(t, books.current.Load()))); results[1].Deleted != 3 || !slices.Equal(got, []string{"1", "4"}) {
		t.Errorf("%d deleted, left: %v", results[1].Deleted, got)
	}

	script, err := script.Compile(`doc.land = "VN"`, nil)
	if err != nil {
		t.Fatal(err)
	}
	expr, err := filter.Parse(`_foreign(author, land = FR)`)
	if err != nil {
		t.Fatal(err)
	}
	b.apply(books, b.payload(`{"id":5,"author":"ann"}`))
	results = b.apply(books, EditDocuments{Filter: expr, Function: script})
	if docs := documents(t, books.current.Load()); results[0].Edited != 2 || docs["1"] != `{"id":1,"author":"ann","next":2,"land":"VN"}` || docs["4"] != `{"id":4}` {
		t.Errorf("%d edited: %v", results[0].Edited, docs)
	}

	for expr, code := range map[string]apierr.Code{`"_foreign(lost, x = 1)"`: "index_not_found", `"_foreign(author, x = 1)"`: "invalid_document_filter"} {
		if r := b.try(books, DeleteByFilter{[]byte(expr)}); r[0].Err == nil || apierr.From(r[0].Err).Code != code {
			t.Errorf("%s: %v, want %s", expr, r[0].Err, code)
		}
	}
}

// TestForeignFiltersWaitForAnIndexThatCannotBeOpened filters by an index whose segments cannot be opened now. The batch must end without
// results, so that it can run later.
func TestForeignFiltersWaitForAnIndexThatCannotBeOpened(t *testing.T) {
	set, err := script.Compile(`doc.seen = 1`, nil)
	if err != nil {
		t.Fatal(err)
	}
	expr, err := filter.Parse(`_foreign(author, land = FR)`)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := settings.ParseUpdate([]byte(`{"filterableAttributes":["author"],"foreignKeys":[{"fieldName":"author","foreignIndexUid":"authors"}]}`),
		settings.Features{ForeignKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, refusal := range []struct {
		errno syscall.Errno
		code  apierr.Code
	}{{syscall.EMFILE, "too_many_open_files"}, {syscall.ENOMEM, "too_many_open_files"}, {syscall.EIO, "io_error"}, {syscall.ENOENT, "invalid_store_file"}} {
		for name, op := range map[string]Op{"deletion": DeleteByFilter{[]byte(`"_foreign(author, land = FR)"`)}, "edit": EditDocuments{Filter: expr, Function: set}} {
			t.Run(refusal.errno.Error()+"/"+name, func(t *testing.T) {
				var refuses atomic.Bool
				b := newBed(t, vfs.Hook(vfs.NewMem(), func(op vfs.Op) error {
					if refuses.Load() && op.Kind == vfs.OpOpen && strings.HasSuffix(op.Name, segSuffix) && strings.Contains(op.Name, "/"+directoryName(0)+"/") {
						return refusal.errno
					}
					return nil
				}), Options{keptLoaded: 1})
				defer b.close()
				defer refuses.Store(false)
				authors, books := b.create("authors"), b.create("books")
				b.apply(authors, update(t, `{"filterableAttributes":["land"]}`), b.payload(`{"id":"ann","land":"FR"}`))
				b.apply(books, UpdateSettings{foreign}, b.payload(`{"id":1,"author":"ann"}`, `{"id":2,"author":"bo"}`))
				b.reopen()
				b.batch++
				refuses.Store(true)
				waits := func() {
					t.Helper()
					results, err := b.c.Get("books").Apply(t.Context(), b.batch, []Op{op}, nil)
					if results != nil || err == nil || apierr.From(err).Code != refusal.code {
						t.Fatalf("%v, %v, want no results and %s", results, err, refusal.code)
					}
				}
				waits()
				if authors := b.c.Get("authors"); authors != nil && refusal.code == "invalid_store_file" {
					b.c.quarantineOpen(authors, errors.New("its segments cannot be read"))
				}
				waits()
				refuses.Store(false)
				b.reopen()
				results, err := b.c.Get("books").Apply(t.Context(), b.batch, []Op{op}, nil)
				if err != nil || results[0].Err != nil || results[0].Deleted+results[0].Edited != 1 {
					t.Errorf("%+v, %v, want one document", results, err)
				}
			})
		}
	}
}
