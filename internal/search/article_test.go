package search

import (
	"maps"
	"strings"
	"testing"
)

// TestLettersOfPersianKeepTheArticle searches Arabic words with an article and Persian words with the same beginning. In texts, their
// letters tell the languages apart. A query whose letters do not tell finds both. Matches are highlighted as whole words.
func TestLettersOfPersianKeepTheArticle(t *testing.T) {
	l := newLibrary(t)
	l.put("i", "", `{"id": 1, "t": "الکل"}`, `{"id": 2, "t": "الكل"}`, `{"id": 3, "t": "کل"}`, `{"id": 4, "t": "قیمت الکترونیک"}`)
	for _, test := range []struct {
		query string
		want  map[int]string // highlighted text by document
	}{
		{"کل ", map[int]string{2: "الكل", 3: "کل"}}, // Persian kaf
		{"كل ", map[int]string{2: "الكل", 3: "کل"}}, // Arabic kaf
		{"کل", map[int]string{2: "الكل", 3: "کل"}},  // prefix of a word
		{"الکل ", map[int]string{1: "الکل", 2: "الكل"}},
		{"الكل ", map[int]string{1: "الکل", 2: "الكل", 3: "کل"}},
		{`"الكل"`, map[int]string{1: "الکل", 2: "الكل", 3: "کل"}},
		{"کترونیک ", map[int]string{}},
		{"الکترونیک ", map[int]string{4: "الکترونیک"}},
		{"قیمت -کل", map[int]string{4: "قیمت"}},
	} {
		a := l.answer("i", Request{Query: test.query, Limit: 9, AttributesToHighlight: []string{"*"}, HighlightPreTag: "<", HighlightPostTag: ">"})
		got := map[int]string{}
		for _, h := range a.Hits {
			text, _ := h.Formatted["t"].(string)
			_, marked, _ := strings.Cut(text, "<")
			got[h.ID], _, _ = strings.Cut(marked, ">")
		}
		if !maps.Equal(got, test.want) {
			t.Errorf("%s highlights %v, want %v", test.query, got, test.want)
		}
	}
}
