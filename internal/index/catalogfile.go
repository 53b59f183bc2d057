package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/vfs"
)

// catalogContent is the content of a CATALOG.
type catalogContent struct {
	Indexes map[string]uint64 // uid → number of its directory
	Aliases map[string]string `json:",omitempty"` // alias → uid; no alias is the uid of an index
	Next    uint64            // no directory has this number or a higher one
	Last    catalogChange
}

// catalogChange is the last change made, by which it is known again when its
// batch runs once more after a crash.
type catalogChange struct {
	Batch     uint64
	What      string // empty: none yet
	Documents int    // of a deleted index
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
	if c.changing.content, err = decodeCatalog(name, b); err == nil {
		c.aliases.Store(newAliases(c.changing.content.Aliases))
	}
	return err
}

// version returns the lowest format version that can express the content, so that older versions of svc can read the
// directory.
func (c *catalogContent) version() uint32 {
	if len(c.Aliases) > 0 {
		return aliasesVersion
	}
	return 1
}

// decodeCatalog reads a CATALOG. name is for errors.
func decodeCatalog(name string, b []byte) (catalogContent, error) {
	var content catalogContent
	b, err := catalogSeal.unwrap(name, b)
	if err != nil {
		return content, err
	}
	if err := json.Unmarshal(b, &content); err != nil {
		return content, &apierr.Corruption{File: name, Offset: sealBytes, Reason: err.Error()}
	}
	seen := make(map[uint64]bool)
	for uid, n := range content.Indexes {
		if n >= content.Next || seen[n] {
			return content, &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("index %s has directory %d, which is another's or not below %d", uid, n, content.Next)}
		}
		seen[n] = true
	}
	for alias, uid := range content.Aliases {
		_, index := content.Indexes[uid]
		if _, taken := content.Indexes[alias]; taken || !index {
			return content, &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("the alias %s of %s has the uid of an index, or leads to none", alias, uid)}
		}
	}
	return content, nil
}

// DirectoriesOf returns the names of the directories, beside a CATALOG, of the indexes that it names. name is that of the file, for errors.
func DirectoriesOf(name string, b []byte) (directories []string, err error) {
	content, err := decodeCatalog(name, b)
	for _, number := range content.Indexes {
		directories = append(directories, directoryName(number))
	}
	return directories, err
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
	return c.write(catalogContent{})
}

// write makes content the catalog on disk, or leaves it as it was. When nobody knows which of them the disk has: see settle.
func (c *Catalog) write(content catalogContent) error {
	encode := func(content catalogContent) ([]byte, error) {
		b, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		return catalogSeal.wrapAs(content.version(), b), nil
	}
	b, err := encode(content)
	if err != nil {
		return err
	}
	name, unsure := path.Join(c.dir, catalogName), false
	err = commit.Do(c.options.FS, func() (commit.Change, error) {
		return commit.Change{Kind: commit.Catalog, Name: name, Data: b}, nil
	}, func() (err error) {
		unsure, err = vfs.Change(c.options.FS, name, b, func() ([]byte, error) { return encode(c.changing.content) })
		return err
	})
	if err == nil {
		c.changing.content = content
		c.aliases.Store(c.aliases.Load().after(content.Aliases))
	}
	if unsure || err == nil { // an error before the rename leaves things as they are
		c.unsure.Store(unsure)
	}
	return err
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

// unsettled returns the indexes of whose manifests nobody knows whether the disk has them: nearly always none, of however many.
func (c *Catalog) unsettled() (unsure []*Index) {
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
	if err := c.write(c.changing.content); err != nil {
		return fmt.Errorf("cannot write to any index: %w", err)
	}
	return nil
}
