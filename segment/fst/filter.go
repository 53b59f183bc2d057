package fst

import (
	"encoding/binary"
	"math/bits"
)

// A filter rules out most byte strings that no word begins with, by one memory access. A walk for typos asks it about words that it can
// spell out: in a large dictionary, each state on the way to such a word is a cache miss.
//
// It is a Bloom filter over the first 4, 6, 8 and 12 bytes of the words. It has 12 to 24 bits per prefix, but at most 3 to 6 bytes per
// word. All bits of a prefix are in one little-endian number of 64 bits. If the first character is not ASCII, the filter also has its first
// byte with the 4 bytes after the character: in a dictionary of several scripts, thousands of characters may replace the first one.

// filterLengths are the lengths of the beginnings, ascending.
var filterLengths = [...]int{4, 6, 8, maxBeginning}

const (
	maxBeginning  = 12
	behindFirst   = 4  // bytes behind the first character
	filterBits    = 12 // per beginning, or more, up to the limit per word
	wordBytes     = 3  // per word at most, or twice as many
	filterWord    = 8  // bytes
	maxFilterSize = 1 << 30
)

// FilterWriter makes a filter of words that arrive in byte order.
type FilterWriter struct {
	bits       []byte
	last       []byte // the word before, as far as it counts
	words      int
	beginnings int
	waiting    [64]waitingBits
	waits      int // of waiting
}

// waitingBits are bits that wait to be set. A large filter is not in the caches of the processor. If several beginnings are set in a row,
// the processor loads their places side by side.
type waitingBits struct {
	at   int
	mask uint64
}

// NewFilterWriter returns a writer for up to the given number of words. It takes 3 to 6 bytes of memory per word, at most 1 GiB.
func NewFilterWriter(words int) *FilterWriter {
	return &FilterWriter{bits: make([]byte, sizeFor(words*wordBytes))}
}

// NewFilterWriterOf returns a writer for comparing a filter of the given size in bytes with its words.
func NewFilterWriterOf(size int) *FilterWriter { return &FilterWriter{bits: make([]byte, size)} }

// Add takes the next word.
func (w *FilterWriter) Add(word []byte) {
	w.words++
	same := 0
	for same < min(len(word), len(w.last), maxBeginning) && word[same] == w.last[same] {
		same++
	}
	for _, n := range filterLengths {
		if n > same && n <= len(word) {
			w.set(beginningOf(word[:n]))
		}
	}
	if n := behindLength(word); n > same && n <= len(word) {
		w.set(behindOf(word[0], word[n-behindFirst:n]))
	}
	w.last = append(w.last[:0], word[:min(len(word), maxBeginning)]...)
}

func (w *FilterWriter) set(b beginning) {
	w.beginnings++
	if w.waits == len(w.waiting) {
		w.settle()
	}
	o := &w.waiting[w.waits]
	o.at, o.mask = place(b, len(w.bits))
	w.waits++
}

// settle sets the bits that wait.
func (w *FilterWriter) settle() {
	for i := range w.waiting[:w.waits] {
		o := &w.waiting[i]
		binary.LittleEndian.PutUint64(w.bits[o.at:], binary.LittleEndian.Uint64(w.bits[o.at:])|o.mask)
	}
	w.waits = 0
}

// Filter returns the filter. It depends on the words alone, not on how many were announced.
func (w *FilterWriter) Filter() []byte {
	w.settle()
	size := min(sizeFor(w.beginnings*filterBits/8), sizeFor(w.words*wordBytes), len(w.bits))
	p := w.bits
	for len(p) > size { // a place in half of it is that in the whole, less the highest bit
		half := len(p) / 2
		for i := 0; i < half; i += filterWord {
			binary.LittleEndian.PutUint64(p[i:], binary.LittleEndian.Uint64(p[i:])|binary.LittleEndian.Uint64(p[half+i:]))
		}
		p = p[:half]
	}
	return p
}

// sizeFor returns the size of a filter with at least size bytes, up to the maximum: a power of two.
func sizeFor(size int) int {
	n := filterWord
	for n < size && n < maxFilterSize {
		n *= 2
	}
	return n
}

// behindLength is the number of bytes of the first character of a word and the following bytes in the filter, or 0 if the character
// is ASCII.
func behindLength(word []byte) int {
	if len(word) == 0 || word[0] < firstByte {
		return 0
	}
	switch first := word[0]; {
	case first < 0xe0:
		return 2 + behindFirst
	case first < 0xf0:
		return 3 + behindFirst
	}
	return 4 + behindFirst
}

// firstByte is the least first byte of a character of several bytes.
const firstByte = 0xc0

// behindOf is the beginning for the first byte of a character and the bytes after the character. No other beginning has its number of
// bytes.
func behindOf(first byte, behind []byte) beginning {
	return beginning{uint64(first) | uint64(binary.LittleEndian.Uint32(behind))<<8, 0xff << 56}
}

// filterLength returns how many bytes of n the filter knows; 0 for none.
func filterLength(n int) int {
	for i := len(filterLengths) - 1; i >= 0; i-- {
		if filterLengths[i] <= n {
			return filterLengths[i]
		}
	}
	return 0
}

// SetFilter makes walks use a filter. It may be empty, which means none. It reports whether the filter is valid.
func (f *FST) SetFilter(p []byte) bool {
	if len(p) > 0 && (len(p) < filterWord || len(p) > maxFilterSize || len(p)&(len(p)-1) != 0) {
		return false
	}
	f.filter = p
	return true
}

// Bare returns the dictionary without its filter.
func (f *FST) Bare() FST {
	bare := *f
	bare.filter = nil
	return bare
}

// beginning is up to 12 bytes and their number.
type beginning struct {
	low  uint64 // of the first 8
	high uint64 // of the others, and the number in the uppermost byte
}

func beginningOf(b []byte) (n beginning) {
	var buf [16]byte
	copy(buf[:maxBeginning], b)
	buf[15] = byte(len(b))
	return beginning{binary.LittleEndian.Uint64(buf[:]), binary.LittleEndian.Uint64(buf[8:])}
}

// place returns the offset of the number that has the bits of a prefix, in a filter of size bytes, and a mask of these bits.
func place(b beginning, size int) (at int, mask uint64) {
	h, l := bits.Mul64(b.low^0x9e3779b97f4a7c15, b.high^0xe7037ed1a0b428db)
	h = (h ^ l) * 0xa0761d6478bd642f
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	h ^= h >> 29
	return int(h&uint64(size/filterWord-1)) * filterWord, 1<<(h>>58) | 1<<(h>>52&63) | 1<<(h>>46&63) | 1<<(h>>40&63)
}

// mayBegin reports whether a word may begin so.
func (f *FST) mayBegin(b beginning) bool {
	return f.hasBits(place(b, len(f.filter)))
}

// hasBits reports whether the filter has all bits of a mask at an offset.
func (f *FST) hasBits(at int, mask uint64) bool {
	return binary.LittleEndian.Uint64(f.filter[at:])&mask == mask
}

// asked is how many questions are asked at once, at most.
const asked = 64

// question is about a transition, as counted in branches.may, and a rest.
type question struct {
	mask       uint64
	at         uint32
	transition uint8
	rest       uint8
}

// ask asks the filter about the transitions of a frame, from i on, that lead to its others. Each answer is a cache miss. All places
// are computed before the first one is read, so that the processor waits for many misses at once.
func (w *Walk) ask(top *frame, i int) {
	b := &top.branches
	b.from = i
	n := 0
	for ; i < int(top.n) && i-b.from < len(b.may) && n+b.n <= len(w.questions); i++ {
		b.may[i-b.from] = 0
		open := w.f.byteAt(&top.state, i)
		if !b.others.has(open) {
			continue
		}
		for k := range b.spelt[:b.n] {
			c := &b.spelt[k]
			if c.blunt {
				b.may[i-b.from] |= 1 << k
				continue
			}
			at, mask := place(c.with(open), len(w.f.filter))
			w.questions[n] = question{mask, uint32(at), uint8(i - b.from), uint8(k)}
			n++
		}
	}
	b.to = i
	for i := range w.questions[:n] {
		q := &w.questions[i]
		if w.f.hasBits(int(q.at), q.mask) {
			b.may[q.transition] |= 1 << q.rest
		}
	}
}

// noneBehind reports whether the filter rules out every accepted word that begins with a character whose first byte is b. It is false
// if an edit is left, or if such a character is near in the word of the automaton. state is the state after b.
func (w *Walk) noneBehind(b byte, state int) bool {
	rests, ok := w.typos.Unlike(state, w.rests[:0])
	if !ok {
		return false
	}
	for _, r := range rests {
		var buf [behindFirst]byte
		n := 0
		for k := r.next(r.At); n < len(buf) && int(k) < len(w.text); k = r.next(k + 1) {
			buf[n] = w.text[k]
			n++
		}
		if n < len(buf) || w.f.mayBegin(behindOf(b, buf[:])) {
			return false
		}
	}
	return true
}

// candidate is a byte string with one byte open.
type candidate struct {
	beginning
	shift uint8 // of the open byte
	upper bool  // it is among the others
	blunt bool  // the filter does not know: all may be words
}

// candidateOf makes a candidate of a word, the open byte and the rest.
func (w *Walk) candidateOf(r Rest) (c candidate) {
	at := len(w.word)
	n := filterLength(at + 1 + int(r.Begin-r.At) + len(w.text) - int(r.Tail))
	if n <= at {
		return candidate{blunt: true}
	}
	var buf [maxBeginning]byte
	copy(buf[:], w.word)
	i := at + 1
	for k := r.next(r.At); i < n; k = r.next(k + 1) {
		buf[i] = w.text[k]
		i++
	}
	c.beginning = beginningOf(buf[:n])
	c.upper, c.shift = at >= 8, uint8(at%8*8)
	return c
}

// with is the beginning with the open byte.
func (c *candidate) with(b byte) beginning {
	n := c.beginning
	if c.upper {
		n.high |= uint64(b) << c.shift
	} else {
		n.low |= uint64(b) << c.shift
	}
	return n
}
