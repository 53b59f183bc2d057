package segment

import (
	"cmp"
	"context"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// prefixGroup makes the postings of prefixes that begin with the same one. It gathers and sorts the occurrences of their words once. Each
// carries the longest of these prefixes that its word has. In order, they are then appended to the lists of that prefix and of all
// shorter ones.
type prefixGroup struct {
	order  []wordOrder // all words of the segment
	lists  wordLists
	rows   int // of the segment
	worked func(n int)

	nodes  []prefixNode // ascending, so each stands behind the shorter ones that it begins with
	unions []prefixUnion
	out    [][]fieldRows // by node
	fields []prefixField
	spare  []prefixField
	places []int32 // by FieldID, of those in fields: place + 1

	cursors   []prefixCursor
	window    []taggedOccurrence
	aux       []taggedOccurrence
	ends      []uint32
	unionRows []uint32
	positions []byte
}

// prefixNode is a prefix of the group.
type prefixNode struct {
	head   uint64 // its bytes, as wordOrder has them
	size   int
	parent int32 // the longest shorter prefix that it begins with; −1: none
}

// prefixUnion is the list of a prefix in the current field. It has a part of prefixGroup's rows and positions.
type prefixUnion struct {
	shorter              int32  // the longest prefix that all words of this one have, too; −1: none
	row                  uint32 // the last one; noRow: none
	next                 uint32 // last position of it + 1
	rowFrom, rowAt       int
	positionFrom, nextAt int
}

// prefixField has the words of the group in one field.
type prefixField struct {
	id    FieldID
	words []prefixWord
}

// prefixWord is a word with the number of the longest prefix in the group.
type prefixWord struct {
	address uint32 // in wordLists
	node    int32
}

// prefixCursor is the rest of the list of a word.
type prefixCursor struct {
	row             uint32 // the next one; noRow: none
	node            int32
	list, positions []byte // distances of the rows after it; positions from that row on
}

// taggedOccurrence is an occurrence in the upper half, and the number of a node in the lower one.
type taggedOccurrence uint64

func (o taggedOccurrence) row() uint32      { return uint32(o >> 48) } // in its window
func (o taggedOccurrence) position() uint32 { return uint32(o>>32) & 0xffff }

// begins reports whether the first n ≤ maxPrefixBytes bytes of the word are whole characters, as prefixOf does.
func (w *wordOrder) begins(n int) bool {
	size := int(w.size)
	return n == size || n < size && utf8.RuneStart(byte(w.head>>(56-8*n)))
}

// has reports whether bytes as in wordOrder begin with the prefix.
func (n *prefixNode) has(head uint64) bool { return (head^n.head)>>(64-8*n.size) == 0 }

// buildPrefixes writes the postings of the prefixes of the words that buildWords has written.
func buildPrefixes(_ context.Context, b *Builder, f *fileWriter) error {
	if !b.options.Prefixes {
		return nil
	}
	f.begin(tagPrefixPosts, 0)
	w := prefixWriter{post: postingWriter{w: f}}
	g := prefixGroup{order: b.order, lists: b.lists, rows: len(b.docIDs), worked: f.worked}
	keys := b.prefixes
	slices.Sort(keys)
	for len(keys) > 0 {
		n := g.unite(keys)
		for i, key := range keys[:n] {
			w.write(key, g.out[i])
		}
		keys = keys[n:]
	}
	b.lists = nil // a copy of all lists, which the builder's memory does not count: other sections take long as well
	f.end()
	f.add(tagPrefixes, 0, w.table())
	return nil
}

// unite makes the unions, in out, of all words with the first prefix, and of the words with each of the following prefixes that begin
// with it. It returns how many prefixes these are. The unions are valid until the next call, which must be for higher prefixes.
func (g *prefixGroup) unite(keys []uint64) int {
	g.plant(keys)
	g.gather()
	g.unionRows, g.positions = g.unionRows[:0], g.positions[:0]
	slices.SortFunc(g.fields, func(a, b prefixField) int { return cmp.Compare(a.id, b.id) })
	for i := range g.fields {
		g.uniteField(&g.fields[i])
		g.places[g.fields[i].id] = 0
	}
	g.spare = append(g.spare, g.fields...)
	g.fields = g.fields[:0]
	return len(g.nodes)
}

// plant makes the nodes.
func (g *prefixGroup) plant(keys []uint64) {
	g.nodes, g.unions = g.nodes[:0], g.unions[:0]
	for i, key := range keys {
		n := prefixNode{head: key >> 8 << 32, size: int(key & 0xff), parent: int32(i - 1)}
		for n.parent >= 0 && !g.nodes[n.parent].has(n.head) {
			n.parent = g.nodes[n.parent].parent
		}
		if n.parent < 0 && i > 0 {
			break
		}
		u := prefixUnion{shorter: n.parent}
		for u.shorter >= 0 && !utf8.RuneStart(byte(n.head>>(56-8*g.nodes[u.shorter].size))) { // ends within a character of this one
			u.shorter = g.nodes[u.shorter].parent
		}
		g.nodes, g.unions = append(g.nodes, n), append(g.unions, u)
		if i == len(g.out) {
			g.out = append(g.out, nil)
		}
		g.out[i] = g.out[i][:0]
	}
}

// gather finds the words of the group, each with its longest prefix.
func (g *prefixGroup) gather() {
	first := &g.nodes[0]
	i, _ := slices.BinarySearchFunc(g.order, first.head, func(w wordOrder, head uint64) int {
		if w.head < head {
			return -1
		}
		return 1
	})
	g.order = g.order[i:] // later groups are behind it
	at := int32(0)        // the last node that does not come after the word
	for i := range g.order {
		w := &g.order[i]
		if !first.has(w.head) {
			break
		}
		for int(at)+1 < len(g.nodes) && g.nodes[at+1].head <= w.head {
			at++
		}
		node := at
		for node >= 0 && !(g.nodes[node].has(w.head) && w.begins(g.nodes[node].size)) {
			node = g.nodes[node].parent
		}
		if node >= 0 {
			f := g.field(FieldID(w.field))
			f.words = append(f.words, prefixWord{address: w.number, node: node})
		}
	}
}

// field returns the words in a field.
func (g *prefixGroup) field(f FieldID) *prefixField {
	if int(f) >= len(g.places) {
		g.places = append(g.places, make([]int32, int(f)+1-len(g.places))...)
	}
	if g.places[f] == 0 {
		var x prefixField
		if n := len(g.spare); n > 0 {
			x, g.spare = g.spare[n-1], g.spare[:n-1]
		}
		g.fields = append(g.fields, prefixField{id: f, words: x.words[:0]})
		g.places[f] = int32(len(g.fields))
	}
	return &g.fields[g.places[f]-1]
}

// uniteField appends the unions in a field to out.
func (g *prefixGroup) uniteField(f *prefixField) {
	for i := range g.unions {
		u := &g.unions[i]
		u.row, u.rowAt, u.nextAt = noRow, 0, 0
	}
	g.cursors = g.cursors[:0]
	g.lists.forget()
	total, from := 0, uint32(noRow)
	for _, w := range f.words {
		first, list, positions := g.lists.list(w.address)
		g.cursors = append(g.cursors, prefixCursor{first, w.node, list, positions})
		u := &g.unions[w.node]
		u.rowAt += 1 + len(list) // a distance has a byte or more
		u.nextAt += len(positions)
		total += len(positions)
		from = min(from, first)
		g.worked(wordWork + len(positions))
	}
	// A union has no more rows than its words. Its positions take no more bytes, because their distances are no larger.
	for i := len(g.unions) - 1; i >= 0; i-- {
		if u := &g.unions[i]; u.shorter >= 0 {
			g.unions[u.shorter].rowAt += u.rowAt
			g.unions[u.shorter].nextAt += u.nextAt
		}
	}
	row, position := len(g.unionRows), len(g.positions)
	for i := range g.unions {
		u := &g.unions[i]
		rows, positions := min(u.rowAt, g.rows), u.nextAt
		u.rowFrom, u.rowAt, u.positionFrom, u.nextAt = row, row, position, position
		row += rows
		position += positions
	}
	g.unionRows = slices.Grow(g.unionRows, row-len(g.unionRows))[:row]
	g.positions = slices.Grow(g.positions, position-len(g.positions))[:position]
	together := max(windowOccurrences, 2*len(g.cursors)) // so that most cursors have some in a window
	size := uint32(min(1+g.rows*together/(total+1), windowRows))
	for from != noRow {
		next := uint32(noRow)
		for i := range g.cursors {
			c := &g.cursors[i]
			if c.row-from < size {
				g.window = c.take(g.window, from, size)
			}
			next = min(next, c.row)
		}
		g.deal(g.sort(g.window), from)
		g.window = g.window[:0]
		from = next
	}
	for i := range g.unions {
		if u := &g.unions[i]; u.row != noRow {
			g.positions[u.nextAt-1] |= endOfRow
			g.out[i] = append(g.out[i], fieldRows{id: f.id, rows: g.unionRows[u.rowFrom:u.rowAt], positions: g.positions[u.positionFrom:u.nextAt]})
		}
	}
}

// take appends the occurrences in a window of size rows, including the next one.
func (c *prefixCursor) take(window []taggedOccurrence, from, size uint32) []taggedOccurrence {
	row, list := c.row, c.list
	tag := taggedOccurrence(row-from)<<48 | taggedOccurrence(c.node)
	next, v, shift := uint32(0), uint32(0), 0
	for i, b := range c.positions {
		v |= uint32(b&payload) << shift
		if b&endOfNumber == 0 {
			shift += 6
			continue
		}
		next += v
		window = append(window, tag|taggedOccurrence(next&0xffff)<<32)
		next++
		v, shift = 0, 0
		if b < endOfRow {
			continue
		}
		if len(list) == 0 {
			row = noRow
			break
		}
		d, n := uint64(list[0]), 1
		if d >= 0x80 {
			d, n = binary.Uvarint(list)
		}
		list = list[n:]
		row += uint32(d) + 1
		if row-from >= size {
			c.positions = c.positions[i+1:]
			break
		}
		next = 0
		tag = taggedOccurrence(row-from)<<48 | taggedOccurrence(c.node)
	}
	c.row, c.list = row, list
	return window
}

const (
	bucketsFrom = 64 // occurrences: fewer are sorted as they are
	mostBucket  = 32 // occurrences of a bucket that are sorted by insertion
)

// sort sorts occurrences. It lays them out in about as many buckets as there are occurrences, and sorts those by insertion. The result is
// valid until the next call.
func (g *prefixGroup) sort(list []taggedOccurrence) []taggedOccurrence {
	if len(list) < bucketsFrom {
		slices.Sort(list)
		return list
	}
	lowest, highest, positions := list[0], list[0], uint32(0)
	for _, o := range list {
		lowest, highest, positions = min(lowest, o), max(highest, o), positions|o.position()
	}
	width, base := bits.Len32(positions), lowest.row()
	largest := (highest.row()-base+1)<<width - 1
	shift := max(0, bits.Len32(largest)-bits.Len(uint(len(list))))
	buckets := int(largest>>shift) + 1
	if len(g.ends) < buckets {
		g.ends = make([]uint32, buckets)
	}
	ends := g.ends[:buckets]
	clear(ends)
	bucket := func(o taggedOccurrence) uint32 { return ((o.row()-base)<<width | o.position()) >> shift }
	for _, o := range list {
		ends[bucket(o)]++
	}
	at := uint32(0)
	for i, n := range ends { // where those before end; then, as occurrences are laid out, where they end themselves
		ends[i] = at
		at += n
	}
	sorted := slices.Grow(g.aux[:0], len(list))[:len(list)]
	g.aux = sorted
	for _, o := range list {
		to := &ends[bucket(o)]
		sorted[*to] = o
		*to++
	}
	g.worked(2 * len(list))
	begin := uint32(0)
	for _, end := range ends {
		if end-begin > mostBucket { // as in a field whose texts have very different lengths
			slices.Sort(sorted[begin:end])
			g.worked(int(end - begin))
		}
		begin = end
	}
	for i := 1; i < len(sorted); i++ { // moves from bucket to bucket: no element has to leave its own
		o := sorted[i]
		j := i
		for ; j > 0 && sorted[j-1] > o; j-- {
			sorted[j] = sorted[j-1]
		}
		sorted[j] = o
	}
	return sorted
}

// deal appends sorted occurrences of a window that begins at a row to the unions.
func (g *prefixGroup) deal(sorted []taggedOccurrence, first uint32) {
	rows, positions := g.unionRows, g.positions
	for i, o := range sorted {
		if i%askEvery == askEvery-1 {
			g.worked(askEvery)
		}
		row, position := first+o.row(), o.position()
		for n := int32(uint32(o)); n >= 0; {
			u := &g.unions[n]
			n = u.shorter
			switch {
			case u.row != row:
				if u.row != noRow {
					positions[u.nextAt-1] |= endOfRow
				}
				rows[u.rowAt] = row
				u.rowAt++
				u.row, u.next = row, 0
			case position < u.next:
				continue // the same position again
			}
			d := position - u.next
			u.next = position + 1
			for ; d > payload; d >>= 6 {
				positions[u.nextAt] = byte(d & payload)
				u.nextAt++
			}
			positions[u.nextAt] = byte(d) | endOfNumber
			u.nextAt++
		}
	}
}
