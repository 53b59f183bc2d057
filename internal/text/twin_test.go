package text

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// This file reads the compressed sources of the lists and lexicons that go generate compiles, to compare them with the compiled ones.

func unpacked(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile("dictionaries/" + name + ".zst")
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b, err := d.DecodeAll(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// listedWords returns the words of a list and the logarithms of their frequencies.
func listedWords(t testing.TB, name string) map[string]float64 {
	t.Helper()
	words := map[string]float64{}
	for line := range strings.Lines(string(unpacked(t, name))) {
		word, frequency, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		words[word] = 0
		if f, err := strconv.ParseUint(frequency, 10, 32); err == nil && f > 0 {
			words[word] = math.Log(float64(f))
		}
	}
	return words
}

// plainLexicon is an uncompiled lexicon, as written by lexicon.go of the dictionaries.
type plainLexicon struct {
	words      []string
	first      []int
	entries    []lexiconEntry
	contexts   []lexiconContext
	rights     int
	costs      []int16
	category   func(r rune) uint8
	categories []lexiconCategory
}

var plainLexicons = struct {
	sync.Mutex
	byName map[string]*plainLexicon
}{byName: map[string]*plainLexicon{}}

func readPlainLexicon(t testing.TB, name string) *plainLexicon {
	t.Helper()
	plainLexicons.Lock()
	defer plainLexicons.Unlock()
	if l := plainLexicons.byName[name]; l != nil {
		return l
	}
	r := bytes.NewReader(unpacked(t, name))
	read := func(v any) {
		if err := binary.Read(r, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	var counts [8]uint32
	read(&counts)
	text, words := make([]byte, counts[0]), make([]uint8, counts[1])
	read(text)
	read(words)
	l := &plainLexicon{words: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), first: []int{0}, rights: int(counts[5])}
	for _, n := range words {
		l.first = append(l.first, l.first[len(l.first)-1]+int(n))
	}
	classes, weights := make([]uint16, counts[2]), make([]int16, counts[2])
	read(classes)
	read(weights)
	for i := range classes {
		l.entries = append(l.entries, lexiconEntry{classes[i], weights[i]})
	}
	contexts := make([]uint16, 2*counts[3])
	read(contexts)
	for i := 0; i < len(contexts); i += 2 {
		l.contexts = append(l.contexts, lexiconContext{contexts[i], contexts[i+1]})
	}
	l.costs = make([]int16, counts[4]*counts[5])
	read(l.costs)
	for i := range l.costs {
		if i%l.rights > 0 {
			l.costs[i] += l.costs[i-1]
		}
	}
	type span struct {
		First    uint32
		Category uint8
	}
	spans := make([]span, counts[6])
	read(spans)
	l.category = func(r rune) uint8 {
		if r >= 1<<16 {
			r = 0
		}
		return spans[sort.Search(len(spans), func(i int) bool { return spans[i].First > uint32(r) })-1].Category
	}
	for range counts[7] {
		var head [2]uint8
		read(&head)
		c := lexiconCategory{always: head[0]&1 != 0, group: head[0]&2 != 0}
		for range head[1] {
			var part [2]uint16
			read(&part)
			c.entries = append(c.entries, lexiconEntry{part[0], int16(part[1])})
		}
		l.categories = append(l.categories, c)
	}
	if r.Len() > 0 {
		t.Fatalf("%s: %d bytes too many", name, r.Len())
	}
	plainLexicons.byName[name] = l
	return l
}

func (l *plainLexicon) index(word string) (int, bool) {
	i := sort.SearchStrings(l.words, word)
	return i, i < len(l.words) && l.words[i] == word
}

// TestCompiledLexicons compares the compiled lexicons with their sources.
func TestCompiledLexicons(t *testing.T) {
	for name, l := range lexicons() {
		plain := readPlainLexicon(t, name)
		if l.words.words.Words() != len(plain.words) || len(l.rows) != len(plain.costs)/plain.rights {
			t.Fatalf("%s: %d words, %d rows", name, l.words.words.Words(), len(l.rows))
		}
		for i, word := range plain.words {
			at := l.words.start
			if !advance(&at, []byte(word)) {
				t.Fatalf("%s lacks %q", name, word)
			}
			first, ok := at.Value()
			if !ok || int(first) != plain.first[i] {
				t.Fatalf("%s: %q has entry %d (%v), want %d", name, word, first, ok, plain.first[i])
			}
		}
		next := 1
		for i, want := range plain.entries {
			e, last := l.entry(uint64(i))
			isLast := i+1 == plain.first[next]
			if isLast {
				next++
			}
			if e != want || last != isLast {
				t.Fatalf("%s: entry %d is %v (%v), want %v (%v)", name, i, e, last, want, isLast)
			}
		}
		for i, want := range plain.contexts {
			if c := l.context(uint16(i)); c != want {
				t.Fatalf("%s: class %d has %v, want %v", name, i, c, want)
			}
		}
		for left := range l.rows {
			if got, want := l.costs(uint16(left)), plain.costs[left*plain.rights:][:plain.rights]; !equal(got, want) {
				t.Fatalf("%s: the costs of left context %d differ", name, left)
			}
		}
		for r := rune(0); r < 1<<17; r++ {
			if l.categoryOf(r) != plain.category(r) {
				t.Fatalf("%s: %U has category %d", name, r, l.categoryOf(r))
			}
		}
	}
}

func equal(a, b []int16) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestCompiledWords compares the compiled lists with their sources.
func TestCompiledWords(t *testing.T) {
	for name, l := range map[string]*wordList{"chinese": chineseWords(), "thai": thaiWords(), "khmer": khmerWords()} {
		words := listedWords(t, name)
		if l.words.Words() != len(words) {
			t.Errorf("%s: %d words, want %d", name, l.words.Words(), len(words))
		}
		for word, want := range words {
			at := l.start
			if !advance(&at, []byte(word)) {
				t.Fatalf("%s lacks %q", name, word)
			}
			if n, ok := at.Value(); !ok || logFrequency(n) != want {
				t.Fatalf("%s: %q has %d (%v), want the logarithm %v", name, word, n, ok, want)
			}
		}
	}
}
