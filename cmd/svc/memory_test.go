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
