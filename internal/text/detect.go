package text

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed dictionaries/profiles.txt
var profilesFile string

// A profile distinguishes a language from others of its script: by its letters beyond a to z and its most frequent trigrams.
type profile struct {
	code     string // ISO 639-3
	without  string // letters of a to z that it lacks
	letters  string // lower-case letters that it adds
	like     string // where there are no trigrams of its own, the code of the relative that lends them
	trigrams []trigram
}

// trigram is three characters, the first in the highest bits: numbers compare as the strings do.
type trigram uint64

// profiles are the recognised languages with Latin letters, in the order that decides ties. Catalan, Slovak and Latin have their own
// alphabets and the trigrams of a related language.
var profiles = sync.OnceValue(func() []profile {
	latin := []profile{
		{code: "spa", letters: "¡¿áéíñóúü"}, {code: "eng"}, {code: "por", letters: "àáâãçéêíóôõú"}, {code: "ind"}, {code: "fra", letters: "àâçèéêëîïôùûüÿœ"},
		{code: "deu", letters: "ßäöü"}, {code: "jav", letters: "èé"},
		{code: "vie", letters: "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ"}, {code: "ita", letters: "àèéìòù"},
		{code: "tur", letters: "çöüğış\u0307"}, {code: "pol", letters: "óąćęłńśźż"}, {code: "ron", letters: "âîăşţ"}, {code: "hrv", letters: "ćčđšž"},
		{code: "nld", letters: "àèéëïĳ"}, {code: "uzb", without: "w", letters: "ʻ"}, {code: "hun", letters: "áéíóöúüőű"},
		{code: "aze", without: "w", letters: "çöüğışə\u0307"}, {code: "ces", letters: "áéíóúýčďěňřšťůž"}, {code: "zul"}, {code: "swe", letters: "äåö"},
		{code: "aka", without: "cjqvxz", letters: "ɔɛ"}, {code: "sna"}, {code: "afr", letters: "áèéêëíîïóôúû"}, {code: "fin", letters: "äöšž"},
		{code: "slk", letters: "áäéíóôúýčďĺľňŕšťž", like: "ces"}, {code: "tgl", letters: "áéíñóú"}, {code: "tuk", without: "cqvx", letters: "äçöüýňşž"},
		{code: "dan", letters: "åæø"}, {code: "nob", letters: "åæø"}, {code: "cat", letters: "·àçèéíïòóúü", like: "spa"}, {code: "lit", letters: "ąčėęįšūųž"},
		{code: "slv", letters: "čšž"}, {code: "epo", without: "qwxy", letters: "ĉĝĥĵŝŭ"}, {code: "lav", letters: "āčēģīķļņōŗšūž"}, {code: "est", letters: "äõöü"},
		{code: "lat", like: "ita"},
	}
	lists := make(map[string][]trigram)
	for line := range strings.Lines(profilesFile) {
		code, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		var t trigram
		n := 0
		for _, r := range text {
			if t, n = t.then(r), n+1; n%3 == 0 {
				lists[code] = append(lists[code], t)
			}
		}
	}
	for i := range latin {
		latin[i].trigrams = lists[cmp.Or(latin[i].like, latin[i].code)]
	}
	return latin
})

// then is the trigram that ends with r, after t.
func (t trigram) then(r rune) trigram {
	const bits = 21
	return (t<<bits | trigram(r)) & (1<<(3*bits) - 1)
}

const (
	maxRank  = 600 // trigrams of a text that count
	farRank  = 300 // distance of a trigram that the text does not have; also trigrams of a profile
	noSample = -1
)

// isStop reports whether r says nothing about the language: digits, ASCII punctuation, controls, space.
func isStop(r rune) bool {
	return r <= 0x40 || 0x5b <= r && r <= 0x60 || 0x7b <= r && r <= 0x7e
}

// guess returns the index in list of the most likely language of text, among those whose codes allowed accepts, or noSample if it
// accepts none. There is no threshold: the best one wins, however low its score.
func guess(list []profile, text []byte, allowed func(code string) bool) int {
	candidates := make([]int, 0, len(list))
	for i, p := range list {
		if allowed(p.code) {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) < 2 {
		if len(candidates) == 0 {
			return noSample
		}
		return candidates[0]
	}
	letters, n := countLetters(text)
	if n == 0 {
		return noSample
	}
	ranks := rankTrigrams(text)
	weight := min(max(2.0/3-float64(n)/300, 1.0/3), 2.0/3)
	best, bestScore, bestAlphabet := noSample, 0.0, 0.0
	for _, i := range candidates {
		a := list[i].alphabetScore(letters, n)
		score := a*weight + list[i].trigramScore(ranks)*(1-weight)
		if best == noSample || score > bestScore || score == bestScore && a > bestAlphabet {
			best, bestScore, bestAlphabet = i, score, a
		}
	}
	return best
}

// countLetters counts the characters of the lower-cased text, without stop characters.
func countLetters(text []byte) (map[rune]int, int) {
	letters, n := make(map[rune]int), 0
	eachLower(text, func(r rune) {
		if !isStop(r) {
			letters[r]++
			n++
		}
	})
	return letters, n
}

// eachLower calls f for the characters of the lower-cased text.
func eachLower(text []byte, f func(rune)) {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if r == 'İ' {
			f('i')
			f(0x307)
			continue
		}
		f(unicode.ToLower(r))
	}
}

// alphabetScore says how many of the text's n letters are in the language's alphabet: 1 if all are, 0 if half of them or fewer.
func (p *profile) alphabetScore(letters map[rune]int, n int) float64 {
	known := 0
	for r, count := range letters {
		if 'a' <= r && r <= 'z' && !strings.ContainsRune(p.without, r) || strings.ContainsRune(p.letters, r) {
			known += count
		}
	}
	return float64(max(0, 2*known-n)) / float64(n)
}

// rankTrigrams returns the rank of the most frequent trigrams of the text.
func rankTrigrams(text []byte) map[trigram]int {
	counts := make(map[trigram]int)
	var t trigram
	before, middle := rune(-1), ' ' // no window starts before the space in front of the text
	t = t.then(middle)
	add := func(r rune) {
		if isStop(r) {
			r = ' '
		}
		t = t.then(r)
		if before >= 0 && !(middle == ' ' && (before == ' ' || r == ' ')) {
			counts[t]++
		}
		before, middle = middle, r
	}
	eachLower(text, add)
	add(' ')
	sorted := make([]trigram, 0, len(counts))
	for t := range counts {
		sorted = append(sorted, t)
	}
	slices.SortFunc(sorted, func(a, b trigram) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(b, a)) })
	sorted = sorted[:min(len(sorted), maxRank)]
	clear(counts)
	for rank, t := range sorted {
		counts[t] = rank
	}
	return counts
}

// trigramScore returns how close the ranks are to those of the profile: 1 if they are equal.
func (p *profile) trigramScore(ranks map[trigram]int) float64 {
	n := len(ranks)
	if n == 0 {
		return 0
	}
	distance := 0
	for i, t := range p.trigrams {
		if rank, ok := ranks[t]; ok {
			distance += max(rank-i, i-rank)
		} else {
			distance += farRank
		}
	}
	distance -= max(0, farRank-n) * farRank
	distance = min(max(distance, 0), farRank*farRank)
	return float64(farRank*n-distance) / float64(farRank*n)
}
