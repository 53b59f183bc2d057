package task

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

const payloadBuffer = 64 << 10

// Payload is a document payload being received: a file that becomes durable
// with Enqueue. It belongs to one goroutine, which ends it with Enqueue or Discard.
type Payload struct {
	q    *Queue
	name string // under payloads/
	file vfs.File
	size int64
	sum  *xxhash.Digest
	lost uint64 // Queue.lostNames when it was made

	buffer []byte // the last bytes, which the file has not got
	failed error  // of a write of the file
	// content is what the file has, if a log may want that and it is small; else nil.
	content []byte

	spools int // made so far
}

func (q *Queue) payloadPath(name string) string { return path.Join(q.o.Dir, "payloads", name) }

// NewPayload begins a payload.
func (q *Queue) NewPayload() (*Payload, error) {
	var id [12]byte
	rand.Read(id[:])
	p := &Payload{q: q, name: hex.EncodeToString(id[:]) + ".ndjson", sum: xxhash.New(), lost: q.lostNames.Load()}
	f, err := q.fs.Create(q.payloadPath(p.name))
	if err != nil {
		return nil, fmt.Errorf("cannot create a payload file: %w", err)
	}
	p.file = f
	return p, nil
}

// Write appends documents as NDJSON, in pieces of any size. Most payloads are small, so the buffer begins as what the first piece needs.
func (p *Payload) Write(b []byte) (int, error) {
	if len(p.buffer)+len(b) > payloadBuffer {
		p.flush()
	}
	if len(b) > payloadBuffer {
		p.put(b)
	} else {
		p.buffer = append(p.buffer, b...)
	}
	if p.failed != nil {
		return 0, fmt.Errorf("cannot write %s: %w", p.file.Name(), p.failed)
	}
	p.size += int64(len(b))
	_, _ = p.sum.Write(b)
	return len(b), nil
}

// flush writes the buffer to the file.
func (p *Payload) flush() {
	p.put(p.buffer)
	p.buffer = p.buffer[:0]
}

// put writes bytes to the file. After an error it writes no more.
func (p *Payload) put(b []byte) {
	if p.failed == nil && len(b) > 0 {
		_, p.failed = p.file.Write(b)
	}
}

// Spool makes a place for the text of a document that is too large for memory (document.Spooler).
func (p *Payload) Spool() (*mapped.Spool, error) {
	p.spools++
	return mapped.NewSpool(p.q.fs, fmt.Sprintf("%s-%d%s", p.q.payloadPath(p.name), p.spools, vfs.TempSuffix))
}

// Discard removes the file. It may follow a failed Enqueue, and does nothing after a successful one.
func (p *Payload) Discard() {
	if p.name == "" {
		return
	}
	if p.file != nil {
		p.file.Close()
	}
	if err := p.q.fs.Remove(p.q.payloadPath(p.name)); err != nil {
		p.q.log.Warn("cannot remove a payload file; the next start will", "file", p.name, "error", err)
	}
	p.name, p.file = "", nil
}

// finish makes the bytes durable. The name becomes durable when the directory is synced. If the log stores the content, it makes the
// bytes durable with the task, so they need no sync of their own.
func (p *Payload) finish() error {
	if p.file == nil {
		return errors.New("cannot use a payload twice")
	}
	if p.size <= commit.SmallFile && p.size == int64(len(p.buffer)) && commit.Logged(p.q.fs) {
		p.content = p.buffer
	}
	p.put(p.buffer)
	err := p.failed
	if err == nil && (p.content == nil || !commit.Keep(p.q.fs, p.q.payloadPath(p.name), p.content)) {
		err = p.file.Sync()
	}
	err = errors.Join(err, p.file.Close())
	p.file, p.buffer = nil, nil
	if err != nil {
		return fmt.Errorf("cannot store payload %s: %w", p.name, err)
	}
	return nil
}

// rename renames the file to its own name if a sync of the directory has failed since it was created, because the next sync says
// nothing about that name.
func (p *Payload) rename() error {
	lost := p.q.lostNames.Load()
	if p.lost == lost {
		return nil
	}
	p.lost = lost
	return vfs.Rename(p.q.fs, p.q.payloadPath(p.name))
}

// fewPayloads are removed at once, more in the background. On some file systems a removal takes a millisecond, and users
// of the queue would wait.
const fewPayloads = 256

// unneeded are the payloads to remove in the background. If the program ends before, they are removed after the next start.
type unneeded struct {
	mu    sync.Mutex
	names []string
	some  chan struct{} // one slot: there are some
}

// add has payloads removed.
func (u *unneeded) add(names []string) {
	u.mu.Lock()
	u.names = append(u.names, names...)
	u.mu.Unlock()
	select {
	case u.some <- struct{}{}:
	default:
	}
}

// take returns one of them.
func (u *unneeded) take() (name string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := len(u.names)
	if n == 0 {
		u.names = nil
		return "", false
	}
	name = u.names[n-1]
	u.names = u.names[:n-1]
	return name, true
}

// dropPayloads releases one use of these payloads, and removes those without users.
func (q *Queue) dropPayloads(names []string) {
	names = slices.DeleteFunc(names, func(name string) bool { return !q.unneed(name) })
	if len(names) > fewPayloads {
		q.unneeded.add(names)
		return
	}
	for _, name := range names {
		q.removePayload(name)
	}
}

// removeUnneeded removes payloads in the background.
func (q *Queue) removeUnneeded() {
	defer q.done.Done()
	for q.ctx.Err() == nil {
		if name, ok := q.unneeded.take(); ok {
			q.removePayload(name)
			continue
		}
		select {
		case <-q.unneeded.some:
		case <-q.ctx.Done():
		}
	}
}

// removePayload removes a payload file, and counts its bytes as free. A failure is logged: the next start
// removes what no task needs.
func (q *Queue) removePayload(name string) {
	info, err := q.fs.Stat(q.payloadPath(name))
	if err == nil {
		err = q.fs.Remove(q.payloadPath(name))
	}
	switch {
	case err == nil:
		q.payloadBytes.Add(-info.Size())
	case !errors.Is(err, fs.ErrNotExist):
		q.log.Warn("cannot remove a payload file; the next start will", "file", name, "error", err)
	}
}

// Documents opens the stored payload of an unfinished addition as NDJSON; task_file_not_found.
func (q *Queue) Documents(uid uint32) (io.ReadCloser, error) {
	missing := apierr.New("task_file_not_found", "Task %d has no documents. Only unfinished additions and updates have documents.", uid)
	t, err := q.Task(uid, nil)
	if err != nil {
		return nil, err
	}
	c, ok := t.Content.(AddDocuments)
	if !ok || t.Status.Finished() || c.File == "" {
		return nil, missing
	}
	f, err := q.fs.Open(q.payloadPath(c.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing // finished since
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the payload of task %d: %w", uid, err)
	}
	return f, nil
}
