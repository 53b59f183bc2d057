package main

import (
	"runtime/debug"
	"testing"

	"svc/internal/pace"
)

// TestMemoryIsKeptDuringSearches checks that during searches memory is released only after a pause, and not at all while work
// pauses for them.
func TestMemoryIsKeptDuringSearches(t *testing.T) {
	k := new(memoryKeeper)
	if k.waits(0) {
		t.Error("waits is true before any search")
	}
	searches := new(pace.Searches)
	k.heed(searches)
	if k.waits(0) {
		t.Error("waits is true without searches")
	}
	searches.Begin()
	if !k.waits(0) || k.waits(searchPause) {
		t.Errorf("during a search: waits = %v at once, %v after the pause", k.waits(0), k.waits(searchPause))
	}
	for w := pace.Of(pace.Beside(t.Context(), searches)); w.Yield() == 0; {
	}
	if !k.waits(searchPause) {
		t.Error("waits is false although work pauses")
	}
	setCrowded(t)
	if k.waits(0) {
		t.Error("waits is true although files do not fit into memory")
	}
}

// setCrowded makes files not fit into memory until the test ends.
func setCrowded(t *testing.T) {
	before := crowded
	crowded = func() bool { return true }
	t.Cleanup(func() { crowded = before })
}

// TestTheLimitOfMemoryIsFollowed checks that the limit of the garbage collector is set at the start and when it changes, and is left
// alone otherwise.
func TestTheLimitOfMemoryIsFollowed(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	const untouched = 1 << 45 // far above the memory of tests, so that no limit causes more collections
	k := new(memoryKeeper)
	for _, c := range []struct {
		name        string
		limit, want int64
	}{
		{"at the start", 100 << 40, 90 << 40},
		{"unchanged", 100 << 40, untouched},
		{"lowered", 50 << 40, 45 << 40},
		{"unchanged after it was lowered", 50 << 40, untouched},
		{"raised", 200 << 40, 180 << 40},
		{"unchanged after it was raised", 200 << 40, untouched},
	} {
		debug.SetMemoryLimit(untouched)
		k.follow(c.limit)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%s: the memory limit is %d bytes, want %d", c.name, got, c.want)
		}
	}
}

// TestLeftForFiles checks that files may use what the program leaves, and a quarter of the memory in any case.
func TestLeftForFiles(t *testing.T) {
	for _, c := range []struct {
		machine int64
		has     uint64
		want    int64
	}{{1000, 0, 1000}, {1000, 600, 400}, {1000, 900, 250}, {1000, 5000, 250}} {
		if got := leftForFiles(c.machine, c.has); got != c.want {
			t.Errorf("%d of %d bytes used: %d, want %d", c.has, c.machine, got, c.want)
		}
	}
}
