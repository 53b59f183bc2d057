package text

import (
	"math"
	"sync"
	"unicode/utf8"
)

// logTotal is the logarithm of the sum of all frequencies in the published Chinese dictionary.
var logTotal = math.Log(60101964)

// logFrequency returns the logarithm of a word's frequency. A listed word with frequency 0 counts as seen once.
func logFrequency(n uint64) float64 {
	if n == 0 {
		return 0
	}
	return math.Log(float64(n))
}

// chineseRun holds the buffers for cutting one run.
type chineseRun struct {
	at     []int     // byte offset of each character, and the end
	best   []float64 // logarithm of the best cut's probability from a character on
	choice []int     // character after the word that starts the best cut

	simplified   []byte // the run with the simplified form of each character; empty where that is the run itself
	simplifiedAt []int  // byte offset of each character in it, and the end
}

var chineseRuns = sync.Pool{New: func() any { return new(chineseRun) }}

// maxChineseRun is about how many bytes of a run are cut at a time, which takes several times as much memory.
const maxChineseRun = 1 << 16

// segmentChinese cuts runs of ideographs, letters and digits by their most probable words, and long words once
// more into shorter ones, as a query has them. Any other character is a word.
//
// The dictionary has few words with traditional characters, so a run is looked up as written and in simplified characters. Otherwise
// 電腦 would be two words, and 電 alone would match 電話.
func segmentChinese(s []byte, start, end int, g group, yield func(piece) bool) bool {
	run := chineseRuns.Get().(*chineseRun)
	defer chineseRuns.Put(run)
	for i := start; i < end; {
		j := i
		for j < end && j-i < maxChineseRun {
			r, n := utf8.DecodeRune(s[j:end])
			if !inChineseRun(r) {
				break
			}
			j += n
		}
		if j > i {
			if !run.cut(s, i, j, g, yield) {
				return false
			}
			i = j
			continue
		}
		_, n := utf8.DecodeRune(s[i:end])
		if !yield(piece{i, i + n, Word, false, whole, g}) {
			return false
		}
		i += n
	}
	return true
}

// inChineseRun reports whether the dictionary may have a word with this rune: ideographs, and signs in words
// such as C++.
func inChineseRun(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return isAlphanumeric(byte(r)) || r == '+' || r == '#' || r == '&' || r == '.' || r == '_' || r == '%' || r == '-'
	case r < 0x3400:
		return false
	}
	return r <= 0x4dbf || 0x4e00 <= r && r <= 0x9fff || 0xf900 <= r && r <= 0xfaff || 0x20000 <= r && r <= 0x2a6df || 0x2a700 <= r && r <= 0x2ebef || 0x2f800 <= r && r <= 0x2fa1f
}

func isAlphanumeric(b byte) bool {
	c := b | 0x20
	return 'a' <= c && c <= 'z' || '0' <= b && b <= '9'
}

// cut cuts the run s[start:end].
func (run *chineseRun) cut(s []byte, start, end int, g group, yield func(piece) bool) bool {
	run.measure(s, start, end, g.language == cmn)
	n := len(run.at) - 1
	for i := 0; i < n; {
		j := run.choice[i]
		if j == i+1 && isAlphanumeric(s[run.at[i]]) {
			// Letters and digits that stand alone are one word.
			for j < n && run.choice[j] == j+1 && isAlphanumeric(s[run.at[j]]) {
				j++
			}
			if !yield(piece{run.at[i], run.at[j], Word, false, whole, g}) {
				return false
			}
			i = j
			continue
		}
		if j-i <= 2 {
			if !yield(piece{run.at[i], run.at[j], Word, false, whole, g}) {
				return false
			}
			i = j
			continue
		}
		if !run.recut(s, i, j, g, yield) {
			return false
		}
		i = j
	}
	return true
}

// maxRecut is the longest word, in characters, that is cut again; longer ones, sayings for instance, are cut part by part.
const maxRecut = 16

// recut cuts a word of three or more characters, from character i to j, so that words of two characters cover as many of its
// characters as possible. If there are several ways, the earliest words of two characters win. The rest are words of three characters
// and single characters. Words of two characters across this cut are inner words: 大学 生 contains 学生.
func (run *chineseRun) recut(s []byte, i, j int, g group, yield func(piece) bool) bool {
	for ; j-i > maxRecut; i += maxRecut {
		if !run.recut(s, i, i+maxRecut, g, yield) {
			return false
		}
	}
	n := j - i
	var pair, triple [maxRecut]bool // a word begins here
	for k := range n {
		pair[k] = k+2 <= n && run.isWord(s, i+k, i+k+2)
	}
	for k := range n {
		triple[k] = k+3 <= n && !pair[k] && !pair[k+1] && run.isWord(s, i+k, i+k+3)
	}
	var covered, size [maxRecut + 3]int // from a character on: how many characters words have, and how long the first is
	for k := n - 1; k >= 0; k-- {
		size[k], covered[k] = 1, covered[k+1]
		if triple[k] && 3+covered[k+3] >= covered[k] {
			size[k], covered[k] = 3, 3+covered[k+3]
		}
		if pair[k] && 2+covered[k+2] >= covered[k] {
			size[k], covered[k] = 2, 2+covered[k+2]
		}
	}
	for k := 0; k < n; {
		begin := k
		k += size[k]
		if !yield(piece{run.at[i+begin], run.at[i+k], Word, false, whole, g}) {
			return false
		}
		if begin > 0 && pair[begin-1] && !yield(piece{run.at[i+begin-1], run.at[i+begin+1], Word, false, across, g}) {
			return false
		}
	}
	return true
}

// inner returns the inner word of a piece, or none if it is a stop word. The piece in which it ends came just before.
func (a *Analyzer) inner(sc *scratch, raw []byte, p piece) Inner {
	if sc.key = a.appendInner(sc.key[:0], raw, p); len(sc.key) == 0 {
		return Inner{}
	}
	return Inner{string(sc.key), p.start, p.end}
}

// appendInner appends the form of an inner word, or nothing if it is a stop word.
func (a *Analyzer) appendInner(dst, raw []byte, p piece) []byte {
	if a.IsStopWord(raw) {
		return dst
	}
	return appendFold(dst, raw, p.group, nil)
}

// IsOfInner reports whether an inner word may have a form, or begin with it. All inner words of the dictionary are ideographs; marks may
// follow each.
func IsOfInner(form string) bool {
	r, _ := utf8.DecodeRuneInString(form)
	return r >= firstIdeograph
}

// isWord reports whether the characters from i to j are in the dictionary, as they are written or simplified.
func (run *chineseRun) isWord(s []byte, i, j int) bool {
	words := chineseWords()
	return words.has(s[run.at[i]:run.at[j]]) || len(run.simplified) > 0 && words.has(run.simplified[run.simplifiedAt[i]:run.simplifiedAt[j]])
}

// measure finds the best cut, from right to left. The longer of equally probable words wins. simplify says whether traditional characters
// are looked up in their simplified form, too.
func (run *chineseRun) measure(s []byte, start, end int, simplify bool) {
	run.at = run.at[:0]
	for i := start; i < end; {
		run.at = append(run.at, i)
		_, size := utf8.DecodeRune(s[i:end])
		i += size
	}
	n := len(run.at)
	run.at = append(run.at, end)
	if run.simplified = run.simplified[:0]; simplify {
		run.simplify(s[start:end])
	}
	if cap(run.best) <= n {
		run.best, run.choice = make([]float64, n+1, 2*n+1), make([]int, n+1, 2*n+1)
	}
	run.best, run.choice = run.best[:n+1], run.choice[:n+1]
	run.best[n], run.choice[n] = 0, n
	for i := n - 1; i >= 0; i-- {
		run.choice[i] = 0
		run.choose(i, s, run.at)
		if len(run.simplified) > 0 {
			run.choose(i, run.simplified, run.simplifiedAt)
		}
		if run.choice[i] == 0 {
			run.best[i], run.choice[i] = run.best[i+1]-logTotal, i+1
		}
	}
}

// choose looks for words of the dictionary from character i on and keeps the one that begins the most probable segmentation. offsets
// has the offsets of the characters. choice is 0 as long as no word was found.
func (run *chineseRun) choose(i int, s []byte, offsets []int) {
	at := chineseWords().start
	for j := i; j < len(offsets)-1 && advance(&at, s[offsets[j]:offsets[j+1]]); j++ {
		frequency, ok := at.Value()
		if !ok {
			continue
		}
		p := logFrequency(frequency) - logTotal + run.best[j+1]
		if run.choice[i] == 0 || p > run.best[i] || p == run.best[i] && j+1 > run.choice[i] {
			run.best[i], run.choice[i] = p, j+1
		}
	}
}

// simplify makes the simplified form of a run. It stays empty where no character has another one.
func (run *chineseRun) simplify(s []byte) {
	forms := simplifiedForms()
	differs := false
	run.simplifiedAt = run.simplifiedAt[:0]
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRune(s[i:])
		i += size
		run.simplifiedAt = append(run.simplifiedAt, len(run.simplified))
		switch k := int(r) - firstIdeograph; {
		case k >= len(forms):
			if form, ok := chineseVariants()[r]; ok {
				r, differs = form, true
			}
		case k >= 0 && forms[k] != 0:
			r, differs = forms[k], true
		}
		run.simplified = utf8.AppendRune(run.simplified, r)
	}
	run.simplifiedAt = append(run.simplifiedAt, len(run.simplified))
	if !differs {
		run.simplified = run.simplified[:0]
	}
}

const firstIdeograph, lastIdeograph = 0x3400, 0x9fff // of the basic plane

// simplifiedForms are the simplified forms of the ideographs of the basic plane; 0 where a character has no other one.
var simplifiedForms = sync.OnceValue(func() []rune {
	forms := make([]rune, lastIdeograph-firstIdeograph+1)
	for from, to := range chineseVariants() {
		if firstIdeograph <= from && from <= lastIdeograph {
			forms[from-firstIdeograph] = to
		}
	}
	return forms
})
