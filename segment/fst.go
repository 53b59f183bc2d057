package segment

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/blevesearch/vellum"
)

// fst walks an automaton in vellum's format 1 (its docs/format.md), from word to
// number. vellum itself writes it; but walking is the hottest part of a search,
// where vellum allocates and calls through an interface for every state, and it trusts
// the bytes, which panics where they are damaged.
//
// A state stands before the states that lead to it, and is read backwards from its
// address:
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
// A target is the distance back from the lowest byte of the state; 0 is the
// final state without transitions.
type fst struct {
	data  []byte
	root  uint32
	words int
}

const (
	fstHeaderBytes = 16 // u64 version, u64 type
	fstFooterBytes = 16 // u64 words, u64 address of the root
	fstVersion     = 1

	fstSingle    = 0x80
	fstNext      = 0x40
	fstFinal     = 0x40
	fstCountMask = 0x3f

	// maxFSTBytes keeps addresses in 32 bits; it is reached at hundreds of millions of words.
	maxFSTBytes = 1<<32 - 1

	fstEmpty = 0 // address of the final state without transitions
	fstNone  = 1 // no state
)

// fstCommon are the bytes that code 1… stands for.
const fstCommon = "te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"

var errFST = errors.New("the dictionary has a state that is not inside it")

// openFST reads header and footer.
func openFST(data []byte) (fst, error) {
	if len(data) < fstHeaderBytes+fstFooterBytes {
		return fst{}, errors.New("the dictionary is cut")
	}
	if len(data) > maxFSTBytes {
		return fst{}, errors.New("the dictionary has more than 4 GiB")
	}
	if binary.LittleEndian.Uint64(data) != fstVersion {
		return fst{}, errors.New("the dictionary has an unknown version")
	}
	tail := data[len(data)-fstFooterBytes:]
	words, root := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
	if words > maxRows || root >= uint64(len(data)-fstFooterBytes) || root < fstHeaderBytes && root > fstNone {
		return fst{}, errFST
	}
	return fst{data: data[:len(data)-fstFooterBytes], root: uint32(root), words: int(words)}, nil
}

// fstState is a decoded state. Addresses fit 32 bits, see maxFSTBytes.
type fstState struct {
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
func (f *fst) packed(at, n uint32) uint64 {
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

// state decodes the state at an address; false when it is not inside the bytes.
func (f *fst) state(at uint32, s *fstState) bool {
	if at <= fstNone {
		*s = fstState{final: at == fstEmpty}
		return true
	}
	if at < fstHeaderBytes || int(at) >= len(f.data) {
		return false
	}
	// The up to 3 bytes at and below it that are read unchecked stand above the header's first.
	head := f.data[at]
	if head&fstSingle != 0 {
		s.n, s.single, s.final, s.finalOutput, s.output = 1, true, false, 0, 0
		code := head & fstCountMask
		if code == 0 {
			at--
			s.key = f.data[at]
		} else {
			s.key = fstCommon[code-1]
		}
		if head&fstNext != 0 {
			s.bottom, s.target = at, at-1
			return s.target >= fstHeaderBytes
		}
		at--
		targetBytes, outputBytes := uint32(f.data[at]>>4), uint32(f.data[at]&15)
		if at < fstHeaderBytes+targetBytes+outputBytes {
			return false
		}
		at -= targetBytes + outputBytes
		s.bottom = at
		s.output = f.packed(at, outputBytes)
		var ok bool
		s.target, ok = resolveFST(at, f.packed(at+outputBytes, targetBytes))
		return ok
	}
	s.single, s.final, s.finalOutput = false, head&fstFinal != 0, 0
	n := uint32(head & fstCountMask)
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
	if at < fstHeaderBytes+size {
		return false
	}
	s.keys, s.bottom = at-n, at-size
	if s.final {
		s.finalOutput = f.packed(s.bottom, uint32(s.outputBytes))
	}
	return true
}

// resolveFST turns a distance back into the address of a state, which is always
// lower than that of the state it leads from: no walk goes on for ever.
func resolveFST(bottom uint32, distance uint64) (uint32, bool) {
	if distance == 0 {
		return fstEmpty, true
	}
	return bottom - uint32(distance), distance <= uint64(bottom-fstHeaderBytes)
}

// bytes returns the bytes of the transitions of a state that is not single, the last one's first.
func (f *fst) bytes(s *fstState) []byte { return f.data[s.keys : s.keys+uint32(s.n)] }

// byteAt returns the byte of the i-th transition; they ascend.
func (f *fst) byteAt(s *fstState, i int) byte {
	if s.single {
		return s.key
	}
	return f.data[int(s.keys)+int(s.n)-1-i]
}

// follow returns target and output of the i-th transition.
func (f *fst) follow(s *fstState, i int) (target uint32, output uint64, ok bool) {
	if s.single {
		return s.target, s.output, true
	}
	i = int(s.n) - 1 - i
	targets := s.keys - uint32(s.n)*uint32(s.targetBytes)
	target, ok = resolveFST(s.bottom, f.packed(targets+uint32(i)*uint32(s.targetBytes), uint32(s.targetBytes)))
	if s.outputBytes > 0 {
		outputs := targets - uint32(s.n)*uint32(s.outputBytes)
		output = f.packed(outputs+uint32(i)*uint32(s.outputBytes), uint32(s.outputBytes))
	}
	return target, output, ok
}

// find returns the first transition whose byte is not below b, or s.n.
func (f *fst) find(s *fstState, b byte) int {
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

// get returns the number of a word.
func (f *fst) get(word []byte) (uint64, bool, error) {
	var s fstState
	if !f.state(f.root, &s) {
		return 0, false, errFST
	}
	sum := uint64(0)
	for _, b := range word {
		var i int
		if s.single {
			if s.key != b {
				return 0, false, nil
			}
		} else {
			at := bytes.IndexByte(f.bytes(&s), b)
			if at < 0 {
				return 0, false, nil
			}
			i = int(s.n) - 1 - at
		}
		target, output, ok := f.follow(&s, i)
		if !ok || !f.state(target, &s) {
			return 0, false, errFST
		}
		sum += output
	}
	return sum + s.finalOutput, s.final, nil
}

// fstFrame is a state on the way to the current word.
type fstFrame struct {
	fstState
	next      int    // transition
	sum       uint64 // of the outputs that led here
	automaton int    // state of the automaton
	entered   bool   // the state itself was looked at
}

// fstWalk visits the words from start on, below end, that an automaton accepts, in order.
type fstWalk struct {
	f         *fst
	automaton vellum.Automaton // nil: all
	end       []byte           // nil: none
	stack     []fstFrame
	word      []byte
	value     uint64
	err       error
}

// seek stands before the first word not below start.
func (w *fstWalk) seek(start []byte) {
	w.stack, w.word = w.stack[:0], w.word[:0]
	a := 0
	if w.automaton != nil {
		a = w.automaton.Start()
	}
	if w.f.root == fstNone || w.automaton != nil && !w.automaton.CanMatch(a) || !w.push(w.f.root, 0, a) {
		return
	}
	for _, b := range start {
		top := &w.stack[len(w.stack)-1]
		top.entered = true // it is a prefix of start, so below it
		i := w.f.find(&top.fstState, b)
		top.next = i
		if i == int(top.n) || w.f.byteAt(&top.fstState, i) != b {
			return
		}
		if !w.descend() {
			return
		}
	}
}

// push puts a state on the stack.
func (w *fstWalk) push(at uint32, sum uint64, automaton int) bool {
	if len(w.stack) > maxWordBytes {
		w.err = errFST
		return false
	}
	if len(w.stack) < cap(w.stack) {
		w.stack = w.stack[:len(w.stack)+1]
	} else {
		w.stack = append(w.stack, fstFrame{})
	}
	top := &w.stack[len(w.stack)-1]
	top.next, top.sum, top.automaton, top.entered = 0, sum, automaton, false
	if !w.f.state(at, &top.fstState) {
		w.err = errFST
		return false
	}
	return true
}

// descend takes the next transition of the top frame if the automaton allows it.
func (w *fstWalk) descend() bool {
	top := &w.stack[len(w.stack)-1]
	i := top.next
	top.next++
	b := w.f.byteAt(&top.fstState, i)
	a := 0
	if w.automaton != nil {
		if a = w.automaton.Accept(top.automaton, b); !w.automaton.CanMatch(a) {
			return false
		}
	}
	target, output, ok := w.f.follow(&top.fstState, i)
	if !ok {
		w.err = errFST
		return false
	}
	w.word = append(w.word, b)
	return w.push(target, top.sum+output, a)
}

// next goes to the next word.
func (w *fstWalk) next() bool {
	for len(w.stack) > 0 && w.err == nil {
		top := &w.stack[len(w.stack)-1]
		if !top.entered {
			top.entered = true
			if top.final && (w.automaton == nil || w.automaton.IsMatch(top.automaton)) {
				if w.end != nil && bytes.Compare(w.word, w.end) >= 0 {
					w.stack = w.stack[:0]
					return false
				}
				w.value = top.sum + top.finalOutput
				return true
			}
		}
		descended := false
		for top.next < int(top.n) && !descended {
			if descended = w.descend(); w.err != nil {
				return false
			}
		}
		if !descended {
			w.stack = w.stack[:len(w.stack)-1]
			w.word = w.word[:max(0, len(w.word)-1)]
		}
	}
	return false
}
