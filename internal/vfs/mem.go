package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// MemFS is a file system in memory that knows what is durable: the bytes of a file at its last Sync, the names of a directory at its
// last SyncDir. The zero value is not usable; see NewMem.
type MemFS struct {
	mu    sync.Mutex // guards all nodes
	root  *node
	locks map[string]bool
}

// node is a file or a directory. A durable state is never modified, only replaced.
type node struct {
	dir      bool
	modified time.Time

	data, durable []byte // file; data grows by append only, so durable may share its array
	truncated     bool   // by Create since the last Sync: data does not begin with durable
	lost          []lost // of data; see Lose

	names, durableNames map[string]*node // directory
	lostNames           map[string]bool  // of names; see Lose
}

// NewMem returns an empty file system; its root directory exists and is durable.
func NewMem() *MemFS {
	return &MemFS{root: newDir(), locks: make(map[string]bool)}
}

func newDir() *node {
	return &node{dir: true, modified: time.Now(), names: map[string]*node{}, durableNames: map[string]*node{}}
}

func split(name string) []string {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

// find returns the node called name.
func (m *MemFS) find(name string) (*node, error) {
	n := m.root
	for _, part := range split(name) {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		if n = n.names[part]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

// parent returns the directory that holds name, and the last part of name.
func (m *MemFS) parent(name string) (*node, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", fs.ErrInvalid
	}
	last := len(parts) - 1
	d, err := m.find(strings.Join(parts[:last], "/"))
	if err == nil && !d.dir {
		err = syscall.ENOTDIR
	}
	return d, parts[last], err
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Create implements FS.
func (m *MemFS) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.openToWrite("create", name)
	if err != nil {
		return nil, err
	}
	f.n.data, f.n.lost, f.n.truncated, f.n.modified = nil, nil, true, time.Now()
	return f, nil
}

// Append implements FS.
func (m *MemFS) Append(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.openToWrite("append", name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// openToWrite opens a file, which is made if it is missing. The caller holds the lock.
func (m *MemFS) openToWrite(op, name string) (*memFile, error) {
	d, base, err := m.parent(name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	n := d.names[base]
	switch {
	case n == nil:
		n = &node{modified: time.Now()}
		d.set(base, n)
	case n.dir:
		return nil, pathError(op, name, syscall.EISDIR)
	}
	return &memFile{fs: m, n: n, name: name, write: true}, nil
}

// Open implements FS.
func (m *MemFS) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &memFile{fs: m, n: n, name: name}, nil
}

// Remove implements FS.
func (m *MemFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.parent(name)
	if err != nil {
		return pathError("remove", name, err)
	}
	n := d.names[base]
	if n == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if n.dir && len(n.names) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	d.set(base, nil)
	return nil
}

// RemoveAll implements FS.
func (m *MemFS) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.parent(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return pathError("removeall", name, err)
	}
	d.set(base, nil)
	return nil
}

// Rename implements FS.
func (m *MemFS) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	od, ob, err := m.parent(oldname)
	if err != nil {
		return pathError("rename", oldname, err)
	}
	nd, nb, err := m.parent(newname)
	if err != nil {
		return pathError("rename", newname, err)
	}
	n := od.names[ob]
	if n == nil {
		return pathError("rename", oldname, fs.ErrNotExist)
	}
	switch old := nd.names[nb]; {
	case old == n: // as in POSIX: both names stay
		return nil
	case old != nil && (old.dir != n.dir || old.dir && len(old.names) > 0):
		return pathError("rename", newname, fs.ErrExist)
	}
	od.set(ob, nil)
	nd.set(nb, n)
	return nil
}

// Link implements FS.
func (m *MemFS) Link(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(oldname)
	if err == nil && n.dir {
		err = fs.ErrPermission
	}
	if err != nil {
		return pathError("link", oldname, err)
	}
	d, base, err := m.parent(newname)
	if err == nil && d.names[base] != nil {
		err = fs.ErrExist
	}
	if err != nil {
		return pathError("link", newname, err)
	}
	d.set(base, n)
	return nil
}

// MkdirAll implements FS.
func (m *MemFS) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for _, part := range split(name) {
		next := n.names[part]
		if next == nil {
			next = newDir()
			n.set(part, next)
		}
		if !next.dir {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// List implements FS.
func (m *MemFS) List(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("list", name, err)
	}
	names := make([]string, 0, len(n.names))
	for name := range n.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Stat implements FS.
func (m *MemFS) Stat(name string) (os.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return n.info(name), nil
}

// SyncDir implements FS.
func (m *MemFS) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return pathError("syncdir", name, err)
	}
	n.durableNames = n.storedNames()
	return nil
}

// Lock implements Locker. A crash clone has no locks.
func (m *MemFS) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	held := m.locks[name]
	m.locks[name] = true
	m.mu.Unlock()
	if held {
		return nil, pathError("lock", name, ErrLocked)
	}
	_, err := m.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		var f File
		if f, err = m.Create(name); err == nil {
			err = f.Close()
		}
	}
	l := memLock{m, name}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

type memLock struct {
	fs   *MemFS
	name string
}

func (l memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	delete(l.fs.locks, l.name)
	return nil
}

type memFile struct {
	fs     *MemFS
	n      *node
	name   string
	write  bool
	closed bool
	off    int64
}

func (f *memFile) Name() string { return f.name }

// use checks that the file is open, and open for writing or reading as asked. The caller holds the lock.
func (f *memFile) use(op string, write bool) error {
	if f.closed {
		return pathError(op, f.name, fs.ErrClosed)
	}
	if f.write != write {
		return pathError(op, f.name, syscall.EBADF)
	}
	if f.n.dir {
		return pathError(op, f.name, syscall.EISDIR)
	}
	return nil
}

func (f *memFile) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.use("write", true); err != nil {
		return 0, err
	}
	f.n.data = append(f.n.data, p...)
	f.n.modified = time.Now()
	return len(p), nil
}

func (f *memFile) Read(p []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n, err := f.readAt(p, f.off)
	f.off += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.readAt(p, off)
}

func (f *memFile) readAt(p []byte, off int64) (int, error) {
	if err := f.use("read", false); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("read", f.name, fs.ErrInvalid)
	}
	if off >= int64(len(f.n.data)) {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.use("sync", true); err != nil {
		return err
	}
	f.n.durable, f.n.truncated = f.n.stored(), false
	return nil
}

func (f *memFile) Stat() (os.FileInfo, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return nil, pathError("stat", f.name, fs.ErrClosed)
	}
	return f.n.info(f.name), nil
}

func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	return nil
}

func (n *node) info(name string) os.FileInfo {
	return memInfo{path.Base(name), int64(len(n.data)), n.modified, n.dir}
}

type memInfo struct {
	name     string
	size     int64
	modified time.Time
	dir      bool
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return i.modified }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }
func (i memInfo) Mode() os.FileMode {
	if i.dir {
		return os.ModeDir | 0o755
	}
	return 0o644
}
