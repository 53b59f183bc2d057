package index

import (
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// Frozen is one state of all indexes, for copies. Compaction goes on beside it; the segments that it
// replaces keep their files until Release.
type Frozen struct {
	catalog *Catalog
	views   []*View
	numbers []uint64 // of the directories of views
	next    []uint64 // segment numbers of views
}

// Freeze takes a view of every index. No index is made, deleted or swapped meanwhile. It is an error when an index could
// not be opened: a copy without it would be taken for a whole one.
func (c *Catalog) Freeze() (*Frozen, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	if err := c.AnyDamaged(); err != nil {
		return nil, err
	}
	f := &Frozen{catalog: c}
	for _, ix := range c.all() {
		v := ix.View()
		f.views = append(f.views, v)
		f.numbers = append(f.numbers, c.changing.content.Indexes[v.UID])
		f.next = append(f.next, ix.nextSegment.Load())
	}
	return f, nil
}

// Views returns the views in the order of their uids. They are Frozen's.
func (f *Frozen) Views() []*View { return f.views }

// Release gives all views back.
func (f *Frozen) Release() {
	for _, v := range f.views {
		v.Release()
	}
	f.views = nil
}

// CopiedFile is a file of a copy: either its bytes or where they are.
type CopiedFile struct {
	Name string // relative to the catalog's directory
	Data []byte
	Path string // of a file that does not change before Release; "" when Data is the content
}

// Catalog returns the file that names the indexes of a copy.
func (f *Frozen) Catalog() (CopiedFile, error) {
	content := catalogContent{Indexes: map[string]uint64{}}
	for i, v := range f.views {
		content.Indexes[v.UID] = f.numbers[i]
		content.Next = max(content.Next, f.numbers[i]+1)
	}
	b, err := json.Marshal(content)
	if err != nil {
		return CopiedFile{}, fmt.Errorf("cannot encode the catalog: %w", err)
	}
	return CopiedFile{Name: catalogName, Data: catalogSeal.wrap(b)}, nil
}

// Files returns the files of the index of Views()[i] in a copy, the manifest last.
func (f *Frozen) Files(i int) ([]CopiedFile, error) {
	v, dir := f.views[i], directoryName(f.numbers[i])
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
	b, err := v.manifest(f.next[i], stones).encode()
	if err != nil {
		return nil, fmt.Errorf("cannot encode the manifest of index %s: %w", v.UID, err)
	}
	return append(files, CopiedFile{Name: path.Join(dir, manifestName), Data: b}), nil
}

// EachDocument calls f for every live document, or for those among rows (nil: all; else a bitmap for each segment), in
// ascending order of their DocIDs. doc is valid during the call.
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

// SetTimes gives an index that comes from elsewhere the times it had there.
func (ix *Index) SetTimes(created, updated time.Time) error {
	ix.writing.Lock()
	defer ix.writing.Unlock()
	base := ix.View()
	defer base.Release()
	return ix.commit(&change{base: base, edit: func(v *View) { v.CreatedAt, v.UpdatedAt = created.UTC(), updated.UTC() }})
}
