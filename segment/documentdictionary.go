package segment

import (
	"encoding/binary"

	"github.com/klauspost/compress/s2"
)

// dictionary decodes documents that were encoded with an s2.Dict. What they are put together of is mostly shorter than 16 bytes, so that
// to copy 16 is quicker than to have the library copy as many as they are: twice as quick for documents of some hundred bytes.
type dictionary struct {
	*s2.Dict
	content []byte // with wideCopy bytes of capacity behind
	repeat  int    // offset before the first one
}

// wideCopy is how many bytes are copied at once.
const wideCopy = 16

// newDictionary reads what s2.Dict.Bytes has given; nil when that is none.
func newDictionary(b []byte) *dictionary {
	d := s2.NewDict(b)
	if d == nil {
		return nil
	}
	repeat, n := binary.Uvarint(b)
	content := b[n:]
	if cap(content) < len(content)+wideCopy {
		content = append(make([]byte, 0, len(content)+wideCopy), content...)
	}
	return &dictionary{Dict: d, content: content, repeat: len(content) - int(repeat)}
}

// Decode is s2.Dict.Decode for a dst of at least the decoded length.
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

// start returns the cursor of a block of which nothing is decoded.
func (d *dictionary) start() dictionaryCursor { return dictionaryCursor{offset: d.repeat} }

// ends reports whether all of a block was read, and filled dst.
func (c *dictionaryCursor) ends(dst, src []byte) bool {
	return c.written == len(dst) && c.read == len(src)
}

// copy16 copies 16 bytes. Where they overlap, as many as to lies behind from are right.
func copy16(to, from []byte) {
	le := binary.LittleEndian
	_, _ = to[wideCopy-1], from[wideCopy-1]
	a, b := le.Uint64(from), le.Uint64(from[8:])
	le.PutUint64(to, a)
	le.PutUint64(to[8:], b)
}

// decode goes on with a block without its length until at least enough bytes are written, or all is read. It returns false if no block of
// len(dst) bytes begins like this.
func (d *dictionary) decode(c *dictionaryCursor, dst, src []byte, enough int) bool {
	content := d.content[:len(d.content)+wideCopy]
	all := len(d.content)
	o, s, offset := c.written, c.read, c.offset
	for s < len(src) && o < enough {
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
