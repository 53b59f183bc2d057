// Package audit writes the audit log: a line of JSON for each administrative change of an instance. Append syncs a line before it
// returns, so every answered change is in the log. A full file is renamed to FILE.1, that to FILE.2 and so on; the oldest is removed.
// A pipe or a terminal, such as /dev/stdout, is neither synced nor renamed. If another program renames, removes or truncates the file,
// the next line begins a new file. Requests that are refused because of their key are summarized by the minute.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"svc/internal/vfs"
)

const (
	maxBytes = 64 << 20 // of a file
	maxFiles = 10       // besides the current one
)

// Entry is a change that a client made or tried to make.
type Entry struct {
	Time    time.Time `json:"time"`
	Key     string    `json:"key"` // uid of the API key, or Master; "": unknown
	Action  string    `json:"action"`
	Method  string    `json:"method"`
	Route   string    `json:"route"`  // with variable names
	Object  string    `json:"object"` // the uid of an index, a key, …; "": the instance
	Address string    `json:"address"`
	Status  int       `json:"status"`  // of the answer
	Outcome string    `json:"outcome"` // Done, Enqueued, Refused, or the code of the error
	Task    *uint32   `json:"task,omitempty"`
	Count   int       `json:"count,omitempty"` // of Refused: of requests
}

// Values of Entry.Key and Entry.Outcome.
const (
	Master   = "master"
	Done     = "done"
	Enqueued = "enqueued"
	Refused  = "refused" // further requests of a key at an address, of which nothing else is known; see Log.Refuse
)

// Log is an audit log. It is safe for concurrent use.
type Log struct {
	fs       vfs.FS
	name     string
	maxBytes int64

	mu   sync.Mutex
	file vfs.File
	kind fileKind
	size int64
	torn bool // the file may end with an incomplete line

	refused *refusals // nil: none since the last summary
	closed  bool
}

// fileKind is what can be done with the current file.
type fileKind struct {
	syncs   bool // it is a regular file
	renames bool // and has a name of its own, unlike a file that /dev/stdout leads to
}

// Open opens the file or creates it, readable for its owner only.
func Open(fsys vfs.FS, name string) (*Log, error) {
	l := &Log{fs: fsys, name: name, maxBytes: maxBytes}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("cannot open the audit log: %w", err)
	}
	return l, nil
}

// open opens the current file at its end. l.mu is held, or l is not shared yet.
func (l *Log) open() error {
	f, err := l.fs.Append(l.name)
	if err != nil {
		return err
	}
	kind, size, torn, err := l.end()
	if err == nil {
		err = l.fs.SyncDir(path.Dir(l.name)) // the file may be new
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.kind, l.size, l.torn = f, kind, size, torn
	return nil
}

// end returns the kind and the size of the current file, and whether its last line is incomplete after a crash.
func (l *Log) end() (kind fileKind, size int64, torn bool, err error) {
	f, err := l.fs.Open(l.name)
	if err != nil {
		return kind, 0, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return kind, 0, false, err
	}
	kind.syncs = info.Mode().IsRegular()
	kind.renames = kind.syncs && !strings.HasPrefix(l.name, "/dev/")
	if !kind.syncs || info.Size() == 0 {
		return kind, 0, false, nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return kind, 0, false, err
	}
	return kind, info.Size(), last[0] != '\n', nil
}

// Append writes an entry and syncs it. After an error the entry may be missing; the next Append works again.
func (l *Log) Append(e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(e)
}

// write is Append while l.mu is held.
func (l *Log) write(e Entry) error {
	e.Time = e.Time.UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot write to the audit log %s: %w", l.name, err)
	}
	line = append(line, '\n')
	if err := l.append(line); err != nil {
		return fmt.Errorf("cannot write to the audit log: %w", err)
	}
	return nil
}

func (l *Log) append(line []byte) error {
	if err := l.leaveMoved(); err != nil {
		return err
	}
	if l.file == nil { // it was moved, or could not be opened again
		if err := l.open(); err != nil {
			return err
		}
	}
	if l.kind.renames && l.size > 0 && l.size+int64(len(line)) > l.maxBytes {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	if n > 0 {
		l.torn = n < len(line)
	}
	if err != nil || !l.kind.syncs {
		return err
	}
	return l.file.Sync()
}

// leaveMoved closes the file if another program, such as logrotate, has renamed, removed or truncated it. Only the size under the name
// is compared: a file that took the name is empty, or has lines of its own.
func (l *Log) leaveMoved() error {
	if l.file == nil || !l.kind.renames {
		return nil
	}
	info, err := l.fs.Stat(l.name)
	if err == nil && info.Size() == l.size || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // of another error, the write says more
	}
	err = l.file.Close()
	l.file = nil
	return err
}

// rotate begins a new file. Each file is durable under its new name before the old name is removed, so no crash loses a file. A crash
// may leave a file under two names.
func (l *Log) rotate() error {
	err := l.file.Close()
	l.file = nil
	if err != nil {
		return err
	}
	for n := maxFiles - 1; n >= 0; n-- {
		if _, err := l.fs.Stat(l.numbered(n)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := l.fs.Remove(l.numbered(n + 1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := l.fs.Link(l.numbered(n), l.numbered(n+1)); err != nil {
			return err
		}
		if err := l.fs.SyncDir(path.Dir(l.name)); err != nil {
			return err
		}
	}
	if err := l.fs.Remove(l.name); err != nil {
		return err
	}
	return l.open()
}

// numbered returns the name of an older file; 0 is the current one.
func (l *Log) numbered(n int) string {
	if n == 0 {
		return l.name
	}
	return l.name + "." + strconv.Itoa(n)
}

// Close writes the summaries of refused requests, and closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var err error
	if l.refused != nil {
		l.refused.timer.Stop()
		err = l.summarize()
		l.refused = nil
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
		l.file = nil
	}
	return err
}
