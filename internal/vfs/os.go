package vfs

import (
	"fmt"
	"io"
	"os"
	"time"
)

// osFS is the file system of the operating system. It implements Locker, and its files OSFile.
type osFS struct{}

type osFile struct{ *os.File }

func (f osFile) OSFile() *os.File { return f.File }

func (f osFile) Sync() error {
	defer syncs.Since(time.Now())
	return f.File.Sync()
}

func wrap(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Files of svc are only for its own user: they contain documents, keys of providers, headers of webhooks. The umask may restrict them
// further.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

func (osFS) Create(name string) (File, error) {
	return wrap(os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode))
}

func (osFS) Append(name string) (File, error) {
	return wrap(os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, fileMode))
}

func (osFS) Open(name string) (File, error)        { return wrap(os.Open(name)) }
func (osFS) Remove(name string) error              { return os.Remove(name) }
func (osFS) RemoveAll(name string) error           { return os.RemoveAll(name) }
func (osFS) Rename(oldname, newname string) error  { return rename(oldname, newname) }
func (osFS) Link(oldname, newname string) error    { return os.Link(oldname, newname) }
func (osFS) MkdirAll(name string) error            { return os.MkdirAll(name, dirMode) }
func (osFS) Stat(name string) (os.FileInfo, error) { return os.Stat(name) }

func (osFS) List(name string) ([]string, error) {
	entries, err := os.ReadDir(name) // sorted
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) SyncDir(name string) error {
	defer syncs.Since(time.Now())
	return syncDir(name)
}

// Hold takes the lock on an existing file, without writing to it, until the closer is closed or the process ends. It returns
// ErrLocked if another process has the lock.
func Hold(name string) (io.Closer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if err := LockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", name, err)
	}
	return f, nil
}

// Lock holds a LockFile.
func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err = LockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", name, err)
	}
	// The previous holder may have removed the file meanwhile: a lock on a file without a name is useless.
	own, err := f.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(name); err == nil && !os.SameFile(own, there) {
			err = ErrLocked
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", name, err)
	}
	return f, nil
}
