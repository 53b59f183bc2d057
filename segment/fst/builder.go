package fst

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Builder makes an FST of words that arrive in byte order. Equal states are written once, as far as the registry finds them.
//
// The states on the path of the last word are open, because further words may add transitions. Add closes those that the next word
// does not share with it, the deepest first, so that the target of a transition is known when its state is written.
type Builder struct {
	data  []byte // the FST so far
	open  []openState
	last  []byte // the word before
	words int
	next  uint32 // address of the state that was written last

	registry []uint64 // ways slots a bucket, those used last first: upper half of the hash, address; 0 is empty
	mask     uint64   // of the number of a bucket
}

// openState is a state on the path of the last word. The transition that this path takes is not among the others: its target is open.
type openState struct {
	closed []transition // ascending by byte
	output uint64       // of the open transition
	count  uint64       // the final output
	final  bool
}

type transition struct {
	output uint64
	target uint32
	key    byte
}

// A registry for many words has ways × maxBuckets slots, 256 KiB: it stays in the caches of a processor. More slots make dictionaries
// hardly smaller.
const (
	ways       = 4
	minBuckets = 16
	maxBuckets = 1 << 13
)

// NewBuilder returns a builder for about the given number of words.
func NewBuilder(words int) *Builder {
	buckets := minBuckets
	for buckets < maxBuckets && buckets*ways < 2*words {
		buckets *= 2
	}
	return newBuilder(buckets)
}

func newBuilder(buckets int) *Builder {
	b := &Builder{data: make([]byte, HeaderBytes, 1<<10), next: noState, open: make([]openState, 1, 32), registry: make([]uint64, ways*buckets), mask: uint64(buckets - 1)}
	binary.LittleEndian.PutUint64(b.data, Version)
	return b
}

var errTooLarge = errors.New("the dictionary has more than 4 GiB")

// Add adds a word with its number. Words ascend strictly.
func (b *Builder) Add(word []byte, number uint64) error {
	same := 0
	for same < len(word) && same < len(b.last) && word[same] == b.last[same] {
		same++
	}
	if b.words > 0 && (same == len(word) || same < len(b.last) && word[same] < b.last[same]) {
		return fmt.Errorf("the word %q does not follow %q", word, b.last)
	}
	if len(b.data) > maxBytes {
		return errTooLarge
	}
	for i := range same { // the path has what all of its words have in common
		s := &b.open[i]
		if number < s.output {
			b.open[i+1].raise(s.output - number)
			s.output = number
		}
		number -= s.output
	}
	b.close(same)
	b.words++
	b.last = append(b.last[:same], word[same:]...)
	for len(b.open) <= len(word) {
		b.open = append(b.open, openState{})
	}
	end := &b.open[len(word)]
	end.final = true
	if same < len(word) {
		b.open[same].output = number
	} else {
		end.count = number // the empty word
	}
	return nil
}

// raise adds to the numbers of all words that lead through s.
func (s *openState) raise(by uint64) {
	if s.final {
		s.count += by
	}
	for i := range s.closed {
		s.closed[i].output += by
	}
	s.output += by
}

// close writes the states of the last word below a depth.
func (b *Builder) close(depth int) {
	for i := len(b.last); i > depth; i-- {
		s, before := &b.open[i], &b.open[i-1]
		before.closed = append(before.closed, transition{before.output, b.address(s), b.last[i-1]})
		before.output = 0
		*s = openState{closed: s.closed[:0]}
	}
}

// Finish returns the FST. The builder is not used afterwards.
func (b *Builder) Finish() ([]byte, error) {
	b.close(0)
	root := b.address(&b.open[0])
	b.data = binary.LittleEndian.AppendUint64(b.data, uint64(b.words))
	b.data = binary.LittleEndian.AppendUint64(b.data, uint64(root))
	if len(b.data) > maxBytes {
		return nil, errTooLarge
	}
	return b.data, nil
}

// address returns the address of a state, which it writes unless the registry has one that is equal.
func (b *Builder) address(s *openState) uint32 {
	if s.final && len(s.closed) == 0 && s.count == 0 {
		return emptyState
	}
	h := s.hash()
	first := int(h&b.mask) * ways
	bucket := b.registry[first : first+ways : first+ways]
	for i, slot := range bucket {
		if slot>>32 == h>>32 && slot != 0 && b.equal(uint32(slot), s) {
			copy(bucket[1:i+1], bucket)
			bucket[0] = slot
			return uint32(slot)
		}
	}
	b.write(s)
	b.next = uint32(len(b.data) - 1)
	copy(bucket[1:], bucket)
	bucket[0] = h>>32<<32 | uint64(b.next)
	return b.next
}

func (s *openState) hash() uint64 {
	h := s.count
	if s.final {
		h = ^h
	}
	for _, t := range s.closed {
		high, low := bits.Mul64(h^0x9e3779b97f4a7c15^(uint64(t.target)<<8|uint64(t.key)), t.output^0xe7037ed1a0b428db)
		h = high ^ low
	}
	return h
}

// equal reports whether the state at an address is s.
func (b *Builder) equal(at uint32, s *openState) bool {
	var w state
	f := FST{data: b.data}
	if !f.decode(at, &w) || int(w.n) != len(s.closed) || w.final != s.final || w.finalOutput != s.count {
		return false
	}
	for i := range s.closed {
		t := &s.closed[i]
		if target, output, _ := f.follow(&w, i); target != t.target || f.byteAt(&w, i) != t.key || output != t.output {
			return false
		}
	}
	return true
}

// write writes a state, as FST documents.
func (b *Builder) write(s *openState) {
	bottom := uint32(len(b.data))
	distance := func(t *transition) uint64 {
		if t.target == emptyState {
			return 0
		}
		return uint64(bottom - t.target)
	}
	if len(s.closed) == 1 && !s.final {
		t := &s.closed[0]
		flags := byte(singleFlag | nextFlag)
		if t.output != 0 || t.target != b.next {
			flags = singleFlag
			d := distance(t)
			targetBytes, outputBytes := packedBytes(d), 0
			if t.output != 0 {
				outputBytes = packedBytes(t.output)
				b.pack(t.output, outputBytes)
			}
			b.pack(d, targetBytes)
			b.data = append(b.data, byte(targetBytes<<4|outputBytes))
		}
		code := codes[t.key]
		if code == 0 {
			b.data = append(b.data, t.key)
		}
		b.data = append(b.data, flags|code)
		return
	}
	var farthest, outputs uint64
	for i := range s.closed {
		farthest = max(farthest, distance(&s.closed[i]))
		outputs |= s.closed[i].output
	}
	targetBytes, outputBytes := 0, 0
	if len(s.closed) > 0 {
		targetBytes = packedBytes(farthest)
	}
	if outputs |= s.count; outputs != 0 {
		outputBytes = packedBytes(outputs)
		if s.final {
			b.pack(s.count, outputBytes)
		}
		for i := len(s.closed) - 1; i >= 0; i-- {
			b.pack(s.closed[i].output, outputBytes)
		}
	}
	for i := len(s.closed) - 1; i >= 0; i-- {
		b.pack(distance(&s.closed[i]), targetBytes)
	}
	for i := len(s.closed) - 1; i >= 0; i-- {
		b.data = append(b.data, s.closed[i].key)
	}
	b.data = append(b.data, byte(targetBytes<<4|outputBytes))
	head := byte(0)
	switch n := len(s.closed); {
	case n == 256:
		b.data = append(b.data, 1)
	case n == 0 || n > countMask:
		b.data = append(b.data, byte(n))
	default:
		head = byte(n)
	}
	if s.final {
		head |= finalFlag
	}
	b.data = append(b.data, head)
}

// pack writes the lowest n bytes of a number.
func (b *Builder) pack(v uint64, n int) {
	b.data = binary.LittleEndian.AppendUint64(b.data, v)
	b.data = b.data[:len(b.data)-8+n]
}

// packedBytes is how many bytes a number takes, at least one.
func packedBytes(v uint64) int { return max(1, (bits.Len64(v)+7)/8) }

// codes are the inverse of common.
var codes = func() (c [256]byte) {
	for i := range len(common) {
		c[common[i]] = byte(i + 1)
	}
	return c
}()
