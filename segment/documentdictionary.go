package segment

import (
	"encoding/binary"
	"unsafe"

	"github.com/klauspost/compress/s2"

	"svc/simd"
)

// dictionary decodes documents that were encoded with an s2.Dict. Most copied sequences are shorter than 16 bytes, so it is faster to
// always copy 16 bytes than to have the library copy the exact number. For documents of a few hundred bytes, this takes half the
// time.
type dictionary struct {
	*s2.Dict
	content []byte // with simd.ElementRoom bytes of capacity behind
	repeat  int    // offset before the first one
}

// wideCopy is how many bytes are copied at once.
const wideCopy = 16

// newDictionary reads the result of s2.Dict.Bytes, or returns nil if it is invalid.
func newDictionary(b []byte) *dictionary {
	d := s2.NewDict(b)
	if d == nil {
		return nil
	}
	repeat, n := binary.Uvarint(b)
	content := b[n:]
	if cap(content) < len(content)+simd.ElementRoom {
		content = append(make([]byte, 0, len(content)+simd.ElementRoom), content...)
	}
	return &dictionary{Dict: d, content: content, repeat: len(content) - int(repeat)}
}

// Decode is s2.Dict.Decode for a dst of at least the decoded length. It is fastest if dst has simd.DecodedRoom bytes of spare capacity,
// which it may overwrite, and src simd.ElementRoom, which it may read.
func (d *dictionary) Decode(dst, src []byte) ([]byte, error) {
	n, at := binary.Uvarint(src)
	if at <= 0 || n > uint64(len(dst)) {
		return nil, s2.ErrCorrupt
	}
	dst, src = dst[:n], src[at:]
	c := d.start()
	if !d.decode(&c, dst, src, len(dst)) || !c.ends(dst, src) {
		return nil, s2.ErrCorrupt
	}
	return dst, nil
}

// dictionaryCursor is how far a block is decoded.
type dictionaryCursor struct {
	written, read int
	offset        int // of the last copy
}

// start returns the cursor at the start of a block.
func (d *dictionary) start() dictionaryCursor { return dictionaryCursor{offset: d.repeat} }

// ends reports whether all of a block was read, and filled dst.
func (c *dictionaryCursor) ends(dst, src []byte) bool {
	return c.written == len(dst) && c.read == len(src)
}

// copy16 copies 16 bytes. If the ranges overlap, only the first to − from bytes are correct.
func copy16(to, from []byte) {
	le := binary.LittleEndian
	_, _ = to[wideCopy-1], from[wideCopy-1]
	a, b := le.Uint64(from), le.Uint64(from[8:])
	le.PutUint64(to, a)
	le.PutUint64(to[8:], b)
}

// decode continues a block, without its length, until at least enough bytes are written, or all is read. It returns false if no block
// of len(dst) bytes begins like this.
func (d *dictionary) decode(c *dictionaryCursor, dst, src []byte, enough int) bool {
	content := d.content[:len(d.content)+wideCopy]
	all := len(d.content)
	o, s, offset := c.written, c.read, c.offset
	for {
		next, left := simd.DecodeElements(dst, src, d.content, simd.ElementCursor{Written: o, Read: s, Offset: offset}, min(enough, s2.MaxDictSrcOffset+1))
		if o, s, offset = next.Written, next.Read, next.Offset; !left { // near or behind an end, or without a kernel
			o, s, offset = d.decodePlain(dst, src, o, s, offset, enough)
		}
		if o > len(dst) || s > len(src) {
			return false
		}
		if s == len(src) || o >= enough {
			break
		}
		op := src[s]
		length := int(op >> 2)
		switch op & 3 {
		case 0: // literal
			s++
			if extra := length - 59; extra > 0 {
				if extra > len(src)-s {
					return false
				}
				length = 0
				for i := range extra {
					length |= int(src[s+i]) << (8 * i)
				}
				s += extra
			}
			length++
			switch {
			case uint(length) > uint(len(dst)-o) || uint(length) > uint(len(src)-s):
				return false
			case length <= wideCopy && s <= len(src)-wideCopy && o <= len(dst)-wideCopy:
				copy16(dst[o:], src[s:])
			default:
				copy(dst[o:], src[s:s+length])
			}
			o += length
			s += length
			continue
		case 1:
			if s++; s == len(src) {
				return false
			}
			length &= 7
			if at := int(op)&0xe0<<3 | int(src[s]); at != 0 {
				offset = at
				s++
				break
			}
			s++ // the offset before
			if extra := length - 4; extra > 0 {
				if extra > len(src)-s {
					return false
				}
				length = [...]int{0, 4, 1 << 8, 1 << 16}[extra]
				for i := range extra {
					length += int(src[s+i]) << (8 * i)
				}
				s += extra
			}
		case 2:
			if s > len(src)-3 {
				return false
			}
			offset = int(binary.LittleEndian.Uint16(src[s+1:]))
			length -= 3
			s += 3
		default:
			if s > len(src)-5 {
				return false
			}
			offset = int(binary.LittleEndian.Uint32(src[s+1:]))
			length -= 3
			s += 5
		}
		length += 4
		switch from := o - offset; {
		case offset <= 0 || length > len(dst)-o:
			return false
		case from < 0:
			if from += all; o > s2.MaxDictSrcOffset || from < 0 || length > all-from {
				return false
			}
			if length <= wideCopy && o <= len(dst)-wideCopy {
				copy16(dst[o:], content[from:])
			} else {
				copy(dst[o:o+length], content[from:])
			}
		case length <= offset:
			if length <= wideCopy && o <= len(dst)-wideCopy {
				copy16(dst[o:], dst[from:])
			} else {
				copy(dst[o:o+length], dst[from:])
			}
		default:
			for i := range length {
				dst[o+i] = dst[from+i]
			}
		}
		o += length
	}
	*c = dictionaryCursor{o, s, offset}
	return true
}

// plainElements has, for the first byte of an element, what decodePlain must know. From the lowest bit: 8 bits with the length, 7
// bits with the size of the element in bytes, 1 bit that is set for literals, 16 bits that are added to the offset that follows, and
// the mask for that offset. Elements that decodePlain leaves to decode have a length above mostPlain.
var plainElements = func() (table [256]uint64) {
	for op := range uint64(len(table)) {
		length, size, literal, offset, mask := op>>2+1, uint64(3), uint64(0), uint64(0), uint64(1<<16-1)
		switch op & 3 {
		case 0:
			size, literal, offset, mask = 1+length, 1, mostPlain, 0 // an offset that no length exceeds
			if length > 60 {
				length = mostPlain + 1
			}
		case tagCopy1:
			length, size, offset, mask = op>>2&7+4, 2, op&0xe0<<3, 1<<8-1
		case tagCopy4:
			length = mostPlain + 1
		}
		table[op] = mask<<32 | offset<<16 | literal<<15 | size<<8 | length
	}
	return table
}()

// mostPlain is the length of a copy at most.
const mostPlain = 64

// decodePlain decodes from the element at src[s] until an element is not a plain one, is damaged, or is near an end. The type of an
// element selects values instead of branches, because a processor could not predict the branches.
func (d *dictionary) decodePlain(dst, src []byte, o, s, offset, enough int) (written, read, last int) {
	lastRead, lastWritten := len(src)-wideCopy-1, min(len(dst)-wideCopy, s2.MaxDictSrcOffset, enough-1)
	if s > lastRead || o > lastWritten {
		return o, s, offset
	}
	to, in, least := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), -len(d.content)
	// What an element copies is in dst, in the dictionary, at negative places, or in src.
	from := [4]unsafe.Pointer{to, unsafe.Add(unsafe.Pointer(unsafe.SliceData(d.content)), len(d.content)), in, in}
	for s <= lastRead && o <= lastWritten {
		e := plainElements[*(*byte)(unsafe.Add(in, s))]
		length := int(e & 0xff)
		distance := int(binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(in, s+1))[:])&uint32(e>>32) | uint32(e>>16)&0xffff)
		if distance < length { // 0 is the offset before
			break
		}
		literal := int(int64(e<<48) >> 63) // all bits, or none
		at := (o-distance)&^literal | (s+1)&literal
		if at < least || at^(at+length-1) < 0 { // not, or not all of it, in the dictionary
			break
		}
		p := unsafe.Add(from[uint(at)>>63|uint(literal&2)], at)
		q := unsafe.Add(to, o)
		if length > wideCopy {
			if length > mostPlain || length > len(dst)-wideCopy-o || literal != 0 && length > lastRead-s {
				break
			}
			for n := wideCopy; n < length; n += wideCopy {
				copy16((*[wideCopy]byte)(q)[:], (*[wideCopy]byte)(p)[:])
				p, q = unsafe.Add(p, wideCopy), unsafe.Add(q, wideCopy)
			}
		}
		copy16((*[wideCopy]byte)(q)[:], (*[wideCopy]byte)(p)[:])
		offset = offset&literal | distance&^literal
		o += length
		s += int(e >> 8 & 0x7f)
	}
	return o, s, offset
}
