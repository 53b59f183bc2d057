package index

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// manyIndexes creates n indexes and reopens them. Each has two documents in two segments, one of which has a deleted row.
func manyIndexes(t *testing.T, fsys vfs.FS, n int, o Options) *bed {
	t.Helper()
	b := newBed(t, fsys, o)
	for i := range n {
		ix := b.create(fmt.Sprint("i", i))
		b.apply(ix, b.payload(fmt.Sprintf(`{"id":1,"n":%d}`, i), `{"id":2,"n":2,"m":3}`, `{"id":3}`))
		b.apply(ix, b.payload(`{"id":4,"late":true}`), DeleteDocuments{[]string{"3", "1"}})
	}
	b.reopen()
	return b
}

// loadedUIDs returns the indexes whose segments are open.
func loadedUIDs(c *Catalog) []string {
	var uids []string
	for _, ix := range c.loaded.byUse() {
		uids = append(uids, ix.UID())
	}
	slices.Sort(uids)
	return uids
}

// TestManyIndexesAreOpenedOnDemand checks that an index is opened only when its segments are needed. Lists of indexes and statistics do
// not need them.
func TestManyIndexesAreOpenedOnDemand(t *testing.T) {
	b := manyIndexes(t, vfs.NewMem(), 5, Options{keptLoaded: 3})
	defer func() { b.close() }()
	before := mapped.Count()
	if l := loadedUIDs(b.c); len(l) > 0 {
		t.Fatalf("%v are open after the start", l)
	}
	got := map[string]Counts{}
	for _, uid := range b.c.UIDs() {
		ix := b.c.Get(uid)
		c, err := ix.Counts()
		if err != nil {
			t.Fatal(err)
		}
		got[uid] = c
		if o := ix.Outline(); o.UID != uid || o.PrimaryKey != "id" || o.CreatedAt.IsZero() || o.Fields.Len() != 4 || o.Settings == nil {
			t.Errorf("outline %+v", o)
		}
	}
	if _, used := b.c.DiskBytes(); used == 0 {
		t.Error("the used size is 0")
	}
	b.c.Batches()
	b.c.Damages()
	if err := b.c.Settle(); err != nil {
		t.Fatal(err)
	}
	if l := loadedUIDs(b.c); len(l) > 0 || mapped.Count() != before {
		t.Fatalf("%v were opened for statistics", l)
	}
	want := map[string]int{"id": 2, "n": 1, "m": 1, "late": 1}
	for i := range 5 {
		uid := fmt.Sprint("i", i)
		ix := b.c.Get(uid)
		wantDocuments(t, ix, map[string]string{"2": `{"id":2,"n":2,"m":3}`, "4": `{"id":4,"late":true}`})
		v := held(ix.View())
		b.checkCounts(ix, v)
		v.Release()
		if c, _ := ix.Counts(); !reflect.DeepEqual(c, got[uid]) || !maps.Equal(c.FieldDistribution, want) || c.DeletedRows != 2 || c.Segments != 2 {
			t.Errorf("statistics %+v, but %+v while the index was closed", c, got[uid])
		}
		if l := loadedUIDs(b.c); len(l) != i+1 {
			t.Errorf("%v are open", l)
		}
	}
}

// TestSizesOfClosedIndexes checks that the directory of a closed index is read once for its size, and that the size is right
// after changes.
func TestSizesOfClosedIndexes(t *testing.T) {
	fsys := vfs.NewMem()
	var looks atomic.Int64
	b := manyIndexes(t, vfs.Hook(fsys, func(op vfs.Op) error {
		if op.Kind == vfs.OpStat || op.Kind == vfs.OpList && op.Name != catalogDir {
			looks.Add(1)
		}
		return nil
	}), 4, Options{keptLoaded: 4})
	defer func() { b.close() }()
	size := func(most int64) {
		t.Helper()
		want := int64(0)
		names, err := fsys.List(catalogDir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			at := path.Join(catalogDir, name)
			if info, err := fsys.Stat(at); err == nil && !info.IsDir() {
				want += info.Size()
			} else {
				want += fileBytes(fsys, at)
			}
		}
		looks.Store(0)
		if total, _ := b.c.DiskBytes(); total != want || looks.Load() > most {
			t.Errorf("%d bytes after reading %d directories, want %d after %d", total, looks.Load(), want, most)
		}
	}
	evictAll := func() {
		for _, ix := range b.c.all() {
			ix.evict()
		}
	}
	evictAll()
	size(math.MaxInt64)
	size(2) // the catalog, and the file beside it
	b.apply(b.c.Get("i1"), b.payload(`{"id":5}`, `{"id":6}`))
	size(10) // of one index that is open
	evictAll()
	size(10)
	size(2)
	if err := b.c.Swap([]Pair{{A: "i1", B: "i2"}}, 90); err != nil {
		t.Fatal(err)
	}
	size(20)
	size(2)
}

// TestSizeIncludesDelayedRemovals checks that a file counts until its delayed removal is done, even if the index is closed in between.
func TestSizeIncludesDelayedRemovals(t *testing.T) {
	h := &putsOff{FS: vfs.NewMem()}
	b := manyIndexes(t, h, 1, Options{keptLoaded: 1})
	defer func() { b.close() }()
	ix := b.c.Get("i0")
	dir := ix.dir
	h.hold = true
	b.apply(ix, DeleteDocuments{[]string{"2", "4"}})
	if !ix.evict() || len(h.held) == 0 {
		t.Fatalf("%d removals are delayed", len(h.held))
	}
	held := ix.fileBytes()
	if want := fileBytes(h, dir); held != want {
		t.Errorf("%d bytes, want %d", held, want)
	}
	h.hold = false
	for _, name := range h.held {
		if err := h.FS.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := ix.fileBytes(), fileBytes(h, dir); got != want || got >= held {
		t.Errorf("%d bytes, want %d, with the removed files %d", got, want, held)
	}
	if ix.current.Load().resting.Load() == 0 {
		t.Error("the size is not kept")
	}
}

// putsOff is a file system that delays removals while hold is set.
type putsOff struct {
	vfs.FS
	hold bool
	held []string
}

func (p *putsOff) Remove(name string) error {
	if _, err := p.FS.Stat(name); p.hold && err == nil {
		p.held = append(p.held, name)
		return nil
	}
	return p.FS.Remove(name)
}

// TestManifestsWithoutCounts reads manifests of an earlier svc, which have no counts: the segments are opened once to count.
func TestManifestsWithoutCounts(t *testing.T) {
	fsys := vfs.NewMem()
	b := manyIndexes(t, fsys, 2, Options{keptLoaded: 1})
	defer func() { b.close() }()
	want, err := b.c.Get("i1").Counts()
	if err != nil {
		t.Fatal(err)
	}
	b.close()
	dir := catalogDir + "/000001"
	m, err := readManifest(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Size, m.Tally = nil, nil
	content, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(fsys, dir+"/"+manifestName, content); err != nil {
		t.Fatal(err)
	}
	b.open()
	ix := b.c.Get("i1")
	for round := range 3 {
		got, err := ix.Counts()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		if open := !ix.current.Load().evicted; open != (round == 0) {
			t.Errorf("round %d: open is %v", round, open)
		}
		ix.evict()
	}
}

func TestChangesOfEvictedIndexes(t *testing.T) {
	fsys := vfs.NewMem()
	b := manyIndexes(t, fsys, 4, Options{keptLoaded: 1})
	defer func() { b.close() }()
	docs := map[string]string{"2": `{"id":2,"n":2,"m":3}`, "4": `{"id":4,"late":true}`}
	if err := b.c.Swap([]Pair{{A: "i0", B: "i1"}, {A: "i2", B: "new", Rename: true}}, 100); err != nil {
		t.Fatal(err)
	}
	if n, err := b.c.Delete("i3", 101); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if l := loadedUIDs(b.c); len(l) > 0 {
		t.Errorf("%v are open", l)
	}
	if names := list(t, fsys, catalogDir); slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "000003") }) {
		t.Errorf("files of the deleted index are left: %v", names)
	}
	b.batch = 200
	for range 2 {
		if got := b.c.UIDs(); !slices.Equal(got, []string{"i0", "i1", "new"}) {
			t.Fatal(got)
		}
		for _, uid := range b.c.UIDs() {
			ix := b.c.Get(uid)
			if ix.UID() != uid {
				t.Errorf("%s has the uid %s", uid, ix.UID())
			}
			wantDocuments(t, ix, docs)
			ix.evict()
			if err := ix.SetPrimaryKey("id", 0); err != nil {
				t.Error(err)
			}
			ix.evict()
			if results, err := ix.Apply(t.Context(), 1, nil, nil); !errors.Is(err, ErrApplied) || results != nil || !ix.current.Load().evicted {
				t.Errorf("an earlier batch: %v, %v", results, err)
			}
			b.apply(ix, b.payload(`{"id":5}`), DeleteDocuments{[]string{"5"}})
			ix.evict()
			if _, _, err := ix.Compact(t.Context(), 0, nil); err != nil {
				t.Error(err)
			}
		}
		b.reopen()
	}
	gone := b.c.Get("new")
	if _, err := b.c.Delete("new", 300); err != nil {
		t.Fatal(err)
	}
	if v := held(gone.View()); v.Documents() != 0 || len(v.Segments) != 0 {
		t.Error("a deleted index has documents")
	} else {
		v.Release()
	}
}

// TestEvictionOrder checks which of five indexes are evicted; they were used one after the other.
func TestEvictionOrder(t *testing.T) {
	const long = int64(idleTime + time.Second)
	for _, tt := range []struct {
		what       string
		kept, most int
		idle       [5]int64 // idle times of i0 to i4, in nanoseconds
		short      bool
		open       string
	}{
		{"few indexes stay open", 5, 100, [5]int64{9 * long, 8 * long, 7 * long, 6 * long, 5 * long}, false, "01234"},
		{"idle ones beyond the limit go", 2, 100, [5]int64{9 * long, 8 * long, 7 * long, 6 * long, 5 * long}, false, "34"},
		{"used ones beyond the limit stay", 2, 100, [5]int64{9 * long, 8 * long, 5, 4, 3}, false, "234"},
		{"used ones beyond the hard limit go", 2, 4, [5]int64{5, 4, 3, 2, 1}, false, "234"},
		{"short memory evicts an eighth", 5, 100, [5]int64{9 * long, long, 2 * int64(shortTime), 2, 1}, true, "1234"},
		{"short memory spares used ones", 5, 100, [5]int64{6, 5, 4, 2, 1}, true, "01234"},
		{"short memory evicts idle ones first", 2, 100, [5]int64{9 * long, 8 * long, 7 * long, 2, 1}, true, "34"},
	} {
		b := manyIndexes(t, vfs.NewMem(), 5, Options{keptLoaded: 5})
		b.c.loaded.kept, b.c.loaded.most = tt.kept, tt.most
		now := b.c.loaded.clock()
		for i, idle := range tt.idle {
			ix := b.c.Get(fmt.Sprint("i", i))
			held(ix.View()).Release()
			ix.used.Store(now - idle)
		}
		b.c.evictIdle(now, tt.short)
		if got := strings.ReplaceAll(strings.Join(loadedUIDs(b.c), ""), "i", ""); got != tt.open {
			t.Errorf("%s: %s are open, want %s", tt.what, got, tt.open)
		}
		b.close()
	}
}

// TestShortMemoryEvictsAShare checks that each pass evicts an eighth while memory stays short, least recently used first, and that the few
// most recently used stay.
func TestShortMemoryEvictsAShare(t *testing.T) {
	b := manyIndexes(t, vfs.NewMem(), 10, Options{keptLoaded: 16})
	defer b.close()
	now := b.c.loaded.clock() + int64(time.Hour)
	for i := range 10 {
		ix := b.c.Get(fmt.Sprint("i", i))
		held(ix.View()).Release()
		ix.used.Store(now - int64(time.Hour) + int64(i))
	}
	for _, want := range []string{"23456789", "3456789", "456789", "56789", "6789", "789", "89", "89"} {
		b.c.evictIdle(now, true)
		if got := strings.ReplaceAll(strings.Join(loadedUIDs(b.c), ""), "i", ""); got != want {
			t.Errorf("%s are open, want %s", got, want)
		}
	}
}

// TestIndexesInUseAreNotEvicted checks that a held view, an open file, a merge, a running batch or damage keeps an index open.
func TestIndexesInUseAreNotEvicted(t *testing.T) {
	b := manyIndexes(t, vfs.NewMem(), 1, Options{})
	defer b.close()
	ix := b.c.Get("i0")
	evicted := func(want bool, what string) {
		t.Helper()
		if ix.evict() != want || ix.current.Load().evicted != want {
			t.Errorf("%s: evicted = %v", what, want)
		}
		held(ix.View()).Release()
	}
	v := held(ix.View())
	evicted(false, "a view is held")
	documents(t, v)
	v.Release()
	f := ix.hold(0)
	evicted(false, "a file is read")
	f.release()
	ix.writing.Lock()
	evicted(false, "a batch")
	ix.writing.Unlock()
	_, m, _ := ix.merges.begin(t.Context(), nil)
	evicted(false, "a merge")
	ix.merges.end(m)
	ix.unsure.Store(true)
	evicted(false, "an unknown manifest")
	ix.unsure.Store(false)
	evicted(true, "not in use")
	if v := held(ix.View()); v.Documents() != 2 {
		t.Errorf("%d documents", v.Documents())
	} else {
		v.files[0].damaged(&apierr.Corruption{File: v.files[0].path(), Section: "test", Offset: 7})
		v.Release()
	}
	evicted(false, "damage")
}

// TestIdleIndexesMakeWay checks that idle indexes are closed when the process gets no more mappings, and that the error is no damage when
// all indexes are in use.
func TestIdleIndexesMakeWay(t *testing.T) {
	var c atomic.Pointer[Catalog]
	most := 2
	fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
		if c := c.Load(); c != nil && o.Kind == vfs.OpOpen && strings.HasSuffix(o.Name, segSuffix) && len(c.loaded.byUse()) >= most {
			return syscall.ENOMEM
		}
		return nil
	})
	b := manyIndexes(t, fsys, 5, Options{keptLoaded: 1})
	defer b.close()
	c.Store(b.c)
	for range 3 {
		for i := range 5 {
			wantDocuments(t, b.c.Get(fmt.Sprint("i", i)), map[string]string{"2": `{"id":2,"n":2,"m":3}`, "4": `{"id":4,"late":true}`})
		}
	}
	a, z := held(b.c.Get("i0").View()), held(b.c.Get("i1").View())
	if _, err := b.c.Get("i2").View(); !errors.Is(err, syscall.ENOMEM) || b.c.Damaged("i2") {
		t.Errorf("error %v", err)
	}
	if len(b.c.suspects) > 0 {
		t.Error("the index counts as damaged")
	}
	a.Release()
	z.Release()
	held(b.c.Get("i2").View()).Release()
}

// TestOpenIndexesServeWithoutFiles checks that open indexes, which hold no file descriptors, stay open while the process is out of them,
// however often closed indexes are requested.
func TestOpenIndexesServeWithoutFiles(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		var none atomic.Bool
		fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if none.Load() && o.Kind == vfs.OpOpen {
				return errno
			}
			return nil
		})
		b := manyIndexes(t, fsys, 9, Options{keptLoaded: 8})
		for i := range 8 {
			held(b.c.Get(fmt.Sprint("i", i)).View()).Release()
		}
		open := loadedUIDs(b.c)
		none.Store(true)
		for range 9 {
			if _, err := b.c.Get("i8").View(); !errors.Is(err, errno) {
				t.Errorf("error %v", err)
			} else {
				wantCode(t, apierr.From(err), "too_many_open_files")
			}
		}
		if got := loadedUIDs(b.c); !slices.Equal(got, open) {
			t.Errorf("%v: open indexes %v, want %v", errno, got, open)
		}
		none.Store(false)
		held(b.c.Get("i8").View()).Release()
		b.close()
	}
}

// TestOpenedOnce checks that concurrent requests open a closed index once.
func TestOpenedOnce(t *testing.T) {
	var opened atomic.Int64
	fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
		if o.Kind == vfs.OpOpen && strings.HasSuffix(o.Name, segSuffix) {
			opened.Add(1)
		}
		return nil
	})
	b := manyIndexes(t, fsys, 2, Options{keptLoaded: 1})
	defer b.close()
	opened.Store(0)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			v, err := b.c.Get("i0").View()
			if err != nil {
				t.Error(err)
				return
			}
			defer v.Release()
			if v.Documents() != 2 {
				t.Errorf("%d documents", v.Documents())
			}
		})
	}
	wg.Wait()
	if n := opened.Load(); n != 2 {
		t.Errorf("%d files were opened for 2 segments", n)
	}
}

// TestCopiesOfEvictedIndexes checks that a copy opens closed indexes and closes them again.
func TestCopiesOfEvictedIndexes(t *testing.T) {
	b := manyIndexes(t, vfs.NewMem(), 4, Options{keptLoaded: 1})
	defer b.close()
	kept := held(b.c.Get("i3").View())
	kept.Release()
	frozen, err := b.c.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range frozen.Outlines() {
		v, err := frozen.View(i)
		if err != nil {
			t.Fatal(err)
		}
		if docs := documents(t, v); v.UID != o.UID || len(docs) != 2 {
			t.Errorf("%s: %v", o.UID, docs)
		}
		files, err := frozen.Files(i)
		if err != nil || len(files) != 3 {
			t.Errorf("%v, %v", files, err)
		}
		frozen.Done(i)
	}
	if l := loadedUIDs(b.c); !slices.Equal(l, []string{"i3"}) {
		t.Errorf("%v are left open", l)
	}
	b.apply(b.c.Get("i1"), b.payload(`{"id":9}`))
	if _, err := frozen.View(1); err == nil {
		t.Error("a changed index is copied")
	}
	b.c.Get("i1").evict()
	if _, err := frozen.View(1); err == nil || !b.c.Get("i1").current.Load().evicted {
		t.Errorf("%v; a failed copy leaves the index open", err)
	}
	frozen.Release()
}
