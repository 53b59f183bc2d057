package segment

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"
	"strings"
)

// To crop a long text, svc needs all places of some words in it, but only the text around the best place. So texts that are stored in
// several pieces have a concordance: every word as formatting sees it, with its places, counted in words. A concordance has parts of
// about 1 MiB of text. The section conc has the parts, one after the other, each of them:
//
//	u64 fingerprint                 of how the text was cut into words
//	u32 word                        where in the text the part begins
//	u32 words, u32 forms, u32 marks
//	u32 bytes of the forms
//	u32 flags                       1: the last part of its text
//	marks × { u32 word, u32 offset in the text, u32 offset in the document as it is written, u16 how to read on }
//	every 32 forms { u32 offset among the forms, u32 offset in bytes among the places }
//	forms                           in byte order, each one
//	  u8 shared << 4 | more         bytes shared with the form before (none at the first of 32), and bytes that follow; 15: more of
//	                                them, whose number − 15 is in the next byte
//	  bytes
//	  uvarint count << 1 | cut      cut: the form is longer than that
//	  uvarint bits                  of its places; where there is one place, they are as wide as the highest of them may be
//	places                          of each form, in a stream of bits; those of every 32nd begin with a byte
//	8 bytes, 0
//
// Places are counted from the start of the part. Several places are stored as gaps (the first one from −1), less 1, in Golomb–Rice
// codes: the upper bits in unary, as ones and a zero, then the lower k bits, k = ⌊log₂(0.69 · words ⁄ count)⌋, or 0.
//
// A form that begins with the byte 1 is of inner words, each in the place of the word in which it ends. Several may end in a word.
//
// The section cdir has a u32 row, a u32 offset of the member in the document and a u64 end in conc for each part, ascending.
const (
	concordHeadBytes  = 32
	markEntryBytes    = 14
	blockEntryBytes   = 8
	concordEntryBytes = 16
	listPadding       = 8
	leastFormBytes    = 2 // of a form that is cut where the one before ends

	concordBlock = 32 // forms
	concordLast  = 1  // flag

	maxPartWords = 1 << 22 // of a text without marks

	innerMark = 1 // first byte of the forms of inner words; no word begins with it
)

// LongestConcordForm is how many bytes of a form a concordance keeps. Longer forms are not found in it.
const LongestConcordForm = 250

// InnerForm returns the form under which Find has the inner words with a form, or with prefix those that begin with it.
func InnerForm(form string) string { return string(rune(innerMark)) + form }

// CutInnerForm returns the form of inner words that Find passed, and reports false if the form is of words.
func CutInnerForm[T ~string | ~[]byte](form T) (T, bool) {
	if len(form) == 0 || form[0] != innerMark {
		return form, false
	}
	return form[1:], true
}

// Place is a place in a text that has a concordance.
type Place struct {
	Word   int    // number of the word that comes next
	Text   int    // bytes of the text before it
	Raw    int    // and of the document
	Resume uint16 // the state for reading the text from there, as passed to Mark
}

// concordanceReader finds concordances in their sections.
type concordanceReader struct {
	docs      *documentReader
	data, dir []byte
}

func (r *Reader) openConcordances() error {
	r.concordances = concordanceReader{docs: &r.docs, data: r.section(tagConcord), dir: r.section(tagConcordDir)}
	r.docs.concordances = &r.concordances
	if len(r.concordances.dir)%concordEntryBytes != 0 {
		return r.damaged(tagConcordDir, "%d bytes", len(r.concordances.dir))
	}
	return nil
}

func (c *concordanceReader) parts() int { return len(c.dir) / concordEntryBytes }

// entry returns what the directory says of a part.
func (c *concordanceReader) entry(part int) (row, start uint32, from, to uint64) {
	e := c.dir[part*concordEntryBytes:][:concordEntryBytes]
	c.docs.blocks.touch(e)
	if part > 0 {
		before := c.dir[part*concordEntryBytes-8:][:8]
		c.docs.blocks.touch(before)
		from = binary.LittleEndian.Uint64(before)
	}
	return binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:]), from, binary.LittleEndian.Uint64(e[8:])
}

// bytes returns a part, without verifying it.
func (c *concordanceReader) bytes(part int) ([]byte, error) {
	row, _, from, to := c.entry(part)
	if from > to || to > uint64(len(c.data)) {
		return nil, c.docs.damaged(tagConcordDir, "part %d, of row %d, is not inside", part, row)
	}
	return c.data[from:to:to], nil
}

// find returns the parts of the concordance of a member of a document; none where it has none.
func (c *concordanceReader) find(row uint32, start int) (first, end int) {
	key := uint64(row)<<32 | uint64(uint32(start))
	at := func(key uint64) int {
		return sort.Search(c.parts(), func(i int) bool {
			row, start, _, _ := c.entry(i)
			return uint64(row)<<32|uint64(start) >= key
		})
	}
	first = at(key)
	return first, first + sort.Search(c.parts()-first, func(i int) bool {
		row, start, _, _ := c.entry(first + i)
		return uint64(row)<<32|uint64(start) > key
	})
}

// Concordance has all words of a text with their places. It is valid as long as its reader is.
type Concordance struct {
	reader     *concordanceReader
	first, end int
}

// Parts returns of how many parts it is.
func (c *Concordance) Parts() int { return c.end - c.first }

// Open reads the head of a part.
func (c *Concordance) Open(part int, p *ConcordancePart) error {
	data, err := c.reader.bytes(c.first + part)
	if err != nil {
		return err
	}
	if err := p.open(c.reader.docs, data); err != nil {
		return err
	}
	if p.last != (part == c.Parts()-1) || part == 0 && p.First != 0 {
		return p.damaged("it is not part %d of %d", part, c.Parts())
	}
	return nil
}

// ConcordancePart has the words of a stretch of a text.
type ConcordancePart struct {
	Fingerprint uint64
	First       int // number of the first word in the text
	Words       int

	docs   *documentReader
	count  int // of the forms
	last   bool
	marks  []byte
	blocks []byte
	forms  []byte
	lists  []byte // with the padding
	form   []byte // scratch
}

// Damaged is the error of places that are not sound.
func (p *ConcordancePart) Damaged() error { return p.damaged("places that are not sound") }

func (p *ConcordancePart) damaged(format string, args ...any) error {
	return p.docs.damaged(tagConcord, format, args...)
}

// open reads the head of a part, and verifies the blocks of its head, marks and block table. The forms and the places are verified
// when they are read. The buffer for forms is reused for the next part.
func (p *ConcordancePart) open(docs *documentReader, data []byte) error {
	*p = ConcordancePart{docs: docs, form: p.form}
	if p.form == nil {
		p.form = make([]byte, 0, LongestConcordForm)
	}
	if len(data) < concordHeadBytes+listPadding {
		return p.damaged("a part of %d bytes", len(data))
	}
	head := data[:concordHeadBytes]
	if err := docs.blocks.verify(head); err != nil {
		return err
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint32(head[at:])) }
	p.Fingerprint, p.First, p.Words, p.count = binary.LittleEndian.Uint64(head), number(8), number(12), number(16)
	marks, forms, flags := number(20), number(24), number(28)
	p.last = flags&concordLast != 0
	blocks := (p.count + concordBlock - 1) / concordBlock * blockEntryBytes
	rest := data[concordHeadBytes:]
	if marks < 1 || marks*markEntryBytes+blocks+forms+listPadding > len(rest) || leastFormBytes*p.count > forms || (p.count == 0) != (p.Words == 0) {
		return p.damaged("%d words, %d forms and %d marks in a part of %d bytes", p.Words, p.count, marks, len(data))
	}
	p.marks, rest = rest[:marks*markEntryBytes], rest[marks*markEntryBytes:]
	p.blocks, rest = rest[:blocks], rest[blocks:]
	p.forms, p.lists = rest[:forms:forms], rest[forms:]
	if err := docs.blocks.verify(p.blocks); err != nil {
		return err
	}
	return docs.blocks.verify(p.marks)
}

func (p *ConcordancePart) mark(i int) Place {
	e := p.marks[i*markEntryBytes:]
	return Place{int(binary.LittleEndian.Uint32(e)), int(binary.LittleEndian.Uint32(e[4:])), int(binary.LittleEndian.Uint32(e[8:])), binary.LittleEndian.Uint16(e[12:])}
}

// Before returns the last mark of the part that is not after the word. If all are after it, it returns the first one.
func (p *ConcordancePart) Before(word int) Place {
	marks := len(p.marks) / markEntryBytes
	return p.mark(max(0, sort.Search(marks, func(i int) bool { return p.mark(i).Word > word })-1))
}

// block returns where the forms and places of a block begin.
func (p *ConcordancePart) block(i int) (form, list int) {
	e := p.blocks[i*blockEntryBytes:]
	return int(binary.LittleEndian.Uint32(e)), int(binary.LittleEndian.Uint32(e[4:]))
}

// formScan iterates over the forms, from the start of a block.
type formScan struct {
	p     *ConcordancePart
	n     int // number of the next form
	rest  []byte
	form  []byte
	cut   bool
	count int
	list  int // bit where its places begin
	width int // bits of them
	bad   bool
}

func (p *ConcordancePart) scan(block int) formScan {
	return formScan{p: p, n: block * concordBlock, form: p.form[:0]}
}

// next moves to the next form. It returns false at the end, and if the forms are damaged.
func (s *formScan) next() bool {
	p := s.p
	if s.n >= p.count || s.bad {
		return false
	}
	if s.n%concordBlock == 0 {
		from, list := p.block(s.n / concordBlock)
		end := len(p.forms)
		if s.n+concordBlock < p.count {
			end, _ = p.block(s.n/concordBlock + 1)
		}
		if s.bad = from > end || end > len(p.forms); s.bad {
			return false
		}
		s.rest = p.forms[from:end]
		p.docs.blocks.touch(s.rest)
		s.form, s.list, s.width = s.form[:0], 8*list, 0
	}
	s.n++
	rest := s.rest
	if s.bad = len(rest) < 2; s.bad {
		return false
	}
	shared, more := int(rest[0]>>4), int(rest[0]&15)
	rest = rest[1:]
	if shared == 15 {
		shared += int(rest[0])
		rest = rest[1:]
	}
	if more == 15 && len(rest) > 0 {
		more += int(rest[0])
		rest = rest[1:]
	}
	if s.bad = shared > len(s.form) || more > len(rest); s.bad {
		return false
	}
	s.form = append(s.form[:shared], rest[:more]...)
	rest = rest[more:]
	count, n := binary.Uvarint(rest)
	if s.bad = n <= 0 || count>>1 == 0 || count>>1 > uint64(p.Words); s.bad {
		return false
	}
	rest = rest[n:]
	s.cut, s.count = count&1 != 0, int(count>>1)
	s.list += s.width
	s.width = bits.Len(uint(p.Words - 1))
	if s.count > 1 {
		width, n := binary.Uvarint(rest)
		if s.bad = n <= 0 || width > 8*uint64(len(p.lists)); s.bad {
			return false
		}
		rest, s.width = rest[n:], int(width)
	}
	if s.bad = s.list+s.width > 8*(len(p.lists)-listPadding); s.bad {
		return false
	}
	s.rest = rest
	return true
}

// places returns those of the form.
func (s *formScan) places() Places {
	l := Places{p: s.p.lists, at: s.list, end: s.list + s.width, left: s.count, last: -1, words: s.p.Words}
	if s.count == 1 {
		l.low, l.one = s.width, true
	} else {
		l.low = int(riceBits(s.p.Words, s.count))
	}
	s.p.docs.blocks.touch(l.p[l.at/8 : (l.end+7)/8])
	return l
}

// first returns the first form of a block.
func (p *ConcordancePart) first(block int) []byte {
	s := p.scan(block)
	s.next()
	return s.form
}

// Find calls found for the form that equals key, or with prefix for all forms that begin with it. cut says that the stored form is
// shortened. Forms are valid during the call. Successive calls are fastest with ascending keys.
func (p *ConcordancePart) Find(key string, prefix bool, found func(form []byte, cut bool, places Places)) error {
	blocks := len(p.blocks) / blockEntryBytes
	// The first block that does not begin before the key. The key may be in the block before.
	block := sort.Search(blocks, func(i int) bool { return compareForm(p.first(i), key) >= 0 })
	s := p.scan(max(0, block-1))
	for s.next() {
		c := compareForm(s.form, key)
		if c > 0 && !(prefix && len(s.form) > len(key) && string(s.form[:len(key)]) == key) {
			break
		}
		if c >= 0 {
			found(s.form, s.cut, s.places())
		}
	}
	p.form = s.form[:0]
	if s.bad {
		return p.damaged("its forms are not sound behind the one with the number %d", s.n)
	}
	return nil
}

func compareForm(form []byte, key string) int {
	if string(form) == key {
		return 0
	}
	if string(form) < key {
		return -1
	}
	return 1
}

// riceBits returns how many low bits of the gaps are stored unencoded.
func riceBits(words, count int) uint {
	return uint(max(0, bits.Len(uint(words)*69/(100*uint(count)))-1))
}

// Places are the places of a form in a part, counted from its start.
type Places struct {
	p       []byte
	at, end int // bits
	left    int
	low     int // width of the lower bits
	one     bool
	last    int
	words   int
}

// Next returns the next place. It returns false at the end, and if the places are damaged, which Sound reports.
func (l *Places) Next() (int, bool) {
	if l.left <= 0 {
		return 0, false
	}
	if l.one {
		n := int(binary.LittleEndian.Uint64(l.p[l.at>>3:]) >> (l.at & 7) & (1<<l.low - 1))
		l.left, l.at = 0, l.end
		if n >= l.words {
			l.left = -1
			return 0, false
		}
		return n, true
	}
	high := 0
	for {
		shift := l.at & 7
		q := bits.TrailingZeros64(^(binary.LittleEndian.Uint64(l.p[l.at>>3:]) >> shift))
		l.at, high = l.at+q, high+q
		if q < 64-shift {
			break
		}
		if l.at >= l.end { // more ones may follow those that were read
			l.left = -1
			return 0, false
		}
	}
	l.at++ // the zero
	if l.at+l.low > l.end || high > l.words>>l.low {
		l.left = -1
		return 0, false
	}
	low := binary.LittleEndian.Uint64(l.p[l.at>>3:]) >> (l.at & 7) & (1<<l.low - 1)
	l.at += l.low
	l.left--
	l.last += 1 + (high<<l.low | int(low))
	if l.last >= l.words || l.left == 0 && l.at != l.end {
		l.left = -1
		return 0, false
	}
	return l.last, true
}

// Sound reports whether all places could be read so far.
func (l *Places) Sound() bool { return l.left >= 0 }

// verify checks all of a part: that its words are in one form each. They may be in several of inner words.
func (p *ConcordancePart) verify() error {
	words := make([]uint64, (p.Words+63)/64)
	s := p.scan(0)
	var before []byte
	cutBefore, forms, total := false, 0, 0
	for s.next() {
		if c := bytes.Compare(before, s.form); forms > 0 && (c > 0 || c == 0 && (cutBefore || !s.cut)) {
			return p.damaged("form %d is not behind the one before", forms)
		}
		before, cutBefore = append(before[:0], s.form...), s.cut
		forms++
		l := s.places()
		_, isInner := CutInnerForm(s.form)
		for {
			n, ok := l.Next()
			if !ok {
				break
			}
			if isInner {
				continue
			}
			if words[n/64]>>(n%64)&1 != 0 {
				return p.damaged("word %d has two forms", n)
			}
			words[n/64] |= 1 << (n % 64)
			total++
		}
		if !l.Sound() {
			return p.damaged("the places of form %d are not sound", forms-1)
		}
	}
	if s.bad || forms != p.count || total != p.Words {
		return p.damaged("%d of %d forms with %d of %d words", forms, p.count, total, p.Words)
	}
	last := Place{Word: p.First, Text: -1, Raw: -1}
	for i := range len(p.marks) / markEntryBytes {
		m := p.mark(i)
		if i == 0 && m.Word != p.First || m.Word < last.Word || m.Word > p.First+p.Words || m.Text <= last.Text || m.Raw <= last.Raw || m.Raw-last.Raw < m.Text-last.Text && i > 0 {
			return p.damaged("mark %d is not behind the one before", i)
		}
		last = m
	}
	return nil
}

// verifyConcordances reads the parts in file order. The parts of one text follow each other and number their words without a gap, and
// only the last one has the flag. The directory ascends by row and place in the document.
func (r *Reader) verifyConcordances() error {
	c := &r.concordances
	var p ConcordancePart
	var row, start uint32
	word, ended := 0, true
	end := uint64(0)
	for i := range c.parts() {
		nextRow, nextStart, from, to := c.entry(i)
		data, err := c.bytes(i)
		if err == nil {
			err = p.open(&r.docs, data)
		}
		if err == nil {
			err = p.verify()
		}
		if err != nil {
			return err
		}
		begins := nextRow != row || nextStart != start || i == 0
		if from != end || int(nextRow) >= r.rows || begins != ended || i > 0 && (nextRow < row || nextRow == row && nextStart < start) {
			return r.damaged(tagConcordDir, "part %d, of row %d, is out of order", i, nextRow)
		}
		if begins {
			word = 0
		}
		if p.First != word {
			return r.damaged(tagConcord, "part %d begins with word %d, %d expected", i, p.First, word)
		}
		row, start, end, ended, word = nextRow, nextStart, to, p.last, word+p.Words
	}
	if !ended || end != uint64(len(c.data)) {
		return r.damaged(tagConcordDir, "parts end at %d of %d, the last one of its text: %v", end, len(c.data), ended)
	}
	return nil
}

func (i *inspector) concordances() {
	c := &i.r.concordances
	i.t.List(c.parts(), inspectItems, func(part int) {
		data, err := c.bytes(part)
		var p ConcordancePart
		if err == nil {
			err = p.open(&i.r.docs, data)
		}
		if err != nil {
			i.t.Note("%v", err)
			return
		}
		s := p.scan(0)
		var forms []string
		for len(forms) < inspectItems && s.next() {
			forms = append(forms, string(s.form))
		}
		i.field(len(data), "part %d: fingerprint %016x, words %d to %d, %d marks, %d forms: %s", part, p.Fingerprint, p.First, p.First+p.Words, len(p.marks)/markEntryBytes, p.count, strings.Join(forms, " "))
	})
}

func (i *inspector) concordanceDir() {
	i.t.List(i.r.concordances.parts(), inspectItems, func(part int) {
		row, start, _, to := i.r.concordances.entry(part)
		i.field(concordEntryBytes, "row %d, member at %d: part %d ends at %d", row, start, part, to)
	})
}
