package group

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"

	"svc/internal/consensus"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// stopped opens the data directory of a voter that does not run.
func stopped(fsys vfs.FS, dir string) (*Voter, error) {
	dir = path.Clean(filepath.ToSlash(dir))
	id, err := ReadIdentity(fsys, dir)
	if err != nil {
		return nil, err
	}
	if id.Role != RoleVoter {
		return nil, fmt.Errorf("%s belongs to a %s of the group %q, and not to a voter", dir, id.Role, id.Name)
	}
	v := &Voter{o: VoterOptions{FS: fsys, Dir: dir, Name: id.Name, level: proposalVersion, Logger: slog.New(slog.DiscardHandler)}, id: *id}
	v.position = positions{fs: fsys, name: v.path(positionFile)}
	v.reader = &Reader{o: ReaderOptions{FS: fsys, Dir: dir, Name: id.Name, Logger: v.o.Logger}, changed: make(chan struct{}), id: v.id, position: v.position}
	if err := v.reader.Replace(); err != nil { // a copy that was complete when the voter was killed
		return nil, err
	}
	v.id = v.reader.id
	ok, err := v.recall()
	if err != nil {
		return nil, err
	}
	if !ok || v.id.Group == "" || v.id.Founds {
		return nil, fmt.Errorf("%s has no data of a group yet", dir)
	}
	return v, v.reader.position.close()
}

// Rejoin turns the data directory of a stopped voter into that of a new member, which joins the group again. It is for a voter whose
// log is damaged or was restored from a backup, or that the group has removed. Files that the group still has are not copied again.
func Rejoin(fsys vfs.FS, dir string) (*Identity, error) {
	dir = path.Clean(filepath.ToSlash(dir))
	id, err := ReadIdentity(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("cannot have %s join again: %w", dir, err)
	}
	if id.Role != RoleVoter {
		return nil, fmt.Errorf("cannot have %s join again: it belongs to a %s of the group %q, and not to a voter", dir, id.Role, id.Name)
	}
	again := &Identity{Name: id.Name, Member: newID(), Role: RoleVoter, Term: 1, Rejoins: true}
	// The new id comes first: with it, no member counts a remaining vote of the former member.
	if err := again.write(fsys, dir); err != nil {
		return nil, err
	}
	return again, again.forget(fsys, dir)
}

// forget removes what a member that joins again has promised in its former life.
func (id *Identity) forget(fsys vfs.FS, dir string) error {
	for _, name := range []string{positionFile, ballotDir, spoolDir, joinDir, replaceFile} {
		if err := fsys.RemoveAll(path.Join(dir, name)); err != nil {
			return fmt.Errorf("cannot remove %s of the former member: %w", name, err)
		}
	}
	return fsys.SyncDir(path.Join(dir, workDir))
}

// Recovery is what Recover finds.
type Recovery struct {
	Name     string
	Position Position // the last change that the directory has
	Applied  uint64   // changes up to this one were made before
	Elected  uint64   // the term of elections of the last entry; 0 after the directory was changed
}

// Recover turns the data directory of a stopped voter into that of the only voter of a new group, which has all changes that this
// member has. It is for a group that has lost a majority of its voters for good. A change that only lost members have is lost. If
// really is false, Recover only completes a complete copy, and payloads that a power failure has damaged, and returns how far the
// directory is. The former members cannot talk to the new group: see Rejoin.
func Recover(fsys vfs.FS, dir, addr string, really bool) (*Recovery, error) {
	v, err := stopped(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("cannot recover %s: %w", dir, err)
	}
	r := &Recovery{Name: v.id.Name, Position: v.pos, Applied: v.durable.Load()}
	if !really {
		var last uint64
		r.Elected, last, err = consensus.Newest(fsys, v.path(ballotDir))
		r.Position.Index = max(last, r.Applied)
		return r, err
	}
	if err := v.recover(addr); err != nil {
		return nil, fmt.Errorf("cannot recover %s: %w", dir, err)
	}
	r.Position = v.pos
	return r, nil
}

// recover makes this voter the only one of a new group. It records each step in GROUP before it does it, so that an interrupted call
// can be repeated.
func (v *Voter) recover(addr string) error {
	if !v.id.Recovers {
		// Members that come back must not elect a leader of the former group that this one would follow.
		v.id.Group, v.id.Recovers, v.id.Lapsed = newID(), true, false
		if err := v.id.write(v.o.FS, v.o.Dir); err != nil {
			return err
		}
	}
	var err error
	if v.spool, err = openSpool(v.o.FS, v.path(spoolDir)); err != nil {
		return err
	}
	if err := v.save(); err != nil { // the log is cut
		return err
	}
	d := standby.Open(standby.Options{FS: v.o.FS, Dir: v.o.Dir, Logger: v.o.Logger})
	last, err := consensus.Recover(v.o.FS, v.path(ballotDir), v.id.Member, addr, v.durable.Load(), func(e consensus.Entry) error {
		do := func() error { return v.keep(e.Index) }
		if e.Data != nil {
			do = func() error { return v.make(d, &e) }
		}
		if err := do(); err != nil {
			return err
		}
		return v.save()
	})
	if err := errors.Join(err, d.Close(), v.position.close()); err != nil {
		return err
	}
	// Positions of the former group are of another history.
	v.pos = Position{Term: v.pos.Term, Run: v.pos.Run + 1, Index: last}
	if err := errors.Join(v.position.restart(v.pos), v.position.close()); err != nil {
		return err
	}
	v.id.Recovers = false
	return v.id.write(v.o.FS, v.o.Dir)
}
