package vfs

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// OpKind names a file operation.
type OpKind string

// The operations. Those after List change nothing.
const (
	OpCreate    OpKind = "create"
	OpAppend    OpKind = "append"
	OpWrite     OpKind = "write"
	OpSync      OpKind = "sync"
	OpRename    OpKind = "rename"
	OpLink      OpKind = "link"
	OpRemove    OpKind = "remove"
	OpRemoveAll OpKind = "removeall"
	OpMkdir     OpKind = "mkdir"
	OpSyncDir   OpKind = "syncdir"
	OpList      OpKind = "list"
	OpStat      OpKind = "stat"
	OpOpen      OpKind = "open"
	OpRead      OpKind = "read"
	OpClose     OpKind = "close"
)

// Changes reports whether the operation changes what a later reader, or a crash, finds.
func (k OpKind) Changes() bool {
	switch k {
	case OpList, OpStat, OpOpen, OpRead, OpClose:
		return false
	}
	return true
}

// Op is one operation as a hook sees it.
type Op struct {
	Kind    OpKind
	Name    string
	NewName string // of rename and link
	Bytes   int    // of write and read
}

func (o Op) String() string {
	if o.NewName != "" {
		return fmt.Sprintf("%s %s %s", o.Kind, o.Name, o.NewName)
	}
	return string(o.Kind) + " " + o.Name
}

// Hook returns a file system that calls before ahead of every operation on fsys and its files. If before returns an error, the
// operation fails with it and is not done. A failed write leaves the first half of its bytes, like a full disk. Reads of a mapped
// file do not call before. Several goroutines may call it.
func Hook(fsys FS, before func(Op) error) FS { return &hookFS{fsys, before} }

// FailFrom returns a hook that fails the operations n, n+1, … up to n+count−1
// (from 0) among those that match accepts (nil: all) with err.
func FailFrom(n, count int64, match func(Op) bool, err error) func(Op) error {
	var seen atomic.Int64
	return func(o Op) error {
		if match != nil && !match(o) {
			return nil
		}
		if i := seen.Add(1) - 1; i >= n && i < n+count {
			return fmt.Errorf("%s: %w", o, err)
		}
		return nil
	}
}

// Log collects one line per operation that changes something. Consecutive writes to a file, whatever happens to other files in
// between, share one line, that of the first.
type Log struct {
	mu      sync.Mutex
	lines   []string
	writing map[string]bool
}

// Hook is the hook that feeds the log.
func (l *Log) Hook(o Op) error {
	if !o.Kind.Changes() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.Kind == OpWrite {
		if l.writing[o.Name] {
			return nil
		}
		if l.writing == nil {
			l.writing = make(map[string]bool)
		}
		l.writing[o.Name] = true
	} else {
		delete(l.writing, o.Name)
	}
	l.lines = append(l.lines, o.String())
	return nil
}

// Take returns the lines so far and forgets them.
func (l *Log) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines, l.writing = nil, nil
	return lines
}

type hookFS struct {
	FS
	before func(Op) error
}

func (h *hookFS) Create(name string) (File, error) {
	if err := h.before(Op{Kind: OpCreate, Name: name}); err != nil {
		return nil, err
	}
	return h.file(h.FS.Create(name))
}

func (h *hookFS) Append(name string) (File, error) {
	if err := h.before(Op{Kind: OpAppend, Name: name}); err != nil {
		return nil, err
	}
	return h.file(h.FS.Append(name))
}

func (h *hookFS) Open(name string) (File, error) {
	if err := h.before(Op{Kind: OpOpen, Name: name}); err != nil {
		return nil, err
	}
	return h.file(h.FS.Open(name))
}

func (h *hookFS) file(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	hf := &hookFile{f, h.before}
	if o, ok := f.(OSFile); ok {
		return hookOSFile{hf, o}, nil
	}
	return hf, nil
}

func (h *hookFS) Remove(name string) error {
	if err := h.before(Op{Kind: OpRemove, Name: name}); err != nil {
		return err
	}
	return h.FS.Remove(name)
}

func (h *hookFS) RemoveAll(name string) error {
	if err := h.before(Op{Kind: OpRemoveAll, Name: name}); err != nil {
		return err
	}
	return h.FS.RemoveAll(name)
}

func (h *hookFS) Rename(oldname, newname string) error {
	if err := h.before(Op{Kind: OpRename, Name: oldname, NewName: newname}); err != nil {
		return err
	}
	return h.FS.Rename(oldname, newname)
}

func (h *hookFS) Link(oldname, newname string) error {
	if err := h.before(Op{Kind: OpLink, Name: oldname, NewName: newname}); err != nil {
		return err
	}
	return h.FS.Link(oldname, newname)
}

func (h *hookFS) MkdirAll(name string) error {
	if err := h.before(Op{Kind: OpMkdir, Name: name}); err != nil {
		return err
	}
	return h.FS.MkdirAll(name)
}

func (h *hookFS) List(name string) ([]string, error) {
	if err := h.before(Op{Kind: OpList, Name: name}); err != nil {
		return nil, err
	}
	return h.FS.List(name)
}

func (h *hookFS) Stat(name string) (os.FileInfo, error) {
	if err := h.before(Op{Kind: OpStat, Name: name}); err != nil {
		return nil, err
	}
	return h.FS.Stat(name)
}

func (h *hookFS) SyncDir(name string) error {
	if err := h.before(Op{Kind: OpSyncDir, Name: name}); err != nil {
		return err
	}
	return h.FS.SyncDir(name)
}

type hookFile struct {
	File
	before func(Op) error
}

type hookOSFile struct {
	*hookFile
	of OSFile
}

func (h hookOSFile) OSFile() *os.File { return h.of.OSFile() }

func (h *hookFile) Read(p []byte) (int, error) {
	if err := h.before(Op{Kind: OpRead, Name: h.Name(), Bytes: len(p)}); err != nil {
		return 0, err
	}
	return h.File.Read(p)
}

func (h *hookFile) ReadAt(p []byte, off int64) (int, error) {
	if err := h.before(Op{Kind: OpRead, Name: h.Name(), Bytes: len(p)}); err != nil {
		return 0, err
	}
	return h.File.ReadAt(p, off)
}

func (h *hookFile) Write(p []byte) (int, error) {
	if err := h.before(Op{Kind: OpWrite, Name: h.Name(), Bytes: len(p)}); err != nil {
		n, _ := h.File.Write(p[:len(p)/2])
		return n, err
	}
	return h.File.Write(p)
}

func (h *hookFile) Sync() error {
	if err := h.before(Op{Kind: OpSync, Name: h.Name()}); err != nil {
		return err
	}
	return h.File.Sync()
}

// Close closes the file in any case: a failed close gives the descriptor back too.
func (h *hookFile) Close() error {
	if err := h.before(Op{Kind: OpClose, Name: h.Name()}); err != nil {
		h.File.Close()
		return err
	}
	return h.File.Close()
}
