package index

import (
	"slices"
	"testing"

	"svc/internal/vfs"
)

// readSegments returns, by segment, whether it was read ahead, and whether the view knows.
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

// Segments are read ahead when they are new, when the start opens them, and when somebody takes a view to search, but not for looks,
// inspections, copies, statistics, plain views and writes.
func TestWhoReadsAhead(t *testing.T) {
	b := manyIndexes(t, vfs.NewMem(), 2, Options{keptLoaded: 1})
	defer func() { b.close() }()
	ix := b.c.Get("i0")
	want := func(what string, want ...bool) {
		t.Helper()
		if got := readSegments(t, ix); !slices.Equal(got, want) {
			t.Errorf("%s: segments were read ahead: %v, want %v", what, got, want)
		}
	}
	b.c.look(t.Context())
	want("a look", false, false)
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
	if !ix.evict() {
		t.Fatal("it is not evicted")
	}
	want("opened again", false, false, false)
	if _, _, err := ix.Compact(t.Context(), b.batch, nil); err != nil {
		t.Fatal(err)
	}
	want("a merge", true)

	b.options.keptLoaded = 2
	b.reopen()
	ix = b.c.Get("i1")
	want("the start", true, true)
}
