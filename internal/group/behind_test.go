package group

import (
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestAVoterStopsWaitingToCatchUp checks when a voter that may be behind answers reads all the same: after no leader was heard for a
// while, or after changes failed for a while.
func TestAVoterStopsWaitingToCatchUp(t *testing.T) {
	t.Parallel()
	const long = toldTime + time.Second
	for _, tt := range []struct {
		silent, failing time.Duration
		want            bool
	}{{0, 0, true}, {time.Second, time.Second, true}, {long, 0, false}, {0, long, false}, {long, long, false}} {
		if got := awaited(tt.silent, tt.failing); got != tt.want {
			t.Errorf("awaited(%v, %v) = %v, want %v", tt.silent, tt.failing, got, tt.want)
		}
	}
	v := &Voter{o: VoterOptions{Logger: slog.New(slog.DiscardHandler)}, changed: make(chan struct{})}
	v.failed(errSum)
	since := v.troubled
	v.failed(errLapsed(""))
	if since.IsZero() || !v.troubled.Equal(since) {
		t.Errorf("troubled is %v after the first failure, %v after the second", since, v.troubled)
	}
	if v.failed(nil); !v.troubled.IsZero() {
		t.Errorf("troubled is %v after a success", v.troubled)
	}
	v.failed(errSum)
	if v.reach(1); !v.troubled.IsZero() {
		t.Errorf("troubled is %v after a change was applied", v.troubled)
	}
	if v.failed(errSum); v.troubled.IsZero() {
		t.Error("troubled is zero after another failure")
	}
}

// TestBehind checks that a restarted voter reports that it is behind until it has nearly all changes that the others accepted meanwhile.
// Its first message from the leader does not say how far that is.
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
	within(t, "it has caught up again", func() bool { return !e.v.Behind() })
	if at := e.v.Position().Index; at+caughtLag < last {
		t.Errorf("the voter reports that it has caught up at %d, the others were at %d", at, last)
	}
}
