package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"svc/internal/boltfile"
	"svc/internal/index"
	"svc/internal/task"
	"svc/internal/vfs"
)

// A snapshot is a gzipped tar of a data directory as it would be after a stop: VERSION first, then the files under their names. It is
// consistent because no batch ends while it is made, segments do not change, and the segments that a compaction replaces meanwhile
// keep their files as long as the frozen views are held. Hard links would have the same effect, but views work on any file system and
// need no cleanup.

// snapshotSteps are what the progress of a snapshot shows, in this order.
var snapshotSteps = []string{
	"start the snapshot creation", "snapshot the index scheduler", "snapshot the update files", "snapshot the indexes",
	"snapshot the api keys", "create the tarball",
}

// snapshotMode is the mode of a finished snapshot, which is written once and contains secrets.
const snapshotMode = 0o400

// VersionFile is the first entry of a snapshot, and identifies a directory as a data directory.
const VersionFile = "VERSION"

// snapshot runs all waiting snapshot tasks: they are one snapshot.
func (m *Maker) snapshot(ctx context.Context, q *task.Queue, tasks []*task.Task, p index.Progress) ([]task.Outcome, error) {
	if err := m.workspace(); err != nil {
		return nil, err
	}
	write := func(w io.Writer, level int) error {
		a, err := newArchive(ctx, m.o.FS, w, "", level, m.o.Now())
		if err != nil {
			return err
		}
		s := &snapshotWriter{archive: a, m: m, q: q, tasks: tasks, progress: p}
		if err := s.write(); err != nil {
			return err
		}
		return a.close()
	}
	var where string
	var err error
	if b := m.o.Bucket; b != nil {
		where = b.object(path.Base(m.o.SnapshotFile))
		err = b.upload(ctx, m, where, func(w io.Writer) error { return write(w, b.CompressionLevel) })
	} else {
		where = m.o.SnapshotFile
		err = m.publish(where, snapshotMode, func(f vfs.File) error { return write(f, gzip.DefaultCompression) })
	}
	if e := m.o.FS.RemoveAll(m.o.Place.Work); err == nil {
		err = e
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create a snapshot: %w", err)
	}
	m.o.Logger.Info("snapshot made", "to", where)
	return make([]task.Outcome, len(tasks)), nil
}

// snapshotWriter writes one snapshot.
type snapshotWriter struct {
	*archive
	m        *Maker
	q        *task.Queue
	tasks    []*task.Task // the snapshot's own, which are not in it
	progress index.Progress
}

func (w *snapshotWriter) step(i int) {
	w.progress(0, index.Step{Name: snapshotSteps[i], Finished: i, Total: len(snapshotSteps)})
}

// write writes VERSION, the queue, payloads, indexes, keys and the sealed files, all from one moment.
func (w *snapshotWriter) write() error {
	w.step(0)
	frozen, err := w.m.o.Catalog.Freeze()
	if err != nil {
		return err
	}
	defer frozen.Release()
	if err := w.data(VersionFile, w.m.o.SnapshotVersion); err != nil {
		return err
	}
	if err := w.queue(); err != nil {
		return err
	}
	w.step(3)
	if err := w.indexes(frozen); err != nil {
		return err
	}
	w.step(4)
	keys := path.Base(w.m.o.Place.Keys)
	err = w.m.o.Keys.Copy(func(size int64, write func(io.Writer) error) error { return w.stream(keys, size, write) })
	if err != nil {
		return err
	}
	if err := w.others(keys); err != nil {
		return err
	}
	w.step(5)
	return nil
}

// queue writes the queue file without the tasks that make this snapshot, and the payloads that its tasks
// need. release keeps payloads of the outbox until they are written.
func (w *snapshotWriter) queue() error {
	w.step(1)
	place := w.m.o.Place
	name := path.Join(place.Work, path.Base(queueName))
	without := make([]uint32, len(w.tasks))
	for i, t := range w.tasks {
		without[i] = t.UID
	}
	payloads, release, err := w.q.CopyTo(name, without, w.m.o.CompactInSnapshot)
	if err != nil {
		return err
	}
	defer release()
	if err := w.file(queueName, name); err != nil {
		return err
	}
	if err := w.fs.Remove(name); err != nil {
		return err
	}
	w.step(2)
	for i, p := range payloads {
		w.progress(1, index.Step{Name: "update file", Finished: i, Total: len(payloads)})
		inside, ok := strings.CutPrefix(p, place.Tasks+"/")
		if !ok {
			return fmt.Errorf("payload %s is not below %s", p, place.Tasks)
		}
		if err := w.file(path.Join(snapshotTasksDir, inside), p); err != nil {
			return err
		}
	}
	return nil
}

func (w *snapshotWriter) indexes(frozen *index.Frozen) error {
	catalog, err := frozen.Catalog()
	if err != nil {
		return err
	}
	outlines := frozen.Outlines()
	for i, o := range outlines {
		w.progress(1, index.Step{Name: o.UID, Finished: i, Total: len(outlines)})
		if err := w.index(frozen, i); err != nil {
			return fmt.Errorf("index %s: %w", o.UID, err)
		}
	}
	return w.copied(catalog)
}

// index copies the index at a place of the outlines.
func (w *snapshotWriter) index(frozen *index.Frozen, i int) error {
	v, err := frozen.View(i)
	if err != nil {
		return err
	}
	defer frozen.Done(i)
	if err := v.CheckSums(w.ctx); err != nil {
		return err
	}
	files, err := frozen.Files(i)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := w.copied(f); err != nil {
			return err
		}
	}
	return nil
}

func (w *snapshotWriter) copied(f index.CopiedFile) error {
	name := path.Join(snapshotIndexesDir, f.Name)
	if f.Path == "" {
		return w.data(name, f.Data)
	}
	return w.file(name, f.Path)
}

// others writes the small files of a data directory. Each is replaced as a whole when it changes.
func (w *snapshotWriter) others(keys string) error {
	dir := w.m.o.Place.Dir
	for _, sub := range []string{".", path.Base(w.m.o.Place.Kept)} {
		names, err := w.below(path.Join(dir, sub), sub == ".")
		if err != nil {
			return err
		}
		for _, name := range names {
			name = path.Join(sub, name)
			if name == keys || name == VersionFile || !copies(name) {
				continue
			}
			b, err := vfs.ReadFile(w.fs, path.Join(dir, name))
			if err == nil {
				err = w.data(name, b)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// below lists the files below a directory, or only those in it.
func (w *snapshotWriter) below(dir string, flat bool) (files []string, err error) {
	names, err := w.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		info, err := w.fs.Stat(path.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // a temporary file, renamed since
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, name)
		case !flat:
			inside, err := w.below(path.Join(dir, name), false)
			if err != nil {
				return nil, err
			}
			for _, f := range inside {
				files = append(files, path.Join(name, f))
			}
		}
	}
	return files, nil
}

const (
	snapshotTasksDir   = "tasks"
	snapshotIndexesDir = "indexes"
	queueName          = "tasks/queue.db"
)

// copies reports whether a small file of the data directory belongs to a snapshot. Locks, marks and temporary files do not.
func copies(name string) bool {
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".db") || strings.HasSuffix(name, ".jsonl")
}

// SnapshotImportOptions say what to import, and where to.
type SnapshotImportOptions struct {
	FS    vfs.FS
	Place Place // of a directory that holds nothing yet
	File  string
	// CheckVersion checks whether a directory with this content of VERSION can be opened.
	CheckVersion func([]byte) (format string, err error)
	Index        index.Options // to look at the indexes with
}

// ImportSnapshot fills an empty data directory with a snapshot. When it returns nil, everything except VERSION, which the caller
// writes, is durable. After an error the directory is unusable. It stops when ctx is done.
func ImportSnapshot(ctx context.Context, o SnapshotImportOptions) error {
	if err := o.run(ctx); err != nil {
		return fmt.Errorf("cannot import the snapshot %s: %w", o.File, err)
	}
	return nil
}

// run extracts the archive and opens the stores once, so that damage is found before the directory counts.
func (o *SnapshotImportOptions) run(ctx context.Context) error {
	file, err := o.FS.Open(o.File)
	if err != nil {
		return err
	}
	defer file.Close()
	x := extraction{SnapshotImportOptions: o, dirs: []string{o.Place.Dir}}
	if err := openArchive(ctx, file, x.entry); err != nil {
		return err
	}
	if !x.version || !x.queue {
		return errors.New("it has no VERSION or no task queue: it is not a snapshot of svc, or only a part of one")
	}
	for _, dir := range x.dirs {
		if err := o.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	// What does not open is found now, while the directory is still worth nothing.
	for _, name := range [...]string{path.Join(o.Place.Tasks, path.Base(queueName)), o.Place.Keys} {
		if err := boltfile.Check(name); err != nil {
			return err
		}
	}
	catalog, err := index.OpenCatalog(o.Place.Indexes, o.Index)
	if err != nil {
		return err
	}
	damage := catalog.AnyDamaged()
	if err := catalog.Close(); err != nil {
		return err
	}
	return damage
}

// extraction takes a snapshot apart as it streams in.
type extraction struct {
	*SnapshotImportOptions
	dirs           []string // made so far
	version, queue bool     // were there
}

// entry takes one entry. VERSION is the first.
func (o *extraction) entry(name string, size int64, r io.Reader) error {
	if name == VersionFile {
		b, err := io.ReadAll(io.LimitReader(r, 256))
		if err == nil {
			_, err = o.CheckVersion(b)
		}
		o.version = true
		return err
	}
	if !o.version {
		return errors.New("it does not begin with VERSION: it is not a snapshot of svc")
	}
	if !o.expects(name) {
		return errors.New("a snapshot of svc never has such an entry")
	}
	o.queue = o.queue || name == queueName
	to := path.Join(o.Place.Dir, name)
	if dir := path.Dir(to); !slices.Contains(o.dirs, dir) {
		if err := o.FS.MkdirAll(dir); err != nil {
			return err
		}
		for ; !slices.Contains(o.dirs, dir); dir = path.Dir(dir) {
			o.dirs = append(o.dirs, dir)
		}
	}
	return o.extract(to, r)
}

// expects reports whether a snapshot may have an entry.
func (o *SnapshotImportOptions) expects(name string) bool {
	top, inside, deep := strings.Cut(name, "/")
	switch {
	case !deep:
		return copies(name)
	case top == snapshotTasksDir:
		return name == queueName || path.Dir(inside) == "payloads"
	case top == path.Base(o.Place.Kept):
		return copies(name)
	}
	return top == snapshotIndexesDir
}

// extract writes a file and syncs it. Directories are synced at the end.
func (o *SnapshotImportOptions) extract(name string, r io.Reader) error {
	f, err := o.FS.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
