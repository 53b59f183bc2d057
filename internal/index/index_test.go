package index

import (
	"context"
	"errors"
	"maps"
	"testing"

	"svc/internal/vfs"
	"svc/segment"
)

func TestDocumentsAreAddedReplacedMergedAndDeleted(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("books")
	r := b.apply(ix, b.payload(`{"id":1,"t":"one two"}`, `{"id":2,"t":"two"}`, `{"id":1,"t":"again"}`))
	if r[0].Indexed != 2 {
		t.Errorf("indexed %d, want the distinct ids: 2", r[0].Indexed)
	}
	wantDocuments(t, ix, map[string]string{"1": `{"id":1,"t":"again"}`, "2": `{"id":2,"t":"two"}`})
	b.apply(ix, b.merge(`{"id":2,"n":5}`, `{"id":3,"n":6}`, `{"id":2,"t":"second"}`))
	wantDocuments(t, ix, map[string]string{"1": `{"id":1,"t":"again"}`, "2": `{"id":2,"t":"second","n":5}`, "3": `{"id":3,"n":6}`})
	r = b.apply(ix, DeleteDocuments{[]string{"2", "77", "2"}}, DeleteDocuments{[]string{"2", "1"}})
	if r[0].Deleted != 1 || r[1].Deleted != 1 {
		t.Errorf("deleted %d and %d, want 1 and 1", r[0].Deleted, r[1].Deleted)
	}
	b.checkFresh(ix)
	b.reopen()
	ix = b.c.Get("books")
	wantDocuments(t, ix, map[string]string{"3": `{"id":3,"n":6}`})
	if r := b.apply(ix, Clear{}, Clear{}); r[0].Deleted != 1 || r[1].Deleted != 0 {
		t.Errorf("cleared %d and %d, want 1 and 0", r[0].Deleted, r[1].Deleted)
	}
	if got := list(t, b.fs, catalogDir); len(got) != 2 {
		t.Errorf("files %v, want CATALOG and MANIFEST alone", got)
	}
	v := held(ix.View())
	defer v.Release()
	if v.PrimaryKey != "id" {
		t.Errorf("primary key %q", v.PrimaryKey)
	}
}

func TestOperationsOfABatchRunInOrder(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("q")
	b.apply(ix, b.payload(`{"id":1,"v":"first"}`, `{"id":2,"v":"first"}`))
	r := b.apply(ix,
		b.payload(`{"id":1,"v":"second","n":1}`),
		b.merge(`{"id":1,"m":2}`, `{"id":2,"m":2}`),
		DeleteDocuments{[]string{"2"}},
		b.merge(`{"id":2,"after":true}`),
		b.payload(`{"id":3,"v":"third"}`),
		b.merge(`{"id":3,"m":3}`),
		b.payload(`{"id":4}`), b.payload(`{"id":5}`), DeleteDocuments{[]string{"4", "9"}}, b.payload(`{"id":6}`))
	if r[2].Deleted != 1 || r[8].Deleted != 1 {
		t.Errorf("deleted %d and %d, want 1 and 1", r[2].Deleted, r[8].Deleted)
	}
	wantDocuments(t, ix, map[string]string{
		"1": `{"id":1,"v":"second","n":1,"m":2}`, "2": `{"id":2,"after":true}`,
		"3": `{"id":3,"v":"third","m":3}`, "5": `{"id":5}`, "6": `{"id":6}`})
	b.checkFresh(ix)
}

// TestDocumentNumbersFillGapsAndStay checks that new documents get the lowest free numbers, and that an update keeps its number.
func TestDocumentNumbersFillGapsAndStay(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("n")
	want := func(m map[string]segment.DocID) {
		t.Helper()
		v := held(ix.View())
		defer v.Release()
		if got := numbers(v); !maps.Equal(got, m) {
			t.Fatalf("numbers %v, want %v", got, m)
		}
	}
	b.apply(ix, b.payload(`{"id":5}`, `{"id":3}`, `{"id":9}`, `{"id":1}`, `{"id":7}`))
	b.apply(ix, b.payload(`{"id":9,"x":1}`, `{"id":2}`))
	b.apply(ix, DeleteDocuments{[]string{"3"}})
	b.apply(ix, b.payload(`{"id":3}`))
	want(map[string]segment.DocID{"5": 0, "3": 1, "9": 2, "1": 3, "7": 4, "2": 5})
	b.apply(ix, DeleteDocuments{[]string{"2", "5"}})
	b.reopen()
	ix = b.c.Get("n")
	b.apply(ix, b.payload(`{"id":20}`, `{"id":21}`, `{"id":22}`))
	want(map[string]segment.DocID{"20": 0, "3": 1, "9": 2, "1": 3, "7": 4, "21": 5, "22": 6})
	// A document deleted and added again in one batch keeps its number. A number freed in the batch is free only for the next one.
	b.apply(ix, DeleteDocuments{[]string{"9", "3"}}, b.payload(`{"id":9}`, `{"id":30}`))
	want(map[string]segment.DocID{"20": 0, "9": 2, "1": 3, "7": 4, "21": 5, "22": 6, "30": 7})
	b.apply(ix, b.payload(`{"id":31}`, `{"id":32}`))
	want(map[string]segment.DocID{"20": 0, "31": 1, "9": 2, "1": 3, "7": 4, "21": 5, "22": 6, "30": 7, "32": 8})
	b.apply(ix, Clear{})
	b.apply(ix, b.payload(`{"id":40}`, `{"id":41}`))
	want(map[string]segment.DocID{"40": 0, "41": 1})
}

func TestABadDocumentFailsItsPayloadAlone(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("p")
	with := func(key string, a AddDocuments) AddDocuments { a.PrimaryKey = key; return a }
	r := b.try(ix,
		b.payload(`{"a":1}`),
		b.payload(`{"id":1}`, `{"id":"no way"}`),
		b.payload(`{"id":1}`),
		b.payload(`{"id":2}`, `{"name":"nobody"}`),
		with("code", b.payload(`{"code":1}`)),
		b.payload(`{"id":3}`))
	wantCode(t, r[0].Err, "index_primary_key_no_candidate_found")
	wantCode(t, r[1].Err, "invalid_document_id")
	wantCode(t, r[3].Err, "missing_document_id")
	wantCode(t, r[4].Err, "index_primary_key_already_exists")
	if r[2].Err != nil || r[5].Err != nil {
		t.Errorf("good payloads failed: %v, %v", r[2].Err, r[5].Err)
	}
	wantDocuments(t, ix, map[string]string{"1": `{"id":1}`, "3": `{"id":3}`})

	// A failed payload does not set the primary key; an empty one does.
	ix = b.create("r")
	b.try(ix, with("code", b.payload(`{"code":"a b"}`)))
	v := held(ix.View())
	if v.PrimaryKey != "" {
		t.Errorf("a failed payload set the primary key %q", v.PrimaryKey)
	}
	v.Release()
	b.apply(ix, with("code", b.payload()))
	v = held(ix.View())
	defer v.Release()
	if v.PrimaryKey != "code" {
		t.Errorf("an empty payload set the primary key %q, want code", v.PrimaryKey)
	}
}

func TestSkipCreationCountsButDoesNotCreate(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("k")
	skip := func(a AddDocuments) AddDocuments { a.SkipCreation = true; return a }
	b.apply(ix, b.payload(`{"id":1,"a":1}`, `{"id":2,"a":2}`))
	r := b.apply(ix, skip(b.payload(`{"id":1,"b":1}`, `{"id":3,"b":3}`)), skip(b.merge(`{"id":2,"b":2}`, `{"id":4,"b":4}`)),
		skip(b.payload(`{"id":7,"a":1}`, `{"id":7,"b":1}`)))
	if r[0].Indexed != 2 || r[1].Indexed != 2 || r[2].Indexed != 1 {
		t.Errorf("indexed %v", r)
	}
	wantDocuments(t, ix, map[string]string{"1": `{"id":1,"b":1}`, "2": `{"id":2,"a":2,"b":2}`})
	// Skipped ids get no numbers.
	b.apply(ix, b.payload(`{"id":8}`))
	v := held(ix.View())
	defer v.Release()
	if n := numbers(v)["8"]; n != 2 {
		t.Errorf("number %d, want 2", n)
	}
}

func TestPayloadsBeforeAClearAreNotRead(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("c")
	b.apply(ix, b.payload(`{"id":1}`, `{"id":2}`))
	r := b.apply(ix, AddDocuments{Payload: "payloads/none", Documents: 7}, DeleteDocuments{[]string{"1"}}, Clear{}, DeleteDocuments{[]string{"2"}}, Clear{})
	for i, want := range []OpResult{{Indexed: 7}, {Deleted: 1}, {Deleted: 2}, {}, {}} {
		if r[i] != want {
			t.Errorf("result %d is %+v, want %+v", i, r[i], want)
		}
	}
	wantDocuments(t, ix, map[string]string{})
}

func TestAnAppliedBatchIsRecognized(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	ops := []Op{b.payload(`{"id":1}`), b.payload(`{"x":1}`), DeleteDocuments{[]string{"1"}}}
	first := b.try(ix, ops...)
	b.reopen()
	ix = b.c.Get("a")
	again, err := ix.Apply(context.Background(), b.batch, ops, nil)
	if !errors.Is(err, ErrApplied) || len(again) != 3 {
		t.Fatalf("got %v, %v", again, err)
	}
	for i := range first {
		x, y := first[i], again[i]
		if x.Indexed != y.Indexed || x.Deleted != y.Deleted || (x.Err == nil) != (y.Err == nil) {
			t.Errorf("result %d: %+v, then %+v", i, x, y)
		}
	}
	wantCode(t, again[1].Err, "missing_document_id")
	if r, err := ix.Apply(context.Background(), b.batch-1, ops, nil); !errors.Is(err, ErrApplied) || r != nil {
		t.Errorf("an older batch: %v, %v", r, err)
	}
}

func TestACancelledBatchChangesNothing(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("x")
	b.apply(ix, b.payload(`{"id":1}`))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ix.Apply(ctx, b.batch+1, []Op{b.payload(`{"id":2}`)}, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	wantDocuments(t, ix, map[string]string{"1": `{"id":1}`})
	b.apply(ix, b.payload(`{"id":3}`)) // reuses the number of the cancelled batch
	wantDocuments(t, ix, map[string]string{"1": `{"id":1}`, "3": `{"id":3}`})
	if got := list(t, b.fs, catalogDir); len(got) != 4 {
		t.Errorf("files %v, want two segments", got)
	}
}

func TestViewsStayWhileTheyAreHeld(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	ix := b.create("v")
	b.apply(ix, b.payload(`{"id":1,"t":"old"}`))
	old := held(ix.View())
	b.apply(ix, b.payload(`{"id":1,"t":"new"}`), update(t, `{"filterableAttributes":["t"]}`))
	if got := documents(t, old); got["1"] != `{"id":1,"t":"old"}` {
		t.Errorf("the old view shows %v", got)
	}
	if _, err := b.c.Delete("v", 99); err != nil {
		t.Fatal(err)
	}
	if got := documents(t, old); got["1"] != `{"id":1,"t":"old"}` {
		t.Errorf("after the deletion the old view shows %v", got)
	}
	gone := held(ix.View())
	if gone.Documents() != 0 {
		t.Errorf("a deleted index shows %d documents", gone.Documents())
	}
	gone.Release()
	if _, err := ix.Apply(context.Background(), 100, []Op{b.payload(`{"id":1}`)}, nil); err == nil {
		t.Error("a deleted index was written")
	}
	if got := list(t, b.fs, catalogDir); len(got) < 2 {
		t.Errorf("files %v: the held segment was removed", got)
	}
	old.Release()
	if got := list(t, b.fs, catalogDir); len(got) != 1 {
		t.Errorf("files %v, want CATALOG alone", got)
	}
	b.close()
}
