package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
	"svc/segment"
)

// filesOf returns the names of the files of an index that have a suffix.
func (b *bed) filesOf(ix *Index, suffix string) (names []string) {
	for _, name := range list(b.t, b.fs, ix.dir) {
		if strings.HasSuffix(name, suffix) {
			names = append(names, path.Base(name))
		}
	}
	return names
}

// withColumns returns a bed with an index of two segments, each with a file of columns for t.
func withColumns(t *testing.T) (*bed, *Index) {
	b := newBed(t, vfs.NewMem(), Options{})
	ix := b.create("a")
	b.apply(ix, update(t, `{"filterableAttributes":["n"]}`))
	b.apply(ix, b.payload(`{"id":1,"n":1,"t":"Red"}`, `{"id":2,"n":2,"t":["blue",3]}`, `{"id":3,"n":3}`))
	b.apply(ix, b.payload(`{"id":4,"n":4,"t":null}`, `{"id":5,"t":"green"}`))
	b.apply(ix, update(t, `{"filterableAttributes":["n","t"]}`))
	if got := b.filesOf(ix, colSuffix); len(got) != 2 {
		t.Fatalf("columns %v, want two files", got)
	}
	return b, ix
}

func formatOf(t *testing.T, b *bed, ix *Index) byte {
	t.Helper()
	content, err := vfs.ReadFile(b.fs, path.Join(ix.dir, manifestName))
	if err != nil {
		t.Fatal(err)
	}
	return content[8]
}

// TestOnlyManifestsThatNameColumnsHaveANewFormat checks that an older svc refuses an index with files of columns, and no other.
func TestOnlyManifestsThatNameColumnsHaveANewFormat(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, b.payload(`{"id":1,"t":"red"}`))
	if v := formatOf(t, b, ix); v != tombstonesVersion {
		t.Errorf("format %d before there are columns", v)
	}
	b.apply(ix, update(t, `{"filterableAttributes":["t"]}`))
	if v := formatOf(t, b, ix); v != besideVersion {
		t.Errorf("format %d with columns", v)
	}
	content, err := vfs.ReadFile(b.fs, path.Join(ix.dir, manifestName))
	if err != nil {
		t.Fatal(err)
	}
	older := manifestSeal
	older.version = tombstonesVersion
	if _, err := older.unwrap(manifestName, content); err == nil || !strings.Contains(err.Error(), "format version 3") {
		t.Errorf("an older svc: %v", err)
	}
	b.batch++
	if _, _, err := ix.Compact(context.Background(), b.batch, nil); err != nil {
		t.Fatal(err)
	}
	if v := formatOf(t, b, ix); v != tombstonesVersion {
		t.Errorf("format %d after a compaction", v)
	}
	if got := b.filesOf(ix, colSuffix); len(got) > 0 {
		t.Errorf("%v are left after a compaction", got)
	}
	b.checkFresh(ix)
}

func TestColumnsOutliveAStartAndGoWithTheirSegment(t *testing.T) {
	b, _ := withColumns(t)
	defer func() { b.close() }()
	b.reopen()
	ix := b.c.Get("a")
	b.checkFresh(ix)
	if err := vfs.WriteFile(b.fs, path.Join(ix.dir, columnsName(99)), []byte("left by a crash")); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	ix = b.c.Get("a")
	if got := b.filesOf(ix, colSuffix); len(got) != 2 {
		t.Errorf("columns %v after a start, want two files", got)
	}
	v := held(ix.View())
	b.apply(ix, DeleteDocuments{[]string{"4", "5"}})
	if got := b.filesOf(ix, colSuffix); len(got) != 2 {
		t.Errorf("columns %v while a view is held, want two files", got)
	}
	v.Release()
	if got := b.filesOf(ix, colSuffix); len(got) != 1 {
		t.Errorf("columns %v beside one segment", got)
	}
	b.checkFresh(ix)
	b.apply(ix, Clear{})
	if got := b.filesOf(ix, colSuffix); len(got) > 0 {
		t.Errorf("%v are left of a cleared index", got)
	}
}

// TestOldViewsServeBesideNewColumns checks that a view and a copy from before the change stay as they were.
func TestOldViewsServeBesideNewColumns(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, b.payload(`{"id":1,"t":"red"}`, `{"id":2,"t":"blue"}`))
	old := held(ix.View())
	defer old.Release()
	want := dump(t, old)
	b.apply(ix, update(t, `{"filterableAttributes":["t"]}`), DeleteDocuments{[]string{"1"}})
	if got := dump(t, old); got != want {
		t.Errorf("the view has changed:\n%s", firstDifference(got, want))
	}
	now := held(ix.View())
	defer now.Release()
	if old.files[0] != now.files[0] || old.files[0].results != now.files[0].results {
		t.Error("the segment was written again")
	}
	// The column has the values of deleted rows, as if it had been there from the start.
	if c := now.Segments[0].Column(columnOf(t, now, "t")); c == nil || c.Strings() != 2 {
		t.Errorf("column %v, want one with two strings", c)
	}
	if m := old.manifest(99, nil); len(m.Segments[0].Columns) > 0 {
		t.Errorf("the copy of the old view has columns %v", m.Segments[0].Columns)
	}
}

func columnOf(t *testing.T, v *View, name string) segment.FieldID {
	t.Helper()
	id, ok := v.Fields.ID(name)
	if !ok {
		t.Fatalf("there is no field %s", name)
	}
	return id
}

// TestAMergePlannedBeforeNewColumnsIsGivenUp checks that a merge planned before new settings does not drop the columns that these settings
// added beside its segments.
func TestAMergePlannedBeforeNewColumnsIsGivenUp(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("i")
	b.apply(ix, b.payload(`{"id":1,"n":1}`, `{"id":2,"n":2}`))
	b.apply(ix, b.payload(`{"id":3,"n":3}`, `{"id":4,"n":4}`))
	before := held(ix.View())
	defer before.Release()
	b.apply(ix, update(t, `{"filterableAttributes":["n"]}`))
	if again, err := ix.mergeSegments(t.Context(), before, []int{0, 1}, unthrottled); err != nil || !again {
		t.Errorf("retry = %v, %v", again, err)
	}
	columns := func(segments int) {
		t.Helper()
		v := held(ix.View())
		defer v.Release()
		if len(v.Segments) != segments {
			t.Fatalf("%d segments, want %d", len(v.Segments), segments)
		}
		for i, s := range v.Segments {
			if s.Column(columnOf(t, v, "n")) == nil {
				t.Errorf("segment %d of %d has no column", i, segments)
			}
		}
	}
	columns(2)
	now := held(ix.View())
	defer now.Release()
	if merged, err := ix.mergeSegments(t.Context(), now, []int{0, 1}, unthrottled); err != nil || !merged {
		t.Errorf("merged: %v, %v", merged, err)
	}
	columns(1)
	b.checkFresh(ix)
}

// TestDamagedColumnsAreRebuilt damages files of columns in several ways while the index is closed. Opening the index must rebuild them;
// the start must not wait for that. If they cannot be rebuilt, the index must not answer.
func TestDamagedColumnsAreRebuilt(t *testing.T) {
	for name, damage := range map[string]func(fs vfs.FS, names []string) error{
		"missing": func(fs vfs.FS, names []string) error { return fs.Remove(names[0]) },
		"all missing": func(fs vfs.FS, names []string) error {
			return errors.Join(fs.Remove(names[0]), fs.Remove(names[1]), fs.Remove(names[2]), fs.Remove(names[3]))
		},
		"empty": func(fs vfs.FS, names []string) error { return vfs.WriteFile(fs, names[0], nil) },
		"cut": func(fs vfs.FS, names []string) error {
			content, err := vfs.ReadFile(fs, names[0])
			return errors.Join(err, vfs.WriteFile(fs, names[0], content[:len(content)-64]))
		},
		"of another segment": func(fs vfs.FS, names []string) error {
			content, err := vfs.ReadFile(fs, names[1])
			return errors.Join(err, vfs.WriteFile(fs, names[0], content))
		},
		"a segment": func(fs vfs.FS, names []string) error {
			content, err := vfs.ReadFile(fs, path.Join(path.Dir(names[0]), segmentName(0)))
			return errors.Join(err, vfs.WriteFile(fs, names[0], content))
		},
	} {
		b, ix := withColumns(t)
		b.apply(ix, update(t, `{"filterableAttributes":["n","t"],"sortableAttributes":["id"]}`))
		documents := ix.Outline().size.Documents
		v := held(ix.View())
		want := dump(t, v)
		v.Release()
		var names []string
		for _, n := range b.filesOf(ix, colSuffix) {
			names = append(names, path.Join(ix.dir, n))
		}
		b.close()
		if err := damage(b.fs, names); err != nil {
			t.Fatal(err)
		}
		saved, err := Salvage(b.fs, ix.dir, "a")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := saved.EachDocument(func(int, segment.Row) error { n++; return nil }); err != nil || n != documents || len(saved.Lost) > 0 {
			t.Errorf("%s: salvaged %d documents, want %d; lost %v, %v", name, n, documents, saved.Lost, err)
		}
		if err := saved.Close(); err != nil {
			t.Error(err)
		}
		b.open()
		ix = b.c.Get("a")
		if ix == nil || !ix.current.Load().evicted {
			t.Fatalf("%s: the start opened the index", name)
		}
		full := true
		b.c.options.FS = vfs.Hook(b.fs, func(op vfs.Op) error {
			if full && op.Kind == vfs.OpCreate {
				return syscall.ENOSPC
			}
			return nil
		})
		if v, err := ix.View(); err == nil || lasting(err) || apierr.From(err).Code != "no_space_left_on_device" {
			t.Errorf("%s: on a full disk, a view is %v, %v", name, v, err)
		}
		full = false
		v = held(ix.View())
		if got := dump(t, v); got != want {
			t.Errorf("%s: the rebuilt columns differ:\n%s", name, firstDifference(got, want))
		}
		v.Release()
		if got := b.filesOf(ix, colSuffix); len(got) != len(names) {
			t.Errorf("%s: columns %v, want those of %v", name, got, names)
		}
		b.reopen()
		if ix = b.c.Get("a"); ix == nil || ix.current.Load().evicted {
			t.Fatalf("%s: the next start rebuilds columns", name)
		}
		b.checkFresh(ix)
		b.close()
	}
}

// TestColumnsDamagedWhileOpen checks that damage found in an open index is reported for its segment, and stops copies, until the columns
// are rebuilt beside the views in use.
func TestColumnsDamagedWhileOpen(t *testing.T) {
	replacesOpen(t)
	for _, section := range []string{"cols", "cold"} {
		dir := t.TempDir()
		t.Chdir(dir)
		b := newBed(t, vfs.OS, Options{})
		ix := b.create("a")
		var docs []string
		for i := range 400 {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"%d of %s"}`, i, i, strings.Repeat("many ", 20)))
		}
		b.apply(ix, b.payload(docs...))
		b.apply(ix, update(t, `{"filterableAttributes":["t"]}`))
		whole := held(ix.View())
		want := dump(t, whole)
		whole.Release()
		name := path.Join(ix.dir, b.filesOf(ix, colSuffix)[0])
		flipSection(t, name, section, 0.5)
		b.c.inspect(t.Context(), 0)
		if _, segments := b.c.Damages(); segments["a"] != 1 {
			t.Errorf("%s: damaged segments %v", section, segments)
		}
		old := held(ix.View())
		var damage *apierr.Corruption
		if err := old.CheckSums(t.Context()); !errors.As(err, &damage) || damage.File != name {
			t.Errorf("%s: the damage is copied: %v", section, err)
		} else if e := apierr.From(err); !strings.Contains(e.Message, "rebuilds it") {
			t.Errorf("%s: the error does not say that the columns are rebuilt: %v", section, e)
		}
		b.batch++
		if _, _, err := ix.Compact(t.Context(), b.batch, nil); !apierr.IsCorruption(err) {
			t.Errorf("%s: a merge: %v", section, err)
		}
		var told []suspect
		for len(b.c.suspects) > 0 {
			told = append(told, <-b.c.suspects)
		}
		if len(told) == 0 {
			t.Fatalf("%s: the damage is not reported", section)
		}
		full := true
		b.c.options.FS = vfs.Hook(vfs.OS, func(op vfs.Op) error {
			if full && op.Kind == vfs.OpCreate {
				return syscall.ENOSPC
			}
			return nil
		})
		if b.c.rebuildColumns(t.Context(), told[0]) {
			t.Errorf("%s: columns are rebuilt on a full disk", section)
		}
		if full = false; b.c.rebuildColumns(t.Context(), told[0]) {
			t.Errorf("%s: the rebuild is retried without a pause", section)
		}
		old.files[0].damage.failed.Store(0)
		for _, s := range told {
			if !b.c.rebuildColumns(t.Context(), s) {
				t.Errorf("%s: columns are not rebuilt", section)
			}
		}
		now := held(ix.View())
		if got := dump(t, now); got != want {
			t.Errorf("%s: the rebuilt columns differ:\n%s", section, firstDifference(got, want))
		}
		if err := now.CheckSums(t.Context()); err != nil || b.c.Damaged("a") {
			t.Errorf("%s: the rebuilt columns are damaged: %v", section, err)
		}
		now.Release()
		old.Release()
		if _, segments := b.c.Damages(); len(segments) > 0 {
			t.Errorf("%s: damaged segments %v", section, segments)
		}
		b.checkFresh(ix)
		b.close()
	}
}

// TestDamagedColumnsBesideMissingOnes checks that missing columns are rebuilt although others beside the same segment have damage that
// shows only when they are read.
func TestDamagedColumnsBesideMissingOnes(t *testing.T) {
	replacesOpen(t)
	t.Chdir(t.TempDir())
	b := newBed(t, vfs.OS, Options{})
	ix := b.create("a")
	var docs []string
	for i := range 400 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"n":%d,"t":"%d of %s"}`, i, i%7, i, strings.Repeat("many ", 20)))
	}
	b.apply(ix, b.payload(docs...))
	b.apply(ix, update(t, `{"filterableAttributes":["n"]}`))
	b.apply(ix, update(t, `{"filterableAttributes":["n","t"]}`))
	v := held(ix.View())
	want := dump(t, v)
	v.Release()
	names := b.filesOf(ix, colSuffix)
	b.close()
	flipSection(t, path.Join(ix.dir, names[1]), "cols", 0.99) // the values of the rows, which opening a column reads
	if err := b.fs.Remove(path.Join(ix.dir, names[0])); err != nil {
		t.Fatal(err)
	}
	b.open()
	ix = b.c.Get("a")
	if v, err := ix.View(); err != nil {
		t.Fatalf("the index cannot be opened: %v", err)
	} else {
		v.Release()
	}
	b.c.inspect(t.Context(), 0)
	for n := len(b.c.suspects); n > 0; n-- {
		if !b.c.rebuildColumns(t.Context(), <-b.c.suspects) {
			t.Error("columns are not rebuilt")
		}
	}
	v = held(ix.View())
	if got := dump(t, v); got != want {
		t.Errorf("the rebuilt columns differ:\n%s", firstDifference(got, want))
	}
	v.Release()
	b.checkFresh(ix)
	b.close()
}

// TestOtherDamageStaysKnown checks that other known damage stays known when columns are rebuilt.
func TestOtherDamageStaysKnown(t *testing.T) {
	replacesOpen(t)
	t.Chdir(t.TempDir())
	b := newBed(t, vfs.OS, Options{})
	defer b.close()
	ix := b.create("a")
	for part := range 2 {
		var docs []string
		for i := range 400 {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"%d of %s"}`, 1000*part+i, i, strings.Repeat("many ", 20)))
		}
		b.apply(ix, b.payload(docs...))
	}
	b.apply(ix, update(t, `{"filterableAttributes":["t"]}`))
	segments, columns := b.filesOf(ix, segSuffix), b.filesOf(ix, colSuffix)
	flipSection(t, path.Join(ix.dir, segments[1]), "docs", 0.5)
	flipSection(t, path.Join(ix.dir, columns[0]), "cols", 0.5)
	b.c.inspect(t.Context(), 0)
	if _, damaged := b.c.Damages(); damaged["a"] != 2 {
		t.Fatalf("damaged segments %v", damaged)
	}
	if !b.c.rebuildColumns(t.Context(), <-b.c.suspects) {
		t.Error("columns are not rebuilt")
	}
	if _, damaged := b.c.Damages(); damaged["a"] != 1 {
		t.Errorf("after the rebuild, damaged segments %v", damaged)
	}
}

// TestColumnsOfDamagedDocuments checks that an index is quarantined if its columns are missing and its documents are damaged, because the
// columns cannot be rebuilt.
func TestColumnsOfDamagedDocuments(t *testing.T) {
	t.Chdir(t.TempDir())
	b := newBed(t, vfs.OS, Options{})
	ix := b.create("a")
	var docs []string
	for i := range 400 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"%d of %s"}`, i, i, strings.Repeat("many ", 20)))
	}
	b.apply(ix, b.payload(docs...))
	b.apply(ix, update(t, `{"filterableAttributes":["t"]}`))
	segments, columns := b.filesOf(ix, segSuffix), b.filesOf(ix, colSuffix)
	b.close()
	flipSection(t, path.Join(ix.dir, segments[0]), "docs", 0.5)
	if err := b.fs.Remove(path.Join(ix.dir, columns[0])); err != nil {
		t.Fatal(err)
	}
	b.open()
	defer b.close()
	if left := b.c.startupScan(t.Context()); len(left) > 0 || !b.c.Damaged("a") {
		t.Errorf("%d indexes to scan, quarantined: %v", len(left), b.c.Damaged("a"))
	}
}

// TestColumnsTruncatedWhileOpen checks that columns truncated while they are in use are rebuilt, and that the index is not quarantined.
func TestColumnsTruncatedWhileOpen(t *testing.T) {
	replacesOpen(t)
	t.Chdir(t.TempDir())
	b := newBed(t, vfs.OS, Options{})
	defer b.close()
	ix := b.create("a")
	var docs []string
	for i := range 400 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"%d of %s"}`, i, i, strings.Repeat("many ", 20)))
	}
	b.apply(ix, b.payload(docs...))
	b.apply(ix, update(t, `{"filterableAttributes":["t"]}`))
	v := held(ix.View())
	want := dump(t, v)
	v.Release()
	b.reopen()
	ix = b.c.Get("a")
	for _, bytes := range []int64{0, 4096} {
		if err := os.Truncate(path.Join(ix.dir, b.filesOf(ix, colSuffix)[0]), bytes); err != nil {
			t.Fatal(err)
		}
		b.c.inspect(t.Context(), 0)
		for n := len(b.c.suspects); n > 0; n-- {
			if !b.c.rebuildColumns(t.Context(), <-b.c.suspects) {
				t.Errorf("%d bytes: columns are not rebuilt", bytes)
			}
		}
		v := held(ix.View())
		if got := dump(t, v); got != want {
			t.Errorf("%d bytes: the rebuilt columns differ:\n%s", bytes, firstDifference(got, want))
		}
		v.Release()
	}
	if aside, segments := b.c.Damages(); len(aside)+len(segments) > 0 {
		t.Errorf("quarantined %v, damaged segments %v", aside, segments)
	}
}

// replacesOpen skips a test of replacing mapped columns where a mapped file cannot be replaced.
func replacesOpen(t *testing.T) {
	if !vfs.ReplacesOpen {
		t.Skip("this system cannot replace a mapped file")
	}
}

// flipSection flips a bit of a section of a file in place, at the given fraction of the section.
func flipSection(t *testing.T, name, section string, part float64) {
	t.Helper()
	content, err := vfs.ReadFile(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	footer := content[len(content)-64:]
	at := -1
	le := binary.LittleEndian
	for e := content[le.Uint64(footer) : len(content)-64]; len(e) >= 32; e = e[32:] {
		if string(e[:4]) == section {
			at = int(le.Uint64(e[8:]) + uint64(part*float64(le.Uint64(e[16:]))))
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{content[at] ^ 1}, int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCopiesHaveColumns checks that a copy of the indexes has the columns, and that a copy started before the change has none of them.
func TestCopiesHaveColumns(t *testing.T) {
	b, ix := withColumns(t)
	defer func() { b.close() }()
	before, err := b.c.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	defer before.Release()
	b.apply(ix, update(t, `{"sortableAttributes":["id"]}`))
	now, err := b.c.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	defer now.Release()
	for _, c := range []struct {
		frozen *Frozen
		files  int
	}{{before, 2}, {now, 4}} {
		copied := b.copied(c.frozen)
		if columns := len(copied.filesOf(copied.c.Get("a"), colSuffix)); columns != c.files {
			t.Errorf("copied %d files of columns, want %d", columns, c.files)
		}
		v := held(copied.c.Get("a").View())
		if got, want := dump(t, v), dump(t, held(c.frozen.View(0))); got != want {
			t.Errorf("the copy differs:\n%s", firstDifference(got, want))
		}
		v.Release()
		copied.close()
	}
}

// TestFilesOfColumnsAreBounded checks that each change adds a file up to a bound, after which the segments are rewritten.
func TestFilesOfColumnsAreBounded(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	var doc strings.Builder
	var fields []string
	for i := range maxColumnFiles + 3 {
		fmt.Fprintf(&doc, `,"f%d":%d`, i, i)
	}
	b.apply(ix, b.payload(`{"id":1`+doc.String()+`}`))
	for i := range maxColumnFiles + 3 {
		fields = append(fields, fmt.Sprintf(`"f%d"`, i))
		b.apply(ix, update(t, `{"sortableAttributes":[`+strings.Join(fields, ",")+`]}`))
		if n := len(b.filesOf(ix, colSuffix)); n != (i+1)%(maxColumnFiles+1) {
			t.Errorf("%d files of columns after %d changes", n, i+1)
		}
	}
	b.checkFresh(ix)
}

// TestColumnsInLittleMemory checks that columns too large for the memory together are read one after the other, into one file.
func TestColumnsInLittleMemory(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingMemory: 1})
	defer b.close()
	ix := b.create("a")
	r := rand.New(rand.NewPCG(4, 4))
	var docs []string
	for i := range 5 * chunkDocuments {
		docs = append(docs, randomDoc(r, fmt.Sprint("d", i)))
	}
	b.apply(ix, b.payload(docs...))
	var log vfs.Log
	b.c.options.FS = vfs.Hook(b.fs, log.Hook)
	segments := len(b.filesOf(ix, segSuffix))
	b.apply(ix, update(t, `{"filterableAttributes":["n","tags","maybe","sub"],"sortableAttributes":["title"]}`))
	if n := len(b.filesOf(ix, colSuffix)); n != segments {
		t.Errorf("%d files of columns beside %d segments", n, segments)
	}
	b.checkFresh(ix)
}

// TestAChangeOfColumnsCanBeCanceled checks that a change that is canceled before its commit leaves nothing in memory or on disk.
func TestAChangeOfColumnsCanBeCanceled(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 2})
	defer b.close()
	ix := b.create("a")
	for part := range 3 {
		var docs []string
		for i := range 3 * chunkDocuments {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"red %d"}`, 10_000*part+i, i))
		}
		b.apply(ix, b.payload(docs...))
	}
	before := list(t, b.fs, ix.dir)
	for steps := range 6 {
		ctx, cancel := context.WithCancel(context.Background())
		seen := 0
		b.batch++
		_, err := ix.Apply(ctx, b.batch, []Op{update(t, `{"filterableAttributes":["t"]}`)}, func(level int, s Step) {
			if s.Name == "document" {
				if seen++; seen > steps {
					cancel()
				}
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("canceled after %d steps: %v", steps, err)
		}
		if got := list(t, b.fs, ix.dir); !slices.Equal(got, before) {
			t.Errorf("files %v, before %v", got, before)
		}
	}
	v := held(ix.View())
	defer v.Release()
	if len(v.Segments[0].ColumnFields()) > 0 {
		t.Error("a canceled change has an effect")
	}
	b.apply(ix, update(t, `{"filterableAttributes":["t"]}`))
	b.checkFresh(ix)
}

// TestAttributesInAnyOrder adds and removes attributes in random order, between changes of documents and merges. The index must equal one
// that had the attributes from the start.
func TestAttributesInAnyOrder(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 1 + r.IntN(3), MaxIndexingMemory: int64(1 + r.IntN(2)<<28)})
			defer func() { b.close() }()
			ix := b.create("a")
			attributes := []string{"n", "tags", "maybe", "sub", "sub.a", "title", "_geo", "_geojson", "own1", "own2", "n.of.it"}
			beside, rows := 0, 0
			for range 60 {
				switch r.IntN(6) {
				case 0, 1, 2:
					chosen := func() string {
						r.Shuffle(len(attributes), func(i, j int) { attributes[i], attributes[j] = attributes[j], attributes[i] })
						quoted := []string{}
						for _, a := range attributes[:r.IntN(5)] {
							quoted = append(quoted, fmt.Sprintf("%q", a))
						}
						return strings.Join(quoted, ",")
					}
					kind := []string{"filterableAttributes", "sortableAttributes"}[r.IntN(2)]
					ops := []Op{update(t, fmt.Sprintf(`{%q:[%s]}`, kind, strings.ReplaceAll(chosen(), `"_geojson"`, `"n"`)))}
					if r.IntN(3) == 0 {
						ops = append(ops, b.payload(randomDoc(r, fmt.Sprint("d", r.IntN(40)))), DeleteDocuments{[]string{fmt.Sprint("d", r.IntN(40))}})
					}
					b.apply(ix, ops...)
				case 3:
					b.reopen()
					ix = b.c.Get("a")
				case 4:
					b.compact(ix)
				default:
					var docs, gone []string
					for range 1 + r.IntN(20) {
						docs = append(docs, randomDoc(r, fmt.Sprint("d", r.IntN(40))))
						gone = append(gone, fmt.Sprint("d", r.IntN(40)))
					}
					b.apply(ix, AddDocuments{Payload: b.payload(docs...).Payload, PrimaryKey: "id"}, DeleteDocuments{gone[:r.IntN(len(gone))]})
				}
				v := held(ix.View())
				for i, l := range v.Segments {
					beside += len(v.beside[i])
					rows += l.Rows()
				}
				v.Release()
				if r.IntN(4) == 0 && ix.UID() == "a" {
					b.checkFresh(ix)
				}
			}
			b.checkFresh(ix)
			if beside == 0 || rows == 0 {
				t.Errorf("the test saw %d files of columns, %d rows; want some", beside, rows)
			}
		})
	}
}

// TestColumnsAreRebuiltBesideWritesAndReaders damages columns while documents are written, segments merged and views held. Every view must
// return the right values.
func TestColumnsAreRebuiltBesideWritesAndReaders(t *testing.T) {
	replacesOpen(t)
	t.Chdir(t.TempDir())
	b := newBed(t, vfs.OS, Options{})
	defer b.close()
	ix := b.create("a")
	add := func(from, to int) {
		var docs []string
		for i := from; i < to; i++ {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"n":%d,"t":"%d of %s"}`, i, i, i, strings.Repeat("many ", 20)))
		}
		b.apply(ix, b.payload(docs...))
	}
	add(0, 300)
	b.apply(ix, update(t, `{"filterableAttributes":["t"]}`))
	stop := make(chan struct{})
	var others sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(stop)
		others.Wait()
	})
	defer end()
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			case s := <-b.c.suspects:
				b.c.rebuildColumns(t.Context(), s)
			}
		}
	})
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				v, err := ix.View()
				if err != nil {
					t.Error(err)
					return
				}
				err = mapped.Guard(func() error {
					for i, l := range v.Segments {
						if c := l.Column(columnOf(t, v, "t")); c == nil || c.Strings() != l.Rows() {
							t.Errorf("segment %d has the column %v of %d rows", i, c, l.Rows())
						}
					}
					return nil
				})
				if err != nil && !apierr.IsCorruption(err) {
					t.Error(err)
				}
				v.Release()
			}
		})
	}
	flipped := 0
	for round := 0; round < 12 || flipped < 4 && round < 60; round++ { // in some rounds merges have left no file
		var names []string
		v := held(ix.View())
		for _, f := range v.files {
			for _, c := range f.columnFiles() {
				names = append(names, c.Name())
			}
		}
		v.Release()
		if len(names) > 0 {
			flipSection(t, names[round%len(names)], []string{"cols", "cold"}[round%2], 0.5)
			b.c.inspect(t.Context(), 0)
			flipped++
		}
		add(200*round, 200*round+250)
		if round%3 == 0 {
			b.apply(ix, update(t, `{"filterableAttributes":["n"]}`))
			b.apply(ix, update(t, `{"filterableAttributes":["n","t"]}`))
		}
		if _, err := ix.compactOnce(t.Context(), b.c.compactor.plan, -1, 1<<40, unthrottled); err != nil && !apierr.IsCorruption(err) {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		b.c.inspect(t.Context(), 0)
		if _, damaged := b.c.Damages(); len(damaged) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the damage is not repaired")
		}
	}
	if flipped < 4 {
		t.Errorf("only %d files were damaged", flipped)
	}
	end()
	b.checkFresh(ix)
}

// TestColumnsAreRebuiltAfterAPowerCut fails the power or the disk at each step of a rebuild. The reopened index must return
// the same values.
func TestColumnsAreRebuiltAfterAPowerCut(t *testing.T) {
	b, ix := withColumns(t)
	b.apply(ix, update(t, `{"filterableAttributes":["n","t"],"sortableAttributes":["id"]}`))
	b.apply(ix, DeleteDocuments{[]string{"2"}})
	v := held(ix.View())
	want := dump(t, v)
	v.Release()
	names := b.filesOf(ix, colSuffix)
	for _, name := range names[1:] {
		if err := b.fs.Remove(path.Join(ix.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.fs.SyncDir(ix.dir); err != nil {
		t.Fatal(err)
	}
	lost := b.fs.(*vfs.MemFS).CrashClone(nil)
	b.close()
	check := func(fs *vfs.MemFS, when string) {
		a := &bed{t: t, fs: fs, options: b.options}
		a.options.FS = fs
		a.open()
		defer a.close()
		ix := a.c.Get("a")
		if ix == nil {
			t.Fatalf("%s: the index is quarantined", when)
		}
		v := held(ix.View())
		defer v.Release()
		if got := dump(t, v); got != want {
			t.Errorf("%s: the rebuilt columns differ:\n%s", when, firstDifference(got, want))
		}
		if got := a.filesOf(ix, colSuffix); !slices.Equal(got, names) {
			t.Errorf("%s: columns %v, want %v", when, got, names)
		}
	}
	steps := 0
	for step := 1; ; step++ {
		fs := lost.CrashClone(nil)
		n := 0
		var clones []*vfs.MemFS
		a := &bed{t: t, fs: fs, options: b.options}
		a.options.FS = vfs.Hook(fs, func(op vfs.Op) error {
			if !op.Kind.Changes() {
				return nil
			}
			if n++; n != step {
				return nil
			}
			for seed := range uint64(3) {
				clones = append(clones, fs.CrashClone(rand.New(rand.NewPCG(seed, uint64(step)))))
			}
			return syscall.EIO
		})
		a.open()
		ix := a.c.Get("a")
		if v, err := ix.View(); err == nil {
			v.Release()
		} else if lasting(err) {
			t.Errorf("step %d: %v", step, err)
		}
		a.close()
		if n < step {
			steps = step - 1
			break
		}
		for i, c := range clones {
			check(c, fmt.Sprintf("power cut %d at step %d", i, step))
		}
		check(fs, fmt.Sprintf("step %d failed", step))
	}
	if steps < 3*5 {
		t.Errorf("only %d steps", steps)
	}
}
