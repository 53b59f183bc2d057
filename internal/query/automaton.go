package query

import "unicode/utf8"

// automaton accepts the words at an edit distance of at most limit from a
// word, or having a prefix that is: insertion, deletion, substitution and
// the swap of two neighbours cost 1, on characters; no part is edited twice
// ("optimal string alignment"). It satisfies vellum.Automaton.
//
// It is the classic nondeterministic automaton simulated on bits (Wu and
// Manber 1992), with the insight of the universal Levenshtein automaton (Mihov and
// Schulz 2004) that after j characters only positions within limit of j are alive.
// A state is therefore a number, and transitions are computed, never stored:
//
//	bits  0–24  five sets of five bits: the positions j−2…j+2 of the word that are
//	            reached with 0, 1, 2 edits, and half-way through a swap that makes the 1st, the 2nd
//	bits 25–32  j, characters read
//	bits 33–34  3 less the least distance of a prefix read so far; 0 for none
//	bits 35–58  bytes of a character of which more are to come
//	bits 59–60  number of these bytes
//
// State 0 is the dead one.
type automaton struct {
	word   []rune
	ascii  [128]window // where each ASCII character stands in the word
	limit  int
	prefix bool
}

// window is a set of positions of the word: bit i+pad for position i.
type window [5]uint64

const (
	pad         = 8 // room for positions before the first
	maxLimit    = 2
	row         = 1<<5 - 1
	countShift  = 25
	bestShift   = 33
	bytesShift  = 35
	lengthShift = 59
	noDistance  = 3
)

// newAutomaton prepares the automaton of a word of at most 250 characters; limit is at most 2.
func newAutomaton(word string, limit int, prefix bool) *automaton {
	a := &automaton{word: []rune(word), limit: limit, prefix: prefix}
	for i, c := range a.word {
		if c < utf8.RuneSelf {
			a.ascii[c][(i+pad)/64] |= 1 << ((i + pad) % 64)
		}
	}
	return a
}

// at returns the bits of w for positions from…from+6.
func (w *window) at(from int) uint64 {
	from += pad
	i, s := from/64, from%64
	v := w[i] >> s
	if s > 57 && i+1 < len(w) {
		v |= w[i+1] << (64 - s)
	}
	return v & (1<<7 - 1)
}

// standing returns the bits of positions from…from+6 where c stands.
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
	var r [maxLimit + 1]uint64
	r[0] = 1 << maxLimit
	for d := 1; d <= a.limit; d++ {
		r[d] = r[d-1] << 1 & a.within(0)
	}
	return a.pack(r, [maxLimit]uint64{}, 0, noDistance)
}

// within returns the bits of a row, centred on j, that stand for positions 0…len(word).
func (a *automaton) within(j int) uint64 {
	mask := uint64(row)
	if j < maxLimit {
		mask &= row << (maxLimit - j)
	}
	if over := j + maxLimit - len(a.word); over > 0 {
		if over > 2*maxLimit {
			return 0
		}
		mask &= row >> over
	}
	return mask
}

// pack makes a state and notes the distance of the text read so far.
func (a *automaton) pack(r [maxLimit + 1]uint64, swap [maxLimit]uint64, j int, best uint64) int {
	if a.prefix {
		if d := a.final(r, j); d < best {
			best = d
		}
	} else {
		best = noDistance
	}
	rows := r[0] | r[1]<<5 | r[2]<<10 | swap[0]<<15 | swap[1]<<20
	if rows == 0 {
		if best == noDistance {
			return 0
		}
		j = 0 // all that matters now is best
	}
	return int(rows | uint64(j)<<countShift | (noDistance-best)<<bestShift)
}

// final returns the least number of edits with which the whole word is reached, or noDistance.
func (a *automaton) final(r [maxLimit + 1]uint64, j int) uint64 {
	i := len(a.word) - j + maxLimit
	if i < 0 || i > 2*maxLimit {
		return noDistance
	}
	for d := 0; d <= a.limit; d++ {
		if r[d]>>i&1 != 0 {
			return uint64(d)
		}
	}
	return noDistance
}

func (a *automaton) unpack(s int) (r [maxLimit + 1]uint64, swap [maxLimit]uint64, j int, best uint64) {
	u := uint64(s)
	r = [maxLimit + 1]uint64{u & row, u >> 5 & row, u >> 10 & row}
	swap = [maxLimit]uint64{u >> 15 & row, u >> 20 & row}
	return r, swap, int(u >> countShift & 0xff), noDistance - u>>bestShift&3
}

func (a *automaton) Accept(s int, b byte) int {
	if s == 0 {
		return 0
	}
	n := s >> lengthShift
	if n == 0 && b < utf8.RuneSelf {
		return a.step(s, rune(b))
	}
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

// step reads one character.
func (a *automaton) step(s int, c rune) int {
	r, swap, j, best := a.unpack(s)
	if r[0]|r[1]|r[2] == 0 {
		return s
	}
	// Bit i of here: c stands at position j−2+i; the rows before the step are
	// centred on j, those after it on j+1, so advancing in the word keeps the bit and staying moves it down.
	here := a.standing(c, j-maxLimit)
	mask := a.within(j + 1)
	var nr [maxLimit + 1]uint64
	var nswap [maxLimit]uint64
	nr[0] = r[0] & here & mask
	for d := 1; d <= a.limit; d++ {
		v := r[d] & here             // match
		v |= r[d-1]                  // substitution
		v |= r[d-1] >> 1             // insertion
		v |= nr[d-1] << 1            // deletion
		v |= swap[d-1] & (here << 1) // second half of a swap
		nr[d] = v & mask
		nswap[d-1] = r[d-1] & (here >> 1) & row
	}
	return a.pack(nr, nswap, j+1, best)
}

func (a *automaton) distance(s int) int {
	if s>>lengthShift != 0 {
		return noDistance
	}
	r, _, j, best := a.unpack(s)
	if !a.prefix {
		best = a.final(r, j)
	}
	return int(best)
}

func (a *automaton) IsMatch(s int) bool { return s != 0 && a.distance(s) <= a.limit }

func (a *automaton) CanMatch(s int) bool { return s != 0 }

// WillAlwaysMatch reports whether whatever follows matches.
func (a *automaton) WillAlwaysMatch(s int) bool {
	return a.prefix && s>>bestShift&3 != 0
}

// Distance returns the distance of w, or of its nearest prefix; 3 when it is beyond the limit.
func (a *automaton) Distance(w []byte) int {
	s := a.Start()
	for _, b := range w {
		if s = a.Accept(s, b); s == 0 {
			return noDistance
		}
	}
	return a.distance(s)
}
