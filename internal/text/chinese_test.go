package text

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// slowWords maps the words of a dictionary to the logarithms of their frequencies.
type slowWords map[string]float64

// of looks a word up, as written and simplified.
func (w slowWords) of(s []rune) (ln float64, ok bool) {
	simplified := slices.Clone(s)
	for i, r := range s {
		if v, ok := chineseVariants()[r]; ok {
			simplified[i] = v
		}
	}
	ln, ok = w[string(s)]
	if other, has := w[string(simplified)]; has && (!ok || other > ln) {
		return other, true
	}
	return ln, ok
}

// slowChinese segments ideographs by the definition: it looks up every substring.
func slowChinese(words slowWords, text string) []string {
	s := []rune(text)
	n := len(s)
	best, choice := make([]float64, n+1), make([]int, n+1)
	for i := n - 1; i >= 0; i-- {
		best[i], choice[i] = math.Inf(-1), 0
		for j := i + 1; j <= n; j++ {
			if ln, ok := words.of(s[i:j]); ok && ln-logTotal+best[j] >= best[i] {
				best[i], choice[i] = ln-logTotal+best[j], j
			}
		}
		if choice[i] == 0 {
			best[i], choice[i] = best[i+1]-logTotal, i+1
		}
	}
	var cut []string
	for i := 0; i < n; i = choice[i] {
		cut = append(cut, slowRecut(words, s[i:choice[i]])...)
	}
	return cut
}

// slowRecut splits a word of more than two characters into words of two characters, or words of three that contain none of two. Of all
// splits it takes the first one with the fewest single characters.
func slowRecut(words slowWords, s []rune) []string {
	if len(s) <= 2 {
		return []string{string(s)}
	}
	if len(s) > maxRecut {
		return append(slowRecut(words, s[:maxRecut]), slowRecut(words, s[maxRecut:])...)
	}
	isWord := func(s []rune) bool { _, ok := words.of(s); return ok }
	var best func(s []rune) (cut []string, alone int)
	best = func(s []rune) (cut []string, alone int) {
		alone = math.MaxInt
		for _, k := range []int{2, 3, 1} {
			switch {
			case k > len(s):
			case k == 1, k == 2 && isWord(s[:2]), k == 3 && isWord(s[:3]) && !isWord(s[:2]) && !isWord(s[1:3]):
				rest, n := []string(nil), 0
				if k < len(s) {
					rest, n = best(s[k:])
				}
				if k == 1 {
					n++
				}
				if n < alone {
					cut, alone = append([]string{string(s[:k])}, rest...), n
				}
			}
		}
		return cut, alone
	}
	cut, _ := best(s)
	return cut
}

func TestChineseAgainstDefinition(t *testing.T) {
	words := listedWords(t, "chinese")
	if len(words) < 340000 {
		t.Fatalf("%d words", len(words))
	}
	all := make([]string, 0, len(words))
	for w := range words {
		all = append(all, w)
	}
	slices.Sort(all)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	a := New(Config{})
	traditional := map[rune][]rune{}
	for _, from := range slices.Sorted(maps.Keys(chineseVariants())) {
		to := chineseVariants()[from]
		traditional[to] = append(traditional[to], from)
	}
	simplified, inner := 0, 0
	for range 2000 {
		var b strings.Builder
		other := rng.IntN(2) == 0 // some characters are replaced by variants
		for range 1 + rng.IntN(8) {
			w := []rune(all[rng.IntN(len(all))])
			from := rng.IntN(len(w))
			for _, r := range w[from : from+1+rng.IntN(len(w)-from)] {
				if forms := traditional[r]; other && len(forms) > 0 && rng.IntN(3) > 0 {
					r = forms[rng.IntN(len(forms))]
					simplified++
				}
				b.WriteRune(r)
			}
		}
		text := b.String()
		if strings.ContainsFunc(text, func(r rune) bool { return r < 0x3400 }) {
			continue // digits are joined
		}
		var got []string
		for _, token := range a.Tokens(nil, text, nil, false) {
			got = append(got, text[token.Start:token.End])
			if token.Inner.Form == "" {
				continue
			}
			inner++
			start, end := token.Inner.Start, token.Inner.End
			_, listed := slowWords(words).of([]rune(text[start:end]))
			if form := string(appendFold(nil, []byte(text[start:end]), token.group, nil)); !listed || form != token.Inner.Form || start >= token.Start || end <= token.Start ||
				!IsOfInner(form) || utf8.RuneCountInString(form) != 2 {
				t.Fatalf("%s: an inner word %s from %d to %d, ending in %s", text, token.Inner.Form, start, end, text[token.Start:token.End])
			}
		}
		if want := slowChinese(words, text); !slices.Equal(got, want) {
			t.Fatalf("%s: %q, want %q", text, got, want)
		}
	}
	if simplified == 0 || inner == 0 {
		t.Errorf("%d traditional characters, %d inner words", simplified, inner)
	}
}

// TestTraditionalWords checks that traditional, Japanese and simplified characters are segmented alike.
func TestTraditionalWords(t *testing.T) {
	a := New(Config{})
	for _, test := range []struct{ text, want string }{
		{"電腦店在裏面", "电脑 店 在 里面"}, {"电脑店在里面", "电脑 店 在 里面"}, {"待處理訂單", "待 处理 订单"}, {"手機殼", "手机 壳"}, {"大學生", "大学 生"}, {"東京都", "东京 都"},
		{"國立臺灣大學", "国立 台湾 大学"}, {"著名", "著名"}, {"乾隆", "干隆"}, {"鉄道", "铁道"},
	} {
		var got []string
		for _, token := range a.Tokens(nil, test.text, nil, false) {
			got = append(got, token.Form)
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%s: %s, want %s", test.text, s, test.want)
		}
	}
}

func TestWordList(t *testing.T) {
	l := thaiWords()
	words := listedWords(t, "thai")
	if len(words) < 62000 {
		t.Fatalf("%d words", len(words))
	}
	longest := func(s string) int {
		for n := len(s); n > 0; n-- {
			if _, ok := words[s[:n]]; ok {
				return n
			}
		}
		return 0
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	all := slices.Sorted(maps.Keys(words))
	word := func() string { return all[rng.IntN(len(all))] }
	for range 5000 {
		s := word()
		if !l.has([]byte(s)) {
			t.Fatalf("%q is missing", s)
		}
		s = s[:rng.IntN(len(s)+1)] + word() + word()
		if got, want := l.longest([]byte(s)), longest(s); got != want {
			t.Fatalf("%q: %d, want %d", s, got, want)
		}
		if _, ok := words[s]; l.has([]byte(s)) != ok {
			t.Fatalf("%q: has %v", s, !ok)
		}
	}
	if l.has(nil) || l.longest(nil) != 0 {
		t.Error("the empty word is listed")
	}
}

func TestVariants(t *testing.T) {
	m := chineseVariants()
	if len(m) < 4000 {
		t.Errorf("%d variants", len(m))
	}
	for from, to := range m {
		if next, ok := m[to]; ok {
			t.Errorf("%c folds to %c, which folds to %c", from, to, next)
		}
	}
	for _, same := range []string{"国國", "学學", "真眞", "为為爲", "里裡裏", "铁鐵鉄", "龙龍竜", "台臺", "驿驛駅", "高髙", "崎﨑", "边邊邉辺", "滨濱濵", "樱櫻桜", "岛島嶋嶌", "鹤鶴靏靍", "桥橋槗"} {
		want := FacetSearchKey(string([]rune(same)[0]), nil)
		for _, r := range same {
			if got := FacetSearchKey(string(r), nil); got != want {
				t.Errorf("%c folds to %s, not to %s", r, got, want)
			}
		}
	}
	if a, b := FacetSearchKey("𠮷野家", nil), FacetSearchKey("吉野家", nil); a != b {
		t.Errorf("%s is not %s", a, b)
	}
}

// TestLongRunsAreSplit checks that a run of more than maxChineseRun bytes is split into parts, which changes only the words
// around their ends.
func TestLongRunsAreSplit(t *testing.T) {
	const before = 3 * (maxChineseRun/3 + 1) // bytes of the first part
	s := "去" + strings.Repeat("大学", maxChineseRun/4)
	end, alone := 0, 0
	for _, token := range New(Config{}).Tokens(nil, s, Locales{"cmn"}, false) {
		if token.Start != end {
			t.Fatalf("a token begins at %d, after one that ends at %d", token.Start, end)
		}
		end = token.End
		if token.Form == "大学" || token.Start == 0 {
			continue
		}
		if alone++; token.End != before && token.Start != before {
			t.Errorf("%s at %d", token.Form, token.Start)
		}
	}
	if end != len(s) || alone != 2 {
		t.Errorf("%d of %d bytes, %d characters alone", end, len(s), alone)
	}
}
