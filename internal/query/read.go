package query

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"svc/internal/text"
)

// Term is one word or one phrase of a query.
type Term struct {
	Word       string   // "" for a phrase
	Phrase     []string // the words of a phrase, "" for a hole (a stop word)
	Prefix     bool
	Start, End uint16 // positions in the query; of a phrase, from its first word on
}

// IsPhrase reports whether the term was quoted.
func (t *Term) IsPhrase() bool { return t.Phrase != nil }

// Terms is a query as it was read.
type Terms struct {
	Terms           []Term
	NegativeWords   []string
	NegativePhrases [][]string
}

// reader is the state of Read. position wraps around, as positions in queries do.
type reader struct {
	out      Terms
	position uint16
	phrase   *phraseReader // the open phrase
	negative bool          // an operator stands before the token, or before the open phrase
}

type phraseReader struct {
	slots      []string
	words      int
	start, end uint16
}

// Readable returns the beginning of a query that is worth cutting into tokens: all of it, unless it is very long.
func Readable(query string) string {
	if len(query) <= maxBytes {
		return query
	}
	end := maxBytes
	for end > 0 && !utf8.RuneStart(query[end]) {
		end--
	}
	return query[:end]
}

// Read reads the tokens of a query (made with stop words told apart) from left to
// right. prefix says whether a last word may match as a prefix.
func Read(tokens []text.Token, query string, prefix bool) *Terms {
	if len(tokens) > maxTokens {
		tokens = tokens[:maxTokens]
	}
	r := reader{position: ^uint16(0)}
	for i, t := range tokens {
		if len(r.out.Terms) >= maxTerms {
			return &r.out
		}
		last := i == len(tokens)-1
		switch t.Kind {
		case text.Word, text.StopWord:
			r.word(t, last, prefix)
		default:
			r.separator(t)
			r.negative = r.negative && r.phrase != nil ||
				r.phrase == nil && isOperator(tokens, i, query)
		}
	}
	r.closePhrase()
	return &r.out
}

func (r *reader) word(t text.Token, last, prefix bool) {
	if t.Form == "" {
		return
	}
	r.position++
	stop := t.Kind == text.StopWord
	switch {
	case r.phrase != nil:
		r.phrase.add(t.Form, stop, r.position)
	case r.negative:
		r.out.NegativeWords = append(r.out.NegativeWords, t.Form)
		r.negative = false
	case stop && !last:
	default:
		r.out.Terms = append(r.out.Terms, Term{Word: t.Form, Prefix: last && prefix, Start: r.position, End: r.position})
	}
}

func (r *reader) separator(t text.Token) {
	hard := t.Kind == text.Hard
	if hard {
		r.position += 7
		if r.phrase != nil {
			negative := r.negative
			r.closePhrase()
			r.negative = negative
			r.phrase = &phraseReader{}
		}
	}
	quotes := strings.Count(t.Form, `"`)
	if quotes == 0 {
		return
	}
	if r.phrase != nil {
		r.closePhrase()
		quotes--
	}
	if quotes%2 == 1 {
		r.phrase = &phraseReader{}
	}
}

func (p *phraseReader) add(word string, hole bool, position uint16) {
	if p.words == 0 { // holes at the beginning are not in the span
		p.start = position
	}
	p.end = position
	if hole {
		word = ""
	} else {
		p.words++
	}
	p.slots = append(p.slots, word)
}

// closePhrase ends the open phrase, if there is one. A phrase without words is dropped.
func (r *reader) closePhrase() {
	p := r.phrase
	r.phrase = nil
	negative := r.negative
	r.negative = false
	if p == nil || p.words == 0 {
		return
	}
	if negative {
		r.out.NegativePhrases = append(r.out.NegativePhrases, p.slots)
		return
	}
	r.out.Terms = append(r.out.Terms, Term{Phrase: p.slots, Start: p.start, End: p.end})
}

// isOperator reports whether token i, outside a phrase, is a minus that
// excludes the next token: one after white space or at the start, directly before a word or a quote.
func isOperator(tokens []text.Token, i int, query string) bool {
	if tokens[i].Form != "-" || i+1 == len(tokens) {
		return false
	}
	if i > 0 {
		c, _ := utf8.DecodeLastRuneInString(query[tokens[i-1].Start:tokens[i-1].End])
		if !unicode.IsSpace(c) || c == '\u00a0' {
			return false
		}
	}
	next := tokens[i+1]
	switch next.Kind {
	case text.Word, text.StopWord:
		return next.Form != ""
	default:
		return strings.HasPrefix(next.Form, `"`)
	}
}
