package vfs

import (
	"maps"
	"slices"
)

// lost is a run of bytes of a file that no later sync makes durable: a crash leaves zeros in their place.
type lost struct{ from, to int }

// Lose simulates a failed sync: everything unsynced in a file, or in the names of a directory, counts as written. Later syncs succeed
// without making it durable, as on Linux (Rebello et al., Can Applications Recover from fsync Failures?, 2020). It can be read until
// a crash. Data written again, or a name given again, is an ordinary change. Lose does nothing if the file is missing.
func (m *MemFS) Lose(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return
	}
	if !n.dir {
		from := len(n.durable)
		if n.truncated {
			from = 0
		}
		if from < len(n.data) {
			n.lost = append(n.lost, lost{from, len(n.data)})
		}
		return
	}
	if n.lostNames == nil {
		n.lostNames = map[string]bool{}
	}
	for _, names := range []map[string]*node{n.names, n.durableNames} {
		for name := range names {
			if n.names[name] != n.durableNames[name] {
				n.lostNames[name] = true
			}
		}
	}
}

// LoseOnError returns a hook that calls Lose for each sync that another hook lets fail.
func (m *MemFS) LoseOnError(before func(Op) error) func(Op) error {
	return func(o Op) error {
		err := before(o)
		if err != nil && (o.Kind == OpSync || o.Kind == OpSyncDir) {
			m.Lose(o.Name)
		}
		return err
	}
}

// stored returns what a sync of a file makes durable.
func (n *node) stored() []byte {
	if len(n.lost) == 0 {
		return n.data[:len(n.data):len(n.data)]
	}
	b := slices.Clone(n.data)
	for _, l := range n.lost {
		clear(b[l.from:l.to])
	}
	return b
}

// storedNames returns the names that a sync of a directory makes durable.
func (n *node) storedNames() map[string]*node {
	names := maps.Clone(n.names)
	for name := range n.lostNames {
		delete(names, name)
		if was := n.durableNames[name]; was != nil {
			names[name] = was
		}
	}
	return names
}

// set changes the entry of a name in a directory. nil removes it.
func (n *node) set(name string, to *node) {
	delete(n.lostNames, name)
	if to == nil {
		delete(n.names, name)
	} else {
		n.names[name] = to
	}
}
