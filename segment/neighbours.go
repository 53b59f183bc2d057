package segment

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
)

// A thousand words are in so many rows that reading their positions is most of the cost of a search for two of them. For these words
// the section pair has the rows where one is directly after the other:
//
//	u32 words, u32 blocks
//	words × u64                 offset of the word's posting, ascending
//	blocks × { u16 field, u16 first, u32 pairs, u64 offset }, ascending by field and first
//	blocks, each at a multiple of 8, one behind the other:
//	  pairs × u16 second, ascending
//	  pairs × u32 where the list ends among those of the block, ascending; padding up to a multiple of 8
//	  lists, padding
//
// first and second are numbers of words, and a list is
//
//	uvarint count << 1 | code
//	row list; in Roaring format ahead of it padding up to a multiple of 8 among the lists of the block
//
// If two words of the section have no list for a field, they are nowhere neighbours in it.
const (
	neighbourHeadBytes  = 8
	neighbourWordBytes  = 8
	neighbourBlockBytes = 16
	neighbourPairBytes  = 6 // ahead of the lists

	maxNeighbourWords = 1 << pairDigit
	neighbourShare    = 256 // a word is frequent if one in so many rows has it
)

// NeighbourRows is the least number of rows of a word with stored neighbours. NeighbourSegmentRows is the least number of rows of a
// segment with stored neighbours: smaller segments are many, and merged soon. (Variables, so that tests can lower them.)
var (
	NeighbourRows        = 1024
	NeighbourSegmentRows = 32 << 10
)

// neighbourReader finds pairs in the section.
type neighbourReader struct {
	words, blocks []byte // nil when there is no section
	section       []byte
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
		words, blocks := int(binary.LittleEndian.Uint32(p)), int(binary.LittleEndian.Uint32(p[4:]))
		first := neighbourHeadBytes + words*neighbourWordBytes
		end := first + blocks*neighbourBlockBytes
		if words > maxNeighbourWords || end > len(p) {
			r.broken(tagNeighbours, "%d words and %d blocks in %d bytes", words, blocks, len(p))
		}
		r.blocks.touch(p[:end])
		return &neighbourReader{words: p[neighbourHeadBytes:first], blocks: p[first:end], section: p}
	})
}

// number returns the number of the word with the posting at offset.
func (n *neighbourReader) number(offset int) (int, bool) {
	words := len(n.words) / neighbourWordBytes
	i := sort.Search(words, func(i int) bool {
		return binary.LittleEndian.Uint64(n.words[i*neighbourWordBytes:]) >= uint64(offset)
	})
	return i, i < words && binary.LittleEndian.Uint64(n.words[i*neighbourWordBytes:]) == uint64(offset)
}

// blockKey orders blocks: a field, and the number of a first word.
func blockKey(f FieldID, first int) uint32 { return uint32(f)<<16 | uint32(first) }

func (n *neighbourReader) blockCount() int { return len(n.blocks) / neighbourBlockBytes }

func (n *neighbourReader) key(i int) uint32 {
	b := n.blocks[i*neighbourBlockBytes:]
	return blockKey(FieldID(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:])))
}

// find returns the index of the first block whose key is at least key.
func (n *neighbourReader) find(key uint32) int {
	return sort.Search(n.blockCount(), func(i int) bool { return n.key(i) >= key })
}

// pairBlock is what one word has behind it in a field.
type pairBlock struct {
	seconds, ends []byte
	lists         []byte
	offset        int // in the section, and of the lists
	listOffset    int
}

// block returns a block, if all but its lists lies inside.
func (n *neighbourReader) block(i int) (pairBlock, bool) {
	b := n.blocks[i*neighbourBlockBytes:]
	pairs, offset := int(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint64(b[8:])
	if offset > uint64(len(n.section)) || pairs > (len(n.section)-int(offset))/neighbourPairBytes {
		return pairBlock{}, false
	}
	at := int(offset)
	ends, lists := at+2*pairs, at+neighbourPairBytes*pairs
	p := pairBlock{seconds: n.section[at:ends], ends: n.section[ends:lists], offset: at}
	p.listOffset = min(lists+-lists&(postingAlign-1), len(n.section))
	p.lists = n.section[p.listOffset:]
	return p, true
}

func (b *pairBlock) pairs() int { return len(b.seconds) / 2 }

func (b *pairBlock) second(i int) int { return int(binary.LittleEndian.Uint16(b.seconds[2*i:])) }

func (b *pairBlock) end(i int) int { return int(binary.LittleEndian.Uint32(b.ends[4*i:])) }

// find returns the index of the pair with a second word.
func (b *pairBlock) find(second int) (int, bool) {
	i := sort.Search(b.pairs(), func(i int) bool { return b.second(i) >= second })
	return i, i < b.pairs() && b.second(i) == second
}

// list returns the rows of a pair, if they lie inside. blocks checks the bytes, unless it is nil.
func (b *pairBlock) list(blocks *blocks, i int) (rowlist.List, bool) {
	from := 0
	if i > 0 {
		from = b.end(i - 1)
	}
	to := b.end(i)
	if from >= to || to > len(b.lists) {
		return rowlist.List{}, false
	}
	p := b.lists[from:to:to]
	if blocks != nil {
		blocks.touch(p)
	}
	h, head := binary.Uvarint(p)
	if head <= 0 || h>>1 > maxRows {
		return rowlist.List{}, false
	}
	l := rowlist.List{Code: int(h & 1), Count: int(h >> 1)}
	if l.Code == rowlist.Roaring {
		head += -(from + head) & (postingAlign - 1)
	}
	if head > len(p) || l.Code == rowlist.Delta && l.Count > len(p)-head {
		return rowlist.List{}, false
	}
	l.P = p[head:]
	return l, true
}

// KnowsNeighbours reports whether the segment stores the rows where this word is next to other such words.
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

// pairBlock returns the block of a field and a first word, if there is one.
func (r *Reader) pairBlock(f FieldID, first int) (b pairBlock, ok bool) {
	n := r.allNeighbours()
	i := n.find(blockKey(f, first))
	if i == n.blockCount() || n.key(i) != blockKey(f, first) {
		return b, false
	}
	if b, ok = n.block(i); !ok {
		r.broken(tagNeighbours, "a block of pairs that is not inside")
	}
	r.blocks.touch(n.section[b.offset:b.listOffset])
	return b, true
}

// pairList returns the rows of a pair of a block.
func (r *Reader) pairList(b *pairBlock, i int) rowlist.List {
	l, ok := b.list(&r.blocks, i)
	if !ok {
		r.broken(tagNeighbours, "rows of a pair that are not inside")
	}
	return l
}

// Neighbours returns the rows in which the word b is directly after the word a in field f, or nil if there are none. The bitmap is
// shared, must not be modified, and is valid like Posting.Rows. KnowsNeighbours must be true for both words.
func (r *Reader) Neighbours(a, b Posting, f FieldID) *roaring.Bitmap {
	first, second, ok := r.neighbourNumbers(a, b)
	if !ok {
		return nil
	}
	l, ok := r.neighbourRows(first, second, f)
	switch {
	case !ok:
		return nil
	case l.Code == rowlist.Delta && l.Count > r.rows/deltasPer:
		return setOf(r.rows, l.AddToBits)
	}
	return l.Bitmap()
}

func (r *Reader) neighbourNumbers(a, b Posting) (first, second int, ok bool) {
	first, ok = r.neighbourNumber(a)
	second, also := r.neighbourNumber(b)
	return first, second, ok && also
}

// neighbourRows returns the list of the rows where one word is directly after another in a field, if there is one.
func (r *Reader) neighbourRows(first, second int, f FieldID) (l rowlist.List, ok bool) {
	block, ok := r.pairBlock(f, first)
	if !ok {
		return l, false
	}
	i, ok := block.find(second)
	if !ok {
		return l, false
	}
	return r.pairList(&block, i), true
}

// CountNeighbours returns an upper bound of the number of rows where b directly follows a. A row counts once per field. ok is false
// if KnowsNeighbours is false for one of them.
func (r *Reader) CountNeighbours(a, b Posting) (n uint64, ok bool) {
	first, second, ok := r.neighbourNumbers(a, b)
	if !ok {
		return 0, false
	}
	for k := range a.Fields() {
		if l, ok := r.neighbourRows(first, second, a.Field(k).ID()); ok {
			n += uint64(l.Count)
		}
	}
	return n, true
}

// NeighboursIn is Neighbours for all fields that in reports together: a set of the caller's own, without spare room.
func (r *Reader) NeighboursIn(a, b Posting, in func(FieldID) bool) *roaring.Bitmap {
	var lists []rowlist.List
	count := 0
	first, second, ok := r.neighbourNumbers(a, b)
	if !ok {
		return roaring.New()
	}
	for k := range a.Fields() {
		if f := a.Field(k).ID(); in(f) {
			if l, ok := r.neighbourRows(first, second, f); ok {
				lists = append(lists, l)
				count += l.Count
			}
		}
	}
	if count > r.rows/deltasPer {
		return setOf(r.rows, func(bits []uint64) {
			for _, l := range lists {
				l.AddToBits(bits)
			}
		})
	}
	buf := rowBuffers.Get().(*[]uint32)
	defer rowBuffers.Put(buf)
	rows := (*buf)[:0]
	for _, l := range lists {
		rows = l.AppendTo(rows)
	}
	if len(lists) > 1 || !slices.IsSorted(rows) { // a forged list has sums that wrap
		slices.Sort(rows)
		rows = slices.Compact(rows)
	}
	*buf = rows
	return rowlist.FromRows(rows)
}

// AddNeighbours sets the bits, 64 per word, of the rows where a word of right directly follows a word of left in a field
// of in. KnowsNeighbours must be true for all of them.
func (r *Reader) AddNeighbours(words []uint64, left, right []Posting, in func(FieldID) bool) {
	var behind [maxNeighbourWords / 64]uint64 // a bit for each number of right
	some := false
	for _, p := range right {
		if i, ok := r.neighbourNumber(p); ok {
			behind[i/64] |= 1 << (i % 64)
			some = true
		}
	}
	if !some {
		return
	}
	for _, p := range left {
		first, ok := r.neighbourNumber(p)
		if !ok {
			continue
		}
		for k := range p.Fields() {
			f := p.Field(k).ID()
			if !in(f) {
				continue
			}
			if b, ok := r.pairBlock(f, first); ok {
				r.addBlock(words, &b, &behind)
			}
		}
	}
}

// addBlock sets the bits of the rows of the pairs in a block whose second word has its bit set in behind.
func (r *Reader) addBlock(words []uint64, b *pairBlock, behind *[maxNeighbourWords / 64]uint64) {
	n := 0
	for _, w := range behind {
		n += bits.OnesCount64(w)
	}
	if n*searchedSeconds < b.pairs() {
		for i, w := range behind {
			for ; w != 0; w &= w - 1 {
				if k, ok := b.find(64*i + bits.TrailingZeros64(w)); ok {
					r.pairList(b, k).AddToBits(words)
				}
			}
		}
		return
	}
	for k := range b.pairs() {
		if s := b.second(k); s < maxNeighbourWords && behind[s/64]>>(s%64)&1 != 0 {
			r.pairList(b, k).AddToBits(words)
		}
	}
}

// deltasPer: from one in so many rows on, a set of deltas is built as a bit set. With half a million rows, both ways take equally
// long for a thousand.
const deltasPer = 512

// searchedSeconds is how many second words can be compared one by one in the time of one binary search.
const searchedSeconds = 16
