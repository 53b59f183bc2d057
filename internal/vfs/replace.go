package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"syscall"
)

// TempSuffix ends the name under which Replace writes a file. The owner of a directory may remove files with such names after a
// crash.
const TempSuffix = ".tmp"

// Replace replaces the content of the file called name, all or nothing: after a crash it has the old or the new bytes, and the new
// ones are durable when Replace returns nil. renamed is that of Move.
func Replace(fsys FS, name string, data []byte) (renamed bool, err error) {
	if err := Stage(fsys, name, data); err != nil {
		return false, err
	}
	return place(fsys, name+TempSuffix, name)
}

// Stage is the first half of Replace. It makes the bytes durable under a temporary name in the same directory, together with all names made
// there before. The file itself does not change. Place finishes the replacement; Unstage removes the temporary file.
func Stage(fsys FS, name string, data []byte) error {
	temp := name + TempSuffix
	err := fsys.Remove(temp) // a crash after a rename may have left both names to the file, whose bytes stay
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = WriteFile(fsys, temp, data)
	}
	if err == nil {
		err = fsys.SyncDir(path.Dir(filepath.ToSlash(name)))
	}
	if err != nil {
		Unstage(fsys, name) // or the next Stage does it
		return fmt.Errorf("cannot replace %s: %w", name, err)
	}
	return nil
}

// Unstage removes the file that Stage wrote. If it fails, the next Stage removes the rest.
func Unstage(fsys FS, name string) { _ = fsys.Remove(name + TempSuffix) }

// Place renames the file that Stage wrote to name, and syncs the directory. If an error comes after the rename, Place writes the bytes that
// back returns. If that fails too, unsure is true: the disk may have either content, and no later change may rely on the file until it has
// been replaced.
func Place(fsys FS, name string, back func() ([]byte, error)) (unsure bool, err error) {
	renamed, err := place(fsys, name+TempSuffix, name)
	if err == nil || !renamed {
		return false, err
	}
	before, e := back()
	if e == nil {
		_, e = Replace(fsys, name, before)
	}
	return e != nil, errors.Join(err, e)
}

// Change is Stage and Place.
func Change(fsys FS, name string, data []byte, back func() ([]byte, error)) (unsure bool, err error) {
	if err := Stage(fsys, name, data); err != nil {
		return false, err
	}
	return Place(fsys, name, back)
}

// Move renames a complete and synced file or directory within its directory, replacing an existing one of that name. It first makes
// all earlier names in the directory durable. The new name is durable when Move returns nil. If Move fails, renamed says whether the
// rename happened: then a crash may leave either file under the name. If it failed earlier, from is removed.
func Move(fsys FS, from, name string) (renamed bool, err error) {
	if err := fsys.SyncDir(path.Dir(filepath.ToSlash(name))); err != nil {
		_ = fsys.RemoveAll(from)
		return false, fmt.Errorf("cannot replace %s: %w", name, err)
	}
	return place(fsys, from, name)
}

// place is Move once the names in the directory are durable.
func place(fsys FS, from, name string) (renamed bool, err error) {
	if err := fsys.Rename(from, name); err != nil {
		_ = fsys.RemoveAll(from)
		return false, fmt.Errorf("cannot replace %s: %w", name, err)
	}
	if err := fsys.SyncDir(path.Dir(filepath.ToSlash(name))); err != nil {
		return true, fmt.Errorf("cannot make %s durable: %w", name, err)
	}
	return true, nil
}

// Rename renames a file or directory to its own name, by way of another one, so that the next sync of the directory makes the name
// durable even if an earlier sync failed. The name must not be used meanwhile, nor be needed after a crash.
func Rename(fsys FS, name string) error {
	temp := name + TempSuffix
	if err := fsys.Rename(name, temp); err != nil {
		return err
	}
	return fsys.Rename(temp, name)
}

// MakeDir creates a directory and its missing parents, durably. Every name is durable before the next one is created below it. The
// last existing one is made durable as well, because the process that created it may have been killed in between. A directory whose
// name could not be made durable is removed, because a later successful sync would say nothing about that name.
func MakeDir(fsys FS, dir string) error {
	dir = path.Clean(filepath.ToSlash(dir))
	var levels []string // that are made, and at the end one that may be there
	there := false
	for at := dir; !there && at != path.Dir(at); at = path.Dir(at) {
		_, err := fsys.Stat(at)
		levels, there = append(levels, at), err == nil
	}
	for i, at := range slices.Backward(levels) {
		if err := fsys.MkdirAll(at); err != nil {
			return err
		}
		err := fsys.SyncDir(path.Dir(at))
		if there && i == len(levels)-1 && unsyncable(err) {
			continue
		}
		if err != nil {
			if !there || i < len(levels)-1 {
				_ = fsys.Remove(at) // it stays if it is no longer empty
			}
			return fmt.Errorf("cannot make %s durable: %w", at, err)
		}
	}
	return nil
}

// unsyncable reports whether an error of SyncDir says that this directory can never be synced: the process may not read it, or its file
// system has no such operation. Then svc has made nothing in it.
func unsyncable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}
