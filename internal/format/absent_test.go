package format

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/query"
	"svc/internal/text"
)

// TestAbsentMatches compares the matches of short, mostly ASCII texts with those of all tokens. A text reported without matches must have
// none, and the shortcut must recognise many such texts.
func TestAbsentMatches(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	word := func(letters string) string {
		b := make([]byte, 1+rng.IntN(4))
		for i := range b {
			b[i] = letters[rng.IntN(len(letters))]
		}
		return string(b)
	}
	configs := []text.Config{{}, {}, {}, {Separators: []string{"a"}}, {Separators: []string{"bc"}}, {NonSeparators: []string{" "}}, {NonSeparators: []string{"."}},
		{Dictionary: []string{"ab"}}}
	absent, lacking := 0, 0
	for range 20000 {
		analyzer := text.New(configs[rng.IntN(len(configs))])
		h := &query.Highlights{}
		form := func() string {
			var b strings.Builder
			asked := word("abcd9.AB")
			if rng.IntN(6) == 0 {
				asked = []string{"日", "baum", "garten"}[rng.IntN(3)]
			}
			for _, token := range analyzer.Tokens(nil, asked, nil, false) {
				b.WriteString(token.Form)
			}
			return b.String()
		}
		for range 1 + rng.IntN(2) {
			if rng.IntN(3) == 0 {
				h.Phrases = append(h.Phrases, query.Phrase{Words: []string{form(), form()}})
				continue
			}
			w := query.Words{Word: form(), Forms: map[string]struct{}{}, Chars: 1}
			w.Forms[w.Word] = struct{}{}
			if rng.IntN(3) == 0 {
				w.Prefixes = []string{w.Word}
			}
			h.Words = append(h.Words, w)
		}
		letters := "abcdAB9."
		if rng.IntN(4) == 0 {
			letters += "\x01\x7f_-"
		}
		var b strings.Builder
		for k := range rng.IntN(6) {
			if k > 0 || rng.IntN(4) == 0 {
				b.WriteString([]string{" ", " ", ". ", ", ", "\n", "é", "日"}[rng.IntN(5+2*rng.IntN(2))])
			}
			if rng.IntN(8) == 0 {
				b.WriteString([]string{"apfelbaum", "gartenbaum", "der", "und"}[rng.IntN(4)])
			} else {
				b.WriteString(word(letters))
			}
		}
		s := b.String()
		var locales text.Locales
		if n := rng.IntN(8); n < 3 {
			locales = []text.Locales{{"deu"}, {"eng"}, {"eng", "deu"}}[n]
		}
		find := newHighlighter(analyzer, h)
		want := matchesOfAll(find, s, analyzer.Tokens(nil, s, locales, false))
		if find.isAbsent([]byte(s), locales) {
			if absent++; len(want) > 0 {
				t.Fatalf("%q has %+v, %q with locales %v", s, h, s[want[0].start:want[0].end], locales)
			}
		}
		if len(want) == 0 {
			lacking++
		}
		f := &Formatter{scan: textScan{find: find}}
		var got []match
		if err := f.scan.each([]byte(s), locales, &f.cut.clock, func(m match) error { got = append(got, m); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, func(a, b match) bool { return a.start == b.start && a.end == b.end }) {
			t.Fatalf("%q with locales %v: %d matches of %+v, want %d", s, locales, len(got), h, len(want))
		}
	}
	if absent < lacking/4 {
		t.Errorf("%d texts have no matches, %d were recognised", lacking, absent)
	}
}
