package query

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/text"
)

// describe prints terms: word@position, * for a prefix, "a b"@start-end for a phrase, - before negatives, and _ before stop words that
// count as words.
func describe(t *Terms) string {
	var out []string
	entry := func(w string) string {
		if text.IsStopEntry(w) {
			return "_" + text.FormOf(w)
		}
		return w
	}
	phrase := func(words []string) string {
		s := make([]string, len(words))
		for i, w := range words {
			s[i] = entry(w)
		}
		return `"` + strings.Join(s, " ") + `"`
	}
	for _, x := range t.Terms {
		if x.Stop {
			x.Word = text.StopEntry(x.Word)
		}
		switch {
		case x.IsPhrase():
			out = append(out, fmt.Sprintf("%s@%d-%d", phrase(x.Phrase), x.Start, x.End))
		case x.Prefix:
			out = append(out, fmt.Sprintf("%s*@%d", entry(x.Word), x.Start))
		default:
			out = append(out, fmt.Sprintf("%s@%d", entry(x.Word), x.Start))
		}
	}
	for _, w := range t.NegativeWords {
		out = append(out, "-"+entry(w))
	}
	for _, p := range t.NegativePhrases {
		out = append(out, "-"+phrase(p))
	}
	return strings.Join(out, " ")
}

func TestRead(t *testing.T) {
	a := text.New(text.Config{StopWords: []string{"of", "the"}})
	for _, c := range []struct{ query, want string }{
		{"", ""}, {"-", ""}, {`"`, ""}, {`""`, ""}, {"  ", ""},
		{"red", "red*@0"}, {"red ", "red@0"}, {"red.", "red@0"}, {"'red'", "red@0"}, {"RED car", "red@0 car*@1"},
		{"apple -red", "apple@0 -red"}, {"apple --red", "apple@0 red*@1"}, {"apple - red", "apple@0 red*@1"},
		{"apple- red", "apple@0 red*@1"}, {"apple(-red)", "apple@0 red@1"}, {"-apple-red", "red*@1 -apple"},
		{`apple -"red apple"`, `apple@0 -"red apple"`}, {"-red -green", "-red -green"},
		{`"red apple`, `"red apple"@0-1`}, {`"" apple`, "apple*@0"}, {`apple ""`, "apple@0"},
		{`"state, art"`, `"state"@0-0 "art"@8-8`}, {`-"a, b" c`, `c*@9 -"a" -"b"`},
		{", , foo", "foo*@14"}, {"a, b", "a@0 b*@8"}, {"x; -apple", "x@0 -apple"}, {"x,-apple", "x@0 apple*@1"},
		{"大学 -北京大学", `大学@0 -"北京 大学"`}, {"-北京大学 大学", "大学*@2 -\"北京 大学\""}, {"-北京", "-北京"}, {"a -the中", `a@0 -"_the 中"`},
		{"new-york", "new@0 york*@1"}, {"-re-entry door", "entry@1 door*@2 -re"},
		{"the cat", "cat*@1"}, {"cat the", "cat@0 the*@1"}, {"cat the ", "cat@0"}, {"The cat", "cat*@1"},
		{"the", "_the*@0"}, {"the ", "_the@0"}, {"of the", "_of@0 _the*@1"}, {"the -cat", "_the@0 -cat"}, {"cat -the", "cat@0 -_the"}, {"-the", "-_the"},
		{`"state of art"`, `"state _of art"@0-2`}, {`"the state of"`, `"_the state _of"@0-2`}, {`"of the" x`, `"_of _the"@0-1 x*@2`},
		{`the "of"`, `"_of"@1-1`}, {`cat -"of the"`, `cat@0 -"_of _the"`}, {"the of the of the of the of the of the of", "_the@0 _of@1 _the@2 _of@3 _the@4 _of@5 _the@6 _of@7 _the@8 _of@9"},
		{"“red apple”", "red@0 apple@1"}, {"a\u00a0-b", "a@0 b*@1"}, {"a\u3000-b", "a@0 -b"}, {"－red", "-red"}, {"＂red apple＂", `"red apple"@0-1`},
		{"a b c d e f g h i j -k", "a@0 b@1 c@2 d@3 e@4 f@5 g@6 h@7 i@8 j@9"},
		{"-k a b c d e f g h i j", "a@1 b@2 c@3 d@4 e@5 f@6 g@7 h@8 i@9 j*@10 -k"},
		{`a b c d e f g h i j "k l"`, "a@0 b@1 c@2 d@3 e@4 f@5 g@6 h@7 i@8 j@9"},
		{`"a b" c d e f g h i j k`, `"a b"@0-1 c@2 d@3 e@4 f@5 g@6 h@7 i@8 j@9 k*@10`},
	} {
		if got := describe(Read(a.Tokens(nil, c.query, nil, true), c.query, true)); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
	if got := describe(Read(a.Tokens(nil, "red", nil, true), "red", false)); got != "red@0" {
		t.Errorf("without prefixes: %s", got)
	}
}

func TestReadable(t *testing.T) {
	long := strings.Repeat("é", maxBytes)
	for q, want := range map[string]int{"": 0, "red": 3, long[:maxBytes]: maxBytes, long: maxBytes, "x" + long: maxBytes - 1} {
		if got := Readable(q); len(got) != want || !strings.HasPrefix(q, got) {
			t.Errorf("got %d bytes of %d, want %d", len(got), len(q), want)
		}
	}
}

func TestReadStopsAfterAThousandTokens(t *testing.T) {
	a := text.New(text.Config{})
	q := strings.Repeat("- ", 495) + "seen -not " + strings.Repeat("- ", 3) + "unseen"
	if got := describe(Read(a.Tokens(nil, q, nil, true), q, true)); got != "seen@0 -not" {
		t.Errorf("read %s", got)
	}
}
