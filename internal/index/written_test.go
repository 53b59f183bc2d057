package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"svc/internal/index/mergeplan"
	"svc/internal/vfs"
)

// small has each document written to a segment of its own, of which four are two too many.
func (b *bed) small() {
	b.c.builderBytes = 1
	b.c.importPlan = mergeplan.Options{Floor: 1 << 20, MinRun: 4, MinLargeRun: 4, Large: 1, Part: 2, MaxBytes: 1 << 40, DeadShare: 1}
}

// segmentFiles returns the files of segments on the disk.
func segmentFiles(t *testing.T, fsys vfs.FS) []string {
	return slices.DeleteFunc(list(t, fsys, catalogDir), func(name string) bool { return !strings.HasSuffix(name, ".seg") })
}

func manyDocuments(n int) []string {
	docs := make([]string, n)
	for i := range docs {
		docs[i] = fmt.Sprintf(`{"id":%d,"t":"word%d and %d","n":%d,"f%d":true}`, i, i%7, i, i%5, i%11)
	}
	return docs
}

// An import merges what it writes, whatever its documents bring, and leaves few segments, and no file but theirs.
func TestAnImportMergesItsSegments(t *testing.T) {
	for _, threads := range []int{1, 3} {
		b := newBed(t, vfs.NewMem(), Options{MaxIndexingMemory: 1, MaxIndexingThreads: threads})
		b.small()
		ix := b.create("a")
		b.apply(ix, update(t, `{"filterableAttributes":["n","f*"],"sortableAttributes":["t"]}`))
		b.apply(ix, b.payload(manyDocuments(500)...))
		v := held(ix.View())
		n := len(v.files)
		v.Release()
		if most := 4 + threads; n > most {
			t.Errorf("%d threads: %d segments, want %d at most", threads, n, most)
		}
		if files := segmentFiles(t, b.fs); len(files) != n {
			t.Errorf("%d threads: files %v of %d segments", threads, files, n)
		}
		b.checkFresh(ix)
		b.apply(ix, b.merge(manyDocuments(300)...), DeleteDocuments{[]string{"7", "400"}})
		b.checkFresh(ix)
		b.apply(ix, update(t, `{"stopWords":["and"]}`)) // all is written again
		b.checkFresh(ix)
		b.close()
	}
}

// What has vectors is not merged while it is written.
func TestAnImportOfVectorsMergesNothing(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingMemory: 1})
	defer b.close()
	b.small()
	ix := b.create("a")
	b.apply(ix, update(t, `{"embedders":{"m":{"source":"userProvided","dimensions":2}}}`))
	docs := make([]string, 20)
	for i := range docs {
		docs[i] = fmt.Sprintf(`{"id":%d,"_vectors":{"m":[%d,1]}}`, i, i)
	}
	b.apply(ix, b.payload(docs...))
	if n := ix.Outline().size.Segments; n != len(docs) {
		t.Errorf("%d segments of %d documents", n, len(docs))
	}
}

// An import that fails or is cancelled, at any operation on files, leaves the documents and the segments as they were.
func TestAnImportThatFailsLeavesNoSegment(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		left, running := 0, false
		ctx, cancel := context.WithCancel(t.Context())
		b := newBed(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if !running || o.Kind == vfs.OpRemove {
				return nil
			}
			if left--; left == 0 {
				if cancels {
					cancel()
					return nil
				}
				return errors.New("no room")
			}
			return nil
		}), Options{MaxIndexingMemory: 1})
		b.small()
		ix := b.create("a")
		b.apply(ix, b.payload(`{"id":"before"}`))
		payload := b.payload(manyDocuments(14)...)
		failed := 0
		for at := 1; ; at++ {
			left, running = at, true
			b.batch++
			_, err := ix.Apply(ctx, b.batch, []Op{payload}, nil)
			running = false
			if cancels && ctx.Err() != nil {
				ctx, cancel = context.WithCancel(t.Context())
			}
			if err == nil && left > 0 {
				break
			}
			if err == nil { // it was an operation that may fail, as the end of reading
				b.apply(ix, Clear{}, b.payload(`{"id":"before"}`))
				continue
			}
			failed++
			if err := b.c.Settle(); err != nil {
				t.Fatal(err)
			}
			v := held(ix.View())
			if got := documents(t, v); !maps.Equal(got, map[string]string{"before": `{"id":"before"}`}) {
				t.Fatalf("after a failure of operation %d: %v", at, got)
			}
			if files := segmentFiles(t, b.fs); len(files) != len(v.files) {
				t.Fatalf("after a failure of operation %d: files %v of %d segments", at, files, len(v.files))
			}
			v.Release()
		}
		if failed < 40 {
			t.Errorf("cancelled: %v: the import failed %d times", cancels, failed)
		}
		b.checkFresh(ix)
		b.close()
		cancel()
	}
}
