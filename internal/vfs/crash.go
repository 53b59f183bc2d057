package vfs

import (
	"math/rand/v2"
	"slices"
)

// CrashClone returns a file system as a power failure at this moment could leave this one, which stays as it is.
//
// With r nil only synced data survives. Otherwise r decides, for each name that changed since the last SyncDir of its directory,
// whether the change survives, and for each file how many of its unsynced bytes do and which of their blocks are torn: a torn block
// reads as zeros. Changes of names survive independently of each other, which is less than journaling file systems promise. But a
// name always has its content from before or after a change.
func (m *MemFS) CrashClone(r *rand.Rand) *MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crash{r, map[*node]*node{}}
	return &MemFS{root: c.clone(m.root), locks: make(map[string]bool)}
}

type crash struct {
	r    *rand.Rand
	done map[*node]*node // hard links stay links
}

func (c *crash) clone(n *node) *node {
	if to := c.done[n]; to != nil {
		return to
	}
	to := &node{dir: n.dir, modified: n.modified}
	c.done[n] = to
	if !n.dir {
		to.data = c.bytes(n)
		to.durable = to.data[:len(to.data):len(to.data)]
		return to
	}
	to.names, to.durableNames = map[string]*node{}, map[string]*node{}
	keys := make([]string, 0, len(n.names)+len(n.durableNames))
	for name := range n.names {
		keys = append(keys, name)
	}
	for name := range n.durableNames {
		keys = append(keys, name)
	}
	slices.Sort(keys) // so that a seed gives the same clone again
	for _, name := range slices.Compact(keys) {
		was, is := n.durableNames[name], n.names[name]
		if c.r != nil && was != is && c.r.IntN(2) == 0 && !n.lostNames[name] {
			was = is
		}
		if was != nil {
			to.names[name] = c.clone(was)
			to.durableNames[name] = to.names[name]
		}
	}
	return to
}

const block = 512

// bytes returns the surviving bytes of a file, as a copy.
func (c *crash) bytes(n *node) []byte {
	if c.r == nil {
		return slices.Clone(n.durable)
	}
	kept, data := len(n.durable), n.stored()
	if n.truncated { // the old bytes, or a part of the new ones
		if c.r.IntN(2) == 0 {
			return slices.Clone(n.durable)
		}
		kept = 0
	}
	left := slices.Clone(data[:kept+c.r.IntN(len(data)-kept+1)])
	for from := kept; from < len(left); {
		to := min((from/block+1)*block, len(left))
		if c.r.IntN(4) == 0 {
			clear(left[from:to])
		}
		from = to
	}
	return left
}
