// Package vfs is the file system as svc uses it. Everything that writes an index goes through the FS interface. So
// tests can crash it, break it, and read what it was asked to do, in order.
//
// # Durability
//
// Bytes are durable after File.Sync, names after FS.SyncDir of their directory. Replace is the one way to change a file that must
// never be half written: it writes NAME.tmp, syncs it, syncs the directory, renames, and syncs the directory again. After an error of
// the last sync it is unknown which file is on disk. Change then writes the old content again. If that fails, too, it reports that
// the file is unsure.
//
// # Implementations
//
//   - OS is the operating system. With the build tag windowsrules it refuses on Linux what Windows refuses.
//   - MemFS is in memory and knows what is durable. CrashClone returns what a power failure may leave of it.
//   - Hook calls a function before each operation, which can fail it, count it or wait.
//
// # Caveats
//
//   - Names are slash-separated on every system.
//   - New files and directories are accessible only to the user of the process.
//   - On systems where an open file cannot be replaced (ReplacesOpen), callers close a file before they replace it.
package vfs

import (
	"errors"
	"io"
	"os"
)

// FS is a file system. Names are slash-separated paths. Implementations are safe for concurrent use. Errors satisfy errors.Is with
// fs.ErrNotExist and fs.ErrExist like those of package os.
type FS interface {
	// Create makes or truncates a file for writing. A new one is for the user of the process alone.
	Create(name string) (File, error)
	// Append opens a file for writing at its end, and makes it if it is missing.
	Append(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Remove unlinks a file or an empty directory.
	Remove(name string) error
	// RemoveAll removes name and everything below it. A missing name is not an error.
	RemoveAll(name string) error
	// Rename replaces newname by oldname atomically.
	Rename(oldname, newname string) error
	// Link gives a file a second name.
	Link(oldname, newname string) error
	// MkdirAll makes a directory and its parents, new ones for the user of the process alone.
	MkdirAll(name string) error
	// List returns the names in a directory, sorted.
	List(name string) ([]string, error)
	// Stat describes a file or directory.
	Stat(name string) (os.FileInfo, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
}

// File is an open file. Files from Open refuse writes, those from Create reads.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Closer
	// Sync makes the file's bytes durable (not its name: see FS.SyncDir).
	Sync() error
	Stat() (os.FileInfo, error)
	Name() string
}

// OSFile is implemented by files with an underlying operating system file, which can therefore be mapped into memory.
type OSFile interface {
	OSFile() *os.File
}

// Locker is implemented by file systems that other processes may work on.
type Locker interface {
	// Lock takes the lock on the file called name, and creates it if it is missing. It holds the lock until the closer is closed or
	// the process ends. It does not wait: if another process, or another Lock, has the lock, the error is ErrLocked.
	Lock(name string) (io.Closer, error)
}

// ErrLocked is returned by Locker.Lock if another holder has the lock.
var ErrLocked = errors.New("the lock is held by another process")

// ReadFile reads a whole file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// WriteFile creates a file with the given bytes, syncs and closes it. Its name is durable only after SyncDir of its directory.
func WriteFile(fsys FS, name string, data []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
