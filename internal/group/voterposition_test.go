package group

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"svc/internal/consensus"
	"svc/internal/logstore"
	"svc/internal/vfs"
)

// positioned is a voter with the log up to an entry, on a file system in memory, without goroutines.
type positioned struct {
	*Voter
	t    *testing.T
	mem  *vfs.MemFS
	fail func(vfs.Op) bool // operations that fail; nil: none
}

var errDisk = errors.New("the disk fails")

// newPositioned returns a voter that has founded its group.
func newPositioned(t *testing.T) *positioned {
	t.Helper()
	p := &positioned{t: t, mem: vfs.NewMem()}
	id := Identity{Name: "shop", Group: "g", Member: newID(), Role: RoleVoter, Term: 1}
	p.Voter = p.voter(p.mem, id)
	p.must(vfs.MakeDir(p.mem, "data/"+ballotDir))
	p.must(id.write(p.mem, "data"))
	p.must(consensus.Found(p.mem, p.path(ballotDir), id.Member, "a"))
	at := Position{1, 1, 1}
	p.must(p.position.restart(at))
	p.begins(at)
	return p
}

// voter returns a voter of a directory, without goroutines.
func (p *positioned) voter(mem *vfs.MemFS, id Identity) *Voter {
	v := &Voter{id: id, changed: make(chan struct{})}
	v.o.Dir, v.o.level = "data", proposalVersion
	v.o.FS = vfs.Hook(mem, func(o vfs.Op) error {
		if p.fail != nil && p.fail(o) {
			return errDisk
		}
		return nil
	})
	v.position = positions{fs: v.o.FS, name: v.path(positionFile)}
	return v
}

func (p *positioned) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// make makes the next change like Voter.Do and Voter.make.
func (p *positioned) make() error {
	if err := p.settle(); err != nil {
		return err
	}
	next := p.Position().Index + 1
	p.reach(next)
	return p.keep(next)
}

// left returns the position that a voter finds after a power failure now.
func (p *positioned) left() uint64 {
	p.t.Helper()
	fail := p.fail
	defer func() { p.fail = fail }()
	p.fail = nil
	v := p.voter(p.mem.CrashClone(nil), p.id)
	if ok, err := v.recall(); !ok || err != nil {
		p.t.Fatalf("no position is left: %v", err)
	}
	return v.Position().Index
}

// failing fails operations of these kinds on the file of positions.
func (p *positioned) failing(kinds ...vfs.OpKind) {
	p.fail = func(o vfs.Op) bool {
		for _, kind := range kinds {
			if o.Kind == kind && strings.Contains(o.Name, positionFile) {
				return true
			}
		}
		return false
	}
}

// TestPositionsOfVotersAreDurable checks that the previous position is durable before a change is made, whatever failed before.
func TestPositionsOfVotersAreDurable(t *testing.T) {
	for what, kinds := range map[string][]vfs.OpKind{"a sync": {vfs.OpSync}, "a write": {vfs.OpWrite}, "all": {vfs.OpSync, vfs.OpWrite}} {
		p := newPositioned(t)
		for range 4 {
			p.must(p.make())
		}
		p.failing(kinds...)
		for range 3 { // the voter retries
			if p.make() == nil && p.settle() == nil {
				t.Errorf("%s: nothing failed", what)
			}
			if at, left := p.noted(), p.left(); left < at {
				t.Errorf("%s fails: positions up to %d count as durable, but a power failure leaves %d", what, at, left)
			}
		}
		p.failing()
		for range 3 {
			p.must(p.make())
			if at, left := p.Position().Index, p.left(); left+1 < at {
				t.Errorf("%s failed: a power failure resets the position from %d to %d", what, at, left)
			}
		}
		p.must(p.settle())
		if at, left := p.Position().Index, p.left(); left != at {
			t.Errorf("%s failed: a power failure resets the position from %d to %d", what, at, left)
		}
	}
}

// TestEarlySyncsThatFail checks a failed sync that settleAhead started, whose error has no caller: the next settle must rewrite the file
// before it counts the position as durable.
func TestEarlySyncsThatFail(t *testing.T) {
	p := newPositioned(t)
	p.must(p.make())
	before, at := p.noted(), p.Position().Index
	p.failing(vfs.OpSync)
	p.settleAhead()
	p.running.Wait()
	if n := p.noted(); n != before {
		t.Errorf("the sync failed, but positions up to %d count as durable", n)
	}
	replaced := false
	p.fail = func(o vfs.Op) bool {
		if n := p.noted(); n != before {
			t.Errorf("%s: positions up to %d count as durable too early", o, n)
		}
		replaced = replaced || o.Kind == vfs.OpRename && strings.HasSuffix(o.NewName, positionFile)
		return false
	}
	p.must(p.settle())
	if n, left := p.noted(), p.left(); !replaced || n != at || left != at {
		t.Errorf("settled: file replaced %v, durable up to %d, after a power failure %d, want %d", replaced, n, left, at)
	}

	p.failing()
	p.must(p.make())
	p.closed = true
	p.settleAhead() // Close may have stopped waiting already
	p.running.Wait()
	if n := p.noted(); n != at {
		t.Errorf("a closed voter has settled up to %d", n)
	}
	p.closed = false
	p.settleAhead()
	p.running.Wait()
	if n, left := p.noted(), p.left(); n != at+1 || left != at+1 {
		t.Errorf("up to %d is taken for durable, and a power failure leaves %d, want %d", n, left, at+1)
	}
}

// TestPositionsAreSettledBesideTheNextEntry checks that the position of a change is synced in the background if another entry was appended
// before it. The turn of that entry does not wait for the sync. The last entry leaves its position to the next one.
func TestPositionsAreSettledBesideTheNextEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPositioned(t)
		_, carrier := raft.NewInmemTransport("a")
		var err error
		p.node, err = consensus.Open(t.Context(), consensus.Options{
			FS: p.mem, Dir: p.path(ballotDir), ID: p.id.Member, Carrier: carrier, Applied: p.noted, Logger: slog.New(slog.DiscardHandler),
		})
		p.must(err)
		var s consensus.State
		within(t, "it leads", func() bool {
			s, _ = p.node.State()
			return s.Leads
		})
		data := make([]byte, 18) // a version, the nonce, an entry
		last, err := p.node.Propose(s.Term, data, nil)
		p.must(err)
		p.begins(Position{1, 1, last - 2})
		returned := make(chan struct{})
		p.fail = func(o vfs.Op) bool {
			if o.Kind == vfs.OpSync && strings.HasSuffix(o.Name, positionFile) {
				select {
				case <-returned:
				case <-time.After(time.Second):
					t.Error("the turn waits for the sync")
				}
			}
			return false
		}
		turn := func(index uint64) {
			own := &pending{turn: make(chan struct{}), done: make(chan error, 1)}
			p.pending = map[[16]byte]*pending{{}: own}
			go func() { // as Do does
				<-own.turn
				p.reach(index)
				own.done <- nil
			}()
			p.must(p.takeTurn(&reign{}, &consensus.Entry{Index: index, Data: data}))
		}
		settled := func(want uint64) {
			t.Helper()
			synctest.Wait()
			if n, left := p.noted(), p.left(); n != want || left != want {
				t.Errorf("up to %d is taken for durable, and a power failure leaves %d, want %d", n, left, want)
			}
		}
		turn(last - 1)
		close(returned)
		settled(last - 1)
		turn(last)
		settled(last - 1)
		p.must(p.node.Close())
	})
}

// note durably appends an entry with a noted position, in the format of package consensus.
func (p *positioned) note(log *logstore.Log, at uint64) {
	p.t.Helper()
	own := binary.AppendUvarint(binary.LittleEndian.AppendUint64(nil, xxhash.Sum64String(p.id.Member)), at)
	entry := append([]byte{1, 0, 1, 0, byte(len(own))}, own...) // version, type, term, time
	p.must(log.Append(append(entry, "data"...)))
	p.isDurable(at)
}

func (p *positioned) openLog() *logstore.Log {
	p.t.Helper()
	log, err := logstore.Open(logstore.Options{FS: p.mem, Dir: p.path(ballotDir + "/log")})
	p.must(err)
	return log
}

// TestPositionsThatLeaveTheLogAreDurable checks that a position noted only in the log is in the file before the log is cut.
func TestPositionsThatLeaveTheLogAreDurable(t *testing.T) {
	p := newPositioned(t)
	log := p.openLog()
	leaves := func(at uint64) {
		t.Helper()
		p.must(p.save())
		p.must(log.TruncateBack(log.First()))
		if left := p.left(); left != at {
			t.Errorf("position %d was cut from the log, but a power failure leaves %d", at, left)
		}
	}
	p.must(p.make())
	p.note(log, 2)
	if left := p.left(); left != 2 {
		t.Errorf("the log has noted 2, but a power failure leaves %d", left)
	}
	leaves(2)
	p.reach(3) // the change is applied, and the log notes its position before keep does
	p.note(log, 3)
	leaves(3)
	p.must(p.keep(3))
	p.must(p.make())
	p.note(log, 4)
	p.failing(vfs.OpSync)
	if err := p.save(); !errors.Is(err, errDisk) {
		t.Errorf("entries may leave the log: %v", err)
	}
	p.failing()
	leaves(4)
	p.must(log.Close())

	empty := p.voter(vfs.NewMem(), Identity{})
	p.must(empty.save())
	if _, ok, err := empty.position.read(); ok || err != nil {
		t.Errorf("a directory without data has a position: %v", err)
	}
}

// TestPositionsOfTheLogAreKnown checks that a start uses the larger of the two positions or fails, and that a stop leaves that position in
// the file.
func TestPositionsOfTheLogAreKnown(t *testing.T) {
	p := newPositioned(t)
	p.must(p.make())
	log := p.openLog()
	p.note(log, 2)
	p.must(log.Close())
	p.mem = p.mem.CrashClone(nil)
	for _, kind := range []vfs.OpKind{vfs.OpOpen, vfs.OpRead, vfs.OpList} {
		for _, name := range []string{"/snapshot", "/log"} {
			failed := false
			p.fail = func(o vfs.Op) bool {
				fails := o.Kind == kind && strings.Contains(o.Name, ballotDir+name)
				failed = failed || fails
				return fails
			}
			v := p.voter(p.mem, p.id)
			if _, err := v.recall(); failed && (err == nil || !strings.Contains(err.Error(), errDisk.Error())) {
				t.Errorf("%s of %s fails, but the voter starts at %d: %v", kind, name, v.Position().Index, err)
			}
		}
	}
	p.fail = nil
	v := p.voter(p.mem, p.id)
	if ok, err := v.recall(); !ok || err != nil || v.Position().Index != 2 {
		t.Fatalf("the voter starts at %d: %v, %v", v.Position().Index, ok, err)
	}
	p.must(v.save()) // Close does so
	p.must(v.position.close())
	old := positions{fs: p.mem.CrashClone(nil), name: v.position.name}
	if at, ok, err := old.read(); at.Index != 2 || !ok || err != nil {
		t.Errorf("an earlier version reads %v, %v, %v", at, ok, err)
	}
}

// TestRemovedNamesAreBounded checks that the list of removed payloads stays bounded while no reader reads entries.
func TestRemovedNamesAreBounded(t *testing.T) {
	mem := vfs.NewMem()
	v := &Voter{o: VoterOptions{FS: mem, Dir: "data"}}
	v.feed = &VoterFeed{v: v, removed: make([]string, maxRemoved-1)}
	for _, name := range []string{"data/tasks/payloads/1", "data/tasks/payloads/2"} {
		if err := errors.Join(vfs.MakeDir(mem, "data/tasks/payloads"), vfs.WriteFile(mem, name, nil), toldFS{mem, v}.Remove(name)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(v.feed.removed); n != maxRemoved || v.feed.removed[n-1] != "tasks/payloads/1" {
		t.Errorf("%d names are listed, the last one is %q", n, v.feed.removed[n-1])
	}
}
