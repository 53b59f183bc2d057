package simd

// ElementCursor is how far a block of S2 is decoded.
type ElementCursor struct {
	Written, Read int
	Offset        int // of the last copy
}

// ElementRoom is the number of bytes that are copied at once, and that may be read after a dictionary and after a block.
const ElementRoom = 32

// DecodedRoom is the number of bytes that may be overwritten after a decoded block.
const DecodedRoom = mostElement

// mostElement is the length of the longest elements that the kernel decodes.
const mostElement = 2 * ElementRoom

// elementTable has, for each first byte of an element, the mask of the offset in the next four bytes, the bits to add to the offset, and
// the length. Elements that need more than a table have a length above mostElement.
var elementTable = func() (table [3][256]uint32) {
	for op := range uint32(256) {
		mask, more, length := uint32(1<<16-1), uint32(0), op>>2+1
		switch op & 3 {
		case 0: // literal
			mask, more = 0, mostElement // an offset that no length exceeds
			if length > 60 {
				length = mostElement + 1
			}
		case 1:
			mask, more, length = 1<<8-1, op&0xe0<<3, op>>2&7+4
		case 3:
			length = mostElement + 1
		}
		table[0][op], table[1][op], table[2][op] = mask, more, length
	}
	return table
}()

// DecodeElements continues to decode a block of S2, without its length, until at least enough bytes are written. Copies may begin in the
// dictionary, which must have ElementRoom bytes of spare capacity. Bytes of dst after the written ones may be overwritten, as may
// DecodedRoom bytes of its spare capacity. Callers that grant this room, and ElementRoom bytes after src, have more elements decoded
// here: otherwise those near the ends are left to them. With room, the last element of a damaged block may end after dst or src: then the
// cursor is there.
//
// It leaves rare elements to the caller: then left is true, and the cursor is at one, which may be damaged. If left is false, fewer than
// ElementRoom bytes of dst or src remain, with room none, or enough bytes are written, or there is no kernel.
func DecodeElements(dst, src, dictionary []byte, c ElementCursor, enough int) (_ ElementCursor, left bool) {
	if current.elements == nil {
		return c, false
	}
	_ = dictionary[:len(dictionary)+ElementRoom]
	lastWritten, lastRead := len(dst)-ElementRoom, len(src)-ElementRoom-1
	if cap(dst)-len(dst) >= DecodedRoom {
		lastWritten = len(dst) - 1
		dst = dst[:len(dst)+DecodedRoom]
	}
	if cap(src)-len(src) >= ElementRoom {
		lastRead = len(src) - 1
		src = src[:len(src)+ElementRoom]
	}
	lastWritten = min(lastWritten, enough-1)
	c = current.elements(dst, src, dictionary, c, lastWritten)
	return c, c.Written <= lastWritten && c.Read <= lastRead
}
