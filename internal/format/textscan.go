package format

import (
	"math"
	"slices"

	"svc/internal/text"
)

// textScan finds the matches of one text from left to right. It cuts the text into tokens chunk by chunk, only as far as needed. It
// skips runs of words that begin no match, and forgets earlier text.
type textScan struct {
	find    *highlighter
	text    []byte
	locales text.Locales
	cursor  text.Cursor
	starts  *text.Beginnings
	wanted  func(form []byte) bool // whether a wanted match may begin with a word
	rest    continuation           // continues text, which ends between two characters; nil: nothing
	err     error                  // of rest: the text then ends where reading failed

	tokens []text.Token // from this number on:
	base   int
	words  []int // indexes of the tokens that are words, not counting skipped text
	first  int   // number of the first of them
	at     int   // number of the next word
	chunk  int   // how many tokens to cut next

	taken, takenWord int // the last match ends before this byte, in this word
}

// continuation is the rest of a text, in parts of whole characters: a segment.Tail.
type continuation interface {
	More() bool
	Append(dst []byte) ([]byte, error)
}

// begin goes to the start of a text. The rest of the text is read as needed.
func (r *textScan) begin(s []byte, rest continuation, l text.Locales) {
	*r = textScan{find: r.find, text: s, starts: r.find.starts, wanted: r.find.wanted, rest: rest, locales: l, tokens: r.tokens[:0], words: r.words[:0],
		chunk: chunkTokens, takenWord: -1}
}

// partial reports whether there is more of the text than was read.
func (r *textScan) partial() bool { return r.rest != nil && r.rest.More() }

// atEnd reports whether the whole text is cut.
func (r *textScan) atEnd() bool { return r.cursor.AtEnd(r.text) && !r.partial() }

// After skipped text, fewTokens are cut: a word before the next match, the text in between, and the match. Each further chunk is
// twice as large, up to chunkTokens.
const (
	chunkTokens = 64
	fewTokens   = 4
)

// more cuts a further part of the text. It returns false at the end.
func (r *textScan) more() bool {
	from, chunk := len(r.tokens), r.chunk
	r.chunk = min(2*chunk, chunkTokens)
	for len(r.tokens) == from {
		if r.atEnd() {
			return false
		}
		if r.tokens = r.find.analyzer.More(r.tokens, r.text, r.locales, &r.cursor, chunk, r.partial()); len(r.tokens) > from || !r.partial() {
			break
		}
		if r.text, r.err = r.rest.Append(r.text); r.err != nil {
			r.rest = nil
		}
	}
	for i := from; i < len(r.tokens); i++ {
		if isWord(&r.tokens[i]) {
			r.words = append(r.words, r.base+i)
		}
	}
	return true
}

// word returns the token of a word, and its number, or nil after the end of the text.
func (r *textScan) word(n int) (*text.Token, int) {
	for n-r.first >= len(r.words) {
		if !r.more() {
			return nil, 0
		}
	}
	at := r.words[n-r.first]
	return &r.tokens[at-r.base], at
}

// due reports whether all words cut so far were processed: then some can be forgotten, and others skipped.
func (r *textScan) due() bool { return r.at-r.first >= len(r.words) }

// forget drops the words before one, and the tokens before it.
func (r *textScan) forget(word int) {
	n := min(max(word-r.first, 0), len(r.words))
	if n < len(r.words)/2 || n == 0 {
		return
	}
	to := r.base + len(r.tokens)
	if n < len(r.words) {
		to = r.words[n]
	}
	r.words = slices.Delete(r.words, 0, n)
	r.tokens = slices.Delete(r.tokens, 0, to-r.base)
	r.first, r.base = r.first+n, to
}

// pass skips words that begin no wanted match, and reports whether there were any. It forgets the earlier words. The next match is at
// least the given number of words further on, and later words are as far from earlier ones.
func (r *textScan) pass(words int) bool {
	if !r.due() || !r.find.analyzer.Pass(r.text, r.locales, &r.cursor, r.starts, r.wanted, words, r.partial()) {
		return false
	}
	r.chunk = fewTokens
	r.base += len(r.tokens)
	r.first += len(r.words) + words
	r.at, r.tokens, r.words = r.first, r.tokens[:0], r.words[:0]
	return true
}

// next returns the next match that begins before a word. It returns false if there is none, or if all words cut so far were
// processed: at says how far it came. Matches do not overlap.
func (r *textScan) next(before int) (m match, ok bool) {
	for r.at < before && !r.due() {
		token, at := r.word(r.at)
		if r.ofWord(token, at, &m) || token.Inner.Form != "" && r.ofInner(token, at, &m) || len(token.Parts) > 0 && r.ofParts(token, at, &m) {
			r.take(&m)
			return m, true
		}
		r.at++
	}
	if r.at != before {
		return m, false
	}
	// An inner word that ends in the next word may begin before it. If the last match is only a part of that word, so does what is left.
	token, at := r.word(before)
	if token == nil || token.Inner.Form == "" && len(token.Parts) == 0 || r.ofWord(token, at, &m) {
		return match{}, false
	}
	if !(token.Inner.Form != "" && r.ofInner(token, at, &m) || r.ofParts(token, at, &m)) || m.start >= token.Start {
		return match{}, false
	}
	r.take(&m)
	return m, true
}

// take records a match, and continues after it.
func (r *textScan) take(m *match) { r.at, r.taken, r.takenWord = m.lastWord+1, m.end, m.lastWord }

// ofWord finds the match that begins with the next word, the token at.
func (r *textScan) ofWord(t *text.Token, at int, m *match) bool {
	if r.phrase(t.Form, at, m) {
		m.start = t.Start
		return true
	}
	h := r.find.word(t.Form)
	if h.list < 0 && t.Whole != "" {
		if h = r.find.word(t.Whole); h.list >= 0 {
			h.bytes = -1 // the whole word, which has another form
		}
	}
	return h.list >= 0 && r.inList(t, at, h, t.Start, t.End, m)
}

// ofInner finds the match that begins with the inner word that ends in the next word, the token at. If the word before is a match, only
// the text after that is one.
func (r *textScan) ofInner(t *text.Token, at int, m *match) bool {
	if r.phrase(t.Inner.Form, at, m) {
		m.start = t.Inner.Start
	} else if h := r.find.word(t.Inner.Form); h.list < 0 || !r.inList(t, at, h, t.Inner.Start, t.Inner.End, m) {
		return false
	}
	m.start = max(m.start, r.taken)
	if r.takenWord < r.at-1 {
		m.firstWord--
		m.firstToken--
		m.inner = true
	}
	return m.start < m.end
}

// ofParts finds the match of an inner word of Korean, Thai or Khmer that ends in the next word, the token at: of the first list with one.
// If the match before ends in it, only the text after that is a match.
func (r *textScan) ofParts(t *text.Token, at int, m *match) bool {
	first := formMatch{list: -1}
	var in *text.Inner
	for i := range t.Parts {
		if h := r.find.word(t.Parts[i].Form); h.list >= 0 && (first.list < 0 || h.list < first.list) {
			first, in = h, &t.Parts[i]
		}
	}
	if in == nil || !r.inList(t, at, first, in.Start, in.End, m) {
		return false
	}
	if m.end <= r.taken {
		m.end = in.End
	}
	m.start = max(m.start, r.taken)
	return true
}

// inList makes the match of the next word, the token at, or of the inner word that ends in it, with a list of words. It returns false for
// a stop word.
func (r *textScan) inList(t *text.Token, at int, h formMatch, start, end int, m *match) bool {
	if r.find.analyzer.IsStopWord(r.text[start:end]) {
		return false
	}
	if h.bytes >= 0 {
		end = start + r.find.analyzer.MarkedBytes(*t, string(r.text[start:end]), h.bytes)
	}
	list := &r.find.words[h.list]
	*m = match{at, at, r.at, r.at, start, end, list.First, list.Last, h.list, false, false}
	return true
}

// phrase finds the first phrase that begins with a form of the next word, the token at. It leaves the start to the caller.
func (r *textScan) phrase(form string, at int, m *match) bool {
	if len(r.find.phrases) == 0 {
		return false
	}
	for _, p := range r.find.phrases[form] {
		n := 1
		for n < len(p.words) {
			word := p.words[n]
			if token, _ := r.word(r.at + n); token == nil || token.Form != word && (word == "" || token.Inner.Form != word) {
				break
			}
			n++
		}
		if n == len(p.words) {
			last, end := r.word(r.at + n - 1)
			*m = match{at, end, r.at, r.at + n - 1, 0, last.End, p.first, p.last, -1, false, false}
			if last.Form != p.words[n-1] {
				m.end = last.Inner.End
			}
			return true
		}
	}
	return false
}

// each calls f with the matches of a text, in order. It ends with the first error of f, or when the answer is no longer wanted.
func (r *textScan) each(s []byte, l text.Locales, c *clock, f func(m match) error) error {
	if r.find.empty() || r.find.isAbsent(s, l) {
		return nil
	}
	for r.begin(s, nil, l); ; {
		m, ok := r.next(math.MaxInt)
		switch {
		case ok:
			if err := f(m); err != nil {
				return err
			}
		case r.atEnd():
			return nil
		default:
			if err := c.wanted(clockParts); err != nil {
				return err
			}
			r.forget(r.at)
			r.pass(0)
			r.more()
		}
	}
}
