package dump

import (
	"bytes"
	"encoding/json"
	"fmt"

	"svc/internal/settings"
	"svc/internal/task"
)

// form is how a dump holds the details of some tasks: as an object with one member, whose name is the form's, and
// with names in snake_case for those of the API.
type form struct {
	name   string
	fields [][2]string // in a dump, and in the API, in the API's order
}

var (
	additionForm   = &form{"DocumentAdditionOrUpdate", [][2]string{{"received_documents", "receivedDocuments"}, {"indexed_documents", "indexedDocuments"}}}
	deletionForm   = &form{"DocumentDeletion", [][2]string{{"provided_ids", "providedIds"}, {"deleted_documents", "deletedDocuments"}}}
	byFilterForm   = &form{"DocumentDeletionByFilter", [][2]string{{"deleted_documents", "deletedDocuments"}, {"original_filter", "originalFilter"}}}
	clearForm      = &form{"ClearAll", [][2]string{{"deleted_documents", "deletedDocuments"}}}
	editForm       = &form{"DocumentEdition", [][2]string{{"edited_documents", "editedDocuments"}, {"deleted_documents", "deletedDocuments"}, {"original_filter", "originalFilter"}, {"context", "context"}, {"function", "function"}}}
	patchForm      = &form{"DocumentEdition", [][2]string{{"received_operations", "receivedOperations"}, {"edited_documents", "changedDocuments"}, {"skipped_documents", "skippedDocuments"}, {"failed_documents", "failedDocuments"}, {"failures", "failures"}}}
	indexForm      = &form{"IndexInfo", [][2]string{{"primary_key", "primaryKey"}, {"old_index_uid", "oldIndexUid"}, {"new_index_uid", "newIndexUid"}}}
	swapForm       = &form{"IndexSwap", [][2]string{{"swaps", "swaps"}}}
	cancelForm     = &form{"TaskCancelation", [][2]string{{"matched_tasks", "matchedTasks"}, {"canceled_tasks", "canceledTasks"}, {"original_filter", "originalFilter"}}}
	deleteForm     = &form{"TaskDeletion", [][2]string{{"matched_tasks", "matchedTasks"}, {"deleted_tasks", "deletedTasks"}, {"original_filter", "originalFilter"}}}
	dumpForm       = &form{"Dump", [][2]string{{"dump_uid", "dumpUid"}}}
	exportForm     = &form{"Export", [][2]string{{"url", "url"}, {"api_key", "apiKey"}, {"payload_size", "payloadSize"}, {"indexes", "indexes"}}}
	compactionForm = &form{"IndexCompaction", [][2]string{{"pre_compaction_size", "preCompactionSize"}, {"post_compaction_size", "postCompactionSize"}}}
	ruleForm       = &form{"DsrUpdate", [][2]string{{"rule", "rule"}, {"updated_rules", "updatedRules"}}}
	rulesForm      = &form{"DsrClear", [][2]string{{"deleted_documents", "deletedDocuments"}}}
	topologyForm   = &form{"NetworkTopologyChange", [][2]string{{"moved_documents", "movedDocuments"}, {"message", "message"}}}
)

// formOf returns the form of the details of a content, nil when it has one of its own.
func formOf(c task.Content) *form {
	switch c := c.(type) {
	case task.AddDocuments:
		if c.Operations {
			return patchForm
		}
		return additionForm
	case task.DeleteDocuments, task.DeleteExpired:
		return deletionForm
	case task.DeleteByFilter:
		return byFilterForm
	case task.ClearDocuments, task.DeleteIndex:
		return clearForm
	case task.EditDocuments:
		return editForm
	case task.CreateIndex, task.UpdateIndex:
		return indexForm
	case task.SwapIndexes:
		return swapForm
	case task.CancelTasks:
		return cancelForm
	case task.DeleteTasks:
		return deleteForm
	case task.CreateDump:
		return dumpForm
	case task.ExportTo:
		return exportForm
	case task.CompactIndex:
		return compactionForm
	case task.ChangeTopology:
		return topologyForm
	case task.UpdateRule:
		return ruleForm
	case task.ClearRules:
		return rulesForm
	}
	return nil
}

var null = json.RawMessage("null")

// encodeDetails turns the details of the API into those of a dump; nil for none.
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
	if f == compactionForm {
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
	if f == patchForm { // what others look for in an edition
		b = append(b, `,"deleted_documents":null,"original_filter":null,"context":null,"function":""`...)
	}
	return wrap(f.name, append(b, '}')), nil
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

// decodeDetails turns the details of a dump into those of the API. It completes c where a dump has a part
// of the content in the details only.
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
	b := []byte{'{'}
	if f == byFilterForm {
		b = append(b, `"providedIds":0`...)
	}
	for _, names := range f.fields {
		value := dumped[names[0]]
		if value == nil {
			value = null
		}
		absent := bytes.Equal(value, null)
		switch {
		case absent && (f == compactionForm || f == exportForm || f == ruleForm):
			continue
		case absent && f == indexForm && names[1] != "primaryKey":
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
	if f == deletionForm {
		b = append(b, `,"originalFilter":null`...)
	}
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
