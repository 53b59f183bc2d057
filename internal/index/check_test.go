package index

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"svc/internal/pace"
	"svc/internal/vfs"
)

// TestPayloadsAreCheckedAlike checks payloads with one goroutine and with several: both must find the same documents and offsets, and the
// same first error.
func TestPayloadsAreCheckedAlike(t *testing.T) {
	defer func(n int) { checkBlock = n }(checkBlock)
	rng := rand.New(rand.NewPCG(rand.Uint64(), 7))
	beds := [2]*bed{newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 1}), newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 4, YieldingThreads: 2})}
	var indexes [2]*Index
	for i, b := range beds {
		defer b.close()
		indexes[i] = b.create("a")
		b.apply(indexes[i], update(t, `{"filterableAttributes":["n"],"sortableAttributes":["_geo"],"embedders":{"m":{"source":"userProvided","dimensions":2}}}`))
	}
	failed := 0
	for round := range 25 {
		checkBlock = 64 + rng.IntN(500)
		var ops [2][]Op
		for range 1 + rng.IntN(2) {
			docs := make([]string, 20+rng.IntN(60))
			for i := range docs {
				docs[i] = fmt.Sprintf(`{"id":%d,"n":%d,"t":"%s","_vectors":{"m":[%d,1]}}`, rng.IntN(150), rng.IntN(5), strings.Repeat("w ", rng.IntN(20)), rng.IntN(9))
			}
			if rng.IntN(3) == 0 {
				for range 1 + rng.IntN(2) {
					at := rng.IntN(len(docs))
					wrong := []string{`{"n":%d}`, `{"id":"no id %d"}`, `{"id":1,"_geo":%d}`, `{"id":1,"_vectors":{"m":[%d]}}`, `{"id":999%d}`}
					docs[at] = fmt.Sprintf(wrong[rng.IntN(len(wrong))], at)
				}
			}
			merge, gone := rng.IntN(2) == 0, fmt.Sprint(rng.IntN(150))
			for i, b := range beds {
				add := b.payload(docs...)
				add.Merge = merge
				ops[i] = append(ops[i], add, DeleteDocuments{[]string{gone}})
			}
		}
		a, b := beds[0].try(indexes[0], ops[0]...), beds[1].try(indexes[1], ops[1]...)
		for i := range a {
			if a[i].Err != nil {
				failed++
			}
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("round %d: one goroutine: %+v\nseveral: %+v", round, a, b)
		}
	}
	if failed == 0 {
		t.Error("no payload was refused")
	}
	var found [2]string
	for i := range beds {
		v := held(indexes[i].View())
		defer v.Release()
		found[i] = dump(t, v)
	}
	if found[0] != found[1] {
		t.Errorf("the indexes differ:\n%s", firstDifference(found[0], found[1]))
	}
}

// TestTheLastThreadsYield checks that the last threads yield to searches, even in a batch that does not.
func TestTheLastThreadsYield(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 5, YieldingThreads: 2})
	defer b.close()
	w := &writer{b: &batch{ix: b.create("a")}, beside: new(pace.Worker)}
	for i := range 5 {
		if p, polite := w.paceOf(i); polite != (i >= 3) || (p != nil) != polite {
			t.Errorf("thread %d yields: %v", i, polite)
		}
	}
}

// TestTheLastThreadsStandAside checks that during searches the last threads leave documents to the others, and that the batch
// ends all the same.
func TestTheLastThreadsStandAside(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 3, YieldingThreads: 2})
	defer b.close()
	ix := b.create("a")
	docs := make([]string, 3000)
	for i := range docs {
		docs[i] = fmt.Sprintf(`{"id":%d,"t":"some words %d"}`, i, i)
	}
	searches := b.c.Searches()
	searches.Begin()
	defer searches.End()
	b.apply(ix, b.payload(docs...))
	v := held(ix.View())
	defer v.Release()
	if n := len(v.Segments); n != 1 || v.Documents() != len(docs) {
		t.Errorf("%d segments with %d documents", n, v.Documents())
	}
}
