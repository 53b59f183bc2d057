package dump

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/chat"
	"svc/internal/index"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/internal/webhook"
)

// dumpSteps are what the progress of a dump shows, in this order.
var dumpSteps = []string{
	"start the dump creation", "dump the api keys", "dump the chat completion settings", "dump the tasks", "dump the batches",
	"dump the indexes", "dump the experimental features", "dump the webhooks", "dump dynamic search rules", "compress the dump",
}

const documentsPerReport = 1000

// dumpUID names a dump by a moment, to the millisecond, in UTC.
func dumpUID(at time.Time) string {
	at = at.UTC()
	return at.Format("20060102-150405") + fmt.Sprintf("%03d", at.Nanosecond()/int(time.Millisecond))
}

// dump runs the one task of a dump batch.
func (m *Maker) dump(ctx context.Context, q *task.Queue, tasks []*task.Task, p index.Progress) ([]task.Outcome, error) {
	at := m.o.Now()
	uid := dumpUID(at)
	for {
		_, err := m.o.FS.Stat(m.dumpFile(uid))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot use the directory of dumps: %w", err)
		}
		at = at.Add(time.Millisecond)
		uid = dumpUID(at)
	}
	if err := m.workspace(); err != nil {
		return nil, err
	}
	err := m.publish(m.dumpFile(uid), 0, func(f vfs.File) error {
		a, err := newArchive(ctx, m.o.FS, f, path.Join(m.o.Place.Work, "spool"), gzip.DefaultCompression, at)
		if err != nil {
			return err
		}
		w := &dumpWriter{archive: a, m: m, q: q, task: tasks[0], at: at, progress: p}
		if err := w.write(); err != nil {
			return err
		}
		return a.close()
	})
	if e := m.o.FS.RemoveAll(m.o.Place.Work); err == nil {
		err = e
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create dump %s: %w", uid, err)
	}
	m.o.Logger.Info("dump made", "file", m.dumpFile(uid))
	return []task.Outcome{{Details: json.RawMessage(`{"dumpUid":"` + uid + `"}`)}}, nil
}

func (m *Maker) dumpFile(uid string) string { return path.Join(m.o.DumpDir, uid+".dump") }

// dumpWriter writes one dump.
type dumpWriter struct {
	*archive
	m        *Maker
	q        *task.Queue
	task     *task.Task // the dump's own
	at       time.Time
	progress index.Progress
}

func (w *dumpWriter) step(i int) {
	w.progress(0, index.Step{Name: dumpSteps[i], Finished: i, Total: len(dumpSteps)})
}

// write writes the entries of a dump, of one moment.
func (w *dumpWriter) write() error {
	frozen, err := w.m.o.Catalog.Freeze()
	if err != nil {
		return err
	}
	defer frozen.Release()
	kept, err := readKept(w.fs, w.m.o.Place.Kept)
	if err != nil {
		return err
	}
	w.step(0)
	if err := w.metadata(); err != nil {
		return err
	}
	w.step(1)
	if err := w.keys(); err != nil {
		return err
	}
	w.step(2)
	if err := w.chats(w.m.o.Chats.All()); err != nil {
		return err
	}
	if err := w.tasks(); err != nil {
		return err
	}
	w.step(5)
	if err := w.indexes(frozen); err != nil {
		return err
	}
	if err := w.aliases(frozen.Aliases()); err != nil {
		return err
	}
	w.step(6)
	if err := w.data(featuresName, w.m.o.Features()); err != nil {
		return err
	}
	if err := w.data(networkName, w.m.o.Network()); err != nil {
		return err
	}
	w.step(7)
	if err := w.webhooks(w.m.o.Webhooks.List()); err != nil {
		return err
	}
	w.step(8)
	if err := w.rules(kept, w.m.o.Rules()); err != nil {
		return err
	}
	w.step(9)
	return nil
}

type dumpMetadata struct {
	DumpVersion string    `json:"dumpVersion"`
	DBVersion   string    `json:"dbVersion"`
	DumpDate    time.Time `json:"dumpDate"`
	SvcVersion  string    `json:"svcVersion,omitempty"`
}

func (w *dumpWriter) metadata() error {
	b, err := encode(dumpMetadata{"V6", w.m.o.Version, w.at.UTC(), w.m.o.Program})
	if err != nil {
		return err
	}
	return w.data(metadataName, append(b, '\n'))
}

// keys writes those of the request, which the task carries.
func (w *dumpWriter) keys() error {
	var lines []json.RawMessage
	if c, ok := w.task.Content.(task.CreateDump); ok && c.Keys != nil {
		if err := json.Unmarshal(c.Keys, &lines); err != nil {
			return fmt.Errorf("cannot read the keys of task %d: %w", w.task.UID, err)
		}
	}
	var all []byte
	for _, l := range lines {
		all = append(append(all, l...), '\n')
	}
	return w.data(keysName, all)
}

// keyLine is an API key in keys.jsonl.
type keyLine struct {
	Description *string        `json:"description,omitempty"`
	Name        *string        `json:"name,omitempty"`
	UID         string         `json:"uid"`
	Actions     []string       `json:"actions"`
	Indexes     []string       `json:"indexes"`
	ExpiresAt   *time.Time     `json:"expires_at"`
	CreatedAt   time.Time      `json:"created_at"`
	UpdatedAt   time.Time      `json:"updated_at"`
	RateLimit   auth.RateLimit `json:"rate_limit,omitzero"` // of svc only
}

// EncodeKeys gives keys in the form of dumps, as an array: what a task.CreateDump carries.
func EncodeKeys(keys []*auth.Key) (json.RawMessage, error) {
	lines := make([]keyLine, len(keys))
	for i, k := range keys {
		lines[i] = keyLine{k.Description, k.Name, k.UID.String(), k.Actions, k.Indexes, nil, k.CreatedAt.UTC(), k.UpdatedAt.UTC(), k.RateLimit}
		if !k.ExpiresAt.IsZero() {
			lines[i].ExpiresAt = &keys[i].ExpiresAt
		}
	}
	return encode(lines)
}

// tasks writes tasks, the payloads of waiting tasks, and batches, all from one moment.
func (w *dumpWriter) tasks() error {
	w.step(3)
	batches := &spool{fs: w.fs, name: path.Join(w.m.o.Place.Work, "batches")}
	defer batches.discard()
	waiting := map[uint32]uint64{} // uid → checksum of the payload
	err := w.dir(tasksDir)
	if err == nil {
		err = w.lines(tasksName, func(out io.Writer) error {
			n := 0
			return w.q.Each(func(t *task.Task) error {
				if n++; n%documentsPerReport == 0 {
					if w.ctx.Err() != nil {
						return context.Cause(w.ctx)
					}
					w.progress(1, index.Step{Name: "task", Finished: n})
				}
				if t.UID == w.task.UID {
					t = endedAt(t, w.at)
				}
				if c, ok := t.Content.(task.AddDocuments); ok && !t.Status.Finished() && c.File != "" {
					waiting[t.UID] = c.Sum
				}
				line, err := encodeTask(t)
				if err == nil {
					_, err = out.Write(append(line, '\n'))
				}
				return err
			}, func(b *task.Batch) error {
				line, err := encodeBatch(b)
				if err == nil {
					_, err = batches.Write(append(line, '\n'))
				}
				return err
			})
		})
	}
	if err != nil {
		return err
	}
	if err := w.dir(payloadsDir); err != nil {
		return err
	}
	for i, uid := range slices.Sorted(maps.Keys(waiting)) {
		w.progress(1, index.Step{Name: "update file", Finished: i, Total: len(waiting)})
		if err := w.payload(uid, waiting[uid]); err != nil {
			return err
		}
	}
	w.step(4)
	if err := w.dir(path.Dir(batchesName)); err != nil {
		return err
	}
	if batches.file == nil {
		return w.data(batchesName, batches.memory.Bytes())
	}
	if err := batches.finish(); err != nil {
		return err
	}
	return w.file(batchesName, batches.name)
}

// endedAt returns a task as one that has succeeded: it must not run again where the dump is imported.
func endedAt(t *task.Task, at time.Time) *task.Task {
	own := *t
	own.Status, own.BatchUID = task.Succeeded, nil
	own.StartedAt, own.FinishedAt = at.UTC(), at.UTC()
	return &own
}

// payload writes the documents of an enqueued task, and compares them with the checksum in the task.
func (w *dumpWriter) payload(uid uint32, sum uint64) error {
	from, err := w.q.Documents(uid)
	if err != nil {
		return fmt.Errorf("cannot dump the documents of task %d: %w", uid, err)
	}
	defer from.Close()
	f, ok := from.(vfs.File)
	if !ok {
		return fmt.Errorf("cannot dump the documents of task %d: no file", uid)
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot dump the documents of task %d: %w", uid, err)
	}
	name := payloadsDir + "/" + strconv.FormatUint(uint64(uid), 10) + ".jsonl"
	return w.stream(name, info.Size(), func(out io.Writer) error {
		digest := xxhash.New()
		if _, err := io.CopyN(io.MultiWriter(out, digest), f, info.Size()); err != nil {
			return err
		}
		if sum != 0 && digest.Sum64() != sum {
			return fmt.Errorf("cannot dump the documents of task %d: %w", uid, &apierr.Corruption{File: f.Name(), Offset: -1, Reason: "the checksum does not match the payload. Cancel the task, and send the documents again"})
		}
		return nil
	})
}

type indexMetadata struct {
	UID        string    `json:"uid"`
	PrimaryKey *string   `json:"primaryKey"`
	CreatedAt  time.Time `json:"createdAt"`
	UpdatedAt  time.Time `json:"updatedAt"`
}

func (w *dumpWriter) indexes(frozen *index.Frozen) error {
	if err := w.dir(indexesDir); err != nil {
		return err
	}
	outlines := frozen.Outlines()
	for i, o := range outlines {
		w.progress(1, index.Step{Name: o.UID, Finished: i, Total: len(outlines)})
		v, err := frozen.View(i)
		if err == nil {
			err = w.index(v)
		}
		if err != nil {
			return fmt.Errorf("index %s: %w", o.UID, err)
		}
		frozen.Done(i)
	}
	return nil
}

// index verifies the checksums of an index, and writes its settings and documents.
func (w *dumpWriter) index(v *index.View) error {
	if err := v.CheckSums(w.ctx); err != nil {
		return err
	}
	dir := indexesDir + "/" + v.UID
	b, err := encode(indexMetadata{v.UID, textOrNil(v.PrimaryKey), v.CreatedAt.UTC(), v.UpdatedAt.UTC()})
	if err != nil {
		return err
	}
	if err := w.dir(dir); err != nil {
		return err
	}
	if err := w.data(dir+"/"+metadataName, b); err != nil {
		return err
	}
	if err := w.data(dir+"/"+settingsName, v.Settings.Full()); err != nil {
		return err
	}
	return w.lines(dir+"/"+documentsName, func(out io.Writer) error {
		n := 0
		return eachDocument(v, nil, func(doc []byte) error {
			if n%documentsPerReport == 0 {
				if w.ctx.Err() != nil {
					return context.Cause(w.ctx)
				}
				w.progress(2, index.Step{Name: "document", Finished: n, Total: v.Documents()})
			}
			n++
			_, err := out.Write(append(doc, '\n'))
			return err
		})
	})
}

// aliases writes the uid behind each alias.
func (a *archive) aliases(all map[string]string) error {
	if len(all) == 0 {
		return nil
	}
	b, err := encode(all)
	if err != nil {
		return err
	}
	return a.data(aliasesName, b)
}

// dumpedWebhooks is the content of webhooks.json, which lacks the webhook of the command line.
type dumpedWebhooks struct {
	Webhooks map[string]dumpedWebhook `json:"webhooks"`
}

type dumpedWebhook struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// webhooks writes the webhooks that the API can change. The others are options of the command line.
func (a *archive) webhooks(list []*webhook.Webhook) error {
	d := dumpedWebhooks{map[string]dumpedWebhook{}}
	for _, h := range list {
		if h.Editable() {
			d.Webhooks[h.UUID.String()] = dumpedWebhook{h.URL, h.Headers}
		}
	}
	b, err := encode(d)
	if err != nil {
		return err
	}
	return a.data(webhooksName, b)
}

// chats writes the chat workspaces.
func (a *archive) chats(all map[string]*chat.Settings) error {
	if len(all) == 0 {
		return nil
	}
	if err := a.dir(chatDir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b, err := encode(all[name].Full())
		if err == nil {
			err = a.data(chatDir+"/"+chat.FileOf(name), b)
		}
		if err != nil {
			return fmt.Errorf("chat workspace %q: %w", name, err)
		}
	}
	return nil
}

// rules writes the search rules. Their names must differ from those in kept, which have no effect here.
func (a *archive) rules(kept map[string][]byte, rules [][]byte) error {
	n := 0
	for _, b := range rules {
		name := func() string { return path.Join(rulesDir, fmt.Sprintf("%09d.json", n)) }
		for kept[name()] != nil {
			n++
		}
		kept[name()] = b
	}
	return a.kept(kept, rulesDir)
}

// kept writes the kept entries of a directory.
func (a *archive) kept(all map[string][]byte, dir string) error {
	first := true
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if path.Dir(name) != dir {
			continue
		}
		if first {
			first = false
			if err := a.dir(dir); err != nil {
				return err
			}
		}
		if err := a.data(name, all[name]); err != nil {
			return err
		}
	}
	return nil
}

// readKept returns what an import kept, by name in the dump.
func readKept(fsys vfs.FS, dir string) (map[string][]byte, error) {
	kept := map[string][]byte{}
	for _, sub := range []string{".", rulesDir} {
		names, err := fsys.List(path.Join(dir, sub))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list what was kept of a dump: %w", err)
		}
		for _, name := range names {
			name = path.Join(sub, name)
			if !keeps(name) {
				continue
			}
			b, err := vfs.ReadFile(fsys, path.Join(dir, name))
			if err != nil {
				return nil, fmt.Errorf("cannot read what was kept of a dump: %w", err)
			}
			kept[name] = b
		}
	}
	return kept, nil
}
