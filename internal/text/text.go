// Package text turns strings into normalised words: script groups, languages, separators, segmentation and folding, with positions
// for indexing and byte ranges back to the original for highlighting.
//
// A text passes these steps:
//  1. It is split where its script changes. Digits between letters and ideographs (or another script without spaces) go with the
//     letters.
//  2. In each group, the separators and the dictionary entries of the index are found, leftmost and longest.
//  3. What is between them goes to the segmenter of the group's script and language, if there is one (segment.go).
//  4. Each piece is classified by its compatibility decomposition, and folded (fold.go).
//
// Chinese is split into probable words, Japanese and Korean into probable sentences, Thai and Khmer into the longest words of a
// list, and German compounds into their parts. German needs a locale; with several locales, the language is guessed (detect.go).
// The forms of Arabic and Hebrew words omit the article (article.go). Lao, Burmese and Tibetan are split only at separators.
//
// The language decides how a text is split, and whether å, ä and ö stay. All other folding is independent of a guess: Arabic and
// Persian letters, katakana and hiragana, and traditional, Japanese and simplified ideographs have one form.
//
// Segments contain words of older programs. A change to the words of a text, their forms or their positions must raise the versions
// of the affected pipelines (version.go), so that svc reanalyses these segments. TestVersions fails until it does. Keep the older
// behaviour behind Analyzer.versions if that is cheap: queries on segments that are not reanalysed yet need it.
package text

import (
	"encoding/binary"
	"sync"
	"unicode/utf8"
)

// Config is what an index's settings change in the analysis.
type Config struct {
	StopWords     []string
	Separators    []string // separatorTokens
	NonSeparators []string // nonSeparatorTokens
	Dictionary    []string
}

// Analyzer analyses strings under one Config. It may be used by several goroutines.
type Analyzer struct {
	config   Config
	versions Versions
	patterns
	passes         passing
	cuts           []byte              // what of the settings decides on where words are cut
	stop           map[string]struct{} // by stop key
	stopSeparators bool                // a stop word may be a separator or a dictionary entry
}

// New prepares an analyzer.
func New(c Config) *Analyzer { return newAt(c, versions) }

// newAt is New with the versions of an older program.
func newAt(c Config, v Versions) *Analyzer {
	a := &Analyzer{config: c, versions: v, patterns: newPatterns(c), cuts: appendVersions(appendCuts(nil, c), v)}
	a.passes = newPassing(&a.patterns, c)
	if len(c.StopWords) == 0 {
		return a
	}
	a.stop = make(map[string]struct{}, len(c.StopWords))
	for _, w := range c.StopWords {
		if w == "" {
			continue
		}
		a.stop[string(appendStopKey(nil, []byte(w)))] = struct{}{}
		if n, _ := a.match([]byte(w)); n > 0 {
			a.stopSeparators = true
		}
	}
	return a
}

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
	Start, End int     // byte range in the original
	Form       string  // folded, without an article
	Whole      string  // the form with the article; "" for a word without one
	Inner      Inner   // the inner word of Chinese that ends here; none in queries
	Parts      []Inner // the inner words of Korean, Thai and Khmer that end here; none in queries
	group      group
}

// Inner is an inner word (inner.go).
type Inner struct {
	Form       string // folded; "" for none
	Start, End int    // byte range in the original
}

// IsIdeographic reports whether the token is of Chinese or Japanese script, whose words depend on the language that a text is taken for.
func (t Token) IsIdeographic() bool { return t.group.script == cj && t.Kind <= StopWord }

// group is what folding depends on: the script of a run of text and its language.
type group struct {
	script   script
	language language
}

// Tokens appends the tokens of s. With stopWords false, stop words are words (as formatting wants them).
func (a *Analyzer) Tokens(dst []Token, s string, l Locales, stopWords bool) []Token {
	if s == "" {
		return dst
	}
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	text := append(sc.text[:0], s...)
	sc.text = text
	a.walk(text, l, nil, func(p piece) bool {
		raw := text[p.start:p.end]
		if p.inner != whole {
			if !stopWords {
				dst[len(dst)-1].addInner(a, sc, raw, p)
			}
			return true
		}
		sc.parts = sc.parts[:0]
		kind := p.kind
		if stopWords || kind == Word {
			kind = a.classify(sc, raw, p, stopWords)
		}
		var a article
		sc.form, a = appendForm(sc.form[:0], raw, p.group, nil)
		form := s[p.start:p.end]
		if string(sc.form) != form {
			form = string(sc.form)
		}
		dst = append(dst, Token{Kind: kind, Start: p.start, End: p.end, Form: form, Whole: a.whole(form), group: p.group})
		return true
	})
	return dst
}

// MarkedBytes returns how many bytes of original, the piece of text that t was made of, are
// marked when the first n bytes of t.Form match: the characters up to the last one that gave any of those bytes.
func (a *Analyzer) MarkedBytes(t Token, original string, n int) int {
	if n <= 0 {
		return 0
	}
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	sc.text = append(sc.text[:0], original...)
	sc.ends = sc.ends[:0]
	sc.form, _ = appendForm(sc.form[:0], sc.text, t.group, &sc.ends)
	marked, folded := 0, 0
	for _, end := range sc.ends {
		if folded >= n {
			break
		}
		_, size := utf8.DecodeRuneInString(original[marked:])
		marked += size
		folded = end
	}
	return marked
}

// piece is a part of a text before folding.
type piece struct {
	start, end int
	kind       Kind // Word, Soft or Hard as far as the match tells
	matched    bool // a separator or dictionary entry
	inner      innerKind
	group      group
}

// firstGroup returns the group that s begins with, and how many bytes it has. It adds its pipelines to used, which may be nil.
func (a *Analyzer) firstGroup(s []byte, l Locales, used *Pipelines) (group, int) {
	script, n := nextGroup(s, other)
	n = withoutNumber(s, n, script)
	return a.groupOf(script, s[:n], l, used), n
}

// walk cuts s into pieces, which tile it apart from inner ones, until yield returns false. used, which may be nil, gets the pipelines
// that they go through.
func (a *Analyzer) walk(s []byte, l Locales, used *Pipelines, yield func(piece) bool) {
	for start := 0; start < len(s); {
		g, n := a.firstGroup(s[start:], l, used)
		if !a.cut(s, start, start+n, g, yield) {
			return
		}
		start += n
	}
}

// groupOf returns the group of a run of text in one script. It adds the pipelines of the group to used, which may be nil.
func (a *Analyzer) groupOf(sc script, text []byte, l Locales, used *Pipelines) group {
	g := group{sc, languageOf(sc, text, l)}
	if used != nil {
		g.pipelines(used, text)
	}
	if g.language == deu && a.versions[German] < 2 {
		g.language = otherLanguage
	}
	if g.language == cmn && a.versions[Chinese] < 3 {
		g.language = cmnAsWritten
	}
	return g
}

// cut cuts one group, s[start:end].
func (a *Analyzer) cut(s []byte, start, end int, g group, yield func(piece) bool) bool {
	for start < end {
		next, ok := a.stretch(s, start, end, g, yield)
		if !ok {
			return false
		}
		start = next
	}
	return true
}

// stretch cuts a part of a group: from start up to the next separator or dictionary entry, and that one, or to the end. It returns where
// that part ends, and false when yield does.
func (a *Analyzer) stretch(s []byte, start, end int, g group, yield func(piece) bool) (int, bool) {
	for i := start; i < end; {
		if a.class[s[i]] == classWord {
			i++
			continue
		}
		n, kind := a.match(s[i:end])
		if n == 0 {
			_, size := utf8.DecodeRune(s[i:end])
			i += size
			continue
		}
		if start < i && !segment(s, start, i, g, yield) {
			return i, false
		}
		return i + n, yield(piece{i, i + n, kind, true, whole, g})
	}
	return end, segment(s, start, end, g, yield)
}

// classify gives the kind of a piece with the text raw.
func (a *Analyzer) classify(sc *scratch, raw []byte, p piece, stopWords bool) Kind {
	if stopWords && len(a.stop) > 0 && (!p.matched || a.stopSeparators) {
		sc.key = appendStopKey(sc.key[:0], raw)
		if _, ok := a.stop[string(sc.key)]; ok {
			return StopWord
		}
	}
	if p.matched || isASCII(raw) {
		return p.kind
	}
	// What decomposes to a separator is one, such as a full-width plus sign.
	if _, n := utf8.DecodeRune(raw); n == len(raw) || a.longestSeparator > 1 && utf8.RuneCount(raw) <= a.longestSeparator {
		sc.key = appendBase(sc.key[:0], raw)
		if kind, ok := a.separator(sc.key); ok {
			return kind
		}
	}
	return Word
}

// IsStopWord reports whether a word of a text, as it is written there, is a stop word.
func (a *Analyzer) IsStopWord(raw []byte) bool {
	if len(a.stop) == 0 {
		return false
	}
	var buf [64]byte
	_, ok := a.stop[string(appendStopKey(buf[:0], raw))]
	return ok
}

// scratch holds the buffers of one analysis.
type scratch struct {
	text, form, key []byte
	parts           []byte // forms of the parts of the last piece, each after a zero byte
	spelling        []byte
	ends            []int
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func isASCII(s []byte) bool {
	for len(s) >= 8 {
		if binary.LittleEndian.Uint64(s)&highBits != 0 {
			return false
		}
		s = s[8:]
	}
	for _, b := range s {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
