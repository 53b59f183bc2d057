package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/apierr"
	"svc/internal/boltfile"
	"svc/internal/index"
	"svc/internal/trace"
	"svc/internal/vfs"
)

// Options of a queue.
type Options struct {
	Dir           string // holds queue.db, payloads/ and running
	FS            vfs.FS // of payloads; nil: vfs.OS. queue.db always is a file of the operating system
	Catalog       *index.Catalog
	Logger        *slog.Logger
	Now           func() time.Time
	Tracer        *trace.Tracer // of batches; nil: none
	MaxBatchTasks int           // < 0: unlimited; 0: tasks pile up and nothing runs
	MaxBatchBytes int64         // of payloads; < 0: unlimited; 0: one task a batch
	Concurrent    int           // batches that run side by side, each of other indexes; 0: 1
	MaxBytes      int64         // live bytes of queue.db from which it refuses tasks; 0: 10 GiB; < 0: unlimited
	Follow        bool          // open in follow mode: see Queue.Follow
	Reserve       int           // bytes that a file holds for deletions on a full disk; 0: none
	MaxTasks      int           // stored tasks from which the oldest tenth is deleted; 0: 1,000,000; < 0: unlimited
	Executors     map[Kind]Executor
	// OnBatch is called after each stored batch, with its tasks in uid order, for one batch at a time. The next batch of its indexes
	// starts after it returns. For a batch that ends in several transactions, it is called after each of them, with the tasks that
	// ended in it.
	OnBatch func(tasks []*Task)
	// OnEnd is called after OnBatch when all of a batch is stored. It returns at once.
	OnEnd func(batch uint32)
	// OnForward is called after a task is stored that others are to get. It returns at once.
	OnForward func()
	// Owned returns a function that tells which documents of an addition belong to this instance, by their ids, or nil for all. It is
	// called when the addition runs.
	Owned func() func(id []byte) bool

	engine     engine                   // of tests, instead of Catalog
	commit     func(*boltfile.Tx) error // of tests, instead of bbolt's
	hook       func(point string) error // of tests: called at points between writes; an error stops the queue as a crash would
	partTasks  int                      // of tests, instead of the constant
	shrinkFrom int64                    // of tests, instead of the constant
	noSync     bool                     // of tests: queue.db need not outlive a power failure
}

// Executor runs the tasks of a batch of a kind that belongs to another package: dumps, snapshots, exports, upgrades, topology
// changes, changes of search rules. It returns an outcome per task, or an error that fails them all. When ctx ends, it cleans up and
// returns ctx's error: the batch was canceled, or runs again at the next start.
// For a kind that runs alone, no batch ends meanwhile: indexes, and the payloads of unfinished tasks, do not change. Changes of
// search rules run beside the batches of indexes.
type Executor func(ctx context.Context, q *Queue, tasks []*Task, p index.Progress) ([]Outcome, error)

// Outcome of one task that an Executor ran.
type Outcome struct {
	Details json.RawMessage // nil: as they were
	Err     error
}

const (
	defaultMaxBytes = 10 << 30
	defaultMaxTasks = 1_000_000
	// maxLoaded bounds the tasks of a batch however many are allowed: their contents are in memory together.
	maxLoaded = 100_000
)

// Queue is the task queue with its scheduler.
type Queue struct {
	o       Options
	fs      vfs.FS
	log     *slog.Logger
	engine  engine
	file    string // queue.db
	db      *boltfile.DB
	journal *journal
	reserve reserve

	writing  sync.Mutex // held by the one writer of db and roster
	unsynced bool       // under writing: the name of queue.db may not be durable
	unsure   bool       // under writing: the state of the last change on disk is unknown; see revert
	lone     bool       // under writing: the last change stands in one of the two roots only; see settle
	roster   *roster
	follows  atomic.Bool // see Follow; changed under writing

	compacting sync.Mutex    // held by a compaction of the file, before writing
	shrinking  chan struct{} // one slot: the file may be worth compacting

	requests     chan *request // unbuffered: a request that was sent is received and answered, even while closing
	wake         chan struct{} // one slot: a batch may be ready to run
	payloadBytes atomic.Int64
	lostNames    atomic.Uint64 // how often a sync of the payloads' directory has failed
	unneeded     unneeded
	ended        atomic.Uint64 // batches
	counted      atomic.Int64  // see Unfinished
	commits      vfs.Times
	outbox       outbox
	watches      watches
	telling      sync.Mutex // held for OnBatch
	catalog      sync.Mutex // held by a batch that makes, removes or renames indexes, until its end is stored; see run

	process string                      // see RunIn
	living  func(all []string) []string // see RunIn

	ctx  context.Context // ends with Close
	stop context.CancelCauseFunc
	done sync.WaitGroup

	// Of the scheduler's goroutine alone.
	resume        []*entry // batches that the last run of the program left unfinished: they run one by one
	apart         apart
	upgradeFailed bool
}

// Open opens or creates the queue, re-enqueues unfinished tasks and starts the scheduler.
func Open(o Options) (*Queue, error) {
	q, err := open(o)
	if err != nil {
		return nil, err
	}
	q.done.Add(2)
	go q.shrink()
	go q.removeUnneeded()
	q.shrinkSoon()
	if !o.Follow {
		q.work()
	}
	return q, nil
}

// work begins what only a queue does that takes tasks.
func (q *Queue) work() {
	q.done.Add(3)
	go q.commit()
	go q.schedule()
	go q.expire()
	q.wakeUp()
}

// open opens the files, builds the roster, and finds what the last run left: batches to continue, payloads without a task, and
// whether the file may have lost tasks. It starts no goroutine.
func open(o Options) (_ *Queue, err error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.MaxTasks == 0 {
		o.MaxTasks = defaultMaxTasks
	}
	q := &Queue{
		o: o, fs: o.FS, log: o.Logger, engine: o.engine,
		reserve:  reserve{fs: o.FS, name: path.Join(o.Dir, "reserve"), size: o.Reserve},
		requests: make(chan *request), wake: make(chan struct{}, 1), shrinking: make(chan struct{}, 1),
	}
	q.unneeded.some = make(chan struct{}, 1)
	if q.engine == nil {
		q.engine = indexEngine{o.Catalog}
	}
	if err := vfs.MakeDir(q.fs, path.Join(o.Dir, "payloads")); err != nil {
		return nil, fmt.Errorf("cannot create the directory of the queue: %w", err)
	}
	file := path.Join(o.Dir, "queue.db")
	q.file = file
	if err := q.lost(file); err != nil {
		return nil, err
	}
	if err := removeIfThere(file + compactSuffix); err != nil {
		return nil, fmt.Errorf("cannot remove a left-over copy of the queue: %w", err)
	}
	suspect := false // the file may lack tasks whose payloads are here
	options := fileOptions(o.Logger, o.noSync)
	options.Lacking = func() { suspect = true }
	if q.db, err = boltfile.Open(file, options); err != nil {
		return nil, advised(err, o.Dir)
	}
	defer func() {
		if err != nil {
			q.db.Close()
		}
	}()
	if q.roster, err = load(q.db); err != nil {
		return nil, advised(err, o.Dir)
	}
	q.ctx, q.stop = context.WithCancelCause(context.Background())
	if o.Follow {
		q.follows.Store(true)
		var last *entry
		if q.journal, last, err = openJournal(q.fs, o.Dir); err == nil {
			err = q.showRunning(last)
		}
	} else {
		var lacks bool
		lacks, err = q.takeUp()
		suspect = suspect || lacks
	}
	if err != nil {
		return nil, err
	}
	if err = q.outbox.load(q.db); err != nil {
		return nil, advised(err, o.Dir)
	}
	if err = q.sweepPayloads(suspect); err != nil {
		return nil, err
	}
	return q, nil
}

// takeUp reads from the journal which batches continue. lacks is true if indexes have batches that the queue file lacks.
func (q *Queue) takeUp() (lacks bool, err error) {
	var last *entry
	if q.journal, last, err = openJournal(q.fs, q.o.Dir); err != nil {
		return false, err
	}
	for _, e := range last.all() {
		if q.unfinished(e) {
			q.resume = append(q.resume, e)
		}
	}
	q.journal.await(q.resume)
	if last != nil {
		if q.apart, err = readApart(last, q.roster.byStatus[Enqueued]); err != nil {
			return false, err
		}
	}
	if first := batchAfter(q.engine.lastStep()); first > q.roster.nextBatch() {
		// Indexes may know the batch that continues. Other batches that they know, but the queue does not, have nothing to do with
		// the present tasks. If a new batch got such a uid, its tasks would count as already done.
		q.roster.firstBatch = first
		if len(q.resume) == 0 {
			lacks = true
			q.log.Error("indexes have batches that the task queue does not know: the queue is older, or a part of it is lost", "queue", q.file, "batches", first)
		}
	}
	return lacks, nil
}

// advised adds to the error of a damaged queue what can be done.
func advised(err error, dir string) error {
	if !apierr.IsCorruption(err) {
		return err
	}
	return fmt.Errorf("%w. Restore a snapshot. Without one, remove %s and its line in STORES: this loses its tasks and keeps the indexes", err, dir)
}

// lost returns an error if there is no queue file although there were tasks. Without it, the sweep would remove their payloads.
func (q *Queue) lost(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return nil // other problems show when the file is opened
	}
	payloads := path.Join(q.o.Dir, "payloads")
	names, err := q.fs.List(payloads)
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", payloads, err)
	}
	if len(names) == 0 {
		return nil
	}
	return &apierr.Corruption{File: file, Offset: -1, Reason: "it is missing, but payloads of its tasks are in " + payloads + ". Restore it, or remove that directory: this loses these tasks"}
}

// unfinished reports whether the queue does not know the end of the batch.
func (q *Queue) unfinished(e *entry) bool {
	if e.UID-e.Skipped > q.roster.afterStored() || q.roster.batches.Contains(e.UID) || len(e.Tasks) == 0 {
		return false
	}
	for _, uid := range e.Tasks {
		if !q.roster.byStatus[Enqueued].Contains(uid) {
			return false
		}
	}
	return true
}

// spooled reports whether a file among the payloads is the remainder of an upload that a crash interrupted.
func spooled(name string) bool { return strings.HasSuffix(name, vfs.TempSuffix) }

// lostDir is the directory of payloads whose tasks may have been lost.
const lostDir = "lost"

// sweepPayloads removes the files that no unfinished task needs, and measures the others. If the queue may have lost
// tasks, it moves them aside and logs them.
func (q *Queue) sweepPayloads(suspect bool) error {
	needed := map[string]bool{}
	err := q.db.View(func(tx *boltfile.Tx) error {
		set := q.roster.bringPayloads()
		for it := set.Iterator(); it.HasNext(); {
			t, err := readTask(tx, it.Next(), q.roster.names, nil)
			if err != nil {
				return err
			}
			if c, ok := t.Content.(AddDocuments); ok && c.File != "" {
				needed[c.File] = true
				q.outbox.files[c.File]++
				q.payloadBytes.Add(c.Size)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	dir := path.Join(q.o.Dir, "payloads")
	files, err := q.fs.List(dir)
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", dir, err)
	}
	stays := 0
	var unneeded []string
	for _, name := range files {
		switch {
		case needed[name]:
			continue
		case q.outbox.files[name] > 0: // another instance still has to get it
			info, err := q.fs.Stat(path.Join(dir, name))
			if err != nil {
				return fmt.Errorf("cannot measure a payload: %w", err)
			}
			q.payloadBytes.Add(info.Size())
			continue
		case suspect && !spooled(name):
			err = q.moveToLost(dir, name)
			stays++
		default:
			unneeded = append(unneeded, name)
		}
		if err != nil {
			return fmt.Errorf("cannot move a payload without a task: %w", err)
		}
	}
	if len(unneeded) > fewPayloads {
		for _, name := range unneeded {
			if info, err := q.fs.Stat(path.Join(dir, name)); err == nil {
				q.payloadBytes.Add(info.Size())
			}
		}
		q.unneeded.add(unneeded)
		unneeded = nil
	}
	for _, name := range unneeded {
		if err := q.fs.Remove(path.Join(dir, name)); err != nil {
			return fmt.Errorf("cannot move a payload without a task: %w", err)
		}
	}
	if stays > 0 {
		q.log.Error("some payloads have no task, because the queue may have lost tasks: svc moved them aside; you can send them again", "files", stays, "directory", path.Join(q.o.Dir, lostDir))
	}
	return nil
}

// moveToLost moves a payload to lost/, where it stays for an operator to inspect.
func (q *Queue) moveToLost(dir, name string) error {
	lost := path.Join(q.o.Dir, lostDir)
	if err := vfs.MakeDir(q.fs, lost); err != nil {
		return err
	}
	return q.fs.Rename(path.Join(dir, name), path.Join(lost, name))
}

// Close lets running batches stop (they run again at the next start), and closes the files.
func (q *Queue) Close() error {
	q.stop(errClosed)
	q.done.Wait()
	q.journal.close()
	if err := q.settle(); err != nil {
		q.log.Warn("the last change of the task queue is durable, but only in one of the two roots of its file", "error", err)
	}
	if err := q.db.Close(); err != nil {
		return fmt.Errorf("cannot close %s: %w", q.file, err)
	}
	return nil
}

func (q *Queue) now() time.Time { return q.o.Now() }

func (q *Queue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// errCrash is what hooks return to stop the queue where it is.
var errCrash = errors.New("stopped by a hook")

// at marks a point between two writes for tests.
func (q *Queue) at(point string) error {
	if q.o.hook == nil {
		return nil
	}
	return q.o.hook(point)
}

// Indexing reports whether a running batch has a task of the index.
func (q *Queue) Indexing(indexUID string) bool {
	q.roster.mu.RLock()
	defer q.roster.mu.RUnlock()
	named := q.roster.named(indexUID)
	return slices.ContainsFunc(q.roster.running, func(run *running) bool { return run.set.Intersects(named) })
}

// DiskBytes returns the size of the queue's files.
func (q *Queue) DiskBytes() int64 {
	q.roster.mu.RLock()
	defer q.roster.mu.RUnlock()
	return fileBytes(q.db) + q.payloadBytes.Load()
}
