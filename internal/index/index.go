package index

import (
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/embed"
	"svc/internal/settings"
	"svc/internal/trace"
	"svc/internal/vfs"
)

// Options are the limits that all indexes share.
type Options struct {
	FS                 vfs.FS
	Embedders          *embed.Pool      // nil: one with the defaults
	Logger             *slog.Logger     // nil: none
	Tracer             *trace.Tracer    // of merges; nil: none
	Now                func() time.Time // nil: time.Now
	MaxIndexingMemory  int64            // bytes of a batch: each worker writes a segment when it holds its share of half of them; 0: 256 MiB
	MaxIndexingThreads int              // 0: 1
	YieldingThreads    int              // how many of them yield to searches, the last ones; at least one does not
	SearchCacheBytes   int64            // what all indexes together keep of computed results; 0: DefaultSearchCacheBytes
	MemoryShort        func() bool      // reports whether the memory of the process nears its end; nil: it never does
	InspectEvery       time.Duration    // time between two inspections of all segments; 0: only one, after the start
	Follow             bool             // open in follow mode: see Catalog.Follow

	keptLoaded, mostLoaded int // 0: the constants of these names; tests have fewer
	inlineSettings         int // 0: inlineSettingsBytes
	inlineCatalog          int // 0: inlineCatalogBytes
	catalogDifferences     int // 0: a fourth of inlineCatalog
}

// steadyThreads returns how many threads work at full speed during searches.
func (o *Options) steadyThreads() int { return o.MaxIndexingThreads - o.YieldingThreads }

// complete replaces zero values by defaults. At least one thread does not yield to searches.
func (o *Options) complete() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxIndexingMemory <= 0 {
		o.MaxIndexingMemory = 256 << 20
	}
	o.MaxIndexingThreads = max(o.MaxIndexingThreads, 1)
	o.YieldingThreads = min(max(o.YieldingThreads, 0), o.MaxIndexingThreads-1)
	if o.SearchCacheBytes <= 0 {
		o.SearchCacheBytes = DefaultSearchCacheBytes
	}
	if o.keptLoaded == 0 {
		o.keptLoaded = keptLoaded
	}
	if o.mostLoaded == 0 {
		o.mostLoaded = mostLoaded
	}
	if o.inlineCatalog == 0 {
		o.inlineCatalog = inlineCatalogBytes
	}
	if o.catalogDifferences == 0 {
		o.catalogDifferences = o.inlineCatalog / 4
	}
	if o.inlineSettings == 0 {
		o.inlineSettings = inlineSettingsBytes
	}
	if o.Embedders == nil {
		o.Embedders = embed.New(embed.Options{})
	}
}

// Index is one index. Only one goroutine at a time may call Apply; everything else is safe for concurrent use.
type Index struct {
	catalog *Catalog
	options *Options
	dir     string

	current atomic.Pointer[View] // replaced under committing
	used    atomic.Int64         // when a view was last taken, by the clock of Catalog.loaded

	// committing is held while a manifest is replaced; see commit.
	committing struct {
		sync.Mutex
		closed     bool                 // no commits any more
		because    error                // what of it is damaged; nil when that is not why it was closed
		tombstones map[*file]tombstones // of the current view's segments
		swept      bool                 // what a crash left in the directory is removed
		doubted    uint64               // files with lower numbers existed when a manifest could not be written: see rename
		left       []string             // files of failed commits that the manifest on disk may name while the index is unsure of it
	}
	unsure atomic.Bool // the manifest on disk may differ from the current view's; set under committing
	// writing is held by Apply.
	writing struct {
		sync.Mutex
		ids *allocator // nil until the first batch
	}
	merges      gate
	yields      atomic.Bool         // the last batch, or the one under way, yields to searches
	failures    [mergeLanes]failure // of its last merges; each is its lane's
	nextSegment atomic.Uint64       // numbers of segments, lists of deleted rows and files of columns
	spools      atomic.Uint64       // made so far
	holds       atomic.Int64        // on the directory: one for each open segment file, one of the index itself
	dropped     atomic.Bool         // the directory is removed at the last release
}

// UID returns the name the index goes by now.
func (ix *Index) UID() string { return ix.current.Load().UID }

// View returns the current state without expired documents. The caller releases it. View opens segments that are closed,
// which may fail; so may the search for expired documents. An index that was deleted or closed has no documents. View
// reads ahead what vector searches need.
func (ix *Index) View() (*View, error) {
	v, err := ix.ReadView()
	if err == nil && v.cold.Load() {
		v.readAhead()
	}
	return v, err
}

// PlainView is View for code that copies or changes the index: it includes expired documents that are still stored, and reads nothing
// ahead.
func (ix *Index) PlainView() (*View, error) {
	ix.used.Store(ix.catalog.loaded.clock())
	return ix.take()
}

// take is PlainView for work in the background, which does not count as use.
func (ix *Index) take() (*View, error) {
	for {
		v := ix.current.Load()
		if v.retain() {
			return v, nil
		}
		if v.evicted {
			if err := ix.load(); err != nil {
				return nil, err
			}
		}
	}
}

// createIndex creates the directory of a new, empty index and opens it. The caller names it in the CATALOG, whose replacement first
// makes the directory's own name durable.
func (c *Catalog) createIndex(dir, uid, primaryKey string) (*Index, error) {
	fsys := c.options.FS
	now := c.options.Now().UTC()
	s := settings.Default()
	m := &manifest{CreatedAt: now, UpdatedAt: now, PrimaryKey: primaryKey, Settings: s.Encode()}
	b, err := m.encode()
	if err != nil {
		return nil, err
	}
	err = commit.Do(fsys, func() (commit.Change, error) {
		return m.change(dir, b), nil
	}, func() error {
		// Not earlier: if this member no longer leads, the log may have files that it created there, and a CATALOG that names them.
		if err := fsys.RemoveAll(dir); err != nil { // what a crash left
			return err
		}
		if err := fsys.MkdirAll(dir); err != nil {
			return err
		}
		if commit.Logged(fsys) { // else the directory may have no durable name before CATALOG names it
			if err := fsys.SyncDir(c.dir); err != nil {
				return err
			}
		}
		_, err := vfs.Replace(fsys, path.Join(dir, manifestName), b)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.openIndex(dir, uid)
}

// close stops the index for good; its files are closed when the last view is released.
func (ix *Index) close() { ix.closeFor(nil) }

// closeFor is close because of damage, which is the error of what would write to it.
func (ix *Index) closeFor(damage error) {
	ix.merges.stop()
	ix.committing.Lock()
	defer ix.committing.Unlock()
	ix.committing.closed, ix.committing.because = true, damage
	ix.emptyLocked()
}

// drop is close for an index that the catalog does not name any more: its
// files and directory go with the last view.
func (ix *Index) drop() {
	ix.merges.stop()
	ix.committing.Lock()
	defer ix.committing.Unlock()
	ix.committing.closed = true
	for _, f := range ix.current.Load().files { // of an evicted one, the directory's removal takes them
		f.unnamed.Store(true)
	}
	if kept := ix.current.Load().kept; kept != nil {
		kept.unnamed.Store(true)
	}
	ix.dropped.Store(true)
	ix.emptyLocked()
	ix.unhold()
}

// emptyLocked replaces the current view by one without segments. committing is held.
func (ix *Index) emptyLocked() {
	v := ix.current.Load().successor()
	v.show(ix.catalog.results, nil, nil)
	ix.replaceLocked(v)
	ix.catalog.loaded.remove(ix)
}

// replaceLocked makes a view the current one. committing is held.
func (ix *Index) replaceLocked(v *View) {
	old := ix.current.Load()
	ix.current.Store(v)
	if !old.evicted {
		old.Release()
	}
}

// unhold gives up one hold on the directory.
func (ix *Index) unhold() {
	if ix.holds.Add(-1) > 0 || !ix.dropped.Load() {
		return
	}
	if err := ix.options.FS.RemoveAll(ix.dir); err != nil {
		ix.options.Logger.Warn("cannot remove the directory of a deleted index; the next start will", "directory", ix.dir, "error", err)
	}
}

// renameLocked changes the uid. committing is held.
func (ix *Index) renameLocked(uid string) {
	old := ix.current.Load()
	v := old.successor()
	v.UID, v.tally = uid, old.tally
	if v.evicted = old.evicted; v.evicted {
		v.size = old.size
	} else {
		v.show(ix.catalog.results, old.files, old.Segments)
		v.keep(old.kept)
	}
	ix.replaceLocked(v)
}

// SetPrimaryKey changes the primary key while there are no documents. With documents it returns index_primary_key_already_exists,
// unless the key is the same. Repeating it has no effect.
func (ix *Index) SetPrimaryKey(key string, batch uint64) error {
	if err := ix.catalog.settle(); err != nil {
		return err
	}
	ix.writing.Lock()
	defer ix.writing.Unlock()
	base, err := ix.PlainView()
	if err != nil {
		return err
	}
	defer base.Release()
	if key != "" && key != base.PrimaryKey && base.Documents() > 0 {
		return PrimaryKeyExists(base.UID, base.PrimaryKey)
	}
	return ix.commit(&change{base: base, edit: func(v *View) {
		v.UpdatedAt = ix.options.Now().UTC()
		if key != "" && key != v.PrimaryKey {
			v.PrimaryKey = key
			v.Fields = settings.Resolve(v.names, v.Settings, key)
		}
	}})
}

// PrimaryKeyExists is the error of another primary key for an index that has documents.
func PrimaryKeyExists(uid, key string) error {
	return apierr.New("index_primary_key_already_exists",
		"Index `%s` already has the primary key `%s`. It can change only while the index has no documents: delete them first, or use another index.", uid, key)
}

// Progress receives progress. Level 0 is the outermost level of the requested work, so a caller with levels of its own
// adds them. One goroutine at a time calls it.
type Progress func(level int, s Step)

// Step is one level of progress: entering a level drops all deeper ones.
type Step struct {
	Name            string
	Finished, Total int
}

// reporter calls a Progress, which may be nil, one call at a time.
type reporter struct {
	mu sync.Mutex
	p  Progress
}

// enter says that the step number i of names begins.
func (r *reporter) enter(level int, names []string, i int) {
	r.at(level, names[i], i, len(names))
}

// at reports a step. Workers call it at the same time; the lock serializes the calls of p.
func (r *reporter) at(level int, name string, finished, total int) {
	if r.p == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.p(level, Step{name, finished, total})
}
