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

// Kind is the commit point at which a change is made.
type Kind uint8

// The kinds of changes. Their numbers are stored and must not change.
const (
	Tasks    Kind = iota + 1 // a transaction of the queue file; Data is that of boltfile.Tx.Changes
	Begin                    // an entry of the journal, when a batch begins; Data is the entry as in the file
	Catalog                  // CATALOG is replaced; Data is its content, as for all kinds below
	Manifest                 // the manifest of an index is replaced, or created before CATALOG names the index
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

// Change is one change of a data directory. It is idempotent.
type Change struct {
	Kind Kind
	Name string // of the changed file, below the data directory
	Data []byte
	// Files are those that become part of the data with this change, by their names below the data directory: all files of a
	// manifest, or the payloads of new tasks. They are complete and synced, except for their names, which apply syncs, and for what a
	// Keeper keeps. They may be removed once Do has returned, so the log takes what it needs before.
	Files []string
	// Contents are those of Files, by index; an entry, or the slice, is nil if the content is not at hand. Do takes what it needs of
	// them. A change read from a log has the contents that the log keeps.
	Contents [][]byte
}

// SmallFile is the size in bytes up to which a log may want to store the content of a file with the change.
const SmallFile = 32 << 10

// Log records changes in order. It is safe for concurrent use, but not for two changes of one file.
type Log interface {
	// Do calls apply at most once, which makes the change durable, and records the change if apply returns nil. It returns an error
	// of apply as it is: for this run of the program the change is not made, but a crash may leave the file with it. The next change
	// of the file settles this.
	//
	// The caller may reuse the content of c once Do returns.
	Do(c Change, apply func() error) error
}

// Keeper is a Log that may store the contents of small files. After a power failure it restores them before stores read them.
type Keeper interface {
	Log
	// Keep reports whether the log stores the content of a file that is written but not synced. Then only its name has to be synced.
	// The change that names the file comes next, or the file is removed.
	Keep(name string, content []byte) bool
}

// Keep reports whether the file system has a log that stores the content of a file: see Keeper.
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
	dir string // data directory, with a trailing slash
	log Log
}

// On returns a file system that passes the changes below a directory to a log. Other wrappers of a file system belong below it.
func On(fsys vfs.FS, dir string, log Log) vfs.FS {
	return &logged{fsys, path.Clean(filepath.ToSlash(dir)) + "/", log}
}

// Logged reports whether a file system has a log.
func Logged(fsys vfs.FS) bool { return logOf(fsys) != nil }

// Do makes a change durable with apply, through the log of the file system if there is one. It calls change only if there is a log.
// change uses the same names as apply.
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

// Ahead runs prepare: work that a change needs, that modifies no file of the directory, and that can be dropped if the log refuses
// the change. Without a log, prepare runs before Ahead returns. With a log, it runs while Do has the log accept the change. The apply
// function of Do calls wait first. The caller of Do also calls wait, even after an error, so that nothing keeps running.
//
// wait returns a panic of prepare as an error, because the goroutine of prepare has no other recovery. The stack goes to the log file
// and not into the error, which tasks store.
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
