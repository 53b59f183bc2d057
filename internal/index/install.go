package index

import (
	"bytes"
	"errors"
	"path"
	"reflect"
	"slices"

	"svc/internal/vfs"
	"svc/segment"
)

// sweepLocked removes unneeded files from the directory of an open index that was not swept yet. It keeps the files of the manifest m
// (nil: that on disk) and of the view v. committing is held.
func (ix *Index) sweepLocked(v *View, m *manifest) {
	if ix.committing.swept || v.evicted || ix.committing.closed {
		return
	}
	if m == nil {
		var err error
		if m, err = readManifest(ix.options.FS, ix.dir); err != nil {
			return // the next open of the index reports it
		}
	}
	keep := map[string]bool{}
	for _, f := range v.files {
		keep[segmentName(f.number)] = true
		for _, b := range f.columnFiles() {
			keep[columnsName(b.number)] = true
		}
	}
	if v.kept != nil {
		keep[settingsName(v.kept.number)] = true
	}
	for _, t := range ix.committing.tombstones {
		if t.file != 0 {
			keep[tombstonesName(t.file)] = true
		}
	}
	ix.catalog.sweep(ix.dir, m, keep)
	ix.committing.swept = true
}

// installing has what install has opened. close releases what the next view does not take over.
type installing struct {
	ix     *Index
	files  []*file                 // of the next view, in order
	lives  []segment.Live          // of files
	opened []*file                 // files that the previous view does not have
	beside map[*file][]*columnFile // new columns of files of the view before
	stones map[*file]tombstones
	kept   *settingsFile // with a reference; nil: the manifest has the settings
}

// close releases what install has acquired if it fails, and nothing once the next view owns it.
func (in *installing) close() {
	for _, f := range in.opened {
		f.release()
	}
	for _, list := range in.beside {
		for _, b := range list {
			in.ix.discardColumns(b, false)
		}
	}
	if in.kept != nil {
		in.kept.release()
	}
}

// install makes a manifest of the writer the current one, on disk and in memory. b is m encoded.
func (ix *Index) install(m *manifest, b []byte) error {
	ix.committing.Lock()
	defer ix.committing.Unlock()
	if ix.committing.closed {
		return errors.New("it is being closed")
	}
	cur := ix.current.Load()
	outline, err := ix.outlineOf(cur, m)
	if err != nil {
		return err
	}
	name := path.Join(ix.dir, manifestName)
	if cur.evicted {
		renamed, err := vfs.Replace(ix.options.FS, name, b)
		if renamed {
			ix.raiseNumbers(m)
			ix.current.Store(&View{Outline: *outline, evicted: true})
		}
		if err == nil {
			ix.catalog.sweep(ix.dir, m, nil)
			ix.committing.swept = true
		}
		return err
	}
	in := &installing{ix: ix, beside: map[*file][]*columnFile{}, stones: map[*file]tombstones{}}
	defer in.close()
	if err := in.open(cur, outline, m); err != nil {
		return err
	}
	next := &View{Outline: *outline}
	size := next.size
	next.show(ix.catalog.results, in.files, in.lives)
	if size != nil {
		next.size = size // as the writer counted it
	}
	next.inherit(cur)
	for i, f := range in.files {
		next.beside[i] = append(slices.Clip(next.beside[i]), in.beside[f]...)
	}
	next.keep(in.kept)
	renamed, err := vfs.Replace(ix.options.FS, name, b)
	if !renamed {
		next.Release()
		return err
	}
	// The disk has the manifest. A power failure may undo this; then the change is repeated.
	ix.raiseNumbers(m)
	for f, list := range in.beside { // before the view is shared; in other views it has no effect
		for _, b := range list {
			f.attachColumns(b)
		}
	}
	clear(in.beside)
	for _, f := range in.opened {
		f.setNamed()
	}
	was := ix.committing.tombstones
	ix.committing.tombstones = in.stones
	ix.current.Store(next)
	if err != nil {
		ix.committing.swept = false // both manifests' files stay
		cur.Release()
		return err
	}
	cur.unnameBut(next)
	ix.removeTombstones(replacedTombstones(was, in.stones))
	ix.sweepLocked(cur, m)
	cur.Release()
	return nil
}

// raiseNumbers makes later file numbers of this process exceed those of the manifest.
func (ix *Index) raiseNumbers(m *manifest) {
	ix.nextSegment.Store(max(ix.nextSegment.Load(), m.NextSegment))
}

// open opens what the manifest names and cur does not have.
func (in *installing) open(cur *View, next *Outline, m *manifest) (err error) {
	ix := in.ix
	here := make(map[uint64]*file, len(cur.files))
	for _, f := range cur.files {
		here[f.number] = f
	}
	for i := range m.Segments {
		e := &m.Segments[i]
		f := here[e.Number]
		if f == nil {
			if f, err = ix.openFile(e.Number); err != nil {
				return err
			}
			in.opened = append(in.opened, f)
			if err := f.attachAllColumns(e.Columns, next.Fields, true); err != nil {
				return err
			}
			f.readAhead()
		} else if err := in.openBeside(f, e.Columns); err != nil {
			return err
		}
		t, known := ix.committing.tombstones[f]
		if !known || t.file != e.Tombstones || !bytes.Equal(t.since, e.Deleted) {
			if t, err = readTombstones(ix.options.FS, ix.dir, e, f.Rows()); err != nil {
				return err
			}
		}
		l := f.live(t.all)
		if l.Deleted != nil {
			in.stones[f] = t
		}
		in.files, in.lives = append(in.files, f), append(in.lives, l)
	}
	switch {
	case m.SettingsFile == 0:
	case cur.kept != nil && cur.kept.number == m.SettingsFile:
		cur.kept.refs.Add(1)
		in.kept = cur.kept
	default:
		in.kept, err = ix.openSettings(m.SettingsFile, next.likeness)
	}
	return err
}

// openBeside opens the columns of a segment of the view before that it does not have yet.
func (in *installing) openBeside(f *file, numbers []uint64) error {
	for _, n := range numbers {
		if slices.ContainsFunc(f.columnFiles(), func(c *columnFile) bool { return c.number == n }) {
			continue
		}
		c, err := f.openColumns(n)
		if err != nil {
			return err
		}
		in.beside[f] = append(in.beside[f], c)
	}
	return nil
}

// outlineOf returns the outline that a manifest describes. It shares what is equal with cur, the previous view.
func (ix *Index) outlineOf(cur *View, m *manifest) (*Outline, error) {
	c := ix.catalog
	o := m.outline(c, cur.UID, cur.Generation+1)
	if slices.Equal(cur.names, o.names) {
		o.names = cur.names
	}
	like := cur.likeness
	same := like.inline != nil && bytes.Equal(like.inline, m.Settings)
	if m.SettingsFile != 0 {
		same = cur.kept != nil && cur.kept.number == m.SettingsFile
	}
	if !same {
		var err error
		if like, err = c.likenessIn(ix.dir, m); err != nil {
			return nil, err
		}
	}
	if like == cur.likeness && m.NextEmbedder == cur.nextEmbedder && reflect.DeepEqual(entriesOf(cur.embedders), m.Embedders) {
		o.embedders = cur.embedders // those that are open stay open
	}
	return o, o.set(c, ix.dir, m, like)
}
