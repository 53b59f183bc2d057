package group

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"svc/internal/vfs"
)

const (
	// spoolTime is how long a file stays in the spool after its entry was applied, for members that are behind: who comes later copies
	// the data directory.
	spoolTime = 2 * time.Minute
	// spoolBytes bounds the files that stay for them.
	spoolBytes = 1 << 30
	// aheadTime is how long each file stays: it may have come before its entry, whose index was a guess.
	aheadTime = 10 * time.Second
)

// spool keeps the files that entries of a voter's log name, by size and checksum: those of entries that are not applied yet, and for some
// time those of entries that other members may lack. A file that is in the data directory, too, takes its space once.
type spool struct {
	fs  vfs.FS
	dir string

	mu    sync.Mutex
	files map[string]spooled // by key
}

type spooled struct {
	index uint64 // of the last entry that names it
	size  int64
	at    time.Time
}

// fileKey names a file by what it contains.
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

// openSpool opens the spool of a directory. The files that are there stay for entries up to an index.
func openSpool(fsys vfs.FS, dir string, last uint64) (*spool, error) {
	s := &spool{fs: fsys, dir: dir, files: map[string]spooled{}}
	if err := vfs.MakeDir(fsys, dir); err != nil {
		return nil, err
	}
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if size, _, ok := parseKey(name); ok {
			s.files[name] = spooled{last, size, time.Now()}
		} else if err := fsys.Remove(path.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return s, s.sync() // a process that was killed may have left names that are not durable
}

func (s *spool) path(key string) string { return path.Join(s.dir, key) }

// note has a file stay for an entry.
func (s *spool) note(key string, size int64, index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[key] = spooled{max(index, s.files[key].index), size, time.Now()}
}

// has reports whether a file is here, and has it stay for an entry.
func (s *spool) has(key string, index uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[key]
	if ok {
		s.files[key] = spooled{max(index, f.index), f.size, time.Now()}
	}
	return ok
}

// link adds a file of the data directory, for entries from an index on. The name is durable after sync.
func (s *spool) link(name, key string, size int64, index uint64) error {
	if s.has(key, index) {
		return nil
	}
	if err := linkOrCopy(s.fs, name, s.path(key)); err != nil {
		return err
	}
	s.note(key, size, index)
	return nil
}

// put adds a file with its content. The name is durable after sync.
func (s *spool) put(key string, content []byte, index uint64) error {
	if s.has(key, index) {
		return nil
	}
	if err := vfs.WriteFile(s.fs, s.path(key), content); err != nil {
		return err
	}
	s.note(key, int64(len(content)), index)
	return nil
}

// receive adds a file that another member sends, durably.
func (s *spool) receive(key string, index uint64, body io.Reader) error {
	size, sum, ok := parseKey(key)
	if !ok {
		return refused(http.StatusBadRequest, "%.100q names no file", key)
	}
	temp := s.path(key) + "." + newID() + vfs.TempSuffix
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
	if err = errors.Join(err, out.Close()); err == nil {
		err = s.fs.Rename(temp, s.path(key))
	}
	if err == nil {
		err = s.sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot keep a file of an entry: %w", err), s.fs.RemoveAll(temp))
	}
	s.note(key, size, index)
	return nil
}

// sync makes the names in the spool durable.
func (s *spool) sync() error { return s.fs.SyncDir(s.dir) }

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

// sweep removes files that no entry behind an index names, and that have stayed for long enough.
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

// linkOrCopy gives a file a second name, or copies it where that cannot be done.
func linkOrCopy(fsys vfs.FS, from, to string) error {
	_ = fsys.Remove(to) // it is another one
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
