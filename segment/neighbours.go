package segment

import (
	"context"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
)

// A few hundred words stand in so many rows that reading their positions is most of what a search for two of them costs. For these
// the section near has the rows where one stands directly behind the other:
//
//	u32 words, u32 pairs
//	words × u64                 offset of the word's posting, ascending
//	pairs × { u16 field, u8 first, u8 second, u32 count, u32 offset, u32 length << 1 | code }, ascending
//	row lists, at multiples of 8
//
// first and second are numbers of words. Two words of the section without an entry for a field are nowhere neighbours there.
const (
	neighbourHeadBytes  = 8
	neighbourWordBytes  = 8
	neighbourEntryBytes = 16

	maxNeighbourWords = 255
	neighbourShare    = 32 // a word is frequent that stands in one of so many rows
)

// NeighbourRows is in how many rows a word stands at least whose neighbours are kept. (A variable, so that tests can lower it.)
var NeighbourRows = 8192

// neighbourReader finds pairs in the section.
type neighbourReader struct {
	words, entries []byte // nil when there is no section
	section        []byte
}

func (r *Reader) openNeighbours() error { return nil }

// allNeighbours reads the directory.
func (r *Reader) allNeighbours() *neighbourReader {
	return r.neighbours.get(func() *neighbourReader {
		p := r.section(tagNeighbours)
		if len(p) < neighbourHeadBytes {
			return &neighbourReader{}
		}
		r.blocks.touch(p[:neighbourHeadBytes])
		words, pairs := int(binary.LittleEndian.Uint32(p)), int(binary.LittleEndian.Uint32(p[4:]))
		first := neighbourHeadBytes + words*neighbourWordBytes
		end := first + pairs*neighbourEntryBytes
		if words > maxNeighbourWords || end > len(p) {
			r.broken(tagNeighbours, "%d words and %d pairs in %d bytes", words, pairs, len(p))
		}
		r.blocks.touch(p[:end])
		return &neighbourReader{words: p[neighbourHeadBytes:first], entries: p[first:end], section: p}
	})
}

// number returns the number of the word whose posting is at an offset.
func (n *neighbourReader) number(offset int) (int, bool) {
	words := len(n.words) / neighbourWordBytes
	i := sort.Search(words, func(i int) bool {
		return binary.LittleEndian.Uint64(n.words[i*neighbourWordBytes:]) >= uint64(offset)
	})
	return i, i < words && binary.LittleEndian.Uint64(n.words[i*neighbourWordBytes:]) == uint64(offset)
}

// neighbourKey orders pairs as their entries stand.
func neighbourKey(f FieldID, first, second int) uint32 {
	return uint32(f)<<16 | uint32(first)<<8 | uint32(second)
}

func (n *neighbourReader) key(i int) uint32 {
	e := n.entries[i*neighbourEntryBytes:]
	return neighbourKey(FieldID(binary.LittleEndian.Uint16(e)), int(e[2]), int(e[3]))
}

func (n *neighbourReader) pairs() int { return len(n.entries) / neighbourEntryBytes }

// list returns the rows of an entry, if they lie inside.
func (n *neighbourReader) list(i int) (rowlist.List, bool) {
	e := n.entries[i*neighbourEntryBytes:]
	size := binary.LittleEndian.Uint32(e[12:])
	l := rowlist.List{Code: int(size & 1), Count: int(binary.LittleEndian.Uint32(e[4:]))}
	from, length := uint64(binary.LittleEndian.Uint32(e[8:])), uint64(size>>1)
	if from+length > uint64(len(n.section)) || l.Code == rowlist.Delta && uint64(l.Count) > length {
		return rowlist.List{}, false
	}
	l.P = n.section[from : from+length : from+length]
	return l, true
}

// KnowsNeighbours reports whether the segment has the rows where this word stands beside others of which the same is true.
func (r *Reader) KnowsNeighbours(p Posting) bool {
	_, ok := r.neighbourNumber(p)
	return ok
}

func (r *Reader) neighbourNumber(p Posting) (int, bool) {
	if len(p.section) == 0 || len(p.section) != len(r.postings) || &p.section[0] != &r.postings[0] {
		return 0, false // of a prefix
	}
	return r.allNeighbours().number(p.start)
}

// Neighbours returns the rows where the word b stands directly behind the word a in field f; shared, not to be modified, nil for
// none, and valid like Posting.Rows. Both are words of which KnowsNeighbours is true.
func (r *Reader) Neighbours(a, b Posting, f FieldID) *roaring.Bitmap {
	if l, ok := r.neighbourRows(a, b, f); ok {
		return l.Bitmap()
	}
	return nil
}

// AddNeighbours sets the bits of the rows that Neighbours returns, 64 a word.
func (r *Reader) AddNeighbours(words []uint64, a, b Posting, f FieldID) {
	if l, ok := r.neighbourRows(a, b, f); ok {
		l.AddToBits(words)
	}
}

func (r *Reader) neighbourRows(a, b Posting, f FieldID) (rowlist.List, bool) {
	first, ok := r.neighbourNumber(a)
	second, also := r.neighbourNumber(b)
	if !ok || !also {
		return rowlist.List{}, false
	}
	n := r.allNeighbours()
	key := neighbourKey(f, first, second)
	i := sort.Search(n.pairs(), func(i int) bool { return n.key(i) >= key })
	if i == n.pairs() || n.key(i) != key {
		return rowlist.List{}, false
	}
	l, ok := n.list(i)
	if !ok {
		r.broken(tagNeighbours, "rows of a pair that are not inside")
	}
	r.blocks.touch(l.P)
	return l, true
}

func buildNeighbours(_ context.Context, b *Builder, f *fileWriter) error {
	of := neighbourSource{}
	words := b.frequent.choose()
	for _, w := range words {
		p, _ := readPosting(nil, w.posting, uint64(w.base))
		of.postings = append(of.postings, p)
	}
	of.rows = len(b.docIDs)
	return writeNeighbours(f, words, []neighbourSource{of}, func() error {
		f.worked(askEvery)
		return f.err
	})
}

func (m *merger) mergeNeighbours() error {
	words := m.frequent.choose()
	var sources []neighbourSource
	for i, l := range m.in {
		of := neighbourSource{rows: l.rows, to: m.rows[i]}
		for _, w := range words {
			p, _ := l.Term(w.word) // without fields where the input does not have it
			of.postings = append(of.postings, p)
		}
		sources = append(sources, of)
	}
	return writeNeighbours(m.f, words, sources, m.check)
}

func (r *Reader) verifyNeighbours() error {
	n := r.allNeighbours()
	of := neighbourSource{rows: r.rows}
	it := r.Terms(nil, nil, nil)
	for it.Next() {
		if i, ok := n.number(int(it.walk.Value())); ok {
			if i != len(of.postings) {
				return r.damaged(tagNeighbours, "the words are not in order")
			}
			of.postings = append(of.postings, it.Posting())
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	if words := len(n.words) / neighbourWordBytes; len(of.postings) != words {
		return r.damaged(tagNeighbours, "%d words of which %d have a posting", words, len(of.postings))
	}
	for i := range n.pairs() {
		l, ok := n.list(i)
		if !ok {
			return r.damaged(tagNeighbours, "the rows of the pair %08x are not inside", n.key(i))
		}
		if i > 0 && n.key(i-1) >= n.key(i) {
			return r.damaged(tagNeighbours, "the pair %08x follows %08x", n.key(i), n.key(i-1))
		}
		if _, err := r.verifyRows(tagNeighbours, l); err != nil {
			return fmt.Errorf("pair %08x: %w", n.key(i), err)
		}
	}
	at := 0
	for _, field := range fieldsOf([]neighbourSource{of}) {
		from := at
		for at < n.pairs() && n.key(at)>>16 == uint32(field) {
			at++
		}
		if err := r.verifyPairs(&of, n, field, from, at); err != nil {
			return err
		}
	}
	if at != n.pairs() {
		return r.damaged(tagNeighbours, "%d pairs, of which %d stand somewhere", n.pairs(), at)
	}
	return nil
}

// pairCursor goes through the rows of a pair.
type pairCursor struct {
	rows rowlist.Cursor
	all  int
	seen int
	last uint32 // of those seen
}

// verifyPairs goes through the rows in which the words are neighbours in a field, and along the entries from one to another, which are
// to have each of them and no other. It holds a cursor for each entry.
func (r *Reader) verifyPairs(of *neighbourSource, n *neighbourReader, field FieldID, from, to int) error {
	words := len(of.postings)
	cursors := make([]pairCursor, to-from)
	entry := make([]int32, words*words) // the entry of a pair, from 1
	for i := range cursors {
		l, _ := n.list(from + i)
		cursors[i] = pairCursor{rows: l.Cursor(), all: l.Count}
		key := n.key(from + i)
		first, second := int(key>>8&0xff), int(key&0xff)
		if first >= words || second >= words {
			return r.damaged(tagNeighbours, "the pair %08x is of a word beyond %d", key, words)
		}
		entry[first*words+second] = int32(i + 1)
	}
	var damage error
	err := of.eachNeighbour(field, func() error { return nil }, func() error { return damage }, func(first, second int, row uint32) {
		if damage != nil {
			return
		}
		i := entry[first*words+second]
		if i == 0 {
			damage = r.damaged(tagNeighbours, "no entry of the pair %08x", neighbourKey(field, first, second))
			return
		}
		c := &cursors[i-1]
		if c.seen > 0 && c.last == row {
			return
		}
		if at, ok := c.rows.Find(row); !ok || at != c.seen {
			damage = r.damaged(tagNeighbours, "the pair %08x stands in row %d, which is not what its entry has there", neighbourKey(field, first, second), row)
			return
		}
		c.seen++
		c.last = row
	})
	if err != nil {
		return err
	}
	for i := range cursors {
		if c := &cursors[i]; c.seen != c.all {
			return r.damaged(tagNeighbours, "the pair %08x stands in %d rows, and has %d", n.key(from+i), c.seen, c.all)
		}
	}
	return nil
}

func (i *inspector) neighbours() {
	n := i.r.allNeighbours()
	words := len(n.words) / neighbourWordBytes
	i.field(4, "%d words", words)
	i.field(4, "%d pairs", n.pairs())
	i.t.List(words, inspectItems, func(k int) { i.field(neighbourWordBytes, "word %d: posting at %d", k, i.u64()) })
	i.at = neighbourHeadBytes + len(n.words)
	i.t.List(n.pairs(), inspectItems, func(k int) {
		e := n.entries[k*neighbourEntryBytes:]
		l, _ := n.list(k)
		i.field(neighbourEntryBytes, "field %d, word %d behind word %d: %d rows, %s", binary.LittleEndian.Uint16(e), e[3], e[2], l.Count, codeName(l.Code))
	})
	i.t.List(n.pairs(), inspectItems, func(k int) {
		if l, ok := n.list(k); ok {
			i.at = int(binary.LittleEndian.Uint32(n.entries[k*neighbourEntryBytes+8:]))
			i.rows(l)
		}
	})
}
