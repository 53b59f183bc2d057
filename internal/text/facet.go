package text

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	xlanguage "golang.org/x/text/language"
)

// FacetKey appends the form of s that filters, sort and facets compare: trimmed, decomposed, lower-cased.
func FacetKey(dst []byte, s []byte) []byte { return FacetPart(dst, trimSpace(s)) }

// FacetPart is FacetKey for a part of a text. Blanks at its ends are inside the text.
func FacetPart(dst []byte, s []byte) []byte {
	start := len(dst)
	sigma := false
	for i := 0; i < len(s); {
		if b := s[i]; b < utf8.RuneSelf {
			dst = append(dst, lower[b])
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		i += n
		from := len(dst)
		dst = appendDecomposed(dst, r)
		if r >= 0x370 && bytes.ContainsRune(dst[from:], 'Σ') {
			sigma = true
			continue
		}
		dst = lowerFrom(dst, from)
	}
	if sigma {
		// A capital sigma at the end of a word becomes a final sigma, which depends on the context.
		dst = append(dst[:start], cases.Lower(xlanguage.Und).Bytes(dst[start:])...)
	}
	return dst
}

// lowerFrom lower-cases dst[from:].
func lowerFrom(dst []byte, from int) []byte {
	r, n := utf8.DecodeRune(dst[from:])
	if from+n == len(dst) {
		return utf8.AppendRune(dst[:from], unicode.ToLower(r))
	}
	return append(dst[:from], bytes.ToLower(dst[from:])...)
}

// FacetSearchKey folds a whole facet value or facet query as one token. It cuts nothing and folds each run of a script by itself, so
// that the key of a prefix of s is a prefix of the key of s. For the same reason it does not guess a language.
func FacetSearchKey(s string, l Locales) string {
	if IsFolded(s) {
		return s
	}
	if len(l) > 1 {
		l = nil
	}
	raw := []byte(s)
	var dst []byte
	for len(raw) > 0 {
		sc, n := nextGroup(raw, other)
		dst = appendFold(dst, raw[:n], group{sc, languageOf(sc, raw[:n], l)}, nil)
		raw = raw[n:]
	}
	return string(dst)
}

// IsFolded reports whether s has printable ASCII characters other than capitals only, which FacetSearchKey leaves as they are.
func IsFolded[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

var defaultAnalyzer = New(Config{})

// Fold returns the joined forms of all tokens of s, separators too, under default separators (disableOnWords).
func Fold(s string) string {
	var b strings.Builder
	for _, t := range defaultAnalyzer.Tokens(nil, s, nil, false) {
		b.WriteString(t.Form)
	}
	return b.String()
}

// trimSpace is bytes.TrimSpace, quick for words.
func trimSpace(s []byte) []byte {
	if n := len(s); n == 0 || '!' <= s[0] && s[0] <= '~' && '!' <= s[n-1] && s[n-1] <= '~' {
		return s
	}
	return bytes.TrimSpace(s)
}
