package vfs

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// OS is the file system of the operating system. It implements Locker, and its files OSFile.
var OS FS = osFS{}

// rename returns once the new name is on the disk, because a directory cannot be synced.
func rename(oldname, newname string) error {
	from, err := windows.UTF16PtrFromString(oldname)
	if err != nil {
		return err
	}
	to, err := windows.UTF16PtrFromString(newname)
	if err != nil {
		return err
	}
	if err := windows.MoveFileEx(from, to, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return nil
}

// syncDir only checks whether the directory exists. Windows does not flush directories: NTFS journals its names in order, and a
// file's FlushFileBuffers, or a write-through rename, also flushes the earlier ones.
func syncDir(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "sync", Path: name, Err: windows.ERROR_DIRECTORY}
	}
	return err
}

// The byte that LockFile locks, at offset 2⁶³ − 2. Such locks are mandatory, so it is beyond everything that is read or written.
// bbolt uses the byte at 2⁶⁴ − 1.
const (
	lockOffset     = 0xFFFFFFFE
	lockOffsetHigh = 0x7FFFFFFF
)

// LockFile takes the lock of an open file, without waiting. The error is ErrLocked if another handle, or this one, has it. Windows
// releases it after the handle is closed, however the process ends.
func LockFile(f *os.File) error {
	at := windows.Overlapped{Offset: lockOffset, OffsetHigh: lockOffsetHigh}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return ErrLocked
	}
	return err
}

// UnlockFile drops the lock.
func UnlockFile(f *os.File) error {
	at := windows.Overlapped{Offset: lockOffset, OffsetHigh: lockOffsetHigh}
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
