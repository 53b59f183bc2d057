package task

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/bytedance/sonic"

	"svc/internal/index"
	"svc/internal/settings"
)

// Content is what a task does; one type a kind, except that there are four
// ways to delete documents. It is stored as JSON with the task.
type Content interface {
	Kind() Kind
	// details gives the details of the API of a task of indexUID. o is nil while it is unfinished.
	details(indexUID string, o *outcome) json.RawMessage
}

// outcome is what a finished task counted. A failed or canceled task counts nothing.
type outcome struct {
	failed        bool
	count         int // documents indexed, deleted or edited; tasks canceled or deleted
	deleted       int // documents that an edit deleted
	patched       *index.PatchResult
	before, after int64 // bytes, of a compaction
}

// counter gives the value of a counter of details: null while unfinished.
func (o *outcome) counter() *int {
	if o == nil {
		return nil
	}
	n := o.count
	if o.failed {
		n = 0
	}
	return &n
}

// AddDocuments adds or updates the documents of the task's payload, or runs the operations of one.
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

// DeleteDocuments deletes documents by external id.
type DeleteDocuments struct {
	IDs []string `json:"ids,omitempty"` // dropped when the task is finished
	// Provided is how many ids there were; Enqueue sets it.
	Provided int `json:"provided"`
}

// DeleteByFilter deletes the documents that a filter, JSON as it was sent, matches.
type DeleteByFilter struct {
	Filter json.RawMessage `json:"filter"`
}

// DeleteExpired deletes the documents that had expired at a moment. The queue itself makes these tasks.
type DeleteExpired struct {
	Moment int64 `json:"moment"` // seconds since 1970
}

// ClearDocuments deletes all documents.
type ClearDocuments struct{}

// EditDocuments runs a script on the documents that a filter (nil: all) matches.
type EditDocuments struct {
	Filter   json.RawMessage `json:"filter,omitempty"`
	Context  json.RawMessage `json:"context,omitempty"` // a JSON object, or nil
	Function string          `json:"function"`
}

// UpdateSettings changes the settings of an index.
type UpdateSettings struct {
	Update    *settings.Update
	Reset     bool // all of the update are resets, asked with DELETE
	MayCreate bool // false for resets
}

// CreateIndex creates an index.
type CreateIndex struct {
	PrimaryKey string `json:"primaryKey,omitempty"`
	EmptyKey   bool   `json:"emptyKey,omitempty"` // the request has a primary key, and it is empty: there is none, and details show it
}

// UpdateIndex sets the primary key of an index, or renames it, or both.
type UpdateIndex struct {
	PrimaryKey string `json:"primaryKey,omitempty"`
	EmptyKey   bool   `json:"emptyKey,omitempty"` // as in CreateIndex
	NewUID     string `json:"newUid,omitempty"`
}

// DeleteIndex deletes an index.
type DeleteIndex struct{}

// Swap is one exchange of two index uids, or a rename of the first to the second.
type Swap struct {
	Indexes [2]string `json:"indexes"`
	Rename  bool      `json:"rename"`
}

// SwapIndexes exchanges the uids of indexes: all pairs or none.
type SwapIndexes struct {
	Swaps []Swap `json:"swaps"`
}

// CancelTasks cancels those of Tasks that are unfinished when it runs; see Queue.Match.
type CancelTasks struct {
	Query string   // "?" and the raw query string that chose the tasks
	Tasks []uint32 // as chosen when the request came
}

// DeleteTasks deletes those of Tasks that are finished when it runs; see Queue.Match.
type DeleteTasks struct {
	Query   string
	Tasks   []uint32
	Deleted int // how many it has deleted so far
}

// CreateDump writes a dump. Keys are the API keys at the moment of the request, in the form of the dump.
type CreateDump struct {
	Keys        json.RawMessage `json:"keys,omitempty"`
	InstanceUID string          `json:"instanceUid,omitempty"`
}

// CreateSnapshot writes a snapshot.
type CreateSnapshot struct{}

// ExportIndex says what of the indexes that match a pattern is exported.
type ExportIndex struct {
	Filter           json.RawMessage `json:"filter"`
	OverrideSettings bool            `json:"overrideSettings"`
}

// ExportTo sends documents and settings to another instance.
type ExportTo struct {
	URL         string                 `json:"url"`
	APIKey      string                 `json:"apiKey,omitempty"`
	PayloadSize int64                  `json:"payloadSize,omitempty"` // bytes; 0: not given
	Indexes     map[string]ExportIndex `json:"indexes"`               // by pattern
}

// Upgrade brings the data directory of an older version up to date.
type Upgrade struct {
	From string `json:"from"` // "v1.41.0"
	To   string `json:"to"`
}

// CompactIndex merges the segments of an index.
type CompactIndex struct{}

// ChangeTopology moves documents between the instances of a network. State belongs to the executor of the kind.
type ChangeTopology struct {
	State          json.RawMessage `json:"state,omitempty"`
	MovedDocuments int             `json:"movedDocuments"`
	Message        string          `json:"message"`
}

// UpdateRule changes, makes or deletes a search rule. Its task is of RulesIndex.
type UpdateRule struct {
	UID  string          `json:"uid"`
	Rule json.RawMessage `json:"rule,omitempty"` // a JSON object, as it was sent; nil: the rule is deleted
}

// ClearRules deletes all search rules. Its task is of RulesIndex.
type ClearRules struct{}

func (c AddDocuments) Kind() Kind {
	if c.Operations {
		return DocumentEdition
	}
	return DocumentAdditionOrUpdate
}
func (DeleteDocuments) Kind() Kind { return DocumentDeletion }
func (DeleteByFilter) Kind() Kind  { return DocumentDeletion }
func (DeleteExpired) Kind() Kind   { return DocumentDeletion }
func (ClearDocuments) Kind() Kind  { return DocumentDeletion }
func (EditDocuments) Kind() Kind   { return DocumentEdition }
func (UpdateSettings) Kind() Kind  { return SettingsUpdate }
func (CreateIndex) Kind() Kind     { return IndexCreation }
func (UpdateIndex) Kind() Kind     { return IndexUpdate }
func (DeleteIndex) Kind() Kind     { return IndexDeletion }
func (SwapIndexes) Kind() Kind     { return IndexSwap }
func (CancelTasks) Kind() Kind     { return TaskCancelation }
func (DeleteTasks) Kind() Kind     { return TaskDeletion }
func (CreateDump) Kind() Kind      { return DumpCreation }
func (CreateSnapshot) Kind() Kind  { return SnapshotCreation }
func (ExportTo) Kind() Kind        { return Export }
func (Upgrade) Kind() Kind         { return UpgradeDatabase }
func (CompactIndex) Kind() Kind    { return IndexCompaction }
func (ChangeTopology) Kind() Kind  { return NetworkTopologyChange }
func (UpdateRule) Kind() Kind      { return RuleUpdate }
func (ClearRules) Kind() Kind      { return RuleClear }

// touched are the index uids, besides the task's own, that a content concerns.
func touched(c Content) []string {
	switch c := c.(type) {
	case UpdateIndex:
		if c.NewUID != "" {
			return []string{c.NewUID}
		}
	case SwapIndexes:
		var uids []string
		for _, s := range c.Swaps {
			uids = append(uids, s.Indexes[0], s.Indexes[1])
		}
		return uids
	}
	return nil
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

// patchDetails are those of a partial update.
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

// deletionDetails are those of the two deletions that choose documents.
type deletionDetails struct {
	Provided int     `json:"providedIds"`
	Deleted  *int    `json:"deletedDocuments"`
	Filter   *string `json:"originalFilter"`
}

func (c DeleteDocuments) details(_ string, o *outcome) json.RawMessage {
	return encode(deletionDetails{Provided: c.Provided, Deleted: o.counter()})
}

func (c DeleteByFilter) details(_ string, o *outcome) json.RawMessage {
	return encode(deletionDetails{Deleted: o.counter(), Filter: filterText(c.Filter)})
}

func (DeleteExpired) details(_ string, o *outcome) json.RawMessage {
	return encode(deletionDetails{Deleted: o.counter()})
}

// deletedDetails are those of the deletion of all documents, with or without their index.
func deletedDetails(o *outcome) json.RawMessage {
	return encode(struct {
		Deleted *int `json:"deletedDocuments"`
	}{o.counter()})
}

func (ClearDocuments) details(_ string, o *outcome) json.RawMessage { return deletedDetails(o) }
func (DeleteIndex) details(_ string, o *outcome) json.RawMessage    { return deletedDetails(o) }

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

func (c UpdateSettings) details(string, *outcome) json.RawMessage {
	b, err := c.Update.MarshalJSON()
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

func (c CreateIndex) details(string, *outcome) json.RawMessage {
	return encode(struct {
		PrimaryKey *string `json:"primaryKey"`
	}{keyOrNull(c.PrimaryKey, c.EmptyKey)})
}

// keyOrNull is a primary key as details show it.
func keyOrNull(key string, empty bool) *string {
	if empty {
		return &key
	}
	return textOrNull(key)
}

func (c UpdateIndex) details(indexUID string, _ *outcome) json.RawMessage {
	if c.NewUID == "" {
		return CreateIndex{PrimaryKey: c.PrimaryKey, EmptyKey: c.EmptyKey}.details(indexUID, nil)
	}
	return encode(struct {
		PrimaryKey *string `json:"primaryKey"`
		Old        string  `json:"oldIndexUid"`
		New        string  `json:"newIndexUid"`
	}{keyOrNull(c.PrimaryKey, c.EmptyKey), indexUID, c.NewUID})
}

func (c SwapIndexes) details(string, *outcome) json.RawMessage {
	if c.Swaps == nil {
		c.Swaps = []Swap{}
	}
	return encode(c)
}

func (c CancelTasks) details(_ string, o *outcome) json.RawMessage {
	return encode(struct {
		Matched  int    `json:"matchedTasks"`
		Canceled *int   `json:"canceledTasks"`
		Filter   string `json:"originalFilter"`
	}{len(c.Tasks), o.counter(), c.Query})
}

func (c DeleteTasks) details(_ string, o *outcome) json.RawMessage {
	deleted := o.counter()
	if o != nil && o.failed {
		deleted = &c.Deleted // it was canceled after that
	}
	return encode(struct {
		Matched int    `json:"matchedTasks"`
		Deleted *int   `json:"deletedTasks"`
		Filter  string `json:"originalFilter"`
	}{len(c.Tasks), deleted, c.Query})
}

func (CreateDump) details(string, *outcome) json.RawMessage {
	return json.RawMessage(`{"dumpUid":null}`)
}
func (CreateSnapshot) details(string, *outcome) json.RawMessage { return nil }

func (c ExportTo) details(string, *outcome) json.RawMessage {
	b := []byte(`{"url":`)
	b = appendString(b, settings.RedactURL(c.URL))
	if c.APIKey != "" {
		b = append(b, `,"apiKey":`...)
		b = appendString(b, settings.Redact(c.APIKey))
	}
	if c.PayloadSize > 0 {
		b = append(b, `,"payloadSize":`...)
		b = appendString(b, FormatSize(c.PayloadSize))
	}
	b = append(b, `,"indexes":{`...)
	for i, pattern := range slices.Sorted(maps.Keys(c.Indexes)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, pattern)
		b = append(b, ':')
		x := c.Indexes[pattern]
		if x.Filter == nil {
			x.Filter = json.RawMessage("null")
		}
		b = append(b, encode(x)...)
	}
	return append(b, "}}"...)
}

func (c Upgrade) details(string, *outcome) json.RawMessage {
	return encode(struct {
		From string `json:"upgradeFrom"`
		To   string `json:"upgradeTo"`
	}{c.From, c.To})
}

func (CompactIndex) details(_ string, o *outcome) json.RawMessage {
	if o == nil || o.failed {
		return json.RawMessage("{}")
	}
	return encode(struct {
		Before string `json:"preCompactionSize"`
		After  string `json:"postCompactionSize"`
	}{FormatSize(o.before), FormatSize(o.after)})
}

func (c ChangeTopology) details(string, *outcome) json.RawMessage {
	return encode(struct {
		Moved   int    `json:"movedDocuments"`
		Message string `json:"message"`
	}{c.MovedDocuments, c.Message})
}

func (c UpdateRule) details(string, *outcome) json.RawMessage {
	return encode(struct {
		Rule    json.RawMessage `json:"rule,omitempty"`
		Updated int             `json:"updatedRules"`
	}{c.Rule, 1})
}

func (ClearRules) details(_ string, o *outcome) json.RawMessage { return deletedDetails(o) }

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

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// encode is JSON without the escapes that HTML wants. Its callers pass plain structs, which always encode.
func encode(v any) json.RawMessage {
	b, err := sonic.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("task: %T cannot be JSON: %v", v, err))
	}
	return b
}
