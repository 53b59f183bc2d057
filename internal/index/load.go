package index

import (
	"errors"
	"fmt"
	"path"
	"sync/atomic"

	"svc/internal/apierr"
	"svc/segment"
)

// An index starts evicted: only its manifest is known. Its segments are opened on first use.

// readIndex reads the manifest of the index in dir, and opens none of its segments.
func (c *Catalog) readIndex(dir, uid string) (*Index, error) {
	m, err := readManifest(c.options.FS, dir)
	if err != nil {
		return nil, err
	}
	ix := &Index{catalog: c, options: &c.options, dir: dir}
	ix.holds.Store(1)
	ix.nextSegment.Store(m.NextSegment)
	like, err := c.likenessIn(dir, m)
	if err != nil {
		return nil, err
	}
	v := &View{evicted: true, Outline: *m.outline(c, uid, 1)}
	if err := v.set(c, dir, m, like); err != nil {
		return nil, err
	}
	ix.current.Store(v)
	return ix, nil
}

// outline returns what the manifest says of an index, except its settings and what depends on them.
func (m *manifest) outline(c *Catalog, uid string, generation uint64) *Outline {
	o := &Outline{UID: uid, PrimaryKey: m.PrimaryKey, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, Generation: generation,
		names: m.Fields, nextBatch: m.NextBatch, results: m.Results, shardsOf: c, nextEmbedder: m.NextEmbedder, size: m.Size, tally: new(atomic.Pointer[tally])}
	o.tally.Store(m.Tally)
	return o
}

// likenessIn reads the settings of a manifest in dir.
func (c *Catalog) likenessIn(dir string, m *manifest) (*likeness, error) {
	stored, err := readSettings(c.options.FS, dir, m)
	if err != nil {
		return nil, err
	}
	like, err := c.storedLikeness(stored)
	if err != nil {
		return nil, &apierr.Corruption{File: m.settingsPath(dir), Offset: -1, Reason: "settings: " + err.Error()}
	}
	return like, nil
}

// set gives an outline its settings, and what follows from them and the manifest. Embedders that it has stay.
func (o *Outline) set(c *Catalog, dir string, m *manifest, like *likeness) (err error) {
	o.Settings, o.Analyzer, o.likeness = like.settings, like.analyzer, like
	if o.embedders == nil {
		if o.embedders, err = embeddersOf(m.Embedders, m.NextEmbedder, o.Settings, c.options.Embedders); err != nil {
			return &apierr.Corruption{File: path.Join(dir, manifestName), Offset: -1, Reason: err.Error()}
		}
	}
	o.Fields = c.fieldsOf(like, o.names, o.PrimaryKey)
	return nil
}

// openIndex opens the index in dir and removes what a crash left. An index with damaged columns stays closed, because
// rebuilding them may take long. So does one that cannot be opened for a passing reason.
func (c *Catalog) openIndex(dir, uid string) (*Index, error) {
	ix, err := c.readIndex(dir, uid)
	if err == nil {
		err = ix.openWith(false)
	}
	if ix != nil && err != nil && (errors.Is(err, errColumns) || !lasting(err) && !lacking(err)) {
		return ix, nil
	}
	if err != nil {
		return nil, err
	}
	ix.current.Load().readAhead()
	return ix, nil
}

// load opens the segments of an evicted index, once for all callers. If the process lacks memory or mappings, load evicts
// others and retries. Eviction would not help against a lack of file descriptors, since open indexes hold none. An index
// with damaged files is quarantined soon. After any other failure, the next caller retries.
func (ix *Index) load() error {
	err := ix.open()
	if isOneOf(err, noMemory) && ix.catalog.evictSome() {
		err = ix.open()
	}
	switch {
	case err == nil:
		return nil
	case lasting(err):
		ix.catalog.suspect(ix, err)
		return errors.Join(damagedIndex{dir: ix.dir, err: err}.asError(ix.UID()), err) // what users are told, and the cause
	case !lacking(err) && apierr.From(err).Code == apierr.Internal: // also for this, tasks wait
		return errors.Join(apierr.New("io_error", "The index `%s` cannot be opened: check its directory, %s. (%v)", ix.UID(), ix.dir, err), err)
	default:
		return fmt.Errorf("cannot open index %s: %w", ix.UID(), err)
	}
}

// open is load without its consequences, which the caller handles.
func (ix *Index) open() error { return ix.openWith(true) }

// openWith is open, and rebuilds damaged columns if columns is true. Otherwise they fail it with errColumns.
func (ix *Index) openWith(columns bool) error {
	ix.committing.Lock()
	defer ix.committing.Unlock()
	return ix.openLocked(columns)
}

// openLocked opens the segments if they are closed, and removes what a crash left in the directory. committing is held.
func (ix *Index) openLocked(columns bool) error {
	old := ix.current.Load()
	if !old.evicted {
		return nil
	}
	m, err := readManifest(ix.options.FS, ix.dir)
	if err != nil {
		return err
	}
	if m.NextBatch != old.nextBatch {
		return &apierr.Corruption{File: path.Join(ix.dir, manifestName), Offset: -1,
			Reason: fmt.Sprintf("it is not the manifest that svc read or wrote last: it has the batches below %d, not those below %d", m.NextBatch, old.nextBatch)}
	}
	var kept *settingsFile
	var files []*file
	var lives []segment.Live
	defer func() {
		if kept != nil {
			kept.release()
		}
		for _, f := range files {
			f.release()
		}
	}()
	stones := make(map[*file]tombstones)
	named := map[string]bool{manifestName: true}
	if m.SettingsFile != 0 {
		if kept, err = ix.openSettings(m.SettingsFile, old.likeness); err != nil {
			return err
		}
		named[settingsName(m.SettingsFile)] = true
	}
	for _, e := range m.Segments {
		f, err := ix.openFileWith(segment.OpenQuick, e.Number)
		if err != nil {
			return err
		}
		f.setNamed()
		files = append(files, f)
		if err := f.attachAllColumns(e.Columns, old.Fields, columns); err != nil {
			return err
		}
		for _, n := range e.Columns {
			named[columnsName(n)] = true
		}
		t, err := readTombstones(ix.options.FS, ix.dir, &e, f.Rows())
		if err != nil {
			return err
		}
		l := f.live(t.all)
		if l.Deleted != nil {
			stones[f] = t
		}
		lives = append(lives, l)
		named[segmentName(e.Number)] = true
		if t.file != 0 {
			named[tombstonesName(t.file)] = true
		}
	}
	if !ix.committing.swept && !ix.catalog.follows.Load() {
		if err := ix.catalog.removeStrangers(ix.dir, func(name string) bool { return ours(name) && !named[name] }); err != nil {
			return err
		}
		ix.committing.swept = true
	}
	v := &View{Outline: old.Outline}
	v.show(ix.catalog.results, append([]*file(nil), files...), lives)
	v.keep(kept)
	ix.committing.tombstones = stones
	ix.replaceLocked(v)
	ix.catalog.loaded.add(ix)
	if v.Stale().Documents > 0 {
		ix.catalog.compactor.stale.add(ix)
	}
	return nil
}
