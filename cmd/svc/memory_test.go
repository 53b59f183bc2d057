package main

import (
	"runtime/debug"
	"testing"

	"svc/internal/pace"
)

// Memory is given back while somebody searches only after a pause, and not at all while work rests for that.
func TestMemoryIsKeptWhileSomebodySearches(t *testing.T) {
	k := new(memoryKeeper)
	if k.waits(0) {
		t.Error("it waits before any searches are known")
	}
	searches := new(pace.Searches)
	k.heed(searches)
	if k.waits(0) {
		t.Error("it waits while nobody searches")
	}
	searches.Begin()
	if !k.waits(0) || k.waits(searchPause) {
		t.Errorf("somebody searches: it waits %v at once, %v after the pause", k.waits(0), k.waits(searchPause))
	}
	for w := pace.Of(pace.Beside(t.Context(), searches)); w.Yield() == 0; {
	}
	if !k.waits(searchPause) {
		t.Error("it does not wait for work that rests")
	}
	setCrowded(t)
	if k.waits(0) {
		t.Error("it waits although files do not fit into memory")
	}
}

// setCrowded has files not fit into memory until the test ends.
func setCrowded(t *testing.T) {
	before := crowded
	crowded = func() bool { return true }
	t.Cleanup(func() { crowded = before })
}

// The collector learns of a limit at the start and when it changes, and is left alone otherwise.
func TestTheLimitOfMemoryIsFollowed(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	const untouched = 1 << 45 // all limits are far above what tests use, so that garbage is collected no more often
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
			t.Errorf("%s: garbage is collected below %d bytes, want %d", c.name, got, c.want)
		}
	}
}

// Files may use what the program leaves, and a quarter of the memory in any case.
func TestLeftForFiles(t *testing.T) {
	for _, c := range []struct {
		machine int64
		has     uint64
		want    int64
	}{{1000, 0, 1000}, {1000, 600, 400}, {1000, 900, 250}, {1000, 5000, 250}} {
		if got := leftForFiles(c.machine, c.has); got != c.want {
			t.Errorf("%d of %d are used: %d, want %d", c.has, c.machine, got, c.want)
		}
	}
}
