package segment

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/s2"
)

// encodingDictionary is a dictionary that documents are compressed against, with the places of its content by their first bytes. Several
// goroutines may use it.
type encodingDictionary struct {
	*s2.Dict
	content []byte
	repeat  int // offset before the first one

	once  sync.Once
	long  *placeTable // by the hash of longBytes bytes
	short *placeTable // of shortBytes bytes
}

// placeTable has the last places of hashes in the content of a dictionary.
type placeTable [1 << contentBits]uint16

// newEncodingDictionary returns nil for nil.
func newEncodingDictionary(d *s2.Dict) *encodingDictionary {
	if d == nil {
		return nil
	}
	b := d.Bytes()
	repeat, n := binary.Uvarint(b)
	return &encodingDictionary{Dict: d, content: b[n:], repeat: len(b) - n - int(repeat)}
}

const (
	longBytes, shortBytes = 7, 5
	contentBits           = 15 // of hashes of the content; 16 take 23% more time, and make documents 2% smaller
	documentBits          = 12 // of hashes of a document
	placeBits             = 14 // of a place in a document, which has fewer than largeDocument bytes
	encodeMargin          = 8  // bytes that are read at once
	enough                = 16 // length of a match from which on no longer one is searched for
)

func longHash(v uint64, bits uint) uint64 {
	return v << (64 - 8*longBytes) * 58295818150454627 >> (64 - bits)
}

func shortHash(v uint64, bits uint) uint64 {
	return v << (64 - 8*shortBytes) * 889523592379 >> (64 - bits)
}

// index notes all places of the content.
func (d *encodingDictionary) index() {
	d.long, d.short = new(placeTable), new(placeTable)
	for i := range len(d.content) - encodeMargin {
		v := binary.LittleEndian.Uint64(d.content[i:])
		d.long[longHash(v, contentBits)], d.short[shortHash(v, contentBits)] = uint16(i), uint16(i)
	}
}

// documentEncoder compresses documents of fewer than largeDocument bytes to blocks of S2, against a dictionary. The library clears
// tables of 576 KiB per document, which takes longer than all the rest. The table of documentEncoder is small, and has a generation
// in each entry instead.
type documentEncoder struct {
	d          *encodingDictionary
	text       []byte   // content of the dictionary, document, margin
	places     []uint32 // by the hash of shortBytes bytes: generation << placeBits | the last place in the document with such
	generation uint32
}

// encode returns the block of a document, in dst if its capacity is s2.MaxEncodedLen or more.
func (e *documentEncoder) encode(d *encodingDictionary, dst, doc []byte) []byte {
	base := e.begin(d, doc)
	text, end, mark := e.text, base+len(doc), e.generation<<placeBits
	places := (*[1 << documentBits]uint32)(e.places)
	dictLong, dictShort := d.long, d.short
	dst = binary.AppendUvarint(dst[:0], uint64(len(doc)))
	emitted, repeat := base, d.repeat
	for s := base; s <= end-encodeMargin; {
		v := binary.LittleEndian.Uint64(text[s:])
		from, n := 0, 0
		if p := s - repeat; p >= 0 && binary.LittleEndian.Uint32(text[p:]) == uint32(v) {
			from, n = p, matching(text, p, s, base, end)
		}
		place := &places[shortHash(v, documentBits)]
		before := *place
		*place = mark | uint32(s-base)
		if before>>placeBits == e.generation {
			from, n = better(text, base+int(before&(1<<placeBits-1)), s, base, end, from, n)
		}
		if n < enough {
			if p := int(dictShort[shortHash(v, contentBits)]); binary.LittleEndian.Uint32(text[p:]) == uint32(v) {
				from, n = better(text, p, s, base, end, from, n)
				from, n = better(text, int(dictLong[longHash(v, contentBits)]), s, base, end, from, n)
			}
		}
		if n < 4 || n == 4 && s-from >= 1<<11 && s-from != repeat || n < 6 && s-from >= 1<<16 {
			s += 1 + (s-emitted)>>4
			continue
		}
		if n < enough && s < end-encodeMargin { // the next byte may begin a longer match
			w := binary.LittleEndian.Uint64(text[s+1:])
			p := int(dictLong[longHash(w, contentBits)])
			if m := matching(text, p, s+1, base, end); m > n+1 {
				from, n = p, m
				s++
			}
		}
		for s > emitted && from > 0 && from != base && text[from-1] == text[s-1] {
			from, s, n = from-1, s-1, n+1
		}
		dst = appendLiteral(dst, text[emitted:s])
		if offset := s - from; offset == repeat {
			dst = appendRepeat(dst, n)
		} else {
			dst, repeat = appendCopy(dst, offset, n), offset
		}
		for i := s + 1; i < min(s+n, end-encodeMargin); i += 8 {
			places[shortHash(binary.LittleEndian.Uint64(text[i:]), documentBits)] = mark | uint32(i-base)
		}
		s += n
		emitted = s
	}
	return appendLiteral(dst, text[emitted:end])
}

func (e *documentEncoder) memoryBytes() int64 {
	return int64(cap(e.text) + 4*len(e.places))
}

// begin lays the document behind the dictionary, and returns where.
func (e *documentEncoder) begin(d *encodingDictionary, doc []byte) int {
	base := len(d.content)
	if e.d != d {
		e.d = d
		d.once.Do(d.index)
		e.text = append(make([]byte, 0, base+4<<10), d.content...)
	}
	if e.places == nil {
		e.places = make([]uint32, 1<<documentBits)
	}
	e.text = append(append(e.text[:base], doc...), make([]byte, encodeMargin)...)
	if e.generation++; e.generation == 1<<(32-placeBits) {
		clear(e.places)
		e.generation = 1
	}
	return base
}

// better returns the place and length of the longer of two matches with s: that at p, and one that is known.
func better(text []byte, p, s, base, end, from, n int) (int, int) {
	if binary.LittleEndian.Uint32(text[p:]) != binary.LittleEndian.Uint32(text[s:]) {
		return from, n
	}
	if m := matching(text, p, s, base, end); m > n {
		return p, m
	}
	return from, n
}

// matching returns how many bytes from p on equal those from s on. A match in the dictionary does not go past its end.
func matching(text []byte, p, s, base, end int) int {
	most := end - s
	if p < base {
		most = min(most, base-p)
	}
	n := 0
	for n < most {
		if diff := binary.LittleEndian.Uint64(text[p+n:]) ^ binary.LittleEndian.Uint64(text[s+n:]); diff != 0 {
			n += bits.TrailingZeros64(diff) / 8
			break
		}
		n += 8
	}
	return min(n, most)
}

// Tags of the elements of a block, in the two lowest bits. The tag of a literal is 0.
const (
	tagCopy1 = 1 // offset of 11 bits; 0: the last one
	tagCopy2 = 2 // 16 bits
	tagCopy4 = 3
)

// appendLiteral appends bytes as they are; nothing for none.
func appendLiteral(dst, p []byte) []byte {
	switch n := len(p) - 1; {
	case n < 0:
		return dst
	case n < 60:
		dst = append(dst, byte(n)<<2)
	case n < 1<<8:
		dst = append(dst, 60<<2, byte(n))
	default:
		dst = append(dst, 61<<2, byte(n), byte(n>>8))
	}
	return append(dst, p...)
}

// appendRepeat appends a copy of n ≥ 4 bytes at the last offset.
func appendRepeat(dst []byte, n int) []byte {
	switch n -= 4; {
	case n <= 4:
		return append(dst, byte(n)<<2|tagCopy1, 0)
	case n < 1<<8+4:
		return append(dst, 5<<2|tagCopy1, 0, byte(n-4))
	default:
		n -= 1 << 8
		return append(dst, 6<<2|tagCopy1, 0, byte(n), byte(n>>8))
	}
}

// appendCopy appends a copy of n ≥ 4 bytes. If it is longer than one element, repetitions follow.
func appendCopy(dst []byte, offset, n int) []byte {
	first := n
	if n > 64 {
		first = 60 // at least 4 are left
	}
	switch {
	case offset >= 1<<16:
		dst = append(dst, byte(first-1)<<2|tagCopy4, byte(offset), byte(offset>>8), byte(offset>>16), byte(offset>>24))
	case offset < 1<<11 && n < 12:
		return append(dst, byte(offset>>8)<<5|byte(n-4)<<2|tagCopy1, byte(offset))
	case offset < 1<<11 && n > 64:
		first = 8
		dst = append(dst, byte(offset>>8)<<5|byte(first-4)<<2|tagCopy1, byte(offset))
	default:
		dst = append(dst, byte(first-1)<<2|tagCopy2, byte(offset), byte(offset>>8))
	}
	if n > first {
		return appendRepeat(dst, n-first)
	}
	return dst
}
