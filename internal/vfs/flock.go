//go:build unix && !windowsrules

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// OS is the file system of the operating system. It implements Locker, and its files OSFile.
var OS FS = osFS{}

// LockFile takes the lock of an open file without waiting. It returns ErrLocked if another descriptor has it. It uses flock(2): the
// kernel releases the lock with the last descriptor, however the process ends. A descriptor that has the lock may take it again.
func LockFile(f *os.File) error {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return ErrLocked
		default:
			return err
		}
	}
}

// UnlockFile drops the lock of a file that stays mapped: closing it alone would not.
func UnlockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
