package group

import (
	"slices"
	"strconv"
	"testing"
)

// TestBehind: a voter that was started again is behind until it has nearly all that the others accepted meanwhile. What it hears of the
// leader first says nothing of that.
func TestBehind(t *testing.T) {
	t.Parallel()
	all := newElectors(t, 3)
	voting(t, all, 3)
	accept(t, all, "a.json", []byte("before"))
	agree(t, all, "a.json", []byte("before"))
	l := leaderOf(t, all)
	e := all[(slices.Index(all, l)+1)%3]
	within(t, "it has caught up", func() bool { return !e.v.Behind() })
	e.stop()
	for n := range caughtLag + 20 {
		accept(t, all, "a.json", []byte(strconv.Itoa(n)))
	}
	last := leaderOf(t, all).v.Position().Index
	e.start()
	if !e.v.Behind() {
		t.Error("it is not behind when it starts")
	}
	within(t, "it has caught up again", func() bool { return !e.v.Behind() })
	if at := e.v.Position().Index; at+caughtLag < last {
		t.Errorf("it is behind no longer at %d, and the others were at %d", at, last)
	}
}
