package task

import (
	"encoding/json"

	"svc/internal/index"
)

// AddDocuments adds or updates the documents of the task's payload, or runs a single operation on them.
type AddDocuments struct {
	Merge        bool   `json:"merge,omitempty"` // lay fields over those of stored documents, else replace them
	SkipCreation bool   `json:"skipCreation,omitempty"`
	PrimaryKey   string `json:"primaryKey,omitempty"` // of the request, or ""
	EmptyKey     bool   `json:"emptyKey,omitempty"`   // the request has a primary key, and it is empty: no index has that
	Documents    int    `json:"documents"`            // in the payload, or operations
	MayCreate    bool   `json:"mayCreate,omitempty"`  // the caller's key may create the index

	// Of a partial update:
	Operations bool   `json:"operations,omitempty"` // the payload has operations, not documents
	Atomic     bool   `json:"atomic,omitempty"`     // one that fails makes all fail
	IfMissing  string `json:"ifMissing,omitempty"`  // for operations that do not say so; "": skip
	Contains   bool   `json:"contains,omitempty"`   // filters may have CONTAINS

	// Set by Enqueue: the payload's file name under payloads/, its size in bytes, and the xxhash64 of them.
	File string `json:"file,omitempty"`
	Size int64  `json:"size,omitempty"`
	Sum  uint64 `json:"sum,omitempty"`
}

func (c AddDocuments) Kind() Kind {
	if c.Operations {
		return DocumentEdition
	}
	return DocumentAdditionOrUpdate
}

func (c AddDocuments) details(_ string, o *outcome) json.RawMessage {
	if c.Operations {
		return c.patchDetails(o)
	}
	return encode(struct {
		Received int  `json:"receivedDocuments"`
		Indexed  *int `json:"indexedDocuments"`
	}{c.Documents, o.counter()})
}

// patchDetails returns the details of a partial update.
func (c AddDocuments) patchDetails(o *outcome) json.RawMessage {
	d := struct {
		Received int                  `json:"receivedOperations"`
		Changed  *int                 `json:"changedDocuments"`
		Skipped  *int                 `json:"skippedDocuments"`
		Failed   *int                 `json:"failedDocuments"`
		Failures []index.PatchFailure `json:"failures"`
	}{Received: c.Documents}
	if o != nil {
		var r index.PatchResult
		if o.patched != nil {
			r = *o.patched
		}
		d.Changed, d.Skipped, d.Failed, d.Failures = &r.Changed, &r.Skipped, &r.Failed, r.Failures
	}
	if d.Failures == nil {
		d.Failures = []index.PatchFailure{}
	}
	return encode(d)
}

// deletionDetails are the details of the two deletions that choose documents.
type deletionDetails struct {
	Provided int     `json:"providedIds"`
	Deleted  *int    `json:"deletedDocuments"`
	Filter   *string `json:"originalFilter"`
}

// DeleteDocuments deletes documents by external id.
type DeleteDocuments struct {
	IDs []string `json:"ids,omitempty"` // dropped when the task is finished
	// Provided is how many ids there were; Enqueue sets it.
	Provided int `json:"provided"`
}

func (DeleteDocuments) Kind() Kind { return DocumentDeletion }

func (c DeleteDocuments) details(_ string, o *outcome) json.RawMessage {
	return encode(deletionDetails{Provided: c.Provided, Deleted: o.counter()})
}

// DeleteByFilter deletes the documents that a filter, JSON as it was sent, matches.
type DeleteByFilter struct {
	Filter json.RawMessage `json:"filter"`
}

func (DeleteByFilter) Kind() Kind { return DocumentDeletion }

func (c DeleteByFilter) details(_ string, o *outcome) json.RawMessage {
	return encode(deletionDetails{Deleted: o.counter(), Filter: filterText(c.Filter)})
}

// DeleteExpired deletes the documents that had expired at a moment. The queue itself makes these tasks.
type DeleteExpired struct {
	Moment int64 `json:"moment"` // seconds since 1970
}

func (DeleteExpired) Kind() Kind { return DocumentDeletion }

func (DeleteExpired) details(_ string, o *outcome) json.RawMessage {
	return encode(deletionDetails{Deleted: o.counter()})
}

// ClearDocuments deletes all documents.
type ClearDocuments struct{}

func (ClearDocuments) Kind() Kind { return DocumentDeletion }

func (ClearDocuments) details(_ string, o *outcome) json.RawMessage { return deletedDetails(o) }

// EditDocuments runs a script on the documents that a filter (nil: all) matches.
type EditDocuments struct {
	Filter   json.RawMessage `json:"filter,omitempty"`
	Context  json.RawMessage `json:"context,omitempty"` // a JSON object, or nil
	Function string          `json:"function"`
}

func (EditDocuments) Kind() Kind { return DocumentEdition }

func (c EditDocuments) details(_ string, o *outcome) json.RawMessage {
	d := struct {
		Edited   *int            `json:"editedDocuments"`
		Deleted  *int            `json:"deletedDocuments"`
		Filter   *string         `json:"originalFilter"`
		Context  json.RawMessage `json:"context"`
		Function string          `json:"function"`
	}{Edited: o.counter(), Filter: filterText(c.Filter), Context: c.Context, Function: c.Function}
	if d.Context == nil {
		d.Context = json.RawMessage("null")
	}
	if o != nil && !o.failed {
		deleted := o.deleted
		d.Deleted = &deleted
	}
	return encode(d)
}

// filterText is a filter as details show it: its JSON as text, or null.
func filterText(filter json.RawMessage) *string {
	if filter == nil {
		return nil
	}
	var v any
	if json.Unmarshal(filter, &v) != nil {
		s := string(filter)
		return &s
	}
	s := string(encode(v))
	return &s
}

func (AddDocuments) class() class      { return addition }
func (c AddDocuments) mayCreate() bool { return c.MayCreate }
func (c AddDocuments) bytes() int64    { return c.Size }

// enqueued takes over the payload.
func (c AddDocuments) enqueued(n *New) (Content, error) {
	c.File, c.Size, c.Sum = "", 0, 0
	if n.Payload == nil {
		return c, nil
	}
	if !n.DryRun {
		if err := n.Payload.finish(); err != nil {
			return nil, err
		}
	}
	c.File, c.Size, c.Sum = n.Payload.name, n.Payload.size, n.Payload.sum.Sum64()
	return c, nil
}

func (DeleteDocuments) class() class { return byIDs }

func (c DeleteDocuments) enqueued(*New) (Content, error) {
	c.Provided = len(c.IDs)
	return c, nil
}

// ended drops the ids, because they may be many and nothing reads them afterwards.
func (c DeleteDocuments) ended() (Content, bool) {
	c.IDs = nil
	return c, true
}

func (c DeleteByFilter) class() class {
	if !index.SeesPending(c.Filter) {
		return byCommitted
	}
	return byFilter
}

func (DeleteExpired) class() class { return byCommitted }

func (ClearDocuments) class() class { return clearing }
func (ClearDocuments) freesDisk()   {}
