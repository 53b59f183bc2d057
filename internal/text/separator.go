package text

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	separatorSet = newRuneSet(defaultSeparators, addedSeparators, symbolSeparators)
	hardSet      = effectiveHardSet()
)

// hardStrings are the default separators of several characters; all are hard.
var hardStrings = []string{". ", ", ", "។ល។"}

// effectiveHardSet resolves compatibility decompositions: a full-width colon has the kind of a colon. An ellipsis keeps its own kind,
// because three dots are no separator.
func effectiveHardSet() *runeSet {
	listed, raw, hard := newRuneSet(defaultSeparators), newRuneSet(hardSeparators), &runeSet{}
	add := func(r rune) {
		is := raw.has(r)
		form := appendDecomposed(nil, r)
		if d, n := utf8.DecodeRune(form); n == len(form) && listed.has(d) {
			is = raw.has(d)
		}
		if is {
			hard.add(r)
		}
	}
	eachRune(defaultSeparators, add)
	eachRune(addedSeparators, add)
	eachRune(symbolSeparators, add)
	eachRune(hardSeparators, add)
	return hard
}

// class says how a byte of a text is taken.
type class uint8

const (
	classWord    class = iota
	classControl       // belongs to a word and is dropped when it is folded
	classSoft          // a separator; nothing longer starts with it
	classHard
	classPattern // something of several bytes may start here
	classHigh    // not ASCII
)

type pattern struct {
	text []byte
	kind Kind
}

// patterns finds separators and dictionary entries. Where several start at one place, the longest counts.
type patterns struct {
	class            [256]class
	plain            bool                // letters and digits of ASCII are of words
	single           *runeSet            // separators of one character
	several          map[rune][]pattern  // separators of several characters by the first one, longest first
	entries          entries             // of the dictionary
	firsts           *runeSet            // the keys of several, single, and what entries begin with
	strings          map[string]struct{} // separators of several characters
	longestSeparator int                 // characters, where settings add to strings; else 1
	longest          int                 // bytes of the longest of all
}

// newPatterns prepares the separators and the dictionary of an index. Among patterns that begin with the same rune, the longest comes
// first.
func newPatterns(c Config) patterns {
	p := patterns{single: separatorSet, longestSeparator: 1, longest: maxPictograph, strings: make(map[string]struct{}), several: make(map[rune][]pattern), entries: entries{begins: &runeSet{}}}
	if len(c.Separators)+len(c.NonSeparators) > 0 {
		p.single = separatorSet.clone()
	}
	for _, s := range hardStrings {
		p.strings[s] = struct{}{}
	}
	for _, s := range c.Separators {
		if r, n := utf8.DecodeRuneInString(s); n > 0 && n == len(s) {
			p.single.add(r)
		} else if n > 0 {
			p.strings[s] = struct{}{}
			p.longestSeparator = max(p.longestSeparator, utf8.RuneCountInString(s))
		}
	}
	for _, s := range c.NonSeparators {
		if r, n := utf8.DecodeRuneInString(s); n > 0 && n == len(s) {
			p.single.removeLike(r)
		}
		delete(p.strings, s)
	}
	p.firsts = p.single.clone()
	for s := range p.strings {
		p.addPattern(s)
	}
	for _, s := range c.Separators {
		if r, n := utf8.DecodeRuneInString(s); n > 0 && n == len(s) && p.single.has(r) && !separatorSet.has(r) {
			p.addPattern(s)
		}
	}
	if len(c.Dictionary) > 0 {
		p.entries = newEntries(c.Dictionary, p.single, func(s string) Kind {
			kind, _ := p.separator(appendBase(nil, []byte(strings.Map(unicode.ToLower, s))))
			return kind
		})
		p.entries.begins.each(p.firsts.add)
		p.longest = max(p.longest, p.entries.window+utf8.UTFMax)
	}
	for _, list := range p.several {
		slices.SortFunc(list, func(a, b pattern) int { return len(b.text) - len(a.text) })
	}
	p.classify()
	return p
}

// addPattern adds a string to look for. It is a separator if its decomposition is one. If the settings make a letter with an accent a
// separator, it splits words, but remains a word.
func (p *patterns) addPattern(s string) {
	kind, _ := p.separator(appendBase(nil, []byte(s)))
	r, _ := utf8.DecodeRuneInString(s)
	p.several[r] = append(p.several[r], pattern{[]byte(s), kind})
	p.longest = max(p.longest, len(s))
	p.firsts.add(r)
}

// separator returns the kind of the separator form, or Word and false.
func (p *patterns) separator(form []byte) (Kind, bool) {
	r, n := utf8.DecodeRune(form)
	if n == 0 {
		return Word, false
	}
	if n == len(form) {
		if !p.single.has(r) {
			return Word, false
		}
		return kindOf(r), true
	}
	if _, ok := p.strings[string(form)]; !ok {
		return Word, false
	}
	if slices.Contains(hardStrings, string(form)) {
		return Hard, true
	}
	return Soft, true
}

func kindOf(separator rune) Kind {
	if hardSet.has(separator) {
		return Hard
	}
	return Soft
}

// classify fills the table of bytes, which decides for nearly all bytes of a text.
func (p *patterns) classify() {
	for b := range p.class {
		r := rune(b)
		switch {
		case b >= utf8.RuneSelf:
			p.class[b] = classHigh
		case len(p.several[r]) > 0, p.entries.begins.has(r):
			p.class[b] = classPattern
		case p.single.has(r) && hardSet.has(r):
			p.class[b] = classHard
		case p.single.has(r):
			p.class[b] = classSoft
		case isDropped(r):
			p.class[b] = classControl
		}
	}
	p.plain = true
	for b, class := range p.class[:utf8.RuneSelf] {
		if others(uint64(b))&0x80 == 0 && class != classWord {
			p.plain = false
		}
	}
}

// match returns the length of the separator, dictionary entry or pictograph that s, which is not empty, starts with, or 0.
func (p *patterns) match(s []byte) (int, Kind) {
	switch p.class[s[0]] {
	case classWord, classControl:
		return 0, Word
	case classSoft:
		return 1, Soft
	case classHard:
		return 1, Hard
	}
	r, n := utf8.DecodeRune(s)
	if !p.firsts.has(r) {
		if isPictograph(r) {
			return pictograph(s, r, n), Word
		}
		return 0, Word
	}
	longest, kind := 0, Word
	list := p.several[r]
	for i := range list {
		if bytes.HasPrefix(s, list[i].text) {
			longest, kind = len(list[i].text), list[i].kind
			break
		}
	}
	if p.entries.begins.has(r) {
		if n, k := p.entries.match(s); n >= longest && n > 0 {
			longest, kind = n, k
		}
	}
	if longest > 0 {
		return longest, kind
	}
	if p.single.has(r) {
		return n, kindOf(r)
	}
	if isPictograph(r) {
		return pictograph(s, r, n), Word
	}
	return 0, Word
}

// removeLike removes a character, and those that are written for it: in another width, or a typographic apostrophe.
func (s *runeSet) removeLike(r rune) {
	key := appendStopKey(nil, []byte(string(r)))
	s.each(func(other rune) {
		if other == r || len(key) > 0 && bytes.Equal(appendStopKey(nil, []byte(string(other))), key) {
			s.remove(other)
		}
	})
}
