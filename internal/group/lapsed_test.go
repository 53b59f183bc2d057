package group

import (
	"encoding/json"
	"log/slog"
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
