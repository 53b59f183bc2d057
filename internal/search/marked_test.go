package search

import "testing"

// TestFoundWordsAreMarked checks that matches are highlighted even if words are separated only by invisible characters, or if a query
// types their letters differently.
func TestFoundWordsAreMarked(t *testing.T) {
	l := newLibrary(t)
	l.put("i", "", `{"id": 1, "t": "well \u200e known"}`, `{"id": 2, "t": "น\u0e4d\u0e49าตกสวย"}`)
	for _, test := range []struct{ query, want string }{
		{`"well known"`, "<well \u200e known>"}, {"wellknown", "<well \u200e known>"}, {"well", "<well> \u200e known"},
		{"น้ำตก", "<น\u0e4d\u0e49าตก>สวย"},
	} {
		a := l.answer("i", Request{Query: test.query, Limit: 9, AttributesToHighlight: []string{"*"}, HighlightPreTag: "<", HighlightPostTag: ">"})
		if len(a.Hits) != 1 || a.Hits[0].Formatted["t"] != test.want {
			t.Errorf("%q: %+v, want %q", test.query, a.Hits, test.want)
		}
	}
}
