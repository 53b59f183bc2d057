package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"svc/internal/apierr"
	"svc/internal/index/mergeplan"
	"svc/internal/vfs"
)

// small makes each document a segment of its own, and plans a merge at four segments.
func (b *bed) small() {
	b.c.builderBytes = 1
	b.c.importPlan = mergeplan.Options{Floor: 1 << 20, MinRun: 4, MinLargeRun: 4, Large: 1, Part: 2, MaxBytes: 1 << 40, DeadShare: 1}
}

// segmentFiles returns the segment files on the disk.
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

// TestAnImportMergesItsSegments checks that an import with any documents merges its segments, and leaves few segments and no other file.
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
		b.apply(ix, update(t, `{"stopWords":["and"]}`)) // rewrites all segments
		b.checkFresh(ix)
		b.close()
	}
}

// TestAnImportOfVectorsMergesNothing checks that segments with vectors are not merged during an import.
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

// TestAFailedImportLeavesNoSegment fails or cancels an import at each file operation: documents and segments must stay as they were.
func TestAFailedImportLeavesNoSegment(t *testing.T) {
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
			if err == nil { // an operation whose failure is ignored, such as the end of a read
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

// quota is a disk with room for a number of bytes in segments.
type quota struct {
	sync.Mutex
	room, used, most int
	sizes            map[string]int
	lack             error // error of a write without room
}

func (q *quota) hook(o vfs.Op) error {
	q.Lock()
	defer q.Unlock()
	switch o.Kind {
	case vfs.OpCreate, vfs.OpRemove:
		q.used -= q.sizes[o.Name]
		delete(q.sizes, o.Name)
	case vfs.OpWrite:
		if !strings.HasSuffix(o.Name, segSuffix) {
			break
		}
		if q.used+o.Bytes > q.room {
			return q.lack
		}
		q.sizes[o.Name] += o.Bytes
		q.used += o.Bytes
		q.most = max(q.most, q.used)
	}
	return nil
}

// TestAnImportThatFitsWithoutMergesSucceeds checks that an import succeeds if there is room for its documents but not for merges, and
// leaves only its segments.
func TestAnImportThatFitsWithoutMergesSucceeds(t *testing.T) {
	docs := make([]string, 30)
	text := make([]byte, 10_000)
	noise := rand.NewChaCha8([32]byte{1})
	for i := range docs {
		_, _ = noise.Read(text) // never fails
		docs[i] = fmt.Sprintf(`{"id":%d,"t":"%x"}`, i, text)
	}
	lacks := []error{syscall.ENOSPC, noFiles[0], noMemory[0]}
	run := func(merges bool, room int, lack error) (segments, most int, err error) {
		q := &quota{room: room, sizes: map[string]int{}, lack: lack}
		b := newBed(t, vfs.Hook(vfs.NewMem(), q.hook), Options{MaxIndexingMemory: 1, MaxIndexingThreads: 1})
		defer b.close()
		b.small()
		if !merges {
			b.c.importPlan.MinRun, b.c.importPlan.MinLargeRun = 1000, 1000
		}
		ix := b.create("a")
		b.batch++
		if _, err = ix.Apply(t.Context(), b.batch, []Op{b.payload(docs...)}, nil); err == nil {
			b.checkFresh(ix)
		}
		segments = ix.Outline().size.Segments
		if files := segmentFiles(t, b.fs); len(files) != segments {
			t.Errorf("room for %d bytes: files %v of %d segments", room, files, segments)
		}
		return segments, q.most, err
	}
	all, least, err := run(false, math.MaxInt, nil)
	if err != nil {
		t.Fatal(err)
	}
	few, most, err := run(true, math.MaxInt, nil)
	if err != nil || few >= all || most <= least {
		t.Fatalf("%d segments of %d bytes, with merges %d of %d: %v", all, least, few, most, err)
	}
	for _, lack := range lacks {
		kept := 0
		for room := least; room < most; room += (most - least) / 10 {
			segments, _, err := run(true, room, lack)
			if err != nil {
				t.Errorf("room for %d bytes, needed %d: %v", room, least, err)
			}
			if segments > few {
				kept++
			}
		}
		if kept == 0 {
			t.Error("there was room for all merges")
		}
		if _, _, err := run(true, least/2, lack); !errors.Is(err, lack) {
			t.Errorf("half of the room needed: %v", err)
		}
	}
}

// TestMergesMakeWayForDocuments checks that documents which find no room while a merge holds some are written once after the
// merge has made way.
func TestMergesMakeWayForDocuments(t *testing.T) {
	var mu sync.Mutex
	merges, held := false, false // a merge began; it holds room
	refused := map[string]bool{} // files that found no room
	refusal := make(chan struct{})
	b := newBed(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
		if !strings.HasSuffix(o.Name, segSuffix) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case o.Kind == vfs.OpCreate && !merges && bytes.Contains(debug.Stack(), []byte("segment.Merge(")):
			merges, held = true, true
			mu.Unlock()
			<-refusal // more documents follow, which the other worker takes
			mu.Lock()
		case o.Kind == vfs.OpCreate && held:
			if len(refused) == 0 {
				close(refusal)
			}
			refused[o.Name] = true
			return syscall.ENOSPC
		case o.Kind == vfs.OpRemove && !refused[o.Name]: // output or input of the merge
			held = false
		}
		return nil
	}), Options{MaxIndexingMemory: 1, MaxIndexingThreads: 2})
	defer b.close()
	b.small()
	ix := b.create("a")
	b.apply(ix, b.payload(manyDocuments(500)...))
	if !merges || len(refused) == 0 {
		t.Errorf("merged: %v, no room for %v", merges, refused)
	}
	b.checkFresh(ix)
}

// TestDamageDuringAnImportIsNotTheIndexs damages a segment of an import that no manifest names yet. The index must not count as damaged,
// and the same batch must succeed once the disk works.
func TestDamageDuringAnImportIsNotTheIndexs(t *testing.T) {
	t.Chdir(t.TempDir())
	var log bytes.Buffer
	var dir string
	damages := false
	b := newBed(t, vfs.Hook(vfs.OS, func(o vfs.Op) error {
		if damages && o.Kind == vfs.OpOpen && o.Name == path.Join(dir, segmentName(4)) { // the fourth segment; a merge follows
			for _, number := range []uint64{1, 2, 3} {
				flipSection(t, path.Join(dir, segmentName(number)), "docs", 0.5)
			}
		}
		return nil
	}), Options{MaxIndexingMemory: 1, MaxIndexingThreads: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer b.close()
	b.small()
	ix := b.create("a")
	dir = ix.dir
	b.apply(ix, b.payload(`{"id":"before"}`)) // segment 0
	if next := ix.nextSegment.Load(); next != 1 {
		t.Fatalf("the next segment is %d", next)
	}
	payload := b.payload(manyDocuments(14)...)
	b.batch++
	damages = true
	_, err := ix.Apply(t.Context(), b.batch, []Op{payload}, nil)
	damages = false
	if e := apierr.From(err); err == nil || e.Code != "io_error" || apierr.IsCorruption(err) || strings.Contains(e.Message, "delete") {
		t.Errorf("error %v", err)
	}
	if aside, segments := b.c.Damages(); len(aside)+len(segments) > 0 || b.c.met.Load() || log.Len() > 0 {
		t.Errorf("quarantined %v, damaged segments %v, logged %s", aside, segments, &log)
	}
	if files := segmentFiles(t, b.fs); len(files) != 1 {
		t.Errorf("files %v", files)
	}
	b.apply(ix, payload)
	b.checkFresh(ix)
}

// TestDamageOfPendingDocumentsIsNoResult truncates the file with the documents that a deletion in the same batch has to see. The batch must
// fail as a whole, so that it is tried again. It must not store an error as the result of the deletion.
func TestDamageOfPendingDocumentsIsNoResult(t *testing.T) {
	t.Chdir(t.TempDir())
	damages, damaged := false, 0
	b := newBed(t, vfs.Hook(vfs.OS, func(o vfs.Op) error {
		if damages && damaged == 0 && o.Kind == vfs.OpOpen && strings.HasSuffix(o.Name, segSuffix) {
			damaged++
			return os.Truncate(o.Name, 1)
		}
		return nil
	}), Options{})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"filterableAttributes":["id"]}`))
	ops := []Op{b.payload(`{"id":1}`, `{"id":2}`), DeleteByFilter{Filter: []byte(`"id = 1"`)}}
	b.batch++
	damages = true
	results, err := ix.Apply(t.Context(), b.batch, ops, nil)
	damages = false
	if damaged != 1 || err == nil || apierr.From(err).Code != "io_error" {
		t.Fatalf("%d files were damaged: %+v, %v", damaged, results, err)
	}
	b.apply(ix, ops...)
	v := held(ix.View())
	defer v.Release()
	if n := v.Documents(); n != 1 {
		t.Errorf("%d documents, want 1", n)
	}
	b.checkFresh(ix)
}

// TestDamagedSegmentsAreNotCommitted checks that damage found by reading ahead keeps a new segment from being committed. After the commit,
// the damage is reported.
func TestDamagedSegmentsAreNotCommitted(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, b.payload(`{"id":1}`), b.payload(`{"id":2}`))
	base := held(ix.View())
	defer base.Release()
	for _, early := range []bool{true, false} {
		f, err := ix.mergeFiles(t.Context(), base, base.Segments, nil, nil, unthrottled)
		if err != nil {
			t.Fatal(err)
		}
		d := &apierr.Corruption{File: f.path(), Section: "test", Offset: 7}
		if early {
			f.damaged(d)
		}
		err = ix.commit(&change{base: base, add: []*file{f}, merge: base.files})
		if early != (err != nil) || err != nil && apierr.From(err).Code != "io_error" {
			t.Errorf("found before the commit: %v: %v", early, err)
		}
		if _, segments := b.c.Damages(); len(segments) > 0 {
			t.Errorf("found before the commit: %v: reported %v", early, segments)
		}
		if !early {
			f.damaged(d)
		}
	}
	if _, segments := b.c.Damages(); segments["a"] != 1 {
		t.Errorf("after the commit the damage is not reported: %v", segments)
	}
}

// TestPanicsOfWriters checks that a panic of an indexing goroutine fails its batch. The log has the stack; the error, which tasks
// store, does not.
func TestPanicsOfWriters(t *testing.T) {
	var log bytes.Buffer
	panics := false
	b := newBed(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
		if panics && o.Kind == vfs.OpCreate && strings.HasSuffix(o.Name, ".seg") {
			panic("a bad disk")
		}
		return nil
	}), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer b.close()
	ix := b.create("a")
	payload := b.payload(`{"id":1}`)
	b.batch++
	panics = true
	_, err := ix.Apply(t.Context(), b.batch, []Op{payload}, nil)
	panics = false
	if err == nil || !strings.HasSuffix(err.Error(), "cannot index: panic: a bad disk") {
		t.Errorf("error %v", err)
	}
	if text := log.String(); !strings.Contains(text, "a bad disk") || !strings.Contains(text, "written_test.go") {
		t.Errorf("logged %s", text)
	}
	b.apply(ix, payload)
	b.checkFresh(ix)
}
