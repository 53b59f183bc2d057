package index

import (
	"errors"

	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/script"
	"svc/internal/settings"
)

// Op is one operation of a batch.
type Op interface{ isOp() }

// AddDocuments adds the documents of a payload file (one JSON object a line, as document.Convert writes it).
type AddDocuments struct {
	Payload      string // path in the FS
	Sum          uint64 // xxhash64 of the payload; 0: not known
	Documents    int
	Merge        bool // merge fields into a stored document instead of replacing it
	SkipCreation bool
	PrimaryKey   string // of the request, or ""
	Unfit        bool   // keep given vectors that do not fit their embedder, as in documents of another svc, instead of refusing them

	Owned func(id []byte) bool // the documents of the payload that are kept, by their external ids; nil: all
}

// DeleteDocuments deletes by external id.
type DeleteDocuments struct{ IDs []string }

// DeleteByFilter deletes what a filter (JSON as sent) matches after the previous operations. Conditions on vectors,
// shards, and foreign documents of the same index see only committed state: see SeesPending.
type DeleteByFilter struct{ Filter []byte }

// DeleteExpired deletes the documents that had expired at a moment, in seconds since 1970, by the settings from before the batch. Those
// that the batch has changed before stay.
type DeleteExpired struct{ Moment int64 }

// Clear deletes all documents. Payloads before it in the batch are not read.
type Clear struct{}

// EditDocuments runs a script on the documents that a filter (nil: all) matches.
type EditDocuments struct {
	Filter   *filter.Expr
	Function *script.Function
}

// PatchDocuments runs the operations of a payload file (one document.Operation per line). A failing operation fails alone,
// unless the update is atomic. Filters see the settings and fields from before the batch, and the documents after the
// previous operations.
type PatchDocuments struct {
	Payload    string // as in AddDocuments
	Sum        uint64
	Operations int
	Atomic     bool // one failed operation makes all fail
	IfMissing  document.IfMissing
	Contains   bool // the experimental feature containsFilter

	Owned func(id []byte) bool // as in AddDocuments
}

// UpdateSettings changes settings. Filters of the same batch see the settings from before it.
type UpdateSettings struct{ Update *settings.Update }

func (AddDocuments) isOp()    {}
func (DeleteDocuments) isOp() {}
func (DeleteByFilter) isOp()  {}
func (DeleteExpired) isOp()   {}
func (Clear) isOp()           {}
func (EditDocuments) isOp()   {}
func (PatchDocuments) isOp()  {}
func (UpdateSettings) isOp()  {}

// OpResult is the outcome of one operation.
type OpResult struct {
	Err     error // of this operation alone (*apierr.Error): the others are applied
	Indexed int   // distinct ids of the payload
	Deleted int   // of an edit: those that its function deleted
	Edited  int   // documents that the filter of an edit matched
	Patched *PatchResult
}

// ErrApplied is returned by Apply for a batch that is applied already.
var ErrApplied = errors.New("the batch was already applied")
