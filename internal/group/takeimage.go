package group

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"svc/internal/index"
	"svc/internal/vfs"
)

// Stores are what an image is taken of, beside files.
type Stores interface {
	// CopyQueue writes the queue file as it is now to a file that does not exist, and calls with with the names, below the data
	// directory, of the payloads that it needs.
	CopyQueue(name string, with func(payloads []string) error) error
	// CopyKeys writes the file of keys as it is now to a file that does not exist.
	CopyKeys(name string) error
}

// take takes an image of the data directory for a member. The directory changes meanwhile; see Image.
func (w *Writer) take(m *member, stores Stores) (*Image, error) {
	w.mu.Lock()
	if w.broken != nil {
		defer w.mu.Unlock()
		return nil, refused(http.StatusServiceUnavailable, "the writer has no log: %w", w.broken)
	}
	from := w.pos
	m.stateMade = true
	w.mu.Unlock()
	w.move(m, from, true) // from now on files stay
	st := &Image{Run: from}
	for _, add := range []func(*Image, *member, Stores) error{w.takeIndexes, w.takeSmall, w.takeCopies} {
		if err := add(st, m, stores); err != nil {
			return nil, fmt.Errorf("cannot take the state: %w", err)
		}
	}
	now := w.Position()
	if !now.SameLog(from) {
		return nil, refused(http.StatusServiceUnavailable, "the log was restarted meanwhile")
	}
	st.Whole = now.Index
	return st, nil
}

// takeIndexes takes CATALOG with its base, and all indexes with a manifest: also those that CATALOG does not name yet.
func (w *Writer) takeIndexes(st *Image, _ *member, _ Stores) error {
	const catalog = "indexes/CATALOG"
	if err := w.inline(st, catalog); err != nil {
		return err
	}
	switch base, err := index.BaseOf(catalog, st.Contents[len(st.Contents)-1].Data); {
	case err != nil:
		return err
	case base != "":
		if err := w.outside(st, path.Join("indexes", base)); err != nil {
			return err
		}
	}
	dirs, err := w.list("indexes")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if !index.IsDirectory(dir) {
			continue
		}
		name := path.Join("indexes", dir, "MANIFEST")
		b, err := vfs.ReadFile(w.o.FS, path.Join(w.o.Dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being made, or removed
		}
		if err != nil {
			return err
		}
		files, err := index.FilesOf(name, b)
		if err != nil {
			return err
		}
		st.Contents = append(st.Contents, Content{name, b})
		for _, file := range files {
			if err := w.outside(st, path.Join("indexes", dir, file)); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeSmall takes the small files: sealed ones, the journal of the queue, and those that describe the directory.
func (w *Writer) takeSmall(st *Image, _ *member, _ Stores) error {
	names, err := w.list(".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".json") || slices.Contains([]string{"VERSION", "STORES"}, name) {
			if err := w.inline(st, name); err != nil {
				return err
			}
		}
	}
	if err := w.inline(st, "tasks/running"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return w.takeBelow(st, "kept")
}

// takeBelow takes the files in a directory, if it exists.
func (w *Writer) takeBelow(st *Image, dir string) error {
	names, err := w.list(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		name = path.Join(dir, name)
		info, err := w.o.FS.Stat(path.Join(w.o.Dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(name, vfs.TempSuffix):
			continue
		case err == nil && info.IsDir():
			err = w.takeBelow(st, name)
		case err == nil:
			err = w.inline(st, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeCopies makes copies of the files of bbolt for the member to fetch.
func (w *Writer) takeCopies(st *Image, m *member, stores Stores) error {
	dir := path.Join(workDir, "state", m.id)
	if err := w.o.FS.RemoveAll(path.Join(w.o.Dir, dir)); err != nil {
		return err
	}
	if err := w.o.FS.MkdirAll(path.Join(w.o.Dir, dir)); err != nil {
		return err
	}
	copied := func(name, from string) error {
		info, err := w.o.FS.Stat(path.Join(w.o.Dir, from))
		if err == nil {
			st.Files = append(st.Files, ImageFile{File: File{Name: name, Size: info.Size()}, At: from})
		}
		return err
	}
	queue, keys := path.Join(dir, "queue.db"), path.Join(dir, "auth.db")
	err := stores.CopyQueue(path.Join(w.o.Dir, queue), func(payloads []string) error {
		for _, name := range payloads {
			if err := w.outside(st, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = copied("tasks/queue.db", queue)
	}
	if err == nil {
		err = stores.CopyKeys(path.Join(w.o.Dir, keys))
	}
	if err == nil {
		err = copied("auth.db", keys)
	}
	return err
}

func (w *Writer) list(dir string) ([]string, error) { return w.o.FS.List(path.Join(w.o.Dir, dir)) }

// inline adds a small file to an image.
func (w *Writer) inline(st *Image, name string) error {
	b, err := vfs.ReadFile(w.o.FS, path.Join(w.o.Dir, name))
	if err == nil {
		st.Contents = append(st.Contents, Content{name, b})
	}
	return err
}

// outside adds a file to an image that the member fetches.
func (w *Writer) outside(st *Image, name string) error {
	f, known, err := w.sums.recall(name)
	if err == nil {
		st.Files = append(st.Files, ImageFile{File: f, At: name, Known: known})
	}
	return err
}
