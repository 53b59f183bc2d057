package consensus

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/hashicorp/raft"

	"svc/internal/vfs"
)

// Found creates the files of the first member of a group, with the data directory as it is. Call it before Open.
func Found(fsys vfs.FS, dir, id, addr string) error {
	dir = path.Clean(filepath.ToSlash(dir))
	return restart(fsys, dir, &note{Index: 1, Term: 1, ConfiguredAt: 1, Configuration: raft.Configuration{
		Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(addr)}},
	}})
}

// Founded reports whether a directory has the files of a node that belongs to a group.
func Founded(fsys vfs.FS, dir string) (bool, error) {
	n, err := openNotes(fsys, path.Join(dir, snapshotFile))
	if err != nil {
		return false, err
	}
	return n.kept != nil, nil
}

// Remembers reports whether a directory has the term and the vote of a node. A node without them has never run, or could vote twice in
// a term.
func Remembers(fsys vfs.FS, dir string) (bool, error) {
	_, err := fsys.Stat(path.Join(path.Clean(filepath.ToSlash(dir)), stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// restart makes the log of the node in a directory begin after a note.
func restart(fsys vfs.FS, dir string, n *note) error {
	if err := vfs.MakeDir(fsys, dir); err != nil {
		return err
	}
	log, err := openLog(fsys, dir, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(log.Reset(n.Index+1), log.Close()); err != nil {
		return err
	}
	st, err := openStable(fsys, path.Join(dir, stateFile))
	if err != nil {
		return err
	}
	if was, err := st.GetUint64([]byte(termKey)); err != nil || was < n.Term {
		if err := errors.Join(err, st.SetUint64([]byte(termKey), n.Term)); err != nil {
			return err
		}
	}
	return (&notes{fs: fsys, name: path.Join(dir, snapshotFile)}).keep(n)
}
