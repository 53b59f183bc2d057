package dump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/google/uuid"

	"svc/internal/auth"
	"svc/internal/chat"
	"svc/internal/index"
	"svc/internal/sealedjson"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/internal/webhook"
)

// ImportOptions say what to import, and where to.
type ImportOptions struct {
	FS     vfs.FS
	Place  Place // of a directory that holds nothing yet
	File   string
	Index  index.Options
	Logger *slog.Logger
	Now    func() time.Time
}

// Import fills an empty data directory with a dump. Everything is durable when it returns nil; after an error the
// directory is of no use. ctx cuts it off.
func Import(ctx context.Context, o ImportOptions) error {
	if err := (&importer{ImportOptions: o, ctx: ctx}).run(); err != nil {
		return fmt.Errorf("cannot import the dump %s: %w", o.File, err)
	}
	return nil
}

// importer is one import on its way.
type importer struct {
	ImportOptions
	ctx   context.Context
	queue *task.Restore
	in    *unpacked
}

// run unpacks the archive below Place.Work, applies its content, and stores the queue last.
func (m *importer) run() (err error) {
	file, err := m.FS.Open(m.File)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := m.FS.MkdirAll(m.Place.Work); err != nil {
		return err
	}
	defer func() {
		if e := m.FS.RemoveAll(m.Place.Work); err == nil {
			err = e
		}
	}()
	if m.queue, err = task.NewRestore(m.FS, m.Place.Tasks); err != nil {
		return err
	}
	queue := true
	defer func() {
		if queue {
			m.queue.Close()
		}
	}()
	u := newUnpacker(m.FS, m.Place.Work, func() (payloadSink, error) { return m.queue.NewPayload() })
	defer func() {
		for _, p := range u.out.payloads { // that no task took
			p.sink.Discard()
		}
	}()
	if err := openArchive(m.ctx, file, u.entry); err != nil {
		return err
	}
	m.in = &u.out
	for _, name := range m.in.strange {
		m.Logger.Warn("an entry of the dump is unknown and is skipped", "entry", name)
	}
	if err := m.apply(); err != nil {
		return err
	}
	queue = false
	if err := m.queue.Close(); err != nil {
		return fmt.Errorf("cannot store the tasks: %w", err)
	}
	return nil
}

// apply stores the unpacked content.
func (m *importer) apply() error {
	raw := m.in.small[metadataName]
	if raw == nil {
		return errors.New("it has no metadata.json: it is not a dump, or only a part of one")
	}
	var meta struct {
		DumpVersion string `json:"dumpVersion"`
		DBVersion   string `json:"dbVersion"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return fmt.Errorf("metadata.json: %w", err)
	}
	m.Logger.Info("importing a dump", "file", m.File, "version", meta.DumpVersion, "from", meta.DBVersion)
	switch meta.DumpVersion {
	case "V6":
		return m.applyV6()
	case "V5", "V4":
		return m.applyV5(meta.DumpVersion)
	case "V1", "V2", "V3":
		return fmt.Errorf("it has version %s of the format, and this svc reads V4 to V6. Import it into an engine that reads both, and dump it again there", meta.DumpVersion)
	}
	return fmt.Errorf("it has version %q of the format, and this svc reads V4 to V6", meta.DumpVersion)
}

// applyV6 applies a dump of format V6. It checks for entries that every complete dump has.
func (m *importer) applyV6() error {
	if m.in.lines[tasksName] == "" {
		return errors.New("it has no tasks/queue.jsonl: it is only a part of a dump")
	}
	if m.in.small[keysName] == nil {
		return errors.New("it has no keys.jsonl: it is only a part of a dump")
	}
	if err := m.webhooks(); err != nil {
		return fmt.Errorf("webhooks.json: %w", err)
	}
	if err := m.keys(m.in.small[keysName], decodeKey); err != nil {
		return fmt.Errorf("keys.jsonl: %w", err)
	}
	if err := m.features(); err != nil {
		return fmt.Errorf("experimental-features.json: %w", err)
	}
	if err := m.network(); err != nil {
		return fmt.Errorf("network.json: %w", err)
	}
	if err := m.chats(); err != nil {
		return err
	}
	if err := m.keep(); err != nil {
		return err
	}
	list, err := m.listV6()
	if err != nil {
		return err
	}
	if err := m.indexes(list); err != nil {
		return err
	}
	return m.tasks()
}

func (m *importer) webhooks() error {
	raw := m.in.small[webhooksName]
	if raw == nil {
		return nil
	}
	var d dumpedWebhooks
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	var list []*webhook.Webhook
	for _, text := range slices.Sorted(maps.Keys(d.Webhooks)) {
		id, err := uuid.Parse(text)
		if err != nil {
			return fmt.Errorf("%q is not a UUID", text)
		}
		h := d.Webhooks[text]
		if h.Headers == nil {
			h.Headers = map[string]string{}
		}
		list = append(list, &webhook.Webhook{UUID: id, URL: h.URL, Headers: h.Headers})
	}
	s, err := webhook.Open(m.FS, m.Place.Webhooks, nil)
	if err != nil {
		return err
	}
	return s.Restore(list)
}

// keys stores the keys of lines, which decode reads.
func (m *importer) keys(lines []byte, decode func([]byte) (*auth.Key, error)) (err error) {
	var keys []*auth.Key
	seen := map[uuid.UUID]bool{}
	for n, line := range bytes.Split(lines, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		k, err := decode(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		if seen[k.UID] {
			return fmt.Errorf("line %d: there are two keys %s", n+1, k.UID)
		}
		seen[k.UID] = true
		known := k.Actions[:0]
		for _, a := range k.Actions {
			if auth.CheckAction(a) != nil {
				m.Logger.Warn("a key of the dump loses an unknown action", "key", k.UID, "action", a)
				continue
			}
			known = append(known, a)
		}
		k.Actions = known
		keys = append(keys, k)
	}
	store, err := auth.Open(auth.Options{File: m.Place.Keys, Now: m.Now})
	if err != nil {
		return err
	}
	return errors.Join(store.Replace(keys), store.Close())
}

func decodeKey(line []byte) (*auth.Key, error) {
	var l keyLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	id, err := uuid.Parse(l.UID)
	if err != nil {
		return nil, fmt.Errorf("%q is not a UUID", l.UID)
	}
	if err := l.RateLimit.Check(); err != nil {
		return nil, err
	}
	return &auth.Key{
		UID: id, Name: l.Name, Description: l.Description, Actions: l.Actions, Indexes: l.Indexes, RateLimit: l.RateLimit,
		ExpiresAt: timeOf(l.ExpiresAt), CreatedAt: l.CreatedAt, UpdatedAt: l.UpdatedAt,
	}, nil
}

// features stores the flags; those that are not known here are passed over when they are read.
func (m *importer) features() error {
	raw := m.in.small[featuresName]
	if raw == nil {
		return nil
	}
	var flags map[string]any
	if err := json.Unmarshal(raw, &flags); err != nil {
		return err
	}
	maps.DeleteFunc(flags, func(_ string, v any) bool { _, ok := v.(bool); return !ok })
	b, err := encode(flags)
	if err != nil {
		return err
	}
	return sealedjson.Write(m.FS, m.Place.Features, FeaturesVersion, b)
}

// network stores the instances and the shards of the dump. It does not know which of them the new instance is.
func (m *importer) network() error {
	raw := m.in.small[networkName]
	if raw == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	if object == nil { // as others write that there is no network
		return nil
	}
	object["self"], object["leader"] = null, null
	b, err := encode(map[string]any{"network": object})
	if err != nil {
		return err
	}
	return sealedjson.Write(m.FS, m.Place.Network, NetworkVersion, b)
}

// chats stores the chat workspaces.
func (m *importer) chats() error {
	all := map[string]*chat.Settings{}
	for _, entry := range slices.Sorted(maps.Keys(m.in.small)) {
		if !isChat(entry) {
			continue
		}
		name, ok := chat.WorkspaceOf(path.Base(entry))
		if !ok {
			return fmt.Errorf("%s: this is not a name of a chat workspace", entry)
		}
		w, err := chat.Parse(m.in.small[entry])
		if err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		all[name] = w
	}
	if len(all) == 0 {
		return nil
	}
	s, err := chat.Open(m.FS, m.Place.Chats)
	if err != nil {
		return err
	}
	return s.Restore(all)
}

// store writes a file durably.
func (m *importer) store(name string, b []byte) error {
	_, err := vfs.Replace(m.FS, name, b)
	return err
}

// keep stores the entries of features that svc does not have yet, so that its own dumps contain them, and those that other packages
// adopt later.
func (m *importer) keep() error {
	for _, name := range slices.Sorted(maps.Keys(m.in.small)) {
		if !keeps(name) {
			continue
		}
		b := m.in.small[name]
		var object map[string]json.RawMessage
		if err := json.Unmarshal(b, &object); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		to := path.Join(m.Place.Kept, name)
		err := m.FS.MkdirAll(path.Dir(to))
		if err == nil {
			err = m.store(to, b)
		}
		if err == nil {
			err = m.FS.SyncDir(m.Place.Kept)
		}
		if err != nil {
			return fmt.Errorf("cannot keep %s: %w", name, err)
		}
		if path.Dir(name) != rulesDir { // which are taken in when they are opened
			m.Logger.Warn("an entry of the dump has no effect yet; svc keeps it and adds it to the next dump", "entry", name)
		}
	}
	return nil
}

// tasks stores tasks and then the batches that they name.
func (m *importer) tasks() error {
	batches := map[uint32]bool{}
	last := int64(-1)
	eachBatch := func(f func(*task.Batch) error) error {
		if m.in.lines[batchesName] == "" {
			return nil
		}
		return eachLine(m.FS, m.in.lines[batchesName], func(line []byte) error {
			b, err := decodeBatch(line)
			if err != nil || b == nil {
				return err
			}
			return f(b)
		})
	}
	err := eachBatch(func(b *task.Batch) error {
		if batches[b.UID] {
			return fmt.Errorf("there are two batches %d", b.UID)
		}
		batches[b.UID] = true
		last = max(last, int64(b.UID))
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", batchesName, err)
	}
	err = eachLine(m.FS, m.in.lines[tasksName], func(line []byte) error {
		t, err := decodeTask(line)
		if err != nil {
			return err
		}
		if t.BatchUID != nil && int64(*t.BatchUID) > last {
			t.BatchUID = nil // the uid will be another batch's
		}
		return m.task(t, fmt.Sprint(t.UID))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", tasksName, err)
	}
	if err := eachBatch(m.queue.Batch); err != nil {
		return fmt.Errorf("%s: %w", batchesName, err)
	}
	return nil
}

// task stores a task with the payload of that name, if it needs one.
func (m *importer) task(t *task.Task, name string) error {
	c, adds := t.Content.(task.AddDocuments)
	if !adds || t.Status.Finished() || c.Documents == 0 {
		return m.queue.Task(t, nil)
	}
	p := m.in.payloads[name]
	if p == nil {
		return fmt.Errorf("the documents of the enqueued task %d are missing", t.UID)
	}
	if p.count != c.Documents {
		return fmt.Errorf("the enqueued task %d has %d documents, but %d are there", t.UID, c.Documents, p.count)
	}
	delete(m.in.payloads, name)
	return m.queue.Task(t, p.sink.(*task.Payload))
}
