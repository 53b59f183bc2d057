package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Import says where documents go, and how.
type Import struct {
	Index      string
	PrimaryKey string // "": the server finds it
	Delimiter  string // of CSV; "": a comma
	Update     bool   // existing documents keep the fields that the new ones lack
	BatchBytes int    // approximate size of a request; the server does not split it
	MaxTasks   int    // maximum number of requests waiting in the server's queue

	// Save, if not nil, stores a checkpoint. An import that starts with the last stored one continues from there.
	Save func(Checkpoint) error
	// Progress, if not nil, is called on progress.
	Progress func(Progress)
}

// Checkpoint is how far an import is.
type Checkpoint struct {
	Sent  int       `json:"sent"`  // documents that the server has taken, all before any other
	Tasks []Portion `json:"tasks"` // those not known to have ended; if there are none, the last one that did

	// Source identifies the documents and where they go, for the caller; "": an earlier svc wrote the checkpoint.
	Source string `json:"source,omitempty"`
}

// Portion is the documents of one request.
type Portion struct {
	Enqueued
	First int `json:"first"` // number of the first document, from 0
	Count int `json:"count"`
}

// Progress counts documents.
type Progress struct {
	Read    int // also those that were imported before
	Sent    int
	Done    int
	Waiting int // tasks of the import in the queue
}

// Known reports whether the server has the documents of a checkpoint. If it is another server, or was emptied since, the import
// starts again.
func (c *Client) Known(ctx context.Context, index string, at Checkpoint) (bool, error) {
	if len(at.Tasks) == 0 {
		return at.Sent == 0, nil
	}
	ended := true
	for _, p := range at.Tasks {
		t, err := c.Task(ctx, p.TaskUID)
		var refused *Error
		if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if t.EnqueuedAt != p.EnqueuedAt || t.IndexUID != index {
			return false, nil
		}
		ended = ended && t.Ended()
	}
	if !ended {
		return true, nil
	}
	err := c.Call(ctx, http.MethodGet, "/indexes/"+url.PathEscape(index), nil, nil)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return false, nil // it was deleted meanwhile
	}
	return err == nil, err
}

// bodyOf is the documents of a request.
type bodyOf struct {
	bytes []byte
	ends  []int // of each document
	first int
	err   error // that ended the reading
}

// Run imports documents, of which the server has already accepted the first at.Sent, and returns its progress. Documents that were
// sent and not acknowledged are sent again: they have ids, so there are no duplicates.
func (o *Import) Run(ctx context.Context, c *Client, documents *Documents, at Checkpoint) (Progress, error) {
	ctx, stop := context.WithCancel(ctx)
	bodies := make(chan bodyOf, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(bodies)
		o.read(ctx, documents, at.Sent, bodies)
	}()
	defer func() {
		stop()
		<-read
	}()
	r := run{Import: o, client: c, at: at}
	r.progress = Progress{Read: at.Sent, Sent: at.Sent, Done: at.Sent, Waiting: len(at.Tasks)}
	for _, p := range at.Tasks {
		r.progress.Done = min(r.progress.Done, p.First)
	}
	r.pending = slices.Clone(at.Tasks)
	for body := range bodies {
		if body.err != nil {
			return r.progress, fmt.Errorf("document %d: %w", body.first+1, body.err)
		}
		r.progress.Read = body.first + len(body.ends)
		if err := r.send(ctx, body, documents); err != nil {
			return r.progress, err
		}
	}
	for len(r.pending) > 0 {
		if err := r.wait(ctx); err != nil {
			return r.progress, err
		}
	}
	if r.progress.Read == 0 && ctx.Err() == nil {
		return r.progress, ErrNoDocuments
	}
	return r.progress, ctx.Err()
}

// ErrNoDocuments is the error of an import without documents.
var ErrNoDocuments = errors.New("there are no documents in it")

// read makes bodies of the documents after the first n.
func (o *Import) read(ctx context.Context, documents *Documents, n int, bodies chan<- bodyOf) {
	give := func(b bodyOf) bool {
		select {
		case bodies <- b:
			return true
		case <-ctx.Done():
			return false
		}
	}
	if err := documents.drop(ctx, n); err != nil {
		give(bodyOf{first: n, err: err})
		return
	}
	fresh := func(first int) bodyOf {
		return bodyOf{bytes: append(make([]byte, 0, o.BatchBytes+o.BatchBytes/8), documents.head...), first: first}
	}
	for body := fresh(n); ; n++ {
		document, ends, err := documents.next(ctx)
		if err == nil && (len(body.ends) == 0 || len(body.bytes)+len(document) <= o.BatchBytes) {
			body.add(document, ends)
			continue
		}
		if len(body.ends) > 0 && !give(body) {
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				give(bodyOf{first: n, err: err})
			}
			return
		}
		body = fresh(n)
		body.add(document, ends)
	}
}

func (b *bodyOf) add(document []byte, ends bool) {
	b.bytes = append(b.bytes, document...)
	if !ends {
		b.bytes = append(b.bytes, '\n')
	}
	b.ends = append(b.ends, len(b.bytes))
}

// run is an import in progress.
type run struct {
	*Import
	client   *Client
	at       Checkpoint
	pending  []Portion
	progress Progress
}

func (r *run) send(ctx context.Context, body bodyOf, documents *Documents) error {
	for len(r.pending) >= max(r.MaxTasks, 1) {
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
	query := url.Values{}
	if r.PrimaryKey != "" {
		query.Set("primaryKey", r.PrimaryKey)
	}
	if r.Delimiter != "" && documents.contentType == "text/csv" {
		query.Set("csvDelimiter", r.Delimiter)
	}
	method := http.MethodPost
	if r.Update {
		method = http.MethodPut
	}
	portion := Portion{First: body.first, Count: len(body.ends)}
	path := "/indexes/" + url.PathEscape(r.Index) + "/documents?" + query.Encode()
	err := r.client.send(ctx, method, path, documents.contentType, body.bytes, &portion.Enqueued)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusRequestEntityTooLarge && len(body.ends) > 1 {
		return r.halve(ctx, body, documents)
	}
	if err != nil {
		return fmt.Errorf("documents %d to %d: %w", body.first+1, body.first+len(body.ends), err)
	}
	r.pending = append(r.pending, portion)
	r.progress.Sent = portion.First + portion.Count
	return r.keep()
}

// halve sends a body that is too large for the server in two.
func (r *run) halve(ctx context.Context, body bodyOf, documents *Documents) error {
	half := len(body.ends) / 2
	cut := body.ends[half-1]
	second := bodyOf{bytes: slices.Concat(documents.head, body.bytes[cut:]), first: body.first + half}
	for _, end := range body.ends[half:] {
		second.ends = append(second.ends, end-cut+len(documents.head))
	}
	if err := r.send(ctx, bodyOf{bytes: body.bytes[:cut], ends: body.ends[:half], first: body.first}, documents); err != nil {
		return err
	}
	return r.send(ctx, second, documents)
}

// wait waits for the oldest task.
func (r *run) wait(ctx context.Context) error {
	oldest := r.pending[0]
	for pause := 10 * time.Millisecond; ; pause = min(pause*3/2, time.Second/2) {
		t, err := r.client.Task(ctx, oldest.TaskUID)
		var refused *Error
		if gone := errors.As(err, &refused) && refused.Status == http.StatusNotFound; !gone && err != nil {
			return err
		} else if !gone && !t.Ended() {
			if err := sleep(ctx, pause); err != nil {
				return err
			}
			continue
		} else if !gone && t.Err() != nil {
			return errors.Join(fmt.Errorf("documents %d to %d: %w", oldest.First+1, oldest.First+oldest.Count, t.Err()), r.restart())
		}
		break // a task that no longer exists has ended: only those can be deleted
	}
	r.pending = r.pending[1:]
	r.progress.Done = oldest.First + oldest.Count
	r.at.Tasks = []Portion{oldest}
	return r.keep()
}

// keep saves the checkpoint and tells of the progress.
func (r *run) keep() error {
	r.at.Sent = r.progress.Sent
	if len(r.pending) > 0 {
		r.at.Tasks = slices.Clone(r.pending)
	}
	r.progress.Waiting = len(r.pending)
	if r.Progress != nil {
		r.Progress(r.progress)
	}
	if r.Save == nil {
		return nil
	}
	return r.Save(r.at)
}

// restart goes back to the last acknowledged documents, so that those of a failed task are sent again.
func (r *run) restart() error {
	if r.Save == nil {
		return nil
	}
	return r.Save(Checkpoint{})
}
