package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"svc/internal/vfs"
)

// A data directory holds:
//
//	VERSION        "svc 1": the product, and the version of all formats below
//	LOCK           locked by the process that has the directory open
//	auth.db        the API keys
//	features.json  the experimental features
//	webhooks.json  the webhooks
//	indexes/       the catalog
//	tasks/         the queue and the payloads of its tasks
const (
	versionFile  = "VERSION"
	lockFile     = "LOCK"
	keysFile     = "auth.db"
	featuresFile = "features.json"
	webhooksFile = "webhooks.json"
	indexesDir   = "indexes"
	tasksDir     = "tasks"

	product       = "svc"
	formatVersion = "1"
)

// openDataDir makes sure that dir is a data directory of this version that
// nobody else has open, making a new one where there is none, and locks it.
func openDataDir(fsys vfs.FS, dir string) (lock io.Closer, err error) {
	fresh, err := checkDataDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := makeDir(fsys, dir); err != nil {
			return nil, fmt.Errorf("cannot make the data directory: %w", err)
		}
	}
	if locker, ok := fsys.(vfs.Locker); ok {
		lock, err = locker.Lock(filepath.Join(dir, lockFile))
		if errors.Is(err, vfs.ErrLocked) {
			return nil, fmt.Errorf("another svc is running on %s. Stop it, or choose another directory with --db-path", dir)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot open the data directory: %w", err)
		}
	}
	if fresh {
		if err := writeVersion(fsys, dir); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot make the data directory: %w", err), lock.Close())
		}
	}
	return lock, nil
}

// checkDataDir reports whether dir has yet to become a data directory. It is an error when dir is something else.
func checkDataDir(fsys vfs.FS, dir string) (fresh bool, err error) {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot open the data directory: %w", err)
	}
	if !slices.Contains(names, versionFile) {
		// What an interrupted start leaves.
		if !slices.ContainsFunc(names, func(name string) bool { return name != lockFile && name != versionFile+".tmp" }) {
			return true, nil
		}
		return false, fmt.Errorf("%s is not empty and not a data directory of svc. Choose another one with --db-path", dir)
	}
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, versionFile))
	if err != nil {
		return false, fmt.Errorf("cannot open the data directory: %w", err)
	}
	text := strings.TrimSpace(string(b))
	name, version, _ := strings.Cut(text, " ")
	switch {
	case name != product:
		return false, fmt.Errorf("%s belongs to another product (its %s says %q). Choose another directory with --db-path, and bring the data over with a dump", dir, versionFile, text)
	case version != formatVersion:
		return false, fmt.Errorf("%s has format version %s, but this svc reads version %s. Use the svc that wrote it", dir, version, formatVersion)
	}
	return false, nil
}

// makeDir makes a directory and its parents, durably.
func makeDir(fsys vfs.FS, dir string) error {
	dir = filepath.Clean(dir)
	changed := []string{}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := fsys.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		changed = append(changed, filepath.Dir(at))
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, parent := range changed {
		if err := fsys.SyncDir(parent); err != nil {
			return err
		}
	}
	return nil
}

func writeVersion(fsys vfs.FS, dir string) error {
	name := filepath.Join(dir, versionFile)
	if err := vfs.WriteFile(fsys, name+".tmp", []byte(product+" "+formatVersion+"\n")); err != nil {
		return err
	}
	if err := fsys.Rename(name+".tmp", name); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}
