package text

import (
	"bytes"
	"math/bits"
	"strings"
	"unicode/utf8"

	"svc/segment/fst"
)

// An inner word is a word of a dictionary within longer words of a text. The index has it at the position of the word in which it ends, so
// that a query for it finds the text. Queries have no inner words.
//
//   - Chinese words of more than two characters are cut once more (chinese.go). Words of two characters across such a cut are inner words.
//     They have the entries of other words.
//   - Korean compound nouns are whole words. Their parts, and the compounds that some of the parts make up, are inner words. So are
//     compounds across two words: 서울대|학교 has 대학교. The dictionary lists the parts of each compound.
//   - Thai and Khmer words of the list may be made up of others, and the longest word may end too late: มีประวัติ|ศาสตร์ has
//     ประวัติศาสตร์. A word within one word, or across two, is an inner word if all of the rest is words, too.
//
// A single syllable is no inner word. Those of Korean, Thai and Khmer are parts: they have entries of their own (PartEntry), which match a
// query like longer words that begin with the query's. So a document with the word itself is the more exact one.

// innerKind says whether a piece of a text is an inner word.
type innerKind uint8

const (
	whole  innerKind = iota // no inner word: these pieces tile a text
	across                  // the end of the piece before the last one, and the beginning of the last
	part                    // it ends in the last piece and begins there, or in the one before
)

// partMark begins the entries of parts. No word begins with it, and no entry of a stop word or a spelling.
const partMark = "\x00\x01"

// PartEntry returns the entry of an inner word of Korean, Thai or Khmer, or the beginning of those that begin with a form.
func PartEntry(form string) string { return partMark + form }

// MayBePart reports whether a part may have a form, or begin with it.
func MayBePart(form string) bool {
	r, _ := utf8.DecodeRuneInString(form)
	return 0x1100 <= r && r <= 0x11ff || 0xe00 <= r && r <= 0xe7f || 0x1780 <= r && r <= 0x17ff
}

// addInner adds an inner word that ends in the token.
func (t *Token) addInner(a *Analyzer, sc *scratch, raw []byte, p piece) {
	if p.inner == across {
		t.Inner = a.inner(sc, raw, p)
	} else if form := a.partForm(sc, raw, p); len(form) > 0 {
		t.Parts = append(t.Parts, Inner{string(form), p.start, p.end})
	}
}

// partForm returns the form of a part, valid until the next one. It returns nil for a stop word, and if the piece has another part of this
// form.
func (a *Analyzer) partForm(sc *scratch, raw []byte, p piece) []byte {
	if a.IsStopWord(raw) {
		return nil
	}
	n := len(sc.parts)
	sc.parts = appendFold(append(sc.parts, 0), raw, p.group, nil)
	form := sc.parts[n+1:]
	for other := range bytes.SplitSeq(sc.parts[:n], []byte{0}) {
		if bytes.Equal(other, form) {
			sc.parts = sc.parts[:n]
			return nil
		}
	}
	return form
}

// maxCompound is the most parts that the dictionary gives for a word: it does not tell the ends of parts after the eighth character.
const maxCompound = 9

// compounder finds inner words of consecutive words of a lexicon.
type compounder struct {
	edges  [2 * maxCompound]int // where the parts of the last two words begin
	first  int                  // the first of the last word
	n      int
	behind fst.Cursor // the last word
	listed bool       // it is in the lexicon
}

// next yields the inner words that end in the next word, s[from:to].
func (c *compounder) next(l *lexicon, s []byte, from, to int, g group, yield func(piece) bool) bool {
	if l.parts == "" {
		return true
	}
	before, wasListed := c.behind, c.listed
	c.n = copy(c.edges[:], c.edges[c.first:c.n])
	c.first = c.n
	c.behind = l.words.start
	c.listed = advance(&c.behind, s[from:to])
	c.add(l, s, from, to)
	for i := range c.n {
		switch {
		case i > 0 && i < c.first: // a part of the word before
			before = l.words.start
			wasListed = advance(&before, s[c.edges[i]:from])
		case i == c.first:
			before, wasListed = l.words.start, c.n > i+1
		case i > c.first:
			before, wasListed = l.words.start, true
		}
		if wasListed && !c.from(l, s, i, before, to, g, yield) {
			return false
		}
	}
	return true
}

// from yields the inner words that begin with the i-th part, given the cursor behind the parts from that one on in the word before, if it
// is there.
func (c *compounder) from(l *lexicon, s []byte, i int, at fst.Cursor, to int, g group, yield func(piece) bool) bool {
	ends, chars := byte(0), 0 // where the parts up to the j-th end, in characters
	for j := i; j < c.n; j++ {
		end := to
		if j+1 < c.n {
			end = c.edges[j+1]
		}
		known := j < c.first || advance(&at, s[c.edges[j]:end])
		chars += utf8.RuneCount(s[c.edges[j]:end])
		if j >= c.first && chars > 1 && (i != c.first || j < c.n-1) && (j == i || known && l.isCompound(&at, ends)) &&
			!yield(piece{c.edges[i], end, Word, false, part, g}) {
			return false
		}
		if !known {
			break
		}
		ends |= byte(1 << (chars - 1))
	}
	return true
}

// add adds where the parts of the last word begin, s[from:to]: only its beginning if it is no compound.
func (c *compounder) add(l *lexicon, s []byte, from, to int) {
	c.edges[c.n] = from
	c.n++
	if !c.listed {
		return
	}
	entry, ok := c.behind.Value()
	if !ok {
		return
	}
	for ends := l.parts[entry]; ends != 0 && from < to; ends >>= 1 {
		_, n := utf8.DecodeRune(s[from:to])
		if from += n; ends&1 != 0 {
			c.edges[c.n] = from
			c.n++
		}
	}
}

// isCompound reports whether a word of the lexicon is a compound whose parts end in these places.
func (l *lexicon) isCompound(at *fst.Cursor, ends byte) bool {
	entry, ok := at.Value()
	return ok && ends != 0 && l.parts[entry] == ends
}

// maxParted is the longest word of a list, in bytes, whose inner words are found.
const maxParted = 512

// minTiled is the least bytes of a word that counts as a part of others: two letters of Thai or Khmer.
const minTiled = 6

// places is a set of places in a word.
type places [maxParted / 64]uint64

func (p *places) add(i int) {
	if i < maxParted {
		p[i/64] |= 1 << (i % 64)
	}
}

func (p *places) has(i int) bool { return i < maxParted && p[i/64]>>(i%64)&1 != 0 }

// next returns the first place from i on, or end if there is none before that.
func (p *places) next(i, end int) int {
	for ; i < min(end, maxParted); i = i&^63 + 64 {
		if left := p[i/64] >> (i % 64); left != 0 {
			return min(i+bits.TrailingZeros64(left), end)
		}
	}
	return end
}

// lister finds inner words of consecutive words of a list: words of several syllables, where all of the text before and behind them is
// words, too.
type lister struct {
	list   *wordList
	before int    // where the last word begins
	inside places // where words end that make up its beginning, one behind the other
	listed bool   // there is a last word
}

// longestOver is longest. It also adds where shorter words end.
func (l *wordList) longestOver(s []byte, shorter *places) int {
	n := 0
	at := l.start
	for i := 0; i < len(s) && at.Next(s[i]); i++ {
		if _, ok := at.Value(); ok {
			if n >= minTiled {
				shorter.add(n)
			}
			n = i + 1
		}
	}
	return n
}

// next yields the inner words that end in the next word, s[from:to], in which shorter words end at inside.
func (c *lister) next(s []byte, from, to int, inside places, g group, yield func(piece) bool) bool {
	if c.listed {
		for i := c.inside.next(0, from-c.before); i < from-c.before; i = c.inside.next(i+1, from-c.before) {
			if !c.from(s, c.before+i, from, to, nil, g, yield) {
				return false
			}
		}
	}
	for i := inside.next(0, to-from); i < to-from; i = inside.next(i+1, to-from) {
		if !c.yield(s, from, from+i, to, g, yield) {
			return false
		}
	}
	for i := inside.next(0, to-from); i < to-from; i = inside.next(i+1, to-from) {
		if !c.from(s, from+i, from, to, &inside, g, yield) {
			return false
		}
	}
	c.before, c.inside, c.listed = from, inside, true
	return true
}

// from yields the inner words that begin at i and end in s[from:to]. It adds where words end to inside, if that is not nil.
func (c *lister) from(s []byte, i, from, to int, inside *places, g group, yield func(piece) bool) bool {
	at := c.list.start
	for j := i; j < to && at.Next(s[j]); {
		j++
		if _, ok := at.Value(); !ok || j-i < minTiled {
			continue
		}
		if inside != nil && j < to {
			inside.add(j - from)
		}
		if j > from && !c.yield(s, i, j, to, g, yield) {
			return false
		}
	}
	return true
}

// yield yields a word, s[i:j], if it has several syllables and the text behind it up to the end of a word is words.
func (c *lister) yield(s []byte, i, j, to int, g group, yield func(piece) bool) bool {
	if !c.list.isLong(s[i:j]) || !c.list.tiles(s[j:to], false) {
		return true
	}
	return yield(piece{i, j, Word, false, part, g})
}

// tiles reports whether a text is words of the list one behind the other, at least two if several is set. It is none if it is long.
func (l *wordList) tiles(s []byte, several bool) bool {
	if len(s) == 0 || len(s) >= maxParted {
		return len(s) == 0
	}
	var reached places
	reached.add(0)
	for i := 0; i < len(s); i = reached.next(i+1, len(s)) {
		at := l.start
		for j := i; j < len(s) && at.Next(s[j]); {
			j++
			if _, ok := at.Value(); ok && j-i >= minTiled && (!several || j-i < len(s)) {
				reached.add(j)
			}
		}
	}
	return reached.has(len(s))
}

// isLong reports whether a word has several syllables, as far as its vowel signs or the words in it tell. Vowels without a sign do not
// count.
func (l *wordList) isLong(word []byte) bool {
	return vowels(word) > 1 || l.tiles(word, true)
}

// vowels counts the vowels of a Thai or Khmer word that have signs.
func vowels(word []byte) (n int) {
	open := false // the sign of a vowel before its consonant, which signs behind that may belong to
	consonants := 0
	cluster := false // the first consonant after it may begin a cluster
	for _, r := range string(word) {
		switch {
		case 'ก' <= r && r <= 'ฮ':
			if consonants++; consonants == 1 {
				cluster = strings.ContainsRune("กขคตปผพ", r)
			} else if consonants > 2 || !cluster || !strings.ContainsRune("รลว", r) {
				open = false
			}
		case 'เ' <= r && r <= 'โ': // parts of เ◌ีย and others
			open, consonants = true, 0
			n++
		case r == 'ใ', r == 'ไ':
			open = false
			n++
		case 'ะ' <= r && r <= '\u0e39':
			if !open {
				n++
			}
			open = open && r != 'ะ'
		case 0x17a3 <= r && r <= 0x17b3, 0x17b6 <= r && r <= 0x17c5:
			n++
		}
	}
	return n
}
