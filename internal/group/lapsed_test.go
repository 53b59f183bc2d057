package group

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"path"
	"strings"
	"testing"

	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// TestALapsedVoterStaysLapsed checks that a copy which began before the leader declared a voter lapsed does not undo that.
func TestALapsedVoterStaysLapsed(t *testing.T) {
	t.Parallel()
	fsys, dir, id := vfs.NewMem(), "data", Identity{Group: "g", Name: "shop", Member: newID(), Role: RoleVoter, Term: 1}
	v := &Voter{o: VoterOptions{FS: fsys, Dir: dir, Logger: slog.New(slog.DiscardHandler)}, changed: make(chan struct{}), id: id}
	if err := fsys.MkdirAll(v.path(joinDir)); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(replacement{Position: "1.1.5", Group: "g", Term: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := sealedjson.Write(fsys, v.path(replaceFile), replaceVersion, b); err != nil {
		t.Fatal(err)
	}
	v.position = positions{fs: fsys, name: v.path(positionFile)}
	v.reader = &Reader{o: ReaderOptions{FS: fsys, Dir: dir, Logger: v.o.Logger}, changed: make(chan struct{}), id: id, position: v.position}
	v.id.Lapsed = true
	if err := v.Replace(); err != nil {
		t.Fatal(err)
	}
	kept, err := ReadIdentity(fsys, dir)
	if err != nil || !kept.Lapsed || !v.id.Lapsed || v.Position().Index != 5 {
		t.Errorf("%+v, %v, and in memory %+v at %v", kept, err, v.id, v.Position())
	}
}

// TestAVoterWithoutVotesIsRefused checks that a voter that has data, and neither its term nor its vote, does not take part: it could vote
// for a leader that lacks acknowledged changes.
func TestAVoterWithoutVotesIsRefused(t *testing.T) {
	all := newElectors(t, 3)
	voting(t, all, 3)
	accept(t, all, "a.json", []byte("1"))
	agree(t, all, "a.json", []byte("1"))
	e := next(all, leaderOf(t, all))
	e.stop()
	for _, lost := range []string{ballotDir + "/state", ballotDir} {
		if err := e.o.FS.RemoveAll(path.Join(e.o.Dir, lost)); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		v, err := OpenVoter(e.o, l)
		if err != nil {
			t.Fatal(err)
		}
		refused := new(RefusedError)
		if err := v.Enter(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "svc group rejoin") {
			t.Errorf("without %s, the voter enters its group: %v", lost, err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Rejoin(e.o.FS, e.o.Dir); err != nil {
		t.Fatal(err)
	}
	e.start()
	t.Cleanup(e.stop)
	accept(t, all, "b.json", []byte("2"))
	agree(t, all, "b.json", []byte("2"))
}
