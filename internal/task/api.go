// Package task owns the task queue: durable tasks and batches in one bbolt
// file, payload files beside it, the scheduler that groups tasks into batches
// and runs them on the indexes, cancelation, deletion and lists.
package task

import (
	"context"
	"io"
	"log/slog"
	"time"

	"svc/internal/index"
)

// Options of a queue.
type Options struct {
	Dir           string // holds queue.db and payloads/
	Catalog       *index.Catalog
	Logger        *slog.Logger
	Now           func() time.Time
	MaxBatchTasks int                 // < 0: unlimited
	MaxBatchBytes int64               // of payloads
	OnBatch       func(tasks []*Task) // called after each stored batch (webhooks)
}

// Queue is the task queue with its scheduler.
type Queue struct{}

// Open opens or creates the queue, re-enqueues what was unfinished and starts the scheduler.
func Open(o Options) (*Queue, error) { panic("stub") }

// Close lets the running batch stop (it runs again at the next start), and closes the files.
func (q *Queue) Close() error { panic("stub") }

// Payload is a document payload being received: a file that becomes durable with Enqueue.
type Payload struct{}

func (q *Queue) NewPayload() (*Payload, error) { panic("stub") }
func (p *Payload) Write(b []byte) (int, error) { panic("stub") }
func (p *Payload) Discard()                    { panic("stub") }

// New is a task to enqueue.
type New struct {
	IndexUID       string
	Content        Content
	Payload        *Payload // of a document addition
	CustomMetadata *string
}

// Enqueue makes the task durable and returns it. no_space_left_on_device when the queue is full.
func (q *Queue) Enqueue(ctx context.Context, n New) (*Task, error) { panic("stub") }

// Filter selects tasks or batches: nil lists do not restrict, empty ones match nothing. Dates are exclusive bounds.
type Filter struct {
	UIDs, BatchUIDs, CanceledBy       []uint32
	Statuses                          []Status
	Kinds                             []Kind
	IndexUIDs                         []string
	AfterEnqueuedAt, BeforeEnqueuedAt time.Time
	AfterStartedAt, BeforeStartedAt   time.Time
	AfterFinishedAt, BeforeFinishedAt time.Time
	Reverse                           bool
	From                              *uint32
	Limit                             int
	Allowed                           func(indexUID string) bool // nil: all; else what the caller's key may see
}

// TaskList and BatchList are pages.
type TaskList struct {
	Results      []*Task
	Total, Limit int
	From, Next   *uint32
}
type BatchList struct {
	Results      []*Batch
	Total, Limit int
	From, Next   *uint32
}

// Batch is a finished or running batch. MarshalJSON gives the object of the API (tasks.md 5).
type Batch struct {
	UID        uint32
	StartedAt  time.Time
	FinishedAt time.Time
}

func (q *Queue) Tasks(f Filter) (*TaskList, error)                           { panic("stub") }
func (q *Queue) Batches(f Filter) (*BatchList, error)                        { panic("stub") }
func (q *Queue) Task(uid uint32, allowed func(string) bool) (*Task, error)   { panic("stub") } // task_not_found
func (q *Queue) Batch(uid uint32, allowed func(string) bool) (*Batch, error) { panic("stub") } // batch_not_found

// Match returns the uids a cancelation or deletion asked now would concern.
func (q *Queue) Match(f Filter) ([]uint32, error) { panic("stub") }

// Documents opens the stored payload of an unfinished addition as NDJSON; task_file_not_found.
func (q *Queue) Documents(uid uint32) (io.ReadCloser, error) { panic("stub") }

// Indexing reports whether the running batch has a task of the index.
func (q *Queue) Indexing(indexUID string) bool { panic("stub") }

// DiskBytes returns the size of the queue's files.
func (q *Queue) DiskBytes() int64 { panic("stub") }
