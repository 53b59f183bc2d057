package group

import (
	"errors"
	"os"
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
	release := l.alone(all)
	defer release()
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
	release()
	accept(t, all, "b.json", []byte("3"))
	agree(t, all, "b.json", []byte("3"))
	if s, _ := l.v.node.State(); s.Term == r.term { // else, on a busy machine, the entry may be lost
		agree(t, all, "a.json", []byte("2"))
	}
}

// alone has the other voters answer heartbeats of a leader, and take no changes, until release is called.
func (e *elector) alone(all []*elector) (release func()) {
	for _, o := range all {
		if o != e {
			o.v.spool.mu.Lock()
		}
	}
	return sync.OnceFunc(func() {
		for _, o := range all {
			if o != e {
				o.v.spool.mu.Unlock()
			}
		}
	})
}

// TestFilesStayForTheirEntry checks that the spool keeps the files of an entry that is in the log, and not committed, when the voter has
// made the change whose index was the guess for that entry. Nobody waits for the entry any more.
func TestFilesStayForTheirEntry(t *testing.T) {
	all := newElectors(t, 3)
	voting(t, all, 3)
	accept(t, all, "a.json", []byte("1"))
	l := leaderOf(t, all)
	r := l.reign()
	if r == nil {
		t.Skip("the lead was lost on a busy machine")
	}
	const name = "tasks/payloads/large"
	if err := os.WriteFile(path.Join(l.o.Dir, name), make([]byte, maxInlineFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := l.v.propose(r, &commit.Change{Kind: commit.Sealed, Name: "b.json", Data: []byte("2"), Files: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	accept(t, all, "a.json", []byte("3"))
	release := l.alone(all)
	defer release()
	last := l.v.node.Last()
	over, done := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := l.v.node.Propose(r.term, p.encode(), over)
		done <- err
	}()
	within(t, "the change is appended, or refused", func() bool { return l.v.node.Last() > last || len(done) > 0 })
	close(over)
	if err := <-done; err == nil {
		t.Error("a change is accepted that no other voter has")
	}
	l.v.spool.mu.Lock()
	for key := range p.keys() {
		if f, ok := l.v.spool.files[key]; l.reign() == r && (!ok || f.index <= last) {
			t.Errorf("the file stays up to entry %d, and its entry is after %d", f.index, last)
		}
	}
	l.v.spool.mu.Unlock()
	release()
	accept(t, all, "c.json", []byte("4"))
	agree(t, all, "c.json", []byte("4"))
	if s, _ := l.v.node.State(); s.Term == r.term { // as above
		agree(t, all, "b.json", []byte("2"))
	}
}

// noChanges is an Applier that expects no changes.
type noChanges struct{}

func (noChanges) Apply(commit.Change, standby.Source) error { return errors.New("a change") }
