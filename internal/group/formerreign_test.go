package group

import (
	"errors"
	"path"
	"sync"
	"testing"

	"svc/internal/commit"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// TestChangesOfAFormerReign checks that a voter that has lost the lead and leads again proposes nothing from its former reign: such a
// change would undo what another leader has accepted meanwhile. Lead does not notice that the lead was lost, because it waits while an
// image of the directory is taken.
func TestChangesOfAFormerReign(t *testing.T) {
	all := newElectors(t, 3)
	voting(t, all, 3)
	accept(t, all, "a.json", []byte("1"))
	agree(t, all, "a.json", []byte("1"))
	l := leaderOf(t, all)
	other := next(all, l)
	reign := l.reign
	former := reign()
	if former == nil {
		t.Skip("the lead was lost on a busy machine")
	}

	l.v.turn.Lock() // as take does
	waits := make(chan error, 1)
	go func() { waits <- l.write("b.json", []byte("2")) }()
	within(t, "a change is accepted and not made", func() bool {
		s, _ := l.v.node.State()
		return s.Committed > l.v.Position().Index
	})
	hand := func(from, to *elector) {
		t.Helper()
		within(t, "the lead is handed over", func() bool {
			_ = from.v.node.Transfer(to.v.id.Member) // fails while a transfer is under way
			s, _ := to.v.node.State()
			return s.Leads
		})
	}
	hand(l, other)
	within(t, "the other leader accepts a change", func() bool { return other.leads.Load() && other.write("a.json", []byte("new")) == nil })
	hand(other, l)
	noticed, last := reign() != former, l.v.node.Last()
	err := make(chan error, 1)
	go func() { err <- l.write("a.json", []byte("former")) }()
	within(t, "the change is appended, or refused", func() bool { return l.v.node.Last() > last || reign() == nil })
	l.v.turn.Unlock()
	if got := codeOf(<-err); got != "no_writer" {
		t.Errorf("a change of the former reign is answered with %q", got)
	}
	<-waits
	if noticed {
		t.Skip("the lead was lost before on a busy machine")
	}

	accept(t, all, "c.json", []byte("3"))
	agree(t, all, "c.json", []byte("3"))
	for _, e := range all {
		b, err := vfs.ReadFile(e.o.FS, path.Join(e.o.Dir, "a.json"))
		if err != nil || string(b) != "new" {
			t.Errorf("%s has %q, %v: what another leader accepted is lost", e.o.Addr, b, err)
		}
	}
}

// reign returns the present reign of a voter, or nil.
func (e *elector) reign() *reign {
	e.v.mu.Lock()
	defer e.v.mu.Unlock()
	return e.v.reign
}

// TestAReignHasTheChangesOfTheOneBefore checks that a voter whose reign has ended, but not its lead, begins another reign only when its
// directory has the changes that it has proposed: the stores would form changes without them, and these would follow in the log.
func TestAReignHasTheChangesOfTheOneBefore(t *testing.T) {
	all := newElectors(t, 3)
	voting(t, all, 3)
	accept(t, all, "a.json", []byte("1"))
	agree(t, all, "a.json", []byte("1"))
	l := leaderOf(t, all)
	// The others answer heartbeats, and take no changes.
	var release []func()
	for _, e := range all {
		if e != l {
			e.v.spool.mu.Lock()
			release = append(release, sync.OnceFunc(e.v.spool.mu.Unlock))
			defer release[len(release)-1]()
		}
	}
	r, last := l.reign(), l.v.node.Last()
	if r == nil {
		t.Skip("the lead was lost on a busy machine")
	}
	answer := make(chan error, 1)
	go func() { answer <- l.write("a.json", []byte("2")) }()
	within(t, "the change is appended", func() bool { return l.v.node.Last() > last })
	r.end(errors.New("its stores are broken"))
	if err := <-answer; codeOf(err) != "no_writer" {
		t.Fatalf("a change of an ended reign is answered with %v", err)
	}
	s, _ := l.v.node.State()
	if err := l.v.follow(t.Context(), noChanges{}, &s); err != nil && s.Leads {
		t.Errorf("follow returns %v while the change is in the log", err)
	}
	for _, f := range release {
		f()
	}
	accept(t, all, "b.json", []byte("3"))
	agree(t, all, "a.json", []byte("2"))
	agree(t, all, "b.json", []byte("3"))
}

// noChanges is an Applier that expects no changes.
type noChanges struct{}

func (noChanges) Apply(commit.Change, standby.Source) error { return errors.New("a change") }
