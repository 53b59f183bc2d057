package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/vfs"
)

// CATALOG is replaced as a whole by each change. So that a change does not cost more the more indexes and aliases there are, CATALOG
// names an immutable file, its base, once the entries take more than inlineCatalogBytes, and then has only the entries that differ. When
// these take as much, the next change writes another base.

// inlineCatalogBytes is how much the entries of CATALOG may take, as entries.bytes counts them.
const inlineCatalogBytes = 64 << 10

// entryBytes is what an entry takes besides its names.
const entryBytes = 12

// entries are entries of the catalog, or changes of entries: nil removes one.
type entries struct {
	Indexes map[string]*uint64 // uid → number of its directory
	Aliases map[string]*string `json:",omitempty"` // alias → uid; no alias is the uid of an index
}

// bytes returns about how many bytes the entries take.
func (e *entries) bytes() (n int) {
	for uid := range e.Indexes {
		n += len(uid) + entryBytes
	}
	for alias, uid := range e.Aliases {
		if n += len(alias) + entryBytes; uid != nil {
			n += len(*uid)
		}
	}
	return n
}

// with returns the entries after changes.
func (e *entries) with(changes *entries) entries {
	next := entries{maps.Clone(e.Indexes), maps.Clone(e.Aliases)}
	if next.Indexes == nil {
		next.Indexes = map[string]*uint64{}
	}
	if next.Aliases == nil {
		next.Aliases = map[string]*string{}
	}
	maps.Copy(next.Indexes, changes.Indexes)
	maps.Copy(next.Aliases, changes.Aliases)
	return next
}

// catalogFile is the content of a CATALOG.
type catalogFile struct {
	entries
	Next uint64 // no directory and no base has this number or a higher one
	Last catalogChange
	Base uint64 `json:",omitempty"` // number of the file whose entries these change; 0: none, and these are all
}

// catalogBase is the content of a base.
type catalogBase struct {
	Indexes map[string]uint64
	Aliases map[string]string
}

// catalogContent is what CATALOG and its base say, but for the aliases: see Catalog.Aliases.
type catalogContent struct {
	indexes map[string]uint64 // uid → number of its directory
	next    uint64
	last    catalogChange
	base    uint64
	since   entries // what CATALOG changes of its base
}

// catalogChange is the last change made, by which it is known again when its
// batch runs once more after a crash.
type catalogChange struct {
	Batch     uint64
	What      string // empty: none yet
	Documents int    // of a deleted index
}

// catalogDraft is the next content of the catalog: changes of what is there.
type catalogDraft struct {
	entries
	catalog *Catalog // whose lock is held
	next    uint64
	last    catalogChange
}

// draft begins a change that leaves all as it is.
func (c *Catalog) draft() *catalogDraft {
	now := &c.changing.content
	return &catalogDraft{entries: entries{map[string]*uint64{}, map[string]*string{}}, catalog: c, next: now.next, last: now.last}
}

// directory returns the number of the directory of an index.
func (d *catalogDraft) directory(uid string) (number uint64, ok bool) {
	if n, changed := d.Indexes[uid]; changed {
		if n == nil {
			return 0, false
		}
		return *n, true
	}
	number, ok = d.catalog.changing.content.indexes[uid]
	return number, ok
}

// place gives an index a directory.
func (d *catalogDraft) place(uid string, number uint64) { d.Indexes[uid] = &number }

// remove removes an index.
func (d *catalogDraft) remove(uid string) { d.Indexes[uid] = nil }

// removed returns how many entries the draft removes.
func (d *catalogDraft) removed() (n int) {
	for _, number := range d.Indexes {
		if number == nil {
			n++
		}
	}
	for _, uid := range d.Aliases {
		if uid == nil {
			n++
		}
	}
	return n
}

// behind returns the uid behind an alias; "" when there is no such alias.
func (d *catalogDraft) behind(alias string) string {
	if uid, changed := d.Aliases[alias]; changed {
		if uid == nil {
			return ""
		}
		return *uid
	}
	if a := d.catalog.Aliases(); a.Has(alias) {
		return a.Index(alias)
	}
	return ""
}

// eachAlias calls f for the aliases of an index, which it may change.
func (d *catalogDraft) eachAlias(uid string, f func(alias string)) {
	var all []string
	for alias, of := range d.Aliases {
		if of != nil && *of == uid {
			all = append(all, alias)
		}
	}
	for _, alias := range d.catalog.Aliases().Of(uid) {
		if _, changed := d.Aliases[alias]; !changed {
			all = append(all, alias)
		}
	}
	for _, alias := range all {
		f(alias)
	}
}

// read reads the CATALOG, or makes it in a new directory.
func (c *Catalog) read() error {
	name := path.Join(c.dir, catalogName)
	b, err := vfs.ReadFile(c.options.FS, name)
	if errors.Is(err, fs.ErrNotExist) {
		return c.begin()
	}
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	content, aliases, err := decodeCatalog(name, b, c.readBase)
	if err == nil {
		c.changing.content = content
		c.aliases.Store(newAliases(aliases))
	}
	return err
}

// readBase reads the base with a number.
func (c *Catalog) readBase(number uint64) (string, []byte, error) {
	return baseReader(c.options.FS, c.dir)(number)
}

// baseReader returns a function that reads the bases in a directory, and returns their names with their bytes.
func baseReader(fsys vfs.FS, dir string) func(number uint64) (string, []byte, error) {
	return func(number uint64) (string, []byte, error) {
		name := path.Join(dir, baseName(number))
		b, err := vfs.ReadFile(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil, &apierr.Corruption{File: name, Offset: -1, Reason: "it is missing, but " + catalogName + " names it"}
		}
		if err != nil {
			return name, nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		return name, b, nil
	}
}

// version returns the lowest format version that can express the content, so that older versions of svc can read the
// directory.
func (f *catalogFile) version() uint32 {
	switch {
	case f.Base != 0:
		return baseVersion
	case len(f.Aliases) > 0:
		return aliasesVersion
	}
	return 1
}

func (f *catalogFile) encode() ([]byte, error) {
	b, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the catalog: %w", err)
	}
	return catalogSeal.wrapAs(f.version(), b), nil
}

// decodeCatalogFile reads a CATALOG without its base. name is for errors.
func decodeCatalogFile(name string, b []byte) (f catalogFile, err error) {
	if b, err = catalogSeal.unwrap(name, b); err != nil {
		return f, err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, &apierr.Corruption{File: name, Offset: sealBytes, Reason: err.Error()}
	}
	if f.Base != 0 && f.Base >= f.Next {
		return f, &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("its base is %d, which is not below %d", f.Base, f.Next)}
	}
	return f, nil
}

// decodeCatalog reads a CATALOG, and its base with base. name is for errors.
func decodeCatalog(name string, b []byte, base func(number uint64) (string, []byte, error)) (content catalogContent, aliases map[string]string, err error) {
	f, err := decodeCatalogFile(name, b)
	if err != nil {
		return content, nil, err
	}
	all := catalogBase{Indexes: map[string]uint64{}, Aliases: map[string]string{}}
	if f.Base != 0 {
		file, b, err := base(f.Base)
		if err != nil {
			return content, nil, err
		}
		if b, err = baseSeal.unwrap(file, b); err != nil {
			return content, nil, err
		}
		if err := json.Unmarshal(b, &all); err != nil {
			return content, nil, &apierr.Corruption{File: file, Offset: sealBytes, Reason: err.Error()}
		}
	}
	all.change(&f.entries)
	seen := make(map[uint64]bool, len(all.Indexes))
	for uid, n := range all.Indexes {
		if n >= f.Next || seen[n] {
			return content, nil, &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("index %s has directory %d, which is another's or not below %d", uid, n, f.Next)}
		}
		seen[n] = true
	}
	for alias, uid := range all.Aliases {
		_, index := all.Indexes[uid]
		if _, taken := all.Indexes[alias]; taken || !index {
			return content, nil, &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("the alias %s of %s has the uid of an index, or leads to none", alias, uid)}
		}
	}
	content = catalogContent{indexes: all.Indexes, next: f.Next, last: f.Last, base: f.Base}
	if f.Base != 0 {
		content.since = f.entries
	}
	return content, all.Aliases, nil
}

// change makes changes. It makes the maps if they are nil.
func (b *catalogBase) change(e *entries) {
	if b.Indexes == nil {
		b.Indexes = map[string]uint64{}
	}
	if b.Aliases == nil {
		b.Aliases = map[string]string{}
	}
	for uid, n := range e.Indexes {
		if delete(b.Indexes, uid); n != nil {
			b.Indexes[uid] = *n
		}
	}
	for alias, uid := range e.Aliases {
		if delete(b.Aliases, alias); uid != nil {
			b.Aliases[alias] = *uid
		}
	}
}

// DirectoriesOf returns the names of the directories of the indexes that a CATALOG names. The directory dir, beside which they are, has
// the base of the CATALOG, if it has one.
func DirectoriesOf(fsys vfs.FS, dir string, b []byte) (directories []string, err error) {
	content, _, err := decodeCatalog(path.Join(dir, catalogName), b, baseReader(fsys, dir))
	for _, number := range content.indexes {
		directories = append(directories, directoryName(number))
	}
	return directories, err
}

// Excerpt returns the name of the directory of an index, and a CATALOG that names this index alone, without aliases. b is the CATALOG, and
// base reads the base beside it by its name. There is an error if b does not name the index.
func Excerpt(b []byte, uid string, base func(name string) ([]byte, error)) (directory string, excerpt []byte, err error) {
	content, _, err := decodeCatalog(catalogName, b, func(number uint64) (string, []byte, error) {
		b, err := base(baseName(number))
		return baseName(number), b, err
	})
	if err != nil {
		return "", nil, err
	}
	number, ok := content.indexes[uid]
	if !ok {
		return "", nil, fmt.Errorf("there is no index %s: the indexes are %s", uid, someOf(slices.Sorted(maps.Keys(content.indexes))))
	}
	f := catalogFile{entries: entries{Indexes: map[string]*uint64{uid: &number}}, Next: content.next}
	excerpt, err = f.encode()
	return directoryName(number), excerpt, err
}

// someOf names the first ones of a list.
func someOf(names []string) string {
	const most = 20
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d others", n-most)
	}
	return strings.Join(names, ", ")
}

// BaseOf returns the name of the base, beside a CATALOG, that it names; "" when it has none. name is that of the file, for errors.
func BaseOf(name string, b []byte) (string, error) {
	f, err := decodeCatalogFile(name, b)
	if err != nil || f.Base == 0 {
		return "", err
	}
	return baseName(f.Base), nil
}

// IsBase reports whether a name beside a CATALOG is one that bases have.
func IsBase(name string) bool {
	rest, ok := strings.CutPrefix(name, basePrefix)
	if ok {
		_, ok = number(rest)
	}
	return ok
}

// IsDirectory reports whether a name beside a CATALOG is one that directories of indexes have.
func IsDirectory(name string) bool {
	_, ok := number(name)
	return ok
}

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
		// The first CATALOG is written before the first index: without it, all indexes would be unknown files, and the
		// worst answer would be to remove them.
		if _, ok := number(name); ok {
			return &apierr.Corruption{File: path.Join(c.dir, catalogName), Offset: -1, Reason: "it is missing, but there are indexes beside it"}
		}
	}
	c.changing.content.indexes = map[string]uint64{}
	return c.write(c.draft())
}

// write makes the draft the catalog on disk, or leaves it as it was. When nobody knows which of them the disk has: see settle.
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
			now.next = f.Next // a file that is made anew needs a new name: the sync of this one may have failed
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
	if now.base != 0 && (len(now.indexes)+c.Aliases().Len()-d.removed())*entryBytes > limit/4 { // else they may fit into CATALOG again
		if f.entries = now.since.with(&d.entries); f.bytes() <= limit {
			return f, nil
		}
	}
	all = c.entries()
	all.change(&d.entries)
	if now.base != 0 {
		limit /= 4
	}
	if f.entries = all.changes(); f.bytes() <= limit {
		f.Base = 0
		return f, nil
	}
	f.Base, f.entries = f.Next, entries{}
	f.Next++
	return f, all
}

// removeBase removes a base that CATALOG does not name, and reports whether it is gone.
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
	for uid, n := range b.Indexes {
		e.Indexes[uid] = &n
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

// unsettled returns the indexes of whose manifests nobody knows whether the disk has them. It is called before each batch, and nearly
// always there are none.
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
