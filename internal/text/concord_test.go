package text

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// concorded records the calls of a Concorder.
type concorded struct {
	words []string
	inner []string // number of words before it, and its form
	marks []concordMark
}

type concordMark struct {
	at, words int
	resume    Resume
}

func (c *concorded) Word(form []byte) { c.words = append(c.words, string(form)) }
func (c *concorded) Inner(form []byte) {
	c.inner = append(c.inner, fmt.Sprint(len(c.words), " ", string(form)))
}
func (c *concorded) Mark(at int, r Resume) {
	c.marks = append(c.marks, concordMark{at, len(c.words), r})
}

var concordTexts = []string{"Straße", "don’t", "l'été", "東京都に行く", "白い猫", "我们去北京天安门", "한국어를", "Ελλάς", "мир", "السلام عليكم", "کتاب", "3.14", "a_b", "\x01x", "\xff", "x\u0301", "e. g", "C++",
	"ไทยสวัสดี", "มีประวัติศาสตร์", "สถานีรถไฟ", "서울대학교에서", "ភាសាខ្មែរ", "电影院", "大学生", "待處理", "去大学生\u0301", "Donaudampfschifffahrt", "camelCase", "emoji😀s", "１２３", "Ångström", "naïve", "plain", "words", "of", "ASCII", "\x02", "..", "x", ""}

func concordText(r *rand.Rand) string {
	texts := concordTexts
	if r.IntN(3) == 0 {
		texts = []string{"plain", "Words", "of", "ASCII", "a_b", "e. g", "\x01x", "\x02", "3.14", "1", "x", "C++", ""}[r.IntN(3)*5:]
	}
	var b strings.Builder
	for range r.IntN(60) {
		b.WriteString(texts[r.IntN(len(texts))])
		b.WriteString([]string{" ", "", ". ", ", ", "\n", "—", " - ", "_", "."}[r.IntN(9)])
	}
	return b.String()
}

// TestConcordHasTheWordsOfTokens compares the words that a Concorder receives with those of Tokens, and tokens from its marks on, read in
// parts, with the rest of the tokens.
func TestConcordHasTheWordsOfTokens(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	defer func(n int) { markApart = n }(markApart)
	markApart = 1
	marks, inners, parts := 0, 0, 0
	for range 600 {
		s := concordText(r)
		a := New(Config{
			Dictionary:    []string{"e. g", "ASCII w"}[:r.IntN(3)],
			Separators:    []string{"_", "été", "x", "&", "院", "울"}[:r.IntN(7)],
			NonSeparators: []string{".", "-", " "}[:r.IntN(4)],
			StopWords:     []string{"of", ". ", "words", "学生", "대학교", "สถานี"}[:r.IntN(7)],
		})
		l := []Locales{nil, {}, {"deu"}, {"eng", "swe"}, {"swe"}, {"jpn"}, {"cmn", "jpn"}, {"ara"}, {"eng"}}[r.IntN(9)]
		tokens := a.Tokens(nil, s, l, false)
		var want, inner []string
		for _, token := range tokens {
			form := token.Form
			if a.IsStopWord([]byte(s[token.Start:token.End])) {
				form = StopEntry(form)
			}
			if token.Kind == Word && form != "" {
				if want = append(want, form); token.Inner.Form != "" {
					inner = append(inner, fmt.Sprint(len(want), " ", token.Inner.Form))
				}
				for _, in := range token.Parts {
					inner = append(inner, fmt.Sprint(len(want), " ", in.Form))
					parts++
				}
			}
		}
		inners += len(inner)
		var got concorded
		a.concord([]byte(s), l, &got, nil)
		if !slices.Equal(got.words, want) || !slices.Equal(got.inner, inner) {
			t.Fatalf("%q, %v:\n%q\n%q\n%q\n%q", s, l, got.words, want, got.inner, inner)
		}
		var indexed, both []string
		p, q := Positions{}, Positions{}
		if r.IntN(5) == 0 {
			p.base = maxPosition - r.IntN(40)
			q = p
		}
		var again concorded
		for range 1 + r.IntN(2) {
			p.Visit()
			q.Visit()
			a.Index(&p, []byte(s), l, func(word []byte, at uint16) { indexed = append(indexed, fmt.Sprint(at, string(word))) })
			again = concorded{}
			a.IndexConcord(&q, []byte(s), l, func(word []byte, at uint16) { both = append(both, fmt.Sprint(at, string(word))) }, &again)
		}
		if p.used&^q.used != 0 {
			t.Fatalf("%q, %v: uses pipelines %b, with a concordance %b", s, l, p.used, q.used)
		}
		p.used = q.used // which stays set at the end of a field
		if !slices.Equal(indexed, both) || p != q {
			t.Fatalf("%q, %v: %+v, %+v\n%q\n%q", s, l, p, q, indexed, both)
		}
		if !slices.Equal(again.words, want) || !slices.Equal(again.inner, inner) || !slices.Equal(again.marks, got.marks) {
			t.Fatalf("%q, %v: words or marks differ with an index", s, l)
		}
		for _, m := range got.marks {
			if r.IntN(4) > 0 {
				continue
			}
			marks++
			from := 0
			for words := 0; from < len(tokens) && tokens[from].Start < m.at; from++ {
				if tokens[from].Kind == Word && tokens[from].Form != "" {
					words++
				}
				if words > m.words {
					t.Fatalf("%q: a mark at %d after %d words", s, m.at, m.words)
				}
			}
			rest := []byte(s[m.at:])
			var again []Token
			known := 0
			for c := CursorAt(m.resume); known < len(rest) || !c.AtEnd(rest); {
				again = a.More(again, rest[:known], l, &c, 1+r.IntN(9), known < len(rest))
				for n := r.IntN(20); known < len(rest) && (n > 0 || rest[known]&0xc0 == 0x80); n-- {
					known++
				}
			}
			for i := range again {
				again[i].Start, again[i].End = again[i].Start+m.at, again[i].End+m.at
				if in := &again[i].Inner; in.Form != "" {
					in.Start, in.End = in.Start+m.at, in.End+m.at
				}
				for k := range again[i].Parts {
					in := &again[i].Parts[k]
					in.Start, in.End = in.Start+m.at, in.End+m.at
				}
			}
			if !sameTokens(again, tokens[from:]) {
				t.Fatalf("%q from %d on:\n%v\n%v", s, m.at, again, tokens[from:])
			}
		}
	}
	if marks == 0 || inners == 0 || parts == 0 {
		t.Errorf("%d marks, %d inner words, %d of them parts", marks, inners, parts)
	}
}

func sameTokens(a, b []Token) bool {
	return slices.EqualFunc(a, b, func(a, b Token) bool { return reflect.DeepEqual(a, b) })
}

// TestFingerprints checks which settings change a fingerprint, and which do not.
func TestFingerprints(t *testing.T) {
	base := New(Config{Separators: []string{"x", "y"}}).Fingerprint(nil)
	for what, other := range map[string]uint64{
		"order": New(Config{Separators: []string{"y", "x"}}).Fingerprint(nil),
	} {
		if other != base {
			t.Errorf("%s: another fingerprint", what)
		}
	}
	seen := map[uint64]string{base: "base"}
	for what, other := range map[string]uint64{
		"separators": New(Config{Separators: []string{"x"}}).Fingerprint(nil), "none": New(Config{}).Fingerprint(nil), "joined": New(Config{Separators: []string{"xy"}}).Fingerprint(nil),
		"non-separators": New(Config{NonSeparators: []string{"x", "y"}}).Fingerprint(nil), "dictionary": New(Config{Dictionary: []string{"x", "y"}}).Fingerprint(nil),
		"stop words": New(Config{Separators: []string{"x", "y"}, StopWords: []string{"x", "y"}}).Fingerprint(nil),
		"locales":    New(Config{Separators: []string{"x", "y"}}).Fingerprint(Locales{"deu"}), "no locales": New(Config{Separators: []string{"x", "y"}}).Fingerprint(Locales{}),
	} {
		if seen[other] != "" {
			t.Errorf("%s: the fingerprint of %s", what, seen[other])
		}
		seen[other] = what
	}
	for p := range versions {
		older := versions
		older[p]--
		other := New(Config{Separators: []string{"x", "y"}}).At(older).Fingerprint(nil)
		if seen[other] != "" {
			t.Errorf("an older version of %s: the fingerprint of %s", pipelineTexts[p].name, seen[other])
		}
		seen[other] = "an older version of " + pipelineTexts[p].name
	}
}
