package text

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// entry is an entry of the dictionary. It matches texts that have its key, which a keyFolder makes.
type entry struct {
	key  []byte
	kind Kind
}

// entries are the entries of the dictionary by the first character of their keys, longest first.
type entries struct {
	byFirst map[rune][]entry
	begins  *runeSet // characters that an entry may begin with in a text
	ends    *runeSet // separators: those that folding drops are in no entry
	window  int      // bytes of a text that a match has at most
}

// bytesPerChar is how many bytes of a text a match has for each character of the key, on average at most: a letter with its marks.
const bytesPerChar = 16

// newEntries prepares the entries of a dictionary. kindOf returns the kind of an entry.
func newEntries(dictionary []string, separators *runeSet, kindOf func(s string) Kind) entries {
	e := entries{byFirst: make(map[rune][]entry), begins: &runeSet{}, ends: separators}
	for _, s := range dictionary {
		key := appendStopKey(nil, []byte(s))
		first, n := utf8.DecodeRune(key)
		if n == 0 {
			continue
		}
		if len(e.byFirst[first]) == 0 {
			e.begins.add(first)
			for _, r := range foldedTo()[first] {
				e.begins.add(r)
			}
		}
		e.byFirst[first] = append(e.byFirst[first], entry{key, kindOf(s)})
		e.window = max(e.window, bytesPerChar*utf8.RuneCount(key))
	}
	for _, list := range e.byFirst {
		slices.SortFunc(list, func(a, b entry) int { return len(b.key) - len(a.key) })
	}
	return e
}

// match returns the length of the longest entry that s starts with, or 0.
func (e *entries) match(s []byte) (int, Kind) {
	if b := s[0]; b < utf8.RuneSelf && !e.mayMatch(e.byFirst[rune(lower[b])], s) {
		return 0, Word
	}
	text := s
	if len(text) > e.window {
		end := e.window
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	p := keyPrefixes.Get().(*keyPrefix)
	defer keyPrefixes.Put(p)
	p.fold(text, utf8.UTFMax, e.ends) // two sara e are one letter
	first, _ := utf8.DecodeRune(p.key)
	list := e.byFirst[first]
	if len(list) == 0 {
		return 0, Word
	}
	p.fold(text, len(list[0].key), e.ends)
	for i := range list {
		if key := list[i].key; bytes.HasPrefix(p.key, key) {
			if end := p.end(len(key)); end > 0 && !joins(s[end:]) {
				return end, list[i].kind
			}
		}
	}
	return 0, Word
}

// mayMatch reports whether s may start with an entry of a list, as far as its first ASCII characters tell. Nearly all places in a text
// that begin like an entry go on in another way.
func (e *entries) mayMatch(list []entry, s []byte) bool {
	for i := range list {
		key, n := list[i].key, 0
		for _, b := range s {
			if n == len(key) || b >= utf8.RuneSelf {
				return true
			}
			if isDropped(rune(b)) {
				continue
			}
			if lower[b] != key[n] {
				break
			}
			n++
		}
		if n == len(key) {
			return true
		}
	}
	return false
}

// joins reports whether s starts with a character that is part of the one before it: a mark that letters are composed with, or a part of
// a syllable.
func joins(s []byte) bool {
	if len(s) == 0 || s[0] < utf8.RuneSelf {
		return false
	}
	switch p := norm.NFC.Properties(s); p.CCC() {
	case 0:
		return !p.BoundaryBefore()
	case 7, 8: // nukta, and the marks of kana
		return true
	default:
		return p.CCC() >= 200
	}
}

// keyPrefix is the key of the beginning of a text.
type keyPrefix struct {
	key   []byte
	edges []keyEdge
}

var keyPrefixes = sync.Pool{New: func() any { return new(keyPrefix) }}

// keyEdge is how many bytes the key has after so many bytes of the text, which end a character.
type keyEdge struct{ key, text int }

// fold makes the key of s until it has more than so many bytes, or up to a separator that folding drops.
func (p *keyPrefix) fold(s []byte, most int, separators *runeSet) {
	k := keyFolder{p.key[:0]}
	p.edges = p.edges[:0]
	for i := 0; i < len(s) && len(k.dst) <= most; {
		r, n := utf8.DecodeRune(s[i:])
		if isDropped(r) && separators.has(r) {
			break
		}
		k.char(r)
		i += n
		p.edges = append(p.edges, keyEdge{len(k.dst), i})
	}
	p.key = k.dst
}

// end returns where the first n bytes of the key end in the text, with the characters behind that add nothing; 0 within a character.
func (p *keyPrefix) end(n int) int {
	for i := len(p.edges) - 1; i >= 0; i-- {
		if p.edges[i].key == n {
			return p.edges[i].text
		}
	}
	return 0
}

// foldedTo has the characters whose key begins with another character, by that one.
var foldedTo = sync.OnceValue(func() map[rune][]rune {
	m := make(map[rune][]rune)
	add := func(r rune) {
		var k keyFolder
		if k.char(r); len(k.dst) == 0 {
			return
		}
		if first, _ := utf8.DecodeRune(k.dst); first != r {
			m[first] = append(m[first], r)
		}
	}
	for r := range rune(0x20000) {
		if utf8.ValidRune(r) {
			add(r)
		}
	}
	m['แ'] = append(m['แ'], 'เ')
	for r := range chineseVariants() {
		if r >= 0x20000 {
			add(r)
		}
	}
	for r := rune(0x2f800); r <= 0x2fa1f; r++ { // compatibility ideographs
		add(r)
	}
	return m
})
