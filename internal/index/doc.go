// Package index owns indexes: the manifest, segments, tombstones and read views of each index, the batch writer and the
// compactor, and the catalog of all indexes under one directory.
//
// # Views
//
// Every state of an index is a View: segments, the deleted rows of each, and the settings. A view never changes. Readers hold one and
// no lock. Views and their files have reference counts: the last release of a segment file unmaps it, and unlinks it if no manifest
// names it (file.release). Taking a view of an open index needs no lock.
//
// # Commits
//
// Two kinds of writers work on an index: one batch at a time (Apply), and merges (the compactor). Both write segment
// files beside the current view and propose a change. Only Index.commit turns a change into the next view. It replaces
// the manifest by a rename, and the rename is the commit point.
//
// A change is based on a view, and others may have been committed since. So commit reconciles. Rows that a batch deletes from a
// segment that was merged meanwhile are found again by their DocIDs. Documents that were deleted during a merge are deleted in its
// output, too. A merge is dropped if an input no longer exists (errStale).
//
// If the sync after the rename fails, the manifest on disk may be the old or the new one. The index is then unsure: no file that
// either one names is removed, and the next write settles this first.
//
// # A batch
//
// Apply has two phases. Resolve runs the operations in order and records only where the bytes of each document are: in which payload,
// or in which row. Only ids, numbers and places are in memory, so a batch may have more documents than fit into memory. Build reads
// these bytes and has workers analyse documents in the order of their DocIDs, each into its own segment (worker.go). Filters in a
// batch see its own documents through small segments that are removed at its end (pending.go). The manifest records the number of the
// last batch and its results, so that a batch interrupted after its commit is recognised and not applied twice.
//
// # Compaction
//
// Package mergeplan chooses which segments to merge. Three lanes, for small, medium and large merges, run one merge each. So a merge
// of minutes does not block those needed for a stream of small batches (compactor.go). The gate of an index keeps a segment from
// being in two merges, and lets a change of settings, which may need all segments, stop merges (gate.go). A merge that fails pauses,
// for longer each time.
//
// # Closed, quarantined and following
//
// An unused index is closed if too many are open (evict.go): its outline stays in memory, and View opens its segments again. The
// current view of a closed index has no references, so that taking one fails and opens the index.
//
// An index that cannot be opened is quarantined (damage.go): its uid stays taken, its files stay as they are, and the other indexes
// continue. If damage is found while an index is open, a separate goroutine quarantines it (suspect.go), because the code that finds
// the damage may hold a view, or locks.
//
// A catalog in follow mode shows the indexes of another program (follow.go). It applies changes of manifests from outside and refuses
// its own.
//
// # Files
//
// names.go lists every name in the directory. A file that a manifest names is never modified, and the index never reuses its number.
// Remains of a crash are not named by any manifest, and opening the index removes them. CATALOG maps uids to directories, and is
// replaced as a whole like a manifest (catalogfile.go).
//
// # Caveats
//
//   - Readers of mapped memory panic on damage if they cannot return an error. Callers guard them with mapped.Guard.
//   - A damaged file never gets a fresh checksum: merges, copies and rewrites verify what they read.
//   - Data from a view may refer to mapped memory, and is valid until Release.
//   - DocIDs of deleted documents are assigned again, the lowest first (allocator.go). A document keeps its DocID for life.
//
// Lock order: Views.mu, Catalog.changing, Index.writing, gate.mu, Index.committing, Catalog.open.
// docs/architecture/ownership.md says what each guards.
package index
