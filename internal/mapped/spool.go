package mapped

import (
	"errors"
	"fmt"

	"svc/internal/vfs"
)

// Spool is a temporary file for data too large for memory. Data is appended, and read through a mapping. After a crash the file
// stays; the owner of its directory removes it. A Spool is not safe for concurrent use.
type Spool struct {
	fs   vfs.FS
	name string
	file vfs.File
	size int64
	read *File // of what was written before; nil: nothing was read yet
}

// NewSpool makes the file called name.
func NewSpool(fsys vfs.FS, name string) (*Spool, error) {
	f, err := fsys.Create(name)
	if err != nil {
		return nil, fmt.Errorf("cannot spool: %w", err)
	}
	return &Spool{fs: fsys, name: name, file: f}, nil
}

// Write implements io.Writer.
func (s *Spool) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	s.size += int64(n)
	if err != nil {
		err = fmt.Errorf("cannot spool to %s: %w", s.name, err)
	}
	return n, err
}

// Len returns how many bytes were written.
func (s *Spool) Len() int64 { return s.size }

// Bytes returns all written bytes, valid until the next call or Close. They may be modified, which does not change the file.
// Unreadable pages fault as in every mapping, see Guard.
func (s *Spool) Bytes() ([]byte, error) {
	if s.read != nil {
		if s.read.Len() == s.size {
			return s.read.Bytes(), nil
		}
		err := s.read.Close()
		s.read = nil
		if err != nil {
			return nil, err
		}
	}
	var err error
	if s.read, err = OpenPrivate(s.fs, s.name); err != nil {
		s.read = nil
		return nil, err
	}
	if s.read.Len() != s.size {
		return nil, fmt.Errorf("cannot read %s: %d bytes, %d were written", s.name, s.read.Len(), s.size)
	}
	return s.read.Bytes(), nil
}

// GiveBack releases the memory of what Bytes returned. Reading it again is correct, but writes to it are lost.
func (s *Spool) GiveBack() {
	if s.read != nil && s.read.m != nil {
		advise(s.read.data, DontNeed)
	}
}

// Close removes the file. A nil Spool has none.
func (s *Spool) Close() error {
	if s == nil {
		return nil
	}
	var err error
	if s.read != nil {
		err = s.read.Close()
		s.read = nil
	}
	return errors.Join(err, s.file.Close(), s.fs.Remove(s.name))
}
