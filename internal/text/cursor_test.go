package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPartsAreWholeTexts compares what a text is cut into part by part with what Tokens makes of it.
func TestPartsAreWholeTexts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	words := []string{"Straße", "don’t", "l'été", "東京都に行く", "白い猫", "한국어를", "Ελλάς", "мир", "السلام", "3.14", "a_b", "\x01x", "\xff", "x\u0301", "e. g", "C++", "ไทย"}
	for range 300 {
		var b strings.Builder
		for range r.IntN(60) {
			b.WriteString(words[r.IntN(len(words))])
			b.WriteString([]string{" ", "", ". ", ", ", "\n", "—", " - "}[r.IntN(7)])
		}
		s := b.String()
		a := New(Config{Dictionary: []string{"e. g"}[:r.IntN(2)], Separators: []string{"_", "été"}[:r.IntN(3)]})
		locales := []Locales{nil, {"deu"}, {"eng", "swe"}, {"jpn"}}[r.IntN(4)]
		want := a.Tokens(nil, s, locales, false)
		var got []Token
		known := len(s) // bytes, of whole characters
		if r.IntN(2) == 0 {
			known = 0
		}
		for c := (Cursor{}); known < len(s) || !c.AtEnd([]byte(s)); {
			n := 1 + r.IntN(20)
			before := len(got)
			got = a.More(got, []byte(s[:known]), locales, &c, n, known < len(s))
			if len(got)-before == n || c.AtEnd([]byte(s)) {
				continue
			}
			if known == len(s) && len(got)-before < n {
				t.Fatalf("%q: %d tokens of %d, and more are left", s, len(got)-before, n)
			}
			for range r.IntN(20) {
				_, size := utf8.DecodeRuneInString(s[known:])
				known += size
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q:\n%v in parts\n%v", s, got, want)
		}
	}
}
