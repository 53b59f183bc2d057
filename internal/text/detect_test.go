package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestProfiles(t *testing.T) {
	if n := len(profiles()); n != 36 {
		t.Errorf("%d profiles", n)
	}
	for _, p := range profiles() {
		if _, ok := Locale(p.code); !ok {
			t.Errorf("%s is not the language of a locale", p.code)
		}
		if len(p.trigrams) != farRank {
			t.Errorf("%s has %d trigrams", p.code, len(p.trigrams))
		}
		if letters, n := countLetters([]byte(p.letters)); n != len(letters) {
			t.Errorf("%s has a letter twice or in upper case", p.code)
		}
	}
}

// slowRanks ranks the trigrams of a text by the definition.
func slowRanks(text string) []string {
	padded := []rune{' '}
	for _, r := range strings.ToLower(text) {
		if isStop(r) {
			r = ' '
		}
		padded = append(padded, r)
	}
	padded = append(padded, ' ')
	counts := map[string]int{}
	for i := 0; i+3 <= len(padded); i++ {
		w := padded[i : i+3]
		if !(w[1] == ' ' && (w[0] == ' ' || w[2] == ' ')) {
			counts[string(w)]++
		}
	}
	var all []string
	for w := range counts {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return slices.Compare([]rune(b), []rune(a))
	})
	return all[:min(len(all), 600)]
}

func TestRankTrigrams(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	letters := []rune("aAbcé é ßÜ.1-  ñŻ𠮷ي")
	for range 300 {
		var b strings.Builder
		for range rng.IntN(1500) {
			b.WriteRune(letters[rng.IntN(len(letters))])
		}
		text := b.String()
		want := slowRanks(text)
		got := rankTrigrams([]byte(text))
		if len(got) != len(want) {
			t.Fatalf("%q: %d trigrams, want %d", text, len(got), len(want))
		}
		for rank, w := range want {
			key := trigram(0)
			for _, r := range w {
				key = key.then(r)
			}
			if at, ok := got[key]; !ok || at != rank {
				t.Fatalf("%q: %q has rank %d, want %d", text, w, at, rank)
			}
		}
	}
	if ranks := rankTrigrams(nil); len(ranks) != 0 {
		t.Errorf("the empty text has %d trigrams", len(ranks))
	}
}
