package dump

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/klauspost/compress/gzip"

	"svc/internal/vfs"
)

// archive writes a gzipped tar. An entry of unknown size is first written to a spool, in memory while it is small, and then in a
// file.
type archive struct {
	ctx   context.Context
	fs    vfs.FS
	tar   *tar.Writer
	gzip  *gzip.Writer
	buf   *bufio.Writer
	spool string // file
	now   time.Time
	bytes int64 // of entries so far
}

const (
	fileBuffer  = 256 << 10
	spoolMemory = 4 << 20
)

// newArchive starts a gzipped tar. spool names the file for data of unknown length that is too large for memory; "": none.
func newArchive(ctx context.Context, fsys vfs.FS, w io.Writer, spool string, level int, now time.Time) (*archive, error) {
	a := &archive{ctx: ctx, fs: fsys, buf: bufio.NewWriterSize(w, fileBuffer), spool: spool, now: now}
	var err error
	if a.gzip, err = gzip.NewWriterLevel(a.buf, level); err != nil {
		return nil, err
	}
	a.tar = tar.NewWriter(a.gzip)
	return a, nil
}

// close ends the archive. It does not close the underlying writer.
func (a *archive) close() error { return errors.Join(a.tar.Close(), a.gzip.Close(), a.buf.Flush()) }

// header starts an entry of size bytes. If the context of the archive is done, it returns an error.
func (a *archive) header(name string, size int64) error {
	if err := a.ctx.Err(); err != nil {
		return context.Cause(a.ctx)
	}
	a.bytes += size
	return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: a.now})
}

// dir adds a directory.
func (a *archive) dir(name string) error {
	return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: a.now})
}

// data adds a file with these bytes.
func (a *archive) data(name string, b []byte) error {
	if err := a.header(name, int64(len(b))); err != nil {
		return err
	}
	_, err := a.tar.Write(b)
	return err
}

// stream adds a file of a known size, which write writes.
func (a *archive) stream(name string, size int64, write func(io.Writer) error) error {
	if err := a.header(name, size); err != nil {
		return err
	}
	if err := write(a.writer()); err != nil {
		return err
	}
	return a.tar.Flush() // says whether the size was kept
}

// file adds a copy of a file that does not change.
func (a *archive) file(name, from string) error {
	f, err := a.fs.Open(from)
	if err != nil {
		return fmt.Errorf("cannot copy a file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot copy a file: %w", err)
	}
	return a.stream(name, info.Size(), func(w io.Writer) error {
		if _, err := io.CopyN(w, f, info.Size()); err != nil {
			return fmt.Errorf("cannot copy %s: %w", from, err)
		}
		return nil
	})
}

// lines adds a file that write writes.
func (a *archive) lines(name string, write func(io.Writer) error) error {
	s := &spool{fs: a.fs, name: a.spool}
	defer s.discard()
	if err := write(s); err != nil {
		return err
	}
	if s.file == nil {
		return a.data(name, s.memory.Bytes())
	}
	if err := s.finish(); err != nil {
		return err
	}
	return a.file(name, s.name)
}

// writer is the tar's, cut off when the context ends.
func (a *archive) writer() io.Writer { return &until{a.ctx, a.tar} }

// until writes until its context ends.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u *until) Write(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.w.Write(b)
}

// spool holds bytes in memory, or in a file when they are many.
type spool struct {
	fs     vfs.FS
	name   string
	memory bytes.Buffer
	file   vfs.File
	w      *bufio.Writer
}

// Write keeps up to spoolMemory in memory, and moves everything to a file beyond that.
func (s *spool) Write(b []byte) (int, error) {
	if s.file == nil {
		if s.memory.Len()+len(b) <= spoolMemory {
			return s.memory.Write(b)
		}
		f, err := s.fs.Create(s.name)
		if err != nil {
			return 0, err
		}
		s.file, s.w = f, bufio.NewWriterSize(f, fileBuffer)
		if _, err := s.w.Write(s.memory.Bytes()); err != nil {
			return 0, err
		}
		s.memory = bytes.Buffer{}
	}
	return s.w.Write(b)
}

func (s *spool) finish() error {
	err := errors.Join(s.w.Flush(), s.file.Close())
	s.w = nil
	return err
}

// discard removes the file, if there is one.
func (s *spool) discard() {
	if s.file == nil {
		return
	}
	if s.w != nil {
		s.file.Close()
	}
	_ = s.fs.Remove(s.name) // or the next use of the directory does
}

// workspace creates the directory for temporary files, and removes files that an interrupted task left outside of it.
func (m *Maker) workspace() error {
	fsys, dir := m.o.FS, m.o.Place.Work
	part, err := vfs.ReadFile(fsys, path.Join(dir, partName))
	switch {
	case err == nil:
		if err := fsys.Remove(string(part)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.o.Logger.Warn("cannot remove an unfinished file", "file", string(part), "error", err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot read the files of an interrupted task: %w", err)
	}
	if err := fsys.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot empty the work directory: %w", err)
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return fmt.Errorf("cannot create the work directory: %w", err)
	}
	return nil
}

// partName is a file of the work directory that names the unfinished file outside of it.
const partName = "part"

// publish creates a file outside of the data directory. write writes it to a temporary name in the same directory, and it is renamed
// once it is complete and durable. If this task is interrupted, the next one removes the temporary file. mode is the mode of the file; 0
// leaves it as it is. On Windows it has no effect, because Windows does not replace read-only files.
func (m *Maker) publish(name string, mode uint32, write func(vfs.File) error) (err error) {
	fsys := m.o.FS
	if err := vfs.MakeDir(fsys, path.Dir(name)); err != nil {
		return fmt.Errorf("cannot make the directory of %s: %w", name, err)
	}
	part := name + ".part"
	// All or nothing: a part of the name may be that of another file.
	if _, err := vfs.Replace(fsys, path.Join(m.o.Place.Work, partName), []byte(part)); err != nil {
		return fmt.Errorf("cannot record the file in progress: %w", err)
	}
	f, err := fsys.Create(part)
	if err != nil {
		return fmt.Errorf("cannot create %s: %w", part, err)
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if o, ok := f.(vfs.OSFile); ok && err == nil && mode != 0 {
		if vfs.ReplacesOpen {
			err = o.OSFile().Chmod(fs.FileMode(mode))
		} else {
			_ = os.Chmod(name, 0o600) // earlier versions set the mode here, too
		}
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = fsys.Remove(part) // or the next task does
		return err
	}
	_, err = vfs.Move(fsys, part, name)
	return err
}
