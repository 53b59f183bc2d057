package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"svc/internal/settings"
	"svc/internal/task"
)

// form is how a dump encodes the details of some tasks: as an object with one member, which has the name of the form, and with names
// in snake_case.
type form struct {
	name     string
	fields   [][2]string // in a dump, and in the API, in the API's order
	optional []string    // of the API, which are left out instead of null

	before, after string // members that only the API has, open at the end; and members behind the fields
	dumpAfter     string // members that only a dump has
	withIndex     bool   // a dump has the uid of the index before the fields
}

var (
	additionForm = &form{name: "DocumentAdditionOrUpdate", fields: [][2]string{{"received_documents", "receivedDocuments"}, {"indexed_documents", "indexedDocuments"}}}
	deletionForm = &form{name: "DocumentDeletion", fields: [][2]string{{"provided_ids", "providedIds"}, {"deleted_documents", "deletedDocuments"}},
		after: `,"originalFilter":null`}
	byFilterForm = &form{name: "DocumentDeletionByFilter", fields: [][2]string{{"deleted_documents", "deletedDocuments"}, {"original_filter", "originalFilter"}},
		before: `"providedIds":0`}
	clearForm = &form{name: "ClearAll", fields: [][2]string{{"deleted_documents", "deletedDocuments"}}}
	editForm  = &form{name: "DocumentEdition", fields: [][2]string{{"edited_documents", "editedDocuments"}, {"deleted_documents", "deletedDocuments"}, {"original_filter", "originalFilter"}, {"context", "context"}, {"function", "function"}}}
	patchForm = &form{name: "DocumentEdition", fields: [][2]string{{"received_operations", "receivedOperations"}, {"edited_documents", "changedDocuments"}, {"skipped_documents", "skippedDocuments"}, {"failed_documents", "failedDocuments"}, {"failures", "failures"}},
		dumpAfter: `,"deleted_documents":null,"original_filter":null,"context":null,"function":""`} // what others look for in an edition
	indexForm = &form{name: "IndexInfo", fields: [][2]string{{"primary_key", "primaryKey"}, {"old_index_uid", "oldIndexUid"}, {"new_index_uid", "newIndexUid"}},
		optional: []string{"oldIndexUid", "newIndexUid"}}
	swapForm   = &form{name: "IndexSwap", fields: [][2]string{{"swaps", "swaps"}}}
	cancelForm = &form{name: "TaskCancelation", fields: [][2]string{{"matched_tasks", "matchedTasks"}, {"canceled_tasks", "canceledTasks"}, {"original_filter", "originalFilter"}}}
	deleteForm = &form{name: "TaskDeletion", fields: [][2]string{{"matched_tasks", "matchedTasks"}, {"deleted_tasks", "deletedTasks"}, {"original_filter", "originalFilter"}}}
	dumpForm   = &form{name: "Dump", fields: [][2]string{{"dump_uid", "dumpUid"}}}
	exportForm = &form{name: "Export", fields: [][2]string{{"url", "url"}, {"api_key", "apiKey"}, {"payload_size", "payloadSize"}, {"indexes", "indexes"}},
		optional: []string{"url", "apiKey", "payloadSize", "indexes"}}
	compactionForm = &form{name: "IndexCompaction", fields: [][2]string{{"pre_compaction_size", "preCompactionSize"}, {"post_compaction_size", "postCompactionSize"}},
		optional: []string{"preCompactionSize", "postCompactionSize"}, withIndex: true}
	ruleForm = &form{name: "DsrUpdate", fields: [][2]string{{"rule", "rule"}, {"updated_rules", "updatedRules"}},
		optional: []string{"rule", "updatedRules"}}
	rulesForm    = &form{name: "DsrClear", fields: [][2]string{{"deleted_documents", "deletedDocuments"}}}
	topologyForm = &form{name: "NetworkTopologyChange", fields: [][2]string{{"moved_documents", "movedDocuments"}, {"message", "message"}}}
)

// formOf returns the form of the details of a content, nil when it has one of its own.
func formOf(c task.Content) *form {
	if r := contentsByKey[keyOf(c)]; r != nil {
		return r.details
	}
	return nil
}

var null = json.RawMessage("null")

// encodeDetails converts the details of the API to those of a dump, or nil if there are none.
func encodeDetails(t *task.Task) (json.RawMessage, error) {
	if t.Details == nil {
		return nil, nil
	}
	switch c := t.Content.(type) {
	case task.UpdateSettings:
		inside := append([]byte(`{"settings":`), t.Details...)
		return wrap("SettingsUpdate", append(inside, '}')), nil
	case task.Upgrade:
		inside, err := encode(map[string]any{"from": versionNumbers(c.From), "to": versionNumbers(c.To)})
		return wrap("UpgradeDatabase", inside), err
	}
	f := formOf(t.Content)
	if f == nil {
		return nil, nil
	}
	var api map[string]json.RawMessage
	if err := json.Unmarshal(t.Details, &api); err != nil {
		return nil, fmt.Errorf("details: %w", err)
	}
	if c, ok := t.Content.(task.ExportTo); ok && c.APIKey != "" && !t.Status.Finished() {
		key, err := encode(c.APIKey) // in clear: the details have it redacted
		if err != nil {
			return nil, err
		}
		api["apiKey"] = key
	}
	b := []byte{'{'}
	if f.withIndex {
		uid, err := encode(t.IndexUID)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `"index_uid":`...), uid...)
	}
	for _, names := range f.fields {
		value := api[names[1]]
		if value == nil {
			value = null
		}
		b = appendMember(b, names[0], value)
	}
	return wrap(f.name, append(append(b, f.dumpAfter...), '}')), nil
}

func wrap(name string, inside []byte) json.RawMessage {
	return append(appendMember([]byte{'{'}, name, inside), '}')
}

// appendMember appends a member to an object that is open. Names are ours, and plain.
func appendMember(b []byte, name string, value []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, `":`...)
	return append(b, value...)
}

// decodeDetails converts the details of a dump to those of the API. It completes c if a dump has a part of the content only in the
// details.
func decodeDetails(raw json.RawMessage, c task.Content) (json.RawMessage, task.Content, error) {
	if u, ok := c.(task.UpdateSettings); ok {
		// The content says the same, and here secrets are redacted.
		b, err := u.Update.MarshalJSON()
		return b, c, err
	}
	if len(raw) == 0 || bytes.Equal(raw, null) {
		return nil, c, nil
	}
	name, inside, err := variant(raw)
	if err != nil {
		return nil, c, fmt.Errorf("details: %w", err)
	}
	var dumped map[string]json.RawMessage
	if inside != nil {
		if err := json.Unmarshal(inside, &dumped); err != nil {
			return nil, c, fmt.Errorf("details %s: %w", name, err)
		}
	}
	if u, ok := c.(task.Upgrade); ok {
		var v struct{ From, To [3]int }
		if err := json.Unmarshal(inside, &v); err != nil {
			return nil, c, fmt.Errorf("details %s: %w", name, err)
		}
		u.From, u.To = versionText(v.From), versionText(v.To)
		b, err := encode(struct {
			From string `json:"upgradeFrom"`
			To   string `json:"upgradeTo"`
		}{u.From, u.To})
		return b, u, err
	}
	f := formOf(c)
	if f == nil || f.name != name {
		return nil, c, nil // another engine's details of another kind of task say nothing here
	}
	b := append([]byte{'{'}, f.before...)
	for _, names := range f.fields {
		value := dumped[names[0]]
		if value == nil {
			value = null
		}
		absent := bytes.Equal(value, null)
		switch {
		case absent && slices.Contains(f.optional, names[1]):
			continue
		case !absent && names[1] == "apiKey":
			if value, err = redacted(value); err != nil {
				return nil, c, fmt.Errorf("details %s: %w", name, err)
			}
		}
		b = appendMember(b, names[1], value)
		if names[1] == "providedIds" {
			if d, ok := c.(task.DeleteDocuments); ok && d.Provided == 0 {
				_ = json.Unmarshal(value, &d.Provided) // a finished task may have lost its ids
				c = d
			}
		}
	}
	b = append(b, f.after...)
	if d, ok := c.(task.ChangeTopology); ok {
		_ = json.Unmarshal(dumped["moved_documents"], &d.MovedDocuments)
		_ = json.Unmarshal(dumped["message"], &d.Message)
		c = d
	}
	return append(b, '}'), c, nil
}

func redacted(value json.RawMessage) (json.RawMessage, error) {
	var secret string
	if err := json.Unmarshal(value, &secret); err != nil {
		return nil, err
	}
	return encode(settings.Redact(secret))
}
