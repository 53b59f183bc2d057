package index

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"svc/internal/document"
	"svc/internal/vfs"
)

// patch writes operations to a payload file.
func (b *bed) patch(operations ...string) PatchDocuments {
	b.t.Helper()
	a := b.payload(operations...)
	return PatchDocuments{Payload: a.Payload, Operations: a.Documents, Contains: true}
}

// codes returns position, id and code of each failure.
func (r *PatchResult) codes() (all []string) {
	for _, f := range r.Failures {
		all = append(all, fmt.Sprint(f.Position, " ", f.ID, " ", f.Code))
	}
	return all
}

func TestPatch(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("p")
	b.apply(ix, update(t, `{"filterableAttributes":["stock","_geo","tag"]}`))
	b.apply(ix, b.payload(`{"id":1,"stock":2}`, `{"id":2,"t":["a"],"_geo":{"lat":1,"lng":1}}`, `{"id":3,"a":{"b":1}}`))
	r := b.apply(ix, b.patch(
		`{"id":1,"increment":{"stock":-1},"filter":"stock > 0"}`,
		`{"id":1,"increment":{"stock":-1},"filter":"stock > 0"}`,
		`{"id":1,"increment":{"stock":-1},"filter":"stock > 0"}`, // none is left
		`{"id":2,"addToSet":{"t":["a","b"]},"unset":["x"]}`,
		`{"id":2,"addToSet":{"t":["a","b"]}}`, // nothing to change
		`{"id":3,"set":{"a.c":2,"z":[1]}}`,
		`{"id":4,"set":{"a":1}}`, // no such document
		`{"id":5,"set":{"a":1},"ifMissing":"create"}`,
		`{"id":5,"increment":{"a":1}}`,
		`{"id":6,"set":{"a":1},"ifMissing":"fail"}`,
		`{"id":7,"set":{"a":1},"ifMissing":"create","filter":"stock > 0"}`,
		`{"set":{"a":1}}`,
		`{"id":"no id","set":{"a":1}}`,
		`{"id":1,"set":{"id":9}}`,
		`{"id":1,"unset":["id"]}`,
		`{"id":1,"set":{"_geo":7}}`,
		`{"id":1,"sett":{"a":1}}`,
		`{"id":1,"set":{"a":1},"filter":"other = 1"}`,
		`{"id":1,"set":{"a":1},"filter":"stock ="}`,
		`{"id":1,"set":{"a":1},"filter":"_vectors EXISTS"}`,
		`{"id":2,"set":{"near":true},"filter":"_geoRadius(1, 1, 10)"}`,
		`{"id":3,"set":{"near":true},"filter":"_geoRadius(1, 1, 10)"}`,
		`{"id":3,"set":{"tag":"new"}}`,
		`{"id":3,"set":{"tag":"newer"},"filter":"tag = new"}`,
	))
	p := r[0].Patched
	if want := []string{"9 6 document_not_found", "11  missing_document_id", "12  invalid_document_id", "13 1 inapplicable_document_operation",
		"14 1 inapplicable_document_operation", "15 1 invalid_document_geo_field", "16 1 invalid_document_operation", "17 1 invalid_document_filter",
		"18 1 invalid_document_filter", "19 1 invalid_document_filter"}; !slices.Equal(p.codes(), want) {
		t.Errorf("failures\n%s\nwant\n%s", strings.Join(p.codes(), "\n"), strings.Join(want, "\n"))
	}
	if p.Changed != 9 || p.Skipped != 5 || p.Failed != 10 {
		t.Errorf("%d changed, %d skipped, %d failed", p.Changed, p.Skipped, p.Failed)
	}
	want := map[string]string{
		"1": `{"id":1,"stock":0}`, "2": `{"id":2,"t":["a","b"],"_geo":{"lat":1,"lng":1},"near":true}`,
		"3": `{"id":3,"a":{"b":1,"c":2},"z":[1],"tag":"newer"}`, "5": `{"id":5,"a":2}`,
	}
	wantDocuments(t, ix, want)
	b.checkFresh(ix)

	// A batch that runs again after a crash returns the same results.
	again, err := ix.Apply(context.Background(), b.batch, []Op{PatchDocuments{}}, nil)
	if !errors.Is(err, ErrApplied) || !reflect.DeepEqual(again[0].Patched, p) {
		t.Errorf("%+v, %v", again, err)
	}
	// After a start, the results come from the manifest.
	b.reopen()
	ix = b.c.Get("p")
	if again, err := ix.Apply(context.Background(), b.batch, []Op{PatchDocuments{}}, nil); !errors.Is(err, ErrApplied) || !reflect.DeepEqual(again[0].Patched, p) {
		t.Errorf("after a start: %+v, %v", again, err)
	}

	// An atomic update changes all documents or none.
	atomic := b.patch(`{"id":1,"set":{"x":1}}`, `{"id":2,"increment":{"t":1}}`, `{"id":9,"set":{"x":1}}`)
	atomic.Atomic = true
	r = b.try(ix, atomic)
	wantCode(t, r[0].Err, "inapplicable_document_operation")
	if !strings.Contains(r[0].Err.Error(), "operation 1:") {
		t.Errorf("no position: %v", r[0].Err)
	}
	wantDocuments(t, ix, want)
	atomic = b.patch(`{"id":1,"set":{"x":1}}`, `{"id":9,"set":{"x":1}}`)
	atomic.Atomic, atomic.IfMissing = true, document.CreateMissing
	b.apply(ix, atomic)
	want["1"], want["9"] = `{"id":1,"stock":0,"x":1}`, `{"id":9,"x":1}`
	wantDocuments(t, ix, want)

	// != knows fields that earlier operations created.
	b.apply(ix, update(t, `{"filterableAttributes":["stock","_geo","tag","brought"]}`))
	r = b.apply(ix, b.patch(`{"id":1,"set":{"w":1},"filter":"brought != 2"}`), b.merge(`{"id":3,"brought":1}`),
		b.patch(`{"id":3,"set":{"w":1},"filter":"brought != 2"}`, `{"id":9,"set":{"w":1},"filter":"brought != 2"}`))
	if r[0].Patched.Skipped != 1 || r[2].Patched.Changed != 2 {
		t.Errorf("%+v, %+v", r[0].Patched, r[2].Patched)
	}
	want["3"], want["9"] = `{"id":3,"a":{"b":1,"c":2},"z":[1],"tag":"newer","brought":1,"w":1}`, `{"id":9,"x":1,"w":1}`
	wantDocuments(t, ix, want)

	// Operations see earlier operations of the batch, and later ones see them.
	b.apply(ix, b.merge(`{"id":9,"y":[1]}`), DeleteDocuments{[]string{"5"}}, b.patch(`{"id":9,"append":{"y":2}}`, `{"id":5,"set":{"x":1}}`), b.merge(`{"id":9,"z":0}`),
		b.patch(`{"id":9,"unset":["x"]}`, `{"id":1,"set":{"stock":7}}`), DeleteByFilter{[]byte(`"stock = 7"`)})
	delete(want, "5")
	delete(want, "1")
	want["9"] = `{"id":9,"w":1,"y":[1,2],"z":0}`
	wantDocuments(t, ix, want)
	b.checkFresh(ix)
	for _, name := range list(t, b.fs, catalogDir) {
		if strings.HasSuffix(name, vfs.TempSuffix) {
			t.Errorf("%s is left", name)
		}
	}
}

// TestPatchFindsThePrimaryKey checks that the first operation which creates a document determines the primary key.
func TestPatchFindsThePrimaryKey(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("p")
	wantCode(t, b.try(ix, b.patch(`{"set":{"a":1}}`))[0].Err, "index_primary_key_no_candidate_found")
	b.apply(ix, b.patch(`{"sku_id":1,"set":{"a":1}}`))
	if v := held(ix.View()); v.PrimaryKey != "" {
		t.Errorf("the primary key is %q although no document was created", v.PrimaryKey)
	} else {
		v.Release()
	}
	b.apply(ix, b.patch(`{"sku_id":1,"set":{"a":1},"ifMissing":"create"}`))
	wantDocuments(t, ix, map[string]string{"1": `{"sku_id":1,"a":1}`})
}

func TestDamagedOperationsChangeNothing(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("p")
	b.apply(ix, b.payload(`{"id":1}`))
	p := b.patch(`{"id":1,"set":{"a":1}}`)
	p.Sum = 1
	wantCode(t, b.try(ix, p)[0].Err, "invalid_store_file")
	p.Payload = "payloads/none"
	wantCode(t, b.try(ix, p)[0].Err, "task_file_not_found")
	wantDocuments(t, ix, map[string]string{"1": `{"id":1}`})
}

// TestManyFailures checks that failures are listed by position, up to the limit of a manifest.
func TestManyFailures(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("p")
	b.apply(ix, b.payload(`{"id":1}`))
	var operations []string
	for i := range 1000 {
		operations = append(operations, fmt.Sprintf(`{"id":%d,"set":{"a":1},"ifMissing":"fail"}`, 2+i%7))
	}
	p := b.apply(ix, b.patch(operations...))[0].Patched
	if p.Failed != 1000 || len(p.Failures) != maxPatchFailures {
		t.Fatalf("%d failed, %d are listed", p.Failed, len(p.Failures))
	}
	for i, f := range p.Failures {
		if f.Position != i {
			t.Fatalf("failure %d has the position %d", i, f.Position)
		}
	}
}

// TestPatchesEmbedOnlyChanges counts the texts that the provider embeds.
func TestPatchesEmbedOnlyChanges(t *testing.T) {
	p := newProvider(t)
	b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool})
	defer b.close()
	ix := b.create("p")
	b.apply(ix, update(t, `{"embedders":{"r":`+p.rest("a", `,"documentTemplate":"{{doc.t}}"`)+`}}`), b.payload(`{"id":1,"t":"one","n":1}`, `{"id":2,"t":"two","n":1}`))
	p.take()
	state := func() map[string]map[string]string {
		v := held(ix.PlainView())
		defer v.Release()
		return vectorState(t, v)
	}
	before := state()
	for _, tt := range []struct {
		operation string
		asked     []string
	}{
		{`{"id":1,"increment":{"n":1}}`, nil},
		{`{"id":2,"set":{"t":"two","other":true}}`, nil},
		{`{"id":1,"set":{"t":"changed"}}`, []string{"changed"}},
		{`{"id":3,"set":{"t":"three"},"ifMissing":"create"}`, []string{"three"}},
		{`{"id":2,"unset":["other"]}`, nil},
	} {
		if r := b.apply(ix, b.patch(tt.operation)); r[0].Patched.Changed != 1 {
			t.Fatalf("%s: %+v", tt.operation, r[0].Patched)
		}
		if asked := p.take(); !slices.Equal(asked, tt.asked) {
			t.Errorf("%s embeds %q, want %q", tt.operation, asked, tt.asked)
		}
		if after := state(); tt.asked == nil != reflect.DeepEqual(before, after) {
			t.Errorf("%s: vectors %v, before %v", tt.operation, after, before)
		} else {
			before = after
		}
	}
}

// TestPatchesAgreeWithAModel runs random updates beside additions and deletions, with documents in many segments, restarts and merges.
func TestPatchesAgreeWithAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 2})
	b.c.builderBytes = 1 << 10
	defer func() { b.close() }()
	ix := b.create("p")
	b.apply(ix, update(t, `{"filterableAttributes":["n"]}`))
	model := map[string]map[string]any{}
	encoded := func() map[string]string {
		all := map[string]string{}
		for id, doc := range model {
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			all[id] = string(text)
		}
		return all
	}
	for range 30 {
		var ops []Op
		var expected []*PatchResult
		for range 1 + r.IntN(3) {
			expected = append(expected, nil)
			switch r.IntN(4) {
			case 0:
				id := fmt.Sprint(r.IntN(20))
				ops = append(ops, b.payload(fmt.Sprintf(`{"id":%q,"n":%d}`, id, r.IntN(3))))
				model[id] = nil
				var doc map[string]any
				line, err := vfs.ReadFile(b.fs, ops[len(ops)-1].(AddDocuments).Payload)
				if err == nil {
					err = json.Unmarshal(line, &doc)
				}
				if err != nil {
					t.Fatal(err)
				}
				model[id] = doc
			case 1:
				id := fmt.Sprint(r.IntN(20))
				ops = append(ops, DeleteDocuments{[]string{id}})
				delete(model, id)
			default:
				var lines []string
				want := &PatchResult{}
				for range 1 + r.IntN(12) {
					id := fmt.Sprint(r.IntN(20))
					doc, there := model[id]
					line := map[string]any{"id": id}
					create := r.IntN(3) == 0
					if create {
						line["ifMissing"] = "create"
					}
					filtered := r.IntN(3) == 0
					if filtered {
						line["filter"] = "n >= 2"
					}
					by := float64(r.IntN(3))
					line["increment"] = map[string]any{"n": by}
					text, _ := json.Marshal(line)
					lines = append(lines, string(text))
					if n, _ := doc["n"].(float64); filtered && (!there || n < 2) || !there && !create || there && by == 0 && doc["n"] != nil {
						want.Skipped++
						continue
					}
					want.Changed++
					if !there {
						doc = map[string]any{"id": id}
						model[id] = doc
					}
					n, _ := doc["n"].(float64)
					doc["n"] = n + by
				}
				ops = append(ops, b.patch(lines...))
				expected[len(expected)-1] = want
			}
		}
		for i, result := range b.apply(ix, ops...) {
			if !reflect.DeepEqual(result.Patched, expected[i]) {
				t.Fatalf("operation %d: %+v, want %+v", i, result.Patched, expected[i])
			}
		}
		v := held(ix.View())
		got := documents(t, v)
		v.Release()
		for id, doc := range got {
			var x map[string]any
			if err := json.NewDecoder(bytes.NewReader([]byte(doc))).Decode(&x); err != nil {
				t.Fatal(err)
			}
			text, _ := json.Marshal(x)
			got[id] = string(text)
		}
		if want := encoded(); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
		if r.IntN(4) == 0 {
			b.compact(ix)
			b.reopen()
			b.c.builderBytes = 1 << 10
			ix = b.c.Get("p")
		}
	}
	b.checkFresh(ix)
}
