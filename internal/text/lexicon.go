package text

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

//go:embed dictionaries/japanese.zst
var japaneseFile []byte

//go:embed dictionaries/korean.zst
var koreanFile []byte

// The lexicons take a second and dozens of megabytes to read, so only texts that need one have it read.
var (
	japaneseLexicon = sync.OnceValue(func() *lexicon { return readLexicon(japaneseFile) })
	koreanLexicon   = sync.OnceValue(func() *lexicon { return readLexicon(koreanFile) })
)

// A lexicon is the words of a language with what each costs in a sentence, and what it costs that one follows
// another. The cut of a text that costs least is the most probable one.
type lexicon struct {
	words      *wordList
	first      []uint32 // of each word, its first entry; at the end, the number of entries
	entries    []lexiconEntry
	contexts   []lexiconContext // of each class; class 0 is the beginning and the end of a text
	rights     int              // number of right contexts
	costs      []int16          // at left context × rights + right context: of a word with that left one after a word with that right one
	category   [1 << 16]uint8   // of the characters of the basic plane; the others have that of the first
	categories []lexiconCategory
	lattices   sync.Pool
}

type lexiconEntry struct {
	class  uint16
	weight int16
}

type lexiconContext struct{ left, right uint16 }

// lexiconCategory says what may be an unknown word that starts with a character of the category.
type lexiconCategory struct {
	always  bool // even where there are known words
	group   bool // the run of characters of the category, also without its last, not just the one character
	entries []lexiconEntry
}

// readLexicon reads the format of dictionaries/lexicon.go.
func readLexicon(file []byte) *lexicon {
	r, err := zstd.NewReader(bytes.NewReader(file), zstd.WithDecoderConcurrency(1))
	if err != nil {
		panic(damaged(err))
	}
	defer r.Close()
	take := func(n int) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			panic(damaged(err))
		}
		return b
	}
	var counts [8]int
	for i, head := 0, take(4*len(counts)); i < len(counts); i++ {
		counts[i] = int(binary.LittleEndian.Uint32(head[4*i:]))
	}
	u16 := func(b []byte, i int) uint16 { return binary.LittleEndian.Uint16(b[2*i:]) }

	text, words, entries, classes, lefts, ranges, categories := counts[0], counts[1], counts[2], counts[3], counts[4], counts[6], counts[7]
	l := &lexicon{rights: counts[5]}
	l.words = newWordList(take(text))
	l.first = make([]uint32, words+1)
	for i, n := range take(words) {
		l.first[i+1] = l.first[i] + uint32(n)
	}
	l.entries = make([]lexiconEntry, entries)
	for part, i := take(2*entries), 0; i < entries; i++ {
		l.entries[i].class = u16(part, i)
	}
	for part, i := take(2*entries), 0; i < entries; i++ {
		l.entries[i].weight = int16(u16(part, i))
	}
	l.contexts = make([]lexiconContext, classes)
	for part, i := take(4*classes), 0; i < classes; i++ {
		l.contexts[i] = lexiconContext{u16(part, 2*i), u16(part, 2*i+1)}
	}
	l.costs = make([]int16, lefts*l.rights)
	for row := l.costs; len(row) > 0; row = row[l.rights:] {
		cost := int16(0)
		for part, i := take(2*l.rights), 0; i < l.rights; i++ {
			cost += int16(u16(part, i))
			row[i] = cost
		}
	}
	const rangeSize = 5
	for part := take(rangeSize * ranges); len(part) > 0; part = part[rangeSize:] {
		end := len(l.category)
		if len(part) > rangeSize {
			end = min(end, int(binary.LittleEndian.Uint32(part[rangeSize:])))
		}
		for r := int(binary.LittleEndian.Uint32(part)); r < end; r++ {
			l.category[r] = part[4]
		}
	}
	l.categories = make([]lexiconCategory, categories)
	for i := range l.categories {
		head := take(2)
		c := lexiconCategory{always: head[0]&1 != 0, group: head[0]&2 != 0, entries: make([]lexiconEntry, head[1])}
		for j := range c.entries {
			part := take(4)
			c.entries[j] = lexiconEntry{u16(part, 0), int16(u16(part, 1))}
		}
		l.categories[i] = c
	}
	l.lattices.New = func() any {
		return &lattice{lexicon: l, known: make([]arrival, lefts)}
	}
	return l
}

func (l *lexicon) categoryOf(r rune) uint8 {
	if int(r) < len(l.category) {
		return l.category[r]
	}
	return l.category[0]
}

// segment cuts s[start:end] into the words that cost least together. Runs of ASCII letters and digits stay whole, as a
// query has them, and a long text is cut in parts.
func (l *lexicon) segment(s []byte, start, end int, g group, yield func(piece) bool) bool {
	const most = 2048 // characters
	lattice := l.lattices.Get().(*lattice)
	defer l.lattices.Put(lattice)
	for start < end {
		part := start
		for part < end && isAlphanumeric(s[part]) {
			part++
		}
		if part > start {
			if !yield(piece{start, part, Word, false, g}) {
				return false
			}
			start = part
			continue
		}
		for n := 0; part < end && n < most && !isAlphanumeric(s[part]); n++ {
			_, size := utf8.DecodeRune(s[part:end])
			part += size
		}
		from := start
		for _, stop := range lattice.cut(s[start:part]) {
			if !yield(piece{from, start + stop, Word, false, g}) {
				return false
			}
			from = start + stop
		}
		start = part
	}
	return true
}
