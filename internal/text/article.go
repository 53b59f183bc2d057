package text

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// article is how a word stands with an article that is written with it. Such a word is indexed with and without it, so that what begins
// with it and what does not are found; its form is one of both.
type article struct {
	text string // "": the word has none
	kept bool   // the form has it, as it may belong to the word
}

// The articles of Arabic and Hebrew, folded, with how many letters a word has behind them at least.
const (
	arabicArticle, arabicRest = "ال", 2
	hebrewArticle, hebrewRest = "ה", 3
)

// articleOf returns the article of a word of a group by its folded form. Where letters of Persian or Urdu tell that the word is not
// Arabic, it is kept: الکل is no کل with an article.
func articleOf(form, raw []byte, g group) article {
	switch g.language {
	case ara:
		rest, ok := bytes.CutPrefix(form, []byte(arabicArticle))
		if !ok || utf8.RuneCount(trimSpace(rest)) < arabicRest || string(rest) == "له" || string(rest) == "لهم" {
			return article{} // الله has none
		}
		return article{arabicArticle, bytes.ContainsAny(raw, "پچژگکیےہھٹڈڑں")}
	case heb:
		if rest, ok := bytes.CutPrefix(form, []byte(hebrewArticle)); ok && utf8.RuneCount(trimSpace(rest)) >= hebrewRest {
			return article{hebrewArticle, false}
		}
	}
	return article{}
}

// mayHaveArticle reports whether words of a group are written with their article.
func (g group) mayHaveArticle() bool { return g.language == ara || g.language == heb }

// BeginsWithArticle reports whether a form, or what begins with it, may be one with an article.
func BeginsWithArticle(form string, prefix bool) bool {
	for _, a := range []string{arabicArticle, hebrewArticle} {
		if strings.HasPrefix(form, a) || prefix && strings.HasPrefix(a, form) {
			return true
		}
	}
	return false
}

// appendOther appends the other one of the forms of a word that has an article.
func (a article) appendOther(dst, form []byte) []byte {
	if a.kept {
		return append(dst, bytes.TrimPrefix(form, []byte(a.text))...)
	}
	return append(append(dst, a.text...), form...)
}

// whole returns the form with the article of a word whose form has none; "" for others.
func (a article) whole(form string) string {
	if a.text == "" || a.kept {
		return ""
	}
	return a.text + form
}

// appendForm appends the form of a piece: folded, and without its article where that is not kept. ends are those of appendFold.
func appendForm(dst, raw []byte, g group, ends *[]int) ([]byte, article) {
	start := len(dst)
	dst = appendFold(dst, raw, g, ends)
	if !g.mayHaveArticle() {
		return dst, article{}
	}
	a := articleOf(dst[start:], raw, g)
	if a.text == "" || a.kept {
		return dst, a
	}
	n := len(a.text)
	dst = append(dst[:start], dst[start+n:]...)
	if ends != nil {
		for i := range *ends {
			(*ends)[i] = max(0, (*ends)[i]-n)
		}
	}
	return dst, a
}
