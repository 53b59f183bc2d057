package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/settings"
	"svc/internal/task"
)

// The names in a dump of version 4 or 5 that differ from those of version 6.
const (
	v5TasksName    = "updates/data.jsonl"
	v5PayloadsDir  = "updates/updates_files" // one file a payload, named by the content_uuid of its task
	v5IndexesName  = "index_uuids/data.jsonl"
	v5KeysName     = "keys"
	v5InstanceName = "instance-uid"
	v5MetaName     = "meta.json" // of each index, in a folder named by its UUID: {"settings","primary_key"}
)

// applyV5 stores a dump of version 5 or 4. It has no batches, features or webhooks. The dates of an index are those of its tasks.
func (m *importer) applyV5(version string) error {
	if m.in.lines[v5TasksName] == "" {
		return errors.New("it has no updates/data.jsonl: it is only a part of a dump")
	}
	decode := decodeKey
	if version == "V4" {
		decode = m.decodeKeyV4
	}
	if err := m.keys(m.in.small[v5KeysName], decode); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	first, last, err := m.tasksV5()
	if err != nil {
		return fmt.Errorf("%s: %w", v5TasksName, err)
	}
	list, err := m.listV5(first, last)
	if err != nil {
		return err
	}
	return m.indexes(list)
}

// decodeKeyV4 reads a key of version 4, which has no name and another kind of id: here it gets a new one, and so a new value.
func (m *importer) decodeKeyV4(line []byte) (*auth.Key, error) {
	var l struct {
		Description *string    `json:"description"`
		Actions     []string   `json:"actions"`
		Indexes     []string   `json:"indexes"`
		ExpiresAt   *time.Time `json:"expires_at"`
		CreatedAt   time.Time  `json:"created_at"`
		UpdatedAt   time.Time  `json:"updated_at"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	k := &auth.Key{
		UID: uuid.New(), Description: l.Description, Actions: l.Actions, Indexes: l.Indexes,
		ExpiresAt: timeOf(l.ExpiresAt), CreatedAt: l.CreatedAt, UpdatedAt: l.UpdatedAt,
	}
	m.Logger.Warn("a key of the dump gets a new uid, and so a new value", "key", k.UID, "description", textOf(k.Description))
	return k, nil
}

// listV5 lists the indexes of a dump of format V5. The format has no times, so the times of the first and the last task of an index
// replace them.
func (m *importer) listV5(first, last map[string]time.Time) ([]importedIndex, error) {
	byUUID := map[string]string{}
	for line := range strings.Lines(string(m.in.small[v5IndexesName])) {
		var l struct {
			UID  string `json:"uid"`
			Meta struct {
				UUID string `json:"uuid"`
			} `json:"index_meta"`
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			return nil, fmt.Errorf("%s: %w", v5IndexesName, err)
		}
		if other, ok := byUUID[l.Meta.UUID]; ok {
			return nil, fmt.Errorf("%s: the indexes %s and %s have the same UUID %s", v5IndexesName, other, l.UID, l.Meta.UUID)
		}
		byUUID[l.Meta.UUID] = l.UID
	}
	// Documents in other folders would be lost silently.
	for folder := range m.in.documents {
		if _, ok := byUUID[folder]; !ok {
			return nil, fmt.Errorf("%s does not have the index of %s/%s, or is missing", v5IndexesName, indexesDir, folder)
		}
	}
	var list []importedIndex
	for _, id := range slices.Sorted(maps.Keys(byUUID)) {
		uid := byUUID[id]
		name := path.Join(indexesDir, id, v5MetaName)
		raw := m.in.small[name]
		if raw == nil {
			return nil, fmt.Errorf("%s is missing", name)
		}
		var meta struct {
			Settings   json.RawMessage `json:"settings"`
			PrimaryKey *string         `json:"primary_key"`
		}
		if err := json.Unmarshal(raw, &meta); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, ok := m.in.documents[id]; !ok {
			return nil, fmt.Errorf("%s is missing", path.Join(indexesDir, id, documentsName))
		}
		read := func() ([]byte, error) { return m.knownRules(uid, meta.Settings), nil }
		x := importedIndex{id, uid, textOf(meta.PrimaryKey), first[uid], last[uid], read}
		if x.created.IsZero() {
			x.created = m.Now()
		}
		if x.updated.Before(x.created) {
			x.updated = x.created
		}
		list = append(list, x)
	}
	return list, nil
}

// knownRules drops old ranking rules that no longer exist.
func (m *importer) knownRules(uid string, raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	var rules []string
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members["rankingRules"], &rules) != nil {
		return raw // the reader of the settings reports the error
	}
	known := slices.DeleteFunc(rules, func(rule string) bool {
		_, ok := settings.ParseRankingRule(rule)
		if !ok {
			m.Logger.Warn("an unknown ranking rule of the dump is skipped", "index", uid, "rule", rule)
		}
		return !ok
	})
	b, err := encode(known)
	if err != nil {
		return raw
	}
	members["rankingRules"] = b
	if b, err = encode(members); err != nil {
		return raw
	}
	return b
}

// taskV5 is a task of version 5, or of version 4, where index_uid is beside content.
type taskV5 struct {
	ID       *uint32           `json:"id"`
	IndexUID *string           `json:"index_uid"`
	Content  json.RawMessage   `json:"content"`
	Events   []json.RawMessage `json:"events"`
}

// insideV5 has the members of all contents.
type insideV5 struct {
	IndexUID           *string         `json:"index_uid"`
	ContentUUID        string          `json:"content_uuid"`
	MergeStrategy      string          `json:"merge_strategy"`
	PrimaryKey         *string         `json:"primary_key"`
	DocumentsCount     int             `json:"documents_count"`
	AllowIndexCreation bool            `json:"allow_index_creation"`
	Deletion           json.RawMessage `json:"deletion"`
	Settings           json.RawMessage `json:"settings"`
	IsDeletion         bool            `json:"is_deletion"`
	UID                string          `json:"uid"`
}

// tasksV5 stores the tasks, and returns when each index had its first and its last one that ended.
func (m *importer) tasksV5() (first, last map[string]time.Time, err error) {
	first, last = map[string]time.Time{}, map[string]time.Time{}
	err = eachLine(m.FS, m.in.lines[v5TasksName], func(line []byte) error {
		var l taskV5
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if l.ID == nil {
			return errors.New("a task has no id")
		}
		t, file, err := l.task()
		if err != nil {
			return fmt.Errorf("task %d: %w", *l.ID, err)
		}
		if t == nil {
			m.Logger.Warn("a task of the dump has an obsolete type and is skipped", "task", *l.ID)
			return nil
		}
		if uid := t.IndexUID; uid != "" && t.Status == task.Succeeded {
			if at, ok := first[uid]; !ok || t.FinishedAt.Before(at) {
				first[uid] = t.FinishedAt
			}
			if t.FinishedAt.After(last[uid]) {
				last[uid] = t.FinishedAt
			}
		}
		return m.task(t, file)
	})
	return first, last, err
}

// task returns a task and the name of its payload, or nil if such tasks no longer exist.
func (l *taskV5) task() (*task.Task, string, error) {
	name, inside, err := variant(l.Content)
	if err != nil {
		return nil, "", fmt.Errorf("content: %w", err)
	}
	var x insideV5
	if len(inside) > 0 && inside[0] == '{' {
		if err := json.Unmarshal(inside, &x); err != nil {
			return nil, "", fmt.Errorf("content %s: %w", name, err)
		}
	}
	t := &task.Task{UID: *l.ID, IndexUID: textOf(x.IndexUID)}
	if l.IndexUID != nil {
		t.IndexUID = *l.IndexUID
	}
	switch name {
	case "DocumentAddition":
		t.Content = task.AddDocuments{
			Merge: x.MergeStrategy == updateDocuments, PrimaryKey: textOf(x.PrimaryKey),
			EmptyKey: x.PrimaryKey != nil && *x.PrimaryKey == "", Documents: max(x.DocumentsCount, 0), MayCreate: x.AllowIndexCreation,
		}
	case "DocumentDeletion":
		deletion := x.Deletion
		if deletion == nil {
			deletion = inside // version 4 has no member around it
		}
		kind, ids, err := variant(deletion)
		if err != nil {
			return nil, "", fmt.Errorf("content %s: %w", name, err)
		}
		if kind == "Clear" {
			t.Content = task.ClearDocuments{}
			break
		}
		d := task.DeleteDocuments{}
		if err := json.Unmarshal(ids, &d.IDs); err != nil {
			return nil, "", fmt.Errorf("content %s: %w", name, err)
		}
		d.Provided = len(d.IDs)
		t.Content = d
	case "SettingsUpdate":
		u, _, err := settings.UnmarshalForeign(x.Settings)
		if err != nil {
			return nil, "", fmt.Errorf("content %s: %w", name, err)
		}
		t.Content = task.UpdateSettings{Update: u, Reset: x.IsDeletion, MayCreate: x.AllowIndexCreation}
	case "IndexDeletion":
		t.Content = task.DeleteIndex{}
	case "IndexCreation":
		t.Content = task.CreateIndex{PrimaryKey: textOf(x.PrimaryKey)}
	case "IndexUpdate":
		t.Content = task.UpdateIndex{PrimaryKey: textOf(x.PrimaryKey)}
	case "Dump":
		t.Content, t.IndexUID = task.CreateDump{}, ""
	default:
		return nil, "", nil
	}
	t.Kind = t.Content.Kind()
	return t, x.ContentUUID, l.events(t, x.UID)
}

// events sets the status of a task from its list of events.
func (l *taskV5) events(t *task.Task, dumpUID string) error {
	var counts struct {
		Indexed *int `json:"indexed_documents"`
		Deleted *int `json:"deleted_documents"`
	}
	for _, raw := range l.Events {
		name, inside, err := variant(raw)
		if err != nil {
			return fmt.Errorf("events: %w", err)
		}
		var at struct {
			Timestamp *time.Time      `json:"timestamp"`
			Result    json.RawMessage `json:"result"`
			Error     *errorLine      `json:"error"`
		}
		var moment time.Time
		if err := json.Unmarshal(inside, &moment); err != nil { // Created and Processing are bare dates
			if err := json.Unmarshal(inside, &at); err != nil {
				return fmt.Errorf("events: %s: %w", name, err)
			}
			moment = timeOf(at.Timestamp)
		}
		switch name {
		case "Created":
			t.EnqueuedAt = moment
		case "Processing":
			t.StartedAt = moment
		case "Succeeded", "Succeded":
			t.Status, t.FinishedAt = task.Succeeded, moment
			if kind, result, err := variant(at.Result); err == nil && strings.HasPrefix(kind, "Document") && result != nil {
				_ = json.Unmarshal(result, &counts)
			}
		case "Failed":
			t.Status, t.FinishedAt = task.Failed, moment
			if at.Error != nil {
				t.Error = &apierr.Error{Code: apierr.Code(at.Error.Code), Message: at.Error.Message}
			}
		}
	}
	if t.EnqueuedAt.IsZero() {
		return errors.New("events: it was never created")
	}
	if _, ok := t.Content.(task.CreateDump); ok && !t.Status.Finished() && !t.StartedAt.IsZero() {
		t.Status, t.FinishedAt = task.Succeeded, t.StartedAt // the one that made this dump
	}
	if !t.Status.Finished() {
		t.StartedAt = time.Time{}
		return nil
	}
	if t.StartedAt.IsZero() {
		t.StartedAt = t.FinishedAt
	}
	return l.details(t, counts.Indexed, counts.Deleted, dumpUID)
}

// details makes those of a task that has ended.
func (l *taskV5) details(t *task.Task, indexed, deleted *int, dumpUID string) (err error) {
	if t.Status == task.Failed {
		zero := 0
		indexed, deleted = &zero, &zero
	}
	inside := map[string]any{}
	f := formOf(t.Content)
	switch c := t.Content.(type) {
	case task.AddDocuments:
		inside["received_documents"], inside["indexed_documents"] = c.Documents, indexed
	case task.DeleteDocuments:
		inside["provided_ids"], inside["deleted_documents"] = c.Provided, deleted
	case task.ClearDocuments, task.DeleteIndex:
		inside["deleted_documents"] = deleted
	case task.CreateIndex:
		inside["primary_key"] = textOrNil(c.PrimaryKey)
	case task.UpdateIndex:
		inside["primary_key"] = textOrNil(c.PrimaryKey)
	case task.CreateDump:
		inside["dump_uid"] = textOrNil(dumpUID)
	case task.UpdateSettings:
		t.Details, t.Content, err = decodeDetails(nil, c)
		return err
	}
	b, err := typed(f.name, inside)
	if err == nil {
		t.Details, t.Content, err = decodeDetails(b, t.Content)
	}
	return err
}
