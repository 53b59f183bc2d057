package group

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"svc/internal/vfs"
)

const (
	// spoolTime is how long a file stays in the spool after its entry was applied, for members that are behind. A member that comes
	// later copies the data directory.
	spoolTime = 2 * time.Minute
	// spoolBytes bounds the files that stay for them.
	spoolBytes = 1 << 30
	// aheadTime is the minimum time that each file stays. A file may arrive before its entry, whose index was a guess.
	aheadTime = 10 * time.Second
)

// spool keeps the files that entries of a voter's log name, by size and checksum: those of entries not applied yet and, for some
// time, those of entries that other members may lack. A file that is also in the data directory takes its space once.
//
// A file gets its name when it is complete and its bytes are synced. The name is durable after sync, which must come before an entry
// that names the file is appended to the log. After a failed sync of the directory, a later sync says nothing about the earlier
// names. So sync then removes the files whose names it was to make durable, and they are sent again.
type spool struct {
	fs  vfs.FS
	dir string

	mu    sync.Mutex
	files map[string]spooled // by key
	lost  map[string]bool    // keys of files that drop could not remove

	named   atomic.Uint64 // counts names that were added
	syncing sync.Mutex    // held while names are made durable
	durable atomic.Uint64 // up to which of named they are
}

type spooled struct {
	index uint64 // of the last entry that names it
	size  int64
	at    time.Time
	name  uint64 // the count of named when its name was added
}

// fileKey returns the name of a file, derived from its content.
func fileKey(size int64, sum xxh3.Uint128) string {
	b := sum.Bytes()
	return hex.EncodeToString(b[:]) + "-" + strconv.FormatInt(size, 10)
}

// parseKey reads what fileKey returns.
func parseKey(key string) (size int64, sum xxh3.Uint128, ok bool) {
	digits, text, _ := strings.Cut(key, "-")
	b, err := hex.DecodeString(digits)
	size, err2 := strconv.ParseInt(text, 10, 64)
	if err != nil || err2 != nil || len(b) != 16 || size < 0 {
		return 0, sum, false
	}
	sum = xxh3.Uint128{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}
	return size, sum, fileKey(size, sum) == key
}

// openSpool opens the spool of a directory, and removes what a crash has left of files.
func openSpool(fsys vfs.FS, dir string) (*spool, error) {
	s := &spool{fs: fsys, dir: dir, files: map[string]spooled{}, lost: map[string]bool{}}
	if err := vfs.MakeDir(fsys, dir); err != nil {
		return nil, err
	}
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		size, _, ok := parseKey(name)
		if ok {
			info, err := fsys.Stat(path.Join(dir, name))
			if err != nil {
				return nil, err
			}
			ok = info.Size() == size // former versions wrote some files under their names
		}
		if ok {
			s.files[name] = spooled{size: size, at: time.Now()}
		} else if err := fsys.Remove(path.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return s, fsys.SyncDir(dir) // a process that was killed may have left names that are not durable
}

// keep has all files stay for entries up to an index.
func (s *spool) keep(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, f := range s.files {
		f.index = max(f.index, index)
		s.files[key] = f
	}
}

func (s *spool) path(key string) string { return path.Join(s.dir, key) }

// temp returns a name for a file that is not whole yet. A start removes what stays under such names.
func (s *spool) temp(key string) string { return s.path(key) + "." + newID() + vfs.TempSuffix }

// add gives a complete file its name, for entries from an index on. If the same file was added meanwhile, that one stays and temp is
// removed. The name and its record change together, because sweep may run at the same time.
func (s *spool) add(temp, key string, size int64, index uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost[key] { // a rename does nothing if both are names of one file
		if err := s.fs.Remove(s.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, s.fs.RemoveAll(temp))
		}
		delete(s.lost, key)
	}
	f, ok := s.files[key]
	if ok {
		_ = s.fs.Remove(temp) // the next start does it otherwise
	} else if err := s.fs.Rename(temp, s.path(key)); err != nil {
		return errors.Join(err, s.fs.RemoveAll(temp))
	} else {
		f.name = s.named.Add(1)
	}
	s.files[key] = spooled{max(index, f.index), size, time.Now(), f.name}
	return nil
}

// has reports whether a file is here, and has it stay for an entry.
func (s *spool) has(key string, index uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[key]
	if ok {
		f.index, f.at = max(index, f.index), time.Now()
		s.files[key] = f
	}
	return ok
}

// link adds a file of the data directory, for entries from an index on. The name is durable after sync.
func (s *spool) link(name, key string, size int64, index uint64) error {
	if s.has(key, index) {
		return nil
	}
	temp := s.temp(key)
	if err := linkOrCopy(s.fs, name, temp); err != nil {
		return errors.Join(err, s.fs.RemoveAll(temp))
	}
	return s.add(temp, key, size, index)
}

// put adds a file with its content. The name is durable after sync.
func (s *spool) put(key string, content []byte, index uint64) error {
	if s.has(key, index) {
		return nil
	}
	temp := s.temp(key)
	if err := vfs.WriteFile(s.fs, temp, content); err != nil {
		return errors.Join(err, s.fs.RemoveAll(temp))
	}
	return s.add(temp, key, int64(len(content)), index)
}

// receive adds a file that another member sends, durably.
func (s *spool) receive(key string, index uint64, body io.Reader) error {
	size, sum, ok := parseKey(key)
	if !ok {
		return refused(http.StatusBadRequest, "%.100q names no file", key)
	}
	temp := s.temp(key)
	out, err := s.fs.Create(temp)
	if err != nil {
		return err
	}
	h := xxh3.New()
	n, err := io.CopyBuffer(io.MultiWriter(writerOnly{out}, h), readerOnly{io.LimitReader(body, size+1)}, make([]byte, copyBytes))
	if err == nil && (n != size || h.Sum128() != sum) {
		err = refused(http.StatusBadRequest, "%w", errSum)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		err = errors.Join(err, s.fs.RemoveAll(temp))
	} else if err = s.add(temp, key, size, index); err == nil {
		err = s.sync(slices.Values([]string{key}))
	}
	if err != nil {
		return fmt.Errorf("cannot keep a file of an entry: %w", err)
	}
	return nil
}

// sync makes the names of files durable. It returns an error if one is missing. One sync of the directory covers all names added
// before it, and there is none if all names are durable.
func (s *spool) sync(keys iter.Seq[string]) error {
	for {
		name, err := s.newest(keys)
		if err != nil || name <= s.durable.Load() {
			return err
		}
		if err := s.syncNames(name); err != nil {
			return err
		}
		// A concurrent sync may have failed in between and removed the files.
	}
}

// newest returns the last of the names of files.
func (s *spool) newest(keys iter.Seq[string]) (name uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range keys {
		f, ok := s.files[key]
		if !ok {
			return 0, fmt.Errorf("the file %s of an entry is not here", key)
		}
		name = max(name, f.name)
	}
	return name, nil
}

// syncNames makes the names up to name durable. If this fails, it removes all files whose names are not durable.
func (s *spool) syncNames(name uint64) error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if name <= s.durable.Load() {
		return nil
	}
	all := s.named.Load()
	if err := s.fs.SyncDir(s.dir); err != nil {
		s.drop()
		return err
	}
	s.durable.Store(all)
	return nil
}

// drop removes the files whose names are not durable. No entry of the log names them. If a file cannot be removed now, it is removed
// before it is added again. syncing is held.
func (s *spool) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, f := range s.files {
		if f.name > s.durable.Load() {
			delete(s.files, key)
			if s.fs.Remove(s.path(key)) != nil {
				s.lost[key] = true
			}
		}
	}
}

// open opens a file.
func (s *spool) open(key string) (*spoolFile, error) {
	f, err := s.fs.Open(s.path(key))
	if err != nil {
		return nil, err
	}
	return &spoolFile{f, s, key}, nil
}

// spoolFile is a standby.Linked.
type spoolFile struct {
	vfs.File
	s   *spool
	key string
}

// Link gives the file another name.
func (f *spoolFile) Link(to string) error { return f.s.fs.Link(f.s.path(f.key), to) }

// sweep removes files that no entry after applied names and that have stayed long enough.
func (s *spool) sweep(applied uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := int64(0)
	for _, f := range s.files {
		total += f.size
	}
	now := time.Now()
	var err error
	for key, f := range s.files {
		if age := now.Sub(f.at); f.index > applied || age < aheadTime || age < spoolTime && total <= spoolBytes {
			continue
		}
		if e := s.fs.Remove(s.path(key)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
			continue
		}
		delete(s.files, key)
		total -= f.size
	}
	return err
}

// linkOrCopy gives a file a second name, or copies it where that cannot be done. A crash may leave a part of a copy under the name.
func linkOrCopy(fsys vfs.FS, from, to string) error {
	if err := fsys.Link(from, to); err == nil {
		return nil
	}
	in, err := fsys.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := fsys.Create(to)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
