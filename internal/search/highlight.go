package search

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"svc/internal/query"
	"svc/internal/text"
)

// A match is a place in a text that the query matched.
type match struct {
	firstToken, lastToken int
	firstWord, lastWord   int // counted without separators
	start, end            int // bytes
	firstTerm, lastTerm   int // words of the query
}

// highlighter finds what a query matched. It is for one request and one goroutine.
type highlighter struct {
	analyzer *text.Analyzer
	phrases  map[string][]phraseForm // by first word
	words    []wordList
	begins   beginnings
	seen     map[string]formMatch // by token form: most words come again
	matches  []match
	order    []int // tokens that are words
}

// phraseForm is a query.Phrase without the holes around it.
type phraseForm struct {
	words       []string
	first, last int
}

// wordList is a query.Words with its prefixes ready for looking up.
type wordList struct {
	query.Words
	shortest, longest int // bytes of a prefix
}

// formMatch is how a word list matches a token.
type formMatch struct {
	list  int // in words, -1 for none
	bytes int // of the form that are matched, -1 for all
}

// beginnings are the first bytes of all that words are looked for by, and their first two: what begins otherwise, as nearly all of
// a text does, need not be looked up.
type beginnings struct {
	one [4]uint64  // by byte: what has no second one
	two [16]uint64 // by a hash of two bytes
}

func (b *beginnings) add(form string) {
	switch {
	case len(form) == 1:
		b.one[form[0]/64] |= 1 << (form[0] % 64)
	case len(form) > 1:
		n := hashPair(form[0], form[1])
		b.two[n/64] |= 1 << (n % 64)
	}
}

// has reports whether a form may begin with something that was added.
func (b *beginnings) has(form string) bool {
	if len(form) == 0 || b.one[form[0]/64]>>(form[0]%64)&1 != 0 {
		return true
	}
	if len(form) == 1 {
		return false
	}
	n := hashPair(form[0], form[1])
	return b.two[n/64]>>(n%64)&1 != 0
}

func hashPair(a, b byte) int { return (int(a)*37 + int(b)) & 1023 }

func newHighlighter(a *text.Analyzer, h *query.Highlights) *highlighter {
	m := &highlighter{analyzer: a, phrases: make(map[string][]phraseForm), seen: make(map[string]formMatch)}
	if h == nil {
		return m
	}
	for _, p := range h.Phrases {
		w := p.Words
		for len(w) > 0 && w[0] == "" {
			w = w[1:]
		}
		for len(w) > 0 && w[len(w)-1] == "" {
			w = w[:len(w)-1]
		}
		if len(w) > 0 {
			m.phrases[w[0]] = append(m.phrases[w[0]], phraseForm{w, p.First, p.Last})
		}
	}
	for _, w := range h.Words {
		list := wordList{Words: w, shortest: math.MaxInt}
		for _, p := range w.Prefixes {
			list.shortest = max(1, min(list.shortest, len(p)))
			list.longest = max(list.longest, len(p))
			m.begins.add(p)
		}
		for form := range w.Forms {
			m.begins.add(form)
		}
		m.words = append(m.words, list)
	}
	return m
}

// empty reports whether nothing can match.
func (m *highlighter) empty() bool { return len(m.phrases) == 0 && len(m.words) == 0 }

// find returns the matches in s, whose tokens are given, from left to right. They do not overlap. The slice is valid until the next call.
func (m *highlighter) find(s string, tokens []text.Token) []match {
	m.matches, m.order = m.matches[:0], m.order[:0]
	for i := range tokens {
		if isWord(&tokens[i]) {
			m.order = append(m.order, i)
		}
	}
	for w := 0; w < len(m.order); {
		first := &tokens[m.order[w]]
		if p, n := m.phraseAt(tokens, w); n > 0 {
			last := m.order[w+n-1]
			m.matches = append(m.matches, match{m.order[w], last, w, w + n - 1, first.Start, tokens[last].End, p.first, p.last})
			w += n
			continue
		}
		if h := m.word(first.Form); h.list >= 0 {
			end := first.End
			if h.bytes >= 0 {
				end = first.Start + m.analyzer.MarkedBytes(*first, s[first.Start:first.End], h.bytes)
			}
			list := &m.words[h.list]
			m.matches = append(m.matches, match{m.order[w], m.order[w], w, w, first.Start, end, list.First, list.Last})
		}
		w++
	}
	return m.matches
}

func isWord(t *text.Token) bool { return t.Kind == text.Word || t.Kind == text.StopWord }

// phraseAt returns the first phrase that the words from order[w] on begin with, and how many words it takes there.
func (m *highlighter) phraseAt(tokens []text.Token, w int) (phraseForm, int) {
	for _, p := range m.phrases[tokens[m.order[w]].Form] {
		at, holes := w+1, 0
		for _, slot := range p.words[1:] {
			if slot == "" {
				holes++
				continue
			}
			// A stop word of the query stands for one word or none.
			skip := 0
			for skip <= holes && at+skip < len(m.order) && tokens[m.order[at+skip]].Form != slot {
				skip++
			}
			if skip > holes || at+skip >= len(m.order) {
				at = 0
				break
			}
			at, holes = at+skip+1, 0
		}
		if at > 0 {
			return p, at - w
		}
	}
	return phraseForm{}, 0
}

// word looks a token up in the word lists; the first that knows it counts.
func (m *highlighter) word(form string) formMatch {
	if !m.begins.has(form) {
		return formMatch{list: -1}
	}
	if h, ok := m.seen[form]; ok {
		return h
	}
	h := formMatch{list: -1}
	for i := range m.words {
		list := &m.words[i]
		if n := list.prefixOf(form); n > 0 {
			h = formMatch{i, leadingBytes(form[:n], list.Chars)}
			break
		}
		if _, ok := list.Forms[form]; ok {
			h = formMatch{i, -1}
			break
		}
	}
	m.seen[form] = h
	return h
}

// prefixOf returns the length of the prefix in the list that form starts with, or 0: that of the word as it was typed
// if it begins with that one, else of the first in byte order, which is the shortest.
func (w *wordList) prefixOf(form string) int {
	if strings.HasPrefix(form, w.Word) && w.startsFrom(form, max(w.shortest, len(w.Word))) > 0 {
		return len(w.Word)
	}
	return w.startsFrom(form, w.shortest)
}

// startsFrom returns the length of the shortest prefix of form, of n bytes at least, that is in the list, or 0.
func (w *wordList) startsFrom(form string, n int) int {
	for ; n <= min(len(form), w.longest); n++ {
		if _, ok := slices.BinarySearch(w.Prefixes, form[:n]); ok {
			return n
		}
	}
	return 0
}

// leadingBytes returns how many bytes the first n characters of s have.
func leadingBytes(s string, n int) int {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}
