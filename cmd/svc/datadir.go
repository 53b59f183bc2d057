package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"svc/internal/vfs"
)

// A data directory holds:
//
//	VERSION        "svc 4 0.2.0": the product, the version of all formats below, and the program that opened it last
//	LOCK           locked by the process that has the directory open
//	STORES         the files that must be there; see stores.go
//	IMPORTING      the file that an import is filling the directory from; it ends by writing VERSION
//	GROUP          the group of the directory, and its role there
//	auth.db        the API keys
//	features.json  the experimental features
//	webhooks.json  the webhooks; webhook-cursors.json: what they were told
//	rules.json     the search rules
//	chats.json     the chat workspaces
//	network.json   the network
//	indexes/       the catalog, with its base CATALOG-… if there are many indexes, and the indexes
//	tasks/         the queue, the payloads of its tasks, its journal, and a file that holds room for deletions
//	kept/          what an imported dump has for parts of svc that there are not yet
//	analytics/     counts of searches
//	models/        models of embedders
//	group/         of package group: the log, positions and copies
//	work/          what a dump or a snapshot is being made of
//
// docs/operations/data-directory.md says which of them snapshots, readers and publications copy. dump.PlaceIn has the names that are not
// listed here.
const (
	versionFile   = "VERSION"
	lockFile      = "LOCK"
	importingFile = "IMPORTING"

	product       = "svc"
	formatVersion = "4"
)

// olderFormats are the older formats that this program reads. Opening a directory sets the current format before anything is written
// to it, because older programs would not understand the new segments.
//
// Up to format 2, segments had no checksums of blocks. Up to format 3, their columns rounded integers to float64. Compaction
// eventually rewrites them.
var olderFormats = []string{"2", "3"}

const oldestFormat = 2 // the first of olderFormats

// meilisearchVersion matches the VERSION of a directory of Meilisearch.
var meilisearchVersion = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// dataState is the state of a data directory before it is opened.
type dataState uint8

const (
	dataExists      dataState = iota
	dataFresh                 // there is nothing in it
	dataInterrupted           // an import began to fill it, and did not come to its end
	dataOlder                 // it is of an older format that this program reads
)

// openDataDir makes sure that dir is a data directory of this version that is not open elsewhere, creates it if there is none, and
// locks it. With from, the path of a file to import, the directory must be new, and fill fills it from the file. If that fails, or is
// interrupted in any way, the directory counts as empty.
func openDataDir(fsys vfs.FS, dir, from string, fill func() error) (lock io.Closer, err error) {
	state, err := checkDataDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	if state == dataInterrupted && from == "" {
		b, err := vfs.ReadFile(fsys, path.Join(dir, importingFile))
		return nil, errors.Join(fmt.Errorf("the import of %s into %s was interrupted. Start again with the same import option to restart the import, or remove the directory", b, dir), err)
	}
	if state != dataExists && state != dataOlder {
		if err := vfs.MakeDir(fsys, dir); err != nil {
			return nil, fmt.Errorf("cannot create the data directory: %w", err)
		}
	}
	if lock, err = lockDataDir(fsys, dir); err != nil {
		return nil, err
	}
	// Until the lock was taken another process may have filled the directory, which an import would empty.
	if now, err := checkDataDir(fsys, dir); err != nil || now != state {
		if err == nil {
			err = fmt.Errorf("another svc changed %s meanwhile. Start again", dir)
		}
		return nil, errors.Join(err, lock.Close())
	}
	if from == "" && (state == dataExists || state == dataOlder) {
		if err := checkStores(fsys, dir); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
	if from != "" {
		if err := importInto(fsys, dir, from, fill); err != nil {
			return nil, errors.Join(err, emptyDir(fsys, dir, ""), lock.Close())
		}
	}
	err = writeVersion(fsys, dir)
	if err == nil {
		// The directory is whole: a crash may have left this one, too.
		if err = fsys.Remove(path.Join(dir, importingFile)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot create the data directory: %w", err), lock.Close())
	}
	return lock, nil
}

// writeVersion makes VERSION say that this program opens the directory. After an error the file is as before, so that the next start writes
// it again.
func writeVersion(fsys vfs.FS, dir string) error {
	name := path.Join(dir, versionFile)
	before, err := vfs.ReadFile(fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		renamed, err := vfs.Replace(fsys, name, versionContent())
		if err != nil && renamed {
			err = errors.Join(err, fsys.Remove(name))
		}
		return err
	case err != nil || string(before) == string(versionContent()):
		return err
	}
	_, err = vfs.Change(fsys, name, versionContent(), func() ([]byte, error) { return before, nil })
	return err
}

// lockDataDir locks a directory that is not open elsewhere.
func lockDataDir(fsys vfs.FS, dir string) (io.Closer, error) {
	locker, ok := fsys.(vfs.Locker)
	if !ok {
		return io.NopCloser(nil), nil
	}
	lock, err := locker.Lock(path.Join(dir, lockFile))
	if err == nil {
		if err = checkUnused(fsys, locker, dir); err != nil {
			err = errors.Join(err, lock.Close())
		}
	}
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("another svc is running on %s. Stop it, or choose another directory with --db-path", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the data directory: %w", err)
	}
	return lock, nil
}

// importInto empties dir, records the source of the import, and fills it.
func importInto(fsys vfs.FS, dir, from string, fill func() error) error {
	marker := path.Join(dir, importingFile)
	err := vfs.WriteFile(fsys, marker, []byte(from))
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err == nil {
		err = emptyDir(fsys, dir, importingFile)
	}
	if err != nil {
		return fmt.Errorf("cannot prepare the data directory for an import: %w", err)
	}
	if err := fill(); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// emptyDir removes the content of dir, except the lock and one more name, and IMPORTING last. Without that name it also removes dir
// if possible: it may be the mount point of a file system. A symbolic link to the directory stays, because the next start would create a
// directory in its place, maybe on another disk.
func emptyDir(fsys vfs.FS, dir, but string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != lockFile && name != importingFile {
			if err := fsys.RemoveAll(path.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	if but == importingFile {
		return nil
	}
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	for _, name := range []string{importingFile, lockFile} {
		if err := fsys.Remove(path.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if _, err := os.Readlink(dir); err != nil {
		_ = fsys.Remove(dir)
	}
	return nil
}

// checkDataDir returns the state of dir. It returns an error if dir is something else.
func checkDataDir(fsys vfs.FS, dir string) (dataState, error) {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dataFresh, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return 0, fmt.Errorf("%s is not a directory, or a part of its path is a file. Choose another directory with --db-path", dir)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot open the data directory: %w", err)
	}
	if !slices.Contains(names, versionFile) {
		if slices.Contains(names, importingFile) {
			return dataInterrupted, nil
		}
		// What an interrupted start leaves.
		if !slices.ContainsFunc(names, func(name string) bool { return name != lockFile && name != versionFile+vfs.TempSuffix }) {
			return dataFresh, nil
		}
		return 0, fmt.Errorf("%s is not empty and not a data directory of svc. Choose another directory with --db-path", dir)
	}
	b, err := vfs.ReadFile(fsys, path.Join(dir, versionFile))
	if err != nil {
		return 0, fmt.Errorf("cannot open the data directory: %w", err)
	}
	format, err := checkVersion(b)
	if err != nil {
		return 0, fmt.Errorf("cannot open %s: %w", dir, err)
	}
	if format != formatVersion {
		return dataOlder, nil
	}
	return dataExists, nil
}

// foreignError is the error of data that another product, or another version of svc, has made.
type foreignError struct{ reason string }

func (e *foreignError) Error() string { return e.reason }

// checkVersion returns the format that the content of a VERSION names. The error is a *foreignError unless this program reads it.
func checkVersion(b []byte) (format string, err error) {
	text := strings.TrimSpace(string(b))
	words := strings.Split(text, " ")
	switch {
	case text == "":
		return "", &foreignError{fmt.Sprintf("its %s is empty. Restore the directory from a backup, or write %q to the file if svc %s wrote it", versionFile, product+" "+formatVersion, svcVersion)}
	case meilisearchVersion.MatchString(text):
		return "", &foreignError{fmt.Sprintf("it belongs to Meilisearch %s. Make a dump with Meilisearch, and start svc with --import-dump and another --db-path", text)}
	}
	if words[0] != product || len(words) < 2 {
		return "", &foreignError{fmt.Sprintf("its %s says %q: it belongs to another product. Choose another directory with --db-path, and move the data with a dump", versionFile, text)}
	}
	format = words[1]
	if format == formatVersion || slices.Contains(olderFormats, format) {
		return format, nil
	}
	writer := "the svc that wrote it"
	switch {
	case len(words) > 2 && words[2] == svcVersion: // built before the release
		writer = "the build of svc " + svcVersion + " that wrote it"
	case len(words) > 2:
		writer = "svc " + words[2]
	}
	if n, err := strconv.Atoi(format); err == nil && n < oldestFormat {
		return "", &foreignError{fmt.Sprintf("it has format version %s, but svc %s reads versions %s and %s. Make a dump with %s, and import it with --import-dump",
			format, svcVersion, strings.Join(olderFormats, ", "), formatVersion, writer)}
	}
	return "", &foreignError{fmt.Sprintf("it has format version %s, but svc %s reads versions %s and %s. Use %s, or a later one",
		format, svcVersion, strings.Join(olderFormats, ", "), formatVersion, writer)}
}

// versionContent is what VERSION says from the moment that this program opens a directory.
func versionContent() []byte { return []byte(product + " " + formatVersion + " " + svcVersion + "\n") }
