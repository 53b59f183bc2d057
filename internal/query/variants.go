package query

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"svc/internal/text"
)

// Texts write some words in ways that the analysis cuts differently:
//
//   - N.A.T.O. is a word for each letter, and NATO is one word. Up to three words of a query are joined anyway (graph.go).
//   - A Japanese word in katakana is mostly one word. In hiragana it is what the dictionary finds in it: コンピューター and こんぴゅーたー.
//   - A fraction is one character or two numbers: ½ and 1/2.
//
// The other ways are readings of the terms of a query.

// maxLetters is the most letters of an abbreviation.
const maxLetters = 6

// addVariants adds readings for other ways to write the terms of a query.
func (t *Terms) addVariants(a *text.Analyzer, query string) {
	for i := 0; i < len(t.Terms); i++ {
		if t.Terms[i].IsPhrase() || t.Terms[i].Stop {
			continue
		}
		if n := t.abbreviation(query, i); n > maxGram {
			t.addReadingOf(i, n, t.joined(i, n))
			i += n - 1
			continue
		}
		if n := t.kana(i); n > 1 {
			// A prolonged sound mark that begins a term has no vowel there.
			if form := text.FacetSearchKey(query[t.Terms[i].from:t.Terms[i+n-1].to], nil); n > maxGram || form != t.joined(i, n) {
				t.addReadingOf(i, n, form)
			}
			i += n - 1
			continue
		}
		t.addHiragana(a, query, i)
		t.addFraction(query, i)
		t.addNumbers(query, i)
	}
}

// addReadingOf adds a reading of n terms from term i on.
func (t *Terms) addReadingOf(i, n int, words ...string) {
	if !t.reads(i, n, words) {
		t.readings = append(t.readings, reading{i, n, words})
	}
}

// joined returns n terms from term i on as one word.
func (t *Terms) joined(i, n int) string {
	var b strings.Builder
	for k := range n {
		b.WriteString(t.Terms[i+k].Word)
	}
	return b.String()
}

// abbreviation returns how many terms from term i on are single letters with nothing but periods between, or 0 if these are more than
// maxLetters.
func (t *Terms) abbreviation(query string, i int) (n int) {
	for ; i+n < len(t.Terms) && isLetter(t.Terms[i+n].Word); n++ {
		if n > 0 && query[t.Terms[i+n-1].to:t.Terms[i+n].from] != "." {
			break
		}
	}
	if n > maxLetters {
		return 0
	}
	return n
}

// isAbbreviation reports whether some words are letters of one abbreviation.
func isAbbreviation(words []string) bool {
	return len(words) <= maxLetters && !slices.ContainsFunc(words, func(w string) bool { return !isLetter(w) })
}

// isLetter reports whether a word is one letter of a script that has capitals.
func isLetter(word string) bool {
	r, n := utf8.DecodeRuneInString(word)
	return n == len(word) && unicode.IsLower(r)
}

// kana returns how many terms from term i on are kana without anything between.
func (t *Terms) kana(i int) (n int) {
	for ; i+n < len(t.Terms) && isHiragana(t.Terms[i+n].Word); n++ {
		if n > 0 && t.Terms[i+n-1].to != t.Terms[i+n].from {
			break
		}
	}
	return n
}

// isHiragana reports whether a form has nothing but kana, which forms have as hiragana.
func isHiragana(form string) bool {
	return form != "" && !strings.ContainsFunc(form, func(r rune) bool { return (r < 'ぁ' || r > 'ゖ') && r != 'ー' && r != voiced && r != halfVoiced })
}

// Marks of kana that forms have behind their letter.
const voiced, halfVoiced = 0x3099, 0x309a

// addHiragana adds the words that the dictionary finds in a term in katakana, written in hiragana.
func (t *Terms) addHiragana(a *text.Analyzer, query string, i int) {
	term := &t.Terms[i]
	if !isHiragana(term.Word) {
		return
	}
	katakana := false
	raw := strings.Map(func(r rune) rune {
		if 'ァ' <= r && r <= 'ヶ' {
			katakana = true
			return r - 'ァ' + 'ぁ'
		}
		return r
	}, norm.NFKC.String(query[term.from:term.to]))
	if !katakana {
		return
	}
	var words []string
	for _, other := range Read(a.Tokens(nil, raw, text.Locales{"jpn"}, true), raw, false).Terms {
		words = append(words, other.Word)
	}
	if len(words) > 1 && text.FacetSearchKey(raw, nil) == term.Word {
		t.addReadingOf(i, 1, words...)
	}
}

// fractions are the forms of the characters for fractions, such as ½.
var fractions = func() (forms []string) {
	for _, r := range "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒↉" {
		forms = append(forms, norm.NFKD.String(string(r)))
	}
	return forms
}()

const fractionSlash = "⁄"

// addFraction adds the character for a fraction of which term i is the numerator, alone and behind the number before it.
func (t *Terms) addFraction(query string, i int) {
	if i+1 == len(t.Terms) || t.Terms[i+1].IsPhrase() || query[t.Terms[i].to:t.Terms[i+1].from] != "/" {
		return
	}
	form := t.Terms[i].Word + fractionSlash + t.Terms[i+1].Word
	if !slices.Contains(fractions, form) {
		return
	}
	t.addReadingOf(i, 2, form)
	if i > 0 && isDigits(t.Terms[i-1].Word) && query[t.Terms[i-1].to:t.Terms[i].from] == " " {
		t.addReadingOf(i-1, 3, t.Terms[i-1].Word+form)
	}
}

// addNumbers adds the numbers of a term with a character for a fraction.
func (t *Terms) addNumbers(query string, i int) {
	term := &t.Terms[i]
	if !strings.Contains(term.Word, fractionSlash) {
		return
	}
	var b strings.Builder
	for _, r := range query[term.from:term.to] {
		if form := norm.NFKD.String(string(r)); slices.Contains(fractions, form) {
			b.WriteString(" " + form)
		} else {
			b.WriteString(form)
		}
	}
	words := strings.Fields(strings.ReplaceAll(b.String(), fractionSlash, " "))
	if len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool { return !isDigits(w) }) {
		t.addReadingOf(i, 1, words...)
	}
}

// isDigits reports whether a word is digits.
func isDigits(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return r < '0' || r > '9' })
}
