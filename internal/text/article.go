package text

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// article is the article that a word is written with, "" for none. Such a word is indexed with and without it, so that words that begin
// with it and words that do not are found. Its form is the one without it.
type article string

// The articles of Arabic and Hebrew, normalised, with the minimum number of letters that follow in a word.
const (
	arabicArticle, arabicRest = "ال", 2
	hebrewArticle, hebrewRest = "ה", 3
)

// articleOf returns the article of a word of a group by its folded form. A word with letters of Persian or Urdu is not Arabic and has
// none: الکل is not کل with an article.
func articleOf(form, raw []byte, g group) article {
	switch g.language {
	case ara:
		rest, ok := bytes.CutPrefix(form, []byte(arabicArticle))
		if !ok || utf8.RuneCount(trimSpace(rest)) < arabicRest || string(rest) == "له" || string(rest) == "لهم" {
			return "" // الله has none
		}
		if !bytes.ContainsAny(raw, "پچژگکیےہھٹڈڑں") {
			return arabicArticle
		}
	case heb:
		if rest, ok := bytes.CutPrefix(form, []byte(hebrewArticle)); ok && utf8.RuneCount(trimSpace(rest)) >= hebrewRest {
			return hebrewArticle
		}
	}
	return ""
}

// mayHaveArticle reports whether words of a group are written with their article.
func (g group) mayHaveArticle() bool { return g.language == ara || g.language == heb }

// BeginsWithArticle reports whether a form, or a longer form that begins with it, may have an article.
func BeginsWithArticle(form string, prefix bool) bool {
	for _, a := range []string{arabicArticle, hebrewArticle} {
		if strings.HasPrefix(form, a) || prefix && strings.HasPrefix(a, form) {
			return true
		}
	}
	return false
}

// appendWhole appends the form with the article of a word that has one.
func (a article) appendWhole(dst, form []byte) []byte { return append(append(dst, a...), form...) }

// whole returns the form with the article, given the form of a word without it. It returns "" if the word has no article.
func (a article) whole(form string) string {
	if a == "" {
		return ""
	}
	return string(a) + form
}

// appendForm appends the form of a piece, folded and without its article. ends are those of appendFold.
func appendForm(dst, raw []byte, g group, ends *[]int) ([]byte, article) {
	start := len(dst)
	dst = appendFold(dst, raw, g, ends)
	if !g.mayHaveArticle() {
		return dst, ""
	}
	a := articleOf(dst[start:], raw, g)
	if a == "" {
		return dst, ""
	}
	n := len(a)
	dst = append(dst[:start], dst[start+n:]...)
	if ends != nil {
		for i := range *ends {
			(*ends)[i] = max(0, (*ends)[i]-n)
		}
	}
	return dst, a
}
