package group

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"svc/internal/vfs"
)

// TestAReaderOfVoters follows three voters over the loss of their leader and over a restart of the reader. The reader copies the data only
// once.
func TestAReaderOfVoters(t *testing.T) {
	t.Parallel()
	all := newElectors(t, 3)
	voting(t, all, 3)
	accept(t, all, "a.json", []byte("0"))
	f := newFollower(t, &host{}, func(o *ReaderOptions) {
		o.Join = nil
		for _, e := range all {
			o.Join = append(o.Join, e.o.Addr)
		}
	})
	has := func(name string, want []byte) {
		t.Helper()
		within(t, "the reader has "+name, func() bool {
			got, err := os.ReadFile(path.Join(f.o.Dir, name))
			return err == nil && bytes.Equal(got, want)
		})
	}
	has("a.json", []byte("0"))
	told := newFollower(t, &host{}, func(o *ReaderOptions) { o.Join = []string{next(all, leaderOf(t, all)).o.Addr} })
	within(t, "a reader that is told who leads has data", func() bool { return !told.r.Empty() })
	told.stop()
	for _, size := range []int{10, maxData + 1, 3 << 20} { // a change too large for the log travels as a file
		data := bytes.Repeat([]byte{byte(size)}, size)
		accept(t, all, "b.json", data)
		has("b.json", data)
	}
	l := leaderOf(t, all)
	within(t, "the leader lists the reader", func() bool {
		for _, m := range leaderOf(t, all).v.Status().Members {
			if m.Role == RoleReader && m.Member == f.r.Status().Member && m.State == StateFollows && m.Lag != nil && !m.Votes {
				return true
			}
		}
		return false
	})
	within(t, "what was copied for the reader is removed", func() bool {
		_, err := os.Stat(path.Join(l.o.Dir, stateDir(f.r.Status().Member)))
		return errors.Is(err, os.ErrNotExist)
	})
	refused := new(RefusedError)
	if err := f.r.TakeOver(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "elect") {
		t.Errorf("TakeOver of a reader of voters: %v", err)
	}
	away := new(awayError)
	if _, err := f.r.client.read(t.Context(), http.MethodPost, pathJoin, nil, maxMessage); !errors.As(err, &away) || away.status != http.StatusForbidden {
		t.Errorf("a request of a reader to become a voter: %v", err)
	}

	leaderOf(t, all).stop()
	accept(t, all, "c.json", []byte("1"))
	has("c.json", []byte("1"))
	f.stop()
	accept(t, all, "c.json", []byte("2"))
	f.start()
	if !f.r.FollowsVoters() {
		t.Error("the reader does not know that it follows voters")
	}
	has("c.json", []byte("2"))
	for _, e := range all {
		if e.v == nil {
			e.start()
		}
	}
	accept(t, all, "c.json", []byte("3"))
	has("c.json", []byte("3"))
	within(t, "the reader is where the leader is", func() bool {
		return f.r.Position() == leaderOf(t, all).v.Position()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if age, known := f.r.Staleness(); known && age < 10*time.Second {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the age of the data is unknown")
		}
	}
	f.stop()
	if f.joined > 0 {
		t.Errorf("the data were copied again %d times", f.joined)
	}
}

// TestUnfetchedImagesExpire checks that the files of an image are removed when its member has fetched none of them for a while.
func TestUnfetchedImagesExpire(t *testing.T) {
	t.Parallel()
	v := &Voter{o: VoterOptions{FS: vfs.NewMem(), Dir: "data", Logger: slog.New(slog.DiscardHandler)}, states: map[string]time.Time{}}
	for _, id := range []string{"gone", "fetches"} {
		if err := v.o.FS.MkdirAll(v.path(pinnedDir(id))); err != nil {
			t.Fatal(err)
		}
		v.fetches(id, true)
	}
	v.fetches("other", false) // fetches files of an entry, not of an image
	v.states["gone"] = v.states["gone"].Add(-time.Minute)
	v.states["fetches"] = v.states["fetches"].Add(-time.Minute)
	now := time.Now()
	v.fetches("fetches", false)
	v.sweepStates(now.Add(statesPause - time.Second))
	_, gone := v.o.FS.Stat(v.path(stateDir("gone")))
	_, stays := v.o.FS.Stat(v.path(pinnedDir("fetches")))
	if !errors.Is(gone, os.ErrNotExist) || stays != nil || len(v.states) != 1 {
		t.Errorf("%v, %v, %v", gone, stays, v.states)
	}
}

// TestEntriesOfVoters requests entries from a leader and from a follower.
func TestEntriesOfVoters(t *testing.T) {
	t.Parallel()
	all := newElectors(t, 1)
	accept(t, all, "a.json", []byte("1"))
	v := leaderOf(t, all).v
	pos := v.Position()
	at := func(index uint64) Position { return Position{pos.Term, pos.Run, index} }
	for _, tt := range []struct {
		after   Position
		entries bool
		status  int
		cut     bool
	}{
		{at(1), true, 0, false},
		{at(pos.Index), false, 0, false},
		{at(pos.Index + 1000), false, http.StatusConflict, false},
		{Position{pos.Term + 1, pos.Run, 1}, false, 0, true},
		{at(0), false, 0, true}, // entry 1 is never stored
	} {
		b, _, err := v.entries(tt.after)
		status := new(statusError)
		switch {
		case tt.cut:
			if !errors.Is(err, ErrCut) {
				t.Errorf("after %v: %v", tt.after, err)
			}
		case tt.status != 0:
			if !errors.As(err, &status) || status.status != tt.status {
				t.Errorf("after %v: %v", tt.after, err)
			}
		case err != nil:
			t.Errorf("after %v: %v", tt.after, err)
		case len(b.Entries) > 0 != tt.entries || b.Run != at(tt.after.Index+1) || b.End < pos.Index:
			t.Errorf("after %v: %d entries of %v to %d", tt.after, len(b.Entries), b.Run, b.End)
		}
		if err == nil {
			if got, e := DecodeBatch(b.Encode()); e != nil || len(got.Entries) != len(b.Entries) {
				t.Errorf("after %v: an entry cannot be decoded: %v", tt.after, e)
			}
		}
	}
	all[0].stop()
	if _, _, err := v.entries(at(1)); err == nil {
		t.Error("a member that does not lead serves entries")
	}
}
