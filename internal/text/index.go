package text

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	maxWord     = 250   // bytes of a form; longer words take a position and are not indexed
	maxPosition = 65535 // the rest of a field is not indexed
	farApart    = 8     // distance over a hard separator, and between the values of a field
)

// Positions is the current position in one field of one document. The zero value starts a document.
type Positions struct {
	base    int // of the current visit
	last    int // of the last word indexed in this visit; base if there is none
	words   int
	used    Pipelines
	visited bool
}

// Visit begins a further visit of the field: after the first, the base moves on by 8. It is
// called once before the value's Index call, and alone for a visit that has no words.
func (p *Positions) Visit() {
	if p.visited && p.base <= maxPosition {
		p.base = p.last + farApart
		p.last = p.base
	}
	p.visited = true
}

// Words returns how many words have been indexed so far, without stop words.
func (p *Positions) Words() int { return p.words }

// Used returns the pipelines that the values went through so far.
func (p *Positions) Used() Pipelines { return p.used }

// counter counts the positions of one value.
type counter struct {
	at        int
	something bool // a piece stands before
	hard      bool // a hard separator since the last word
}

func (c *counter) separator(k Kind) {
	if c.something && k == Hard {
		c.hard = true
	}
}

// word moves to the next word and reports whether its position is kept.
func (c *counter) word() bool {
	if c.hard {
		c.at += farApart
	} else if c.something {
		c.at++
	}
	c.something, c.hard = true, false
	return c.at <= maxPosition
}

// stopMark is the first byte of the entries of stop words. No word begins with it, so no prefix and no typo leads to a stop word.
const stopMark = 0

// StopEntry returns the entry of a stop word in the index. Stop words have separate entries: only phrases, and queries that have no
// other words, use them.
func StopEntry(form string) string { return "\x00" + form }

// FormOf returns the form of an entry, including that of a stop word.
func FormOf(entry string) string {
	if IsStopEntry(entry) {
		return entry[1:]
	}
	return entry
}

// IsStopEntry reports whether an entry is a stop word's.
func IsStopEntry[T ~string | ~[]byte](entry T) bool { return len(entry) > 0 && entry[0] == stopMark }

// Index calls emit for every word of one value of a field with its position. For a stop word it emits its entry. If the spelling of a
// word differs from its form, it also emits the entry of the spelling. Index advances p. word is valid during the call only. ASCII
// text allocates nothing.
func (a *Analyzer) Index(p *Positions, s []byte, l Locales, emit func(word []byte, position uint16)) {
	p.visited = true
	if p.base > maxPosition || len(s) == 0 {
		return
	}
	a.begin(p)
	sc := scratches.Get().(*scratch)
	if isASCII(s) && !l.allow(deu) {
		p.used.add(Common)
		a.indexASCII(sc, p, s, emit)
	} else {
		a.indexAny(sc, p, s, l, emit)
	}
	scratches.Put(sc)
}

// begin adds the pipelines that all texts go through under the settings.
func (a *Analyzer) begin(p *Positions) {
	if len(a.stop) > 0 {
		p.used.add(StopWords)
	}
}

// indexAny indexes a text of any script. Index takes a shorter way for plain ones.
func (a *Analyzer) indexAny(sc *scratch, p *Positions, s []byte, l Locales, emit func(word []byte, position uint16)) {
	x := indexing{p: p, sc: sc, emit: emit, counter: counter{at: p.base}}
	a.walk(s, l, &p.used, func(piece piece) bool {
		raw := s[piece.start:piece.end]
		if piece.inner != whole {
			x.inner(a, raw, piece)
			return true
		}
		sc.parts = sc.parts[:0]
		kind := a.classify(sc, raw, piece, true)
		var with article
		if kind < Soft {
			sc.form, with = appendForm(sc.form[:0], raw, piece.group, nil)
		}
		if !x.takeBoth(kind, sc.form, with) {
			return false
		}
		if kind == Word {
			x.spell(raw, sc.form, piece.group)
		}
		return true
	})
}

// indexing is the indexing of one value.
type indexing struct {
	counter
	p    *Positions
	sc   *scratch
	emit func(word []byte, position uint16)
}

// takeBoth is take for a word that may have an article. It also takes the form with the article.
func (x *indexing) takeBoth(kind Kind, form []byte, with article) bool {
	if !x.take(kind, form) {
		return false
	}
	if with != "" && kind == Word && len(form)+len(with) <= maxWord {
		x.sc.key = with.appendWhole(x.sc.key[:0], form)
		x.emit(trimSpace(x.sc.key), uint16(x.at))
	}
	return true
}

// take takes the next piece, of a word its form. It returns false where no position is left.
func (x *indexing) take(kind Kind, form []byte) bool {
	if kind >= Soft {
		x.separator(kind)
		return true
	}
	if len(form) == 0 {
		x.something = true
		return true
	}
	if !x.word() {
		return false
	}
	word := trimSpace(form)
	switch {
	case len(word) == 0 || len(form) > maxWord:
	case kind == StopWord:
		x.emit(x.sc.entry(word), uint16(x.at))
	default:
		x.p.last = x.at
		x.p.words++
		x.emit(word, uint16(x.at))
	}
	return true
}

// inner indexes an inner word, at the position of the last piece.
func (x *indexing) inner(a *Analyzer, raw []byte, p piece) {
	if p.inner == part {
		x.part(a.partForm(x.sc, raw, p))
		return
	}
	kind := a.classify(x.sc, raw, p, true)
	x.sc.form = appendFold(x.sc.form[:0], raw, p.group, nil)
	switch {
	case len(x.sc.form) == 0 || len(x.sc.form) > maxWord:
	case kind == StopWord:
		x.emit(x.sc.entry(x.sc.form), uint16(x.at))
	default:
		x.emit(x.sc.form, uint16(x.at))
		x.spell(raw, x.sc.form, p.group)
	}
}

// part indexes an inner word of Korean, Thai or Khmer by its form, at the position of the last piece.
func (x *indexing) part(form []byte) {
	if len(form) > 0 && len(form) <= maxWord {
		x.sc.key = append(append(x.sc.key[:0], partMark...), form...)
		x.emit(x.sc.key, uint16(x.at))
	}
}

// indexASCII is indexAny for ASCII text, whose words need no script or language.
func (a *Analyzer) indexASCII(sc *scratch, p *Positions, s []byte, emit func(word []byte, position uint16)) {
	if cap(sc.form) < maxWord+1 {
		sc.form = make([]byte, 0, maxWord+1)
	}
	form := sc.form[:maxWord+1]
	c := counter{at: p.base}
	for i := 0; i < len(s); {
		start, n, kind, size := i, 0, Word, 0
		class := classWord
		if a.plain {
			i, n = foldPlain(form, s, i)
		}
	word:
		for ; i < len(s); i++ {
			b := s[i]
			class = a.class[b]
			switch class {
			case classWord:
				if n <= maxWord {
					form[n] = lower[b]
					n++
				}
			case classControl:
			case classSoft:
				kind, size = Soft, 1
				break word
			case classHard:
				kind, size = Hard, 1
				break word
			default:
				if size, kind = a.match(s[i:]); size > 0 {
					break word
				}
				if n <= maxWord {
					form[n] = lower[b]
					n++
				}
			}
		}
		if i > start && !a.indexASCIIWord(sc, p, &c, s[start:i], form[:n], false, emit) {
			return
		}
		if size == 0 {
			continue
		}
		raw := s[i : i+size]
		i += size
		if kind != Word && !(a.stopSeparators && a.isStopWord(sc, raw)) {
			c.separator(kind)
			continue
		}
		n = 0
		for _, b := range raw {
			if a.class[b] != classControl && n <= maxWord {
				form[n] = lower[b]
				n++
			}
		}
		if !a.indexASCIIWord(sc, p, &c, raw, form[:n], true, emit) {
			return
		}
	}
}

// foldPlain folds the letters and digits of an ASCII text from s[i] on, as long as eight bytes of s and of form are left. It returns where
// they end, and how many they are.
func foldPlain(form, s []byte, i int) (end, n int) {
	for i+8 <= len(s) && n+8 <= len(form) {
		x := binary.LittleEndian.Uint64(s[i:])
		binary.LittleEndian.PutUint64(form[n:], x|lowerBits)
		plain := bits.TrailingZeros64(others(x)) / 8
		i, n = i+plain, n+plain
		if plain < 8 {
			break
		}
	}
	return i, n
}

const (
	everyByte = 0x0101010101010101
	lowerCase = 'a' - 'A'
	lowerBits = lowerCase * everyByte
	highBits  = 0x80 * everyByte
)

// others returns the highest bit of each byte of x that is neither a letter nor a digit. All bytes are ASCII, so no sum carries.
func others(x uint64) uint64 {
	y := x | lowerBits
	letters := (y + (0x80-'a')*everyByte) &^ (y + (0x80-'z'-1)*everyByte)
	digits := (x + (0x80-'0')*everyByte) &^ (x + (0x80-'9'-1)*everyByte)
	return highBits &^ (letters | digits)
}

// indexASCIIWord indexes a word. form is its folded form, cut to maxWord+1 bytes.
func (a *Analyzer) indexASCIIWord(sc *scratch, p *Positions, c *counter, raw, form []byte, matched bool, emit func(word []byte, position uint16)) bool {
	if len(form) == 0 {
		c.something = true
		return true
	}
	if !c.word() {
		return false
	}
	word := trimSpace(form)
	switch {
	case len(word) == 0 || len(form) > maxWord:
	case len(a.stop) > 0 && (!matched || a.stopSeparators) && a.isStopWord(sc, raw):
		emit(sc.entry(word), uint16(c.at))
	default:
		p.last = c.at
		p.words++
		emit(word, uint16(c.at))
	}
	return true
}

// entry returns the entry of a stop word, valid until the next call.
func (sc *scratch) entry(form []byte) []byte {
	sc.key = append(append(sc.key[:0], stopMark), form...)
	return sc.key
}

func (a *Analyzer) isStopWord(sc *scratch, raw []byte) bool {
	sc.key = appendStopKey(sc.key[:0], raw)
	_, ok := a.stop[string(sc.key)]
	return ok
}

var lower = func() (t [utf8.RuneSelf]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] |= 0x20
		}
	}
	return t
}()
