package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/dump"
	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// stored is the content of the file. An import of a dump writes it, too: with the network alone.
type stored struct {
	Network  *Network  `json:"network"`
	Change   *change   `json:"change,omitempty"` // that which is under way
	Outcomes []outcome `json:"outcomes,omitempty"`
	// Lost are the remotes that were away so long that the leader has dropped the writes that they lack. They get a copy of
	// everything that they own.
	Lost []string `json:"lost,omitempty"`
	// Restored says that this instance was restored from a snapshot: it lacks what it has acknowledged since. See SetBack.
	Restored bool `json:"restored,omitempty"`
}

// read reads the file of a network. A missing file means no network.
func read(fsys vfs.FS, file string) (*stored, error) {
	b, err := sealedjson.Read(fsys, file, dump.NetworkVersion)
	if errors.Is(err, fs.ErrNotExist) {
		return &stored{Network: empty()}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the network: %w", err)
	}
	s := new(stored)
	err = json.Unmarshal(b, s)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the network: %w", &apierr.Corruption{File: file, Offset: -1, Reason: err.Error()})
	}
	return s, nil
}

// check refuses a file that lacks what each state has.
func (s *stored) check() error {
	if s.Network == nil {
		return errors.New("there is no network in it")
	}
	if c := s.Change; c != nil {
		if c.Before == nil || c.Previous == nil {
			return errors.New("its change does not say what was before")
		}
		if err := errors.Join(c.Before.check(), c.Previous.check()); err != nil {
			return err
		}
	}
	return s.Network.check()
}

// check refuses what patches never make, such as a shard without an owner. It replaces nil maps.
func (n *Network) check() error {
	if n.Remotes == nil {
		n.Remotes = map[string]*Remote{}
	}
	if n.Shards == nil {
		n.Shards = map[string]*Shard{}
	}
	for name, r := range n.Remotes {
		if r == nil {
			return fmt.Errorf("the remote %q is null", name)
		}
	}
	for name, s := range n.Shards {
		if s == nil {
			return fmt.Errorf("the shard %q is null", name)
		}
		if n.Led() && len(s.Remotes) == 0 {
			return fmt.Errorf("the shard %q has no remote", name)
		}
	}
	if n.Led() && len(n.Shards) == 0 {
		return errors.New("there is a leader, but no shard")
	}
	if n.Led() && n.Remotes[*n.Leader] == nil {
		return fmt.Errorf("the leader %q is none of the remotes", *n.Leader)
	}
	return nil
}

func (s *stored) write(fsys vfs.FS, file string) error {
	if err := sealedjson.Write(fsys, file, dump.NetworkVersion, encode(s)); err != nil {
		return fmt.Errorf("cannot store the network: %w", err)
	}
	return nil
}

// newVersion returns the version of a change. It is greater than others, the versions of earlier changes by any leader, because
// clocks may differ and be set back.
func newVersion(others ...uuid.UUID) uuid.UUID {
	const stamp = 6 // bytes of a version that are milliseconds, big endian
	v := uuid.Must(uuid.NewV7())
	for _, o := range others {
		if newer(v, o) {
			continue
		}
		copy(v[:stamp], o[:])
		for i := stamp - 1; i >= 0; i-- {
			if v[i]++; v[i] != 0 {
				break
			}
		}
	}
	return v
}
