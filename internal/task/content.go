package task

import (
	"encoding/json"
	"fmt"

	"github.com/bytedance/sonic"

	"svc/internal/index"
)

// Content is what a task does. Most kinds have one type. Four types delete documents, and AddDocuments is of two kinds: a partial update
// is a DocumentEdition. It is stored as JSON with the task.
type Content interface {
	Kind() Kind
	// details gives the details of the API of a task of indexUID. o is nil while it is unfinished.
	details(indexUID string, o *outcome) json.RawMessage
}

// outcome is what a finished task counted. A failed or canceled task counts nothing.
type outcome struct {
	failed        bool
	count         int // documents indexed, deleted or edited; tasks canceled or deleted
	deleted       int // documents that an edit deleted
	patched       *index.PatchResult
	before, after int64 // bytes, of a compaction
}

// counter gives the value of a counter of details: null while unfinished.
func (o *outcome) counter() *int {
	if o == nil {
		return nil
	}
	n := o.count
	if o.failed {
		n = 0
	}
	return &n
}

// A type of content can do more, by the methods that it has. The queue asks for a method, never for a type.
type (
	// A content with a class shares batches with others of its index; else its task runs alone.
	classed interface{ class() class }
	// A content that reads so many bytes when it runs.
	creator interface{ mayCreate() bool }
	// A content that concerns other indexes than that of its task.
	touching interface{ touches() []string }
	// A content that exchanges uids for older tasks, once its task of indexUID has succeeded.
	renamer interface{ renames(indexUID string) []Swap }
	// A content with so many bytes to read when it runs.
	sized interface{ bytes() int64 }
	// A content that makes room: in the queue, or on the disk.
	queueFreer interface{ freesQueue() bool }
	diskFreer  interface{ freesDisk() }
	// A content that is stored in another form than its own.
	storer interface{ stored() (any, error) }
	// A content that is completed when it is enqueued.
	enqueued interface{ enqueued(n *New) (Content, error) }
	// A content of which a finished task keeps only a part. ok is false if it keeps all.
	ender interface {
		ended() (rest Content, ok bool)
	}
	// A content that is one operation on its index within a batch. If the operation is nil, there is nothing to do, and r has the
	// result.
	operator interface {
		operation(q *Queue, run *running, r *result) (index.Op, error)
	}
	// A content that runs by itself. Others have an operation, or an executor of Options.
	runner interface {
		run(q *Queue, run *running, t *Task) (result, error)
	}
)

func classOf(c Content) class {
	if c, ok := c.(classed); ok {
		return c.class()
	}
	return unbatched
}

func mayCreate(c Content) bool {
	creates, ok := c.(creator)
	return ok && creates.mayCreate()
}

// touched are the index uids, besides the task's own, that a content concerns.
func touched(c Content) []string {
	if c, ok := c.(touching); ok {
		return c.touches()
	}
	return nil
}

// renames are the swaps of uids that a successful task applies to older tasks.
func renames(t *Task) []Swap {
	if c, ok := t.Content.(renamer); ok {
		return c.renames(t.IndexUID)
	}
	return nil
}

// payloadSize returns how many bytes are read when a task runs.
func payloadSize(t *Task) int64 {
	if c, ok := t.Content.(sized); ok {
		return c.bytes()
	}
	return 0
}

// freesQueue reports whether the content makes room in the queue.
func freesQueue(c Content) bool {
	f, ok := c.(queueFreer)
	return ok && f.freesQueue()
}

// makesRoom reports whether a task is accepted while the disk is full, because it may free space.
func makesRoom(c Content) bool {
	_, ok := c.(diskFreer)
	return ok || freesQueue(c)
}

// deletedDetails returns the details of the deletion of all documents, with or without their index.
func deletedDetails(o *outcome) json.RawMessage {
	return encode(struct {
		Deleted *int `json:"deletedDocuments"`
	}{o.counter()})
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// encode is JSON without the escapes that HTML wants. Its callers pass plain structs, which always encode.
func encode(v any) json.RawMessage {
	b, err := sonic.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("task: %T cannot be JSON: %v", v, err))
	}
	return b
}
