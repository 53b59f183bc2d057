package standby

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"svc/internal/boltfile"
	"svc/internal/commit"
	"svc/internal/index"
	"svc/internal/vfs"
)

// Options of a directory.
type Options struct {
	FS     vfs.FS // nil: vfs.OS. Files of package boltfile always are of the operating system
	Dir    string
	Logger *slog.Logger // nil: none

	// Stores are open on the directory and apply the changes of these kinds. Other kinds are applied to the files alone.
	Stores map[commit.Kind]Store
	// Sealed has a function per sealed file, by its name below the data directory. It is called after the file was replaced, so that
	// its owner reads it again.
	Sealed map[string]func() error

	noSync bool // for tests: boltfile files need not survive a power failure
}

// Store is an open store that follows: *index.Catalog, *task.Queue and *auth.Keys. The files that a change names are already in the
// directory. After an error the caller repeats the same change.
type Store interface {
	Follow(c commit.Change) error
}

// Source opens a file that a change names, by its name below the data directory. It may return a Linked. Several goroutines call it
// at once.
type Source func(name string) (io.ReadCloser, error)

// Linked is a file on the same file system whose bytes are durable and never change. It is hard-linked instead of copied.
type Linked interface{ Link(to string) error }

// Directory is a data directory that follows another one. It belongs to one goroutine.
type Directory struct {
	o   Options
	fs  vfs.FS
	dbs map[string]*boltfile.DB // by name

	// made has the directories that makeDir made durable since the last change of the catalog. Only such a change removes
	// directories.
	made map[string]bool
}

// Open returns the directory, which may be empty. If an Apply was interrupted, the caller applies that change again first.
func Open(o Options) *Directory {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Dir = path.Clean(filepath.ToSlash(o.Dir))
	return &Directory{o: o, fs: o.FS, dbs: map[string]*boltfile.DB{}, made: map[string]bool{}}
}

// Close closes the files.
func (d *Directory) Close() error {
	var err error
	for _, db := range d.dbs {
		err = errors.Join(err, db.Close())
	}
	clear(d.dbs)
	return err
}

// Apply makes a change durable. Changes come in the order of the log. After an error or a crash the caller applies the same change
// again before the next one; applying it twice does no harm. If a transaction carries the contents of files, the log keeps these:
// their names are durable, and the log restores the bytes after a crash (commit.Keeper).
func (d *Directory) Apply(c commit.Change, from Source) error {
	if err := d.apply(&c, from); err != nil {
		return fmt.Errorf("cannot apply a change (%v) of %s: %w", c.Kind, c.Name, err)
	}
	return nil
}

// apply checks the names of a change and applies it according to its kind.
func (d *Directory) apply(c *commit.Change, from Source) error {
	for _, name := range append(slices.Clone(c.Files), c.Name) {
		if !fs.ValidPath(name) || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("it names the file %q, which is outside the data directory", name)
		}
	}
	if c.Kind == commit.Catalog {
		clear(d.made)
	}
	if err := d.makeDir(path.Dir(d.path(c.Name))); err != nil {
		return err
	}
	switch c.Kind {
	case commit.Tasks, commit.Keys:
		return d.transaction(c, from)
	case commit.Manifest:
		return d.manifest(c, from)
	case commit.Catalog:
		return d.catalog(c, from)
	case commit.Begin:
		return d.follow(c, func() error { return d.replace(c) })
	case commit.Sealed:
		if err := d.replace(c); err != nil {
			return err
		}
		if reload := d.o.Sealed[c.Name]; reload != nil {
			return reload()
		}
		return nil
	}
	return errors.New("this kind of change is unknown: a later version of svc wrote it")
}

func (d *Directory) path(name string) string { return path.Join(d.o.Dir, name) }

// makeDir calls vfs.MakeDir once per directory, because each call syncs the parent directory.
func (d *Directory) makeDir(dir string) error {
	if d.made[dir] {
		return nil
	}
	err := vfs.MakeDir(d.fs, dir)
	d.made[dir] = err == nil
	return err
}

// follow passes a change to the store that has its file open, or calls alone if there is none.
func (d *Directory) follow(c *commit.Change, alone func() error) error {
	if s := d.o.Stores[c.Kind]; s != nil {
		return s.Follow(*c)
	}
	return alone()
}

func (d *Directory) replace(c *commit.Change) error {
	_, err := vfs.Replace(d.fs, d.path(c.Name), c.Data)
	return err
}

// transaction applies a change of a boltfile.
func (d *Directory) transaction(c *commit.Change, from Source) error {
	changes, err := boltfile.DecodeChanges(c.Data)
	if err != nil {
		return err
	}
	// Payloads have random names, so one that exists is complete, except those that the log keeps. An earlier attempt, maybe by a
	// killed process, may have failed to make its name durable.
	var missing []string
	for i, name := range c.Files {
		if i < len(c.Contents) && c.Contents[i] != nil {
			if err := d.keep(name, c.Contents[i]); err != nil {
				return fmt.Errorf("cannot write %s: %w", name, err)
			}
			continue
		}
		switch err := vfs.Rename(d.fs, d.path(name)); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return err
		}
	}
	if err := d.fetch(c.Files, missing, from); err != nil {
		return err
	}
	return d.follow(c, func() error {
		db := d.dbs[c.Name]
		if db == nil {
			if db, err = boltfile.Open(d.path(c.Name), boltfile.Options{Format: changes.Format, Logger: d.o.Logger, NoSync: d.o.noSync}); err != nil {
				return err
			}
			d.dbs[c.Name] = db
		}
		return db.Apply(changes)
	})
}

// manifest fetches the files that a manifest names, replaces the manifest of the index, and removes the files that it does not name.
func (d *Directory) manifest(c *commit.Change, from Source) error {
	name := d.path(c.Name)
	named, err := index.FilesOf(name, c.Data)
	if err != nil {
		return err
	}
	// A number is reused for another file if the first one was never named. Only files that the local manifest names are known to be
	// the same.
	var here []string
	switch before, err := vfs.ReadFile(d.fs, name); {
	case err == nil:
		if here, err = index.FilesOf(name, before); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(c.Files), func(file string) bool { return slices.Contains(here, path.Base(file)) })
	// Their names are in the directory of the manifest, which is synced before the manifest gets its name (vfs.Move).
	if err := d.fetch(nil, missing, from); err != nil {
		return err
	}
	return d.follow(c, func() error {
		if err := d.replace(c); err != nil {
			return err
		}
		return d.removeOthers(path.Dir(name), func(file string) bool { return file == path.Base(name) || slices.Contains(named, file) })
	})
}

// catalog fetches the base of CATALOG, replaces CATALOG, and removes the index directories and bases that it does not name.
func (d *Directory) catalog(c *commit.Change, from Source) error {
	name := d.path(c.Name)
	base, err := index.BaseOf(name, c.Data)
	if err != nil {
		return err
	}
	if base != "" {
		here := "" // a number may be reused, as for the files of an index
		switch before, err := vfs.ReadFile(d.fs, name); {
		case err == nil:
			if here, err = index.BaseOf(name, before); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if base != here {
			if err := d.fetch(c.Files, c.Files, from); err != nil {
				return err
			}
		}
	}
	named, err := index.DirectoriesOf(d.fs, path.Dir(name), c.Data)
	if err != nil {
		return err
	}
	named = append(named, base)
	return d.follow(c, func() error {
		if err := d.replace(c); err != nil {
			return err
		}
		return d.removeOthers(path.Dir(name), func(other string) bool {
			return !index.IsDirectory(other) && !index.IsBase(other) || slices.Contains(named, other)
		})
	})
}

// removeOthers removes the entries of a directory that keep rejects.
func (d *Directory) removeOthers(dir string, keep func(string) bool) error {
	names, err := d.fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if keep(name) {
			continue
		}
		if err := d.fs.RemoveAll(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// fetch copies the missing files from the source and makes the names of all files durable.
func (d *Directory) fetch(all, missing []string, from Source) error {
	dirs := map[string]bool{}
	for _, name := range all {
		dirs[path.Dir(d.path(name))] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := d.makeDir(dir); err != nil {
			return err
		}
	}
	if err := d.copyAll(missing, from); err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := d.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// keep writes a file whose content the log keeps, so its bytes need not be durable. The file may exist: a repeated change was
// interrupted, or a leader wrote the file and its log lost the entry. keep replaces it rather than overwriting it, because it may be
// open for reading. The name becomes durable with the next sync of the directory.
func (d *Directory) keep(name string, content []byte) error {
	to := d.path(name)
	if err := d.makeDir(path.Dir(to)); err != nil {
		return err
	}
	at := to
	if _, err := d.fs.Stat(to); err == nil {
		at += vfs.TempSuffix
		if err := d.fs.RemoveAll(at); err != nil { // as in copy
			return err
		}
	}
	f, err := d.fs.Create(at)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil || at == to {
		return err
	}
	return d.fs.Rename(at, to)
}

// maxCopies is how many files are copied at once. A disk syncs several files in little more time than one.
const maxCopies = 16

// copyAll copies files from the source, several at once. When it returns, all copies have ended.
func (d *Directory) copyAll(names []string, from Source) error {
	next, errs := atomic.Int64{}, make([]error, len(names))
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(names)); i = next.Add(1) - 1 {
			if err := d.copy(names[i], from); err != nil {
				errs[i] = fmt.Errorf("cannot copy %s: %w", names[i], err)
				next.Store(int64(len(names)))
				return
			}
		}
	}
	var others sync.WaitGroup
	for range min(len(names), maxCopies) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return errors.Join(errs...)
}

// copy copies a file from the source. Its bytes are durable before it gets its name.
func (d *Directory) copy(name string, from Source) error {
	in, err := from(name)
	if err != nil {
		return err
	}
	defer in.Close()
	temp := d.path(name) + vfs.TempSuffix
	if err := d.fs.RemoveAll(temp); err != nil { // it may be another name of a file in use, as in vfs.Stage
		return err
	}
	if l, ok := in.(Linked); ok {
		if l.Link(temp) == nil {
			// An earlier attempt may have linked the same file. Then a rename does nothing, and the name may be one that a failed
			// sync lost.
			if err := d.fs.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return errors.Join(err, d.fs.RemoveAll(temp))
			}
			return d.fs.Rename(temp, d.path(name))
		}
	}
	out, err := d.fs.Create(temp)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, d.fs.Remove(temp))
	}
	return d.fs.Rename(temp, d.path(name))
}
