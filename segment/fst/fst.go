// Package fst writes and reads dictionaries: finite state transducers from word to number, in vellum's format.
package fst

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// FST is an automaton in vellum's format 1 (its docs/format.md), from word to number. Walking it is the hottest part of a search.
// vellum allocates and calls through an interface for every state, and it trusts the bytes, so it panics if they are damaged. Builder
// writes it.
//
// A state comes before the states that lead to it, and is read backwards from its address:
//
//	one transition:  1 next code(6)              next: to the state just before, without output
//	                 [byte]                      when code is 0
//	                 [sizes, target, output]     when next is 0
//	others:          0 final count(6)
//	                 [count]                     when count is 0; 1 stands for 256
//	                 sizes                       bytes of a target << 4 | bytes of an output
//	                 bytes, targets, outputs     the highest byte's first, read forwards
//	                 [final output]
//
// A target is the distance back from the lowest byte of the state; 0 is the final state without transitions.
type FST struct {
	data  []byte
	root  uint32
	words int

	filter []byte // empty: none

	check func(at uint32) // called before a state is read; nil: none
}

// MaxState is the maximum size of a state in bytes, which end at its address.
const MaxState = 256*(1+15+15) + 15 + 3

// Checked returns the dictionary without its filter. check is called with the address of each state before the state is read.
func (f *FST) Checked(check func(at uint32)) FST {
	checked := f.Bare()
	checked.check = check
	return checked
}

// Words returns how many words there are.
func (f *FST) Words() int { return f.words }

// Empty has no words.
func Empty() FST { return FST{root: noState} }

const (
	HeaderBytes = 16 // u64 version, u64 type
	FooterBytes = 16 // u64 words, u64 address of the root
	Version     = 1

	singleFlag = 0x80
	nextFlag   = 0x40
	finalFlag  = 0x40
	countMask  = 0x3f

	// maxBytes keeps addresses in 32 bits; it is reached at hundreds of millions of words.
	maxBytes = 1<<32 - 1

	maxWords     = 1<<31 - 1
	maxWordBytes = 1<<16 - 1 // a longer path is damage

	emptyState = 0 // address of the final state without transitions
	noState    = 1 // no state
)

// common are the bytes that code 1… stands for.
const common = "te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"

var errOutside = errors.New("the dictionary has a state that is not inside it")

// Open reads header and footer.
func Open(data []byte) (FST, error) {
	if len(data) < HeaderBytes+FooterBytes {
		return FST{}, errors.New("the dictionary is cut")
	}
	if len(data) > maxBytes {
		return FST{}, errors.New("the dictionary has more than 4 GiB")
	}
	if binary.LittleEndian.Uint64(data) != Version {
		return FST{}, errors.New("the dictionary has an unknown version")
	}
	tail := data[len(data)-FooterBytes:]
	words, root := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
	if words > maxWords || root >= uint64(len(data)-FooterBytes) || root < HeaderBytes && root > noState {
		return FST{}, errOutside
	}
	return FST{data: data[:len(data)-FooterBytes], root: uint32(root), words: int(words)}, nil
}

// state is a decoded state. Addresses fit 32 bits, see maxBytes.
type state struct {
	output      uint64 // of a single transition
	finalOutput uint64
	target      uint32 // of a single transition
	bottom      uint32 // lowest address
	keys        uint32 // address of the byte of the last transition; the first has the highest
	n           uint16 // transitions
	targetBytes uint8
	outputBytes uint8 // 0: no outputs
	key         byte  // of a single transition
	single      bool
	final       bool
}

// packed reads n ≤ 15 bytes as a number.
func (f *FST) packed(at, n uint32) uint64 {
	switch n {
	case 1:
		return uint64(f.data[at])
	case 2:
		return uint64(binary.LittleEndian.Uint16(f.data[at:]))
	case 3:
		return uint64(binary.LittleEndian.Uint16(f.data[at:])) | uint64(f.data[at+2])<<16
	}
	v := uint64(0)
	for i := range n {
		v |= uint64(f.data[at+i]) << (8 * i)
	}
	return v
}

// decode decodes the state at an address; false when it is not inside the bytes.
func (f *FST) decode(at uint32, s *state) bool {
	if at <= noState {
		*s = state{final: at == emptyState}
		return true
	}
	if at < HeaderBytes || int(at) >= len(f.data) {
		return false
	}
	if f.check != nil {
		f.check(at)
	}
	// The up to 3 unchecked bytes at and below it are above the first byte of the header.
	head := f.data[at]
	if head&singleFlag != 0 {
		s.n, s.single, s.final, s.finalOutput, s.output = 1, true, false, 0, 0
		code := head & countMask
		if code == 0 {
			at--
			s.key = f.data[at]
		} else {
			s.key = common[code-1]
		}
		if head&nextFlag != 0 {
			s.bottom, s.target = at, at-1
			return s.target >= HeaderBytes
		}
		at--
		targetBytes, outputBytes := uint32(f.data[at]>>4), uint32(f.data[at]&15)
		if at < HeaderBytes+targetBytes+outputBytes {
			return false
		}
		at -= targetBytes + outputBytes
		s.bottom = at
		s.output = f.packed(at, outputBytes)
		var ok bool
		s.target, ok = resolve(at, f.packed(at+outputBytes, targetBytes))
		return ok
	}
	s.single, s.final, s.finalOutput = false, head&finalFlag != 0, 0
	n := uint32(head & countMask)
	if n == 0 {
		at--
		if n = uint32(f.data[at]); n == 1 {
			n = 256
		}
	}
	at--
	s.n, s.targetBytes, s.outputBytes = uint16(n), f.data[at]>>4, f.data[at]&15
	size := n * (1 + uint32(s.targetBytes) + uint32(s.outputBytes))
	if s.final {
		size += uint32(s.outputBytes)
	}
	if at < HeaderBytes+size {
		return false
	}
	s.keys, s.bottom = at-n, at-size
	if s.final {
		s.finalOutput = f.packed(s.bottom, uint32(s.outputBytes))
	}
	return true
}

// resolve converts a distance into the address of a state. It is always lower than that of the state it leads from, so no walk is
// endless.
func resolve(bottom uint32, distance uint64) (uint32, bool) {
	if distance == 0 {
		return emptyState, true
	}
	return bottom - uint32(distance), distance <= uint64(bottom-HeaderBytes)
}

// bytes returns the bytes of the transitions of a state that is not single, the last one's first.
func (f *FST) bytes(s *state) []byte { return f.data[s.keys : s.keys+uint32(s.n)] }

// byteAt returns the byte of the i-th transition; they ascend.
func (f *FST) byteAt(s *state, i int) byte {
	if s.single {
		return s.key
	}
	return f.data[int(s.keys)+int(s.n)-1-i]
}

// follow returns target and output of the i-th transition.
func (f *FST) follow(s *state, i int) (target uint32, output uint64, ok bool) {
	if s.single {
		return s.target, s.output, true
	}
	i = int(s.n) - 1 - i
	targets := s.keys - uint32(s.n)*uint32(s.targetBytes)
	target, ok = resolve(s.bottom, f.packed(targets+uint32(i)*uint32(s.targetBytes), uint32(s.targetBytes)))
	if s.outputBytes > 0 {
		outputs := targets - uint32(s.n)*uint32(s.outputBytes)
		output = f.packed(outputs+uint32(i)*uint32(s.outputBytes), uint32(s.outputBytes))
	}
	return target, output, ok
}

// find returns the first transition whose byte is at least b, or s.n.
func (f *FST) find(s *state, b byte) int {
	if s.single {
		if s.key >= b {
			return 0
		}
		return 1
	}
	keys := f.bytes(s)
	if i := bytes.IndexByte(keys, b); i >= 0 {
		return int(s.n) - 1 - i
	}
	i := 0
	for i < len(keys) && keys[len(keys)-1-i] < b {
		i++
	}
	return i
}

// exactly returns the transition whose byte is b, or −1.
func (f *FST) exactly(s *state, b byte) int {
	if s.single {
		if s.key == b {
			return 0
		}
		return -1
	}
	at := bytes.IndexByte(f.bytes(s), b)
	if at < 0 {
		return -1
	}
	return int(s.n) - 1 - at
}

// Get returns the number of a word.
func (f *FST) Get(word []byte) (uint64, bool, error) {
	var s state
	if !f.decode(f.root, &s) {
		return 0, false, errOutside
	}
	sum := uint64(0)
	for _, b := range word {
		i := f.exactly(&s, b)
		if i < 0 {
			return 0, false, nil
		}
		target, output, ok := f.follow(&s, i)
		if !ok || !f.decode(target, &s) {
			return 0, false, errOutside
		}
		sum += output
	}
	return sum + s.finalOutput, s.final, nil
}

// Begins reports whether some word begins with a prefix.
func (f *FST) Begins(prefix []byte) (bool, error) {
	if f.root == noState {
		return false, nil
	}
	var s state
	for at := f.root; f.decode(at, &s); prefix = prefix[1:] {
		if len(prefix) == 0 {
			return true, nil
		}
		i := f.exactly(&s, prefix[0])
		if i < 0 {
			return false, nil
		}
		var ok bool
		if at, _, ok = f.follow(&s, i); !ok {
			break
		}
	}
	return false, errOutside
}

// Cursor walks down the words a byte at a time. The zero value is not usable. A copy is independent.
type Cursor struct {
	f   *FST
	s   state
	sum uint64
}

// Cursor stands before the first byte of every word.
func (f *FST) Cursor() Cursor {
	c := Cursor{f: f}
	if !f.decode(f.root, &c.s) {
		c.s = state{}
	}
	return c
}

// Next appends b and reports whether a word continues so. If none does, the cursor must not be used any more. Damage ends words.
func (c *Cursor) Next(b byte) bool {
	i := c.f.exactly(&c.s, b)
	if i < 0 {
		return false
	}
	target, output, ok := c.f.follow(&c.s, i)
	c.sum += output
	return ok && c.f.decode(target, &c.s)
}

// Value returns the number of the word that the cursor has read, if it is a word.
func (c *Cursor) Value() (value uint64, ok bool) { return c.sum + c.s.finalOutput, c.s.final }

// Budget is an automaton that accepts everything until more transitions
// were tried than a dictionary with these words can have: in a sound one, every
// transition leads to a word. It keeps hostile bytes from being walked for ever.
type Budget struct{ Left int }

func (e *Budget) Start() int { return 0 }

func (e *Budget) IsMatch(int) bool { return true }

func (e *Budget) CanMatch(int) bool { return e.Left > 0 }

func (e *Budget) WillAlwaysMatch(int) bool { return false }

func (e *Budget) Accept(state int, _ byte) int { e.Left--; return state }
