package text

import (
	"bytes"
	_ "embed"
	"slices"
	"sync"

	"github.com/blevesearch/vellum"

	"svc/segment/fst"
)

//go:generate go run -C dictionaries compile.go

//go:embed dictionaries/chinese.words
var chineseFile []byte

//go:embed dictionaries/thai.words
var thaiFile []byte

//go:embed dictionaries/khmer.words
var khmerFile []byte

//go:embed dictionaries/variants.txt
var variantsFile string

var (
	chineseWords    = sync.OnceValue(func() *wordList { return openWords(chineseFile) })
	thaiWords       = sync.OnceValue(func() *wordList { return openWords(thaiFile) })
	khmerWords      = sync.OnceValue(func() *wordList { return openWords(khmerFile) })
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

// wordList is an automaton of words, each with a number: its frequency in Chinese, its first entry in a lexicon. The word lists of
// the program are read in place, which takes neither time at the start nor heap memory.
type wordList struct {
	words fst.FST
	start fst.Cursor // before the words; it is copied
}

// openWords opens an automaton of vellum's format.
func openWords(file []byte) *wordList {
	words, err := fst.Open(file)
	if err != nil {
		panic("text: an embedded dictionary is damaged: " + err.Error())
	}
	l := &wordList{words: words}
	l.start = l.words.Cursor()
	return l
}

// compileWords makes the list of sorted words; all have the number 0.
func compileWords(words []string) *wordList {
	var b bytes.Buffer
	builder, err := vellum.New(&b, nil)
	for _, w := range words {
		if err == nil {
			err = builder.Insert([]byte(w), 0)
		}
	}
	if err == nil {
		err = builder.Close()
	}
	if err != nil { // of memory alone, or of words that are not sorted
		panic("text: a list of words cannot be compiled: " + err.Error())
	}
	return openWords(slices.Clip(b.Bytes()))
}

// longest returns the length of the longest word that s starts with, or 0.
func (l *wordList) longest(s []byte) int {
	n := 0
	at := l.start
	for i := 0; i < len(s) && at.Next(s[i]); i++ {
		if _, ok := at.Value(); ok {
			n = i + 1
		}
	}
	return n
}

// has reports whether s is a word.
func (l *wordList) has(s []byte) bool {
	at := l.start
	for _, b := range s {
		if !at.Next(b) {
			return false
		}
	}
	_, ok := at.Value()
	return ok
}

// advance goes on with each byte of a character.
func advance(at *fst.Cursor, char []byte) bool {
	for _, b := range char {
		if !at.Next(b) {
			return false
		}
	}
	return true
}
