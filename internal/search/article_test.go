package search

import (
	"maps"
	"strings"
	"testing"
)

// TestLettersOfPersianKeepTheArticle searches Arabic words with an article and Persian words that begin like one: letters tell them
// apart in texts. A query finds both if its letters do not tell, and what is found is marked as a whole.
func TestLettersOfPersianKeepTheArticle(t *testing.T) {
	l := newLibrary(t)
	l.put("i", "", `{"id": 1, "t": "الکل"}`, `{"id": 2, "t": "الكل"}`, `{"id": 3, "t": "کل"}`, `{"id": 4, "t": "قیمت الکترونیک"}`)
	for _, test := range []struct {
		query string
		want  map[int]string // by document, what is marked
	}{
		{"کل ", map[int]string{2: "الكل", 3: "کل"}}, // Persian kaf
		{"كل ", map[int]string{2: "الكل", 3: "کل"}}, // Arabic kaf
		{"کل", map[int]string{2: "الكل", 3: "کل"}},  // the beginning of a word
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
			t.Errorf("%s marks %v, want %v", test.query, got, test.want)
		}
	}
}
