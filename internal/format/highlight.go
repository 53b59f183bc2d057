package format

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
	firstWord, lastWord   int  // counted without separators
	start, end            int  // bytes
	firstTerm, lastTerm   int  // words of the query
	list                  int  // of words; -1 for a phrase
	inner                 bool // it begins inside its first word; this word and the next one count as one
	touches               bool // it begins with an inner word, inside the last word of the match before. (Of concordances only.)
}

// highlighter finds the matches of a query. It is for one request and one goroutine.
type highlighter struct {
	analyzer *text.Analyzer
	phrases  map[string][]phraseForm // by first word
	words    []wordList
	begins   beginnings           // of words
	starts   *text.Beginnings     // of words and phrases
	seen     map[string]formMatch // by token form: most words repeat
}

// phraseForm is a query.Phrase.
type phraseForm struct {
	words       []string
	first, last int
}

// wordList is a query.Words with its prefixes prepared for lookups.
type wordList struct {
	query.Words
	shortest, longest int // bytes of a prefix
}

// each calls f with each form under which a word of the list is looked up.
func (w *wordList) each(f func(form string)) {
	for _, p := range w.Prefixes {
		f(p)
	}
	for form := range w.Forms {
		f(form)
	}
}

// formMatch is how a word list matches a token.
type formMatch struct {
	list  int // in words, -1 for none
	bytes int // of the form that are matched, -1 for all
}

// beginnings are the first bytes, and the first two bytes, of all forms to look up. Nearly all words of a text begin otherwise and
// need no lookup.
type beginnings struct {
	one [4]uint64  // by byte: for forms of a single byte
	two [16]uint64 // by a hash of two bytes
}

// add notes the first bytes of a form.
func (b *beginnings) add(form string) {
	switch {
	case len(form) == 1:
		b.one[form[0]/64] |= 1 << (form[0] % 64)
	case len(form) > 1:
		n := hashPair(form[0], form[1])
		b.two[n/64] |= 1 << (n % 64)
	}
}

// has reports whether a form may begin with an added one.
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

// newHighlighter prepares the words and phrases of a query for lookups. If h is nil, nothing matches.
func newHighlighter(a *text.Analyzer, h *query.Highlights) *highlighter {
	m := &highlighter{analyzer: a, phrases: make(map[string][]phraseForm), seen: make(map[string]formMatch), starts: text.NewBeginnings()}
	if h == nil {
		return m
	}
	for _, p := range h.Phrases {
		if w := p.Words; len(w) > 0 {
			m.phrases[w[0]] = append(m.phrases[w[0]], phraseForm{w, p.First, p.Last})
			m.starts.Add(w[0])
		}
	}
	for _, w := range h.Words {
		list := wordList{Words: w, shortest: math.MaxInt}
		for _, p := range w.Prefixes {
			list.shortest = max(1, min(list.shortest, len(p)))
			list.longest = max(list.longest, len(p))
		}
		list.each(m.add)
		m.words = append(m.words, list)
	}
	return m
}

func (m *highlighter) add(form string) {
	m.begins.add(form)
	m.starts.Add(form)
}

// empty reports whether nothing can match.
func (m *highlighter) empty() bool { return len(m.phrases) == 0 && len(m.words) == 0 }

// isWord reports whether a token has a position. One of dropped characters alone has none, as in concordances.
func isWord(t *text.Token) bool {
	return (t.Kind == text.Word || t.Kind == text.StopWord) && t.Form != ""
}

// word looks a token up in the word lists. The first list with it counts.
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
	m.seen[strings.Clone(form)] = h // forms of a text are parts of one string
	return h
}

// isAbsent reports whether a text has no match, if that is quick to see.
func (m *highlighter) isAbsent(s []byte, l text.Locales) bool {
	return m.analyzer.Lacks(s, l, m.starts, m.wanted)
}

// wanted reports whether a word or a phrase begins with a token of this form.
func (m *highlighter) wanted(form []byte) bool {
	if _, ok := m.phrases[string(form)]; ok {
		return true
	}
	return m.word(string(form)).list >= 0
}

// prefixOf returns the length of the prefix in the list that form starts with, or 0: the prefix of the word as typed if it matches,
// else the first in byte order, which is the shortest.
func (w *wordList) prefixOf(form string) int {
	if strings.HasPrefix(form, w.Word) && w.startsFrom(form, max(w.shortest, len(w.Word))) > 0 {
		return len(w.Word)
	}
	return w.startsFrom(form, w.shortest)
}

// startsFrom returns the length of the shortest prefix of form, of at least n bytes, that is in the list, or 0.
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
