package consensus

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// stable keeps the term and the vote in a sealed JSON file. Raft panics if the term cannot be written. Instead it waits until that is
// possible, for example until a full disk has room: the member answers nothing meanwhile.
type stable struct {
	fs      vfs.FS
	name    string
	ended   chan struct{}   // closed when raft is shut down; nil: nothing waits
	done    <-chan struct{} // closed with the node
	opening <-chan struct{} // closed when nobody waits any more for the node to be opened
	waits   func(error)     // is called when a wait begins
	fail    func(error)     // has the node opened again

	mu     sync.Mutex
	values map[string][]byte
	// unsaved: raft continues with a term that is not in the file. The member then accepts no entries and gives no votes. This
	// happens if raft was shut down while it waited, or if two terms arrived at the same time, the lower one last.
	unsaved bool
}

// Where raft keeps the term, the term of its last vote, and for whom that was.
const (
	termKey      = "CurrentTerm"
	voteTermKey  = "LastVoteTerm"
	candidateKey = "LastVoteCand"
)

// retryTime is how long a member waits before it writes the term again.
const retryTime = 100 * time.Millisecond

var errTerm = errors.New("the term of this member is not the one in its file")

// openStable reads term and vote. A missing file belongs to a member that has never voted.
func openStable(fsys vfs.FS, name string) (*stable, error) {
	s := &stable{fs: fsys, name: name, values: map[string][]byte{}}
	b, err := sealedjson.Read(fsys, name, stateVersion)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s.values)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return s, nil
}

// Set implements raft.StableStore.
func (s *stable) Set(key, value []byte) error {
	for first := true; ; first = false {
		err := s.set(string(key), value)
		if err == nil || s.ended == nil || string(key) != termKey {
			return err
		}
		if first {
			s.waits(err)
		}
		select {
		case <-time.After(retryTime):
			continue
		case <-s.ended:
		case <-s.done:
		case <-s.opening:
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unsaved = true
		return nil
	}
}

// set stores a value durably, or changes nothing. Raft continues after an error of some calls: see unsaved. It does not store a term
// below the stored one: it returns nil, and the node is opened again.
func (s *stable) set(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaved {
		return errTerm
	}
	was, had := s.values[key]
	if had && bytes.Equal(was, value) { // raft notes the term whenever it begins
		return nil
	}
	if key == termKey && s.ended != nil && bytes.Compare(value, was) < 0 && had {
		// Raft notes terms of messages on two goroutines, which may both have waited. It continues with the term that was noted last.
		s.unsaved = true
		s.fail(fmt.Errorf("term %x comes behind term %x", value, was))
		return nil
	}
	before := maps.Clone(s.values)
	s.values[key] = value
	if key == voteTermKey { // raft notes next for whom it votes: the one of the term before gets no vote in this one
		delete(s.values, candidateKey)
	}
	b, err := json.Marshal(s.values)
	if err == nil {
		err = sealedjson.Write(s.fs, s.name, stateVersion, b)
	}
	if err != nil {
		s.values = before
		return fmt.Errorf("cannot note the term or the vote: %w", err)
	}
	return nil
}

// takes returns why the member takes no entries.
func (s *stable) takes() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaved {
		return errTerm
	}
	return nil
}

// Get implements raft.StableStore.
func (s *stable) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[string(key)], nil
}

// SetUint64 implements raft.StableStore.
func (s *stable) SetUint64(key []byte, n uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, n))
}

// GetUint64 implements raft.StableStore.
func (s *stable) GetUint64(key []byte) (uint64, error) {
	b, err := s.Get(key)
	if err != nil || len(b) == 0 {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("%s has no number under %s", s.name, key)
	}
	return binary.BigEndian.Uint64(b), nil
}
