package commit

import (
	"os"
	"sync/atomic"

	"svc/internal/vfs"
)

// Later is a file system for stores that stay open when their directory gets a log, such as those of a follower that becomes the
// writer. Until Become it passes calls to its first file system.
type Later struct{ now atomic.Pointer[vfs.FS] }

// NewLater returns a Later that uses fsys until Become.
func NewLater(fsys vfs.FS) *Later {
	l := new(Later)
	l.Become(fsys)
	return l
}

// Become makes all later calls go to another file system, which may have a log. No change may be under way.
func (l *Later) Become(fsys vfs.FS) { l.now.Store(&fsys) }

func (l *Later) fs() vfs.FS { return *l.now.Load() }

// logOf returns the file system that has a log, or nil.
func logOf(fsys vfs.FS) *logged {
	if l, ok := fsys.(*Later); ok {
		fsys = l.fs()
	}
	l, _ := fsys.(*logged)
	return l
}

// Create is that of vfs.FS.
func (l *Later) Create(name string) (vfs.File, error) { return l.fs().Create(name) }

// Append is that of vfs.FS.
func (l *Later) Append(name string) (vfs.File, error) { return l.fs().Append(name) }

// Open is that of vfs.FS.
func (l *Later) Open(name string) (vfs.File, error) { return l.fs().Open(name) }

// Remove is that of vfs.FS.
func (l *Later) Remove(name string) error { return l.fs().Remove(name) }

// RemoveAll is that of vfs.FS.
func (l *Later) RemoveAll(name string) error { return l.fs().RemoveAll(name) }

// Rename is that of vfs.FS.
func (l *Later) Rename(oldname, newname string) error { return l.fs().Rename(oldname, newname) }

// Link is that of vfs.FS.
func (l *Later) Link(oldname, newname string) error { return l.fs().Link(oldname, newname) }

// MkdirAll is that of vfs.FS.
func (l *Later) MkdirAll(name string) error { return l.fs().MkdirAll(name) }

// List is that of vfs.FS.
func (l *Later) List(name string) ([]string, error) { return l.fs().List(name) }

// Stat is that of vfs.FS.
func (l *Later) Stat(name string) (os.FileInfo, error) { return l.fs().Stat(name) }

// SyncDir is that of vfs.FS.
func (l *Later) SyncDir(name string) error { return l.fs().SyncDir(name) }
