package consensus

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"github.com/hashicorp/raft"

	"svc/internal/vfs"
)

// Recover turns the files of a stopped node into those of the only member of a group, whose data directory has the log up to an
// entry. It calls do with the later entries of the log, in order, although it is unknown which of them the lost majority accepted. It
// returns the last entry. An interrupted call can be repeated.
func Recover(fsys vfs.FS, dir, id, addr string, applied uint64, do func(Entry) error) (last uint64, err error) {
	dir = path.Clean(filepath.ToSlash(dir))
	notes, err := openNotes(fsys, path.Join(dir, snapshotFile))
	if err != nil {
		return 0, err
	}
	kept := notes.last()
	switch {
	case kept == nil:
		return 0, errors.New("it belongs to a member that has not joined its group")
	case kept.Index > applied:
		return 0, fmt.Errorf("it has the changes up to %d, and its log begins behind %d: its data are incomplete", applied, kept.Index)
	}
	last, term, err := replay(fsys, dir, applied, do)
	if err != nil {
		return 0, err
	}
	st, err := openStable(fsys, path.Join(dir, stateFile))
	if err != nil {
		return 0, err
	}
	current, err := st.GetUint64([]byte(termKey))
	if err != nil {
		return 0, err
	}
	if last < applied { // the log was cut by a call before
		last = applied
	}
	return last, restart(fsys, dir, &note{Index: last, Term: max(term, kept.Term, current), ConfiguredAt: last, Configuration: raft.Configuration{
		Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(addr)}},
	}})
}

// replay calls do with the entries of a log behind an entry, and returns the last entry and its term.
func replay(fsys vfs.FS, dir string, applied uint64, do func(Entry) error) (last, term uint64, err error) {
	log, err := openLog(fsys, dir, 0)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	last = log.Next() - 1
	from := max(log.First(), applied+1)
	switch {
	case from > last:
		return last, 0, nil
	case from > applied+1:
		return 0, 0, fmt.Errorf("it has the changes up to %d, and its log begins with %d: its data are incomplete", applied, from)
	}
	var bad error
	err = log.Read(from, func(index uint64, b []byte) bool {
		var l raft.Log
		if bad = decodeLog(b, index, &l); bad != nil {
			return false
		}
		term = l.Term
		e := Entry{Index: index, Term: l.Term}
		if l.Type == raft.LogCommand {
			e.Data = l.Data
		}
		bad = do(e)
		return bad == nil
	})
	return last, term, errors.Join(err, bad)
}

// Newest returns the term and the index of the last entry of a stopped node. Of several nodes, the one with the highest term, and among
// equal terms the highest index, has all entries that were committed and that one of them has.
func Newest(fsys vfs.FS, dir string) (term, index uint64, err error) {
	dir = path.Clean(filepath.ToSlash(dir))
	notes, err := openNotes(fsys, path.Join(dir, snapshotFile))
	if err != nil {
		return 0, 0, err
	}
	if kept := notes.last(); kept != nil {
		term, index = kept.Term, kept.Index
	}
	log, err := openLog(fsys, dir, 0)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	last := log.Next() - 1
	if last <= index || last < log.First() {
		return term, index, nil
	}
	var l raft.Log
	err = (&logs{log: log}).GetLog(last, &l)
	return l.Term, last, err
}

// Noted returns the last position that a stopped node noted in its log, or 0 if there is none. It calls each with all changes in the
// log, in order.
func Noted(fsys vfs.FS, dir, id string, each func(Entry) error) (at uint64, err error) {
	log, err := openLog(fsys, path.Clean(filepath.ToSlash(dir)), 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if log.First() == log.Next() {
		return 0, nil
	}
	var bad error
	err = log.Read(log.First(), func(index uint64, b []byte) bool {
		var l raft.Log
		bad = decodeLog(b, index, &l)
		at = max(at, decodePosition(tagOf(id), l.Extensions))
		if bad == nil && l.Type == raft.LogCommand {
			bad = each(Entry{Index: index, Term: l.Term, Data: l.Data})
		}
		return bad == nil
	})
	return at, errors.Join(err, bad)
}
