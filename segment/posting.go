package segment

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/mapped"
	"svc/segment/rowlist"
)

const (
	// directoryFields is from how many fields on a posting has a directory of
	// its fields; below, walking them is as quick.
	directoryFields = 8

	// unionRows is the number of rows, summed over several fields, from which a posting also holds the union of its rows:
	// searches for a word in all fields are far more frequent than in one.
	unionRows = 64

	postingAlign = 8 // of row lists in Roaring format, in the section
)

// Posting holds the occurrences of one word: rows and positions, field by field. The zero Posting has no fields.
type Posting struct {
	blocks  *blocks
	section []byte
	start   int // of the posting in the section
	first   int // of its first field, or of its directory
	fields  int
	union   rowlist.List // over all fields; empty when not stored
}

// scan reads numbers from a section and notes when they leave it.
type scan struct {
	b    *blocks // nil: p need not be checked
	p    []byte
	at   int
	sure int // the bytes from at up to here are as they were written
	bad  bool
}

// scanOf begins to read a section at an offset.
func scanOf(b *blocks, section []byte, at int) scan {
	s := scan{b: b, p: section, at: at, sure: at}
	if b == nil || b.sound.Load() && !mapped.PageByPage() {
		s.sure = len(section)
	}
	return s
}

// need verifies the next n bytes, or as many as there are.
func (s *scan) need(n int) {
	if s.at+n > s.sure {
		s.check(n)
	}
}

// check is the slow path of need. It verifies the blocks of the next n bytes and moves sure to the end of the
// last one, so that the next calls are quick.
func (s *scan) check(n int) {
	end := min(s.at+n, len(s.p))
	if s.b == nil || s.at >= end || end <= s.sure {
		return
	}
	s.b.touch(s.p[s.at:end])
	// A block that was touched is right to its end.
	s.sure = min((s.b.offset(s.p)+end-1)>>blockBits<<blockBits+blockBytes-s.b.offset(s.p), len(s.p))
}

// uvarint reads a number. Beyond the end, or in one of more than 64 bits, it sets bad and returns 0: callers
// check bad once, at the end.
func (s *scan) uvarint() uint64 {
	s.need(binary.MaxVarintLen64)
	if s.at < len(s.p) && s.p[s.at] < 0x80 {
		s.at++
		return uint64(s.p[s.at-1])
	}
	if s.at <= len(s.p) {
		if v, n := binary.Uvarint(s.p[s.at:]); n > 0 {
			s.at += n
			return v
		}
	}
	s.bad = true
	return 0
}

// skipRow skips the positions of one row.
func (s *scan) skipRow() {
	for {
		s.need(1)
		end := min(s.sure, len(s.p))
		s.at = skipRows(s.p[:end], s.at, 1)
		if s.at < end || end == len(s.p) || s.at > 0 && s.p[s.at-1]&endOfRow != 0 {
			return
		}
	}
}

// align skips padding up to a multiple of n in the section.
func (s *scan) align(n int) { s.at = (s.at + n - 1) / n * n }

// take returns the next n bytes.
func (s *scan) take(n uint64) []byte {
	if s.at > len(s.p) || n > uint64(len(s.p)-s.at) {
		s.bad = true
		return nil
	}
	s.need(int(n))
	p := s.p[s.at : s.at+int(n) : s.at+int(n)]
	s.at += int(n)
	return p
}

// rows reads "uvarint length << 1 | code, padding, bytes".
func (s *scan) rows(count uint64) rowlist.List {
	h := s.uvarint()
	l := rowlist.List{Code: int(h & 1), Count: int(count)}
	if l.Code == rowlist.Roaring {
		s.align(postingAlign)
	}
	l.P = s.take(h >> 1)
	if len(l.P) > mostGathered && s.b != nil {
		s.b.gatherRows(l.P)
	}
	if count > maxRows || l.Code == rowlist.Delta && count > uint64(len(l.P)) {
		s.bad = true
	}
	return l
}

// readPosting reads the posting that begins at an offset of a section. ok is
// false when the bytes there cannot be one.
func readPosting(b *blocks, section []byte, offset uint64) (p Posting, ok bool) {
	if offset >= uint64(len(section)) {
		return Posting{}, false
	}
	s := scanOf(b, section, int(offset))
	h := s.uvarint()
	fields := h >> 1
	if fields > 1<<16 {
		return Posting{}, false
	}
	p = Posting{blocks: b, section: section, start: int(offset), fields: int(fields)}
	if h&1 != 0 {
		p.union = s.rows(s.uvarint())
	}
	p.first = s.at
	if p.fields >= directoryFields {
		s.take(4 * fields)
	}
	if s.bad {
		return Posting{}, false
	}
	return p, true
}

// readField reads the part of a field at an offset and returns the offset behind it.
func (p *Posting) readField(at int) (FieldPosting, int) {
	s := scanOf(p.blocks, p.section, at)
	h := s.uvarint()
	f := FieldPosting{id: FieldID(h >> 1)}
	if s.bad || h>>1 > math.MaxUint16 {
		return FieldPosting{}, len(p.section)
	}
	if h&1 != 0 {
		begin := s.at
		s.uvarint()
		f.rows = rowlist.List{Code: rowlist.Delta, Count: 1, P: p.section[begin:s.at]}
		begin = s.at
		s.skipRow()
		f.positions = p.section[begin:s.at]
	} else {
		count := s.uvarint()
		positions := s.uvarint()
		f.rows = s.rows(count)
		f.positions = s.take(positions)
		if !s.bad {
			f.skips = skipBytes(int(count))
			s.bad = f.skips > len(f.positions)
		}
	}
	if s.bad {
		return FieldPosting{id: f.id}, len(p.section)
	}
	return f, s.at
}

// Fields returns in how many fields the word stands.
func (p Posting) Fields() int { return p.fields }

// Field returns the i-th field; they ascend by ID.
func (p Posting) Field(i int) FieldPosting {
	if i < 0 || i >= p.fields {
		return FieldPosting{}
	}
	at := p.first
	if p.fields >= directoryFields {
		at = p.start + int(binary.LittleEndian.Uint32(p.section[p.first+4*i:]))
		f, _ := p.readField(at)
		return f
	}
	for ; ; i-- {
		f, next := p.readField(at)
		if i == 0 {
			return f
		}
		at = next
	}
}

// Find returns the part in field f.
func (p Posting) Find(f FieldID) (FieldPosting, bool) {
	if p.fields >= directoryFields {
		i, ok := sort.Find(p.fields, func(i int) int { return int(f) - int(p.Field(i).id) })
		if !ok {
			return FieldPosting{}, false
		}
		return p.Field(i), true
	}
	at := p.first
	for range p.fields {
		fp, next := p.readField(at)
		if fp.id >= f {
			return fp, fp.id == f
		}
		at = next
	}
	return FieldPosting{}, false
}

// bitsPer: from one in so many rows on, a union is built as a bit set. Reading the bits of half a million rows takes as long as
// adding some hundred rows to a set one by one.
const bitsPer = 2048

// Union returns the rows of some postings in the fields that in reports (nil: all); the bitmap is the caller's.
func (r *Reader) Union(postings []Posting, in func(FieldID) bool) *roaring.Bitmap {
	n, lists := 0, 0
	eachList(postings, in, func(l rowlist.List) {
		n += l.Count
		lists++
	})
	if lists < 2 {
		b := roaring.New()
		eachList(postings, in, func(l rowlist.List) { b = rowlist.Flat(l.Bitmap()) })
		return b
	}
	if n < r.rows/bitsPer {
		buf := rowBuffers.Get().(*[]uint32)
		defer rowBuffers.Put(buf)
		rows := (*buf)[:0]
		eachList(postings, in, func(l rowlist.List) { rows = l.AppendTo(rows) })
		*buf = rows
		slices.Sort(rows)
		return rowlist.FromRows(slices.Compact(rows))
	}
	return setOf(r.rows, func(bits []uint64) { AddToBits(bits, postings, in) })
}

// AddToBits sets the bits of the rows of some postings, 64 a word, in the fields that in reports (nil: all); rows beyond are left out.
func AddToBits(bits []uint64, postings []Posting, in func(FieldID) bool) {
	eachList(postings, in, func(l rowlist.List) { l.AddToBits(bits) })
}

// eachList calls f with lists of rows. Their union is the rows of some postings in the fields for which in returns true (nil: all).
func eachList(postings []Posting, in func(FieldID) bool, f func(rowlist.List)) {
	for _, p := range postings {
		if in == nil && p.union.Count > 0 {
			f(p.union)
			continue
		}
		at := p.first
		if p.fields >= directoryFields {
			at += 4 * p.fields
		}
		for range p.fields {
			var field FieldPosting
			if field, at = p.readField(at); in == nil || in(field.id) {
				f(field.rows)
			}
		}
	}
}

// setOf returns the rows, of a segment with the given number of rows, whose bits mark sets.
func setOf(rows int, mark func(bits []uint64)) *roaring.Bitmap {
	bits := rowlist.TakeBits((rows + 63) / 64)
	defer bits.Release()
	mark(bits.Words)
	return rowlist.FromBits(bits.Words)
}

// Most returns an upper bound of the number of rows in all fields. A row in several fields may count several times.
func (p Posting) Most() int {
	if p.union.Count > 0 {
		return p.union.Count
	}
	n, at := 0, p.first
	if p.fields >= directoryFields {
		at += 4 * p.fields
	}
	for range p.fields {
		var f FieldPosting
		f, at = p.readField(at)
		n += f.Count()
	}
	return n
}

// Rows returns the rows of all fields. The bitmap is shared and must not be modified. It, and any bitmap computed from it, may use
// mapped memory, so both are valid until the Reader is closed.
func (p Posting) Rows() *roaring.Bitmap {
	switch {
	case p.union.Count > 0:
		return p.union.Bitmap()
	case p.fields == 1:
		return p.Field(0).Rows()
	}
	b := roaring.New()
	at := p.first
	if p.fields >= directoryFields {
		at += 4 * p.fields
	}
	for range p.fields {
		var f FieldPosting
		f, at = p.readField(at)
		f.rows.AddTo(b)
	}
	return b
}

// CountCommon returns how many rows have both words over all fields.
func (p Posting) CountCommon(o Posting) uint64 {
	if a, ok := p.list(); ok {
		if b, ok := o.list(); ok {
			return uint64(rowlist.CountCommon(a, b))
		}
	}
	return p.Rows().AndCardinality(o.Rows())
}

// list returns the rows of all fields, if they are stored as one list.
func (p Posting) list() (rowlist.List, bool) {
	switch {
	case p.union.Count > 0:
		return p.union, true
	case p.fields == 1:
		return p.Field(0).rows, true
	}
	return rowlist.List{}, false
}

// FieldPosting is the part of a posting in one field.
type FieldPosting struct {
	id        FieldID
	rows      rowlist.List
	positions []byte // skip table, then the positions of each row
	skips     int    // bytes of the skip table
}

// ID returns the field.
func (f FieldPosting) ID() FieldID { return f.id }

// Count returns the number of rows.
func (f FieldPosting) Count() int { return f.rows.Count }

// Rows returns the rows. The bitmap is shared, must not be modified, and is valid as long as that of Posting.Rows.
func (f FieldPosting) Rows() *roaring.Bitmap { return f.rows.Bitmap() }

// AppendRows appends the rows in ascending order.
func (f FieldPosting) AppendRows(dst []uint32) []uint32 { return f.rows.AppendTo(dst) }

// Positions returns a reader of the word's positions in the field.
func (f FieldPosting) Positions() PositionReader {
	return PositionReader{
		rows:  f.rows.Cursor(),
		skips: f.positions[:f.skips],
		p:     f.positions[f.skips:],
	}
}

// PositionReader walks the positions of a word in a field. Asking for rows in
// ascending order is fast; going back restarts. Not for several goroutines.
type PositionReader struct {
	rows  rowlist.Cursor
	skips []byte
	p     []byte
	index int // of the row whose positions begin at p[at]
	at    int
	last  int // where the positions of the row before index begin
}

// Append appends the ascending positions of the row to dst; nothing when the row has none.
func (p *PositionReader) Append(dst []uint16, row Row) []uint16 {
	i, ok := p.rows.Find(uint32(row))
	if !ok {
		return dst
	}
	if i == p.index-1 { // the same row again
		p.index, p.at = i, p.last
	} else if b := i / blockRows; i < p.index || b > p.index/blockRows {
		p.index, p.at = b*blockRows, 0
		if b > 0 {
			if 4*b > len(p.skips) {
				return dst
			}
			p.at = min(int(binary.LittleEndian.Uint32(p.skips[4*b-4:])), len(p.p))
		}
	}
	if i > p.index {
		p.at = skipRows(p.p, p.at, i-p.index)
	}
	p.last = p.at
	dst, p.at = decodePositions(dst, p.p, p.at)
	p.index = i + 1
	return dst
}

// Same reports whether two postings of one segment are the same posting.
func (p Posting) Same(o Posting) bool {
	return p.start == o.start && len(p.section) == len(o.section) && (len(p.section) == 0 || &p.section[0] == &o.section[0])
}

// First returns the lowest row.
func (f FieldPosting) First() Row { return Row(f.rows.First()) }
