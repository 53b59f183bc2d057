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
	Phrase     []string // the words of a phrase; stop words as their entries (text.StopEntry)
	Stop       bool     // the word is a stop word, of a query that has no other words
	Prefix     bool
	Start, End uint16 // positions in the query
	Skipped    uint16 // stop words that were left out between the term before it and this one

	// Spellings are how the words are typed (text.Spelling), one for Word or for each word of Phrase; nil where all are typed like their
	// forms.
	Spellings []string

	from, to int // bytes of the query
}

// IsPhrase reports whether the term was quoted.
func (t *Term) IsPhrase() bool { return t.Phrase != nil }

// Span returns where the term stands in the query, in bytes.
func (t *Term) Span() (from, to int) { return t.from, t.to }

// Words returns the number of words of the term, without stop words, because the fields of documents do not contain these.
func (t *Term) Words() int {
	if !t.IsPhrase() {
		if t.Stop {
			return 0
		}
		return 1
	}
	return counted(t.Phrase)
}

// Terms is a parsed query. Excluded stop words are in the form of their entries.
type Terms struct {
	Terms           []Term
	NegativeWords   []string
	NegativePhrases [][]string

	readings []reading
}

// reader is the state of Read. position wraps around, as positions in queries do.
type reader struct {
	query    string
	out      Terms
	stops    []Term // stop words outside of phrases, which count where there is nothing else
	other    bool   // there is something else
	skipped  uint16 // stop words that were left out behind the last term
	position uint16
	phrase   *phraseReader // the open phrase
	negative bool          // an operator stands before the token, or before the open phrase
}

type phraseReader struct {
	words      []string
	spellings  []string
	spelt      bool // some word is not typed like its form
	wholes     []string
	with       bool // some word has an article, which wholes has
	start, end uint16
	from, to   int
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

// Read reads the tokens of a query from left to right. The tokens must distinguish stop words. prefix says whether the last word may
// match as a prefix.
func Read(tokens []text.Token, query string, prefix bool) *Terms {
	if len(tokens) > maxTokens {
		tokens = tokens[:maxTokens]
	}
	r := reader{query: query, position: ^uint16(0)}
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		if len(r.out.Terms) >= MaxTerms {
			return &r.out
		}
		if n := unspaced(tokens[i:]); n > 1 && r.negative && r.phrase == nil {
			r.exclude(tokens[i : i+n])
			i += n - 1
			continue
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
	if !r.other {
		r.out.Terms = r.stops[:min(len(r.stops), MaxTerms)]
	}
	return &r.out
}

// word takes a word: into an open phrase, as an excluded one, or as a term. A stop word is a term only if it
// is the last word.
func (r *reader) word(t text.Token, last, prefix bool) {
	if t.Form == "" {
		return
	}
	r.position++
	word, stop := t.Form, t.Kind == text.StopWord
	spelling := text.Spelling(r.query[t.Start:t.End], word)
	if stop && (r.phrase != nil || r.negative) {
		word = text.StopEntry(word)
	}
	switch {
	case r.phrase != nil:
		r.phrase.add(word, spelling, t, r.position)
		return
	case r.negative:
		if r.out.NegativeWords = append(r.out.NegativeWords, word); t.Whole != "" && !stop {
			r.out.NegativeWords = append(r.out.NegativeWords, t.Whole)
		}
		r.negative = false
		return
	}
	term := Term{Word: word, Prefix: last && prefix, Start: r.position, End: r.position, from: t.Start, to: t.End}
	if spelling != word {
		term.Spellings = []string{spelling}
	}
	if !stop || last { // a stop word that is still being typed may be the beginning of another word
		if r.append(term); t.Whole != "" && !stop {
			r.addWhole(t.Whole)
		}
	} else {
		r.skipped++
	}
	if term.Stop = stop; stop {
		r.stops = append(r.stops, term)
	}
	r.other = r.other || !stop
}

// unspaced returns how many tokens at the start are words without anything between: pieces of one word of the text, if there are several,
// such as the characters of a Chinese one or the parts of a compound.
func unspaced(tokens []text.Token) (n int) {
	for n < len(tokens) && tokens[n].Kind <= text.StopWord && (n == 0 || tokens[n].Start == tokens[n-1].End) {
		n++
	}
	return n
}

// exclude takes the pieces of an excluded word: documents are excluded that have them one after another, as they have the word.
func (r *reader) exclude(pieces []text.Token) {
	r.negative = false
	var words []string
	for _, t := range pieces {
		if t.Form == "" {
			continue
		}
		r.position++
		if word := t.Form; t.Kind == text.StopWord {
			words = append(words, text.StopEntry(word))
		} else {
			words = append(words, word)
		}
	}
	if len(words) > 0 {
		r.out.NegativePhrases = append(r.out.NegativePhrases, words)
		r.other = true
	}
}

// separator processes the text between words. A hard separator, such as the end of a sentence, is a distance of eight and divides a
// phrase. Quotes open and close phrases.
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

func (p *phraseReader) add(word, spelling string, t text.Token, position uint16) {
	if len(p.words) == 0 {
		p.from = t.Start
		p.start = position
	}
	p.to = t.End
	p.end = position
	p.words, p.spellings = append(p.words, word), append(p.spellings, spelling)
	p.spelt = p.spelt || spelling != t.Form
	if t.Whole != "" && word == t.Form {
		word, p.with = t.Whole, true
	}
	p.wholes = append(p.wholes, word)
}

// closePhrase ends the open phrase, if there is one. It drops a phrase without words.
func (r *reader) closePhrase() {
	p := r.phrase
	r.phrase = nil
	negative := r.negative
	r.negative = false
	if p == nil || len(p.words) == 0 {
		return
	}
	if negative {
		r.out.NegativePhrases = append(r.out.NegativePhrases, p.words)
		return
	}
	term := Term{Phrase: p.words, Start: p.start, End: p.end, from: p.from, to: p.to}
	if p.spelt {
		term.Spellings = p.spellings
	}
	if r.append(term); p.with {
		r.addWhole(p.wholes...)
	}
	r.other = true
}

// addWhole adds the words of the last term with their articles to it. A text may have this form: in a language without these articles
// they belong to the word, and the letters do not always show the language.
func (r *reader) addWhole(words ...string) {
	r.out.readings = append(r.out.readings, reading{len(r.out.Terms) - 1, 1, words})
}

func (r *reader) append(t Term) {
	t.Skipped, r.skipped = r.skipped, 0
	r.out.Terms = append(r.out.Terms, t)
}

// follows reports whether a term comes directly after the previous one, or with only stop words in between.
func (t *Term) follows(before *Term) (directly, ok bool) {
	gap := t.Start - before.End - 1
	return gap == 0, gap == t.Skipped
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
