package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// storesFile lists the files without which acknowledged changes are lost, one per line. It is written after all of them have been
// created, before the first request. A store that is missing afterwards is damage, and never a new one.
const storesFile = "STORES"

// stores are those files, by their paths in a data directory.
var stores = []string{"indexes/CATALOG", "tasks/queue.db", "auth.db"}

// boltStores are the stores that the process with the open directory keeps locked, even if LOCK is removed.
var boltStores = stores[1:]

// checkStores checks that the files named in STORES exist.
func checkStores(fsys vfs.FS, dir string) error {
	b, err := vfs.ReadFile(fsys, path.Join(dir, storesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an older svc made the directory, or a start was cut off
	}
	if err != nil {
		return fmt.Errorf("cannot open the data directory: %w", err)
	}
	for name := range strings.FieldsSeq(string(b)) {
		file := path.Join(dir, name)
		info, err := fsys.Stat(file)
		if err == nil && info.Size() > 0 {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot open the data directory: %w", err)
		}
		reason := "it is empty"
		if err != nil {
			reason = "it is missing"
		}
		return &apierr.Corruption{File: file, Offset: -1, Reason: fmt.Sprintf("%s, but existed before. Restore it, or start from a snapshot. To continue without its content, remove its line from %s",
			reason, path.Join(dir, storesFile))}
	}
	return nil
}

// noteStores writes STORES unless it already has this content.
func noteStores(fsys vfs.FS, dir string) error {
	name, content := path.Join(dir, storesFile), strings.Join(stores, "\n")+"\n"
	if b, err := vfs.ReadFile(fsys, name); err == nil && string(b) == content {
		return nil
	}
	if _, err := vfs.Replace(fsys, name, []byte(content)); err != nil {
		return fmt.Errorf("cannot record the content of the data directory: %w", err)
	}
	return nil
}

// checkUnused checks that no other process has the stores open. LOCK alone is not enough if somebody has removed it: the other
// process continues, and files that look like remains of a crash may be those that it is writing.
func checkUnused(fsys vfs.FS, locker vfs.Locker, dir string) error {
	for _, name := range boltStores {
		file := path.Join(dir, name)
		if _, err := fsys.Stat(file); err != nil {
			continue
		}
		lock, err := locker.Lock(file)
		if err != nil {
			return err
		}
		if err := lock.Close(); err != nil {
			return err
		}
	}
	return nil
}
