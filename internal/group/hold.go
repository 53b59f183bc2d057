package group

import (
	"errors"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"svc/internal/vfs"
)

// holdFS is the file system of a writer. It delays the removal of files that readers may still fetch: those named by log entries that
// some reader has not applied. If a file is created under the name of a file whose removal is delayed, it replaces that file at once.
//
// After a crash, the next start deletes the remaining files, because nothing names them.
type holdFS struct {
	vfs.FS
	dir string // of the data, with a slash

	// last returns the index of the last entry, and whether any reader has not applied it.
	last func() (index uint64, behind bool)
	// forget is called for each removed file or directory, with its name below the data directory.
	forget func(name string)

	mu   sync.Mutex
	held []held // by ascending index
}

// held is a removal that was put off.
type held struct {
	name  string
	index uint64 // of the last entry before the removal: readers that applied it have the file, or no longer need it
	all   bool   // RemoveAll
}

func newHoldFS(fsys vfs.FS, dir string, last func() (uint64, bool), forget func(string)) *holdFS {
	return &holdFS{FS: fsys, dir: path.Clean(filepath.ToSlash(dir)) + "/", last: last, forget: forget}
}

// fetchable reports whether readers may ask for a file, or a directory, of a name below the data directory.
func fetchable(name string) bool {
	parts := strings.Split(name, "/")
	last := parts[len(parts)-1]
	if strings.HasSuffix(last, vfs.TempSuffix) {
		return false
	}
	switch parts[0] {
	case "indexes":
		return len(parts) == 3 || len(parts) == 2 && last != "CATALOG"
	case "tasks":
		return len(parts) == 3 && parts[1] == "payloads"
	}
	return false
}

// asksFor checks the name of a requested file, which is any text. It must be an immutable file of the data directory or, if made is
// true, a file that was made for the member.
func asksFor(name, member string) (made bool, err error) {
	if fs.ValidPath(name) && len(name) <= maxName && strings.IndexByte(name, 0) < 0 {
		if made = path.Dir(name) == path.Join(workDir, "state", member); made || fetchable(name) {
			return made, nil
		}
	}
	return false, refused(http.StatusNotFound, "%.100q is not a file for members", name)
}

// payloadDir has the payloads of tasks, below the data directory.
const payloadDir = "tasks/payloads"

// isPayload reports whether a name below the data directory is a payload.
func isPayload(name string) bool {
	return path.Dir(name) == payloadDir && fetchable(name)
}

// hold puts a removal off, if a reader may need the file.
func (h *holdFS) hold(name string, all bool) bool {
	inside, ok := strings.CutPrefix(path.Clean(filepath.ToSlash(name)), h.dir)
	if !ok || !fetchable(inside) {
		return false
	}
	h.forget(inside)
	if _, err := h.FS.Stat(name); err != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	index, behind := h.last()
	if behind {
		h.held = append(h.held, held{path.Clean(filepath.ToSlash(name)), index, all})
	}
	return behind
}

// release makes the delayed removals for which all readers have now applied the entries up to applied.
func (h *holdFS) release(applied uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for n < len(h.held) && h.held[n].index <= applied {
		n++
	}
	if n == 0 {
		return nil
	}
	err := h.remove(h.held[:n])
	h.held = slices.Clone(h.held[n:])
	return err
}

// remove does removals. mu is held.
func (h *holdFS) remove(all []held) (err error) {
	for _, x := range all {
		var e error
		if x.all {
			e = h.FS.RemoveAll(x.name)
		} else if e = h.FS.Remove(x.name); errors.Is(e, fs.ErrNotExist) { // with its directory
			e = nil
		}
		err = errors.Join(err, e)
	}
	return err
}

// settle makes the delayed removals of a name and of its parent directories, because something is about to be created there.
func (h *holdFS) settle(name string) error {
	name = path.Clean(filepath.ToSlash(name))
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.held) == 0 {
		return nil
	}
	var now []held
	h.held = slices.DeleteFunc(h.held, func(x held) bool {
		if below(x.name, name) {
			now = append(now, x)
			return true
		}
		return false
	})
	return h.remove(now)
}

// count returns how many removals are put off.
func (h *holdFS) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

func (h *holdFS) Remove(name string) error {
	if h.hold(name, false) {
		return nil
	}
	return h.FS.Remove(name)
}

func (h *holdFS) RemoveAll(name string) error {
	if h.hold(name, true) {
		return nil
	}
	return h.FS.RemoveAll(name)
}

func (h *holdFS) Create(name string) (vfs.File, error) {
	if err := h.settle(name); err != nil {
		return nil, err
	}
	return h.FS.Create(name)
}

func (h *holdFS) Append(name string) (vfs.File, error) {
	if err := h.settle(name); err != nil {
		return nil, err
	}
	return h.FS.Append(name)
}

func (h *holdFS) Rename(oldname, newname string) error {
	if err := errors.Join(h.settle(oldname), h.settle(newname)); err != nil {
		return err
	}
	return h.FS.Rename(oldname, newname)
}

func (h *holdFS) Link(oldname, newname string) error {
	if err := h.settle(newname); err != nil {
		return err
	}
	return h.FS.Link(oldname, newname)
}

func (h *holdFS) MkdirAll(name string) error {
	if err := h.settle(name); err != nil {
		return err
	}
	return h.FS.MkdirAll(name)
}
