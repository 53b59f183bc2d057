package segment

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"slices"

	"svc/internal/jsontext"
	"svc/internal/mapped"
)

// LongText is the maximum size in bytes of texts without a concordance: they are in one or two pieces. (A variable, like those that
// follow, so that tests can lower it.)
var LongText = pieceBytes

var (
	markBytes    = 4 << 10 // between marks, about
	partBytes    = 1 << 20 // of text
	concordShare = 50      // percent of its text that a concordance has at most
)

// concordances has the concordances of a builder until they are written.
type concordances struct {
	parts []concordancePart
	open  Concordancer // of the document that was started last

	members []member // of that document
	scanned bool     // for them

	spool *mapped.Spool // nil until there is a large document
	err   error         // of spool, the first one
}

// concordancePart is a part of a concordance as it is written: in memory, or from a place of the spool to another.
type concordancePart struct {
	row, start uint32
	storedPart
}

func (p *concordancePart) size() int64 { return int64(len(p.memory)) + p.to - p.from }

func (c *concordances) memoryBytes() int64 {
	n := int64(cap(c.parts)) * 48
	for i := range c.parts {
		n += int64(cap(c.parts[i].memory))
	}
	return n + c.open.memoryBytes()
}

// Concordancer collects the words of a text and makes its concordance.
type Concordancer struct {
	b     *Builder
	raw   []byte // of the document
	start int    // of the member in it
	from  int    // of the text, as it is written
	end   int
	text  int // bytes of the text, and of the raw one, up to the last mark
	at    int
	first int // among the parts of all

	fingerprint uint64
	begins      Place // where the part does
	marks       []Place
	words       []uint32 // by the word in the part: the number of its form
	inner       []innerWord
	innerForm   []byte // scratch
	forms       []partForm
	table       []formSlot // by hash
	arena       []byte     // of forms
	size        int        // bytes of the parts so far
	gone        bool       // it is not worth it

	order []orderedForm // scratch
	lists []uint32
	seed  maphash.Seed
	mix   uint64 // random, too
}

// formSlot is a place of a hash table.
type formSlot struct {
	key  uint64
	form uint32 // its number + 1; 0 for none
}

// innerWord is an inner word of a part: the word in which it ends, and the number of its form.
type innerWord struct{ word, form uint32 }

// partForm is a form of a part.
type partForm struct {
	from  uint32 // in the arena
	size  uint8
	cut   bool // it is longer
	count uint32
	hash  uint32
	next  uint32 // where its next place goes, while lists are made
}

// Concordance starts the concordance of a text of the open document, the string of one of its members. It returns nil if the document
// is stored such that a concordance is useless. fingerprint says how the text is cut into words. The Concordancer gets Word and Mark
// for all of the text and is then done. It belongs to the builder.
func (b *Builder) Concordance(key []byte, fingerprint uint64) *Concordancer {
	c := &b.concordances
	if !c.scanned {
		c.members, c.scanned = membersOf(b.raw), true
	}
	quoted := jsontext.AppendQuoted(nil, key)
	i := slices.IndexFunc(c.members, func(m member) bool { return bytes.Equal(m.key, quoted) })
	if i < 0 {
		return nil
	}
	m := c.members[i]
	from := m.start + len(m.key) + len(`:"`)
	if m.end-from <= LongText || b.raw[from-1] != '"' {
		return nil
	}
	w := &c.open
	*w = Concordancer{b: b, raw: b.raw, start: m.start, from: from, end: m.end - 1, at: from, first: len(c.parts), fingerprint: fingerprint, seed: w.seed, mix: w.mix,
		marks: w.marks[:0], words: w.words[:0], inner: w.inner[:0], innerForm: w.innerForm, forms: w.forms[:0], table: w.table, arena: w.arena[:0], order: w.order, lists: w.lists}
	if w.table == nil {
		w.seed, w.mix, w.table = maphash.MakeSeed(), rand.Uint64(), make([]formSlot, 1<<14)
	}
	w.begins = Place{Raw: from}
	w.begin()
	return w
}

// begin begins a part.
func (w *Concordancer) begin() {
	w.marks = append(w.marks[:0], w.begins)
	w.words, w.inner, w.forms, w.arena = w.words[:0], w.inner[:0], w.forms[:0], w.arena[:0]
	clear(w.table)
}

func (w *Concordancer) memoryBytes() int64 {
	return int64(cap(w.marks)*24 + 4*(cap(w.words)+cap(w.lists)) + 8*cap(w.inner) + 16*(cap(w.table)+cap(w.order)) + cap(w.forms)*24 + cap(w.arena))
}

// Word takes the next word, by its form.
func (w *Concordancer) Word(form []byte) {
	if w.gone {
		return
	}
	w.words = append(w.words, w.number(form))
	w.gone = len(w.words) > maxPartWords
}

// Inner takes an inner word that ends in the last word, by its form. A word may have several different ones.
func (w *Concordancer) Inner(form []byte) {
	if w.gone {
		return
	}
	w.innerForm = append(append(w.innerForm[:0], innerMark), form...)
	w.inner = append(w.inner, innerWord{uint32(len(w.words) - 1), w.number(w.innerForm)})
}

// number returns the number of a form, which may be a new one.
func (w *Concordancer) number(form []byte) uint32 {
	cut := len(form) > LongestConcordForm
	if cut {
		form = form[:LongestConcordForm]
	}
	key, hash, short := w.key(form)
	mask := uint32(len(w.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := &w.table[i]
		if slot.form == 0 {
			n := w.add(form, cut, hash)
			*slot = formSlot{key, n + 1}
			if 2*len(w.forms) > len(w.table) {
				w.grow()
			}
			return n
		}
		if slot.key == key && (short || w.is(&w.forms[slot.form-1], form, cut)) {
			return slot.form - 1
		}
	}
}

// key returns a key for comparing forms, and its hash. The key of a short form is the form.
func (w *Concordancer) key(form []byte) (key uint64, hash uint32, short bool) {
	const bytes = 7
	if len(form) > bytes {
		key = maphash.Bytes(w.seed, form) | 0xff<<56
		return key, uint32(key), false
	}
	if cap(form) > bytes {
		key = binary.LittleEndian.Uint64(form[:8]) & (1<<(8*len(form)) - 1)
	} else {
		for i, b := range form {
			key |= uint64(b) << (8 * i)
		}
	}
	key |= uint64(len(form)) << 56
	high, low := bits.Mul64(key^w.mix, 0x9e3779b97f4a7c15^w.mix<<1)
	return key, uint32(high ^ low), true
}

// add adds a form, and returns its number.
func (w *Concordancer) add(form []byte, cut bool, hash uint32) uint32 {
	w.forms = append(w.forms, partForm{from: uint32(len(w.arena)), size: uint8(len(form)), cut: cut, hash: hash})
	w.arena = append(w.arena, form...)
	return uint32(len(w.forms) - 1)
}

func (w *Concordancer) form(f *partForm) []byte { return w.arena[f.from : f.from+uint32(f.size)] }

// is reports whether f is a form.
func (w *Concordancer) is(f *partForm, form []byte, cut bool) bool {
	return f.cut == cut && bytes.Equal(w.form(f), form)
}

// grow doubles the hash table and inserts all forms again.
func (w *Concordancer) grow() {
	old := w.table
	w.table = make([]formSlot, 2*len(old))
	mask := uint32(len(w.table) - 1)
	for _, slot := range old {
		if slot.form == 0 {
			continue
		}
		i := w.forms[slot.form-1].hash & mask
		for w.table[i].form != 0 {
			i = (i + 1) & mask
		}
		w.table[i] = slot
	}
}

// Mark says that reading the text can start at a byte. how is the state that the reader needs.
func (w *Concordancer) Mark(at int, how uint16) {
	last := &w.marks[len(w.marks)-1]
	if at-last.Text < markBytes || w.gone {
		return
	}
	w.advance(at)
	p := Place{Word: w.begins.Word + len(w.words), Text: w.text, Raw: w.at, Resume: how}
	if w.gone = w.text != at || w.at >= w.end; w.gone {
		return
	}
	if at-w.begins.Text < partBytes {
		w.marks = append(w.marks, p)
		return
	}
	w.finish(at, false)
	w.begins = p
	w.begin()
}

// advance moves on in the raw text to a byte of the decoded text.
func (w *Concordancer) advance(text int) {
	var buf [12]byte
	for w.text < text && w.at < w.end {
		n := min(text-w.text, w.end-w.at)
		plain := bytes.IndexByte(w.raw[w.at:w.at+n], '\\')
		if plain < 0 {
			w.text, w.at = w.text+n, w.at+n
			continue
		}
		w.text, w.at = w.text+plain, w.at+plain
		size := escapeBytes(w.raw[w.at:w.end])
		w.text += len(jsontext.AppendUnescaped(buf[:0], w.raw[w.at:w.at+size]))
		w.at += size
	}
}

// escapeBytes returns how many bytes of the inside of a JSON string, which begins with a backslash, are one escaped character.
func escapeBytes(s []byte) int {
	if len(s) < 6 || s[1] != 'u' {
		return min(len(s), 2)
	}
	high, ok := jsontext.Hex4(s[2:])
	if !ok {
		return 2
	}
	if len(s) >= 12 && 0xd800 <= high && high < 0xdc00 && s[6] == '\\' && s[7] == 'u' {
		if low, ok := jsontext.Hex4(s[8:]); ok && 0xdc00 <= low && low < 0xe000 {
			return 12
		}
	}
	return 6
}

// End ends a text of the given size in bytes. It drops a concordance that is large compared with its text.
func (w *Concordancer) End(text int) {
	if !w.gone {
		w.advance(text)
		w.gone = w.text != text || w.at != w.end
	}
	w.finish(text, true)
	c := &w.b.concordances
	if w.gone {
		c.parts = c.parts[:w.first]
	}
	w.raw = nil
}

// finish writes the part down, which ends at a byte of the text.
func (w *Concordancer) finish(text int, last bool) {
	if w.gone {
		return
	}
	p := w.encode(last)
	if w.size += len(p); 100*w.size > concordShare*text {
		w.gone = true
		return
	}
	c := &w.b.concordances
	part := concordancePart{row: w.b.row, start: uint32(w.start)}
	if w.b.options.Spool == nil || len(w.raw) < spooledDocument {
		part.memory = p
	} else if part.storedPart = c.keep(w.b, p); c.err != nil {
		w.gone = true
		return
	}
	c.parts = append(c.parts, part)
}

// keep writes a part to the spool.
func (c *concordances) keep(b *Builder, p []byte) storedPart {
	if c.spool == nil && c.err == nil {
		c.spool, c.err = b.options.Spool()
	}
	if c.err != nil {
		return storedPart{}
	}
	from := c.spool.Len()
	_, c.err = c.spool.Write(p)
	return storedPart{from: from, to: c.spool.Len()}
}

// orderedForm is a form by its number, with its first bytes.
type orderedForm struct {
	head uint64
	form uint32
}

// sort lays the forms in order.
func (w *Concordancer) sort() {
	w.order = slices.Grow(w.order[:0], len(w.forms))
	for n := range w.forms {
		var head [8]byte
		copy(head[:], w.form(&w.forms[n]))
		w.order = append(w.order, orderedForm{binary.BigEndian.Uint64(head[:]), uint32(n)})
	}
	slices.SortFunc(w.order, func(a, b orderedForm) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		f, g := &w.forms[a.form], &w.forms[b.form]
		if c := bytes.Compare(w.form(f), w.form(g)); c != 0 || f.cut == g.cut {
			return c
		}
		if f.cut {
			return 1
		}
		return -1
	})
}

// encode returns the part.
func (w *Concordancer) encode(last bool) []byte {
	w.sort()
	for _, n := range w.words {
		w.forms[n].count++
	}
	for _, i := range w.inner {
		w.forms[i.form].count++
	}
	at := uint32(0) // all places are laid in the order of forms
	for _, o := range w.order {
		f := &w.forms[o.form]
		f.next = at
		at += f.count
	}
	w.lists = slices.Grow(w.lists[:0], int(at))[:at]
	place := func(word, form uint32) {
		f := &w.forms[form]
		w.lists[f.next] = word
		f.next++
	}
	for i, n := range w.words {
		place(uint32(i), n)
	}
	for _, i := range w.inner {
		place(i.word, i.form)
	}
	var forms, blocks []byte
	var lists bitWriter
	var before []byte
	for i, o := range w.order {
		f := &w.forms[o.form]
		form := w.form(f)
		if i%concordBlock == 0 {
			lists.align()
			blocks = binary.LittleEndian.AppendUint32(blocks, uint32(len(forms)))
			blocks = binary.LittleEndian.AppendUint32(blocks, uint32(len(lists.b)))
			before = nil
		}
		shared := 0
		for shared < min(len(before), len(form)) && before[shared] == form[shared] {
			shared++
		}
		forms = appendNibbles(forms, shared, len(form)-shared)
		forms = append(forms, form[shared:]...)
		count := uint64(f.count) << 1
		if f.cut {
			count |= 1
		}
		forms = binary.AppendUvarint(forms, count)
		list := w.lists[f.next-f.count : f.next]
		if size := lists.ordinals(list, len(w.words)); len(list) > 1 {
			forms = binary.AppendUvarint(forms, uint64(size))
		}
		before = form
	}
	lists.align()
	var flags uint32
	if last {
		flags = concordLast
	}
	p := make([]byte, 0, concordHeadBytes+len(w.marks)*markEntryBytes+len(blocks)+len(forms)+len(lists.b)+listPadding)
	p = binary.LittleEndian.AppendUint64(p, w.fingerprint)
	for _, n := range [...]uint32{uint32(w.begins.Word), uint32(len(w.words)), uint32(len(w.forms)), uint32(len(w.marks)), uint32(len(forms)), flags} {
		p = binary.LittleEndian.AppendUint32(p, n)
	}
	for _, m := range w.marks {
		p = binary.LittleEndian.AppendUint32(p, uint32(m.Word))
		p = binary.LittleEndian.AppendUint32(p, uint32(m.Text))
		p = binary.LittleEndian.AppendUint32(p, uint32(m.Raw))
		p = binary.LittleEndian.AppendUint16(p, m.Resume)
	}
	p = append(append(append(p, blocks...), forms...), lists.b...)
	return append(p, make([]byte, listPadding)...)
}

// appendNibbles appends two lengths: a byte with both, and those that do not fit.
func appendNibbles(dst []byte, a, b int) []byte {
	dst = append(dst, byte(min(a, 15))<<4|byte(min(b, 15)))
	for _, n := range [...]int{a, b} {
		if n >= 15 {
			dst = append(dst, byte(n-15)) // of a form up to LongestConcordForm
		}
	}
	return dst
}

// bitWriter writes numbers of any width, the lowest bits first.
type bitWriter struct {
	b    []byte
	last uint64
	n    uint // bits in last, fewer than 32
}

// put writes a number of at most 32 bits.
func (w *bitWriter) put(v uint64, width uint) {
	w.last |= v << w.n
	if w.n += width; w.n >= 32 {
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(w.last))
		w.last >>= 32
		w.n -= 32
	}
}

// align pads to the next byte.
func (w *bitWriter) align() {
	for w.n > 0 {
		w.b = append(w.b, byte(w.last))
		w.last >>= 8
		w.n -= min(w.n, 8)
	}
}

func (w *bitWriter) bits() int { return 8*len(w.b) + int(w.n) }

// ordinals writes ascending numbers below a bound, and returns how many bits they take.
func (w *bitWriter) ordinals(list []uint32, bound int) int {
	before := w.bits()
	if len(list) == 1 {
		w.put(uint64(list[0]), uint(bits.Len(uint(bound-1))))
		return w.bits() - before
	}
	k := riceBits(bound, len(list))
	last := -1
	for _, n := range list {
		gap := uint64(int(n) - last - 1)
		q, low := uint(gap>>k), gap&(1<<k-1)
		for q+1+k > 32 {
			ones := min(q, 32)
			w.put(1<<ones-1, ones)
			q -= ones
		}
		w.put(1<<q-1|low<<(q+1), q+1+k)
		last = int(n)
	}
	return w.bits() - before
}

// buildConcordances writes the parts in the order of the documents, from memory or from the spool.
func buildConcordances(_ context.Context, b *Builder, f *fileWriter) error {
	c := &b.concordances
	var spooled []byte
	if c.spool != nil && c.err == nil {
		spooled, c.err = c.spool.Bytes()
	}
	if c.err != nil || len(c.parts) == 0 {
		return c.err
	}
	f.begin(tagConcord, 0)
	for i := range c.parts {
		if p := &c.parts[i]; p.memory != nil {
			f.Write(p.memory)
		} else {
			f.Write(spooled[p.from:p.to])
		}
	}
	f.end()
	writeConcordanceDir(f, len(c.parts), func(i int) (row, start uint32, size int64) {
		p := &c.parts[i]
		return p.row, p.start, p.size()
	})
	return nil
}

// writeConcordanceDir writes an entry for each part. part returns its row, the start of its member and its size.
func writeConcordanceDir(f *fileWriter, n int, part func(i int) (row, start uint32, size int64)) {
	f.begin(tagConcordDir, 0)
	var entry [concordEntryBytes]byte
	end := int64(0)
	for i := range n {
		row, start, size := part(i)
		end += size
		binary.LittleEndian.PutUint32(entry[:], row)
		binary.LittleEndian.PutUint32(entry[4:], start)
		binary.LittleEndian.PutUint64(entry[8:], uint64(end))
		f.Write(entry[:])
	}
	f.end()
}

// mergeConcordances copies the concordances of the rows that stay. This is possible because documents in pieces are copied unchanged.
func (m *merger) mergeConcordances() error {
	type copied struct {
		row  uint32
		from *concordanceReader
		part int
	}
	var all []copied
	for i, l := range m.in {
		c := &l.concordances
		for part := range c.parts() {
			row, _, _, _ := c.entry(part)
			if int(row) >= len(m.rows[i]) {
				return l.damaged(tagConcordDir, "row %d of %d", row, l.rows)
			}
			if to := m.rows[i][row]; to != noRow {
				all = append(all, copied{to, c, part})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b copied) int { return int(int64(a.row) - int64(b.row)) })
	m.f.begin(tagConcord, 0)
	for _, p := range all {
		if err := m.check(); err != nil {
			return err
		}
		data, err := p.from.bytes(p.part)
		if err != nil {
			return err
		}
		m.f.Write(data)
	}
	m.f.end()
	writeConcordanceDir(m.f, len(all), func(i int) (row, start uint32, size int64) {
		p := all[i]
		_, start, from, to := p.from.entry(p.part)
		return p.row, start, int64(to - from)
	})
	return m.check()
}
