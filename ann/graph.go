package ann

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"svc/simd"
)

// Graph is a navigable graph over rows of codes. It is immutable and safe for concurrent use.
type Graph struct {
	codes  Codes
	rows   int
	degree int    // neighbours a node may have above level 0; twice as many on it
	entry  uint32 // a node of the highest level

	links []uint32 // of level 0: rows × 2·degree slots
	upper []level  // upper[l-1] is level l
	touch func(links []uint32)
}

// level is a level above 0: its nodes, ascending, and degree slots per node.
type level struct {
	nodes []uint32
	links []uint32
}

// Rows returns how many rows there are.
func (g *Graph) Rows() int { return g.rows }

// slots returns a row's slots on a level; none when it is not on it.
func (g *Graph) slots(_ []uint32, row uint32, l int) []uint32 {
	if l == 0 {
		s := g.slotsAt(row)
		if g.touch != nil {
			g.touch(s)
		}
		return s
	}
	lv := &g.upper[l-1]
	i, found := slices.BinarySearch(lv.nodes, row)
	if !found {
		return nil
	}
	return lv.links[i*g.degree : (i+1)*g.degree]
}

func (g *Graph) slotsAt(row uint32) []uint32 {
	at := int(row) * 2 * g.degree
	return g.links[at : at+2*g.degree]
}

func (g *Graph) prefetch(row uint32) { simd.Prefetch(g.slotsAt(row)) }

// neighbours returns those of the slots that hold one.
func neighbours(slots []uint32) []uint32 {
	for i, row := range slots {
		if row == none {
			return slots[:i]
		}
	}
	return slots
}

// The encoded graph, all numbers uint32, little-endian:
//
//	0   magic "ANN1"
//	4   rows
//	8   degree
//	12  entry row
//	16  levels above 0
//	20  0, up to byte 64
//	64  level 0: rows × 2·degree slots; ^0 in those that are left, the last ones
//	…   a level from 1 up: the number of its nodes, the nodes ascending, then
//	    nodes × degree slots
//
// In a section that is aligned to cache lines, a node of level 0 with a degree
// of 16 is two of them.
const magic = 0x314e4e41

const headerWords = 16

const maxDegree = 1 << 16

// maxLevels bounds the height: with a degree of 2 or more, 2³² rows need no more.
const maxLevels = 32

// WriteTo writes the encoded graph (not its codes).
func (g *Graph) WriteTo(w io.Writer) (written int64, err error) {
	buf := make([]byte, 0, 64<<10)
	flush := func() {
		if err == nil {
			var n int
			n, err = w.Write(buf)
			written += int64(n)
		}
		buf = buf[:0]
	}
	words := func(words ...uint32) {
		for _, x := range words {
			if len(buf)+4 > cap(buf) {
				flush()
			}
			buf = binary.LittleEndian.AppendUint32(buf, x)
		}
	}
	header := [headerWords]uint32{magic, uint32(g.rows), uint32(g.degree), g.entry, uint32(len(g.upper))}
	words(header[:]...)
	words(g.links...)
	for _, l := range g.upper {
		words(uint32(len(l.nodes)))
		words(l.nodes...)
		words(l.links...)
	}
	flush()
	return written, err
}

// Parts splits an encoded graph into the head, the links of level 0, which are by far the largest part, and the upper levels. An
// invalid encoding is all head.
func Parts(encoded []byte) (head, level0, upper []byte) {
	const words = 4 * headerWords
	if len(encoded) < words {
		return encoded, nil, nil
	}
	rows, degree := binary.LittleEndian.Uint32(encoded[4:]), binary.LittleEndian.Uint32(encoded[8:])
	n := 8 * uint64(rows) * uint64(min(degree, maxDegree))
	if n > uint64(len(encoded)-words) {
		return encoded, nil, nil
	}
	return encoded[:words], encoded[words : words+n], encoded[words+n:]
}

// Open reads an encoded graph over the rows of codes. It aliases both, which must stay readable and unchanged while the graph is
// used. encoded must be aligned to 4 bytes, and to 64 for speed. Open checks the head and the upper levels. It does not read the
// links of level 0: a search ends a list of neighbours at an invalid row, so a damaged graph only finds less; Check reports damage.
// touch, if not nil, is called before a search reads links of level 0, to make sure that they are readable.
func Open(encoded []byte, codes Codes, touch func(links []uint32)) (*Graph, error) {
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
	g := &Graph{codes: codes, rows: int(w[1]), degree: int(w[2]), entry: w[3], touch: touch}
	levels := int(w[4])
	if !codes.sound() {
		return nil, fmt.Errorf("codes in rows of %d bytes are not padded or not aligned", codes.Stride)
	}
	if g.degree < 2 || g.degree > maxDegree || levels > maxLevels || g.rows > maxRows || codes.Rows() < g.rows {
		return nil, fmt.Errorf("graph of %d rows, degree %d, %d levels does not fit %d rows of codes", g.rows, g.degree, levels, codes.Rows())
	}
	for i, x := range w[5:headerWords] {
		if x != 0 {
			return nil, fmt.Errorf("graph has %#x in reserved word %d", x, 5+i)
		}
	}
	rest := w[headerWords:]
	take := func(n uint64) ([]uint32, bool) {
		if n > uint64(len(rest)) {
			return nil, false
		}
		part := rest[:n:n]
		rest = rest[n:]
		return part, true
	}
	var ok bool
	if g.links, ok = take(uint64(g.rows) * 2 * uint64(g.degree)); !ok {
		return nil, fmt.Errorf("graph is cut off on level 0")
	}
	for l := 1; l <= levels; l++ {
		count, ok := take(1)
		if !ok {
			return nil, fmt.Errorf("graph is cut off on level %d", l)
		}
		nodes, whole := take(uint64(count[0]))
		links, complete := take(uint64(count[0]) * uint64(g.degree))
		if len(nodes) == 0 || !whole || !complete {
			return nil, fmt.Errorf("graph is cut off on level %d", l)
		}
		for j, row := range nodes {
			if int(row) >= g.rows || j > 0 && row <= nodes[j-1] {
				return nil, fmt.Errorf("level %d: node %d is row %d of %d, out of order or range", l, j, row, g.rows)
			}
		}
		if err := g.checkLinks(links, g.degree); err != nil {
			return nil, fmt.Errorf("level %d: %w", l, err)
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

// Check reports an error when a link leads to no row. All links must be readable.
func (g *Graph) Check() error {
	if err := g.checkLinks(g.links, 2*g.degree); err != nil {
		return fmt.Errorf("level 0: %w", err)
	}
	return nil
}

// checkLinks checks the slots of a level: rows of the graph first, then none.
func (g *Graph) checkLinks(links []uint32, slots int) error {
	for at := 0; at < len(links); at += slots {
		ended := false
		for _, row := range links[at : at+slots] {
			if row == none {
				ended = true
			} else if ended || int(row) >= g.rows {
				return fmt.Errorf("node %d has row %d of %d as neighbour", at/slots, row, g.rows)
			}
		}
	}
	return nil
}
