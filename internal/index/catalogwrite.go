package index

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/vfs"
)

// begin makes the CATALOG of a new directory.
func (c *Catalog) begin() error {
	fsys := c.options.FS
	if err := vfs.MakeDir(fsys, c.dir); err != nil {
		return fmt.Errorf("cannot create %s: %w", c.dir, err)
	}
	names, err := fsys.List(c.dir)
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", c.dir, err)
	}
	for _, name := range names {
		// The first CATALOG is written before the first index, so here CATALOG is lost. Do not write a new one: all indexes would then
		// be unknown files, and be removed.
		if _, ok := number(name); ok {
			return &apierr.Corruption{File: path.Join(c.dir, catalogName), Offset: -1, Reason: "it is missing, but there are indexes beside it"}
		}
	}
	c.changing.content.indexes = map[string]uint64{}
	return c.write(c.draft())
}

// write makes the draft the catalog on disk, or leaves it as it was. If it is unknown which of them is on disk, see settle.
func (c *Catalog) write(d *catalogDraft) error {
	now := &c.changing.content
	f, all := c.after(d)
	made := ""
	if all != nil {
		made = path.Join(c.dir, baseName(f.Base))
		b, err := json.Marshal(all)
		if err == nil {
			err = vfs.WriteFile(c.options.FS, made, baseSeal.wrap(b))
		}
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", made, err)
		}
	}
	b, err := f.encode()
	if err != nil {
		return err
	}
	name, unsure := path.Join(c.dir, catalogName), false
	err = commit.Do(c.options.FS, func() (commit.Change, error) {
		change := commit.Change{Kind: commit.Catalog, Name: name, Data: b}
		if f.Base != 0 {
			change.Files = []string{path.Join(c.dir, baseName(f.Base))}
		}
		return change, nil
	}, func() (err error) {
		unsure, err = vfs.Change(c.options.FS, name, b, func() ([]byte, error) { return c.now().encode() })
		return err
	})
	was := now.base
	if err == nil {
		for uid, n := range d.Indexes {
			if delete(now.indexes, uid); n != nil {
				now.indexes[uid] = *n
			}
		}
		now.next, now.last, now.base, now.since = f.Next, f.Last, f.Base, entries{}
		if f.Base != 0 {
			now.since = f.entries
		}
		c.aliases.Store(c.aliases.Load().after(d.Aliases))
	}
	if unsure || err == nil { // an error before the rename leaves things as they are
		c.unsure.Store(unsure)
	}
	if unsure {
		now.next = f.Next // the CATALOG of the disk may use these numbers
	}
	switch {
	case c.unsure.Load(): // the disk may have either CATALOG
	case err != nil && made != "":
		if !c.removeBase(f.Base) {
			now.next = f.Next // a rewritten file needs a new name: the sync of this one may have failed
		}
	case err == nil && was != 0 && was != f.Base:
		c.removeBase(was)
	}
	return err
}

// now returns the content of CATALOG as it is.
func (c *Catalog) now() *catalogFile {
	now := &c.changing.content
	f := &catalogFile{entries: now.since, Next: now.next, Last: now.last, Base: now.base}
	if f.Base == 0 {
		f.entries = c.entries().changes()
	}
	return f
}

// after returns the content of CATALOG after a change, and all entries if they are to be written to a new base.
func (c *Catalog) after(d *catalogDraft) (f *catalogFile, all *catalogBase) {
	now := &c.changing.content
	f = &catalogFile{Next: d.next, Last: d.last, Base: now.base}
	limit := c.options.inlineCatalog
	if now.base != 0 {
		limit /= 4
		if (len(now.indexes)+c.Aliases().Len()-d.removed())*entryBytes > limit { // else they may fit into CATALOG again
			if f.entries = now.since.with(&d.entries); f.bytes() <= c.options.catalogDifferences {
				return f, nil
			}
		}
	}
	all = c.entries()
	all.change(&d.entries)
	if f.entries = all.changes(); f.bytes() <= limit {
		f.Base = 0
		return f, nil
	}
	f.Base, f.entries = f.Next, entries{}
	f.Next++
	return f, all
}

// removeBase removes a base that CATALOG does not name, and reports whether it is removed.
func (c *Catalog) removeBase(number uint64) bool {
	err := c.options.FS.Remove(path.Join(c.dir, baseName(number)))
	if err != nil {
		c.options.Logger.Warn("an unused part of the catalog cannot be removed; the next start will", slog.String("file", baseName(number)), slog.Any("error", err))
	}
	return err == nil
}

// entries returns a copy of all entries.
func (c *Catalog) entries() *catalogBase {
	return &catalogBase{maps.Clone(c.changing.content.indexes), c.Aliases().all()}
}

// changes returns the entries as changes of nothing.
func (b *catalogBase) changes() entries {
	e := entries{make(map[string]*uint64, len(b.Indexes)), make(map[string]*string, len(b.Aliases))}
	numbers := make([]uint64, 0, len(b.Indexes)) // in one allocation
	for uid, n := range b.Indexes {
		numbers = append(numbers, n)
		e.Indexes[uid] = &numbers[len(numbers)-1]
	}
	for alias, uid := range b.Aliases {
		e.Aliases[alias] = &uid
	}
	return e
}

// Settle makes the catalog and every index on disk equal to memory. After an error past a commit point their state on disk
// is unknown until they are rewritten. Callers that record the next change call it first.
func (c *Catalog) Settle() error {
	if err := c.settle(); err != nil {
		return err
	}
	for _, ix := range c.unsettled() {
		if err := ix.settle(); err != nil {
			return err
		}
	}
	return nil
}

// unsettled returns the indexes for which it is unknown whether their manifest is on disk. It is called before each batch, and nearly
// always returns none.
func (c *Catalog) unsettled() (unsure []*Index) {
	if c.doubts.Load() == 0 {
		return nil
	}
	c.open.RLock()
	defer c.open.RUnlock()
	for _, ix := range c.open.indexes {
		if ix.unsure.Load() {
			unsure = append(unsure, ix)
		}
	}
	return unsure
}

// settle makes the catalog on disk equal to memory. Otherwise a write to an index could belong to another uid after a
// crash, or to none.
func (c *Catalog) settle() error {
	if !c.unsure.Load() {
		return nil
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	if !c.unsure.Load() {
		return nil
	}
	if err := c.write(c.draft()); err != nil {
		return fmt.Errorf("cannot write to any index: %w", err)
	}
	return nil
}
