package ann

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Graph is a navigable graph over rows of codes. It is immutable and may be
// searched by several goroutines at once.
type Graph struct {
	stride int
	codes  []int8
	rows   int
	degree int    // neighbours a node may have above level 0; twice as many on it
	entry  uint32 // a node of the highest level

	links []uint32 // of level 0: rows × (a count, then 2·degree slots)
	upper []level  // upper[l-1] is level l
}

// level is one level above 0: the nodes on it, ascending, and their neighbours
// (a count and degree slots a node).
type level struct {
	nodes []uint32
	links []uint32
}

// Rows returns how many rows there are.
func (g *Graph) Rows() int { return g.rows }

// appendNeighbours appends the neighbours of a row on a level.
func (g *Graph) appendNeighbours(dst []uint32, row uint32, l int) []uint32 {
	if l == 0 {
		at := int(row) * (2*g.degree + 1)
		return append(dst, g.links[at+1:at+1+int(g.links[at])]...)
	}
	lv := &g.upper[l-1]
	lo, hi := 0, len(lv.nodes)
	for lo < hi {
		mid := (lo + hi) / 2
		if lv.nodes[mid] < row {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(lv.nodes) || lv.nodes[lo] != row {
		return dst
	}
	at := lo * (g.degree + 1)
	return append(dst, lv.links[at+1:at+1+int(lv.links[at])]...)
}

// The encoded graph, all numbers uint32, little-endian:
//
//	0   magic "ANN1"
//	4   rows
//	8   degree
//	12  entry row
//	16  levels above 0, h
//	20  h counts of nodes, one a level from 1 up
//	…   links of level 0: rows × (1 + 2·degree): a count, then slots
//	…   a level from 1 up: its nodes ascending, then nodes × (1 + degree)
const magic = 0x314e4e41

const headerWords = 5

// maxLevels bounds the height: with a degree of 2 or more, 2³² rows need no more.
const maxLevels = 32

// Append appends the encoded graph (not its codes) to dst.
func (g *Graph) Append(dst []byte) []byte {
	words := func(w ...uint32) {
		for _, x := range w {
			dst = binary.LittleEndian.AppendUint32(dst, x)
		}
	}
	words(magic, uint32(g.rows), uint32(g.degree), g.entry, uint32(len(g.upper)))
	for _, l := range g.upper {
		words(uint32(len(l.nodes)))
	}
	words(g.links...)
	for _, l := range g.upper {
		words(l.nodes...)
		words(l.links...)
	}
	return dst
}

// Open reads an encoded graph over the rows of codes. It aliases both, which
// must stay readable and unchanged while the graph is used; encoded must be
// aligned to 4 bytes. Every number is checked, so that a damaged graph is an
// error here and never a wild read later.
func Open(encoded []byte, codes []int8, stride int) (*Graph, error) {
	if len(encoded)%4 != 0 || len(encoded) < 4*headerWords {
		return nil, fmt.Errorf("graph of %d bytes is cut off", len(encoded))
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(encoded)))%4 != 0 {
		return nil, fmt.Errorf("graph is not aligned to 4 bytes")
	}
	w := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(encoded))), len(encoded)/4)
	if w[0] != magic {
		return nil, fmt.Errorf("graph begins with %#x, want %#x", w[0], magic)
	}
	g := &Graph{stride: stride, codes: codes, rows: int(w[1]), degree: int(w[2]), entry: w[3]}
	levels := int(w[4])
	if g.degree < 2 || g.degree > 1<<16 || levels > maxLevels || stride <= 0 || len(codes)/stride < g.rows || len(w) < headerWords+levels {
		return nil, fmt.Errorf("graph of %d rows, degree %d, %d levels does not fit %d bytes of codes in rows of %d", g.rows, g.degree, levels, len(codes), stride)
	}
	counts, rest := w[headerWords:headerWords+levels], w[headerWords+levels:]
	take := func(n uint64) ([]uint32, bool) {
		if n > uint64(len(rest)) {
			return nil, false
		}
		part := rest[:n:n]
		rest = rest[n:]
		return part, true
	}
	var ok bool
	if g.links, ok = take(uint64(g.rows) * uint64(2*g.degree+1)); !ok {
		return nil, fmt.Errorf("graph is cut off on level 0")
	}
	if err := g.checkLinks(g.links, 2*g.degree); err != nil {
		return nil, fmt.Errorf("level 0: %w", err)
	}
	for i, n := range counts {
		nodes, whole := take(uint64(n))
		links, complete := take(uint64(n) * uint64(g.degree+1))
		if n == 0 || !whole || !complete {
			return nil, fmt.Errorf("graph is cut off on level %d", i+1)
		}
		for j, row := range nodes {
			if int(row) >= g.rows || j > 0 && row <= nodes[j-1] {
				return nil, fmt.Errorf("level %d: node %d is row %d of %d, out of order or range", i+1, j, row, g.rows)
			}
		}
		if err := g.checkLinks(links, g.degree); err != nil {
			return nil, fmt.Errorf("level %d: %w", i+1, err)
		}
		g.upper = append(g.upper, level{nodes, links})
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("%d words follow the graph", len(rest))
	}
	if g.rows > 0 && int(g.entry) >= g.rows {
		return nil, fmt.Errorf("entry is row %d of %d", g.entry, g.rows)
	}
	return g, nil
}

func (g *Graph) checkLinks(links []uint32, slots int) error {
	for at := 0; at < len(links); at += slots + 1 {
		n := int(links[at])
		if n > slots {
			return fmt.Errorf("node %d has %d neighbours, at most %d", at/(slots+1), n, slots)
		}
		for _, row := range links[at+1 : at+1+n] {
			if int(row) >= g.rows {
				return fmt.Errorf("node %d has row %d of %d as neighbour", at/(slots+1), row, g.rows)
			}
		}
	}
	return nil
}
