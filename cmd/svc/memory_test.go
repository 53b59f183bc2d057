package main

import (
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
