package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestNasals checks that nasals are folded to anusvaras only before stops of their class.
func TestNasals(t *testing.T) {
	for _, test := range []struct{ a, b string }{
		{"हिन्दी", "हिंदी"}, {"सम्बन्ध", "संबंध"}, {"अङ्क", "अंक"}, {"पण्डित", "पंडित"}, {"चञ्चल", "चंचल"}, {"आरम्भ", "आरंभ"}, {"शान्\u200dति", "शांति"}, {"कम्प्यूटर", "कंप्यूटर"},
		{"હિન્દી", "હિંદી"}, {"મન્દિર", "મંદિર"}, {"హిన్దీ", "హిందీ"}, {"ಹಿನ್ದಿ", "ಹಿಂದಿ"}, {"সঙ্গীত", "সংগীত"}, {"অঙ্ক", "অংক"},
	} {
		if a, b := Fold(test.a), Fold(test.b); a != b || b != test.b {
			t.Errorf("%s becomes %q, %s becomes %q", test.a, a, test.b, b)
		}
	}
	for _, s := range []string{"जन्म", "उन्हें", "अन्न", "सम्राट", "वाङ्मय", "न्द", "आनन", "हिन्", "আনন্দ", "সম্পদ", "നന്ദി"} {
		want := s
		if s == "न्द" {
			want = "ंद"
		}
		if got := Fold(s); got != want {
			t.Errorf("%s becomes %q, want %q", s, got, want)
		}
	}
}

// TestFoldNasals compares random forms and their ends with a replacement of all pairs of a nasal and a stop.
func TestFoldNasals(t *testing.T) {
	var pairs []string
	for nasal := rune(0x919); nasal <= 0x92e; nasal++ {
		if strings.ContainsRune("ङञणनम", nasal) {
			for stop := nasal - 4; stop < nasal; stop++ {
				pairs = append(pairs, string([]rune{nasal, 0x94d, stop}), string([]rune{0x902, stop}))
			}
		}
	}
	replacer := strings.NewReplacer(pairs...)
	rng := rand.New(rand.NewPCG(1, 2))
	letters := []rune("aकगङचञटणतदधनपबभमयही््ंé")
	changed := 0
	for range 20_000 {
		var word []rune
		for range rng.IntN(6) {
			if word = append(word, letters[rng.IntN(len(letters))]); rng.IntN(2) == 0 {
				word = append(word, 0x94d)
			}
		}
		var before, ends []int
		raw := string(word)
		for _, r := range raw {
			before = append(before, utf8.RuneLen(r))
		}
		form := []byte(raw)
		for i, n := 0, 0; i < len(before); i++ {
			n += before[i]
			ends = append(ends, n)
		}
		want := replacer.Replace(raw)
		got := string(foldNasals(form, devanagari, ends))
		if got != want {
			t.Fatalf("%q becomes %q, want %q", raw, got, want)
		}
		if want == raw {
			continue
		}
		changed++
		if !slices.IsSorted(ends) || ends[len(ends)-1] != len(want) {
			t.Fatalf("%q: ends %v of %q", raw, ends, want)
		}
		for i, end := range ends {
			if end > 0 && end < len(want) && !utf8.RuneStart(want[end]) {
				t.Fatalf("%q: end %d of character %d in %q", raw, end, i, want)
			}
		}
	}
	if changed < 200 {
		t.Errorf("%d forms changed", changed)
	}
}
