package task

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/boltfile"
	"svc/internal/index"
	"svc/internal/vfs"
)

// TestBatchNumbersContinueAboveThoseOfIndexes checks a queue that was lost, or is older than the indexes. Its batches must get higher
// numbers than the last ones of the indexes: lower ones would count as applied, and tasks would succeed without effect.
func TestBatchNumbersContinueAboveThoseOfIndexes(t *testing.T) {
	dir := t.TempDir()
	open := func() (*Queue, *index.Catalog) {
		c, err := index.OpenCatalog(filepath.Join(dir, "indexes"), index.Options{FS: vfs.OS, MaxIndexingMemory: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return openQueue(t, Options{Dir: filepath.Join(dir, "tasks"), Catalog: c, MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true}), c
	}
	closeAll := func(q *Queue, c *index.Catalog) {
		if err := errors.Join(q.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	q, c := open()
	for _, id := range []string{"a", "b", "c"} {
		wait(t, q, enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, id)).UID)
	}
	closeAll(q, c)
	if err := os.RemoveAll(filepath.Join(dir, "tasks")); err != nil {
		t.Fatal(err)
	}
	q, c = open()
	done := wait(t, q, enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "d")).UID)
	v := held(c.Get("x").View())
	documents := v.Documents()
	v.Release()
	if done.Status != Succeeded || documents != 4 || *done.BatchUID < 3 {
		t.Errorf("batch %d is %v, and there are %d documents", *done.BatchUID, done.Status, documents)
	}
	closeAll(q, c)
	q, c = open()
	if q.roster.firstBatch != 0 {
		t.Errorf("after that the queue still counts as old: batches from %d", q.roster.firstBatch)
	}
	closeAll(q, c)
}

// TestNothingIsStoredUntilACompactionIsDurable checks that no task is acknowledged while a power failure might bring back the file from
// before a compaction.
func TestNothingIsStoredUntilACompactionIsDurable(t *testing.T) {
	o, _ := testOptions(t)
	var broken atomic.Bool
	o.FS = vfs.Hook(vfs.OS, func(op vfs.Op) error {
		if broken.Load() && op.Kind == vfs.OpSyncDir && op.Name == o.Dir {
			return errors.New("disk on fire")
		}
		return nil
	})
	q := openQueue(t, o)
	wait(t, q, enqueue(t, q, New{IndexUID: "a", Content: CreateIndex{}}).UID)
	broken.Store(true)
	if _, _, err := q.Compact(); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Enqueue(context.Background(), New{IndexUID: "b", Content: CreateIndex{}}); err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("enqueued: %v", err)
	}
	broken.Store(false)
	wait(t, q, enqueue(t, q, New{IndexUID: "b", Content: CreateIndex{}}).UID)
}

// TestAFailedCommitIsUndone checks that a failed commit is undone even if it is visible and may be on disk. The refused task must not
// exist, now or after a restart, and reading must go on.
func TestAFailedCommitIsUndone(t *testing.T) {
	for name, visible := range map[string]bool{"seen": true, "undone": false} {
		o, _ := testOptions(t)
		o.MaxBatchTasks = 0
		var broken atomic.Bool
		o.commit = func(tx *boltfile.Tx) error {
			if !broken.Load() {
				return tx.Commit()
			}
			err := errors.New("disk on fire")
			if visible {
				return errors.Join(err, tx.Commit())
			}
			tx.Rollback()
			return err
		}
		q := openQueue(t, o)
		enqueue(t, q, New{IndexUID: "a", Content: CreateIndex{}})
		broken.Store(true)
		add := func() error {
			_, err := q.Enqueue(context.Background(), New{IndexUID: "b", Content: CreateIndex{}})
			return err
		}
		if err := add(); err == nil || !strings.Contains(err.Error(), "disk on fire") {
			t.Errorf("%s: %v", name, err)
		}
		broken.Store(false)
		read := make(chan error)
		go func() {
			l, err := q.listTasks(Filter{Limit: 10})
			if err == nil && l.Total != 1 {
				err = errors.New("another number of tasks")
			}
			read <- err
		}()
		select {
		case err := <-read:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: reading hangs", name)
		}
		if err := add(); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		q = openQueue(t, o)
		if err := add(); err != nil {
			t.Errorf("%s: after a restart: %v", name, err)
		}
		if l, err := q.listTasks(Filter{Limit: 10}); err != nil || l.Total != 3 {
			t.Errorf("%s: after a restart there are %d tasks, %v", name, l.Total, err)
		}
	}
}

// TestALostQueueKeepsItsPayloads checks that a queue without its file refuses to start: it would remove the payloads of
// acknowledged tasks.
func TestALostQueueKeepsItsPayloads(t *testing.T) {
	o, _ := testOptions(t)
	o.MaxBatchTasks = 0
	q := openQueue(t, o)
	enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1"))
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(o.Dir, "queue.db")
	if err := os.Rename(file, file+".elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), file) {
		t.Errorf("without its file: %v", err)
	}
	if err := os.Rename(file+".elsewhere", file); err != nil {
		t.Fatal(err)
	}
	q = openQueue(t, o)
	if _, err := q.Documents(0); err != nil {
		t.Error(err)
	}
}

// TestADamagedPayloadFailsItsTaskAlone checks that a damaged or missing payload fails only its own task, with an error that
// names the file.
func TestADamagedPayloadFailsItsTaskAlone(t *testing.T) {
	dir := t.TempDir()
	c, err := index.OpenCatalog(filepath.Join(dir, "indexes"), index.Options{FS: vfs.OS, MaxIndexingMemory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o := Options{Dir: filepath.Join(dir, "tasks"), Catalog: c, MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true}
	q := paused(t, o)
	defer q.Close()
	files := map[uint32]string{}
	for i := range uint32(5) {
		task := enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "some", string(rune('a'+i))))
		full, err := q.Task(task.UID, nil)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = q.payloadPath(full.Content.(AddDocuments).File)
	}
	damage := func(name string, f func([]byte) []byte) {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, f(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	damage(files[1], func(b []byte) []byte { b[9] ^= 1; return b })  // inside an id
	damage(files[2], func(b []byte) []byte { b[0] ^= 16; return b }) // no longer JSON
	damage(files[3], func(b []byte) []byte { return b[:len(b)/2] })  // one document less
	if err := os.Remove(files[4]); err != nil {
		t.Fatal(err)
	}
	drain(t, q)
	for uid, want := range map[uint32]apierr.Code{0: "", 1: "invalid_store_file", 2: "invalid_store_file", 3: "invalid_store_file", 4: "task_file_not_found"} {
		task, err := q.Task(uid, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := apierr.Code("")
		if task.Error != nil {
			got = task.Error.Code
			if !strings.Contains(task.Error.Message, files[uid]) {
				t.Errorf("task %d: %s names no file", uid, task.Error.Message)
			}
		}
		if got != want || *task.BatchUID != 0 {
			t.Errorf("task %d of batch %d: %v, want %q", uid, *task.BatchUID, task.Error, want)
		}
	}
	v := held(c.Get("x").View())
	defer v.Release()
	if v.Documents() != 2 {
		t.Errorf("%d documents", v.Documents())
	}
}

// TestARestoredQueueHasADurableName checks that the name of a restored queue file is durable although the file is written without syncs.
func TestARestoredQueueHasADurableName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tasks")
	var log vfs.Log
	r, err := NewRestore(vfs.Hook(vfs.OS, log.Hook), dir)
	if err != nil {
		t.Fatal(err)
	}
	log.Take()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if lines := log.Take(); !slices.Contains(lines, "syncdir "+dir) {
		t.Errorf("%q", lines)
	}
}

// TestPayloadsOfASuspectQueueAreKept checks that payloads without a task are quarantined if the queue may have lost tasks, and otherwise
// removed as leftovers of a crash. A closed queue has its last change in both roots, so that damage of one root loses no task.
func TestPayloadsOfASuspectQueueAreKept(t *testing.T) {
	for _, tt := range []struct {
		damaged, killed bool
		kept            int // quarantined payloads
	}{{false, false, 0}, {true, false, 1}, {true, true, 2}} {
		o, _ := testOptions(t)
		o.MaxBatchTasks = 0
		q := openQueue(t, o)
		enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1"))
		file := filepath.Join(o.Dir, "queue.db")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		if !tt.killed {
			if b, err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		stranger := filepath.Join(o.Dir, "payloads", "stranger.ndjson")
		if err := os.WriteFile(stranger, []byte(`{"id":2}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.damaged { // the newest root
			page := 0
			if binary.LittleEndian.Uint64(b[4096+64:]) > binary.LittleEndian.Uint64(b[64:]) { // their transactions
				page = 4096
			}
			b[page+20] ^= 1
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		q = openQueue(t, o)
		kept, err := filepath.Glob(filepath.Join(o.Dir, lostDir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Task(0, nil); len(kept) != tt.kept || (err != nil) != (tt.damaged && tt.killed) {
			t.Errorf("%+v: kept %q, %v", tt, kept, err)
		}
		if _, err := os.Stat(stranger); err == nil {
			t.Errorf("%+v: the unnamed payload is still there", tt)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
