package group

import (
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestAVoterIsNotBehindForEver: it answers from what it has where no leader says anything, and where changes cannot be made.
func TestAVoterIsNotBehindForEver(t *testing.T) {
	t.Parallel()
	const long = toldTime + time.Second
	for _, tt := range []struct {
		silent, failing time.Duration
		want            bool
	}{{0, 0, true}, {time.Second, time.Second, true}, {long, 0, false}, {0, long, false}, {long, long, false}} {
		if got := awaited(tt.silent, tt.failing); got != tt.want {
			t.Errorf("silent for %v, failing for %v: %v", tt.silent, tt.failing, got)
		}
	}
	v := &Voter{o: VoterOptions{Logger: slog.New(slog.DiscardHandler)}, changed: make(chan struct{})}
	v.failed(errSum)
	since := v.troubled
	v.failed(errLapsed(""))
	if since.IsZero() || !v.troubled.Equal(since) {
		t.Errorf("changes fail since %v, and then since %v", since, v.troubled)
	}
	if v.failed(nil); !v.troubled.IsZero() {
		t.Errorf("changes still fail since %v", v.troubled)
	}
	v.failed(errSum)
	if v.reach(1); !v.troubled.IsZero() {
		t.Errorf("changes fail since %v though one was made", v.troubled)
	}
	if v.failed(errSum); v.troubled.IsZero() {
		t.Error("changes that fail again do not count")
	}
}

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
