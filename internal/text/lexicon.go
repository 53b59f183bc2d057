package text

import (
	_ "embed"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

//go:embed dictionaries/japanese.lexicon
var japaneseFile []byte

//go:embed dictionaries/korean.lexicon
var koreanFile []byte

// koreanParts has a byte for each entry of the Korean lexicon: of the first entry of a compound noun, bit n says that a part ends after n+1
// characters.
//
//go:embed dictionaries/korean.parts
var koreanParts string

var (
	japaneseLexicon = sync.OnceValue(func() *lexicon { return openLexicon(japaneseFile) })
	koreanLexicon   = sync.OnceValue(func() *lexicon {
		l := openLexicon(koreanFile)
		l.parts = koreanParts
		return l
	})
)

// A lexicon has the words of a language, the cost of each in a sentence, and the cost of one following another. The cut of a text
// with the least total cost is the most probable one. Words and entries are read in place from the program, in the format of
// dictionaries/compile.go. Of the costs, the rows used so far are on the heap.
type lexicon struct {
	words      *wordList
	classes    []byte // of each entry, uint16, with lastEntry at the last one of a word
	weights    []byte // of each entry, int16
	contexts   []byte // of each class, left and right, uint16; class 0 is the beginning and the end of a text
	parents    []byte // of each left context, uint16
	ends       []byte // of each left context, uint32: where its part of changes ends
	changes    []byte
	rights     int                       // number of right contexts
	rows       []atomic.Pointer[[]int16] // by left context: costs by right context; nil: not used yet
	category   [1 << 16]uint8            // of the characters of the basic plane; the others have that of the first
	categories []lexiconCategory
	parts      string // as koreanParts; empty for none
	lattices   sync.Pool
}

// lastEntry marks the class of the last entry of a word.
const lastEntry = 1 << 15

type lexiconEntry struct {
	class  uint16
	weight int16
}

type lexiconContext struct{ left, right uint16 }

// lexiconCategory describes the unknown words that may start with a character of the category.
type lexiconCategory struct {
	always  bool // even where there are known words
	group   bool // the run of characters of the category, also without its last, not just the one character
	entries []lexiconEntry
}

// openLexicon opens the parts of a file that compile.go wrote. They are used in place.
func openLexicon(file []byte) *lexicon {
	take := func(n int) []byte {
		part := file[:n:n]
		file = file[n:]
		return part
	}
	var counts [8]int
	for i, head := 0, take(4*len(counts)); i < len(counts); i++ {
		counts[i] = int(binary.LittleEndian.Uint32(head[4*i:]))
	}
	words, entries, classes, lefts, changes, ranges, categories := counts[0], counts[1], counts[2], counts[3], counts[5], counts[6], counts[7]
	l := &lexicon{
		words: openWords(take(words)), classes: take(2 * entries), weights: take(2 * entries), contexts: take(4 * classes),
		parents: take(2 * lefts), ends: take(4 * lefts), changes: take(changes),
		rights: counts[4], rows: make([]atomic.Pointer[[]int16], lefts),
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
			c.entries[j] = lexiconEntry{binary.LittleEndian.Uint16(part), int16(binary.LittleEndian.Uint16(part[2:]))}
		}
		l.categories[i] = c
	}
	l.lattices.New = func() any {
		return &lattice{lexicon: l, known: make([]arrival, lefts)}
	}
	return l
}

// entry returns the i-th entry, and whether it is the last one of its word.
func (l *lexicon) entry(i uint64) (e lexiconEntry, last bool) {
	class := binary.LittleEndian.Uint16(l.classes[2*i:])
	return lexiconEntry{class &^ lastEntry, int16(binary.LittleEndian.Uint16(l.weights[2*i:]))}, class&lastEntry != 0
}

func (l *lexicon) context(class uint16) lexiconContext {
	part := l.contexts[4*int(class):]
	return lexiconContext{binary.LittleEndian.Uint16(part), binary.LittleEndian.Uint16(part[2:])}
}

// costs returns the costs of a word with a left context, by the right context of the word before it.
func (l *lexicon) costs(left uint16) []int16 {
	if row := l.rows[left].Load(); row != nil {
		return *row
	}
	row := l.unpack(left)
	l.rows[left].CompareAndSwap(nil, &row) // others may have made the same
	return row
}

// unpack builds a row of costs from the nearest unpacked row above it, or from zeros.
func (l *lexicon) unpack(left uint16) []int16 {
	row := make([]int16, l.rights)
	way := []uint16{left}
	for {
		at := way[len(way)-1]
		parent := binary.LittleEndian.Uint16(l.parents[2*int(at):])
		if parent == at {
			break
		}
		if known := l.rows[parent].Load(); known != nil {
			copy(row, *known)
			break
		}
		way = append(way, parent)
	}
	for i := len(way) - 1; i >= 0; i-- {
		start, at := uint32(0), 4*int(way[i])
		if at > 0 {
			start = binary.LittleEndian.Uint32(l.ends[at-4:])
		}
		change(row, l.changes[start:binary.LittleEndian.Uint32(l.ends[at:])])
	}
	return row
}

// change makes a row from that of its parent.
func change(row []int16, changes []byte) {
	difference := int16(0)
	for len(changes) > 0 {
		same, n := binary.Uvarint(changes)
		more, m := binary.Varint(changes[n:])
		changes = changes[n+m:]
		if difference != 0 {
			for j := range row[:same] {
				row[j] += difference
			}
		}
		row = row[same:]
		difference += int16(more)
	}
	for j := range row {
		row[j] += difference
	}
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
		next := start
		for next < end && isAlphanumeric(s[next]) {
			next++
		}
		if next > start {
			if !yield(piece{start, next, Word, false, whole, g}) {
				return false
			}
			start = next
			continue
		}
		for n := 0; next < end && n < most && !isAlphanumeric(s[next]); n++ {
			_, size := utf8.DecodeRune(s[next:end])
			next += size
		}
		var c compounder
		from := start
		for _, stop := range lattice.cut(s[start:next]) {
			to := start + stop
			if !yield(piece{from, to, Word, false, whole, g}) || !c.next(l, s, from, to, g, yield) {
				return false
			}
			from = to
		}
		start = next
	}
	return true
}
