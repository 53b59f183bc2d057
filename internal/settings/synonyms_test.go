package settings

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"
)

// TestSynonymsAreCanonical checks that synonyms are stored as shown: in one form, with ascending keys and without spaces.
func TestSynonymsAreCanonical(t *testing.T) {
	for sent, want := range map[string]Synonyms{
		`{}`:                         ``,
		`{"b":["c"],"a":[]}`:         `{"a":[],"b":["c"]}`,
		`{"a" : [ "b" , "\u0063" ]}`: `{"a":["b","c"]}`,
		`{"a":["b"],"a":["c"]}`:      `{"a":["c"]}`,
		`{"<&>":["é\n\""]}`:          `{"<&>":["é\n\""]}`,
	} {
		u, err := ParseUpdate([]byte(`{"synonyms":`+sent+`}`), Features{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Default().Apply(u)
		if err != nil {
			t.Fatal(err)
		}
		if s.Synonyms != want {
			t.Errorf("%s is %s, want %s", sent, s.Synonyms, want)
		}
		shown, err := s.One("synonyms")
		if err != nil || string(shown) != string(want) && !(want == "" && string(shown) == "{}") {
			t.Errorf("%s is shown as %s (%v)", sent, shown, err)
		}
		again, err := Decode(s.Encode())
		if err != nil || again.Synonyms != want {
			t.Errorf("%s is read as %s (%v)", sent, again.Synonyms, err)
		}
		if rest := s.WithSynonyms(""); string(rest.Encode()) != string(Default().Encode()) || s.Synonyms != want {
			t.Errorf("without synonyms the settings are %s", rest.Encode())
		}
		var m map[string][]string
		if err := json.Unmarshal([]byte(sent), &m); err != nil {
			t.Fatal(err)
		}
		if got := s.Synonyms.Map(); !maps.EqualFunc(got, m, slices.Equal) {
			t.Errorf("%s is decoded as %q", sent, got)
		}
	}
}

// FuzzParseSynonyms checks that ParseSynonyms accepts what Map can read, and nothing else.
func FuzzParseSynonyms(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"a":["b","c"],"d":[]}`, `{"a":"b"}`, `{"a":{"b":["c"]}}`, `["a"]`, `"a"`, `{"a":[["b"]]}`, `{"a":[1]}`, `{"a":["b\"]:"]}`, `{"a":null}`, `{"a": ["b"]}`, `{"a":["b":"c"]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseSynonyms(b)
		var want map[string][]string
		var values map[string][]any
		is := len(b) == 0 || utf8.Valid(b) && json.Unmarshal(b, &want) == nil && b[0] == '{' && json.Unmarshal(b, &values) == nil && hasTexts(values) && !slices.ContainsFunc(b, func(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' })
		if is && err != nil {
			t.Errorf("%q is refused", b)
		}
		if err != nil {
			return
		}
		m := got.Map()
		if is && !reflect.DeepEqual(m, want) {
			t.Errorf("%q is read as %q, want %q", b, m, want)
		}
	})
}

func hasTexts(values map[string][]any) bool {
	for _, list := range values {
		for _, v := range list {
			if _, text := v.(string); !text {
				return false
			}
		}
		if list == nil {
			return false
		}
	}
	return true
}
