package dump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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

// encodeType gives the type of a task in a dump, without secrets where the task has finished and needs none.
func encodeType(t *task.Task) (json.RawMessage, error) {
	switch c := t.Content.(type) {
	case task.AddDocuments:
		if c.Operations {
			return typed("documentEdition", documentEdition{null, null, "", &partialUpdate{c.Documents, c.Atomic, c.IfMissing, c.Contains}})
		}
		method := replaceDocuments
		if c.Merge {
			method = updateDocuments
		}
		primaryKey := textOrNil(c.PrimaryKey)
		if c.EmptyKey {
			primaryKey = &c.PrimaryKey
		}
		return typed("documentImport", documentImport{primaryKey, method, c.Documents, c.MayCreate, c.SkipCreation})
	case task.DeleteDocuments:
		ids := c.IDs
		if ids == nil {
			ids = []string{}
		}
		return typed("documentDeletion", documentDeletion{ids})
	case task.DeleteExpired: // the instance that reads the dump finds out by itself
		return typed("documentDeletion", documentDeletion{[]string{}})
	case task.DeleteByFilter:
		return typed("documentDeletionByFilter", documentDeletionByFilter{c.Filter})
	case task.ClearDocuments:
		return bare("documentClear")
	case task.EditDocuments:
		return typed("documentEdition", documentEdition{c.Filter, c.Context, c.Function, nil})
	case task.UpdateSettings:
		update := c.Update.Full()
		if t.Status.Finished() {
			var err error
			if update, err = c.Update.MarshalJSON(); err != nil {
				return nil, err
			}
		}
		return typed("settings", settingsType{update, c.Reset, c.MayCreate})
	case task.DeleteIndex:
		return bare("indexDeletion")
	case task.CreateIndex:
		return typed("indexCreation", indexCreation{textOrNil(c.PrimaryKey)})
	case task.UpdateIndex:
		return typed("indexUpdate", indexUpdate{textOrNil(c.PrimaryKey), textOrNil(c.NewUID)})
	case task.SwapIndexes:
		if c.Swaps == nil {
			c.Swaps = []task.Swap{}
		}
		return typed("indexSwap", indexSwap{c.Swaps})
	case task.CancelTasks:
		return encodeSet("taskCancelation", c.Query, c.Tasks)
	case task.DeleteTasks:
		return encodeSet("tasksDeletion", c.Query, c.Tasks)
	case task.CreateDump:
		keys := c.Keys
		if keys == nil {
			keys = json.RawMessage("[]")
		}
		return typed("dumpCreation", dumpCreation{keys, textOrNil(c.InstanceUID)})
	case task.CreateSnapshot:
		return bare("snapshotCreation")
	case task.ExportTo:
		x := exportType{URL: c.URL, Indexes: c.Indexes}
		if !t.Status.Finished() {
			x.APIKey = textOrNil(c.APIKey)
		}
		if c.PayloadSize > 0 {
			size := task.FormatSize(c.PayloadSize)
			x.PayloadSize = &size
		}
		return typed("export", x)
	case task.Upgrade:
		return typed("upgradeDatabase", upgradeDatabase{versionNumbers(c.From)})
	case task.CompactIndex:
		return typed("indexCompaction", indexCompaction{t.IndexUID})
	case task.ChangeTopology:
		return typed("networkTopologyChange", c)
	case task.UpdateRule:
		return typed("dsrUpdate", dsrUpdate{c.UID, c.Rule})
	case task.ClearRules:
		return bare("dsrClear")
	}
	return nil, fmt.Errorf("a dump has no form for tasks of type %s", t.Content.Kind())
}

func bare(name string) (json.RawMessage, error) { return encode(name) }

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

func encodeSet(name, query string, uids []uint32) (json.RawMessage, error) {
	b, err := roaring.BitmapOf(uids...).ToBytes()
	if err != nil {
		return nil, err
	}
	s := taskSet{query, make([]int, len(b))}
	for i, x := range b {
		s.Tasks[i] = int(x)
	}
	return typed(name, s)
}

// maxSet bounds the tasks that one cancelation or deletion names: a few bytes can stand for 2³² of them.
const maxSet = 10_000_000

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
	read := func(v any) error {
		if inside == nil {
			return errors.New("it has no members")
		}
		return json.Unmarshal(inside, v)
	}
	switch name {
	case "documentImport":
		var x documentImport
		if err := read(&x); err != nil {
			return nil, err
		}
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
	case "documentDeletion":
		var x documentDeletion
		err := read(&x)
		return task.DeleteDocuments{IDs: x.DocumentsIDs, Provided: len(x.DocumentsIDs)}, err
	case "documentDeletionByFilter":
		var x documentDeletionByFilter
		err := read(&x)
		return task.DeleteByFilter{Filter: x.Filter}, err
	case "documentClear":
		return task.ClearDocuments{}, nil
	case "documentEdition":
		var x documentEdition
		err := read(&x)
		if o := x.Operations; o != nil {
			if _, known := document.ParseIfMissing(cmp.Or(o.IfMissing, "skip")); !known || o.Count < 0 {
				return nil, fmt.Errorf("%d operations with ifMissing %q", o.Count, o.IfMissing)
			}
			return task.AddDocuments{Documents: o.Count, Operations: true, Atomic: o.Atomic, IfMissing: o.IfMissing, Contains: o.Contains}, nil
		}
		return task.EditDocuments{Filter: valueOrNil(x.Filter), Context: valueOrNil(x.Context), Function: x.Function}, err
	case "settings":
		var x settingsType
		if err := read(&x); err != nil {
			return nil, err
		}
		u, _, err := settings.UnmarshalForeign(x.Settings)
		return task.UpdateSettings{Update: u, Reset: x.IsDeletion, MayCreate: x.AllowIndexCreation}, err
	case "indexDeletion":
		return task.DeleteIndex{}, nil
	case "indexCreation":
		var x indexCreation
		err := read(&x)
		return task.CreateIndex{PrimaryKey: textOf(x.PrimaryKey)}, err
	case "indexUpdate":
		var x indexUpdate
		err := read(&x)
		return task.UpdateIndex{PrimaryKey: textOf(x.PrimaryKey), NewUID: textOf(x.UID)}, err
	case "indexSwap":
		var x indexSwap
		err := read(&x)
		return task.SwapIndexes{Swaps: x.Swaps}, err
	case "taskCancelation", "tasksDeletion":
		var x taskSet
		if err := read(&x); err != nil {
			return nil, err
		}
		uids, err := decodeSet(x)
		if name == "taskCancelation" {
			return task.CancelTasks{Query: x.Query, Tasks: uids}, err
		}
		return task.DeleteTasks{Query: x.Query, Tasks: uids}, err
	case "dumpCreation":
		var x dumpCreation
		err := read(&x)
		return task.CreateDump{Keys: x.Keys, InstanceUID: textOf(x.InstanceUID)}, err
	case "snapshotCreation":
		return task.CreateSnapshot{}, nil
	case "export":
		var x exportType
		if err := read(&x); err != nil {
			return nil, err
		}
		c := task.ExportTo{URL: x.URL, APIKey: textOf(x.APIKey), Indexes: x.Indexes}
		if x.PayloadSize != nil {
			size, err := task.ParseSize(*x.PayloadSize)
			if err != nil {
				return nil, err
			}
			c.PayloadSize = size
		}
		return c, nil
	case "upgradeDatabase":
		var x upgradeDatabase
		err := read(&x)
		return task.Upgrade{From: versionText(x.From)}, err
	case "indexCompaction":
		return task.CompactIndex{}, nil
	case "networkTopologyChange":
		return decodeTopology(inside)
	case "dsrUpdate":
		var x dsrUpdate
		if err := read(&x); err != nil {
			return nil, err
		}
		return task.UpdateRule{UID: x.UID, Rule: valueOrNil(x.Rule)}, nil
	case "dsrClear":
		return task.ClearRules{}, nil
	}
	return nil, errors.New("it is unknown")
}

// decodeTopology reads what svc wrote; what another engine wrote is kept whole as the state.
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
	_, _ = fmt.Sscanf(strings.TrimPrefix(text, "v"), "%d.%d.%d", &v[0], &v[1], &v[2]) // 0 for what is missing
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
