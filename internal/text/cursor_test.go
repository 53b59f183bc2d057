package text

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestTokensOfParts compares the tokens of a text that is read in parts with its Tokens.
func TestTokensOfParts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	words := []string{"Straße", "don’t", "l'été", "東京都に行く", "白い猫", "飛機場", "大学生", "한국어를", "Ελλάς", "мир", "السلام", "3.14", "a_b", "\x01x", "\xff", "x\u0301", "e. g", "C++", "ไทย", "มีประวัติศาสตร์", "서울대학교에서"}
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
		if !sameTokens(got, want) {
			t.Fatalf("%q:\n%v in parts\n%v", s, got, want)
		}
	}
}

// TestTokensTileTexts tokenizes texts with characters that join others, or are dropped, between words of several scripts. Tokens must tile
// the text, and an inner word must start before the token in which it ends.
func TestTokensTileTexts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	parts := []string{"大学生", "飞机场", "电影院", "二十二时", "中国人民大学", "學", "場", "豈", "\U0002f800", "か", "ー", "ヶ", "가", "ᄒ", "ᅡ", "ไเเ", "\u0e4dา", "서울대학교", "중학교", "대학교", "มีประวัติ", "ศาสตร์", "สถานีรถไฟ", "ភាសាខ្មែរ", "សាលារៀន", "८", "ज\u093c",
		"ൺ", "ʼ", "a", "1", " ", "-", "\xff", "\x01", "\u00ad", "\u0301", "\u200d", "\u202e", "\u2060", "\u302a", "\u3099", "\ufe00", "\U000e0100"}
	analyzers := []*Analyzer{New(Config{}), New(Config{StopWords: []string{"学生", "机场"}}), New(Config{Dictionary: []string{"大学生a", "学"}}),
		New(Config{Separators: []string{"学"}}), New(Config{NonSeparators: []string{"-"}})}
	locales := []Locales{nil, {"cmn"}, {"jpn"}, {"deu"}, {"tha"}, {"kor"}, {"cmn", "jpn"}, {"hin"}}
	inner, parted := 0, 0
	for range 20_000 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			if b.WriteString(parts[r.IntN(len(parts))]); r.IntN(20) == 0 {
				b.WriteRune(r.Int32N(0x30000))
			}
		}
		s, l, before, end := b.String(), locales[r.IntN(len(locales))], 0, 0
		for _, token := range analyzers[r.IntN(len(analyzers))].Tokens(nil, s, l, false) {
			if token.Start != end || token.End < token.Start {
				t.Fatalf("%+q in %v: a token from %d to %d, after one that ends at %d", s, l, token.Start, token.End, end)
			}
			for _, in := range token.Parts {
				parted++
				if in.Start >= in.End || in.End <= token.Start || in.End > token.End || in.Start < before || in.Start == token.Start && in.End == token.End {
					t.Fatalf("%+q in %v: a part from %d to %d, in a token from %d to %d", s, l, in.Start, in.End, token.Start, token.End)
				}
			}
			before, end = token.Start, token.End
			if token.Inner.Form == "" {
				continue
			}
			inner++
			if token.Inner.Start >= token.Start || token.Inner.End <= token.Start || token.Inner.End > token.End {
				t.Fatalf("%+q in %v: an inner word from %d to %d, in a token from %d to %d", s, l, token.Inner.Start, token.Inner.End, token.Start, token.End)
			}
		}
		if end != len(s) {
			t.Fatalf("%+q in %v: tokens end at %d of %d", s, l, end, len(s))
		}
	}
	if inner < 1000 || parted < 1000 {
		t.Errorf("only %d inner words, %d parts", inner, parted)
	}
}

// TestPassStopsAtWantedWords compares the words found while skipping others with those among all tokens of a text.
func TestPassStopsAtWantedWords(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	words := []string{"lorem", "ipsum", "Dolor", "don’t", "l'été", "naïve", "3.14", "ﬁne", "ǳ", "№", "℃", "😀", "👍🏽", "🇫🇷", "✓", "×", "x\u0301", "\x01x"}
	passed := 0
	for range 500 {
		var b strings.Builder
		for range 1 + r.IntN(200) {
			b.WriteString(words[r.IntN(len(words))])
			b.WriteString([]string{" ", " ", " ", "", "", ". ", "—"}[r.IntN(7)])
		}
		s := []byte(b.String())
		a := New(Config{Separators: []string{"m", "é"}[:r.IntN(3)], NonSeparators: []string{"×", "."}[:r.IntN(3)]})
		all := a.Tokens(nil, string(s), nil, false)
		forms, begins := map[string]bool{}, NewBeginnings()
		for range 1 + r.IntN(3) {
			if token := all[r.IntN(len(all))]; token.Kind == Word {
				forms[token.Form] = true
				begins.Add(token.Form)
			}
		}
		wanted := func(form []byte) bool { return forms[string(form)] }
		find := func(dst []Token, tokens []Token) []Token {
			for _, token := range tokens {
				if forms[token.Form] {
					dst = append(dst, token)
				}
			}
			return dst
		}
		want := find(nil, all)
		var got, part []Token
		for c := (Cursor{}); !c.AtEnd(s); {
			if a.Pass(s, nil, &c, begins, wanted, r.IntN(2), false) {
				passed++
			}
			part = a.More(part[:0], s, nil, &c, 1+r.IntN(4), false)
			got = find(got, part)
		}
		if !sameTokens(got, want) {
			t.Fatalf("%q: %v\n%v, want\n%v", s, forms, got, want)
		}
	}
	if passed < 100 {
		t.Errorf("words were skipped %d times", passed)
	}
}
