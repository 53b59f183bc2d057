// Package text turns strings into normalised words: script groups, languages,
// separators, segmentation and folding, with positions for indexing and byte
// ranges back to the original for highlighting.
package text

// Config is what an index's settings change in the analysis.
type Config struct {
	StopWords     []string
	Separators    []string // separatorTokens
	NonSeparators []string // nonSeparatorTokens
	Dictionary    []string
}

// Analyzer analyses strings under one Config. It may be used by several goroutines.
type Analyzer struct{}

// New prepares an analyzer.
func New(c Config) *Analyzer { panic("stub") }

// Kind classifies a token.
type Kind uint8

const (
	Word Kind = iota
	StopWord
	Soft // separator
	Hard // separator
)

// Token is one piece of a text. Tokens tile the text.
type Token struct {
	Kind       Kind
	Start, End int    // byte range in the original
	Form       string // folded
}

// Locales is the list of languages allowed for a text; nil means any (text.md 4), empty and not nil an empty list.
type Locales []string

// Tokens appends the tokens of s. With stopWords false, stop words are words (as formatting wants them).
func (a *Analyzer) Tokens(dst []Token, s string, l Locales, stopWords bool) []Token { panic("stub") }

// Index calls emit for every indexed word of one value of a field with its position, and
// moves p on. word is valid during the call only. ASCII text allocates nothing.
func (a *Analyzer) Index(p *Positions, s []byte, l Locales, emit func(word []byte, position uint16)) {
	panic("stub")
}

// Positions is the running position of one field in one document; the zero value starts a document.
type Positions struct{}

// Visit begins a further visit of the field (text.md 10): after the first, the base moves on by 8. It is
// called once before the value's Index call, and alone for a visit that has no words.
func (p *Positions) Visit() { panic("stub") }

// Words returns how many words were indexed so far.
func (p *Positions) Words() int { panic("stub") }

// MarkedBytes returns how many bytes of original, whose folded form is a token's Form under the same analysis, are marked
// when the first n bytes of the form match (text.md 12.3).
func (a *Analyzer) MarkedBytes(t Token, original string, l Locales, n int) int { panic("stub") }

// FacetKey appends the form of s that filters, sort and facets compare: trimmed, decomposed, lower-cased.
func FacetKey(dst []byte, s []byte) []byte { panic("stub") }

// FacetSearchKey folds a whole facet value or facet query as one token (text.md 14).
func FacetSearchKey(s string, l Locales) string { panic("stub") }

// Fold returns the joined forms of all tokens of s under default separators with the given stop words (disableOnWords).
func Fold(s string) string { panic("stub") }

// Locale returns the ISO-639-3 code of a two- or three-letter code, or false when svc does not know it.
func Locale(code string) (string, bool) { panic("stub") }
