package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
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

// manyIndexes makes n indexes, each with two documents in two segments, of which one has a deleted row, and opens them anew.
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

// Of many indexes none is open until somebody needs its segments, and what lists of indexes and statistics show needs none.
func TestManyIndexesAreOpenedWhenTheyAreNeeded(t *testing.T) {
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
		t.Error("no bytes are used")
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
			t.Errorf("statistics %+v, while it was closed %+v", c, got[uid])
		}
		if l := loadedUIDs(b.c); len(l) != i+1 {
			t.Errorf("%v are open", l)
		}
	}
}

// What an earlier program wrote does not tell how much there is: then segments are opened for it, once.
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
		t.Errorf("%v were opened", l)
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
				t.Errorf("%s calls itself %s", uid, ix.UID())
			}
			wantDocuments(t, ix, docs)
			ix.evict()
			if err := ix.SetPrimaryKey("id", 0); err != nil {
				t.Error(err)
			}
			ix.evict()
			if results, err := ix.Apply(t.Context(), 1, nil, nil); !errors.Is(err, ErrApplied) || results != nil || !ix.current.Load().evicted {
				t.Errorf("a batch of before: %v, %v", results, err)
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

// TestWhoIsEvicted has five indexes that were used one after the other.
func TestWhoIsEvicted(t *testing.T) {
	const long = int64(idleTime + time.Second)
	for _, tt := range []struct {
		what       string
		kept, most int
		idle       [5]int64 // of i0 to i4, in nanoseconds
		short      bool
		open       string
	}{
		{"few are kept for ever", 5, 100, [5]int64{9 * long, 8 * long, 7 * long, 6 * long, 5 * long}, false, "01234"},
		{"those beyond go when they are idle", 2, 100, [5]int64{9 * long, 8 * long, 7 * long, 6 * long, 5 * long}, false, "34"},
		{"and stay while they are used", 2, 100, [5]int64{9 * long, 8 * long, 5, 4, 3}, false, "234"},
		{"too many go though they are used", 2, 4, [5]int64{5, 4, 3, 2, 1}, false, "234"},
		{"when memory is short, an eighth", 5, 100, [5]int64{9 * long, long, 2 * int64(shortTime), 2, 1}, true, "1234"},
		{"of those whom nobody uses now", 5, 100, [5]int64{6, 5, 4, 2, 1}, true, "01234"},
		{"the idle ones first", 2, 100, [5]int64{9 * long, 8 * long, 7 * long, 2, 1}, true, "34"},
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

// While memory stays short, look after look takes an eighth, those first that were used longest ago; the few that were used last stay.
func TestShortMemoryTakesAShare(t *testing.T) {
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

// A view that is held, a file that is read, a merge, a batch under way, and damage keep an index open.
func TestWhatIsInUseIsNotEvicted(t *testing.T) {
	b := manyIndexes(t, vfs.NewMem(), 1, Options{})
	defer b.close()
	ix := b.c.Get("i0")
	evicted := func(want bool, what string) {
		t.Helper()
		if ix.evict() != want || ix.current.Load().evicted != want {
			t.Errorf("%s: evicted is not %v", what, want)
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
	evicted(false, "a manifest that is not known")
	ix.unsure.Store(false)
	evicted(true, "nobody")
	if v := held(ix.View()); v.Documents() != 2 {
		t.Errorf("%d documents", v.Documents())
	} else {
		v.files[0].damaged(&apierr.Corruption{File: v.files[0].path(), Section: "test", Offset: 7})
		v.Release()
	}
	evicted(false, "damage")
}

// Damage of an index that is not open is told soon after the start, without being asked for, and when it is met.
func TestDamageOfEvictedIndexes(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var logged syncBuffer
		fsys := vfs.NewMem()
		b := manyIndexes(t, fsys, 4, Options{keptLoaded: 1, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		b.close()
		name := catalogDir + "/000002/000000.seg"
		content, err := vfs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(fsys, name, content[:len(content)-9]); err != nil {
			t.Fatal(err)
		}
		b.open()
		if asked {
			ctx, cancel := context.WithCancel(t.Context())
			var aside sync.WaitGroup
			aside.Go(func() { b.c.setSuspectsAside(ctx) })
			_, err := b.c.View("i2")
			wantCode(t, err, "invalid_store_file")
			views := b.c.Views()
			if views.Get("i2") != nil || views.Missing("i2").Code != "invalid_store_file" {
				t.Error("a set of views has it")
			}
			views.Release()
			_, err = b.c.Get("i1").Apply(t.Context(), 99, nil, nil)
			if err != nil {
				t.Error(err)
			}
			for !b.c.Damaged("i2") { // the test ends by its limit if it never is
				time.Sleep(time.Millisecond)
			}
			cancel()
			aside.Wait()
		} else {
			b.c.look(t.Context())
		}
		if aside, _ := b.c.Damages(); !slices.Equal(aside, []string{"i2"}) || b.c.Get("i2") != nil {
			t.Errorf("set aside: %v", aside)
		}
		if text := logged.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "index=i2") {
			t.Errorf("logged %s", text)
		}
		if l := loadedUIDs(b.c); !asked && len(l) > 0 {
			t.Errorf("%v are left open", l)
		}
		if err := vfs.WriteFile(fsys, name, content); err != nil {
			t.Fatal(err)
		}
		if ix := b.c.Reopen("i2"); ix == nil {
			t.Error("mended, it is not there")
		} else {
			wantDocuments(t, ix, map[string]string{"2": `{"id":2,"n":2,"m":3}`, "4": `{"id":4,"late":true}`})
		}
		b.close()
	}
}

// The look after the start removes what a crash left, and wakes the compactor for what it finds to merge.
func TestTheLookAfterTheStart(t *testing.T) {
	fsys := vfs.NewMem()
	b := manyIndexes(t, fsys, 3, Options{keptLoaded: 1})
	defer func() { b.close() }()
	for _, uid := range b.c.UIDs() {
		b.compact(b.c.Get(uid))
	}
	many := b.c.Get("i1")
	for i := range 30 {
		b.apply(many, b.payload(fmt.Sprintf(`{"id":"more%d"}`, i)))
	}
	b.close()
	stranger := catalogDir + "/000002/000099.seg"
	if err := vfs.WriteFile(fsys, stranger, []byte("x")); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.c.look(t.Context())
	if slices.Contains(list(t, fsys, catalogDir), stranger) {
		t.Error("what a crash left is still there")
	}
	if l := loadedUIDs(b.c); len(l) > 0 {
		t.Errorf("%v are left open", l)
	}
	l := b.c.compactor.lanes[0]
	if ix := l.next(); ix == nil || ix.UID() != "i1" || l.next() != nil {
		t.Error("the compactor was woken for another index")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.c.look(ended)
}

// What could not be opened for a moment is looked at again, until it can be; the log tells once that it could not.
func TestTheLookIsTakenUpAgain(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.EIO} {
		var logged syncBuffer
		var failures atomic.Int64 // to come
		fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if o.Kind == vfs.OpOpen && strings.HasSuffix(o.Name, segSuffix) && failures.Add(-1) >= 0 {
				return errno
			}
			return nil
		})
		b := manyIndexes(t, fsys, 4, Options{keptLoaded: 1, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		for _, uid := range b.c.UIDs() {
			b.compact(b.c.Get(uid))
		}
		many := b.c.Get("i1")
		for i := range 30 {
			b.apply(many, b.payload(fmt.Sprintf(`{"id":"more%d"}`, i)))
		}
		v := held(b.c.View("i3"))
		damaged := v.files[0].path()
		v.Release()
		b.close()
		stranger := catalogDir + "/000002/000099.seg"
		for _, name := range []string{stranger, damaged} {
			if err := vfs.WriteFile(fsys, name, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		b.open()
		failures.Store(4 + 2)
		left := b.c.look(t.Context())
		if len(left) != 4 {
			t.Fatalf("%v: %d indexes are left", errno, len(left))
		}
		want := 4
		if lacking(errno) {
			want = 1
		}
		if n := strings.Count(logged.String(), "level=WARN"); n != want {
			t.Errorf("%v: %d warnings, want %d: %s", errno, n, want, logged.String())
		}
		b.c.lookAgain(t.Context(), left, 0)
		if slices.Contains(list(t, fsys, catalogDir), stranger) {
			t.Errorf("%v: what a crash left is still there", errno)
		}
		if ix := b.c.compactor.lanes[0].next(); ix == nil || ix.UID() != "i1" {
			t.Errorf("%v: the compactor was not woken", errno)
		}
		if aside, _ := b.c.Damages(); !slices.Equal(aside, []string{"i3"}) {
			t.Errorf("%v: set aside: %v", errno, aside)
		}
		if l := loadedUIDs(b.c); len(l) > 0 {
			t.Errorf("%v: %v are left open", errno, l)
		}
		if n := strings.Count(logged.String(), "level=WARN"); n != want {
			t.Errorf("%v: it is told again: %s", errno, logged.String())
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		b.c.lookAgain(ended, left, time.Hour)
		b.close()
	}
}

// Where the process gets no more mappings, idle indexes make way; where there is none, it is no damage.
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
	a, z := held(b.c.View("i0")), held(b.c.View("i1"))
	if _, err := b.c.View("i2"); !errors.Is(err, syscall.ENOMEM) || b.c.Damaged("i2") {
		t.Errorf("error %v", err)
	}
	if len(b.c.suspects) > 0 {
		t.Error("it is taken for damaged")
	}
	a.Release()
	z.Release()
	held(b.c.View("i2")).Release()
}

// Open indexes hold no files. So where the process may open no more, they stay open, and serve, however often closed ones are asked for.
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
			held(b.c.View(fmt.Sprint("i", i))).Release()
		}
		open := loadedUIDs(b.c)
		none.Store(true)
		for range 9 {
			if _, err := b.c.View("i8"); !errors.Is(err, errno) {
				t.Errorf("error %v", err)
			} else {
				wantCode(t, apierr.From(err), "too_many_open_files")
			}
		}
		if got := loadedUIDs(b.c); !slices.Equal(got, open) {
			t.Errorf("%v: of %v %v are open", errno, open, got)
		}
		none.Store(false)
		held(b.c.View("i8")).Release()
		b.close()
	}
}

// What may be over in a moment is the error of who meets it, for which tasks wait. It sets no index aside, and the next one who asks for
// the index gets it.
func TestFailuresForAMomentSetNothingAside(t *testing.T) {
	stranger := catalogDir + "/000001/000099.seg"
	for _, tt := range []struct {
		kind   vfs.OpKind
		suffix string
		err    error
		code   apierr.Code
	}{
		{vfs.OpOpen, segSuffix, syscall.EIO, "io_error"},
		{vfs.OpOpen, manifestName, syscall.EIO, "io_error"},
		{vfs.OpOpen, segSuffix, syscall.EACCES, "io_error"},
		{vfs.OpOpen, segSuffix, errors.New("unheard of"), "io_error"},
		{vfs.OpRemoveAll, stranger, syscall.EROFS, "io_error"},
	} {
		var bad atomic.Bool
		fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if bad.Load() && o.Kind == tt.kind && strings.HasSuffix(o.Name, tt.suffix) {
				return tt.err
			}
			return nil
		})
		b := manyIndexes(t, fsys, 3, Options{keptLoaded: 1})
		if err := vfs.WriteFile(fsys, stranger, []byte("x")); err != nil {
			t.Fatal(err)
		}
		bad.Store(true)
		for range 2 {
			if _, err := b.c.View("i1"); !errors.Is(err, tt.err) {
				t.Errorf("%v: error %v", tt.err, err)
			} else {
				wantCode(t, apierr.From(err), tt.code)
			}
		}
		b.c.look(t.Context())
		b.c.untilAside(t.Context(), suspect{b.c.Get("i1"), errors.New("damage that was mended")})
		if aside, _ := b.c.Damages(); len(aside) > 0 || len(b.c.suspects) > 0 {
			t.Errorf("%v: set aside: %v, and %d will be", tt.err, aside, len(b.c.suspects))
		}
		bad.Store(false)
		held(b.c.View("i1")).Release()
		if slices.Contains(list(t, fsys, catalogDir), stranger) {
			t.Errorf("%v: what a crash left is still there", tt.err)
		}
		b.close()
	}
}

// TestOpenedOnce has many ask for an index that is not open.
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
			v, err := b.c.View("i0")
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

// A copy opens what it copies, and closes it.
func TestCopiesOfEvictedIndexes(t *testing.T) {
	b := manyIndexes(t, vfs.NewMem(), 4, Options{keptLoaded: 1})
	defer b.close()
	kept := held(b.c.View("i3"))
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
		t.Error("an index that was changed is copied")
	}
	b.c.Get("i1").evict()
	if _, err := frozen.View(1); err == nil || !b.c.Get("i1").current.Load().evicted {
		t.Errorf("%v; a copy that fails leaves open what it opened", err)
	}
	frozen.Release()
}

// TestEvictionsBesideEverything has searches, writes, deletions, swaps, merges, inspections, copies and evictions at once. Each
// view has a state that its index had while it was taken.
func TestEvictionsBesideEverything(t *testing.T) {
	const changes = 150
	dir := t.TempDir()
	b := &bed{t: t, fs: vfs.OS, options: Options{FS: vfs.OS, keptLoaded: 2, mostLoaded: 3}}
	payload := func(docs ...string) AddDocuments {
		name := filepath.Join(dir, fmt.Sprint("payload", b.payloads))
		b.payloads++
		if err := vfs.WriteFile(vfs.OS, name, []byte(strings.Join(docs, "\n")+"\n")); err != nil {
			t.Fatal(err)
		}
		return AddDocuments{Payload: name, Documents: len(docs), PrimaryKey: "id"}
	}
	c, err := OpenCatalog(filepath.Join(dir, "indexes"), b.options)
	if err != nil {
		t.Fatal(err)
	}
	c.inlineTombstones = 19
	b.c = c

	const uids = 8
	uid := func(i int) string { return fmt.Sprint("i", i) }
	// states are those that an index may have had, by uid, the latest last; all before settled are over.
	var model struct {
		sync.Mutex
		states  [uids][]map[string]string
		settled [uids]int
	}
	for i := range uids {
		model.states[i] = []map[string]string{{}}
	}
	begin := func(i int, next map[string]string) {
		model.Lock()
		defer model.Unlock()
		model.states[i] = append(model.states[i], next)
	}
	settle := func(i int) {
		model.Lock()
		defer model.Unlock()
		model.settled[i] = len(model.states[i]) - 1
	}
	now := func(i int) map[string]string { return model.states[i][len(model.states[i])-1] } // for the writer alone

	var changing sync.Mutex // held over a change, and over a copy
	done := make(chan struct{})
	var others sync.WaitGroup
	beside := func(pause time.Duration, f func(r *rand.Rand)) { // which leaves processors to the others
		n := uint64(rand.Uint32())
		others.Go(func() {
			r := rand.New(rand.NewPCG(n, 1))
			for {
				select {
				case <-done:
					return
				case <-time.After(pause):
					f(r)
				}
			}
		})
	}
	for range 3 { // who reads
		beside(time.Millisecond, func(r *rand.Rand) {
			model.Lock()
			before := model.settled
			model.Unlock()
			v, err := c.View(uid(r.IntN(uids)))
			if err != nil { // not made yet, or deleted
				return
			}
			defer v.Release()
			if r.IntN(3) == 0 {
				v.Cache.Own().Put([]byte("k"), 1, 100)
			}
			i := int(v.UID[1] - '0')
			got := documents(t, v)
			model.Lock()
			states := model.states[i][before[i]:]
			model.Unlock()
			if len(got) > 0 && !slices.ContainsFunc(states, func(s map[string]string) bool { return maps.Equal(s, got) }) {
				t.Errorf("index %s has %v, may have %v", v.UID, got, states)
			}
		})
	}
	beside(200*time.Microsecond, func(r *rand.Rand) {
		if ix := c.Get(uid(r.IntN(uids))); ix != nil {
			ix.evict()
		}
	})
	beside(time.Millisecond, func(r *rand.Rand) {
		if ix := c.Get(uid(r.IntN(uids))); ix != nil {
			if _, err := ix.Counts(); err != nil {
				t.Error(err)
			}
		}
		c.evictIdle(c.loaded.clock(), r.IntN(2) == 0)
	})
	beside(5*time.Millisecond, func(r *rand.Rand) {
		c.inspect(t.Context(), 0)
		c.look(t.Context())
	})
	beside(20*time.Millisecond, func(r *rand.Rand) { // who copies
		changing.Lock()
		defer changing.Unlock()
		frozen, err := c.Freeze()
		if err != nil {
			t.Error(err)
			return
		}
		defer frozen.Release()
		for i, o := range frozen.Outlines() {
			v, err := frozen.View(i)
			if err != nil {
				t.Error(err)
				continue
			}
			if got := documents(t, v); !maps.Equal(got, now(int(o.UID[1]-'0'))) {
				t.Errorf("the copy of %s has %v, want %v", o.UID, got, now(int(o.UID[1]-'0')))
			}
			frozen.Done(i)
		}
	})

	r := rand.New(rand.NewPCG(7, 7))
	change := func(batch uint64) {
		changing.Lock()
		defer changing.Unlock()
		i, j := r.IntN(uids), r.IntN(uids)
		ix := c.Get(uid(i))
		switch what := r.IntN(20); {
		case ix == nil:
			if _, err := c.Create(uid(i), "id", batch); err != nil {
				t.Error(err)
			}
		case what == 0:
			documents := len(now(i))
			begin(i, map[string]string{})
			if n, err := c.Delete(uid(i), batch); err != nil || n != documents {
				t.Errorf("deleted %d of %d documents: %v", n, documents, err)
			}
			settle(i)
		case what == 1 && i != j && c.Get(uid(j)) != nil:
			a, z := now(i), now(j)
			begin(i, z)
			begin(j, a)
			if err := c.Swap([]Pair{{A: uid(i), B: uid(j)}}, batch); err != nil {
				t.Error(err)
			}
			settle(i)
			settle(j)
		case what == 2 && i != j && c.Get(uid(j)) == nil:
			begin(j, now(i))
			begin(i, map[string]string{})
			if err := c.Swap([]Pair{{A: uid(i), B: uid(j), Rename: true}}, batch); err != nil {
				t.Error(err)
			}
			settle(i)
			settle(j)
		case what == 3:
			if _, _, err := ix.Compact(t.Context(), batch, nil); err != nil {
				t.Error(err)
			}
		default:
			next := maps.Clone(now(i))
			var docs, gone []string
			for range 1 + r.IntN(4) {
				id := fmt.Sprint("d", r.IntN(12))
				if slices.Contains(gone, id) {
					continue
				}
				if what < 8 {
					delete(next, id)
					gone = append(gone, id)
					continue
				}
				doc := fmt.Sprintf(`{"id":"%s","n":%d}`, id, batch)
				next[id] = doc
				docs = append(docs, doc)
			}
			ops := []Op{DeleteDocuments{gone}}
			if len(docs) > 0 {
				ops = []Op{payload(docs...)}
			}
			begin(i, next)
			results, err := ix.Apply(t.Context(), batch, ops, nil)
			if err != nil || results[0].Err != nil {
				t.Errorf("%v, %+v", err, results)
			}
			settle(i)
		}
	}
	for n := range changes {
		change(uint64(n) + 1)
	}
	close(done)
	others.Wait()
	for i := range uids {
		if ix := c.Get(uid(i)); ix != nil {
			wantDocuments(t, ix, now(i))
			ix.evict()
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if b.c, err = openCatalog(filepath.Join(dir, "indexes"), b.options); err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for i := range uids {
		if ix := b.c.Get(uid(i)); ix != nil {
			wantDocuments(t, ix, now(i))
		} else if len(now(i)) > 0 {
			t.Errorf("%s is lost", uid(i))
		}
	}
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
