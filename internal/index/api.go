// Package index owns indexes: the manifest, the segments, tombstones and
// consistent read views of one, the batch writer and the compactor; and the
// catalog of all of them under one directory.
package index

import (
	"context"
	"log/slog"
	"time"

	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/query"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/internal/vfs"
	"svc/segment"
)

// Options are the limits that all indexes share.
type Options struct {
	FS                       vfs.FS
	Logger                   *slog.Logger
	Now                      func() time.Time
	MaxIndexingMemory        int64 // bytes; a batch writes a segment when its buffers reach it
	MaxIndexingThreads       int
	CompactionBytesPerSecond int64 // 0: unlimited
}

// Catalog is the set of indexes. Its changes are atomic: a file replaced by rename.
type Catalog struct{}

// OpenCatalog opens the indexes under dir, removing what an interrupted change left behind.
func OpenCatalog(dir string, o Options) (*Catalog, error) { panic("stub") }

// Close stops compaction, waits for views to be released, and closes all files.
func (c *Catalog) Close() error { panic("stub") }

// Get returns an index by uid, or nil. UIDs returns all uids in byte order.
func (c *Catalog) Get(uid string) *Index { panic("stub") }
func (c *Catalog) UIDs() []string        { panic("stub") }

// Create makes an empty index; index_already_exists when there is one. batch is the uid of
// the task batch that asks: a change whose batch was applied already (before a crash) is done again without effect.
func (c *Catalog) Create(uid, primaryKey string, batch uint64) (*Index, error) { panic("stub") }

// Delete removes an index with its files and returns how many documents it had; index_not_found.
func (c *Catalog) Delete(uid string, batch uint64) (int, error) { panic("stub") }

// Pair is one exchange of two uids, or a rename of A to B.
type Pair struct {
	A, B   string
	Rename bool
}

// Swap applies all pairs or none; index_not_found, index_already_exists.
func (c *Catalog) Swap(pairs []Pair, batch uint64) error { panic("stub") }

// DiskBytes returns the size of all files, and of those in use.
func (c *Catalog) DiskBytes() (total, used int64) { panic("stub") }

// Index is one index. One goroutine at a time may call Apply; everything else is for all.
type Index struct{}

func (ix *Index) UID() string { panic("stub") }

// SetPrimaryKey changes the key while there is no document: index_primary_key_already_exists.
func (ix *Index) SetPrimaryKey(key string, batch uint64) error { panic("stub") }

// View returns the current state; the caller releases it. Never nil.
func (ix *Index) View() *View { panic("stub") }

// View is one immutable state of an index. Slices of it and of its segments are valid until Release.
type View struct {
	UID        string
	PrimaryKey string // "" when not yet known
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Settings   *settings.Settings
	Fields     *settings.Fields
	Analyzer   *text.Analyzer
	Cache      *query.Cache
	Segments   []segment.Live
	Generation uint64
}

func (v *View) Release() { panic("stub") }

// Documents is the number of live documents; DocumentBytes their JSON's size.
func (v *View) Documents() int       { panic("stub") }
func (v *View) DocumentBytes() int64 { panic("stub") }

// Find returns where the document with an external id stands.
func (v *View) Find(externalID []byte) (seg int, row segment.Row, ok bool) { panic("stub") }

// FieldDistribution counts the documents that have each first-level field, computed once a view.
func (v *View) FieldDistribution() map[string]int { panic("stub") }

// Op is one operation of a batch.
type Op interface{ isOp() }

// AddDocuments adds the documents of a payload file (one JSON object a line).
type AddDocuments struct {
	Payload      string // path in the FS
	Documents    int
	Merge        bool // lay fields over those of a stored document, else replace it
	SkipCreation bool
	PrimaryKey   string // of the request, or ""
}

// DeleteDocuments deletes by external id; DeleteByFilter what a filter (JSON as sent) matches; Clear everything.
type DeleteDocuments struct{ IDs []string }
type DeleteByFilter struct{ Filter []byte }
type Clear struct{}

// EditDocuments runs a script on the documents that a filter (nil: all) matches.
type EditDocuments struct {
	Filter   *filter.Expr
	Context  []byte
	Function *document.Script
}

// UpdateSettings changes settings.
type UpdateSettings struct{ Update *settings.Update }

func (AddDocuments) isOp()    {}
func (DeleteDocuments) isOp() {}
func (DeleteByFilter) isOp()  {}
func (Clear) isOp()           {}
func (EditDocuments) isOp()   {}
func (UpdateSettings) isOp()  {}

// OpResult is the outcome of one operation.
type OpResult struct {
	Err     error // of this operation alone (*apierr.Error): the others are applied
	Indexed int
	Deleted int
	Edited  int
}

// Step is one level of progress: entering a level drops all deeper ones.
type Step struct {
	Name            string
	Finished, Total int
}

// Progress hears of progress; level 0 is the outermost.
type Progress func(level int, s Step)

// Apply applies the operations in order as one commit. When it returns an error nothing was
// applied. When the manifest already carries this batch, or a later one, it does nothing and returns ErrApplied.
func (ix *Index) Apply(ctx context.Context, batch uint64, ops []Op, p Progress) ([]OpResult, error) {
	panic("stub")
}

// Compact merges all segments into one and returns the sizes before and after.
func (ix *Index) Compact(ctx context.Context, batch uint64, p Progress) (before, after int64, err error) {
	panic("stub")
}
