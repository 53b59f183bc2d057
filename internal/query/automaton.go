package query

import (
	"bytes"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"

	"svc/segment/fst"
)

// automaton accepts words within an edit distance of limit from a word, or having a prefix within it. The insertion, deletion or
// substitution of a character and the swap of two neighbours cost 1 each, and no part is edited twice ("optimal string alignment").
// It satisfies vellum.Automaton.
//
// It simulates the classic nondeterministic automaton on bits (Wu and Manber 1992). As in the universal Levenshtein automaton (Mihov
// and Schulz 2004), after j characters only positions within limit of j are alive. So a state is a number, and transitions are
// computed, never stored:
//
//	bits  0–14  three rows of five bits: the positions j−2…j+2 of the word that are reached with 0, 1, 2 edits
//	bits 15–24  two rows: the positions in the middle of a swap that is the 1st, the 2nd edit
//	bits 25–32  j, characters read
//	bits 33–34  3 less the least distance of a prefix read so far; 0 for none
//	bits 35–58  first bytes of an incomplete character
//	bits 59–60  number of these bytes
//
// State 0 is the dead state.
type automaton struct {
	word   []rune
	text   []byte      // the word
	starts []uint16    // where its characters begin in text, and where it ends
	ascii  [128]window // where each ASCII character stands in the word
	masks  []uint16    // by j: bits of the rows that stand for positions 0…len(word)
	swaps  uint64      // bits of the swaps that are within the limit
	limit  int
	prefix bool

	// replaced: the word contains the replacement character, which stands for invalid bytes.
	replaced bool

	steps [1 << stepBits]transition // that were computed before
}

// transition is a step of an automaton. Walks through the dictionaries of all segments repeat the same steps.
type transition struct {
	key uint64 // of the state and the character; 0: none
	to  int
}

const stepBits = 8

// window is a set of positions of the word: bit i+pad for position i.
type window [5]uint64

const (
	pad      = 8 // room for positions before the first
	maxLimit = 2

	rowBits     = 5
	row         = 1<<rowBits - 1
	threeRows   = 1<<(3*rowBits) - 1
	twoRows     = 1<<(2*rowBits) - 1
	inThree     = 1 | 1<<rowBits | 1<<(2*rowBits) // times a row: the row in three places
	inTwo       = 1 | 1<<rowBits
	butLowest   = threeRows &^ inThree
	butHighest  = threeRows &^ (inThree << (rowBits - 1))
	swapShift   = 3 * rowBits
	countShift  = 25
	bestShift   = 33
	bytesShift  = 35
	lengthShift = 59
	noDistance  = 3

	nearBits    = 7 // positions that a step looks at
	noCharacter = utf8.MaxRune + 1
)

// automata is a pool.
var automata = sync.Pool{New: func() any { return new(automaton) }}

// newAutomaton prepares the automaton of a word of at most 250 characters; limit is at most 2.
func newAutomaton(word string, limit int, prefix bool) *automaton {
	a := automata.Get().(*automaton)
	a.word, a.text, a.starts, a.limit, a.prefix = a.word[:0], append(a.text[:0], word...), a.starts[:0], limit, prefix
	a.replaced = false
	for i, c := range word {
		a.word, a.starts = append(a.word, c), append(a.starts, uint16(i))
		a.replaced = a.replaced || c == utf8.RuneError
	}
	a.starts = append(a.starts, uint16(len(word)))
	clear(a.ascii[:])
	clear(a.steps[:])
	for i, c := range a.word {
		if c < utf8.RuneSelf {
			a.ascii[c][(i+pad)/64] |= 1 << ((i + pad) % 64)
		}
	}
	a.masks = slices.Grow(a.masks[:0], len(a.word)+maxLimit+2)[:len(a.word)+maxLimit+2]
	clear(a.masks)
	for j := range a.masks {
		for b := range rowBits {
			if at := j - maxLimit + b; at >= 0 && at <= len(a.word) {
				for d := range limit + 1 {
					a.masks[j] |= 1 << (d*rowBits + b)
				}
			}
		}
	}
	a.swaps = 1<<(limit*rowBits) - 1
	return a
}

// at returns the bits of w for positions from…from+6, nearBits together.
func (w *window) at(from int) uint64 {
	from += pad
	i, s := from/64, from%64
	v := w[i] >> s
	if s > 57 && i+1 < len(w) {
		v |= w[i+1] << (64 - s)
	}
	return v & (1<<7 - 1)
}

// standing returns the bits of positions from…from+6 where c occurs.
func (a *automaton) standing(c rune, from int) uint64 {
	if c < utf8.RuneSelf {
		return a.ascii[c].at(from)
	}
	var v uint64
	for i := range 7 {
		if p := from + i; p >= 0 && p < len(a.word) && a.word[p] == c {
			v |= 1 << i
		}
	}
	return v
}

func (a *automaton) Start() int {
	// Position 0 with no edit, and what deletions reach from it.
	n := uint64(1 << maxLimit)
	n |= n & butHighest << (rowBits + 1)
	n |= n & butHighest << (rowBits + 1)
	return a.state(n&uint64(a.masks[0]), 0, 0, 0)
}

// state creates a state and records the distance of the text read so far. best is as in states.
func (a *automaton) state(rows, swaps uint64, j int, best uint64) int {
	if a.prefix {
		if d := a.final(rows, j); noDistance-d > best {
			best = noDistance - d
		}
	}
	if rows == 0 {
		return int(best << bestShift) // what follows changes nothing
	}
	return int(rows | swaps<<swapShift | uint64(j)<<countShift | best<<bestShift)
}

// final returns the least number of edits with which the whole word is reached, or noDistance.
func (a *automaton) final(rows uint64, j int) uint64 {
	i := len(a.word) - j + maxLimit
	if uint(i) >= rowBits {
		return noDistance
	}
	for d := range uint64(noDistance) {
		if rows>>i&1 != 0 {
			return d
		}
		rows >>= rowBits
	}
	return noDistance
}

// Accept takes a byte. States of the table belong to characters, so the state also holds the bytes of an incomplete character.
func (a *automaton) Accept(s int, b byte) int {
	switch {
	case s == 0:
		return 0
	case s < 1<<bytesShift && b < utf8.RuneSelf:
		return a.step(s, rune(b))
	}
	n := s >> lengthShift
	pending := s >> bytesShift & (1<<24 - 1)
	s &= 1<<bytesShift - 1
	var buf [utf8.UTFMax]byte
	for i := range n {
		buf[i] = byte(pending >> (8 * i))
	}
	buf[n] = b
	n++
	if !utf8.FullRune(buf[:n]) {
		return s | (pending|int(b)<<(8*(n-1)))<<bytesShift | n<<lengthShift
	}
	c, _ := utf8.DecodeRune(buf[:n])
	return a.step(s, c)
}

// step reads one character. The state's bytes of an incomplete character are dropped.
func (a *automaton) step(s int, c rune) int {
	s &= 1<<bytesShift - 1
	key := uint64(s) | uint64(c+1)<<bytesShift
	t := &a.steps[key*0x9e3779b97f4a7c15>>(64-stepBits)]
	if t.key != key {
		t.key, t.to = key, a.compute(s, c)
	}
	return t.to
}

// compute is step without those that were taken before.
func (a *automaton) compute(s int, c rune) int {
	u := uint64(s)
	rows, swaps, j, best := u&threeRows, u>>swapShift&twoRows, int(u>>countShift&0xff), u>>bestShift&3
	if rows == 0 {
		return s
	}
	if j+1 >= len(a.masks) { // all positions are out of reach
		return a.state(0, 0, 0, best)
	}
	// Bit i of here: c is at position j−2+i. The rows before the step are centred on j, those after it on j+1. So advancing in the
	// word keeps the bit, and staying moves it down.
	here := a.standing(c, j-maxLimit)
	edited := rows << rowBits & threeRows
	n := rows & (here & row * inThree)                // match
	n |= edited | edited&butLowest>>1                 // substitution, insertion
	n |= swaps & (here << 1 & row * inTwo) << rowBits // second half of a swap
	n &= uint64(a.masks[j+1])
	n |= n & butHighest << (rowBits + 1) // deletion
	n |= n & butHighest << (rowBits + 1)
	n &= uint64(a.masks[j+1])
	swaps = rows & (here >> 1 & row * inTwo) & a.swaps
	return a.state(n, swaps, j+1, best)
}

func (a *automaton) distance(s int) int {
	if s>>lengthShift != 0 {
		return noDistance
	}
	u := uint64(s)
	if a.prefix {
		return int(noDistance - u>>bestShift&3)
	}
	return int(a.final(u&threeRows, int(u>>countShift&0xff)))
}

func (a *automaton) IsMatch(s int) bool { return s != 0 && a.distance(s) <= a.limit }

// CanMatch reports whether a match can follow from a state. It is false after a prefix without a typo: a search for misspelt words
// would otherwise visit all words with the prefix, and accept none.
func (a *automaton) CanMatch(s int) bool {
	return s != 0 && !(a.prefix && s>>bestShift&3 == noDistance)
}

// Settled reports whether every continuation of a state matches and does not change the result. Like the following methods, it is
// part of fst.Typos.
func (a *automaton) Settled(s int) bool { return uint64(s)&threeRows == 0 && a.WillAlwaysMatch(s) }

// Text returns the word.
func (a *automaton) Text() (word []byte, prefix bool) { return a.text, a.prefix }

// Others returns the state after any character that does not occur near the current position.
func (a *automaton) Others(s int) (o fst.Others, ok bool) {
	u := uint64(s)
	j, n := int(u>>countShift&0xff), s>>lengthShift
	if u&threeRows == 0 || a.replaced {
		return o, false
	}
	from, to := a.near(j)
	if n == 0 {
		for _, c := range a.word[from:to] {
			if c < utf8.RuneSelf {
				o.Add(byte(c))
			}
		}
	} else {
		var read [utf8.UTFMax]byte
		for i := range n {
			read[i] = byte(s >> (bytesShift + 8*i))
		}
		if n+1 != bytesOf(read[0]) {
			return o, false
		}
		o.Inside = true
		for p := from; p < to; p++ {
			c := a.text[a.starts[p]:a.starts[p+1]]
			if len(c) == n+1 && bytes.Equal(c[:n], read[:n]) {
				o.Add(c[n])
			}
		}
	}
	o.State = a.step(s, noCharacter)
	return o, true
}

// near returns the positions of the characters that the step from the j-th character distinguishes.
func (a *automaton) near(j int) (from, to int) {
	from = min(max(j-maxLimit, 0), len(a.word))
	return from, max(from, min(j+nearBits-maxLimit, len(a.word)))
}

// Unlike returns the possible rests of words after a character that does not occur near the current position. s has the first byte of
// the character.
func (a *automaton) Unlike(s int, dst []fst.Rest) (rests []fst.Rest, ok bool) {
	if s>>lengthShift != 1 || a.replaced {
		return dst, false
	}
	for p, to := a.near(int(uint64(s) >> countShift & 0xff)); p < to; p++ {
		if a.text[a.starts[p]] == byte(s>>bytesShift) {
			return dst, false
		}
	}
	return a.Rests(a.step(s, noCharacter), dst)
}

// bytesOf returns how many bytes a character has that begins with one above ASCII.
func bytesOf(first byte) int {
	switch {
	case first < 0xe0:
		return 2
	case first < 0xf0:
		return 3
	}
	return 4
}

// Rests returns the possible rests of words from a state without an edit left: those from the positions reached, and those from the
// middle of a swap.
func (a *automaton) Rests(s int, dst []fst.Rest) (rests []fst.Rest, ok bool) {
	u := uint64(s)
	rows, swaps := u&threeRows, u>>swapShift&twoRows
	last := a.limit * rowBits
	if last == 0 || rows&(1<<last-1) != 0 || rows == 0 || swaps&(1<<(last-rowBits)-1) != 0 || u>>lengthShift != 0 || a.prefix && u>>bestShift&3 != 0 || a.replaced {
		return dst, false
	}
	first := int(u>>countShift&0xff) - maxLimit
	for reached := rows >> last; reached != 0; reached &= reached - 1 {
		at := a.starts[first+bits.TrailingZeros64(reached)]
		dst = append(dst, fst.Rest{At: at, Begin: at, Tail: at})
	}
	for swaps >>= last - rowBits; swaps != 0; swaps &= swaps - 1 {
		p := first - 1 + bits.TrailingZeros64(swaps)
		dst = append(dst, fst.Rest{At: a.starts[p], Begin: a.starts[p+1], Tail: a.starts[p+2]})
	}
	return dst, true
}

// WillAlwaysMatch reports whether every continuation matches.
func (a *automaton) WillAlwaysMatch(s int) bool {
	return a.prefix && s>>bestShift&3 != 0
}

// distances returns the distance of w or of its nearest prefix, and that of w as a whole. It returns 3 for a distance above the
// limit.
func (a *automaton) distances(w []byte) (nearest, whole int) {
	s := a.Start()
	for _, b := range w {
		if s = a.Accept(s, b); s == 0 {
			return noDistance, noDistance
		}
	}
	nearest = a.distance(s)
	if !a.prefix || s>>lengthShift != 0 {
		return nearest, nearest
	}
	u := uint64(s)
	return nearest, int(a.final(u&threeRows, int(u>>countShift&0xff)))
}
