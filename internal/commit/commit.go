package commit

import (
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	"svc/internal/vfs"
)

// Kind says which commit point a change is made at.
type Kind uint8

// The kinds of changes. Their numbers may be stored: they do not change.
const (
	Tasks    Kind = iota + 1 // a transaction of the queue file; Data is that of boltfile.Tx.Changes
	Begin                    // an entry of the journal, when a batch begins; Data is the entry as it stands in the file
	Catalog                  // CATALOG is replaced; Data is its content, as of all below
	Manifest                 // the manifest of an index is replaced, or made before CATALOG names the index
	Keys                     // a transaction of the key file; Data is that of boltfile.Tx.Changes
	Sealed                   // a sealed JSON file is replaced
)

var kindNames = [...]string{Tasks: "tasks", Begin: "begin", Catalog: "catalog", Manifest: "manifest", Keys: "keys", Sealed: "sealed"}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Change is one change of a data directory. Making it twice is the same as making it once.
type Change struct {
	Kind Kind
	Name string // of the file that changes, below the data directory
	Data []byte
	// Files are those that count from this change on, by their names below the data directory. The manifest names all of its files, a
	// transaction of the queue the payloads of its new tasks. They are whole, and synced but for their names, which apply syncs, and for
	// what a Keeper keeps. They may be removed once Do has returned: the log takes what it wants of them before.
	Files []string
	// Contents are those of Files, by number: nil where it is not at hand. There may be none at all. Do takes what it wants of them. A
	// change that comes from a log has those that the log keeps.
	Contents [][]byte
}

// SmallFile is the largest file whose content a log may want to have with its change, in bytes.
const SmallFile = 32 << 10

// Log takes up changes in their order. It may be called by several goroutines, but not for one file at a time.
type Log interface {
	// Do calls apply, once at most, which makes the change durable, and takes it up when apply returns nil. An error of apply is returned
	// as it is: the change is not made as far as this run of the program is concerned, but a crash may leave the file with it. The next
	// change of the file ends that doubt.
	//
	// The content of c is the caller's again when Do returns.
	Do(c Change, apply func() error) error
}

// Keeper is a Log that may keep the contents of small files: after a power failure it makes them whole before stores read them.
type Keeper interface {
	Log
	// Keep reports whether it keeps the content of a file, which is written but not synced: then only its name need be. The change that
	// names the file comes next, or the file is removed.
	Keep(name string, content []byte) bool
}

// Keep reports whether the log of a file system keeps the content of a file, if there is one: see Keeper.
func Keep(fsys vfs.FS, name string, content []byte) bool {
	l := logOf(fsys)
	if l == nil {
		return false
	}
	k, ok := l.log.(Keeper)
	if !ok {
		return false
	}
	below, err := l.below(name)
	return err == nil && k.Keep(below, content)
}

// logged is a file system with a log.
type logged struct {
	vfs.FS
	dir string // of the data, with a slash
	log Log
}

// On returns a file system whose users tell a log of the changes that they make below a directory. Other wrappers of a file system
// belong below it.
func On(fsys vfs.FS, dir string, log Log) vfs.FS {
	return &logged{fsys, path.Clean(filepath.ToSlash(dir)) + "/", log}
}

// Logged reports whether a file system has a log.
func Logged(fsys vfs.FS) bool { return logOf(fsys) != nil }

// Do makes a change durable with apply, through the log of the file system if there is one. Only then it calls change, whose names are
// those that apply uses.
func Do(fsys vfs.FS, change func() (Change, error), apply func() error) error {
	l := logOf(fsys)
	if l == nil {
		return apply()
	}
	c, err := change()
	if err != nil {
		return err
	}
	if c.Name, err = l.below(c.Name); err != nil {
		return err
	}
	files := make([]string, len(c.Files))
	for i, name := range c.Files {
		if files[i], err = l.below(name); err != nil {
			return err
		}
	}
	c.Files = files
	return l.log.Do(c, apply)
}

// Ahead runs prepare: work that a change needs, that alters no file of the directory, and that can be dropped if the log refuses the
// change. Without a log, prepare runs before Ahead returns. With a log, it runs while Do has the log accept the change. The apply function
// of Do calls wait first. The caller of Do also calls wait, even after an error, so that nothing keeps running.
//
// A panic of prepare is an error of wait: nobody could recover it on a goroutine of its own. Its stack goes to the log file, not into the
// error, which tasks store.
func Ahead(fsys vfs.FS, log *slog.Logger, prepare func() error) (wait func() error) {
	if !Logged(fsys) {
		err := fenced(log, prepare)
		return func() error { return err }
	}
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = fenced(log, prepare)
	}()
	return func() error {
		<-done
		return err
	}
}

// fenced calls prepare and returns its panic as an error.
func fenced(log *slog.Logger, prepare func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("the preparation of a change panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("cannot prepare a change: panic: %v", p)
		}
	}()
	return prepare()
}

// below returns a name relative to the directory.
func (l *logged) below(name string) (string, error) {
	rest, ok := strings.CutPrefix(path.Clean(filepath.ToSlash(name)), l.dir)
	if !ok {
		return "", fmt.Errorf("cannot log a change of %s: it is not below %s", name, l.dir)
	}
	return rest, nil
}
