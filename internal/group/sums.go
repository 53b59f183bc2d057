package group

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// sums are the computed checksums of files that do not change. If a removed file is replaced by another one of the same name, that
// has another size or time.
type sums struct {
	fs  vfs.FS
	dir string // of the data

	mu    sync.Mutex
	known map[string]map[string]knownSum // by directory and name
}

type knownSum struct {
	size     int64
	modified time.Time
	sum      xxh3.Uint128
}

func newSums(fsys vfs.FS, dir string) *sums {
	return &sums{fs: fsys, dir: dir, known: map[string]map[string]knownSum{}}
}

// of returns a file with its size and checksum, which it computes if it is not known.
func (s *sums) of(name string) (File, error) {
	f, ok, err := s.recall(name)
	if ok || err != nil {
		return f, err
	}
	return s.compute(name)
}

// recall returns a file with its size, and with its checksum if that is known.
func (s *sums) recall(name string) (f File, known bool, err error) {
	info, err := s.fs.Stat(path.Join(s.dir, name))
	if err != nil {
		return f, false, err
	}
	f = File{Name: name, Size: info.Size()}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.known[path.Dir(name)][path.Base(name)]
	if ok && k.size == f.Size && k.modified.Equal(info.ModTime()) {
		f.Sum, known = k.sum, true
	}
	return f, known, nil
}

// compute reads a file.
func (s *sums) compute(name string) (File, error) {
	in, err := s.fs.Open(path.Join(s.dir, name))
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return File{}, err
	}
	h := xxh3.New()
	n, err := io.CopyBuffer(writerOnly{h}, readerOnly{in}, make([]byte, min(copyBytes, info.Size()+1)))
	if err == nil && n != info.Size() {
		err = fmt.Errorf("%s has changed while it was read", name)
	}
	if err != nil {
		return File{}, err
	}
	return s.note(name, info.Size(), info.ModTime(), h.Sum128()), nil
}

// note keeps the checksum of a file.
func (s *sums) note(name string, size int64, modified time.Time, sum xxh3.Uint128) File {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := path.Dir(name)
	if s.known[dir] == nil {
		s.known[dir] = map[string]knownSum{}
	}
	s.known[dir][path.Base(name)] = knownSum{size, modified, sum}
	return File{name, size, sum}
}

// forget forgets a file, or the files of a directory.
func (s *sums) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, name)
	if dir := s.known[path.Dir(name)]; dir != nil {
		if delete(dir, path.Base(name)); len(dir) == 0 {
			delete(s.known, path.Dir(name))
		}
	}
}

// sumsFile is where keep writes, and load reads.
const (
	sumsFile    = workDir + "/sums"
	sumsVersion = 1
)

// keptSum is a checksum in sumsFile.
type keptSum struct {
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // nanoseconds of the Unix epoch
	Sum      []byte `json:"sum"`      // big-endian
}

// keep writes the known checksums to a file for the next run.
func (s *sums) keep() error {
	kept := map[string]keptSum{}
	s.mu.Lock()
	for dir, files := range s.known {
		for base, k := range files {
			sum := k.sum.Bytes()
			kept[path.Join(dir, base)] = keptSum{k.size, k.modified.UnixNano(), sum[:]}
		}
	}
	s.mu.Unlock()
	b, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return sealedjson.Write(unsyncedFS{s.fs}, path.Join(s.dir, sumsFile), sumsVersion, b)
}

// load reads the checksums that an earlier run stored. If they are unreadable, they are computed again.
func (s *sums) load() {
	b, err := sealedjson.Read(s.fs, path.Join(s.dir, sumsFile), sumsVersion)
	var kept map[string]keptSum
	if err != nil || json.Unmarshal(b, &kept) != nil {
		return
	}
	for name, k := range kept {
		if len(k.Sum) == 16 {
			s.note(name, k.Size, time.Unix(0, k.Modified), xxh3.Uint128{Hi: binary.BigEndian.Uint64(k.Sum), Lo: binary.BigEndian.Uint64(k.Sum[8:])})
		}
	}
}

// writerOnly and readerOnly hide that a file or a digest could copy by itself, with a buffer of another size.
type (
	writerOnly struct{ io.Writer }
	readerOnly struct{ io.Reader }
)
