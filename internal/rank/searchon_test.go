package rank

import (
	"slices"
	"strings"
	"testing"

	"svc/internal/query"
)

// TestPhrasesMatchInSearchedFields checks that with attributesToSearchOn phrases, synonyms and joined or split words match only in the
// searched attributes.
func TestPhrasesMatchInSearchedFields(t *testing.T) {
	for _, precision := range []string{"byWord", "byAttribute"} {
		for _, spare := range []int{0, 80} { // larger segments cache the rows of phrases
			docs := []*document{
				doc(1, "t", "captain and x x marvel", "d", "captain marvel"),
				doc(2, "t", "captain marvel", "d", "hero"),
				doc(3, "t", "marvel x x captain", "d", "captain marvel"),
				doc(4, "t", "captain", "d", "captain marvel"),
				doc(5, "t", "mar vel", "d", "marv el"),
				doc(6, "t", "nothing", "d", "marv el"),
			}
			for i := range spare {
				docs = append(docs, doc(100+i, "t", "other"))
			}
			ix := build(t, parseSettings(t, `{"searchableAttributes":["t","d"],"synonyms":{"cm":["captain marvel"],"big boss":["captain marvel"]},
				"proximityPrecision":"`+precision+`"}`), [][]*document{docs}, nil)
			for _, c := range []struct{ query, on, byWord, byAttribute string }{
				{`"captain marvel"`, "t", "2", "2 1 3"},
				{`"captain marvel"`, "d", "1 3 4", "1 3 4"},
				{`"captain marvel"`, "*", "2 1 3 4", "1 2 3 4"},
				{`captain -"captain marvel"`, "t", "1 4 3", "4"},
				{`captain -"captain marvel"`, "d", "", ""},
				{"cm", "t", "2", "1 2 3"},
				{"cm", "d", "1 3 4", "1 3 4"},
				{"big boss", "t", "2", "1 2 3"},
				{"captainmarvel", "t", "2", "1 2 3"},
				{"captainmarvel", "d", "1 3 4", "1 3 4"},
				// Most documents have marv and el in the other attribute.
				{"marvel ", "t", "2 1 3 5", "2 1 3 5"},
				{"marvel ", "d", "1 3 4 5 6", "1 3 4 5 6"},
			} {
				want := c.byWord
				if precision == "byAttribute" {
					want = c.byAttribute
				}
				for range 2 {
					if got := found(mustSearch(t, ix, Request{Query: c.query, SearchOn: []string{c.on}})); !sameIDs(got, want) {
						t.Errorf("%s, %d spare: %s on %s: %s, want %s", precision, spare, c.query, c.on, got, want)
					}
				}
			}
		}
	}
}

// sameIDs compares two lists, ignoring their order.
func sameIDs(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// TestRulesSeePhrasesInSearchedFields checks that rules use phrases, synonyms and split words only in the searched attributes.
func TestRulesSeePhrasesInSearchedFields(t *testing.T) {
	for _, c := range []struct{ rules, query, want string }{
		{`["words","wordPosition"]`, "red", "1 0"},
		{`["words","wordPosition"]`, `"red"`, "1 0"},
		{`["words","wordPosition"]`, "sunflower", "3 2 4"},
		{`["words","wordPosition"]`, `"sun flower"`, "3 2 4"},
		{`["words","proximity"]`, "red car", "1 0"},
		{`["words","exactness"]`, `"sun flower"`, "2 3 4"}, // no title starts with it
	} {
		ix := build(t, parseSettings(t, `{"searchableAttributes":["title","body"],"synonyms":{"red":["blue"]},"rankingRules":`+c.rules+`}`), [][]*document{{
			doc(0, "title", "x x x x x x x x red x x x car", "body", "blue car, red"),
			doc(1, "title", "x x x x x red x car"),
			doc(2, "title", "x x x x x x x x sun flower", "body", "sun flower"),
			doc(3, "title", "x x x x x sun flower"),
			doc(4, "title", "x x x x x x x x sun flower", "body", "sun flower"),
		}}, nil)
		if got := found(mustSearch(t, ix, Request{Query: c.query, SearchOn: []string{"title"}, Strategy: query.All})); got != c.want {
			t.Errorf("%s: %s: %s, want %s", c.rules, c.query, got, c.want)
		}
	}
}
