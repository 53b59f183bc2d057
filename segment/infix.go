package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sort"
)

// An infix index of a column lists the blocks of the column's strings that may contain a substring. A block is a run of adjacent
// strings. Each trigram maps to a slot, and the slot has the bit of each block that contains the trigram. The blocks that contain a
// substring are among those whose bits are set in the slots of all its trigrams.

const (
	infixVersion     = 1 // of the section: other versions are not read
	infixHeaderBytes = 8
	infixEntryBytes  = 40

	gramBytes = 3
)

// Variables, so that tests can change them.
var (
	// MinInfixBytes is from how many bytes of strings on a column gets an infix index. Fewer are read in some microseconds.
	MinInfixBytes = 64 << 10

	// InfixBlockBytes is from how many bytes of strings on a block of an infix index ends.
	InfixBlockBytes = 1024

	// infixSlots is how many slots a writer uses, a power of two. A block of English text sets a quarter of 2,048.
	infixSlots = 2048
)

// infixIndex is the infix index of a column. It is not used if the column has other strings than those it was made of.
type infixIndex struct {
	blocks *blocks
	first  []byte // u32 by block: its first ordinal; one more: the number of strings
	slots  int
	stride int // bytes of a slot
	bits   []byte
}

// count returns the number of blocks.
func (x *infixIndex) count() int { return len(x.first)/4 - 1 }

// slotOf returns the slot of a trigram, whose first byte is the highest.
func slotOf(gram uint32, slots int) int { return int(uint64(gram*0x9e3779b1) * uint64(slots) >> 32) }

// firstGram returns the trigram that a text begins with.
func firstGram(text []byte) uint32 {
	return uint32(text[0])<<16 | uint32(text[1])<<8 | uint32(text[2])
}

// infixBlocks returns the first string of each block of ascending strings, and how many bytes all strings have.
func infixBlocks(n int, s func(ord int) []byte) (first []uint32, size int) {
	end := 0 // of the block, in bytes
	for ord := range n {
		if size >= end {
			first, end = append(first, uint32(ord)), size+InfixBlockBytes
		}
		size += len(s(ord))
	}
	return first, size
}

// appendInfix appends the index of ascending strings. first has the first string of each block.
func appendInfix(dst []byte, first []uint32, n int, s func(ord int) []byte, worked func(int)) []byte {
	le := binary.LittleEndian
	count := len(first)
	for _, ord := range first {
		dst = le.AppendUint32(dst, ord)
	}
	dst = le.AppendUint32(dst, uint32(n))
	for len(dst)%8 != 0 {
		dst = append(dst, 0)
	}
	stride := infixStride(count)
	start := len(dst)
	dst = append(dst, make([]byte, infixSlots*stride)...)
	table := dst[start:]
	// The bits of 64 blocks, by slot. They fit the first-level cache, and the table does not.
	words := make([]uint64, infixSlots)
	block := 0
	for ord := range n {
		if block+1 < count && uint32(ord) == first[block+1] {
			if block++; block%64 == 0 {
				putInfixWords(table, stride, block/64-1, words)
			}
		}
		text := s(ord)
		worked(1 + len(text)/64)
		if len(text) < gramBytes {
			continue
		}
		bit := uint64(1) << (block & 63)
		gram := uint32(text[0])<<8 | uint32(text[1])
		for _, c := range text[2:] {
			gram = gram<<8&0xffffff | uint32(c)
			words[slotOf(gram, len(words))] |= bit
		}
	}
	if count > 0 {
		putInfixWords(table, stride, block/64, words)
	}
	return dst
}

// putInfixWords stores the words of 64 blocks in the slots of a table, and clears them.
func putInfixWords(table []byte, stride, at int, words []uint64) {
	for slot, word := range words {
		binary.LittleEndian.PutUint64(table[slot*stride+8*at:], word)
	}
	clear(words)
}

// infixStride returns the size in bytes of a slot for a number of blocks: whole words.
func infixStride(count int) int { return (count + 63) / 64 * 8 }

// infixWriter gathers the infix indexes of the columns of a file.
type infixWriter struct {
	wanted    func(FieldID) bool
	directory []byte
	data      []byte
}

// add makes the index of a column, if it is wanted and the column is long enough. checksum is that of the column.
func (w *infixWriter) add(f *fileWriter, field FieldID, checksum uint64, n int, s func(ord int) []byte) {
	if w.wanted == nil || !w.wanted(field) {
		return
	}
	first, size := infixBlocks(n, s)
	if size < MinInfixBytes {
		return
	}
	for len(w.data)%8 != 0 {
		w.data = append(w.data, 0)
	}
	at := len(w.data)
	w.data = appendInfix(w.data, first, n, s, f.worked)
	le := binary.LittleEndian
	w.directory = le.AppendUint32(w.directory, uint32(field))
	w.directory = le.AppendUint32(w.directory, uint32(len(first)))
	w.directory = le.AppendUint32(w.directory, uint32(infixSlots))
	w.directory = le.AppendUint32(w.directory, 0)
	w.directory = le.AppendUint64(w.directory, checksum)
	w.directory = le.AppendUint64(w.directory, uint64(at))
	w.directory = le.AppendUint64(w.directory, uint64(len(w.data)-at))
}

// finish writes the section, if there is an index.
func (w *infixWriter) finish(f *fileWriter) {
	if len(w.directory) == 0 {
		return
	}
	f.begin(tagInfix, 0)
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(w.directory)/infixEntryBytes))
	f.Write(binary.LittleEndian.AppendUint32(head, infixVersion))
	f.Write(w.directory)
	f.Write(w.data)
	f.end()
}

// infixEntry is an entry of the directory.
type infixEntry struct {
	field       FieldID
	count       int
	slots       int
	checksum    uint64
	at, length  uint64
	beginOfData int
}

// infixEntries reads the directory, or returns nil if there is none, or one of another version.
func (r *Reader) infixEntries() ([]infixEntry, error) {
	section := r.section(tagInfix)
	if section == nil {
		return nil, nil
	}
	le := binary.LittleEndian
	if len(section) < infixHeaderBytes {
		return nil, fmt.Errorf("%d bytes", len(section))
	}
	r.blocks.touch(section[:infixHeaderBytes])
	n := uint64(le.Uint32(section))
	if le.Uint32(section[4:]) != infixVersion {
		return nil, nil
	}
	if n > uint64(len(section)-infixHeaderBytes)/infixEntryBytes {
		return nil, fmt.Errorf("%d columns in %d bytes", n, len(section))
	}
	begin := infixHeaderBytes + int(n)*infixEntryBytes
	r.blocks.touch(section[:begin])
	entries := make([]infixEntry, n)
	for i := range entries {
		p := section[infixHeaderBytes+i*infixEntryBytes:]
		e := infixEntry{field: FieldID(le.Uint32(p)), count: int(le.Uint32(p[4:])), slots: int(le.Uint32(p[8:])), checksum: le.Uint64(p[16:]),
			at: le.Uint64(p[24:]), length: le.Uint64(p[32:]), beginOfData: begin}
		size := uint64(len(section) - begin)
		if e.at > size || e.length > size-e.at || e.at%8 != 0 || e.slots < 1 || e.slots > 1<<24 || bits.OnesCount(uint(e.slots)) != 1 ||
			e.length != uint64(infixTableAt(e.count)+e.slots*infixStride(e.count)) {
			return nil, fmt.Errorf("the index of field %d is not as long as its counts say", e.field)
		}
		entries[i] = e
	}
	return entries, nil
}

// infixTableAt returns where the slots begin behind the first ordinals.
func infixTableAt(count int) int { return (4*(count+1) + 7) / 8 * 8 }

// openInfix returns the infix index of a column of this file; nil where it has none.
func (r *Reader) openInfix(field FieldID, checksum uint64) *infixIndex {
	entries, err := r.infixEntries()
	if err != nil {
		r.broken(tagInfix, "%v", err)
	}
	for _, e := range entries {
		if e.field == field && e.checksum == checksum {
			return r.infixAt(e)
		}
	}
	return nil
}

func (r *Reader) infixAt(e infixEntry) *infixIndex {
	p := r.section(tagInfix)[e.beginOfData+int(e.at):][:e.length]
	return &infixIndex{blocks: &r.blocks, first: p[:4*(e.count+1)], slots: e.slots, stride: infixStride(e.count), bits: p[infixTableAt(e.count):]}
}

// OrdinalRange is the ordinals from Lo on, before Hi.
type OrdinalRange struct{ Lo, Hi int }

// Infixed reports whether the column has an infix index.
func (c *Column) Infixed() bool { return c.infix != nil }

// LacksInfix reports whether the column has no infix index although it would get one if it were written with one.
func (c *Column) LacksInfix() bool { return c.infix == nil && len(c.strings.text) >= MinInfixBytes }

// MayContain returns ranges of ordinals, ascending, that include all strings with part as a substring, and how many ordinals these
// are. ok is false if the column has no infix index or part is shorter than a trigram.
func (c *Column) MayContain(part []byte) (ranges []OrdinalRange, n int, ok bool) {
	x := c.infix
	if x == nil || len(part) < gramBytes {
		return nil, 0, false
	}
	candidates := make([]uint64, x.stride/8)
	for i := range candidates {
		candidates[i] = ^uint64(0)
	}
	for rest := part; len(rest) >= gramBytes; rest = rest[1:] {
		at := slotOf(firstGram(rest), x.slots) * x.stride
		slot := x.bits[at : at+x.stride]
		x.blocks.touch(slot)
		any := uint64(0)
		for i := range candidates {
			candidates[i] &= binary.LittleEndian.Uint64(slot[8*i:])
			any |= candidates[i]
		}
		if any == 0 {
			return nil, 0, true
		}
	}
	x.blocks.touch(x.first)
	count := x.count()
	for i, w := range candidates {
		for ; w != 0; w &= w - 1 {
			block := 64*i + bits.TrailingZeros64(w)
			if block >= count {
				break
			}
			lo, hi := int(binary.LittleEndian.Uint32(x.first[4*block:])), int(binary.LittleEndian.Uint32(x.first[4*block+4:]))
			if hi = min(hi, c.strings.n); lo >= hi {
				continue
			}
			n += hi - lo
			if last := len(ranges) - 1; last >= 0 && ranges[last].Hi == lo {
				ranges[last].Hi = hi
			} else {
				ranges = append(ranges, OrdinalRange{lo, hi})
			}
		}
	}
	return ranges, n, true
}

// SearchPart returns the first ordinal in [lo, hi) whose string contains part, or hi.
func (c *Column) SearchPart(part []byte, lo, hi int) int {
	c.need(partStrings)
	if lo = max(lo, 0); lo >= hi || hi > c.strings.n {
		return hi
	}
	offset := func(ord int) int { return int(binary.LittleEndian.Uint32(c.strings.offsets[4*ord:])) }
	end := min(offset(hi), len(c.strings.text))
	for at := offset(lo); at <= end; at++ {
		found := bytes.Index(c.strings.text[at:end], part)
		if found < 0 {
			break
		}
		// The strings are stored without separators, so a match may begin in one and end in the next.
		at += found
		lo += sort.Search(hi-lo, func(i int) bool { return offset(lo+i+1) > at })
		if lo >= hi {
			break
		}
		if at+len(part) <= offset(lo+1) {
			return lo
		}
	}
	return hi
}

// verifyInfix checks that each index fits the strings of its column. An index of another column is not used.
func (r *Reader) verifyInfix() error {
	entries, err := r.infixEntries()
	if err != nil {
		return r.damaged(tagInfix, "%v", err)
	}
	for i, e := range entries {
		if i > 0 && entries[i-1].field >= e.field {
			return r.damaged(tagInfix, "field %d follows field %d", e.field, entries[i-1].field)
		}
		stored := r.ownColumns.of[e.field]
		if stored == nil || stored.checksum != e.checksum {
			continue
		}
		c := stored.open(e.field, tagColumns, r.rows)
		if err := r.infixAt(e).verify(c); err != nil {
			return r.damaged(tagInfix, "field %d: %v", e.field, err)
		}
	}
	return nil
}

// verify checks that the blocks cover all strings of the column, and that each trigram of each string has the
// bit of its block. Bits that no string needs only cost time, and are not reported.
func (x *infixIndex) verify(c *Column) error {
	x.blocks.touch(x.first)
	x.blocks.touch(x.bits)
	c.need(partStrings)
	le := binary.LittleEndian
	block, last := 0, -1
	for ; block <= x.count(); block++ {
		if ord := int(le.Uint32(x.first[4*block:])); ord <= last || block == 0 && ord != 0 || block == x.count() && ord != c.strings.n {
			return fmt.Errorf("block %d begins with string %d of %d", block, ord, c.strings.n)
		} else {
			last = ord
		}
	}
	block = 0
	for ord := range c.strings.n {
		for ord >= int(le.Uint32(x.first[4*block+4:])) {
			block++
		}
		for text := c.strings.get(ord); len(text) >= gramBytes; text = text[1:] {
			if x.bits[slotOf(firstGram(text), x.slots)*x.stride+block>>3]>>(block&7)&1 == 0 {
				return fmt.Errorf("string %d has %q, but not block %d", ord, text[:gramBytes], block)
			}
		}
	}
	return nil
}

func (i *inspector) infix() {
	entries, err := i.r.infixEntries()
	if err != nil {
		panic(i.r.damaged(tagInfix, "%v", err))
	}
	i.field(4, "%d columns", i.u32())
	i.field(4, "version %d", i.u32())
	i.t.List(len(entries), inspectItems, func(n int) {
		e := entries[n]
		i.field(infixEntryBytes, "field %d: %d blocks, %d slots, column %016x, at %d, %d bytes", e.field, e.count, e.slots, e.checksum, e.at, e.length)
	})
	for _, e := range entries {
		i.t.Node(func() {
			x := i.r.infixAt(e)
			i.at = e.beginOfData + int(e.at)
			i.field(infixTableAt(e.count), "first strings of the blocks, and their number")
			i.t.List(x.slots, inspectItems, func(slot int) { i.field(x.stride, "slot %d: blocks %x", slot, x.bits[slot*x.stride:][:x.stride]) })
		}, "field %d", e.field)
	}
}
