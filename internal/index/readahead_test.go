package index

import (
	"slices"
	"testing"
	"time"

	"svc/internal/vfs"
)

// readSegments returns which segments were read ahead, and checks that the view agrees.
func readSegments(t *testing.T, ix *Index) (files []bool) {
	t.Helper()
	v := held(ix.take())
	defer v.Release()
	for _, f := range v.files {
		files = append(files, f.ahead.Load())
	}
	if cold := slices.Contains(files, false); v.cold.Load() != cold {
		t.Errorf("the view is cold: %v, its segments were read ahead: %v", v.cold.Load(), files)
	}
	return files
}

// TestWhatReadsAhead checks that segments are read ahead when they are new, when the start opens them, and when a view is taken to search.
// Checks, inspections, copies, statistics, plain views and writes do not read ahead.
func TestWhatReadsAhead(t *testing.T) {
	b := manyIndexes(t, vfs.NewMem(), 2, Options{keptLoaded: 1})
	defer func() { b.close() }()
	ix := b.c.Get("i0")
	want := func(what string, want ...bool) {
		t.Helper()
		if got := readSegments(t, ix); !slices.Equal(got, want) {
			t.Errorf("%s: segments were read ahead: %v, want %v", what, got, want)
		}
	}
	b.c.startupScan(t.Context())
	want("a startup scan", false, false)
	b.c.inspect(t.Context(), 0)
	want("an inspection", false, false)
	frozen, err := b.c.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := frozen.Files(0); err != nil {
		t.Fatal(err)
	}
	frozen.Release()
	want("a copy", false, false)
	if _, _, err := ix.Segments(); err != nil {
		t.Fatal(err)
	}
	want("statistics", false, false)
	held(ix.PlainView()).Release()
	want("a plain view", false, false)
	b.apply(ix, b.payload(`{"id":7}`))
	want("a write", false, false, true)
	held(ix.View()).Release()
	want("a search", true, true, true)

	// Operations that change a closed index do not read ahead.
	var before *View
	changes := func(what string, change func() error) {
		t.Helper()
		if !ix.evict() {
			t.Fatalf("before %s the index is not evicted", what)
		}
		before = held(ix.take())
		defer before.Release()
		if err := change(); err != nil {
			t.Fatal(what, err)
		}
		for i, f := range before.files {
			if f.ahead.Load() {
				t.Errorf("%s: segment %d of %d was read ahead", what, i, len(before.files))
			}
		}
	}
	changes("opening", func() error { return nil })
	changes("the primary key", func() error { return ix.SetPrimaryKey("id", b.batch) })
	changes("times", func() error { return ix.SetTimes(time.Unix(1, 0), time.Unix(2, 0)) })
	changes("statistics", func() error {
		ix.current.Load().tally.Store(nil) // as after a start with a manifest of an earlier svc
		_, err := ix.Counts()
		return err
	})
	changes("a filter of another index", func() error {
		views := b.c.Views()
		defer views.Release()
		_, err := views.Find("i0")
		return err
	})
	plan := b.c.compactor.plan
	plan.MinRun = 2
	changes("a merge beside", func() error {
		merged, err := ix.compactOnce(t.Context(), plan, -1, plan.MaxBytes, unthrottled)
		if err == nil && !merged {
			t.Error("nothing was merged")
		}
		return err
	})
	b.apply(ix, b.payload(`{"id":8}`))
	changes("a merge of all", func() error { _, _, err := ix.Compact(t.Context(), b.batch, nil); return err })
	want("a merge", true)

	b.options.keptLoaded = 2
	b.reopen()
	ix = b.c.Get("i1")
	want("the start", true, true)
}
