package publish

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"svc/internal/boltfile"
	"svc/internal/commit"
	"svc/internal/group"
	"svc/internal/index"
	"svc/internal/vfs"
)

const (
	catalogFile  = "indexes/CATALOG" // names the indexes of a data directory
	payloadsDir  = "tasks/payloads"
	maxUnwritten = 4 << 20 // bytes of transactions that are made together
)

// content is the content of a data directory: an image with the changes of entries. What an entry adds and a later one removes is not
// fetched. Package standby applies the same entries one after the other, in a directory that survives a crash after each of them.
type content struct {
	small map[string][]byte                // files that images and entries have the bytes of, by name
	files map[string]map[string]group.File // those that they name, by directory and name
	dbs   map[string]group.File            // of bbolt, as the image has them
	// made has the directories whose manifest was written after the last change of CATALOG; nil: there was none. That change removed
	// older directories that it does not name.
	made map[string]bool
}

func contentOf(st *group.Image) *content {
	c := &content{small: map[string][]byte{}, files: map[string]map[string]group.File{}, dbs: map[string]group.File{}}
	for i := range st.Contents {
		c.small[st.Contents[i].Name] = st.Contents[i].Data
	}
	for i := range st.Files {
		switch f := st.Files[i].File; f.Name {
		case "tasks/queue.db", "auth.db":
			c.dbs[f.Name] = f
		default:
			c.add(f)
		}
	}
	return c
}

// add adds files that entries or an image name.
func (c *content) add(files ...group.File) {
	for _, f := range files {
		dir := path.Dir(f.Name)
		if c.files[dir] == nil {
			c.files[dir] = map[string]group.File{}
		}
		c.files[dir][f.Name] = f
	}
}

// all returns the files that are to be fetched.
func (c *content) all() (files []group.File) {
	for _, f := range c.dbs {
		files = append(files, f)
	}
	for _, dir := range c.files {
		files = slices.AppendSeq(files, maps.Values(dir))
	}
	return files
}

// change applies an entry, unless it is a transaction.
func (c *content) change(e *group.Entry) error {
	if e.Change.Kind == 0 {
		return nil
	}
	name, dir := e.Change.Name, path.Dir(e.Change.Name)
	for _, n := range append(slices.Clone(e.Change.Files), name) {
		if !filepath.IsLocal(filepath.FromSlash(n)) {
			return fmt.Errorf("a change names the file %q, which is outside the data directory", n)
		}
	}
	switch e.Change.Kind {
	case commit.Tasks, commit.Keys:
	case commit.Begin, commit.Sealed:
		c.small[name] = bytes.Clone(e.Change.Data)
	case commit.Manifest:
		c.small[name] = bytes.Clone(e.Change.Data)
		named, err := index.FilesOf(name, e.Change.Data)
		if err != nil {
			return err
		}
		// The entry may leave out files that the manifest before names.
		maps.DeleteFunc(c.files[dir], func(file string, _ group.File) bool { return !slices.Contains(named, path.Base(file)) })
		if c.made != nil {
			c.made[dir] = true
		}
	case commit.Catalog:
		c.small[name] = bytes.Clone(e.Change.Data)
		delete(c.files, dir)
		c.made = map[string]bool{}
	default:
		return fmt.Errorf("unknown kind of change %d: a later version of svc wrote it. Restore with that version", e.Change.Kind)
	}
	c.add(e.Files...)
	for _, n := range e.Removed {
		delete(c.files[payloadsDir], n)
	}
	return nil
}

// catalog returns CATALOG, and its base file, if there is one.
func (c *content) catalog() (b []byte, base *group.File) {
	for _, f := range c.files[path.Dir(catalogFile)] {
		if index.IsBase(path.Base(f.Name)) {
			base = &f
		}
	}
	return c.small[catalogFile], base
}

// removeUnnamed removes the indexes that the last change of CATALOG removed. Its base is in the directory root.
func (c *content) removeUnnamed(fsys vfs.FS, root string) error {
	if c.made == nil {
		return nil
	}
	indexes := path.Dir(catalogFile)
	named, err := index.DirectoriesOf(fsys, path.Join(root, indexes), c.small[catalogFile])
	if err != nil {
		return err
	}
	stays := map[string]bool{}
	for _, base := range named {
		stays[path.Join(indexes, base)] = true
	}
	for name := range c.small {
		dir := path.Dir(name)
		if path.Dir(dir) == indexes && index.IsDirectory(path.Base(dir)) && !stays[dir] && !c.made[dir] {
			delete(c.small, name)
			delete(c.files, dir)
		}
	}
	return nil
}

// transactions applies the transactions of entries to files of bbolt, several together. The files survive a crash only after close.
type transactions struct {
	o     boltfile.Options
	dir   string
	dbs   map[string]*boltfile.DB // by name, as all below
	next  map[string][]*boltfile.Changes
	bytes int // in next
}

func newTransactions(dir string, o boltfile.Options) *transactions {
	return &transactions{o: o, dir: dir, dbs: map[string]*boltfile.DB{}, next: map[string][]*boltfile.Changes{}}
}

// add adds the transaction of an entry. The bytes of the entry must not change.
func (t *transactions) add(e *group.Entry) error {
	changes, err := boltfile.DecodeChanges(e.Change.Data)
	if err != nil {
		return err
	}
	t.next[e.Change.Name] = append(t.next[e.Change.Name], changes)
	if t.bytes += len(e.Change.Data); t.bytes < maxUnwritten {
		return nil
	}
	return t.write()
}

// write makes the gathered transactions of each file in one, without a sync: a restore syncs the files at its
// end.
func (t *transactions) write() error {
	for name, all := range t.next {
		db := t.dbs[name]
		if db == nil {
			o := t.o
			o.Format, o.NoSync = all[0].Format, true
			var err error
			if db, err = boltfile.Open(path.Join(t.dir, name), o); err != nil {
				return err
			}
			t.dbs[name] = db
		}
		err := db.Update(func(tx *boltfile.Tx) error {
			for _, c := range all {
				if err := tx.Apply(c); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	clear(t.next)
	t.bytes = 0
	return nil
}

// finish makes those that are left, durably.
func (t *transactions) finish() error {
	if err := t.write(); err != nil {
		return err
	}
	for _, db := range t.dbs {
		if err := db.Sync(); err != nil {
			return err
		}
	}
	return nil
}

func (t *transactions) close() (err error) {
	for _, db := range t.dbs {
		err = errors.Join(err, db.Close())
	}
	return err
}
