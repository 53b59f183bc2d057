package text

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// slowMatch returns the length of the longest entry that s starts with, by comparing the keys of all beginnings of s.
func slowMatch(dictionary []string, separators *runeSet, s []byte) (longest int) {
	for _, e := range dictionary {
		key := appendStopKey(nil, []byte(e))
		end := 0
		for i, r := range string(s) {
			if isDropped(r) && separators.has(r) {
				break
			}
			_, n := utf8.DecodeRune(s[i:])
			if bytes.Equal(appendStopKey(nil, s[:i+n]), key) {
				end = i + n
			}
		}
		if end > 0 && !joins(s[end:]) && len(key) > 0 {
			longest = max(longest, end)
		}
	}
	return longest
}

// respelt writes a text in another way that has the same key.
func respelt(rng *rand.Rand, s string) string {
	switch rng.IntN(5) {
	case 0:
		s = norm.NFD.String(s)
	case 1:
		s = norm.NFC.String(s)
	case 2:
		s = strings.ToUpper(s)
	case 3:
		s = strings.NewReplacer("ケ", "ヶ", "台", "臺", "ጸ", "ፀ", "ஸ", "ஶ", "แ", "เเ", "น้ำ", "นํ้า", "ß", "ss", "7", "٧", "'", "’").Replace(s)
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
		if rng.IntN(8) == 0 {
			b.WriteString([]string{"\u00ad", "\u200e", "\u2060"}[rng.IntN(3)])
		}
	}
	return b.String()
}

// TestEntriesMatchTheirKeys compares matches of entries with all beginnings of random texts.
func TestEntriesMatchTheirKeys(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	parts := []string{"a", "A", "é", "É", "e", "\u0301", "\u0323", "ê", "ệ", "ß", "ss", "İ", "i", "ı", "Σ", "ς", "關", "关", "ヶ", "ケ", "が", "ｶﾞ", "か", "\u3099", "가", "각", "\u1100\u1161", "\u11a8",
		"เเ", "แ", "น้ำ", "\u0e4d\u0e49า", "أ", "ا", "مِن", "ش\u05c1", "й", "и", "\u0306", "ज़", "ज", "\u093c", "ൺ", ".", "．", " ", "\u00a0", "7", "٧", "’", "'", "\u00ad", "\u200e", "\x00", "\x01", "ﬁ", "fi", "x", "\xff", "𝔘", "u"}
	text := func(most int) string {
		var b strings.Builder
		for range rng.IntN(most + 1) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		return b.String()
	}
	found := 0
	for range 20_000 {
		var dictionary []string
		for range 1 + rng.IntN(4) {
			dictionary = append(dictionary, text(4))
		}
		p := newPatterns(Config{Dictionary: dictionary})
		s := []byte(respelt(rng, dictionary[rng.IntN(len(dictionary))]) + text(4))
		want := slowMatch(dictionary, p.single, s)
		got := 0
		if r, n := utf8.DecodeRune(s); n > 0 && p.entries.begins.has(r) {
			got, _ = p.entries.match(s)
		}
		if bytes.Contains(appendBase(nil, s), []byte("เเเ")) {
			continue // which of them are one letter depends on where the text begins
		}
		if r := firstRune(s); isDroppedFirst(s) || unicode.Is(unicode.Mn, r) {
			continue // the walk through a text comes to the next character; no entry begins with a mark that others move before
		}
		if got != want {
			t.Fatalf("%q in %q: %d bytes, want %d", dictionary, s, got, want)
		}
		if got > 0 {
			found++
			if p.firsts.has(firstRune(s)); !p.firsts.has(firstRune(s)) || p.class[s[0]] == classWord || p.class[s[0]] == classControl {
				t.Fatalf("%q in %q: matches do not begin here", dictionary, s)
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d matches", found)
	}
}

func firstRune(s []byte) rune {
	r, _ := utf8.DecodeRune(s)
	return r
}

// isDroppedFirst reports whether the first character adds nothing to a key.
func isDroppedFirst(s []byte) bool {
	_, n := utf8.DecodeRune(s)
	return n == 0 || len(appendStopKey(nil, s[:n])) == 0
}

// TestTextsAreCutLikeTheDictionary writes entries and texts in several ways, whole and in parts. The forms are the same.
func TestTextsAreCutLikeTheDictionary(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, s := range []string{"café.au", "J. K.", "関ケ原の戦い", "台湾大学", "น้ำ/แปล", "서울.대", "s.Straße", "ガ.ラス", "O'R.", "ệ-ê", "g/7", "ΑΣ/ΒΣ", "й.й"} {
		want := ""
		for round := range 200 {
			a := New(Config{Dictionary: []string{respelt(rng, s)}})
			text := respelt(rng, s)
			if s == "g/7" { // digits of Arabic are another script, which ends the entry
				text = strings.ReplaceAll(text, "٧", "7")
			}
			text = "(" + text + ")"
			var forms []string
			for _, token := range a.Tokens(nil, text, nil, true) {
				forms = append(forms, token.Form)
			}
			got := fmt.Sprintf("%q", forms)
			if round == 0 {
				if want = got; len(forms) != 3 {
					t.Fatalf("%q: %s", text, got)
				}
			}
			if got != want {
				t.Fatalf("%q: %s, want %s", text, got, want)
			}
			var inParts []Token
			var c Cursor
			for known := 0; known < len(text) || !c.AtEnd([]byte(text)); {
				inParts = a.More(inParts, []byte(text[:known]), nil, &c, 1+rng.IntN(3), known < len(text))
				for n := rng.IntN(5); known < len(text) && (n > 0 || !utf8.RuneStart(text[known])); n-- {
					known++
				}
			}
			forms = forms[:0]
			for _, token := range inParts {
				forms = append(forms, token.Form)
			}
			if got := fmt.Sprintf("%q", forms); got != want {
				t.Fatalf("%q in parts: %s, want %s", text, got, want)
			}
		}
	}
}

// TestStopWordsInOtherSpellings: letters that are typed for each other make no other stop word, and accents do.
func TestStopWordsInOtherSpellings(t *testing.T) {
	for _, tt := range []struct {
		entry, text string
		stop        bool
	}{
		{"été", "e\u0301te\u0301", true}, {"été", "ÉTÉ", true}, {"été", "ete", false}, {"the", "t\u00adhe", true}, {"the", "ＴＨＥ", true}, {"แต่", "เเต่", true}, {"ค่ำ", "คํ่า", true},
		{"ケ", "ヶ", true}, {"خانۀ", "خانه", true}, {"خانە", "خانه", false}, {"ፀሐይ", "ጸሀይ", true}, {"ஶ்ரீ", "ஸ்ரீ", true}, {"這", "这", true}, {"τούς", "ΤΟΎΣ", true}, {"τους", "ΤΟΎΣ", false}, {"2024", "٢٠٢٤", true}, {"क्\u200dष", "क्ष", true}, {"için", "İÇİN", true}, {"ısrar", "ISRAR", true},
		{"daß", "DASS", true}, {"של", "שֶׁל", true}, {"من", "مِن", true}, {"إلى", "الى", true}, {"هذه", "هـذه", true}, {"ệ", "ê\u0323", true}, {"ൺ", "ണ\u0d4d", true}, {"что", "что\u0301", true}, {"й", "и", false},
	} {
		for _, pair := range [][2]string{{tt.entry, tt.text}, {tt.text, tt.entry}} {
			tokens := New(Config{StopWords: pair[:1]}).Tokens(nil, pair[1], nil, true)
			if stop := len(tokens) == 1 && tokens[0].Kind == StopWord; stop != tt.stop {
				t.Errorf("%q stops %q: %v", pair[0], pair[1], stop)
			}
		}
	}
}

// TestNonSeparatorsInOtherWidths: a separator that is none any more is none in full width.
func TestNonSeparatorsInOtherWidths(t *testing.T) {
	for _, tt := range []struct{ entry, text, form string }{
		{"#", "Ｃ＃", "c#"}, {"＃", "C#", "c#"}, {"'", "l’a", "l'a"}, {"’", "l'a", "l'a"}, {"・", "･", "・"}, {".", "３．５", "3.5"},
	} {
		tokens := New(Config{NonSeparators: []string{tt.entry}}).Tokens(nil, tt.text, nil, true)
		if len(tokens) != 1 || tokens[0].Form != tt.form || tokens[0].Kind != Word {
			t.Errorf("%q, %q: %v", tt.entry, tt.text, tokens)
		}
	}
}
