package index

import (
	"fmt"
	"path"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// Frozen is one state of all indexes, for copies. Compaction continues: replaced segments of open indexes keep their files until
// Release. View opens the segments of the other indexes, in the state of compaction at that time.
type Frozen struct {
	catalog *Catalog
	indexes []frozenIndex
	aliases *Aliases
}

// frozenIndex is an index as it was when the copy began.
type frozenIndex struct {
	*Outline
	ix     *Index
	view   *View // nil: it is not open
	read   *View // without expired documents; nil: it was not asked for
	number uint64
	next   uint64 // segment number of the view
	leave  func() // closes what View opened; nil: it was open
}

// Freeze takes a view of every open index. Until Release, no batch may run and no index may be created, deleted or swapped. It is an
// error if an index cannot be opened, because a copy without it would look complete.
func (c *Catalog) Freeze() (*Frozen, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	if err := c.AnyDamaged(); err != nil {
		return nil, err
	}
	f := &Frozen{catalog: c, aliases: c.Aliases()}
	for _, ix := range c.all() {
		x := frozenIndex{ix: ix}
		for {
			v := ix.current.Load()
			if v.retain() {
				x.view = v
			} else if !v.evicted {
				continue // there is a later one
			}
			x.Outline = &v.Outline
			break
		}
		x.number, x.next = c.changing.content.indexes[x.UID], ix.nextSegment.Load()
		f.indexes = append(f.indexes, x)
	}
	return f, nil
}

// Aliases returns the uid behind each alias.
func (f *Frozen) Aliases() map[string]string { return f.aliases.all() }

// Outlines returns the outlines of all indexes, in the order of their uids.
func (f *Frozen) Outlines() []*Outline {
	all := make([]*Outline, len(f.indexes))
	for i := range f.indexes {
		all[i] = f.indexes[i].Outline
	}
	return all
}

// View returns the view of an index by its place in Outlines. It is Frozen's until Done.
func (f *Frozen) View(i int) (*View, error) {
	x := &f.indexes[i]
	if x.view != nil {
		return x.view, nil
	}
	leave := x.ix.visit()
	v, err := x.ix.take()
	if err != nil {
		return nil, err
	}
	if f.catalog.Get(x.UID) != x.ix || v.nextBatch != x.nextBatch {
		v.Release()
		leave()
		return nil, fmt.Errorf("cannot copy index %s: it was changed meanwhile", x.UID)
	}
	x.view, x.leave, x.next = v, leave, x.ix.nextSegment.Load()
	return v, nil
}

// Done gives back the view of an index, and closes what View opened.
func (f *Frozen) Done(i int) {
	x := &f.indexes[i]
	if x.view == nil {
		return
	}
	if x.read != nil {
		x.read.Release()
		x.read = nil
	}
	x.view.Release()
	x.view = nil
	if x.leave != nil {
		x.leave()
	}
}

// Release gives all views back.
func (f *Frozen) Release() {
	for i := range f.indexes {
		f.Done(i)
	}
	f.indexes = nil
}

// CopiedFile is a file of a copy: either its bytes or where they are.
type CopiedFile struct {
	Name string // relative to the catalog's directory
	Data []byte
	Path string // of a file that does not change before Release; "" when Data is the content
}

// Catalog returns the file that names the indexes of a copy.
func (f *Frozen) Catalog() (CopiedFile, error) {
	all := catalogBase{map[string]uint64{}, f.aliases.all()}
	var content catalogFile // without a base: a copy is written once
	for _, x := range f.indexes {
		all.Indexes[x.UID] = x.number
		content.Next = max(content.Next, x.number+1)
	}
	content.entries = all.changes()
	b, err := content.encode()
	return CopiedFile{Name: catalogName, Data: b}, err
}

// ReadView is View without the documents that have expired.
func (f *Frozen) ReadView(i int) (*View, error) {
	v, err := f.View(i)
	if err != nil || v.expiring == nil {
		return v, err
	}
	x := &f.indexes[i]
	if x.read == nil {
		v.retain() // Frozen holds it
		if x.read, err = v.unexpired(f.catalog.options.Now); err != nil {
			x.read = nil
			return nil, err
		}
	}
	return x.read, nil
}

// Files returns the files, in a copy, of the i-th index of Outlines, the manifest last. They exist until Done.
func (f *Frozen) Files(i int) ([]CopiedFile, error) {
	v, err := f.View(i)
	if err != nil {
		return nil, err
	}
	dir := directoryName(f.indexes[i].number)
	var files []CopiedFile
	for i, s := range v.files {
		files = append(files, CopiedFile{Name: path.Join(dir, segmentName(s.number)), Path: s.path()})
		for _, c := range v.beside[i] {
			files = append(files, CopiedFile{Name: path.Join(dir, columnsName(c.number)), Path: c.Name()})
		}
	}
	stones := make(map[*file]tombstones) // all rows in the manifest: a copy is written once
	for i, s := range v.Segments {
		if s.Deleted == nil {
			continue
		}
		rows, err := encodeRows(s.Deleted, nil)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the deleted rows of index %s: %w", v.UID, err)
		}
		stones[v.files[i]] = tombstones{since: rows}
	}
	if v.kept != nil {
		files = append(files, v.kept.copied(dir))
	}
	b, err := v.manifest(f.indexes[i].next, stones).encode()
	if err != nil {
		return nil, fmt.Errorf("cannot encode the manifest of index %s: %w", v.UID, err)
	}
	return append(files, CopiedFile{Name: path.Join(dir, manifestName), Data: b}), nil
}

// EachDocument calls f for every live document, or for those in rows (a bitmap per segment; nil: all), in ascending order
// of DocIDs. doc is valid during the call.
func (v *View) EachDocument(rows []*roaring.Bitmap, f func(seg int, row segment.Row, doc []byte) error) error {
	var gone map[*file]*roaring.Bitmap
	if rows != nil {
		gone = make(map[*file]*roaring.Bitmap, len(rows))
		for i, file := range v.files {
			all := roaring.New()
			all.AddRange(0, uint64(file.Rows()))
			gone[file] = roaring.AndNot(all, rows[i])
		}
	}
	docs := newStoredDocs(v, gone, nil)
	var doc []byte
	for {
		it, ok := docs.peek()
		if !ok {
			return nil
		}
		var err error
		if doc, err = v.Segments[it.seg].AppendDocument(doc[:0], it.row); err != nil {
			return err
		}
		if err := f(int(it.seg), it.row, doc); err != nil {
			return err
		}
		docs.next()
	}
}

// SetTimes gives an imported index its original times.
func (ix *Index) SetTimes(created, updated time.Time) error {
	ix.writing.Lock()
	defer ix.writing.Unlock()
	base, err := ix.PlainView()
	if err != nil {
		return err
	}
	defer base.Release()
	return ix.commit(&change{base: base, edit: func(v *View) { v.CreatedAt, v.UpdatedAt = created.UTC(), updated.UTC() }})
}
