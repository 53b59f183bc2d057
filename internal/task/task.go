package task

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/bytedance/sonic/encoder"

	"svc/internal/apierr"
)

// Task is one stored task. MarshalJSON returns the object of the API. Tasks that the queue returns belong to the caller.
type Task struct {
	UID            uint32
	BatchUID       *uint32
	IndexUID       string // "" for global tasks
	Status         Status
	Kind           Kind
	CanceledBy     *uint32
	Details        json.RawMessage // as the API shows them now; nil: none
	Error          *apierr.Error
	EnqueuedAt     time.Time
	StartedAt      time.Time // zero: not yet
	FinishedAt     time.Time
	CustomMetadata *string
	Network        json.RawMessage // what other instances have to do with it; nil: nothing
	// what the scheduler needs to run it, by kind
	Content Content

	parked *parking // why it waits although it is its turn; nil where it does not
}

// JSONBytes is how many bytes the task object has, about.
func (t *Task) JSONBytes() int {
	n := objectBytes + len(t.Details) + len(t.Network)
	if t.Error != nil {
		n += len(t.Error.Message)
	}
	if t.CustomMetadata != nil {
		n += len(*t.CustomMetadata)
	}
	return n
}

// objectBytes is the memory of the fields of a task or batch that are never long.
const objectBytes = 1 << 10

// MarshalJSON gives the task object of the API.
func (t *Task) MarshalJSON() ([]byte, error) { return t.AppendJSON(make([]byte, 0, 384)), nil }

// AppendJSON appends the task object of the API to b.
func (t *Task) AppendJSON(b []byte) []byte {
	b = append(b, `{"uid":`...)
	b = strconv.AppendUint(b, uint64(t.UID), 10)
	b = append(b, `,"batchUid":`...)
	b = appendUID(b, t.BatchUID)
	b = append(b, `,"indexUid":`...)
	b = t.appendIndexUID(b)
	b = append(b, `,"status":"`...)
	b = append(b, t.Status.String()...)
	b = append(b, `","type":"`...)
	b = append(b, t.Kind.String()...)
	b = append(b, `","canceledBy":`...)
	b = appendUID(b, t.CanceledBy)
	b = append(b, `,"details":`...)
	b = appendRaw(b, t.Details)
	b = append(b, `,"error":`...)
	b = appendError(b, t.Error)
	b = append(b, `,"duration":`...)
	b = appendDuration(b, t.StartedAt, t.FinishedAt)
	b = append(b, `,"enqueuedAt":`...)
	b = appendTime(b, t.EnqueuedAt)
	b = append(b, `,"startedAt":`...)
	b = appendTime(b, t.StartedAt)
	b = append(b, `,"finishedAt":`...)
	b = appendTime(b, t.FinishedAt)
	b = t.appendMetadata(b)
	if t.Network != nil {
		b = append(append(b, `,"network":`...), t.Network...)
	}
	if t.parked != nil {
		b = t.parked.appendJSON(b)
	}
	return append(b, '}')
}

// Summary gives the summarized task that answers the request that enqueued it.
func (t *Task) Summary() json.RawMessage {
	b := make([]byte, 0, 160)
	b = append(b, `{"taskUid":`...)
	b = strconv.AppendUint(b, uint64(t.UID), 10)
	b = append(b, `,"indexUid":`...)
	b = t.appendIndexUID(b)
	b = append(b, `,"status":"enqueued","type":"`...)
	b = append(b, t.Kind.String()...)
	b = append(b, `","enqueuedAt":`...)
	b = appendTime(b, t.EnqueuedAt)
	b = t.appendMetadata(b)
	return append(b, '}')
}

func (t *Task) appendIndexUID(b []byte) []byte {
	if t.IndexUID == "" {
		return append(b, "null"...)
	}
	return appendString(b, t.IndexUID)
}

func (t *Task) appendMetadata(b []byte) []byte {
	if t.CustomMetadata == nil {
		return b
	}
	b = append(b, `,"customMetadata":`...)
	return appendString(b, *t.CustomMetadata)
}

func appendUID(b []byte, uid *uint32) []byte {
	if uid == nil {
		return append(b, "null"...)
	}
	return strconv.AppendUint(b, uint64(*uid), 10)
}

func appendRaw(b []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(b, "null"...)
	}
	return append(b, raw...)
}

func appendString(b []byte, s string) []byte { return append(b, encoder.Quote(s)...) }

func appendError(b []byte, e *apierr.Error) []byte {
	if e == nil {
		return append(b, "null"...)
	}
	return e.AppendJSON(b)
}
