package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"svc/internal/apierr"
	"svc/internal/index/mergeplan"
	"svc/internal/pace"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/internal/shard"
	"svc/internal/text"
	"svc/internal/vfs"
)

// Catalog is the set of indexes. Its changes are atomic: a file replaced by rename.
type Catalog struct {
	dir     string
	options Options

	// changing is held while the set of indexes changes, including the I/O.
	changing struct {
		sync.Mutex
		content catalogContent // as on disk, with aliases
		closed  bool
	}
	// open is what readers see.
	open struct {
		sync.RWMutex
		indexes map[string]*Index
		damaged map[string]damagedIndex
	}
	aliases    atomic.Pointer[Aliases]
	follows    atomic.Bool  // see Follow; changed under changing
	unsure     atomic.Bool  // the catalog on disk may differ from changing.content; set under changing
	doubts     atomic.Int64 // how many indexes are unsure of their manifests, or were when they were deleted
	loaded     loadedSet
	compactor  *compactor
	suspects   chan suspect // indexes to quarantine
	met        atomic.Bool  // damage of an index was met since the start
	work       work
	results    *resultcache.Cache
	shards     atomic.Pointer[shard.Ring] // nil: documents fall into no shards
	files      sync.WaitGroup             // open segment files of all indexes
	searches   pace.Searches
	likenesses shared[likeness]
	fields     shared[settings.Fields]

	// tests lower these
	builderBytes     int64 // least memory of a worker's builder
	importPlan       mergeplan.Options
	recastRows       int                                 // see minRecastRows
	inlineTombstones int                                 // see inlineTombstoneBytes
	older            func(*text.Analyzer) *text.Analyzer // the analyzer of an older program, for batches; nil: this program's
	unrecorded       bool                                // batches do not record versions, as older programs
}

// OpenCatalog opens the indexes under dir, which it creates if missing, and removes what an interrupted change left. It
// logs and quarantines an index that cannot be opened: see Missing.
func OpenCatalog(dir string, o Options) (*Catalog, error) {
	c, err := openCatalog(dir, o)
	if err == nil {
		c.compactor.start()
	}
	return c, err
}

// openCatalog opens a catalog that does not compact by itself.
func openCatalog(dir string, o Options) (_ *Catalog, err error) {
	o.complete()
	c := &Catalog{dir: dir, options: o, builderBytes: minBuilderBytes, importPlan: mergeplan.OfImport(), recastRows: minRecastRows, inlineTombstones: inlineTombstoneBytes, results: resultcache.New(o.SearchCacheBytes), suspects: make(chan suspect, 16)}
	c.follows.Store(o.Follow)
	c.loaded.init(o.keptLoaded, o.mostLoaded)
	c.compactor = newCompactor(c)
	c.open.indexes, c.open.damaged = make(map[string]*Index), make(map[string]damagedIndex)
	if err := c.read(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			for _, ix := range c.open.indexes {
				ix.close()
			}
		}
	}()
	if err := c.openAll(); err != nil {
		return nil, err
	}
	if !o.Follow { // otherwise the first manifest of the next index may exist already
		err = c.removeUnnamed(nil)
	}
	return c, err
}

// openAll reads the manifests of the indexes in the catalog. It also opens the segments if there are few indexes. If there
// are many, callers open them on demand, and the startup scan follows. It then reads several manifests at once, because
// the disk takes most of the time.
func (c *Catalog) openAll() error {
	uids := slices.Sorted(maps.Keys(c.changing.content.indexes))
	indexes, errs := make([]*Index, len(uids)), make([]error, len(uids))
	open := c.openIndex
	if len(uids) > c.loaded.kept {
		open = c.readIndex
	}
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(uids); i = int(next.Add(1)) - 1 {
			indexes[i], errs[i] = open(c.directoryOf(uids[i]), uids[i])
			if errs[i] != nil && lacking(errs[i]) {
				next.Store(int64(len(uids)))
			}
		}
	}
	var others sync.WaitGroup
	for range min(len(uids)/openedAtOnce, maxOpeners-1) {
		others.Go(work)
	}
	work()
	others.Wait()
	for i, uid := range uids {
		if indexes[i] != nil {
			c.open.indexes[uid] = indexes[i]
		}
	}
	for i, uid := range uids {
		if err := errs[i]; err != nil && lacking(err) {
			return fmt.Errorf("cannot open index %s: %w", uid, err)
		}
	}
	for i, uid := range uids {
		if err := errs[i]; err != nil {
			c.quarantine(uid, c.directoryOf(uid), err)
		}
	}
	return nil
}

const (
	openedAtOnce = 32 // indexes that one goroutine opens in so little time that another one is not worth it
	maxOpeners   = 8
)

func (c *Catalog) directoryOf(uid string) string {
	return path.Join(c.dir, directoryName(c.changing.content.indexes[uid]))
}

// Searches must be notified of all searches in this process, because background work yields to them.
func (c *Catalog) Searches() *pace.Searches { return &c.searches }

// removeStrangers removes the entries of a directory for which stranger holds: an interrupted change left
// them.
func (c *Catalog) removeStrangers(dir string, stranger func(name string) bool) error {
	names, err := c.options.FS.List(dir)
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", dir, err)
	}
	for _, name := range names {
		if !stranger(name) {
			continue
		}
		if err := c.options.FS.RemoveAll(path.Join(dir, name)); err != nil {
			return fmt.Errorf("cannot remove files of an interrupted change: %w", err)
		}
	}
	return nil
}

// Close stops compaction, waits for views to be released, and closes all files.
// No change may run or follow.
func (c *Catalog) Close() error {
	c.compactor.close()
	c.changing.Lock()
	c.changing.closed = true
	c.changing.Unlock()
	for _, ix := range c.all() {
		ix.close()
	}
	c.files.Wait()
	return nil
}

// Get returns an index by uid, or nil.
func (c *Catalog) Get(uid string) *Index {
	c.open.RLock()
	defer c.open.RUnlock()
	return c.open.indexes[uid]
}

// UIDs returns all uids in byte order.
func (c *Catalog) UIDs() []string {
	c.open.RLock()
	defer c.open.RUnlock()
	return slices.Sorted(maps.Keys(c.open.indexes))
}

// LastBatch returns the highest of Batches.
func (c *Catalog) LastBatch() uint64 { return slices.Max(c.Batches()) }

// Batches returns the number of the last batch in the catalog and in each index. Batch numbers continue above the highest
// one: an index treats lower numbers as applied.
func (c *Catalog) Batches() []uint64 {
	c.changing.Lock()
	batches := []uint64{c.changing.content.last.Batch}
	c.changing.Unlock()
	for _, ix := range c.all() {
		if next := ix.current.Load().nextBatch; next > 0 {
			batches = append(batches, next-1)
		}
	}
	c.open.RLock()
	defer c.open.RUnlock()
	for _, d := range c.open.damaged {
		if d.nextBatch > 0 {
			batches = append(batches, d.nextBatch-1)
		}
	}
	return batches
}

// all returns the indexes, ordered by uid.
func (c *Catalog) all() []*Index {
	c.open.RLock()
	defer c.open.RUnlock()
	var all []*Index
	for _, uid := range slices.Sorted(maps.Keys(c.open.indexes)) {
		all = append(all, c.open.indexes[uid])
	}
	return all
}

// begins locks the catalog for a change; the caller calls done. again says that
// this very change is the last one that was made.
func (c *Catalog) begins(what catalogChange) (next *catalogDraft, again bool, err error) {
	c.changing.Lock()
	if c.changing.closed {
		return nil, false, errors.New("cannot change the indexes: they are being closed")
	}
	if c.follows.Load() {
		return nil, false, errFollows
	}
	next = c.draft()
	again = next.last.What == what.What && next.last.Batch == what.Batch
	next.last = what
	return next, again, nil
}

func (c *Catalog) done() { c.changing.Unlock() }

// Create makes an empty index, or returns index_already_exists. batch is the uid of the calling task batch. If this batch
// created the index before a crash, Create returns that index. With batch 0, the catalog keeps the last recorded change.
func (c *Catalog) Create(uid, primaryKey string, batch uint64) (*Index, error) {
	next, again, err := c.begins(catalogChange{Batch: batch, What: "create " + uid})
	defer c.done()
	if err != nil {
		return nil, err
	}
	if ix := c.Get(uid); ix != nil {
		if again {
			return ix, nil
		}
		return nil, alreadyExists(uid)
	}
	if c.Damaged(uid) {
		return nil, c.Missing(uid)
	}
	if of := next.behind(uid); of != "" {
		return nil, AliasExists(uid, of)
	}
	if batch == 0 {
		next.last = c.changing.content.last
	}
	dir := path.Join(c.dir, directoryName(next.next))
	ix, err := c.createIndex(dir, uid, primaryKey)
	if err != nil {
		return nil, fmt.Errorf("cannot create index %s: %w", uid, err)
	}
	next.place(uid, next.next)
	next.next++
	if err := c.write(next); err != nil {
		ix.close() // the directory is a stranger to the next open, or it is named after all
		return nil, fmt.Errorf("cannot create index %s: %w", uid, err)
	}
	c.open.Lock()
	c.open.indexes[uid] = ix
	c.open.Unlock()
	return ix, nil
}

// Delete removes an index with its files and returns how many documents it had; index_not_found.
func (c *Catalog) Delete(uid string, batch uint64) (int, error) {
	what := catalogChange{Batch: batch, What: "delete " + uid}
	ix := c.Get(uid)
	if ix != nil {
		size, err := ix.Size()
		if lacking(err) {
			return 0, err
		}
		what.Documents = size.Documents // of a damaged index the number is unknown
	}
	next, again, err := c.begins(what)
	defer c.done()
	if err != nil {
		return 0, err
	}
	if c.Damaged(uid) {
		return 0, c.deleteDamaged(uid, next)
	}
	ix = c.Get(uid) // an index quarantined meanwhile may be open again, as another object
	if ix == nil {
		if again {
			return c.changing.content.last.Documents, nil
		}
		return 0, c.Missing(uid)
	}
	next.remove(uid)
	next.dropAliases(uid)
	if err := c.write(next); err != nil {
		return 0, fmt.Errorf("cannot delete index %s: %w", uid, err)
	}
	c.open.Lock()
	delete(c.open.indexes, uid)
	c.open.Unlock()
	ix.drop()
	return what.Documents, nil
}

// Pair is one exchange of two uids, or a rename of A to B.
type Pair struct {
	A, B   string
	Rename bool
}

// Swap applies all pairs, in order, or none; index_not_found, index_already_exists.
func (c *Catalog) Swap(pairs []Pair, batch uint64) error {
	what, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	next, again, err := c.begins(catalogChange{Batch: batch, What: "swap " + string(what)})
	defer c.done()
	if err != nil || again {
		return err
	}
	c.open.RLock()
	indexes := maps.Clone(c.open.indexes)
	c.open.RUnlock()
	for _, p := range pairs {
		a, b := indexes[p.A], indexes[p.B]
		switch {
		case a == nil, b == nil && !p.Rename:
			return c.missingOf(pairs)
		case p.Rename && (b != nil || c.Damaged(p.B)):
			return alreadyExists(p.B)
		case p.Rename && next.behind(p.B) != "":
			return AliasExists(p.B, next.behind(p.B))
		case p.Rename:
			next.renameAliases(p.A, p.B)
			number, _ := next.directory(p.A)
			next.place(p.B, number)
			next.remove(p.A)
			indexes[p.B] = a
			delete(indexes, p.A)
		default:
			indexes[p.A], indexes[p.B] = b, a
			numberA, _ := next.directory(p.A)
			numberB, _ := next.directory(p.B)
			next.place(p.A, numberB)
			next.place(p.B, numberA)
		}
	}
	if err := c.write(next); err != nil {
		return fmt.Errorf("cannot swap indexes: %w", err)
	}
	c.showAll(indexes, nil)
	return nil
}

// missingOf returns the error of a swap that lacks indexes. It names all of them.
func (c *Catalog) missingOf(pairs []Pair) error {
	there := make(map[string]bool)
	for _, uid := range c.UIDs() {
		there[uid] = true
	}
	var lacking []string
	need := func(uid string) {
		if !there[uid] && !slices.Contains(lacking, uid) {
			lacking = append(lacking, uid)
		}
	}
	for _, p := range pairs {
		if need(p.A); p.Rename {
			delete(there, p.A)
			there[p.B] = true
		} else {
			need(p.B)
		}
	}
	for _, uid := range lacking {
		if c.Damaged(uid) || len(lacking) == 1 {
			return c.Missing(uid)
		}
	}
	return apierr.New("index_not_found", "There are no indexes `%s`. Create them, or add documents to them.", strings.Join(lacking, "`, `"))
}

// showAll replaces the indexes that readers see, all at once, by uid, and the damaged ones, unless damaged is nil.
func (c *Catalog) showAll(indexes map[string]*Index, damaged map[string]damagedIndex) {
	moved := make(map[string]*Index)
	for uid, ix := range indexes {
		if ix.UID() != uid {
			moved[uid] = ix
			ix.committing.Lock() // before open, which searches wait for: a commit takes I/O
			defer ix.committing.Unlock()
		}
	}
	c.open.Lock()
	defer c.open.Unlock()
	c.open.indexes = indexes
	if damaged != nil {
		c.open.damaged = damaged
	}
	for uid, ix := range moved {
		ix.renameLocked(uid)
	}
}

func alreadyExists(uid string) error {
	return apierr.New("index_already_exists", "Index `%s` already exists.", uid)
}

// DiskBytes returns the size of all files, and of those in use. It reads the directories of open indexes each time, and those of
// closed indexes once.
func (c *Catalog) DiskBytes() (total, used int64) {
	all := c.all()
	known := make(map[string]bool, len(all))
	for _, ix := range all {
		if s, err := ix.Size(); err == nil {
			used += s.SegmentBytes
		}
		total += ix.fileBytes()
		known[path.Base(ix.dir)] = true
	}
	names, err := c.options.FS.List(c.dir)
	if err != nil {
		return used, used
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		at := path.Join(c.dir, name)
		info, err := c.options.FS.Stat(at)
		if err != nil {
			continue // deleted since it was listed
		}
		if !info.IsDir() {
			total += info.Size()
			continue
		}
		total += fileBytes(c.options.FS, at)
	}
	return max(total, used), used
}

// fileBytes returns the size of the files of the index. It reads the directory of a closed index once, if the directory has only
// files that the manifest names. Other files may still be removed: a file system may delay that while readers of the log need them.
// Files that a reader of the log fetches for the next manifest count from then on.
func (ix *Index) fileBytes() int64 {
	v := ix.current.Load()
	if n := v.resting.Load(); n > 0 {
		return n
	}
	// Code that opens or changes the index holds committing. A segment that a search still uses is removed later.
	if v.evicted && ix.committing.TryLock() {
		defer ix.committing.Unlock()
		if ix.current.Load() == v && ix.holds.Load() == 1 {
			n, named := ix.namedBytes()
			if named {
				v.resting.Store(n)
			}
			return n
		}
	}
	return fileBytes(ix.options.FS, ix.dir)
}

// namedBytes returns the size of the files of the index, and whether its manifest names all of them. committing is held.
func (ix *Index) namedBytes() (total int64, named bool) {
	names, err := ix.options.FS.List(ix.dir)
	if err != nil {
		return 0, false
	}
	total = sumOfFiles(ix.options.FS, ix.dir, names)
	m, err := readManifest(ix.options.FS, ix.dir)
	if err != nil {
		return total, false
	}
	files := m.files()
	return total, !slices.ContainsFunc(names, func(name string) bool { return ours(name) && !slices.Contains(files, name) })
}

// fileBytes returns the size of the files in a directory.
func fileBytes(fsys vfs.FS, dir string) int64 {
	names, err := fsys.List(dir)
	if err != nil {
		return 0
	}
	return sumOfFiles(fsys, dir, names)
}

// sumOfFiles returns the size of the listed files of a directory. Files deleted since then count as 0.
func sumOfFiles(fsys vfs.FS, dir string, names []string) (total int64) {
	for _, name := range names {
		if info, err := fsys.Stat(path.Join(dir, name)); err == nil {
			total += info.Size()
		}
	}
	return total
}

// DiskBytes returns the size of the files of the index, and an estimate of it without what deleted documents take in segments.
func (ix *Index) DiskBytes() (total, used int64, err error) {
	s, err := ix.Size()
	if err != nil {
		return 0, 0, err
	}
	total = max(ix.fileBytes(), s.SegmentBytes)
	used = total
	if s.DeletedRows > 0 {
		used -= int64(float64(s.SegmentBytes) * float64(s.DeletedRows) / float64(s.DeletedRows+s.Documents))
	}
	return total, used, nil
}
