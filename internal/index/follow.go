package index

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"

	"svc/internal/commit"
	"svc/internal/vfs"
)

// A catalog in follow mode shows the indexes of another program, the writer, and applies its changes with Follow. It serves reads and
// takes no batches, merges or settings of its own. Eviction, inspection and the repair of columns continue, because they change
// neither a manifest nor CATALOG. A file that no manifest names may belong to a change that is being fetched, so opening an index
// removes none.

// errFollows is the error of a write to a catalog that follows.
var errFollows = errors.New("the indexes are a copy of those of another svc, and only that one can change them")

// Follow applies a change of CATALOG or of a manifest. The files that it names are in the directory, synced. Views in use stay valid.
// After an error the caller applies the same change again before any other; applying it twice does no harm.
func (c *Catalog) Follow(change commit.Change) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	switch {
	case c.changing.closed:
		return errors.New("cannot follow a change of the indexes: they are being closed")
	case !c.follows.Load():
		return errors.New("cannot follow a change of the indexes: they follow nobody")
	}
	directory, base := path.Base(path.Dir(change.Name)), path.Base(change.Name)
	switch number, ok := number(directory); {
	case change.Kind == commit.Catalog && base == catalogName:
		return c.followCatalog(change.Data)
	case change.Kind == commit.Manifest && base == manifestName && ok:
		return c.followManifest(number, change.Data)
	}
	return fmt.Errorf("%s is not a file of indexes", change.Name)
}

// Lead ends the following: from then on the catalog takes writes and merges segments, as if it had been opened without Options.Follow. It
// first removes what the last change left. The caller has ended its calls of Follow.
func (c *Catalog) Lead() error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if !c.follows.Load() {
		return nil
	}
	if c.changing.closed {
		return errors.New("cannot lead the indexes: they are being closed")
	}
	if err := c.removeUnnamed(nil); err != nil {
		return err
	}
	for _, ix := range c.all() {
		ix.committing.Lock()
		ix.sweepLocked(ix.current.Load(), nil)
		ix.committing.Unlock()
	}
	c.follows.Store(false)
	c.compactor.merge()
	c.compactor.wg.Go(func() { c.startupScan(c.compactor.ctx) })
	return nil
}

// uidOf returns the uid of the index in a directory; "" when CATALOG names none there. changing is held.
func (c *Catalog) uidOf(number uint64) string {
	for uid, n := range c.changing.content.indexes {
		if n == number {
			return uid
		}
	}
	return ""
}

// followManifest replaces the manifest of the index in a directory, which CATALOG may not name yet. changing is held.
func (c *Catalog) followManifest(number uint64, b []byte) error {
	dir := path.Join(c.dir, directoryName(number))
	name := path.Join(dir, manifestName)
	m, err := decodeManifest(name, b)
	if err != nil {
		return err
	}
	uid := c.uidOf(number)
	if ix := c.Get(uid); ix != nil {
		if err := ix.install(m, b); err != nil {
			return fmt.Errorf("cannot follow a change of index %s: %w", uid, err)
		}
		return nil
	}
	if err := vfs.MakeDir(c.options.FS, dir); err != nil {
		return err
	}
	if _, err := vfs.Replace(c.options.FS, name, b); err != nil {
		return err
	}
	c.sweep(dir, m, nil)
	if uid != "" { // it was quarantined: the damaged part may be gone
		c.reopenLocked(uid)
	}
	return nil
}

// sweep removes the files in the directory of an index that neither the manifest nor keep names. Files that cannot be removed stay
// until the next start.
func (c *Catalog) sweep(dir string, m *manifest, keep map[string]bool) {
	named := map[string]bool{}
	for _, name := range m.files() {
		named[name] = true
	}
	if err := c.removeStrangers(dir, func(name string) bool { return ours(name) && !named[name] && !keep[name] }); err != nil {
		c.options.Logger.Warn("cannot remove unused files; the next start removes them", slog.String("directory", dir), slog.Any("error", err))
	}
}

// followCatalog replaces CATALOG, opens the indexes that it adds and drops those that it does not name any more. changing is held.
func (c *Catalog) followCatalog(b []byte) error {
	name := path.Join(c.dir, catalogName)
	content, aliases, err := decodeCatalog(name, b, c.readBase)
	if err != nil {
		return err
	}
	c.open.RLock()
	here, quarantined := map[uint64]*Index{}, map[uint64]damagedIndex{}
	for uid, n := range c.changing.content.indexes {
		if ix := c.open.indexes[uid]; ix != nil {
			here[n] = ix
		} else {
			quarantined[n] = c.open.damaged[uid]
		}
	}
	c.open.RUnlock()
	indexes, damaged := map[string]*Index{}, map[string]damagedIndex{}
	var opened []*Index
	failed := map[string]error{}
	for _, uid := range slices.Sorted(maps.Keys(content.indexes)) {
		n := content.indexes[uid]
		if d, ok := quarantined[n]; ok {
			damaged[uid] = d
			delete(quarantined, n)
			continue
		}
		ix := here[n]
		if ix == nil {
			ix, err = c.openIndex(path.Join(c.dir, directoryName(n)), uid)
			if err != nil && lacking(err) {
				closeAll(opened)
				return fmt.Errorf("cannot open index %s: %w", uid, err)
			}
			if err != nil {
				failed[uid] = err
				continue
			}
			opened = append(opened, ix)
		}
		delete(here, n)
		indexes[uid] = ix
	}
	renamed, err := vfs.Replace(c.options.FS, name, b)
	if !renamed {
		closeAll(opened)
		return err
	}
	c.changing.content = content
	c.showAll(indexes, damaged)
	c.aliases.Store(c.Aliases().after(c.Aliases().changesTo(aliases)))
	for uid, err := range failed {
		d := c.asDamaged(uid, c.directoryOf(uid), err)
		c.open.Lock()
		c.open.damaged[uid] = d
		c.open.Unlock()
	}
	if err != nil { // what the CATALOG before names may be needed
		for _, ix := range here {
			ix.close()
		}
		return err
	}
	dropped := map[string]bool{}
	for _, ix := range here {
		dropped[path.Base(ix.dir)] = true
		ix.drop()
	}
	return c.removeUnnamed(dropped)
}

func closeAll(indexes []*Index) {
	for _, ix := range indexes {
		ix.close()
	}
}

// removeUnnamed removes the directories of indexes that CATALOG does not name, except those in others, bases that it does not name,
// and the temporary files of its last change.
func (c *Catalog) removeUnnamed(others map[string]bool) error {
	named := map[string]bool{baseName(c.changing.content.base): true}
	for _, n := range c.changing.content.indexes {
		named[directoryName(n)] = true
	}
	return c.removeStrangers(c.dir, func(name string) bool {
		return (IsDirectory(name) || IsBase(name)) && !named[name] && !others[name] || name == catalogName+vfs.TempSuffix
	})
}
