package text

import (
	"strconv"
	"strings"
)

// runeSet is a set of code points: a bitmap in pages of 256 for the basic plane, a map above it.
type runeSet struct {
	pages  [256]*[4]uint64
	beyond map[rune]struct{}
}

func (s *runeSet) has(r rune) bool {
	if uint32(r) > 0xffff {
		_, ok := s.beyond[r]
		return ok
	}
	p := s.pages[r>>8]
	return p != nil && p[r>>6&3]>>(r&63)&1 != 0
}

// add adds a rune: to a page of bits below 65,536, to a map beyond.
func (s *runeSet) add(r rune) {
	if uint32(r) > 0xffff {
		if s.beyond == nil {
			s.beyond = make(map[rune]struct{})
		}
		s.beyond[r] = struct{}{}
		return
	}
	p := s.pages[r>>8]
	if p == nil {
		p = new([4]uint64)
		s.pages[r>>8] = p
	}
	p[r>>6&3] |= 1 << (r & 63)
}

func (s *runeSet) remove(r rune) {
	if uint32(r) > 0xffff {
		delete(s.beyond, r)
	} else if p := s.pages[r>>8]; p != nil {
		p[r>>6&3] &^= 1 << (r & 63)
	}
}

// each calls f with each rune.
func (s *runeSet) each(f func(rune)) {
	for i, p := range s.pages {
		for at := 0; p != nil && at < 256; at++ {
			if p[at/64]>>(at%64)&1 != 0 {
				f(rune(i<<8 | at))
			}
		}
	}
	for r := range s.beyond {
		f(r)
	}
}

// clone returns a copy that can be changed without changing s.
func (s *runeSet) clone() *runeSet {
	c := &runeSet{}
	for i, p := range s.pages {
		if p != nil {
			q := *p
			c.pages[i] = &q
		}
	}
	for r := range s.beyond {
		c.add(r)
	}
	return c
}

// newRuneSet returns the set of what tables hold.
func newRuneSet(tables ...string) *runeSet {
	s := &runeSet{}
	for _, t := range tables {
		eachRune(t, s.add)
	}
	return s
}

// eachRune reads a table of hexadecimal ranges ("0041-005A 00B5"). The tables are constants
// of this package; a range that does not parse is left out, which the tests would see.
func eachRune(table string, f func(rune)) {
	for field := range strings.FieldsSeq(table) {
		a, b, isRange := strings.Cut(field, "-")
		if !isRange {
			b = a
		}
		lo, err1 := strconv.ParseUint(a, 16, 32)
		hi, err2 := strconv.ParseUint(b, 16, 32)
		if err1 != nil || err2 != nil {
			continue
		}
		for r := rune(lo); r <= rune(hi); r++ {
			f(r)
		}
	}
}
