package network

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"svc/internal/shard"
)

// A change of the network's shape is one task on every instance that was or will be part of it. It has phases, and each is stored
// before its work begins:
//
//	waiting   finish the writes accepted before the change, with the old shape
//	moving    fetch the documents that the instance will own from their owners
//	moved     the instance has them all; the leader decides about the change
//	switched  the change is committed: searches use the new shape
//	finished  documents of other instances are deleted
//
// The leader commits, by storing that, when it and every other instance of the new network have moved. This is the moment of the
// change. Until then any instance can cancel it: the old shape applies again, and documents that have moved stay where they are,
// hidden. Afterwards only the deletion can be abandoned. An instance deletes once all have switched, so that searches planned earlier
// still find everything.
//
// After a crash the task runs again in the stored phase. In moving it continues after the last stored document of each index. A
// document fetched twice replaces itself.
type phase int

const (
	waiting phase = iota
	moving
	moved
	switched
	finished
)

var phaseNames = [...]string{"waiting", "moving", "moved", "switched", "finished"}

func (p phase) String() string { return phaseNames[p] }

// MarshalText and UnmarshalText store the name.
func (p phase) MarshalText() ([]byte, error) { return []byte(phaseNames[p]), nil }

func (p *phase) UnmarshalText(text []byte) error {
	for i, name := range phaseNames {
		if name == string(text) {
			*p = phase(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not a phase of a change", text)
}

// change is a change that is under way here.
type change struct {
	Task     uint32   `json:"task"`
	Phase    phase    `json:"phase"`
	Before   *Network `json:"before"`   // of this instance, in force again when the change is canceled
	Previous *Network `json:"previous"` // of the whole network: says which instance has which documents
	// Rebuilt are remotes that start empty and get all writes since the change was announced. Remotes that were lost again since, or
	// restored from a snapshot of the time of the change, are left out.
	Rebuilt []string `json:"rebuilt,omitempty"`
	// Commit says that the leader has committed; of the leader alone.
	Commit bool `json:"commit,omitempty"`
	// Cancel says that the change is to be canceled, if the leader has not committed.
	Cancel  bool              `json:"cancel,omitempty"`
	Cleared bool              `json:"cleared,omitempty"` // documents that this instance did not own before are deleted: see clear
	Cursors map[string]uint32 `json:"cursors,omitempty"` // by source and index: the last document that is stored
	Fetched []string          `json:"fetched,omitempty"` // sources that are completely stored
}

// announced is the state of the task of a change: all that an instance needs to know of it.
type announced struct {
	Network  *Network `json:"network"`
	Previous *Network `json:"previous"`
	Rebuilt  []string `json:"rebuilt,omitempty"` // remotes that begin with nothing: what they have is not to be used
	// Absent are the remotes of Rebuilt that are still away. They do not get the change, and the change does not wait for them: a
	// later change includes them.
	Absent []string `json:"absent,omitempty"`
	// Ages is set after a restore of the leader from a snapshot. The higher the age of an instance, the more of the leader's writes
	// it lacks. Instances that are not in it have all. nil: no restore.
	Ages map[string]int `json:"ages"`
}

// outcome is how a change ended here.
type outcome struct {
	Version   uuid.UUID `json:"version"`
	Committed bool      `json:"committed"`
}

const keptOutcomes = 16

// view is all that is asked of a network while requests are answered. It is immutable.
type view struct {
	network   *Network // as it is shown, and as writes see it
	searching *Network // as searches see it
	writing   *Network // by which documents of additions are kept
	rings     map[uuid.UUID]*shard.Ring
	lost      []string // stored.Lost
}

// viewOf works out what s means.
func viewOf(s *stored) *view {
	v := &view{network: s.Network, searching: s.Network, writing: s.Network, rings: map[uuid.UUID]*shard.Ring{}, lost: s.Lost}
	if c := s.Change; c != nil {
		v.rings[c.Before.Version] = ringOf(c.Before)
		if c.Phase < switched {
			v.searching = c.Before
		}
		if c.Phase == waiting {
			v.writing = c.Before
		}
	}
	v.rings[s.Network.Version] = ringOf(s.Network)
	return v
}

// ringOf returns the shards of a network, nil without a leader.
func ringOf(n *Network) *shard.Ring {
	if !n.Led() {
		return nil
	}
	return shard.NewRing(n.ShardNames())
}

// keeps returns a function that tells which documents a remote owns, or nil for all if there is no leader.
func (n *Network) keeps(remote string) func(id []byte) bool {
	ring := ringOf(n)
	if ring == nil {
		return nil
	}
	own := make([]bool, len(ring.Names()))
	for i, name := range ring.Names() {
		for _, owner := range n.Shards[name].Remotes {
			own[i] = own[i] || owner == remote && remote != ""
		}
	}
	return func(id []byte) bool { return own[ring.Owner(id)] }
}

// decodeAnnounced reads the state of a task. It may come from another instance, so both networks are checked.
func decodeAnnounced(state json.RawMessage) (*announced, error) {
	a := new(announced)
	if err := json.Unmarshal(state, a); err != nil {
		return nil, fmt.Errorf("cannot read the change of the network: %w", err)
	}
	if a.Network == nil || a.Previous == nil {
		return nil, fmt.Errorf("the change of the network lacks its shape")
	}
	if err := a.Network.check(); err != nil {
		return nil, err
	}
	return a, a.Previous.check()
}

// record notes how a change ended.
func (s *stored) record(version uuid.UUID, committed bool) {
	s.Outcomes = append(s.Outcomes, outcome{version, committed})
	if n := len(s.Outcomes); n > keptOutcomes {
		s.Outcomes = append([]outcome(nil), s.Outcomes[n-keptOutcomes:]...)
	}
}

// undo ends a change without a commit: the shape from before is in force again, under the version of the change, by which instances
// know what they agree on.
func (s *stored) undo() {
	version, before := s.Network.Version, s.Change.Before.clone()
	before.Version = version
	s.Network, s.Change = before, nil
	s.Lost = slices.DeleteFunc(slices.Clone(s.Lost), func(name string) bool { return !before.Led() || before.Remotes[name] == nil })
	s.record(version, false)
}

// uncommitted reports whether there is a change under way that this instance, which leads, has not committed.
func (s *stored) uncommitted() bool {
	return s.Change != nil && !s.Change.Commit && s.Change.Phase < switched
}

// undoUncommitted undoes the change under way, if it is not committed.
func (s *stored) undoUncommitted() bool {
	undone := s.uncommitted()
	if undone {
		s.undo()
	}
	return undone
}

// lose records that a later change has to give a remote a copy of everything that it owns.
func (s *stored) lose(remote string) {
	if !slices.Contains(s.Lost, remote) {
		s.Lost = append(slices.Clone(s.Lost), remote)
	}
	if s.Change != nil {
		s.Change.Rebuilt = slices.DeleteFunc(slices.Clone(s.Change.Rebuilt), func(name string) bool { return name == remote })
	}
}

// rebuilds reports whether the change under way gives a remote a copy of all that it owns.
func (s *stored) rebuilds(remote string) bool {
	return s.Change != nil && slices.Contains(s.Change.Rebuilt, remote)
}

// forgoes reports whether writes are not sent to a remote, because it will get a copy of the data.
func (s *stored) forgoes(remote string) bool {
	return slices.Contains(s.Lost, remote) && !s.rebuilds(remote)
}

// outlived reports whether a change is older than all recorded outcomes. An instance that asks for it was restored from an old
// snapshot. There the change ends without a commit, and the instance gets a copy of its data, or continues alone.
func (s *stored) outlived(version uuid.UUID) bool {
	return len(s.Outcomes) == keptOutcomes && version != uuid.Nil && newer(s.Outcomes[0].Version, version)
}

// ended returns how a change ended here, nil when it has not.
func (s *stored) ended(version uuid.UUID) *outcome {
	for i := range s.Outcomes {
		if s.Outcomes[i].Version == version {
			return &s.Outcomes[i]
		}
	}
	return nil
}
