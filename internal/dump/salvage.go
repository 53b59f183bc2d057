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
	"svc/internal/mapped"
	"svc/internal/sealedjson"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/internal/webhook"
	"svc/segment"
)

// SalvageOptions say what to read, and where to write the dump.
type SalvageOptions struct {
	FS      vfs.FS
	Place   Place  // not open elsewhere; only read
	File    string // must not be there yet
	Version string // of the API
	Program string // svc's own version
	Now     func() time.Time
	Rules   func() ([][]byte, error) // as Options.Rules
	Tell    func(*Missing)           // is called with all that the dump lacks
	Mended  func(*apierr.Corruption) // is called with the places where one wrong bit was turned back
}

// Missing is a part that a dump lacks because it is unreadable.
type Missing struct {
	Index     string // "": of none
	What      string // "" when the damage says it
	Damage    *apierr.Corruption
	Documents []string // ids of documents that are lost with it, "row N" where that cannot be read either; nil: none, or not known
}

func (m *Missing) Error() string {
	text := m.Damage.Error()
	if m.What != "" {
		text = m.What + ": " + text
	}
	if m.Index != "" {
		text = "index " + m.Index + ": " + text
	}
	return text
}

// SalvageReport counts what came out.
type SalvageReport struct {
	Indexes, Documents, Keys, Tasks int
	LostDocuments                   int // among those that are known
	Places                          int // calls of Tell
	Mended                          int // calls of Mended
}

// Salvage writes a dump of everything readable in a data directory that may be damaged anywhere. The error is one of writing the
// dump.
func Salvage(ctx context.Context, o SalvageOptions) (report *SalvageReport, err error) {
	if _, err := o.FS.Stat(o.File); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("%s already exists: name another file", o.File), err)
	}
	part := o.File + ".part"
	f, err := o.FS.Create(part)
	if err != nil {
		return nil, fmt.Errorf("cannot create %s: %w", part, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cannot create %s: %w", o.File, err), o.FS.Remove(part))
		}
	}()
	a, err := newArchive(ctx, o.FS, f, o.File+".spool", gzip.DefaultCompression, o.Now())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s := &salvager{archive: a, o: &o}
	if err = s.write(); err == nil {
		err = a.close()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	_, err = vfs.Move(o.FS, part, o.File)
	return &s.report, err
}

// salvager writes the dump.
type salvager struct {
	*archive
	o       *SalvageOptions
	report  SalvageReport
	catalog *index.SalvagedCatalog
}

func (s *salvager) tell(m *Missing) {
	s.report.Places++
	s.report.LostDocuments += len(m.Documents)
	s.o.Tell(m)
}

func (s *salvager) tellAll(what string, lost []*apierr.Corruption) {
	for _, damage := range lost {
		s.tell(&Missing{What: what, Damage: damage})
	}
}

func (s *salvager) mended(all []*apierr.Corruption) {
	for _, damage := range all {
		s.report.Mended++
		s.o.Mended(damage)
	}
}

// tellFile reports an error of reading a file, except a missing one. It returns whether the file exists.
func (s *salvager) tellFile(what, name string, err error) bool {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.tell(&Missing{What: what, Damage: damageOf(name, err)})
	}
	return err != nil
}

// damageOf gives an error of reading a file as damage.
func damageOf(name string, err error) *apierr.Corruption {
	var damage *apierr.Corruption
	if errors.As(err, &damage) {
		return damage
	}
	return &apierr.Corruption{File: name, Offset: -1, Reason: err.Error()}
}

// write writes a dump of what can be read, part by part. A part that is damaged as a whole does not end it.
func (s *salvager) write() error {
	b, err := encode(dumpMetadata{"V6", s.o.Version, s.now.UTC(), s.o.Program})
	if err == nil {
		err = s.data(metadataName, append(b, '\n'))
	}
	if err == nil {
		s.catalog, err = index.SalvageCatalog(s.fs, s.o.Place.Indexes)
	}
	for _, step := range []func() error{s.keys, s.tasks, s.indexes, s.small} {
		if err == nil {
			err = step()
		}
	}
	return err
}

func (s *salvager) keys() error {
	keys, lost, err := auth.Salvage(s.o.Place.Keys)
	if errors.Is(err, fs.ErrNotExist) {
		lost = []*apierr.Corruption{damageOf(s.o.Place.Keys, errors.New("it is missing"))}
	} else if err != nil {
		lost = append(lost, damageOf(s.o.Place.Keys, err))
	}
	s.tellAll("API keys", lost)
	s.report.Keys = len(keys)
	encoded, err := EncodeKeys(keys)
	if err != nil {
		return err
	}
	var lines []json.RawMessage
	if err := json.Unmarshal(encoded, &lines); err != nil {
		return err
	}
	var all []byte
	for _, l := range lines {
		all = append(append(all, l...), '\n')
	}
	return s.data(keysName, all)
}

// tasks writes tasks, payloads and batches. It omits a task whose documents are lost. If svc ended after a task had changed an index, and
// before it stored the end of the task, the task must not run again.
func (s *salvager) tasks() error {
	q, err := task.Salvage(s.o.Place.Tasks)
	if err != nil {
		return err
	}
	defer q.Close()
	waiting := map[uint32]task.AddDocuments{}
	if err := s.dir(tasksDir); err != nil {
		return err
	}
	changed := q.Changed(s.catalog.Steps)
	err = s.lines(tasksName, func(out io.Writer) error {
		return q.Tasks(func(t *task.Task) error {
			if at, ok := changed[t.UID]; ok && !t.Status.Finished() {
				s.tell(&Missing{What: fmt.Sprintf("how task %d ended", t.UID),
					Damage: damageOf(s.o.Place.Tasks, errors.New("svc ended before it stored that. The changes of the task are in the dump, which calls it succeeded"))})
				t = endedAt(t, at)
			}
			if c, ok := t.Content.(task.AddDocuments); ok && !t.Status.Finished() && c.File != "" {
				if err := s.checkPayload(q.PayloadFile(c), c.Sum); err != nil {
					s.tell(&Missing{What: fmt.Sprintf("task %d, with its documents", t.UID), Damage: damageOf(q.PayloadFile(c), err)})
					return nil
				}
				waiting[t.UID] = c
			}
			line, err := encodeTask(t)
			if err != nil {
				return err
			}
			s.report.Tasks++
			_, err = out.Write(append(line, '\n'))
			return err
		})
	})
	if err != nil {
		return err
	}
	if err := s.dir(payloadsDir); err != nil {
		return err
	}
	for _, uid := range slices.Sorted(maps.Keys(waiting)) {
		if err := s.file(payloadsDir+"/"+strconv.FormatUint(uint64(uid), 10)+".jsonl", q.PayloadFile(waiting[uid])); err != nil {
			return err
		}
	}
	err = s.dir(path.Dir(batchesName))
	if err == nil {
		err = s.lines(batchesName, func(out io.Writer) error {
			return q.Batches(func(b *task.Batch) error {
				line, err := encodeBatch(b)
				if err == nil {
					_, err = out.Write(append(line, '\n'))
				}
				return err
			})
		})
	}
	s.tellAll("tasks", q.Lost())
	return err
}

// checkPayload reads a payload and compares it with its checksum; 0: none.
func (s *salvager) checkPayload(name string, sum uint64) error {
	f, err := s.fs.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	digest := xxhash.New()
	if _, err := io.Copy(digest, f); err != nil {
		return err
	}
	if sum != 0 && digest.Sum64() != sum {
		return &apierr.Corruption{File: name, Offset: -1, Reason: "the checksum does not match the payload"}
	}
	return nil
}

// indexes writes each index that the catalog names. If the catalog is damaged, it writes each index whose directory exists.
func (s *salvager) indexes() error {
	c := s.catalog
	s.mended(c.Mended)
	s.tellAll("", c.Lost)
	if err := s.dir(indexesDir); err != nil {
		return err
	}
	written := map[string]bool{}
	for _, uid := range slices.Sorted(maps.Keys(c.Directories)) {
		x, err := index.Salvage(s.fs, c.Directories[uid], uid)
		if err != nil {
			s.tell(&Missing{Index: uid, Damage: damageOf(c.Directories[uid], err)})
			continue
		}
		err = errors.Join(s.index(x), x.Close())
		if err != nil {
			return fmt.Errorf("index %s: %w", uid, err)
		}
		s.report.Indexes++
		written[uid] = true
	}
	// An import refuses an alias without its index.
	for _, alias := range slices.Sorted(maps.Keys(c.Aliases)) {
		if uid := c.Aliases[alias]; !written[uid] {
			s.tell(&Missing{Index: uid, What: "alias " + alias, Damage: damageOf(s.o.Place.Indexes, errors.New("its index is not in the dump"))})
			delete(c.Aliases, alias)
		}
	}
	return s.aliases(c.Aliases)
}

// index writes the readable settings and documents of an index.
func (s *salvager) index(x *index.Salvaged) error {
	for _, damage := range x.Lost {
		s.tell(&Missing{Index: x.UID, Damage: damage})
	}
	s.mended(x.Mended)
	v := x.View
	created, updated := v.CreatedAt, v.UpdatedAt
	if created.IsZero() {
		created, updated = s.now, s.now
	}
	dir := indexesDir + "/" + x.UID
	b, err := encode(indexMetadata{x.UID, textOrNil(v.PrimaryKey), created.UTC(), updated.UTC()})
	if err == nil {
		err = s.dir(dir)
	}
	if err == nil {
		err = s.data(dir+"/"+metadataName, b)
	}
	if err == nil {
		err = s.data(dir+"/"+settingsName, v.Settings.Full())
	}
	if err != nil {
		return err
	}
	return s.lines(dir+"/"+documentsName, func(out io.Writer) error { return s.documents(x, out) })
}

// documents writes a line for each readable document. It reports the others, grouped by place.
func (s *salvager) documents(x *index.Salvaged, out io.Writer) error {
	var places []*Missing
	known := map[string]*Missing{}
	miss := func(what string, seg int, row segment.Row, err error) {
		damage := damageOf(x.Segments[seg].Name(), err)
		key := fmt.Sprint(what, damage.File, damage.Section, damage.Offset)
		m := known[key]
		if m == nil {
			m = &Missing{Index: x.UID, What: what, Damage: damage}
			known[key] = m
			places = append(places, m)
		}
		if what == "" {
			m.Documents = append(m.Documents, idOf(x.Segments[seg], row))
		}
	}
	e := s.embeddings(x, miss)
	var stored []byte
	err := x.EachDocument(func(seg int, row segment.Row) error {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		err := readSalvaged(x.Segments[seg], row, &stored)
		if err != nil {
			miss("", seg, row, err)
			return nil
		}
		doc := stored
		err = mapped.Guard(func() error {
			with, err := e.add(stored, seg, row)
			if err == nil {
				doc = with
			}
			return err
		})
		if err != nil {
			miss("vectors of documents", seg, row, err)
		}
		s.report.Documents++
		_, err = out.Write(append(doc, '\n'))
		return err
	})
	for _, r := range x.Segments {
		s.mended(r.Mended)
	}
	for _, m := range places {
		s.tell(m)
	}
	return err
}

// embeddings returns the readable embedders of an index, with their vectors.
func (s *salvager) embeddings(x *index.Salvaged, miss func(what string, seg int, row segment.Row, err error)) *embeddings {
	e := &embeddings{embedders: x.View.Embedders()}
	for seg, r := range x.Segments {
		list := make([]index.Entries, len(e.embedders))
		for i, embedder := range e.embedders {
			err := mapped.Guard(func() error { list[i] = embedder.EntriesOf(r.Vectors); return nil })
			if err != nil {
				miss("vectors of embedder "+embedder.Name, seg, 0, err)
			}
		}
		e.readers = append(e.readers, list)
	}
	return e
}

// readSalvaged reads a document into *doc.
func readSalvaged(r *segment.Salvaged, row segment.Row, doc *[]byte) error {
	return mapped.Guard(func() (err error) {
		*doc, err = r.AppendDocument((*doc)[:0], row)
		if err == nil && r.Unverified && !json.Valid(*doc) {
			err = &apierr.Corruption{File: r.Name(), Section: "docs", Offset: -1, Reason: fmt.Sprintf("row %d does not decode to JSON", row)}
		}
		return err
	})
}

// idOf returns the id of a document that is lost.
func idOf(r *segment.Salvaged, row segment.Row) (id string) {
	if err := mapped.Guard(func() error { id = string(r.ExternalID(row)); return nil }); err != nil || id == "" {
		return fmt.Sprint("row ", row)
	}
	return id
}

// SalvageDocuments writes the documents of one segment file, a line each, and reports those that it cannot read. Deleted rows are
// included: only the manifest beside the file lists them.
func SalvageDocuments(fsys vfs.FS, name string, out io.Writer, tell func(*Missing), mended func(*apierr.Corruption)) (*SalvageReport, error) {
	r, err := segment.Salvage(fsys, name)
	if err != nil {
		return nil, err
	}
	s := &salvager{archive: &archive{ctx: context.Background(), fs: fsys}, o: &SalvageOptions{Tell: tell, Mended: mended}}
	for _, damage := range r.Lost {
		s.tell(&Missing{Damage: damage})
	}
	if r.Unverified {
		s.tell(&Missing{Damage: &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("the checksums of its %d documents, which are decoded without verification", r.Rows())}})
	}
	err = s.documents(index.SalvagedSegment(r), out)
	return &s.report, errors.Join(err, r.Close())
}

// small writes what has small files of its own.
func (s *salvager) small() error {
	place := s.o.Place
	if b, err := sealedjson.Read(s.fs, place.Features, FeaturesVersion); !s.tellFile("experimental features", place.Features, err) {
		if err := s.data(featuresName, b); err != nil {
			return err
		}
	}
	var network struct{ Network json.RawMessage }
	b, err := sealedjson.Read(s.fs, place.Network, NetworkVersion)
	if err == nil {
		err = json.Unmarshal(b, &network)
	}
	if !s.tellFile("network", place.Network, err) && network.Network != nil {
		if err := s.data(networkName, network.Network); err != nil {
			return err
		}
	}
	if hooks, err := webhook.Open(s.fs, place.Webhooks, nil); !s.tellFile("webhooks", place.Webhooks, err) {
		if err := s.webhooks(hooks.List()); err != nil {
			return err
		}
	}
	if chats, err := chat.Open(s.fs, place.Chats); !s.tellFile("chat workspaces", place.Chats, err) {
		if err := s.chats(chats.All()); err != nil {
			return err
		}
	}
	kept, err := readKept(s.fs, place.Kept)
	s.tellFile("unknown entries of an imported dump", place.Kept, err)
	rules, err := s.o.Rules()
	s.tellFile("search rules", place.Rules, err)
	return s.rules(kept, rules)
}
