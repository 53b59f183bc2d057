package task

import (
	"crypto/rand"
	"sync"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// reserve is a file that holds room on the disk for deletions: before they free anything, they write to the queue, the journal and the
// catalog. On a full disk, the file is removed for them. Its bytes are random, so that no file system compresses them, and nobody reads
// them. A crash may leave any part of the file.
type reserve struct {
	fs   vfs.FS
	name string
	size int // bytes; 0: there is no reserve

	mu   sync.Mutex
	held bool // the file is complete
}

// fill writes the file if there is room.
func (r *reserve) fill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held || r.size == 0 {
		return
	}
	if info, err := r.fs.Stat(r.name); err == nil && info.Size() >= int64(r.size) {
		r.held = true
		return
	}
	b := make([]byte, r.size)
	rand.Read(b)
	f, err := r.fs.Create(r.name)
	if err == nil {
		_, err = f.Write(b)
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if r.held = err == nil; !r.held {
		_ = r.fs.Remove(r.name) // a part of it would only take room
	}
}

// release removes the file. It returns false if there is none.
func (r *reserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held || r.fs.Remove(r.name) != nil {
		return false
	}
	r.held = false
	return true
}

// roomFor reports whether a batch that failed because the disk is full may be tried again at once. It may if it has a deletion and the
// reserve was just removed for it.
func (q *Queue) roomFor(run *running, err error) bool {
	reason, parked := asParked(err)
	if !parked {
		reason = apierr.From(err)
	}
	if reason.Code != noSpace {
		return false
	}
	for _, t := range run.tasks {
		if makesRoom(t.Content) {
			return q.leaveReserve()
		}
	}
	return false
}

// leaveReserve removes the reserve for a deletion, and logs that. It returns false if there is none.
func (q *Queue) leaveReserve() bool {
	released := q.reserve.release()
	if released {
		q.log.Warn("the disk is full: a deletion gets the space of the reserve file", "file", q.reserve.name, "bytes", q.reserve.size)
	}
	return released
}
