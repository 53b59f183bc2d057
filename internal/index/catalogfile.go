package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// Each change replaces CATALOG as a whole. To keep the cost of a change independent of the number of indexes and aliases, CATALOG
// names an immutable file, its base, once the entries exceed inlineCatalogBytes. CATALOG then has only the entries that differ. When
// these exceed a fourth of that, the next change writes a new base.

// inlineCatalogBytes is how much the entries of a CATALOG without a base may take, as entries.bytes counts them.
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
	Base uint64 `json:",omitempty"` // number of the base file; 0: none, and these are all entries
}

// catalogBase is the content of a base.
type catalogBase struct {
	Indexes map[string]uint64
	Aliases map[string]string
}

// catalogContent is the content of CATALOG and its base, except aliases: see Catalog.Aliases.
type catalogContent struct {
	indexes map[string]uint64 // uid → number of its directory
	next    uint64
	last    catalogChange
	base    uint64
	since   entries // what CATALOG changes of its base
}

// catalogChange is the last change made, by which it is known again when its
// batch runs again after a crash.
type catalogChange struct {
	Batch     uint64
	What      string // empty: none yet
	Documents int    // of a deleted index
}

// catalogDraft is the next content of the catalog: changes of the present content.
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

// behind returns the uid behind an alias, or "" if there is no such alias.
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
	b, err := f.appendJSON(nil)
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

// DirectoriesOf returns the names of the index directories that a CATALOG names. dir is their parent directory, which also has the
// base of the CATALOG, if any.
func DirectoriesOf(fsys vfs.FS, dir string, b []byte) (directories []string, err error) {
	content, _, err := decodeCatalog(path.Join(dir, catalogName), b, baseReader(fsys, dir))
	for _, number := range content.indexes {
		directories = append(directories, directoryName(number))
	}
	return directories, err
}

// Excerpt returns the name of an index's directory, and a CATALOG with only this index, without aliases. b is the CATALOG, and base
// reads its base file by name. It returns an error if b does not name the index.
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

// BaseOf returns the name of the base file that a CATALOG names, or "" if there is none. name is the name of the file, for errors.
func BaseOf(name string, b []byte) (string, error) {
	f, err := decodeCatalogFile(name, b)
	if err != nil || f.Base == 0 {
		return "", err
	}
	return baseName(f.Base), nil
}

// IsBase reports whether a name beside a CATALOG has the form of a base.
func IsBase(name string) bool {
	rest, ok := strings.CutPrefix(name, basePrefix)
	if ok {
		_, ok = number(rest)
	}
	return ok
}

// IsDirectory reports whether a name beside a CATALOG has the form of an index directory.
func IsDirectory(name string) bool {
	_, ok := number(name)
	return ok
}
