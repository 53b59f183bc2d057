package text

import (
	"bytes"
	_ "embed"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

//go:embed dictionaries/chinese.zst
var chineseFile []byte

//go:embed dictionaries/thai.zst
var thaiFile []byte

//go:embed dictionaries/khmer.zst
var khmerFile []byte

//go:embed dictionaries/variants.txt
var variantsFile string

// The dictionaries are read when the first text needs them.
var (
	chineseWords    = sync.OnceValue(func() *wordList { return readWords(chineseFile) })
	thaiWords       = sync.OnceValue(func() *wordList { return readWords(thaiFile) })
	khmerWords      = sync.OnceValue(func() *wordList { return readWords(khmerFile) })
	germanWords     = sync.OnceValue(func() *wordList { return newWordList(germanLines()) })
	chineseVariants = sync.OnceValue(func() map[rune]rune {
		m := make(map[rune]rune, len(variantsFile)/6)
		from := rune(0)
		for _, r := range variantsFile {
			switch {
			case r == '\n':
			case from == 0:
				from = r
			default:
				m[from] = r
				from = 0
			}
		}
		return m
	})
)

// wordList is a sorted list of words, searched from the left a character at a time.
type wordList struct {
	text   []byte    // the words, back to back
	starts []uint32  // of each word in text, and the end of the last
	logs   []float64 // logarithm of each word's frequency; nil if the list has none
	first  map[rune]wordRange
}

// wordRange is the words from lo to hi, which share their first depth bytes. Zero: no words.
type wordRange struct {
	lo, hi uint32
	depth  int
}

// readWords reads a compressed list: a word a line, sorted by bytes, each with a tab and its frequency if the list has them.
func readWords(file []byte) *wordList {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err == nil {
		defer d.Close()
		file, err = d.DecodeAll(file, nil)
	}
	if err != nil {
		panic(damaged(err))
	}
	return newWordList(file)
}

func damaged(err error) string { return "text: an embedded dictionary is damaged: " + err.Error() }

// newWordList makes a list of its lines, which it overwrites.
func newWordList(lines []byte) *wordList {
	n := bytes.Count(lines, []byte("\n"))
	l := &wordList{starts: make([]uint32, 0, n+1), first: make(map[rune]wordRange)}
	l.text = lines[:0] // words only move to the left
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, []byte("\n"))
		word, frequency, weighed := bytes.Cut(line, []byte("\t"))
		if weighed {
			if l.logs == nil {
				l.logs = make([]float64, 0, n)
			}
			ln := 0.0
			if f, err := strconv.ParseUint(string(frequency), 10, 32); err == nil && f > 0 {
				ln = math.Log(float64(f))
			}
			l.logs = append(l.logs, ln)
		}
		r, size := utf8.DecodeRune(word)
		i := uint32(len(l.starts))
		w, ok := l.first[r]
		if !ok {
			w = wordRange{lo: i, depth: size}
		}
		w.hi = i + 1
		l.first[r] = w
		l.starts = append(l.starts, uint32(len(l.text)))
		l.text = append(l.text, word...)
		lines = rest
	}
	l.starts = append(l.starts, uint32(len(l.text)))
	l.text = bytes.Clone(l.text)
	return l
}

// next narrows w to the words that go on with char.
func (l *wordList) next(w wordRange, char []byte) wordRange {
	compare := func(i uint32) int {
		rest := l.text[int(l.starts[i])+w.depth : l.starts[i+1]]
		return bytes.Compare(rest[:min(len(rest), len(char))], char)
	}
	lo, hi := w.lo, w.hi
	for lo < hi {
		if m := (lo + hi) / 2; compare(m) < 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	narrow := wordRange{lo: lo, depth: w.depth + len(char)}
	for hi = w.hi; lo < hi; {
		if m := (lo + hi) / 2; compare(m) <= 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	narrow.hi = lo
	return narrow
}

// word returns the index of the word that has just the first depth bytes.
func (l *wordList) word(w wordRange) (index uint32, ok bool) {
	return w.lo, w.lo < w.hi && int(l.starts[w.lo+1]-l.starts[w.lo]) == w.depth
}

// longest returns the length of the longest word that s starts with, or 0.
func (l *wordList) longest(s []byte) int {
	r, _ := utf8.DecodeRune(s)
	n := 0
	for w := l.first[r]; w.lo < w.hi; {
		if _, ok := l.word(w); ok {
			n = w.depth
		}
		if w.depth >= len(s) {
			break
		}
		_, size := utf8.DecodeRune(s[w.depth:])
		w = l.next(w, s[w.depth:w.depth+size])
	}
	return n
}

// has reports whether s is a word.
func (l *wordList) has(s []byte) bool {
	r, _ := utf8.DecodeRune(s)
	w := l.first[r]
	for w.lo < w.hi && w.depth < len(s) {
		_, size := utf8.DecodeRune(s[w.depth:])
		w = l.next(w, s[w.depth:w.depth+size])
	}
	_, ok := l.word(w)
	return ok && w.depth == len(s)
}
