package fst

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/blevesearch/vellum"
)

// Typos is an automaton that accepts the words within a few edits of one word. A state of a dictionary has dozens of transitions,
// most of them on bytes that are not next in the word. So Typos reports which bytes it treats alike (Others), and which endings it
// accepts once no edit is left (Rests).
type Typos interface {
	vellum.Automaton

	// Settled reports whether all that follows a state matches.
	Settled(state int) bool

	// Others returns the state to which most bytes lead. ok is false if it is unknown.
	Others(state int) (o Others, ok bool)

	// Rests appends how a word ends, in any order, if no edit is left. ok is false if one is left.
	Rests(state int, dst []Rest) (rests []Rest, ok bool)

	// Unlike appends the possible ends of a word after a character whose first byte the state has. ok is false if an edit is left, or
	// if a character near the current position begins with the byte.
	Unlike(state int, dst []Rest) (rests []Rest, ok bool)

	// Text is the word. prefix: words match that begin with one that edits lead to.
	Text() (word []byte, prefix bool)
}

// Others is a set of bytes that lead to one state: all bytes below 0x80 or, inside a multi-byte character, all bytes from 0x80 on, except
// those passed to Add.
type Others struct {
	State  int
	Inside bool
	but    [2]uint64
}

// Add takes a byte out of the others.
func (o *Others) Add(b byte) { o.but[b>>6&1] |= 1 << (b & 63) }

// has reports whether a byte is one of the others.
func (o *Others) has(b byte) bool { return b>>7 != 0 == o.Inside && o.but[b>>6&1]>>(b&63)&1 == 0 }

// Rest is an ending: the bytes of the automaton's word from Tail on. If two characters are swapped, the bytes from At to Begin, the first
// of the two, come before. Otherwise all three are equal.
type Rest struct{ At, Begin, Tail uint16 }

// next returns the place of the next byte: at, or behind the character before the tail.
func (r *Rest) next(at uint16) uint16 {
	if at == r.Begin {
		return r.Tail
	}
	return at
}

// MaxRests is how many ways an automaton has to end words from one state.
const MaxRests = 10

// othersFrom is the least number of transitions for which Others pays off.
const othersFrom = 3

// filterFrom is the minimum number of transitions for which the filter is used. The filter takes longer than reading two or three
// states.
const filterFrom = 6

// branches has the possible continuations of a frame whose automaton has edits left.
type branches struct {
	others Others
	known  bool // others is known
	dead   bool // they lead to no word
	ended  bool // they lead to words that end as rests say
	asks   bool // the filter is asked whether there are such words
	n      int
	rests  [MaxRests]Rest
	spelt  [MaxRests]candidate // of the rests, if there is a filter

	from, to int           // transitions that the filter was asked about
	may      [asked]uint16 // by transition from there on: the rests that may end a word, a bit each
}

// ending is a word, or a common prefix of words, that is reached with no edit left.
type ending struct {
	byte         // of the transition of the top frame
	rest  Rest   // that follows
	at    uint32 // state of the dictionary
	value uint64 // of the word, or the sum of the outputs
}

// prepare learns where most transitions of the top frame lead.
func (w *Walk) prepare(top *frame) {
	top.branched = true
	b := &top.branches
	if b.known, b.asks = false, false; top.n < othersFrom {
		return
	}
	if b.others, b.known = w.typos.Others(top.automaton); !b.known {
		return
	}
	if b.dead = !w.typos.CanMatch(b.others.State); b.dead {
		return
	}
	var rests []Rest
	rests, b.ended = w.typos.Rests(b.others.State, b.rests[:0])
	b.n = len(rests)
	if b.asks = b.ended && len(w.f.filter) > 0 && int(top.n) >= filterFrom; b.asks {
		b.from, b.to = 0, 0
		for i, r := range rests {
			b.spelt[i] = w.candidateOf(r)
		}
	}
	if w.expect != nil && b.ended && !b.asks {
		w.expectOthers(top)
	}
}

// expectOthers announces the states after the transitions of a frame that lead to its others. Most of them are read.
func (w *Walk) expectOthers(top *frame) {
	for i := range int(top.n) {
		if top.branches.others.has(w.f.byteAt(&top.state, i)) {
			if target, _, ok := w.f.follow(&top.state, i); ok {
				w.expect(target)
			}
		}
	}
}

// branch continues from the top frame, to a word or to a deeper frame.
func (w *Walk) branch() (found, deeper bool) {
	top := &w.stack[len(w.stack)-1]
	if len(w.endings) > 0 {
		return w.nextEnding(top)
	}
	if !top.branched {
		w.prepare(top)
	}
	br := &top.branches
	for top.next < int(top.n) {
		i := top.next
		top.next++
		b := w.f.byteAt(&top.state, i)
		var a int
		var rests []Rest
		var ended bool
		if br.known && br.others.has(b) {
			if br.dead {
				continue
			}
			if a, rests, ended = br.others.State, br.rests[:br.n], br.ended; br.asks {
				if i >= br.to {
					w.ask(top, i)
				}
				rests = w.rests[:0]
				for may := br.may[i-br.from]; may != 0; may &= may - 1 {
					rests = append(rests, br.rests[bits.TrailingZeros16(may)])
				}
			}
		} else {
			a = w.automaton.Accept(top.automaton, b)
			if !w.automaton.CanMatch(a) || top.length == 0 && b >= firstByte && len(w.f.filter) > 0 && w.noneBehind(b, a) {
				continue
			}
			rests, ended = w.typos.Rests(a, w.rests[:0])
		}
		switch {
		case !ended:
			return false, w.descend(i, b, a)
		case len(rests) == 0:
			continue
		}
		if w.findEndings(top, i, b, rests) {
			return w.nextEnding(top)
		}
		if w.err != nil {
			break
		}
	}
	return false, false
}

// findEndings searches for words that continue from the top frame by a transition and end in one of rests.
func (w *Walk) findEndings(top *frame, i int, b byte, rests []Rest) bool {
	target, output, ok := w.f.follow(&top.state, i)
	var s state
	if ok && w.expect != nil {
		w.expect(target)
	}
	if !ok || !w.f.decode(target, &s) {
		w.err = errOutside
		return false
	}
	text, prefix := w.text, w.prefix
	for _, r := range rests {
		at, sum, to := target, top.sum+output, s
		ok := true
		for k := r.next(r.At); ok && int(k) < len(text); k = r.next(k + 1) {
			var inside bool
			if at, sum, inside, ok = w.f.step(&to, text[k], sum); ok && inside && w.expect != nil {
				w.expect(at)
			}
			if ok && !(inside && w.f.decode(at, &to)) {
				w.err = errOutside
				return false
			}
		}
		switch {
		case !ok || !prefix && !to.final:
			continue
		case !prefix:
			sum += to.finalOutput
		}
		w.endings = append(w.endings, ending{b, r, at, sum})
	}
	if len(w.endings) > 1 {
		w.orderEndings()
	}
	return len(w.endings) > 0
}

// step follows the transition of a state for a byte. ok is false if there is none. inside is false if it leads out of the dictionary.
func (f *FST) step(s *state, b byte, sum uint64) (target uint32, _ uint64, inside, ok bool) {
	if s.single {
		return s.target, sum + s.output, true, s.key == b
	}
	i := f.exactly(s, b)
	if i < 0 {
		return 0, 0, false, false
	}
	target, output, inside := f.follow(s, i)
	return target, sum + output, inside, true
}

// orderEndings brings endings in the order of their words, and leaves out those that others are, or begin.
func (w *Walk) orderEndings() {
	var a, b []byte
	slices.SortFunc(w.endings, func(x, y ending) int {
		a, b = w.appendRest(a[:0], x.rest), w.appendRest(b[:0], y.rest)
		return bytes.Compare(a, b)
	})
	a = w.appendRest(a[:0], w.endings[0].rest)
	kept := w.endings[:1]
	for _, e := range w.endings[1:] {
		b = w.appendRest(b[:0], e.rest)
		if w.prefix && bytes.HasPrefix(b, a) || bytes.Equal(a, b) {
			continue
		}
		kept = append(kept, e)
		a, b = b, a
	}
	w.endings = kept
}

func (w *Walk) appendRest(dst []byte, r Rest) []byte {
	return append(append(dst, w.text[r.At:r.Begin]...), w.text[r.Tail:]...)
}

// nextEnding moves to the next ending of the top frame: to a word, or to a frame of words that begin with one.
func (w *Walk) nextEnding(top *frame) (found, deeper bool) {
	e := w.endings[0]
	w.word = w.appendRest(append(w.word[:top.length], e.byte), e.rest)
	if w.end != nil && bytes.Compare(w.word, w.end) >= 0 {
		w.stack, w.endings = w.stack[:0], w.endings[:0]
		return false, false
	}
	w.endings = append(w.endings[:0], w.endings[1:]...)
	if w.value = e.value; !w.prefix {
		return true, false
	}
	if w.push(e.at, e.value, 0) {
		w.stack[len(w.stack)-1].settled = true
	}
	return false, w.err == nil
}
