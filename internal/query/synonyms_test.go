package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/settings"
	"svc/internal/text"
)

// TestSynonymsAreReadByLocales checks that keys and values of synonyms are also tokenized by the locales of fields and queries.
func TestSynonymsAreReadByLocales(t *testing.T) {
	const synonyms = `"synonyms":{"pkw":["Personenkraftwagen"],"tokyo":["東京"],"lawyer":["弁護士"],"臺北":["taipei"],"the cat":["who is the cat"],"Hausboot":["ship"],"S.W.A.T.":["police"],"a b c d":["alphabet"],"A.B.C.D.E.F.G.":["letters"]}`
	for _, test := range []struct{ locales, key, values string }{
		{``, "pkw", "personenkraftwagen"}, {`["deu"]`, "pkw", "personen kraft wagen|personenkraftwagen"}, {`["deu"],["jpn"]`, "pkw", "personen kraft wagen|personenkraftwagen"},
		{``, "tokyo", "东京"}, {``, "lawyer", "弁 护士"}, {`["jpn"]`, "lawyer", "弁 护士|弁护 士"}, {`["deu"],["jpn"]`, "lawyer", "弁 护士|弁护 士|弁护士"},
		{``, "台北", "taipei"}, {``, "台 北", ""}, {`["jpn"]`, "台北", "taipei"},
		{``, "cat", "_who _is _the cat"}, {``, "the cat", ""}, {`["eng"]`, "cat", "_who _is _the cat"},
		{`["deu"]`, "haus boot", "ship"}, {`["deu"]`, "hausboot", "ship"}, {`[]`, "hausboot", "ship"},
		{``, "swat", "police"}, {``, "abcd", ""}, {``, "abcdefg", ""},
	} {
		update := `{` + synonyms
		if test.locales != "" {
			update += `,"localizedAttributes":[`
			for i, l := range strings.SplitAfter(test.locales, "]") {
				if l = strings.TrimPrefix(l, ","); l != "" {
					update += fmt.Sprintf(`%.*s{"attributePatterns":["a%d"],"locales":%s}`, min(i, 1), ",", i, l)
				}
			}
			update += `]`
		}
		u, err := settings.ParseUpdate([]byte(update+`}`), settings.Features{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := settings.Default().Apply(u)
		if err != nil {
			t.Fatal(err)
		}
		all := readSynonyms(s, text.New(text.Config{StopWords: []string{"the", "who", "is"}}))
		var values []string
		for _, words := range all[strings.ReplaceAll(test.key, " ", "\x00")] {
			values = append(values, strings.ReplaceAll(strings.Join(words, " "), "\x00", "_"))
		}
		slices.Sort(values)
		if got := strings.Join(values, "|"); got != test.values {
			t.Errorf("%s with %s: %q, want %q", test.key, test.locales, got, test.values)
		}
	}
}

// TestSynonymStamp fixes stamps of stored synonym tables. A change of the words of equal settings, other than by the analysis, must change
// synonymRevision.
func TestSynonymStamp(t *testing.T) {
	stamp := func(update string, stopWords ...string) uint64 {
		u, err := settings.ParseUpdate([]byte(update), settings.Features{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := settings.Default().Apply(u)
		if err != nil {
			t.Fatal(err)
		}
		return SynonymStamp(s, text.New(text.Config{StopWords: stopWords}))
	}
	const plain = `{"synonyms":{"a":["b"]}}`
	if stamp(plain) != stamp(`{"rankingRules":["words"],"searchableAttributes":["title"]}`) {
		t.Error("the stamp depends on settings that do not affect synonyms")
	}
	seen := map[uint64]bool{}
	for _, s := range []uint64{stamp(plain), stamp(plain, "the"), stamp(plain, "a"), stamp(`{"localizedAttributes":[{"attributePatterns":["*"],"locales":["deu"]}]}`),
		stamp(`{"localizedAttributes":[{"attributePatterns":["*"],"locales":["jpn"]}]}`),
		stamp(`{"localizedAttributes":[{"attributePatterns":["a"],"locales":["jpn"]},{"attributePatterns":["*"],"locales":["deu"]}]}`)} {
		if seen[s] {
			t.Errorf("different settings have the stamp %x", s)
		}
		seen[s] = true
	}
	if synonymRevision != 3 {
		t.Fatal("the following lines are for revision 3: update them")
	}
	ix := emptyIndex(t, `{"synonyms":{"the big apple":["New York","NYC!"],"a b c d":["too long"],"":["nothing"],"nyc":["New York"],"NYC":["big apple"],"S.W.A.T.":["police"]}}`)
	for key, want := range map[string]string{"the\x00big\x00apple": "[[new york] [nyc]]", "a\x00b\x00c\x00d": "[]", "": "[]", "nyc": "[[big apple] [new york]]", "swat": "[[police]]"} {
		if got := fmt.Sprint(ix.Synonyms.Lookup(key, 10)); got != want {
			t.Errorf("%q has the synonyms %s, want %s", key, got, want)
		}
	}
}
