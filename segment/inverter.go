package segment

import (
	"cmp"
	"encoding/binary"
	"runtime"
	"slices"
)

// maxWordBytes is the longest word that is kept.
const maxWordBytes = 1<<16 - 1

// inverter is the inverted index in memory: for each (word, field) the rows
// and positions, nearly in the code in which they are written, in chains of slices of
// growing size (as in Lucene's ByteBlockPool).
type inverter struct {
	words   wordTable
	slabs   arena
	waiting [maxWaiting]waitingWord
	waits   int    // of waiting
	rests   []byte // what longer words of waiting have behind the first entryWord bytes
}

// waitingWord is a word that waits to be added. What several need of the table is loaded at once: a segment has more words than fit the
// caches of the processor, and one load after another would wait for memory.
type waitingWord struct {
	wordKey
	row      uint32
	position uint16
	entry    int // in the table; −1: not found yet
}

const maxWaiting = 16

// wordList is the rows and positions of one word in one field. Most words of a segment are rare, so its size counts.
//
// They are encoded row after row: the uvarint distance − 1 from the previous row, except for the first, and the positions, the last
// byte of which is marked when the next row begins. The last bytes of the code stay in the list: memory elsewhere is touched once per
// several rows, and not at all for most words.
type wordList struct {
	count    uint32 // rows
	firstRow uint32
	lastRow  uint32
	next     uint32 // last position of lastRow + 1
	head     uint32 // address of the first slice, if level > 0
	at       uint32 // of the next byte in the last one
	left     uint16 // bytes up to the link
	level    uint8  // slices, as far as they grow
	held     uint8  // bytes in tail
	tail     [listTail]byte
}

const listTail = 12

// sliceBytes are the sizes of a chain's slices, link apart. They are multiples of listTail.
var sliceBytes = [...]uint16{1 * listTail, 2 * listTail, 5 * listTail, 10 * listTail, 21 * listTail, 42 * listTail, 85 * listTail}

const linkBytes = 4

// put appends a byte to the code of a list.
func (v *inverter) put(l *wordList, b byte) {
	if l.held == listTail {
		v.spill(l)
	}
	l.tail[l.held] = b
	l.held++
}

// spill moves the tail of a list to its slices. A full slice links to the next, larger one by the four bytes at its end.
func (v *inverter) spill(l *wordList) {
	if l.left == 0 {
		size := sliceBytes[min(int(l.level), len(sliceBytes)-1)]
		at := v.slabs.alloc(int(size) + linkBytes)
		if l.level == 0 {
			l.head = at
		} else {
			binary.LittleEndian.PutUint32(v.slabs.bytes(l.at, linkBytes), at)
		}
		l.at, l.left = at, size
		l.level = min(l.level+1, uint8(len(sliceBytes)))
	}
	*(*[listTail]byte)(v.slabs.chunks[l.at>>16][l.at&0xffff:]) = l.tail
	l.at += listTail
	l.left -= listTail
	l.held = 0
}

// read appends the code of a list.
func (v *inverter) read(dst []byte, l *wordList) []byte {
	at := l.head
	for level := 0; l.level > 0; level = min(level+1, len(sliceBytes)-1) {
		size := uint32(sliceBytes[level])
		if end := at + size; l.at >= at && l.at <= end {
			dst = append(dst, v.slabs.bytes(at, int(l.at-at))...)
			break
		}
		dst = append(dst, v.slabs.bytes(at, int(size))...)
		at = binary.LittleEndian.Uint32(v.slabs.bytes(at+size, linkBytes))
	}
	return append(dst, l.tail[:l.held]...)
}

// add records an occurrence; rows come in ascending order, positions of a row too.
func (v *inverter) add(row uint32, f FieldID, word []byte, position uint16) {
	if len(word) == 0 || len(word) > maxWordBytes {
		return
	}
	if v.waits == maxWaiting {
		v.settle()
	}
	o := &v.waiting[v.waits]
	o.wordKey.set(word, uint16(f))
	o.row, o.position = row, position
	if len(word) > entryWord {
		v.rests = append(v.rests, word[entryWord:]...)
	}
	v.waits++
}

// settle adds the words that wait.
func (v *inverter) settle() {
	waiting := v.waiting[:v.waits]
	v.words.seek(waiting)
	rests := v.rests
	for i := range waiting {
		o := &waiting[i]
		var rest []byte
		if o.size > entryWord {
			n := int(o.size) - entryWord
			rest, rests = rests[:n], rests[n:]
		}
		if o.entry >= 0 {
			if e := v.words.at(o.entry); v.words.hasRest(e, rest) {
				v.occurs(&e.wordList, o.row, o.position)
				continue
			}
		}
		e, fresh := v.words.entry(&o.wordKey, rest)
		if fresh {
			e.firstRow, e.lastRow, e.count = o.row, o.row, 1
		}
		v.occurs(&e.wordList, o.row, o.position)
	}
	v.waits, v.rests = 0, v.rests[:0]
}

// occurs adds an occurrence to a list, which has a row already.
func (v *inverter) occurs(l *wordList, row uint32, position uint16) {
	switch {
	case l.lastRow != row:
		l.endRow()
		d := row - l.lastRow - 1
		for ; d >= 0x80; d >>= 7 {
			v.put(l, byte(d)|0x80)
		}
		v.put(l, byte(d))
		l.lastRow, l.next = row, 0
		l.count++
	case uint32(position) < l.next:
		return // the same position again
	}
	d := uint32(position) - l.next
	for ; d > payload; d >>= 6 {
		v.put(l, byte(d&payload))
	}
	v.put(l, byte(d)|endOfNumber)
	l.next = uint32(position) + 1
}

// endRow marks the last position of the last row. This position is still in the tail: it moves to a slice only when the next position
// arrives.
func (l *wordList) endRow() { l.tail[l.held-1] |= endOfRow }

// largest returns the bytes of the larger one of the two arenas, whose addresses have 32 bits.
func (v *inverter) largest() int64 { return max(v.slabs.size, v.words.arena.size) }

func (v *inverter) memoryBytes() int64 {
	return v.words.memoryBytes() + v.slabs.memoryBytes() + int64(cap(v.rests))
}

// wordOrder is a (word, field) on its way to be sorted. It has enough of the word that most words are compared and written without a
// look at their text, which is elsewhere in memory.
type wordOrder struct {
	head   uint64 // first 8 bytes of the word, zero-padded, big-endian
	number uint32 // in the inverter; once its posting is written, the address of its list in wordLists
	field  uint16
	size   uint16 // of the word
}

// compareWords orders words by their bytes.
func (v *inverter) compareWords(a, b *wordOrder) int {
	if a.head != b.head {
		return cmp.Compare(a.head, b.head)
	}
	if a.size <= 8 || b.size <= 8 { // as far as the shorter one goes, they are equal
		return cmp.Compare(a.size, b.size)
	}
	return v.words.compareRests(int(a.number), int(b.number))
}

// word returns the bytes of a word, in scratch if they are few.
func (v *inverter) word(w *wordOrder, scratch *[entryWord]byte) []byte {
	if w.size <= 8 {
		binary.BigEndian.PutUint64(scratch[:], w.head)
		return scratch[:w.size]
	}
	return v.words.word(int(w.number), scratch)
}

// sorted returns the numbers of all (word, field), sorted by word, then field. It calls worked for comparisons. It first groups words
// by their first byte, or the first two if there are many.
func (v *inverter) sorted(worked func(n int)) []wordOrder {
	v.settle()
	shift := 56
	if v.words.count >= 1<<14 {
		shift = 48
	}
	ends := make([]uint32, 1<<(64-shift)) // by these bytes
	for _, chunk := range v.words.chunks {
		for i := range chunk {
			ends[chunk[i].head>>shift]++
		}
	}
	end := uint32(0)
	for i, n := range ends { // where those before end; then, as words are laid out, where they end themselves
		ends[i], end = end, end+n
	}
	order := make([]wordOrder, v.words.count)
	n := uint32(0)
	for _, chunk := range v.words.chunks {
		for i := range chunk {
			e := &chunk[i]
			to := &ends[e.head>>shift]
			order[*to] = wordOrder{head: e.head, number: n, field: e.field, size: e.size}
			*to++
			n++
		}
	}
	start := uint32(0)
	for _, end := range ends {
		if end-start > 1 {
			slices.SortFunc(order[start:end], func(a, b wordOrder) int {
				worked(1)
				if c := v.compareWords(&a, &b); c != 0 {
					return c
				}
				return cmp.Compare(a.field, b.field)
			})
		}
		start = end
	}
	return order
}

// load reads from the memory of some words that are about to be decoded. The loads do not depend on each other, so the processor does
// them side by side; word and field would wait for one after the other.
func (v *inverter) load(words []wordOrder) {
	var sum byte
	for i := range words {
		sum += v.words.at(int(words[i].number)).level
	}
	for i := range words {
		e := v.words.at(int(words[i].number))
		if e.level > 0 {
			sum += v.slabs.bytes(e.wordList.head, 1)[0]
		}
		if e.size > entryWord {
			sum += v.words.arena.bytes(e.key, 1)[0]
		}
	}
	runtime.KeepAlive(sum) // so that the reads are not optimized away
}

// field decodes one (word, field); rows and positions are appended to the buffers.
func (v *inverter) field(w wordOrder, b *listBuffers) fieldRows {
	l := &v.words.at(int(w.number)).wordList
	l.endRow()
	b.code = v.read(b.code[:0], l)
	fromRow, fromPos := len(b.rows), len(b.positions)
	b.rows = append(slices.Grow(b.rows, int(l.count)), l.firstRow)
	b.positions = slices.Grow(b.positions, len(b.code))[:fromPos+len(b.code)]
	b.list = slices.Grow(b.list[:0], len(b.code))[:len(b.code)]
	positions, list, row := b.positions[fromPos:], b.list, l.firstRow
	p, n := 0, 0 // bytes of positions and of the list
	for i := 0; i < len(b.code); {
		c := b.code[i]
		i++
		positions[p] = c
		p++
		if c < endOfRow || i == len(b.code) {
			continue
		}
		d := uint32(0)
		for shift := 0; ; shift += 7 {
			c := b.code[i]
			i++
			list[n] = c
			n++
			if d |= uint32(c&0x7f) << shift; c < 0x80 {
				break
			}
		}
		row += d + 1
		b.rows = append(b.rows, row)
	}
	b.positions, b.list = b.positions[:fromPos+p], list[:n]
	return fieldRows{id: FieldID(w.field), rows: b.rows[fromRow:], positions: positions[:p]}
}

// listBuffers has reusable buffers for a decoded word.
type listBuffers struct {
	rows      []uint32
	positions []byte
	list      []byte // of the last field: the uvarint distances − 1 of the rows after the first
	code      []byte // of the last field
}

// wordLists has the lists of words while prefixes are built from them.
type wordLists interface {
	// list returns the first row of a list, the uvarint distances − 1 of the others, and the positions, valid until forget.
	list(address uint32) (first uint32, list, positions []byte)
	forget()
}

// sequentialLists has copies of lists of an inverter in the order of their words. Reading the originals in that order would miss the
// caches of the processor at each word.
//
//	uvarint first row, uvarint length of the other rows, uvarint length of the positions, other rows, positions
type sequentialLists struct{ chunks [][]byte }

const (
	sequentialChunkBits  = 20 // of an address are the place in the chunk, the others its number
	sequentialChunkBytes = 1 << sequentialChunkBits
)

// add appends a list and returns its address.
func (s *sequentialLists) add(fr fieldRows, list []byte) uint32 {
	last := len(s.chunks) - 1
	if need := 3*binary.MaxVarintLen32 + len(list) + len(fr.positions); last < 0 || min(cap(s.chunks[last]), sequentialChunkBytes)-len(s.chunks[last]) < need {
		size := 1 << 12 // most segments have few words
		if last >= 0 {
			size = min(4*cap(s.chunks[last]), sequentialChunkBytes)
		}
		s.chunks = append(s.chunks, make([]byte, 0, max(size, need)))
		last++
	}
	b := s.chunks[last]
	address := uint32(last)<<sequentialChunkBits | uint32(len(b))
	b = binary.AppendUvarint(b, uint64(fr.rows[0]))
	b = binary.AppendUvarint(b, uint64(len(list)))
	b = binary.AppendUvarint(b, uint64(len(fr.positions)))
	s.chunks[last] = append(append(b, list...), fr.positions...)
	return address
}

// list implements wordLists. Its result stays valid.
func (s *sequentialLists) list(address uint32) (first uint32, list, positions []byte) {
	b := s.chunks[address>>sequentialChunkBits][address&(sequentialChunkBytes-1):]
	row, n := binary.Uvarint(b)
	b = b[n:]
	size, n := binary.Uvarint(b)
	b = b[n:]
	more, n := binary.Uvarint(b)
	b = b[n:]
	return uint32(row), b[:size], b[size : size+more]
}

func (s *sequentialLists) forget() {}
