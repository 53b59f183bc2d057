package dump

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"svc/internal/apierr"
	"svc/internal/task"
)

// taskLine is a task in tasks/queue.jsonl.
type taskLine struct {
	UID            *uint32         `json:"uid"`
	BatchUID       *uint32         `json:"batchUid"`
	IndexUID       *string         `json:"indexUid"`
	Status         string          `json:"status"`
	Type           json.RawMessage `json:"type"`
	CanceledBy     *uint32         `json:"canceledBy,omitempty"`
	Details        json.RawMessage `json:"details,omitempty"`
	Error          *errorLine      `json:"error,omitempty"`
	EnqueuedAt     *time.Time      `json:"enqueuedAt"`
	StartedAt      *time.Time      `json:"startedAt,omitempty"`
	FinishedAt     *time.Time      `json:"finishedAt,omitempty"`
	CustomMetadata *string         `json:"customMetadata,omitempty"`
}

type errorLine struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	Type    string `json:"type"`
	Link    string `json:"link"`
}

// encodeTask gives the line of a task.
func encodeTask(t *task.Task) ([]byte, error) {
	l := taskLine{
		UID: &t.UID, BatchUID: t.BatchUID, IndexUID: textOrNil(t.IndexUID), Status: t.Status.String(), CanceledBy: t.CanceledBy,
		EnqueuedAt: timeOrNil(t.EnqueuedAt), StartedAt: timeOrNil(t.StartedAt), FinishedAt: timeOrNil(t.FinishedAt),
		CustomMetadata: t.CustomMetadata,
	}
	var err error
	if l.Type, err = encodeType(t); err == nil {
		l.Details, err = encodeDetails(t)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot dump task %d: %w", t.UID, err)
	}
	if t.Error != nil {
		l.Error = &errorLine{t.Error.Message, string(t.Error.Code), t.Error.Code.Type(), t.Error.Code.Link()}
	}
	return encode(l)
}

// decodeTask reads a line of tasks/queue.jsonl.
func decodeTask(line []byte) (*task.Task, error) {
	var l taskLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	return l.task()
}

func (l *taskLine) task() (*task.Task, error) {
	if l.UID == nil {
		return nil, fmt.Errorf("a task has no uid")
	}
	t, err := l.content()
	if err != nil {
		return nil, fmt.Errorf("task %d: %w", *l.UID, err)
	}
	return t, nil
}

// content decodes a task. An unfinished task starts again: it loses its batch and its times.
func (l *taskLine) content() (*task.Task, error) {
	if l.EnqueuedAt == nil || len(l.Type) == 0 {
		return nil, fmt.Errorf("it lacks its enqueuedAt or its type")
	}
	status, err := decodeStatus(l.Status)
	if err != nil {
		return nil, err
	}
	t := &task.Task{
		UID: *l.UID, BatchUID: l.BatchUID, IndexUID: textOf(l.IndexUID), Status: status, CanceledBy: l.CanceledBy,
		EnqueuedAt: *l.EnqueuedAt, StartedAt: timeOf(l.StartedAt), FinishedAt: timeOf(l.FinishedAt), CustomMetadata: l.CustomMetadata,
	}
	if t.Content, err = decodeType(l.Type); err != nil {
		return nil, err
	}
	t.Kind = t.Content.Kind()
	if t.Details, t.Content, err = decodeDetails(l.Details, t.Content); err != nil {
		return nil, err
	}
	if l.Error != nil {
		t.Error = &apierr.Error{Code: apierr.Code(l.Error.Code), Message: l.Error.Message}
	}
	if !status.Finished() {
		// It starts again here.
		t.BatchUID, t.CanceledBy, t.Error, t.StartedAt, t.FinishedAt = nil, nil, nil, time.Time{}, time.Time{}
	}
	return t, nil
}

// decodeStatus reads a status. A task that was processing becomes enqueued.
func decodeStatus(text string) (task.Status, error) {
	all := []task.Status{task.Enqueued, task.Processing, task.Succeeded, task.Failed, task.Canceled}
	i := slices.IndexFunc(all, func(s task.Status) bool { return s.String() == text })
	if i < 0 {
		return 0, fmt.Errorf("%q is not a status", text)
	}
	if all[i] == task.Processing {
		return task.Enqueued, nil
	}
	return all[i], nil
}

// batchLine is a batch in batches/queue.jsonl.
type batchLine struct {
	UID        *uint32         `json:"uid"`
	Details    json.RawMessage `json:"details"`
	Stats      *task.Stats     `json:"stats"`
	StartedAt  *time.Time      `json:"startedAt"`
	FinishedAt *time.Time      `json:"finishedAt"`
	EnqueuedAt *enqueuedRange  `json:"enqueuedAt"`
	StopReason string          `json:"stopReason,omitempty"`
}

// enqueuedRange has the names the wrong way round in every dump there is: earliest is the newest date.
type enqueuedRange struct {
	Newest time.Time `json:"earliest"`
	Oldest time.Time `json:"oldest"`
}

func encodeBatch(b *task.Batch) ([]byte, error) {
	l := batchLine{
		UID: &b.UID, Details: b.Details, Stats: &b.Stats, StopReason: b.Strategy,
		StartedAt: timeOrNil(b.StartedAt), FinishedAt: timeOrNil(b.FinishedAt),
	}
	if !b.Oldest.IsZero() {
		l.EnqueuedAt = &enqueuedRange{b.Newest.UTC(), b.Oldest.UTC()}
	}
	line, err := encode(l)
	if err != nil {
		return nil, fmt.Errorf("cannot dump batch %d: %w", b.UID, err)
	}
	return line, nil
}

// decodeBatch reads a line of batches/queue.jsonl. It returns nil for an unfinished batch, which counts as not started.
func decodeBatch(line []byte) (*task.Batch, error) {
	var l batchLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	if l.UID == nil {
		return nil, fmt.Errorf("a batch has no uid")
	}
	if l.StartedAt == nil || l.FinishedAt == nil {
		return nil, nil
	}
	b := &task.Batch{UID: *l.UID, Details: l.Details, Strategy: l.StopReason, StartedAt: *l.StartedAt, FinishedAt: *l.FinishedAt}
	if b.Details == nil || string(b.Details) == "null" {
		b.Details = json.RawMessage("{}")
	}
	if l.Stats != nil {
		b.Stats = *l.Stats
	}
	if l.EnqueuedAt != nil {
		b.Oldest, b.Newest = l.EnqueuedAt.Oldest, l.EnqueuedAt.Newest
		if b.Newest.Before(b.Oldest) {
			b.Oldest, b.Newest = b.Newest, b.Oldest
		}
	}
	return b, nil
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
