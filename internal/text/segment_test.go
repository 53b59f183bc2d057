package text

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// TestDictionariesSeeComposedText checks that decomposed letters, similar letters, and characters that folding drops do not change the
// words of texts segmented by dictionaries.
func TestDictionariesSeeComposedText(t *testing.T) {
	parts := []string{"ガラス", "パン", "を買いました", "東京", "で", "ヴァイオリン", "プログラミング言語", "ー", "葛城市", "です", "2024", "年", "x", " ", "、",
		"한국어를", "공부", "각", "大学生", "北京", "长江大桥", "電腦", "Krankenversicherung", "Bevölkerungsgröße", "Tür", "ไทย", "ภาษา", "น้ำตก", "แม่น้ำ", "ทำอาหาร", "๒๕๖๗", "ភាសា", "ខ្មែរ"}
	dropped := []string{"\x01", "\u00ad", "\u200e", "\u2060", "\ufeff", "\ufe00", "\U000e0100", "\u2069"}
	r := rand.New(rand.NewPCG(7, 7))
	a := New(Config{})
	words := func(s string, l Locales) string {
		var p Positions
		var b strings.Builder
		a.Index(&p, []byte(s), l, wordsOnly(func(word []byte, position uint16) { fmt.Fprintf(&b, "%s@%d ", norm.NFKD.Bytes(word), position) }))
		return b.String()
	}
	changed := 0
	for range 2000 {
		l := []Locales{nil, {"deu"}, {"jpn"}, {"cmn"}, {"eng"}}[r.IntN(5)]
		var plain, disguised strings.Builder
		for range 1 + r.IntN(6) {
			part := parts[r.IntN(len(parts))]
			plain.WriteString(part)
			part = norm.NFC.String(part)
			for _, v := range thaiVariants {
				if r.IntN(2) == 0 {
					part = strings.ReplaceAll(part, v.listed, v.typed)
				}
			}
			for i, c := range part {
				s := string(c)
				if r.IntN(2) == 0 {
					s = norm.NFD.String(s)
				}
				disguised.WriteString(s)
				if c >= utf8.RuneSelf && i+utf8.RuneLen(c) < len(part) && r.IntN(6) == 0 { // keeps digits together
					disguised.WriteString(dropped[r.IntN(len(dropped))])
				}
			}
		}
		if got, want := words(disguised.String(), l), words(plain.String(), l); got != want {
			t.Fatalf("%+q in %v: got %s, want %s, as of %q", disguised.String(), l, got, want, plain.String())
		}
		if !isComposed([]byte(disguised.String())) {
			changed++
		}
	}
	if changed < 1000 {
		t.Errorf("only %d texts have something to compose or drop", changed)
	}
}

// TestTextIsComposedInParts composes long texts part by part: no part is long, and together they are the composition of the whole text.
func TestTextIsComposedInParts(t *testing.T) {
	defer func(n int) { composedBytes = n }(composedBytes)
	composedBytes = 64
	letters := []string{"か", "\u3099", "ᄒ", "ᅡ", "ᆫ", "a", "\u0301", "\u0323", "\u00ad", "\u2060", "京", "한", "e"}
	r := rand.New(rand.NewPCG(8, 8))
	parts := 0
	for range 500 {
		var b, kept strings.Builder
		for range 1 + r.IntN(300) {
			letter := letters[r.IntN(len(letters))]
			b.WriteString(letter)
			if c, _ := utf8.DecodeRuneInString(letter); !isDropped(c) {
				kept.WriteString(letter)
			}
		}
		s, end := []byte(b.String()), 0
		var composed strings.Builder
		cut := func(part []byte, start, end int, g group, yield func(piece) bool) bool {
			parts++
			if composed.Write(part); start != 0 || end != len(part) || len(part) > 2*composedBytes+utf8.UTFMax {
				t.Fatalf("%q from %d to %d", part, start, end)
			}
			return yield(piece{start: start, end: end})
		}
		segmentComposed(cut, s, 0, len(s), group{}, func(p piece) bool {
			if p.start != end {
				t.Fatalf("a piece of %q begins at %d, after one that ends at %d", s, p.start, end)
			}
			end = p.end
			return true
		})
		if want := norm.NFC.String(kept.String()); end != len(s) || composed.String() != want {
			t.Fatalf("%q: %q to %d, want %q", s, composed.String(), end, want)
		}
	}
	if parts < 2000 {
		t.Errorf("only %d parts", parts)
	}
}

// TestIsComposed checks all characters that folding drops, and all that compose with a letter of a script that dictionaries segment.
func TestIsComposed(t *testing.T) {
	for r := range rune(0xe1000) {
		matters := isDropped(r)
		for _, letter := range "aeousかハᄒ하" {
			matters = matters || utf8.RuneCountInString(norm.NFC.String(string([]rune{letter, r}))) == 1
		}
		if matters && isComposed([]byte("x"+string(r))) {
			t.Errorf("%U is not detected", r)
		}
	}
	for _, s := range []string{"ガラス製品を買いました", "한국어를 2024", "ภาษาไทย", "ភាសាខ្មែរ", "Größe", "长江大桥", "“—”"} {
		if !isComposed([]byte(s)) {
			t.Errorf("%q is composed", s)
		}
	}
}

// TestCompositionHasAllEdges compares the composition of random texts, and where its letters end, with the composition letter by letter.
func TestCompositionHasAllEdges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	parts := []string{"a", "e", "\u0301", "\u0323", "\u0307", "か", "\u3099", "ｶ", "ﾞ", "\u1100", "\u1161", "\u11a8", "가", "각", "ज", "\u093c", "é", "中", "\u09c7", "\u09be", "ß", "\u0344", "\u2126", "\u00ad", "\xff"}
	changed := 0
	for range 20_000 {
		var b strings.Builder
		for range 1 + rng.IntN(12) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		s := []byte("x" + b.String())
		var whole, single composition
		whole.keep(s, 0, len(s))
		whole.compose(0, other)
		single.keep(s, 0, len(s))
		single.edges = append(single.edges, composedEdge{})
		single.composeThai()
		if !slices.Equal(whole.edges, single.edges) || !bytes.Equal(whole.composed, single.composed) {
			t.Fatalf("%q: %q %v, want %q %v", s, whole.composed, whole.edges, single.composed, single.edges)
		}
		if !bytes.Equal(whole.composed, s) {
			changed++
		}
	}
	if changed < 1000 {
		t.Errorf("%d texts changed", changed)
	}
}
