package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/segment/rowlist"
)

// Column holds the values of one field and maps both ways. Numbers and strings have ordinals, which ascend with the value or the
// normalised bytes. Bitmaps and bytes that it returns are valid until the Reader is closed.
type Column struct {
	blocks      *blocks
	data        []byte
	parts       [columnParts][]byte
	right       atomic.Uint32 // a bit a part whose blocks were found right
	checksum    uint64
	rows        int
	null, empty rowlist.List

	numbers    []byte // float64 nearest to them
	rests      []byte // what they have above these, 2 bytes each; empty: nothing
	numberRows inverse
	rowNumbers forward

	strings    stringList
	originals  stringList // n 0: all as normalised
	stringRows inverse
	rowStrings forward
	infix      *infixIndex // nil: none

	sums atomic.Uint32 // what SumsNumbers has found
}

// stringList is a list of strings in a part of a column: n+1 offsets of 4 bytes, then the text.
type stringList struct {
	n       int
	offsets []byte
	text    []byte
}

// get returns string i, or nil if it does not exist or its offsets are damaged. The result aliases the file and cannot be appended
// to.
func (s *stringList) get(i int) []byte {
	if uint(i) >= uint(s.n) {
		return nil
	}
	from, to := binary.LittleEndian.Uint32(s.offsets[4*i:]), binary.LittleEndian.Uint32(s.offsets[4*i+4:])
	if from > to || uint64(to) > uint64(len(s.text)) {
		return nil
	}
	return s.text[from:to:to]
}

func openStrings(p []byte, n int) (stringList, bool) {
	if n == 0 || len(p) == 0 {
		return stringList{}, n == 0
	}
	if uint64(len(p)) < 4*(uint64(n)+1) {
		return stringList{}, false
	}
	return stringList{n: n, offsets: p[:4*(n+1)], text: p[4*(n+1):]}, true
}

// openColumn reads the head of a column of a segment with the given number of rows.
func openColumn(b *blocks, data []byte, checksum uint64, rows int) (*Column, error) {
	le := binary.LittleEndian
	if len(data) < columnHeaderBytes {
		return nil, fmt.Errorf("a column of %d bytes", len(data))
	}
	b.touch(data[:columnHeaderBytes])
	if n := le.Uint32(data); uint64(n) != uint64(rows) {
		return nil, fmt.Errorf("a column of %d rows among %d", n, rows)
	}
	numbers, strings := int(le.Uint32(data[4:])), int(le.Uint32(data[8:]))
	var parts [columnParts][]byte
	for i := range parts {
		from, to := le.Uint32(data[12+4*i:]), le.Uint32(data[16+4*i:])
		if i == partRests && to == 0 { // columns of up to format 3 end before it
			break
		}
		if from > to || uint64(to) > uint64(len(data)) {
			return nil, fmt.Errorf("part %d of a column is not inside it", i)
		}
		parts[i] = data[from:to]
	}
	c := &Column{blocks: b, data: data, parts: parts, checksum: checksum, rows: rows, numbers: parts[partNumbers]}
	c.need(partNull)
	c.need(partEmpty)
	if n := len(parts[partRests]); n > 0 {
		if c.rests = parts[partRests]; n < 2*numbers {
			return nil, fmt.Errorf("a column of %d numbers has %d bytes of their rests", numbers, n)
		}
	}
	c.numbers = c.numbers[:min(len(c.numbers), 8*numbers)]
	if len(c.numbers) != 8*numbers {
		return nil, fmt.Errorf("a column of %d numbers has %d bytes of them", numbers, len(c.numbers))
	}
	ok := true
	check := func(fine bool) { ok = ok && fine }
	var fine bool
	c.null, fine = openCountedRows(parts[partNull])
	check(fine)
	c.empty, fine = openCountedRows(parts[partEmpty])
	check(fine)
	c.numberRows, fine = openInverse(b, data, parts[partNumberRows], numbers)
	check(fine)
	c.rowNumbers, fine = openForward(b, parts[partRowNumbers], rows, numbers)
	check(fine)
	c.strings, fine = openStrings(parts[partStrings], strings)
	check(fine)
	if len(parts[partOriginals]) > 0 {
		c.originals, fine = openStrings(parts[partOriginals], strings)
		check(fine)
	}
	c.stringRows, fine = openInverse(b, data, parts[partStringRows], strings)
	check(fine)
	c.rowStrings, fine = openForward(b, parts[partRowStrings], rows, strings)
	check(fine)
	c.numberRows.planes, c.stringRows.planes = c.rowNumbers.bits, c.rowStrings.bits
	if !ok {
		return nil, fmt.Errorf("a part of a column is too short for its counts")
	}
	return c, nil
}

// need makes sure that a part is as it was written.
func (c *Column) need(part int) {
	if c.right.Load()>>part&1 == 0 {
		c.check(part)
	}
}

func (c *Column) check(part int) {
	c.blocks.touch(c.parts[part])
	switch {
	case part == partNumberRows && c.numberRows.planes.n > 0:
		c.need(partRowNumbers)
	case part == partStringRows && c.stringRows.planes.n > 0:
		c.need(partRowStrings)
	}
	c.right.Or(1 << part)
}

// openCountedRows reads "u32 count, u32 length << 1 | code, row list", and returns false if p is not valid. Empty p stands for no
// rows. The caller has verified the blocks of p.
func openCountedRows(p []byte) (rowlist.List, bool) {
	if len(p) == 0 {
		return rowlist.List{}, true
	}
	if len(p) < 8 {
		return rowlist.List{}, false
	}
	h := binary.LittleEndian.Uint32(p[4:])
	l := rowlist.List{Count: int(binary.LittleEndian.Uint32(p)), Code: int(h & 1)}
	if p = p[8:]; uint64(h>>1) > uint64(len(p)) {
		return rowlist.List{}, false
	}
	l.P = p[:h>>1]
	return l, l.Code == rowlist.Roaring || l.Count <= len(l.P)
}

// Null returns the rows with a null value; never nil, shared.
func (c *Column) Null() *roaring.Bitmap { return c.null.Bitmap() }

// Empty returns the rows with "", [] or {}; never nil, shared.
func (c *Column) Empty() *roaring.Bitmap { return c.empty.Bitmap() }

// Numbers returns how many distinct numbers there are.
func (c *Column) Numbers() int { return len(c.numbers) / 8 }

// Number returns the value of an ordinal.
func (c *Column) Number(ord int) numeric.Value {
	c.need(partNumbers)
	v := numeric.Value{Float: c.float(ord)}
	if len(c.rests) > 0 {
		v.Rest = c.rest(ord)
	}
	return v
}

func (c *Column) float(ord int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(c.numbers[8*ord:]))
}

func (c *Column) rest(ord int) int16 {
	c.need(partRests)
	return int16(binary.LittleEndian.Uint16(c.rests[2*ord:]))
}

// NumbersAt appends the values of ordinals. All must be below Numbers().
func (c *Column) NumbersAt(dst []numeric.Value, ords []uint32) []numeric.Value {
	c.need(partNumbers)
	n := len(dst)
	dst = slices.Grow(dst, len(ords))[:n+len(ords)]
	values, numbers := dst[n:], c.numbers
	for i, ord := range ords {
		p := 8 * int(ord)
		values[i] = numeric.Value{Float: math.Float64frombits(binary.LittleEndian.Uint64(numbers[p : p+8]))}
	}
	if len(c.rests) > 0 {
		for i, ord := range ords {
			values[i].Rest = c.rest(int(ord))
		}
	}
	return dst
}

// SearchNumber returns the first ordinal with a value ≥ x, or Numbers().
func (c *Column) SearchNumber(x numeric.Value) int {
	c.need(partNumbers)
	n := c.Numbers()
	ord := sort.Search(n, func(i int) bool { return c.float(i) >= x.Float })
	if len(c.rests) == 0 {
		if x.Rest > 0 && ord < n && c.float(ord) == x.Float {
			ord++
		}
		return ord
	}
	return ord + sort.Search(n-ord, func(i int) bool { return c.Number(ord+i).Compare(x) >= 0 })
}

// Large reports whether a number is so large that integers of its size may not be exact in float64.
func (c *Column) Large() bool {
	n := c.Numbers()
	return n > 0 && max(-c.Number(0).Float, c.Number(n-1).Float) >= 1<<53
}

// NumberCount returns how many rows have the number.
func (c *Column) NumberCount(ord int) int {
	c.need(partNumberRows)
	return c.numberRows.count(ord)
}

// NumberCounts sets counts[i] to how many rows have the number lo + i, for ordinals below Numbers(). StringCounts likewise.
func (c *Column) NumberCounts(counts []uint32, lo int) {
	c.need(partNumberRows)
	c.numberRows.allCounts(counts, lo)
}

func (c *Column) StringCounts(counts []uint32, lo int) {
	c.need(partStringRows)
	c.stringRows.allCounts(counts, lo)
}

// RepeatedNumbers appends the ordinals of the numbers that several rows have.
func (c *Column) RepeatedNumbers(dst []uint32) []uint32 {
	c.need(partNumberRows)
	return c.numberRows.repeated(dst)
}

// AddNumberRows adds the rows with an ordinal in [lo, hi).
func (c *Column) AddNumberRows(dst *roaring.Bitmap, lo, hi int) {
	c.need(partNumberRows)
	c.numberRows.addRows(dst, c.rows, lo, hi)
}

// MarkNumbers sets the bits of the rows with an ordinal in [lo, hi), 64 a word.
func (c *Column) MarkNumbers(bits []uint64, lo, hi int) {
	c.need(partNumberRows)
	c.numberRows.markAll(bits, lo, hi)
}

// AddNumberRowsAmong adds those of some rows that have an ordinal. It does not copy the rows of a number that many rows have.
func (c *Column) AddNumberRowsAmong(dst *roaring.Bitmap, ord int, among *roaring.Bitmap) {
	c.need(partNumberRows)
	c.numberRows.addAmong(dst, ord, among)
}

// NumberEntries returns the number of entries (ordinal, row) for the ordinals in [lo, hi). Ordinals with a bitmap, because they have
// many rows, do not count. It is 0 if the ordinals of rows are in planes, because MarkNumbers is fast then.
func (c *Column) NumberEntries(lo, hi int) int {
	c.need(partNumberRows)
	return c.numberRows.entries(lo, hi)
}

// StringEntries is NumberEntries for strings.
func (c *Column) StringEntries(lo, hi int) int {
	c.need(partStringRows)
	return c.stringRows.entries(lo, hi)
}

// NumberFrom returns the first ordinal whose entries, counted as NumberEntries does, begin with the n-th or a later one.
func (c *Column) NumberFrom(n int) int {
	c.need(partNumberRows)
	return c.numberRows.from(n)
}

// MarkNumberRows sets the bit of each row that NumberEntries counts. Bits has one for each row of the segment.
func (c *Column) MarkNumberRows(bits []uint64, lo, hi int) {
	c.need(partNumberRows)
	if lo, hi = max(lo, 0), min(hi, c.numberRows.ords); lo < hi {
		from, to := c.numberRows.span(lo, hi)
		c.numberRows.mark(bits, from, to)
	}
}

// MarkFrequentNumberRows sets the bits of the rows of the ordinals in [lo, hi) that NumberEntries leaves out.
func (c *Column) MarkFrequentNumberRows(bits []uint64, lo, hi int) {
	c.need(partNumberRows)
	c.numberRows.markHeavy(bits, max(lo, 0), min(hi, c.numberRows.ords))
}

// CountNumberRows returns how many of some rows have the number.
func (c *Column) CountNumberRows(ord int, among *roaring.Bitmap) int {
	c.need(partNumberRows)
	return c.numberRows.countAmong(ord, among)
}

// RowNumbers appends the ascending distinct ordinals of a row's numbers.
func (c *Column) RowNumbers(dst []uint32, row Row) []uint32 {
	c.need(partRowNumbers)
	return c.rowNumbers.append(dst, row)
}

// EachNumber appends the ordinals of the numbers of each row, and for each of them the place of its row in rows. EachString likewise.
func (c *Column) EachNumber(ords, places, rows []uint32) (_, _ []uint32) {
	c.need(partRowNumbers)
	return c.rowNumbers.each(ords, places, rows, c.Numbers())
}

func (c *Column) EachString(ords, places, rows []uint32) (_, _ []uint32) {
	c.need(partRowStrings)
	return c.rowStrings.each(ords, places, rows, c.Strings())
}

// RowsWithNumbers appends those of some rows that have a number with an ordinal in [lo, hi), 0 ≤ lo ≤ hi ≤ Numbers(). RowsWithStrings
// does the same for strings.
func (c *Column) RowsWithNumbers(dst, rows []uint32, lo, hi int) []uint32 {
	c.need(partRowNumbers)
	return c.rowNumbers.with(dst, rows, uint32(lo), uint32(hi))
}

func (c *Column) RowsWithStrings(dst, rows []uint32, lo, hi int) []uint32 {
	c.need(partRowStrings)
	return c.rowStrings.with(dst, rows, uint32(lo), uint32(hi))
}

// ChooseByNumber appends the rows whose number has its bit set, by ordinal; bit Numbers() is for rows without a number. SingleNumbers
// must be true for the column. ChooseByString does the same for strings.
func (c *Column) ChooseByNumber(dst, rows []uint32, bits []uint64) []uint32 {
	c.need(partRowNumbers)
	return c.rowNumbers.chosen(dst, rows, bits, c.Numbers())
}

func (c *Column) ChooseByString(dst, rows []uint32, bits []uint64) []uint32 {
	c.need(partRowStrings)
	return c.rowStrings.chosen(dst, rows, bits, c.Strings())
}

// CountNumbers adds one to counts[ord] for each number of each row; CountStrings likewise.
// counts has a place for every ordinal.
func (c *Column) CountNumbers(counts, rows []uint32) {
	c.need(partRowNumbers)
	c.rowNumbers.count(counts, rows)
}

func (c *Column) CountStrings(counts, rows []uint32) {
	c.need(partRowStrings)
	c.rowStrings.count(counts, rows)
}

// Strings returns how many distinct strings there are.
func (c *Column) Strings() int { return c.strings.n }

// String returns the normalised string of an ordinal.
func (c *Column) String(ord int) []byte {
	c.need(partStrings)
	return c.strings.get(ord)
}

// Original returns the spelling that the lowest row with the string had when the segment was built.
func (c *Column) Original(ord int) []byte {
	c.need(partStrings)
	c.need(partOriginals)
	o := c.originals.get(ord)
	if len(o) > 0 && o[0] == variesMark[0] {
		o = o[1:]
	}
	if len(o) > 0 {
		return o
	}
	return c.strings.get(ord)
}

// original returns an original as it is stored.
func (c *Column) original(ord int) []byte {
	c.need(partOriginals)
	return c.originals.get(ord)
}

// variesMark is the first byte of the original of a string that some rows spell differently. No UTF-8 text begins with it.
var variesMark = []byte{0xff}

// Respelt reports whether a row may spell the string of an ordinal otherwise than it is normalised.
func (c *Column) Respelt(ord int) bool {
	c.need(partOriginals)
	return len(c.originals.get(ord)) > 0
}

// Varies reports whether rows with the string of an ordinal spell it in several ways.
func (c *Column) Varies(ord int) bool {
	c.need(partOriginals)
	o := c.originals.get(ord)
	return len(o) > 0 && o[0] == variesMark[0]
}

// SearchString returns the first ordinal with a value ≥ s, or Strings().
func (c *Column) SearchString(s []byte) int {
	c.need(partStrings)
	return sort.Search(c.strings.n, func(i int) bool { return bytes.Compare(c.strings.get(i), s) >= 0 })
}

// StringCount returns how many rows have the string.
func (c *Column) StringCount(ord int) int {
	c.need(partStringRows)
	return c.stringRows.count(ord)
}

// RepeatedStrings appends the ordinals of the strings that several rows have.
func (c *Column) RepeatedStrings(dst []uint32) []uint32 {
	c.need(partStringRows)
	return c.stringRows.repeated(dst)
}

// AddStringRows adds the rows with an ordinal in [lo, hi).
func (c *Column) AddStringRows(dst *roaring.Bitmap, lo, hi int) {
	c.need(partStringRows)
	c.stringRows.addRows(dst, c.rows, lo, hi)
}

// MarkStrings is MarkNumbers for strings.
func (c *Column) MarkStrings(bits []uint64, lo, hi int) {
	c.need(partStringRows)
	c.stringRows.markAll(bits, lo, hi)
}

// AddStringRowsAmong is AddNumberRowsAmong for strings.
func (c *Column) AddStringRowsAmong(dst *roaring.Bitmap, ord int, among *roaring.Bitmap) {
	c.need(partStringRows)
	c.stringRows.addAmong(dst, ord, among)
}

// CountStringRows returns how many of some rows have the string.
func (c *Column) CountStringRows(ord int, among *roaring.Bitmap) int {
	c.need(partStringRows)
	return c.stringRows.countAmong(ord, among)
}

// CountMarkedStringRows is CountStringRows with the rows also given as bits.
func (c *Column) CountMarkedStringRows(ord int, among *roaring.Bitmap, bits []uint64) int {
	c.need(partStringRows)
	return c.stringRows.countMarked(ord, among, bits)
}

// MarkedStringEffort estimates the cost of calling CountMarkedStringRows for the ordinals in [lo, hi), in looked-up rows.
func (c *Column) MarkedStringEffort(lo, hi int) int {
	c.need(partStringRows)
	return c.stringRows.effort(c.rows, lo, hi)
}

// NextMarkedNumber returns the first ordinal from ord on, 0 ≤ ord, that has a row whose bit is set in bits (64 per word), or
// Numbers() if there is none. It goes through the rows of the ordinals that it passes over.
func (c *Column) NextMarkedNumber(ord int, bits []uint64) int {
	c.need(partNumberRows)
	return c.numberRows.nextMarked(ord, bits)
}

// LastMarkedNumber is NextMarkedNumber for the last ordinal up to ord < Numbers(); −1: none has one.
func (c *Column) LastMarkedNumber(ord int, bits []uint64) int {
	c.need(partNumberRows)
	return c.numberRows.lastMarked(ord, bits)
}

// NextMarkedString is NextMarkedNumber for strings.
func (c *Column) NextMarkedString(ord int, bits []uint64) int {
	c.need(partStringRows)
	return c.stringRows.nextMarked(ord, bits)
}

// LastMarkedString is LastMarkedNumber for strings.
func (c *Column) LastMarkedString(ord int, bits []uint64) int {
	c.need(partStringRows)
	return c.stringRows.lastMarked(ord, bits)
}

// SingleStrings reports whether no row has several strings, which makes it quick to go from rows to strings.
func (c *Column) SingleStrings() bool { return c.rowStrings.kind == forwardSingle }

// SingleNumbers is SingleStrings for numbers.
func (c *Column) SingleNumbers() bool { return c.rowNumbers.kind == forwardSingle }

// RowStrings appends the ascending distinct ordinals of a row's strings.
func (c *Column) RowStrings(dst []uint32, row Row) []uint32 {
	c.need(partRowStrings)
	return c.rowStrings.append(dst, row)
}
