package segment

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"unsafe"

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

// index notes all places of the content that have encodeMargin bytes and more behind them.
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
	text       []byte                     // content of the dictionary, document, margin; its capacity has room for any document
	block      []byte                     // room for the longest block of the document
	places     *[1 << documentBits]uint32 // by the hash of shortBytes bytes: generation << placeBits | the last such place in the document
	generation uint32
}

// candidate is an earlier place whose text may begin like that at the current place. Of this text, differs has the first 8 bytes, where a
// bit is set if it differs there.
type candidate struct {
	at      int
	differs uint64
}

// none is the difference of a candidate that does not match.
const none = 1

// matches reports whether at least four bytes are equal.
func (c candidate) matches() bool { return uint32(c.differs) == 0 }

// equal returns how many of the first 8 bytes are equal.
func (c candidate) equal() int { return bits.TrailingZeros64(c.differs) / 8 }

// load returns 8 bytes of a text, without a check that it has them.
func load(text unsafe.Pointer, at int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(text, at))[:])
}

// encode returns the block of a document, valid until the next call.
//
// The processor cannot predict whether a place matches, nor how long. So the candidates of a place are compared without branches, as far
// as 8 bytes of each tell which match is the longest one.
func (e *documentEncoder) encode(d *encodingDictionary, doc []byte) []byte {
	base := e.begin(d, doc)
	end, generation, places := base+len(doc), e.generation, e.places
	text := unsafe.Pointer(unsafe.SliceData(e.text))
	dictLong, dictShort := d.long, d.short
	block := e.block
	written := binary.PutUvarint(block, uint64(len(doc)))
	emitted, repeat := base, d.repeat // no offset reaches over the start of the dictionary
	for s := base; s <= end-encodeMargin; {
		v := load(text, s)
		place := &places[shortHash(v, documentBits)]
		before := *place
		*place = generation<<placeBits | uint32(s-base)
		again := candidate{s - repeat, load(text, s-repeat) ^ v}
		short := int(dictShort[shortHash(v, contentBits)])
		known := candidate{short, load(text, short) ^ v}
		inside := base + int(before&(1<<placeBits-1)) // maybe behind the document, but not behind the capacity
		own := candidate{inside, load(text, inside) ^ v}
		if before>>placeBits != generation {
			own.differs = none
		}
		if !again.matches() && !own.matches() && !known.matches() {
			s += 1 + (s-emitted)>>4
			continue
		}
		long := candidate{0, none}
		if known.matches() {
			long.at = int(dictLong[longHash(v, contentBits)])
			long.differs = load(text, long.at) ^ v
		}
		var from, n int
		if again.differs == 0 || own.differs == 0 || known.differs == 0 || long.differs == 0 {
			from, n = longest(e.text, s, base, end, again, own, known, long)
		} else {
			if from, n = again.at, again.equal(); from < base { // a match in the dictionary does not go past its end
				n = min(n, base-from)
			}
			if m := own.equal(); m > n {
				from, n = own.at, m
			}
			if m := known.equal(); m > n {
				from, n = known.at, m
			}
			if m := long.equal(); m > n {
				from, n = long.at, m
			}
		}
		if n < 4 || n == 4 && s-from >= 1<<11 && s-from != repeat || n < 6 && s-from >= 1<<16 {
			s += 1 + (s-emitted)>>4
			continue
		}
		if n < enough && s < end-encodeMargin { // the next byte may begin a longer match
			w := load(text, s+1)
			next := candidate{at: int(dictLong[longHash(w, contentBits)])}
			if next.differs = load(text, next.at) ^ w; next.equal() > min(n+1, 7) {
				if m := matching(e.text, next.at, s+1, base, end); m > n+1 {
					from, n = next.at, m
					s++
				}
			}
		}
		m := matchingBefore(text, from, s, min(s-emitted, roomBefore(from, base)))
		from, s, n = from-m, s-m, n+m
		if l := s - emitted; 0 < l && l <= wideCopy {
			block[written] = byte(l-1) << 2
			*(*[wideCopy]byte)(block[written+1:]) = *(*[wideCopy]byte)(unsafe.Add(text, emitted))
			written += 1 + l
		} else {
			written = len(appendLiteral(block[:written], e.text[emitted:s]))
		}
		if offset := s - from; offset == repeat {
			written = len(appendRepeat(block[:written], n))
		} else {
			written = len(appendCopy(block[:written], offset, n))
			repeat = offset
		}
		for i := s + 1; i < min(s+n, end-encodeMargin); i += 8 {
			places[shortHash(load(text, i), documentBits)] = generation<<placeBits | uint32(i-base)
		}
		s += n
		emitted = s
	}
	return appendLiteral(block[:written], e.text[emitted:end])
}

func (e *documentEncoder) memoryBytes() int64 {
	n := int64(cap(e.text) + cap(e.block))
	if e.places != nil {
		n += 4 << documentBits
	}
	return n
}

// begin lays the document behind the dictionary, and returns where.
func (e *documentEncoder) begin(d *encodingDictionary, doc []byte) int {
	base := len(d.content)
	if e.d != d {
		e.d = d
		d.once.Do(d.index)
		e.text = append(make([]byte, 0, base+1<<placeBits+encodeMargin), d.content...)
	}
	if e.places == nil {
		e.places = new([1 << documentBits]uint32)
	}
	e.text = append(append(e.text[:base], doc...), zeros[:encodeMargin]...)
	// Copies are no longer than what they stand for. Literals of more than 60 bytes have a head of two or three bytes.
	if n := binary.MaxVarintLen32 + len(doc) + len(doc)/30 + 1 + wideCopy; len(e.block) < n {
		e.block = make([]byte, n)
	}
	if e.generation++; e.generation == 1<<(32-placeBits) {
		clear(e.places[:])
		e.generation = 1
	}
	return base
}

// longest returns the place and length of the longest match with s, or of the first one of several. If one of the first two is long
// enough, it does not look at the others.
func longest(text []byte, s, base, end int, again, own, known, long candidate) (from, n int) {
	if again.matches() {
		from, n = again.at, matching(text, again.at, s, base, end)
	}
	if own.matches() {
		if m := matching(text, own.at, s, base, end); m > n {
			from, n = own.at, m
		}
	}
	if n >= enough || !known.matches() {
		return from, n
	}
	if m := matching(text, known.at, s, base, end); m > n {
		from, n = known.at, m
	}
	if long.matches() {
		if m := matching(text, long.at, s, base, end); m > n {
			from, n = long.at, m
		}
	}
	return from, n
}

// roomBefore returns how many bytes are before a place in its part of the text: the dictionary, or the document, which begins at base.
func roomBefore(at, base int) int {
	if at >= base {
		return at - base
	}
	return at
}

// matchingBefore returns how many bytes before p equal those before s, most at most.
func matchingBefore(text unsafe.Pointer, p, s, most int) int {
	n := 0
	for n < most {
		if p-n < 8 {
			for n < most && *(*byte)(unsafe.Add(text, p-n-1)) == *(*byte)(unsafe.Add(text, s-n-1)) {
				n++
			}
			return n
		}
		m := bits.LeadingZeros64(load(text, p-n-8)^load(text, s-n-8)) / 8
		n += m
		if m < 8 {
			break
		}
	}
	return min(n, most)
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
