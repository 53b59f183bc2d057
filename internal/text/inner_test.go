package text

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// slowCompounds returns the parts of each compound noun of the Korean lexicon.
func slowCompounds(t *testing.T) map[string][]string {
	t.Helper()
	file, err := os.ReadFile("dictionaries/korean.parts")
	if err != nil {
		t.Fatal(err)
	}
	lexicon := readPlainLexicon(t, "korean")
	if len(file) != len(lexicon.entries) {
		t.Fatalf("%d bytes for %d entries", len(file), len(lexicon.entries))
	}
	compounds := map[string][]string{}
	for i, word := range lexicon.words {
		var parts []string
		start := 0
		for n, r := range []rune(word) {
			if start += utf8.RuneLen(r); n < 8 && file[lexicon.first[i]]>>n&1 != 0 {
				parts = append(parts, word[:start])
				word, start = word[start:], 0
			}
		}
		if parts != nil {
			compounds[lexicon.words[i]] = append(parts, word)
		}
	}
	return compounds
}

// slowParts returns the inner words of a Korean word, given the word before it, or "".
func slowParts(compounds map[string][]string, before, word string) []string {
	split := func(w string) []string {
		switch {
		case w == "":
			return nil
		case compounds[w] != nil:
			return compounds[w]
		}
		return []string{w}
	}
	first, own := split(before), split(word)
	all := slices.Concat(first, own)
	var found []string
	for i := range all {
		for j := max(i, len(first)); j < len(all); j++ {
			s := strings.Join(all[i:j+1], "")
			isPart := i == j && len(own) > 1
			if utf8.RuneCountInString(s) > 1 && (i != len(first) || j < len(all)-1) && (isPart || i < j && slices.Equal(compounds[s], all[i:j+1])) && !slices.Contains(found, s) {
				found = append(found, s)
			}
		}
	}
	return found
}

// TestKoreanPartsAgainstDefinition compares the inner words of random Korean texts with those by the definition.
func TestKoreanPartsAgainstDefinition(t *testing.T) {
	compounds := slowCompounds(t)
	all := slices.Sorted(maps.Keys(compounds))
	words := readPlainLexicon(t, "korean").words
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	a := New(Config{})
	within, beyond := 0, 0
	for range 4000 {
		var b strings.Builder
		for range 1 + rng.IntN(6) {
			switch w := all[rng.IntN(len(all))]; rng.IntN(4) {
			case 0:
				b.WriteString(strings.Join(compounds[w][rng.IntN(2):], ""))
			case 1:
				b.WriteString(words[rng.IntN(len(words))])
			default:
				b.WriteString(w)
			}
			b.WriteString([]string{"", "", "에서 ", "이", " "}[rng.IntN(5)])
		}
		text := b.String()
		if strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && (r < 0xac00 || r > 0xd7a3) }) {
			continue
		}
		tokens := a.Tokens(nil, text, nil, false)
		for i, token := range tokens {
			before := ""
			if i > 0 && tokens[i-1].Kind == Word {
				before = text[tokens[i-1].Start:tokens[i-1].End]
			}
			var got, want []string
			for _, in := range token.Parts {
				got = append(got, text[in.Start:in.End])
				if within++; in.Start < token.Start {
					beyond++
				}
				if in.Form != string(appendFold(nil, []byte(text[in.Start:in.End]), token.group, nil)) {
					t.Fatalf("%s: the form %s", text, in.Form)
				}
			}
			if token.Kind == Word {
				want = slowParts(compounds, before, text[token.Start:token.End])
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, in %s after %s: %q, want %q", text, text[token.Start:token.End], before, got, want)
			}
		}
	}
	if within < 1000 || beyond < 100 {
		t.Errorf("%d inner words, %d of them across two words", within, beyond)
	}
}

// slowList finds the inner words of a list by looking up all substrings.
type slowList map[string]float64

func (l slowList) has(s string) bool {
	_, ok := l[s]
	return ok && len(s) >= minTiled
}

// splits returns into how many words a text splits at most, 0 for none. whole says whether the text itself counts.
func (l slowList) splits(s string, whole bool) int {
	most := 0
	if whole && l.has(s) {
		most = 1
	}
	for i := range s {
		if l.has(s[:i]) {
			if n := l.splits(s[i:], true); n > 0 {
				most = max(most, 1+n)
			}
		}
	}
	return most
}

// parts returns the inner words that end in text[from:], a word, and begin there or in the word that begins at before.
func (l slowList) parts(text string, before, from int) []string {
	var found, forms []string
	for i := before; i < len(text); i++ {
		for j := from + 1; j <= len(text); j++ {
			if i >= j || !l.has(text[i:j]) || i == from && j == len(text) {
				continue
			}
			head := text[before:i]
			if i >= from {
				head = text[from:i]
			}
			word, tail := text[i:j], text[j:]
			if head != "" && l.splits(head, true) == 0 || tail != "" && l.splits(tail, true) == 0 || vowels([]byte(word)) < 2 && l.splits(word, false) == 0 {
				continue
			}
			form := string(appendFold(nil, []byte(word), group{script: thai}, nil))
			if r, _ := utf8.DecodeRuneInString(word); r >= 0x1780 {
				form = string(appendFold(nil, []byte(word), group{script: khmer}, nil))
			}
			if !slices.Contains(forms, form) {
				found, forms = append(found, word), append(forms, form)
			}
		}
	}
	return found
}

// TestListPartsAgainstDefinition compares the inner words of random Thai and Khmer texts with those by the definition.
func TestListPartsAgainstDefinition(t *testing.T) {
	for _, name := range []string{"thai", "khmer"} {
		t.Run(name, func(t *testing.T) {
			words := slowList(listedWords(t, name))
			all := slices.Sorted(maps.Keys(words))
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 5))
			a := New(Config{})
			within, beyond := 0, 0
			for range 3000 {
				var b strings.Builder
				for range 1 + rng.IntN(6) {
					w := []rune(all[rng.IntN(len(all))])
					if rng.IntN(4) == 0 {
						w = w[:1+rng.IntN(len(w))]
					}
					b.WriteString(string(w))
					b.WriteString([]string{"", "", "", " "}[rng.IntN(4)])
				}
				text := b.String()
				tokens := a.Tokens(nil, text, nil, false)
				for i, token := range tokens {
					listed := func(token Token) bool { _, ok := words[text[token.Start:token.End]]; return ok && token.Kind == Word }
					var got, want []string
					for _, in := range token.Parts {
						got = append(got, text[in.Start:in.End])
						if within++; in.Start < token.Start {
							beyond++
						}
					}
					if listed(token) && isComposed([]byte(text)) && !hasThaiVariants([]byte(text)) {
						before := token.Start
						if i > 0 && listed(tokens[i-1]) {
							before = tokens[i-1].Start
						}
						want = words.parts(text[:token.End], before, token.Start)
					} else if listed(token) {
						continue
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%s, in %s: %q, want %q", text, text[token.Start:token.End], got, want)
					}
				}
			}
			if within < 1000 || beyond < 10 {
				t.Errorf("%d inner words, %d of them across two words", within, beyond)
			}
		})
	}
}

// TestVowels checks how many vowels with signs are counted.
func TestVowels(t *testing.T) {
	for word, want := range map[string]int{"เรียน": 1, "เมือง": 1, "เครื่อง": 1, "เปลี่ยน": 1, "เพราะ": 1, "เกาะ": 1, "ศาสตร์": 1, "เวลา": 2, "อาหาร": 2, "เชียงใหม่": 2, "วิทยาลัย": 3,
		"ไฟ": 1, "โรงเรียน": 2, "รถ": 0, "ប្រទេស": 1, "សាលា": 2} {
		if n := vowels([]byte(word)); n != want {
			t.Errorf("%s: %d, want %d", word, n, want)
		}
	}
}
