package consensus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/hashicorp/raft"

	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// note is the content of a snapshot. The data are those of the directory.
type note struct {
	Index         uint64             `json:"index"`
	Term          uint64             `json:"term"`
	Configuration raft.Configuration `json:"configuration"`
	ConfiguredAt  uint64             `json:"configuredAt"` // index of the entry with the configuration
}

func (n *note) meta() *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: fmt.Sprintf("%d.%d", n.Term, n.Index), Index: n.Index, Term: n.Term,
		Configuration: n.Configuration, ConfigurationIndex: n.ConfiguredAt, Size: int64(len(noteBody)),
	}
}

// noteBody is sent as the content of a snapshot. raft.NetworkTransport multiplies its timeout for the answer by the number of bytes
// of the content (see Tune), because the other member copies the data directory meanwhile.
var noteBody = strings.Repeat(" ", 1<<10)

// notes keeps the last note in a sealed JSON file.
type notes struct {
	fs      vfs.FS
	name    string
	applied func() uint64

	mu      sync.Mutex
	newest  func() *note // what another member is sent; nil: the one in the file
	kept    *note
	pending *note // of another member, whose data are not here yet
}

// openNotes reads the note of the last snapshot; a missing file has none.
func openNotes(fsys vfs.FS, name string) (*notes, error) {
	s := &notes{fs: fsys, name: name}
	b, err := sealedjson.Read(fsys, name, snapshotVersion)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	n := new(note)
	if err == nil {
		err = json.Unmarshal(b, n)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	s.kept = n
	return s, nil
}

// keep makes a note durable.
func (s *notes) keep(n *note) error {
	b, err := json.Marshal(n)
	if err == nil {
		err = sealedjson.Write(s.fs, s.name, snapshotVersion, b)
	}
	if err != nil {
		return fmt.Errorf("cannot note how far the log of the group was cut: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.pending = n, nil
	return nil
}

// take returns the note of another member that waits for its data.
func (s *notes) take() *note {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

func (s *notes) last() *note {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept
}

func (s *notes) sendNewest(newest func() *note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = newest
}

// Create implements raft.SnapshotStore.
func (s *notes) Create(_ raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	return &sink{s, &note{index, term, c, at}}, nil
}

// List implements raft.SnapshotStore.
func (s *notes) List() ([]*raft.SnapshotMeta, error) {
	n := s.last()
	s.mu.Lock()
	newest := s.newest
	s.mu.Unlock()
	if newest != nil {
		if x := newest(); x != nil {
			n = x
		}
	}
	if n == nil {
		return nil, nil
	}
	return []*raft.SnapshotMeta{n.meta()}, nil
}

// Open implements raft.SnapshotStore.
func (s *notes) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	body := io.NopCloser(strings.NewReader(noteBody))
	if p := s.take(); p != nil && p.meta().ID == id {
		return p.meta(), body, nil
	}
	all, err := s.List()
	if err != nil || len(all) == 0 {
		return nil, nil, errors.Join(err, fmt.Errorf("there is no snapshot %s", id))
	}
	return all[0], body, nil // or a later one, which is as good
}

// sink is a raft.SnapshotSink.
type sink struct {
	s *notes
	n *note
}

func (k *sink) Write(b []byte) (int, error) { return len(b), nil }
func (k *sink) ID() string                  { return k.n.meta().ID }
func (k *sink) Cancel() error               { return nil }

// Close stores a note of this member's own data. For a note of another member's data, it waits until the data are here.
func (k *sink) Close() error {
	if k.n.Index <= k.s.applied() {
		return k.s.keep(k.n)
	}
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	k.s.pending = k.n
	return nil
}
