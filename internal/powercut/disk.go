package powercut

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Disk is a tree of files as the events of a log leave it, with what of it is durable.
type Disk struct {
	nodes []*node // by number; 0 is the root
	stale []byte  // old bytes, of which unwritten blocks may be full
}

type node struct {
	dir     bool
	durable []byte
	pending []change // since; of files

	names, durableNames map[string]int // of directories
	renamed             []renaming     // since; of directories
}

// change is a write, or a truncation when data is nil.
type change struct {
	at     int // number of the event
	offset int64
	data   []byte
}

// renaming is a name that now refers to another node, or to none (-1).
type renaming struct {
	at   int
	name string
	node int
}

func newNode(dir bool) *node {
	n := &node{dir: dir}
	if dir {
		n.names, n.durableNames = map[string]int{}, map[string]int{}
	}
	return n
}

// NewDisk returns an empty tree.
func NewDisk() *Disk { return &Disk{nodes: []*node{newNode(true)}} }

// Apply makes the event number i of a log happen.
func (d *Disk) Apply(i int, e *Event) {
	set := func(dir int, name string, to int) {
		n := d.nodes[dir]
		if to < 0 {
			delete(n.names, name)
		} else {
			n.names[name] = to
		}
		n.renamed = append(n.renamed, renaming{i, name, to})
	}
	switch e.Kind {
	case Create, Mkdir:
		for len(d.nodes) <= e.Node {
			d.nodes = append(d.nodes, nil)
		}
		d.nodes[e.Node] = newNode(e.Kind == Mkdir)
		set(e.Dir, e.Name, e.Node)
	case Write:
		n := d.nodes[e.Node]
		n.pending = append(n.pending, change{i, e.Offset, e.Data})
		if len(e.Data) > len(d.stale) {
			d.stale = e.Data
		}
	case Truncate:
		n := d.nodes[e.Node]
		n.pending = append(n.pending, change{i, e.Offset, nil})
	case Rename:
		set(e.Dir, e.Name, -1)
		set(e.ToDir, e.To, e.Node)
	case Link:
		set(e.ToDir, e.To, e.Node)
	case Unlink:
		set(e.Dir, e.Name, -1)
	case Sync:
		d.nodes[e.Node].sync(e.Since)
	}
}

// sync makes the events before the event number since durable.
func (n *node) sync(since int) {
	rest := n.pending[:0:0]
	for _, c := range n.pending {
		if c.at >= since {
			rest = append(rest, c)
			continue
		}
		if c.data == nil {
			n.durable = resized(n.durable, c.offset)
			continue
		}
		if end := c.offset + int64(len(c.data)); end > int64(len(n.durable)) {
			n.durable = resized(n.durable, end)
		}
		copy(n.durable[c.offset:], c.data)
	}
	n.pending = rest
	names := n.renamed[:0:0]
	for _, r := range n.renamed {
		switch {
		case r.at >= since:
			names = append(names, r)
		case r.node < 0:
			delete(n.durableNames, r.name)
		default:
			n.durableNames[r.name] = r.node
		}
	}
	n.renamed = names
}

func resized(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size]
	}
	return append(slices.Clone(b), make([]byte, size-int64(len(b)))...)
}

// Leave writes what a power cut at this moment may leave of the directory called name, as r decides, to the new directory dir. Data
// that was not synced may be in any state: every sector in any of its versions since, sectors never written as zeros or old bytes,
// files longer or shorter, and each name as before or after, independently of the other names and of the content. If the directory's
// own name is lost, nothing is created.
func (d *Disk) Leave(name, dir string, r *rand.Rand) error {
	c := cut{d: d, r: r, kept: []float64{0, 1, r.Float64(), r.Float64()}[r.IntN(4)], sector: []int{512, 4096}[r.IntN(2)]}
	at, ok := c.names(d.nodes[0])[name]
	if !ok {
		return nil
	}
	return c.directory(d.nodes[at], dir)
}

// cut is one possible power cut.
type cut struct {
	d      *Disk
	r      *rand.Rand
	kept   float64 // of unsynced changes
	sector int     // bytes that are written whole or not at all
}

func (c *cut) keeps() bool { return c.r.Float64() < c.kept }

// names returns the surviving names of a directory.
func (c *cut) names(n *node) map[string]int {
	names := maps.Clone(n.durableNames)
	for _, r := range n.renamed {
		switch {
		case !c.keeps():
		case r.node < 0:
			delete(names, r.name)
		default:
			names[r.name] = r.node
		}
	}
	return names
}

func (c *cut) directory(n *node, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	names := c.names(n)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		child, at := c.d.nodes[names[name]], filepath.Join(dir, name)
		if child.dir {
			if err := c.directory(child, at); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(at, c.bytes(child), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// bytes returns the surviving bytes of a file.
func (c *cut) bytes(n *node) []byte {
	if len(n.pending) == 0 {
		return n.durable
	}
	b := slices.Clone(n.durable)
	for _, p := range n.pending {
		if p.data == nil {
			if c.keeps() {
				b = c.grown(resized(b, min(p.offset, int64(len(b)))), p.offset)
			}
			continue
		}
		for from := 0; from < len(p.data); {
			at := p.offset + int64(from)
			to := min(len(p.data), from+c.sector-int(at%int64(c.sector)))
			if c.keeps() {
				b = c.grown(b, at)
				if end := at + int64(to-from); end > int64(len(b)) {
					b = resized(b, end)
				}
				copy(b[at:], p.data[from:to])
			}
			from = to
		}
	}
	return b
}

// grown lengthens a file by bytes that were never written to it.
func (c *cut) grown(b []byte, size int64) []byte {
	old := len(b)
	if size <= int64(old) {
		return b
	}
	b = resized(b, size)
	if len(c.d.stale) > 0 && c.r.IntN(2) == 0 {
		for i := old; i < len(b); i++ {
			b[i] = c.d.stale[i%len(c.d.stale)]
		}
	}
	return b
}
