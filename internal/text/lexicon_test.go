package text

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

func TestJapaneseAndKorean(t *testing.T) {
	tests := []struct{ text, pieces string }{
		{"東京大学で勉強しました", "東京 大学 で 勉強 し まし た"}, {"関西国際空港に行った", "関西 国際 空港 に 行っ た"},
		{"すもももももももものうち", "すもも も もも も もも の うち"}, {"機械学習エンジニアを募集しています", "機械 学習 エンジニア を 募集 し て い ます"},
		{"シニアソフトウェアエンジニア", "シニア ソフトウェア エンジニア"}, {"2026年10月14日です", "2026 年 10 月 14 日 です"}, {"にほんご", "にほん ご"},
		{"한국어를 공부합니다", "한국어 를 공부 합니다"}, {"서울특별시 강남구에서", "서울 특별시 강남구 에서"}, {"대한민국의 수도는 서울이다", "대한민국 의 수도 는 서울 이 다"},
		{"2019년에", "2019 년 에"}, {"Ｈｅｌｌｏ", "Ｈｅｌｌｏ"}, {"ｶﾀｶﾅ", "ｶﾀｶﾅ"}, {"ㄱㄴ", "ㄱㄴ"},
		{norm.NFD.String("한국어를"), norm.NFD.String("한국어") + " " + norm.NFD.String("를")}, {"\u1112\u1161", "\u1112\u1161"}, {"\u11ab\u1161", "\u11ab\u1161"},
	}
	a := New(Config{})
	for _, test := range tests {
		var pieces []string
		for _, token := range a.Tokens(nil, test.text, nil, true) {
			if token.Kind == Word {
				pieces = append(pieces, test.text[token.Start:token.End])
			}
		}
		if got := strings.Join(pieces, " "); got != test.pieces {
			t.Errorf("%s: %s, want %s", test.text, got, test.pieces)
		}
	}
}

// slowCost returns the least cost of segmenting a text by the definition, over every substring that is a word or may be an unknown one.
func slowCost(l *plainLexicon, text []rune) int {
	type word struct{ cost, right, end int }
	n := len(text)
	ending := make([][]word, n+1)
	ending[0] = []word{{0, int(l.contexts[0].right), 0}}
	least := func(i int, left uint16) int {
		cost := math.MaxInt
		for _, w := range ending[i] {
			cost = min(cost, w.cost+int(l.costs[int(left)*l.rights+w.right]))
		}
		return cost
	}
	for i := range n {
		if len(ending[i]) == 0 {
			continue
		}
		add := func(j int, e lexiconEntry) {
			context := l.contexts[e.class]
			cost := least(i, context.left) + int(e.weight)
			if chars := j - i; !slices.ContainsFunc(text[i:j], func(r rune) bool { return !unicode.Is(unicode.Ideographic, r) }) {
				cost += 3000 * max(0, chars-2)
			} else {
				cost += 1700 * max(0, chars-7)
			}
			ending[j] = append(ending[j], word{cost, int(context.right), j})
		}
		found := false
		for j := i + 1; j <= n; j++ {
			index, ok := l.index(string(text[i:j]))
			if !ok {
				continue
			}
			found = true
			for _, e := range l.entries[l.first[index]:l.first[index+1]] {
				add(j, e)
			}
		}
		c := l.categories[l.category(text[i])]
		if found && !c.always {
			continue
		}
		end := i + 1
		for c.group && end < n && l.category(text[end]) == l.category(text[i]) {
			end++
		}
		for _, e := range c.entries {
			add(end, e)
			if end > i+1 {
				add(end-1, e)
			}
		}
	}
	return least(n, l.contexts[0].left)
}

// lexicons returns all lexicons by file name.
func lexicons() map[string]*lexicon {
	return map[string]*lexicon{"japanese": japaneseLexicon(), "korean": koreanLexicon()}
}

func TestLatticeAgainstDefinition(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 5))
	for name, l := range lexicons() {
		plain := readPlainLexicon(t, name)
		lattice := l.lattices.Get().(*lattice)
		odd := []rune("々ーアイカ漢字龍ㄱa1、𠮷é가각\ufffd")
		for range 1000 {
			var text []rune
			for range 1 + rng.IntN(6) {
				text = append(text, []rune(plain.words[rng.IntN(len(plain.words))])...)
				for rng.IntN(3) == 0 {
					text = append(text, odd[rng.IntN(len(odd))])
				}
			}
			stops := lattice.cut([]byte(string(text)))
			if !slices.IsSorted(stops) || stops[len(stops)-1] != len(string(text)) {
				t.Fatalf("%s %q: cut at %v", name, string(text), stops)
			}
			got, _ := lattice.arrive(len(text), l.context(0).left)
			if want := slowCost(plain, text); int(got) != want {
				t.Fatalf("%s %q: the cut costs %d, want %d", name, string(text), got, want)
			}
		}
		l.lattices.Put(lattice)
	}
}

// TestFewWordsNeedLittleMemory checks that the data compiled into the program is not copied to the heap.
func TestFewWordsNeedLittleMemory(t *testing.T) {
	for name, test := range map[string]struct {
		file []byte
		text string
	}{"Japanese": {japaneseFile, "東京大学で勉強しました"}, "Korean": {koreanFile, "한국어를 공부합니다"}} {
		allocated := func() uint64 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.TotalAlloc
		}
		before := allocated()
		words := 0
		openLexicon(test.file).segment([]byte(test.text), 0, len(test.text), group{}, func(piece) bool {
			words++
			return true
		})
		if n := allocated() - before; words < 3 || n > 4<<20 {
			t.Errorf("%s: %d bytes for %d words", name, n, words)
		}
	}
}
