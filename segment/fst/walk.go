package fst

import (
	"bytes"

	"github.com/blevesearch/vellum"
)

// frame is a state on the way to the current word.
type frame struct {
	state
	next      int    // transition
	sum       uint64 // of the outputs that led here
	automaton int    // state of the automaton
	length    int    // of the word that leads here
	entered   bool   // the state itself was looked at
	settled   bool   // the automaton accepts all that follows
	branched  bool   // branches belongs to the frame
	branches  branches
}

// Walk visits the words from start on, below end, that an automaton accepts, in order.
type Walk struct {
	f         *FST
	automaton vellum.Automaton // nil: all
	typos     Typos            // the automaton, if it is one
	end       []byte           // nil: none
	stack     []frame
	word      []byte
	value     uint64
	text      []byte // of typos
	prefix    bool
	endings   []ending // that follow the top frame
	rests     [MaxRests]Rest
	questions [asked]question
	expect    func(at uint32)
	err       error
}

// Expect sets a function that gets the addresses of states before the walk reads them, until Forget. It may get several before the
// first is read.
func (w *Walk) Expect(f func(at uint32)) { w.expect = f }

// Start positions the walk before the first word of f that is not below start. The walk visits the words below end (nil: all) that
// the automaton accepts (nil: all). A walk can be started again, and reuses its memory.
func (w *Walk) Start(f *FST, a vellum.Automaton, start, end []byte) {
	w.f, w.automaton, w.end, w.err = f, a, end, nil
	if w.typos, _ = a.(Typos); w.typos != nil {
		w.text, w.prefix = w.typos.Text()
	}
	w.endings = w.endings[:0]
	if end != nil && bytes.Compare(start, end) >= 0 {
		w.stack = w.stack[:0]
		return
	}
	w.seek(start)
}

// Forget drops the dictionary, and keeps the memory for the next Start.
func (w *Walk) Forget() {
	w.f, w.automaton, w.typos, w.text, w.end, w.expect, w.err = nil, nil, nil, nil, nil, nil, nil
}

// Word returns the current word, valid until the next call of Next.
func (w *Walk) Word() []byte { return w.word }

// Value returns the number of the current word.
func (w *Walk) Value() uint64 { return w.value }

// Err returns the damage that ended the walk early, if any.
func (w *Walk) Err() error { return w.err }

func (w *Walk) seek(start []byte) {
	w.stack, w.word = w.stack[:0], w.word[:0]
	a := 0
	if w.automaton != nil {
		a = w.automaton.Start()
	}
	if w.f.root == noState || w.automaton != nil && !w.automaton.CanMatch(a) || !w.push(w.f.root, 0, a) {
		return
	}
	for _, b := range start {
		top := &w.stack[len(w.stack)-1]
		top.entered = true // it is a prefix of start, so below it
		i := w.f.find(&top.state, b)
		top.next = i
		if i == int(top.n) || w.f.byteAt(&top.state, i) != b {
			return
		}
		top.next++
		if w.automaton != nil {
			if a = w.automaton.Accept(top.automaton, b); !w.automaton.CanMatch(a) {
				return
			}
		}
		if !w.descend(i, b, a) {
			return
		}
	}
}

// push puts a state on the stack, to which the word leads.
func (w *Walk) push(at uint32, sum uint64, automaton int) bool {
	if len(w.word) > maxWordBytes {
		w.err = errOutside
		return false
	}
	if len(w.stack) < cap(w.stack) {
		w.stack = w.stack[:len(w.stack)+1]
	} else {
		w.stack = append(w.stack, frame{})
	}
	top := &w.stack[len(w.stack)-1]
	top.next, top.sum, top.automaton, top.length = 0, sum, automaton, len(w.word)
	top.entered, top.branched, top.settled = false, false, w.automaton == nil || w.typos != nil && w.typos.Settled(automaton)
	if w.expect != nil {
		w.expect(at)
	}
	if !w.f.decode(at, &top.state) {
		w.err = errOutside
		return false
	}
	return true
}

// descend takes the i-th transition of the top frame, with its byte, to a state of the automaton.
func (w *Walk) descend(i int, b byte, automaton int) bool {
	top := &w.stack[len(w.stack)-1]
	target, output, ok := w.f.follow(&top.state, i)
	if !ok {
		w.err = errOutside
		return false
	}
	settled := top.settled
	w.word = append(w.word, b)
	if !w.push(target, top.sum+output, automaton) {
		return false
	}
	if settled {
		w.stack[len(w.stack)-1].settled = true
	}
	return true
}

// deeper continues from the top frame, and reports whether that was possible.
func (w *Walk) deeper() bool {
	top := &w.stack[len(w.stack)-1]
	for top.next < int(top.n) {
		i := top.next
		top.next++
		b, a := w.f.byteAt(&top.state, i), top.automaton
		if !top.settled {
			if a = w.automaton.Accept(a, b); !w.automaton.CanMatch(a) {
				continue
			}
		}
		return w.descend(i, b, a)
	}
	return false
}

// Next goes to the next word.
func (w *Walk) Next() bool {
	for len(w.stack) > 0 && w.err == nil {
		top := &w.stack[len(w.stack)-1]
		w.word = w.word[:top.length]
		if !top.entered {
			top.entered = true
			if w.isAtEnd() {
				return false
			}
			if top.final && (top.settled || w.automaton.IsMatch(top.automaton)) {
				w.value = top.sum + top.finalOutput
				return true
			}
		}
		if w.typos != nil && !top.settled {
			found, deeper := w.branch()
			if found {
				return true
			}
			if deeper {
				continue
			}
		} else if w.deeper() {
			continue
		}
		if w.err == nil && len(w.stack) > 0 {
			w.stack = w.stack[:len(w.stack)-1]
		}
	}
	return false
}

// isAtEnd ends the walk if the word is not below the end: neither is any that follows. A word that is longer than the end
// was looked at when it had its length.
func (w *Walk) isAtEnd() bool {
	if w.end == nil || len(w.word) > len(w.end) || bytes.Compare(w.word, w.end) < 0 {
		return false
	}
	w.stack = w.stack[:0]
	return true
}
