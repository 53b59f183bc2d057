package dump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/document"
	"svc/internal/settings"
	"svc/internal/task"
)

// The types of tasks in a dump. A type is a bare string, or an object with one member that has the type's name.
type (
	documentImport struct {
		PrimaryKey         *string `json:"primary_key"`
		Method             string  `json:"method"`
		DocumentsCount     int     `json:"documents_count"`
		AllowIndexCreation bool    `json:"allow_index_creation"`
		SkipCreation       bool    `json:"skip_creation,omitempty"` // svc's own: other readers pass over it
	}
	documentDeletion struct {
		DocumentsIDs []string `json:"documents_ids"`
	}
	documentDeletionByFilter struct {
		Filter json.RawMessage `json:"filter"`
	}
	documentEdition struct {
		Filter   json.RawMessage `json:"filter"`
		Context  json.RawMessage `json:"context"`
		Function string          `json:"function"`
		// svc's own, of a partial update: another reader sees a function that does nothing.
		Operations *partialUpdate `json:"operations,omitempty"`
	}
	partialUpdate struct {
		Count     int    `json:"count"`
		Atomic    bool   `json:"atomic,omitempty"`
		IfMissing string `json:"if_missing,omitempty"`
		Contains  bool   `json:"contains,omitempty"`
	}
	settingsType struct {
		Settings           json.RawMessage `json:"settings"`
		IsDeletion         bool            `json:"is_deletion"`
		AllowIndexCreation bool            `json:"allow_index_creation"`
	}
	indexCreation struct {
		PrimaryKey *string `json:"primary_key"`
	}
	indexUpdate struct {
		PrimaryKey *string `json:"primary_key"`
		UID        *string `json:"uid"`
	}
	indexSwap struct {
		Swaps []task.Swap `json:"swaps"`
	}
	taskSet struct {
		Query string `json:"query"`
		Tasks []int  `json:"tasks"` // the bytes of a roaring bitmap in its portable form
	}
	dumpCreation struct {
		Keys        json.RawMessage `json:"keys"`
		InstanceUID *string         `json:"instance_uid"`
	}
	exportType struct {
		URL         string                      `json:"url"`
		APIKey      *string                     `json:"api_key"`
		PayloadSize *string                     `json:"payload_size"`
		Indexes     map[string]task.ExportIndex `json:"indexes"`
	}
	upgradeDatabase struct {
		From [3]int `json:"from"`
	}
	indexCompaction struct {
		IndexUID string `json:"index_uid"`
	}
	dsrUpdate struct {
		UID  string          `json:"uid"`
		Rule json.RawMessage `json:"rule,omitempty"` // none: it is deleted
	}
)

const (
	replaceDocuments = "ReplaceDocuments"
	updateDocuments  = "UpdateDocuments"
)

// content is how a dump holds one type of content of tasks: a row of contents.
type content struct {
	key     contentKey
	name    string // of the type in a dump
	details *form  // of its details; nil: a dump has none of it

	// inside returns the value under the name, without secrets if the task has finished and no longer needs them; nil: only the name
	// is written.
	inside func(t *task.Task) (any, error)
	// decode reads the value under the name. nil: another row of the same name does.
	decode func(inside json.RawMessage) (task.Content, error)
}

// contentKey distinguishes types of content. One type has two kinds.
type contentKey struct {
	of   reflect.Type
	kind task.Kind
}

func keyOf(c task.Content) contentKey { return contentKey{reflect.TypeOf(c), c.Kind()} }

// row makes a row of contents. example is of its type and kind.
func row[C task.Content](example C, name string, details *form, inside func(t *task.Task, c C) (any, error), decode func(json.RawMessage) (task.Content, error)) content {
	r := content{key: keyOf(example), name: name, details: details, decode: decode}
	if inside != nil {
		r.inside = func(t *task.Task) (any, error) { return inside(t, t.Content.(C)) }
	}
	return r
}

// alone makes a row of contents that have no members: the name says all.
func alone[C task.Content](example C, name string, details *form) content {
	return row(example, name, details, nil, func(json.RawMessage) (task.Content, error) { return example, nil })
}

// plain is what stands under a name, where nothing can fail.
func plain[C task.Content](inside func(c C) any) func(*task.Task, C) (any, error) {
	return func(_ *task.Task, c C) (any, error) { return inside(c), nil }
}

// reading decodes the members X that stand under a name.
func reading[X any](content func(x X) (task.Content, error)) func(json.RawMessage) (task.Content, error) {
	return func(inside json.RawMessage) (task.Content, error) {
		if inside == nil {
			return nil, errors.New("it has no members")
		}
		var x X
		if err := json.Unmarshal(inside, &x); err != nil {
			return nil, err
		}
		return content(x)
	}
}

// orEmpty returns an empty list for nil, because dumps have no null here.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// contents has a row for each type of content. TestEveryContentIsDumped names one that is missing.
var contents = []content{
	row(task.AddDocuments{}, "documentImport", additionForm, plain(importOf), reading(documentImport.content)),
	row(task.AddDocuments{Operations: true}, "documentEdition", patchForm, plain(patchOf), nil),
	row(task.EditDocuments{}, "documentEdition", editForm, plain(func(c task.EditDocuments) any {
		return documentEdition{c.Filter, c.Context, c.Function, nil}
	}), reading(documentEdition.content)),
	row(task.DeleteDocuments{}, "documentDeletion", deletionForm, plain(func(c task.DeleteDocuments) any {
		return documentDeletion{orEmpty(c.IDs)}
	}), reading(func(x documentDeletion) (task.Content, error) {
		return task.DeleteDocuments{IDs: x.DocumentsIDs, Provided: len(x.DocumentsIDs)}, nil
	})),
	row(task.DeleteExpired{}, "documentDeletion", deletionForm, plain(func(task.DeleteExpired) any {
		return documentDeletion{[]string{}} // the instance that reads the dump finds out by itself
	}), nil),
	row(task.DeleteByFilter{}, "documentDeletionByFilter", byFilterForm, plain(func(c task.DeleteByFilter) any {
		return documentDeletionByFilter{c.Filter}
	}), reading(func(x documentDeletionByFilter) (task.Content, error) {
		return task.DeleteByFilter{Filter: x.Filter}, nil
	})),
	alone(task.ClearDocuments{}, "documentClear", clearForm),
	row(task.UpdateSettings{}, "settings", nil, settingsOf, reading(settingsType.content)),
	row(task.CreateIndex{}, "indexCreation", indexForm, plain(func(c task.CreateIndex) any {
		return indexCreation{textOrNil(c.PrimaryKey)}
	}), reading(func(x indexCreation) (task.Content, error) {
		return task.CreateIndex{PrimaryKey: textOf(x.PrimaryKey)}, nil
	})),
	row(task.UpdateIndex{}, "indexUpdate", indexForm, plain(func(c task.UpdateIndex) any {
		return indexUpdate{textOrNil(c.PrimaryKey), textOrNil(c.NewUID)}
	}), reading(func(x indexUpdate) (task.Content, error) {
		return task.UpdateIndex{PrimaryKey: textOf(x.PrimaryKey), NewUID: textOf(x.UID)}, nil
	})),
	alone(task.DeleteIndex{}, "indexDeletion", clearForm),
	row(task.SwapIndexes{}, "indexSwap", swapForm, plain(func(c task.SwapIndexes) any {
		return indexSwap{orEmpty(c.Swaps)}
	}), reading(func(x indexSwap) (task.Content, error) { return task.SwapIndexes{Swaps: x.Swaps}, nil })),
	row(task.CancelTasks{}, "taskCancelation", cancelForm, func(_ *task.Task, c task.CancelTasks) (any, error) {
		return encodeSet(c.Query, c.Tasks)
	}, reading(func(x taskSet) (task.Content, error) {
		uids, err := decodeSet(x)
		return task.CancelTasks{Query: x.Query, Tasks: uids}, err
	})),
	row(task.DeleteTasks{}, "tasksDeletion", deleteForm, func(_ *task.Task, c task.DeleteTasks) (any, error) {
		return encodeSet(c.Query, c.Tasks)
	}, reading(func(x taskSet) (task.Content, error) {
		uids, err := decodeSet(x)
		return task.DeleteTasks{Query: x.Query, Tasks: uids}, err
	})),
	row(task.CreateDump{}, "dumpCreation", dumpForm, plain(func(c task.CreateDump) any {
		keys := c.Keys
		if keys == nil {
			keys = json.RawMessage("[]")
		}
		return dumpCreation{keys, textOrNil(c.InstanceUID)}
	}), reading(func(x dumpCreation) (task.Content, error) {
		return task.CreateDump{Keys: x.Keys, InstanceUID: textOf(x.InstanceUID)}, nil
	})),
	alone(task.CreateSnapshot{}, "snapshotCreation", nil),
	row(task.ExportTo{}, "export", exportForm, exportOf, reading(exportType.content)),
	row(task.Upgrade{}, "upgradeDatabase", nil, plain(func(c task.Upgrade) any {
		return upgradeDatabase{versionNumbers(c.From)}
	}), reading(func(x upgradeDatabase) (task.Content, error) { return task.Upgrade{From: versionText(x.From)}, nil })),
	row(task.CompactIndex{}, "indexCompaction", compactionForm, func(t *task.Task, _ task.CompactIndex) (any, error) {
		return indexCompaction{t.IndexUID}, nil
	}, func(json.RawMessage) (task.Content, error) { return task.CompactIndex{}, nil }),
	row(task.ChangeTopology{}, "networkTopologyChange", topologyForm, plain(func(c task.ChangeTopology) any { return c }), decodeTopology),
	row(task.UpdateRule{}, "dsrUpdate", ruleForm, plain(func(c task.UpdateRule) any { return dsrUpdate{c.UID, c.Rule} }), reading(func(x dsrUpdate) (task.Content, error) {
		return task.UpdateRule{UID: x.UID, Rule: valueOrNil(x.Rule)}, nil
	})),
	alone(task.ClearRules{}, "dsrClear", rulesForm),
}

// contentsByKey and contentsByName are the rows for writing and for reading.
var (
	contentsByKey  = map[contentKey]*content{}
	contentsByName = map[string]*content{}
)

func init() {
	for i := range contents {
		r := &contents[i]
		contentsByKey[r.key] = r
		if r.decode != nil {
			contentsByName[r.name] = r
		}
	}
}

// importOf is the form of an addition in dumps.
func importOf(c task.AddDocuments) any {
	method := replaceDocuments
	if c.Merge {
		method = updateDocuments
	}
	primaryKey := textOrNil(c.PrimaryKey)
	if c.EmptyKey {
		primaryKey = &c.PrimaryKey
	}
	return documentImport{primaryKey, method, c.Documents, c.MayCreate, c.SkipCreation}
}

// content is the inverse of importOf. The payload has a separate entry.
func (x documentImport) content() (task.Content, error) {
	if x.Method != replaceDocuments && x.Method != updateDocuments {
		return nil, fmt.Errorf("unknown method %q", x.Method)
	}
	if x.DocumentsCount < 0 {
		return nil, fmt.Errorf("%d documents", x.DocumentsCount)
	}
	return task.AddDocuments{
		Merge: x.Method == updateDocuments, SkipCreation: x.SkipCreation, PrimaryKey: textOf(x.PrimaryKey),
		EmptyKey: x.PrimaryKey != nil && *x.PrimaryKey == "", Documents: x.DocumentsCount, MayCreate: x.AllowIndexCreation,
	}, nil
}

func patchOf(c task.AddDocuments) any {
	return documentEdition{null, null, "", &partialUpdate{c.Documents, c.Atomic, c.IfMissing, c.Contains}}
}

func (x documentEdition) content() (task.Content, error) {
	o := x.Operations
	if o == nil {
		return task.EditDocuments{Filter: valueOrNil(x.Filter), Context: valueOrNil(x.Context), Function: x.Function}, nil
	}
	if _, known := document.ParseIfMissing(cmp.Or(o.IfMissing, "skip")); !known || o.Count < 0 {
		return nil, fmt.Errorf("%d operations with ifMissing %q", o.Count, o.IfMissing)
	}
	return task.AddDocuments{Documents: o.Count, Operations: true, Atomic: o.Atomic, IfMissing: o.IfMissing, Contains: o.Contains}, nil
}

// settingsOf is the form of a change of settings. A task that still has to run keeps its secrets.
func settingsOf(t *task.Task, c task.UpdateSettings) (any, error) {
	update := c.Update.Full()
	if t.Status.Finished() {
		var err error
		if update, err = c.Update.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	return settingsType{update, c.Reset, c.MayCreate}, nil
}

func (x settingsType) content() (task.Content, error) {
	u, _, err := settings.UnmarshalForeign(x.Settings)
	return task.UpdateSettings{Update: u, Reset: x.IsDeletion, MayCreate: x.AllowIndexCreation}, err
}

// exportOf is the form of an export. A task that still has to run keeps its API key.
func exportOf(t *task.Task, c task.ExportTo) (any, error) {
	x := exportType{URL: c.URL, Indexes: c.Indexes}
	if !t.Status.Finished() {
		x.APIKey = textOrNil(c.APIKey)
	}
	if c.PayloadSize > 0 {
		size := task.FormatSize(c.PayloadSize)
		x.PayloadSize = &size
	}
	return x, nil
}

func (x exportType) content() (task.Content, error) {
	c := task.ExportTo{URL: x.URL, APIKey: textOf(x.APIKey), Indexes: x.Indexes}
	if x.PayloadSize != nil {
		size, err := task.ParseSize(*x.PayloadSize)
		if err != nil {
			return nil, err
		}
		c.PayloadSize = size
	}
	return c, nil
}

// encodeType gives the type of a task in a dump.
func encodeType(t *task.Task) (json.RawMessage, error) {
	r := contentsByKey[keyOf(t.Content)]
	switch {
	case r == nil:
		return nil, fmt.Errorf("a dump has no form for tasks of type %s", t.Content.Kind())
	case r.inside == nil:
		return encode(r.name)
	}
	inside, err := r.inside(t)
	if err != nil {
		return nil, err
	}
	return typed(r.name, inside)
}

func typed(name string, inside any) (json.RawMessage, error) {
	b, err := encode(inside)
	if err != nil {
		return nil, err
	}
	return encode(map[string]json.RawMessage{name: b})
}

// encode is JSON without the escapes that HTML wants.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encodeSet writes uids as other engines of this API do: the bytes of a roaring bitmap, as an array of
// numbers.
func encodeSet(query string, uids []uint32) (any, error) {
	b, err := roaring.BitmapOf(uids...).ToBytes()
	if err != nil {
		return nil, err
	}
	s := taskSet{query, make([]int, len(b))}
	for i, x := range b {
		s.Tasks[i] = int(x)
	}
	return s, nil
}

// maxSet is the maximum number of tasks that one cancelation or deletion names. A few bytes can stand for 2³² of them.
const maxSet = 10_000_000

// decodeSet is the opposite of encodeSet. It does not trust the bitmap.
func decodeSet(s taskSet) (uids []uint32, err error) {
	b := make([]byte, len(s.Tasks))
	for i, x := range s.Tasks {
		if x < 0 || x > 255 {
			return nil, fmt.Errorf("%d in a set of tasks is no byte", x)
		}
		b[i] = byte(x)
	}
	set := roaring.New()
	if err := set.UnmarshalBinary(b); err != nil {
		return nil, fmt.Errorf("a set of tasks cannot be read: %w", err)
	}
	if err := set.Validate(); err != nil && !set.IsEmpty() {
		return nil, fmt.Errorf("a set of tasks cannot be read: %w", err)
	}
	if n := set.GetCardinality(); n > maxSet {
		return nil, fmt.Errorf("a set names %d tasks, but %d are the most", n, maxSet)
	}
	return set.ToArray(), nil
}

// decodeType reads the type of a task in a dump.
func decodeType(raw json.RawMessage) (task.Content, error) {
	name, inside, err := variant(raw)
	if err != nil {
		return nil, fmt.Errorf("type: %w", err)
	}
	c, err := decodeContent(name, inside)
	if err != nil {
		return nil, fmt.Errorf("type %s: %w", name, err)
	}
	return c, nil
}

// variant takes a bare name, or the name and the value of an object's only member.
func variant(raw json.RawMessage) (name string, inside json.RawMessage, err error) {
	if len(raw) > 0 && raw[0] == '"' {
		err = json.Unmarshal(raw, &name)
		return name, nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return "", nil, err
	}
	if len(members) != 1 {
		return "", nil, fmt.Errorf("an object of %d members, want 1", len(members))
	}
	for name, inside = range members {
	}
	return name, inside, nil
}

func decodeContent(name string, inside json.RawMessage) (task.Content, error) {
	r := contentsByName[name]
	if r == nil {
		return nil, errors.New("it is unknown")
	}
	return r.decode(inside)
}

// decodeTopology reads the output of svc. It keeps the output of another engine unchanged as the state.
func decodeTopology(inside json.RawMessage) (task.Content, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(inside, &members); err != nil {
		return nil, err
	}
	if _, ours := members["movedDocuments"]; !ours {
		return task.ChangeTopology{State: inside}, nil
	}
	var c task.ChangeTopology
	err := json.Unmarshal(inside, &c)
	return c, err
}

// versionNumbers reads "v1.41.0".
func versionNumbers(text string) (v [3]int) {
	_, _ = fmt.Sscanf(strings.TrimPrefix(text, "v"), "%d.%d.%d", &v[0], &v[1], &v[2]) // missing parts are 0
	return v
}

func versionText(v [3]int) string { return fmt.Sprintf("v%d.%d.%d", v[0], v[1], v[2]) }

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// valueOrNil is nil for JSON's null.
func valueOrNil(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
