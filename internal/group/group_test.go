package group

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestReaderHoldsWhatTheWriterHolds joins a reader, follows random changes over restarts of either side, and compares the directories.
func TestReaderHoldsWhatTheWriterHolds(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h := newHost(t, nil)
	for range r.IntN(20) {
		h.step(r)
	}
	f := newFollower(t, h, nil)
	for range 6 {
		for range r.IntN(12) {
			h.step(r)
		}
		switch r.IntN(5) {
		case 0:
			f.stop()
			for range r.IntN(5) {
				h.step(r)
			}
			f.start()
		case 1:
			h.stop()
			h.start()
		case 2:
			f.stop()
			h.stop()
			h.start()
			f.start()
		}
		if r.IntN(2) == 0 {
			f.reach(h)
			f.same(h)
			if t.Failed() {
				t.Fatalf("joined %d times", f.joined)
			}
		}
	}
	f.reach(h)
	f.same(h)
}
