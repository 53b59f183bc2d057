//go:build windowsrules && linux

package vfs

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// OS is the file system of the operating system with the rules of Windows, so that tests can check them on Linux, with the build tag
// windowsrules. It reads from /proc which files this process has open or mapped, by any package:
//
//   - a file that is open or mapped is not removed or replaced, and no directory with such a file in it; one that is open
//     is not renamed either, nor a directory it is in (Go opens files without FILE_SHARE_DELETE, and Windows keeps a file
//     with a view from being deleted);
//   - a file that is mapped is not truncated;
//   - a file that is read-only is not replaced;
//   - names that Windows cannot have, or that differ from others by case alone, are refused;
//   - directories are not synced.
//
// It is stricter than NTFS in details that depend on the version of Windows.
var OS FS = windowsFS{}

type windowsFS struct{ osFS }

var (
	errShared  = errors.New("the process cannot access the file because it is being used by another process")
	errDenied  = errors.New("access is denied: a file is open or mapped")
	errMapped  = errors.New("the operation cannot be performed on a file with a user-mapped section open")
	errBadName = errors.New("the filename, directory name, or volume label syntax is incorrect")
)

// use says how this process uses a file, or files below a directory.
type use struct{ open, mapped bool }

func used(name string) (u use, err error) {
	at, err := filepath.EvalSymlinks(name)
	if err == nil {
		at, err = filepath.Abs(at)
	}
	if err != nil {
		return u, err
	}
	info, err := os.Stat(at)
	if err != nil {
		return u, err
	}
	in := func(other string) bool { return other == at || info.IsDir() && strings.HasPrefix(other, at+"/") }
	const fds = "/proc/self/fd"
	entries, err := os.ReadDir(fds)
	if err != nil {
		return u, err
	}
	for _, e := range entries {
		fd := path.Join(fds, e.Name())
		other, err := os.Stat(fd)
		if err != nil {
			continue // closed meanwhile
		}
		target, _ := os.Readlink(fd)
		u.open = u.open || os.SameFile(info, other) || in(target)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return u, err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		// address, permissions, offset, device, inode, path
		if i := strings.IndexByte(lines.Text(), '/'); i >= 0 {
			u.mapped = u.mapped || in(lines.Text()[i:])
		}
	}
	return u, lines.Err()
}

// devices are names of devices in every directory, with any suffix.
var devices = []string{"CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9",
	"LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9"}

// mayBe reports why a file or directory cannot get a name; nil when it can.
func mayBe(name string) error {
	base := path.Base(name)
	stem, _, _ := strings.Cut(base, ".")
	if base != "." && base != ".." && strings.TrimRight(base, ". ") != base || strings.ContainsAny(base, `<>:"\|?*`) ||
		strings.ContainsFunc(base, func(r rune) bool { return r < ' ' }) || slices.Contains(devices, strings.ToUpper(stem)) {
		return errBadName
	}
	entries, err := os.ReadDir(path.Dir(name))
	if err != nil {
		return nil // the following operation on the name finds that, too
	}
	for _, e := range entries {
		if e.Name() != base && strings.EqualFold(e.Name(), base) {
			return fs.ErrExist
		}
	}
	return nil
}

func (w windowsFS) Create(name string) (File, error) {
	err := mayBe(name)
	if u, e := used(name); err == nil && e == nil && u.mapped {
		err = errMapped
	}
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return w.osFS.Create(name)
}

func (w windowsFS) Remove(name string) error {
	if u, err := used(name); err == nil && (u.open || u.mapped) {
		return pathError("remove", name, errShared)
	}
	return w.osFS.Remove(name)
}

// RemoveAll removes what it can and returns the first error, like os.RemoveAll.
func (w windowsFS) RemoveAll(name string) error {
	var err error
	if info, e := os.Lstat(name); e == nil && info.IsDir() {
		entries, e := os.ReadDir(name)
		err = e
		for _, entry := range entries {
			if e := w.RemoveAll(path.Join(name, entry.Name())); err == nil {
				err = e
			}
		}
	}
	if err != nil {
		return err
	}
	if err = w.Remove(name); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

func (w windowsFS) Rename(oldname, newname string) error {
	err := mayBe(newname)
	if err == fs.ErrExist && strings.EqualFold(oldname, newname) {
		err = nil // a change of case
	}
	if from, e := used(oldname); err == nil && e == nil && from.open {
		err = errShared
	}
	if to, e := used(newname); err == nil && e == nil && (to.open || to.mapped) {
		err = errDenied
	}
	if info, e := os.Stat(newname); err == nil && e == nil && (info.IsDir() || info.Mode()&0o200 == 0) {
		err = errDenied // MoveFileEx replaces no directory, and no read-only file
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return w.osFS.Rename(oldname, newname)
}

func (w windowsFS) Link(oldname, newname string) error {
	if err := mayBe(newname); err != nil {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: err}
	}
	return w.osFS.Link(oldname, newname)
}

func (w windowsFS) MkdirAll(name string) error {
	for at := path.Clean(name); at != path.Dir(at); at = path.Dir(at) {
		if err := mayBe(at); err != nil {
			return pathError("mkdir", name, err)
		}
	}
	return w.osFS.MkdirAll(name)
}

func (windowsFS) SyncDir(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = pathError("sync", name, syscall.ENOTDIR)
	}
	return err
}

// LockFile takes the lock of an open file as on Windows. It is another lock than bbolt's, on a byte after all others.
func LockFile(f *os.File) error {
	at := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 1<<63 - 2, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &at)
	if err == unix.EAGAIN || err == unix.EACCES {
		return ErrLocked
	}
	return err
}

// UnlockFile drops the lock, and bbolt's: a mapping keeps them here, and not on Windows.
func UnlockFile(f *os.File) error {
	at := unix.Flock_t{Type: unix.F_UNLCK, Whence: io.SeekStart, Start: 1<<63 - 2, Len: 1}
	return errors.Join(unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &at), unix.Flock(int(f.Fd()), unix.LOCK_UN))
}
