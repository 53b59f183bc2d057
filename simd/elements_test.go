package simd

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// blockWalk is the reference decoder: it decodes a block byte by byte, as the format specifies.
type blockWalk struct {
	dst, src, dictionary []byte
	ElementCursor
}

// next decodes an element. ok is false if the element is damaged or of a kind that the kernel leaves to its caller.
func (w *blockWalk) next() (length int, ok bool) {
	op, rest := w.src[w.Read], w.src[w.Read+1:]
	if op&3 == 0 {
		length = int(op>>2) + 1
		switch {
		case length == 61:
			length, rest = int(rest[0])+1, rest[1:]
		case length > 61:
			return length, false
		}
		if length > mostElement || length > len(rest) || length > len(w.dst)-w.Written {
			return length, false
		}
		copy(w.dst[w.Written:], rest[:length])
		w.Written, w.Read = w.Written+length, len(w.src)-len(rest)+length
		return length, true
	}
	offset, size := 0, 3
	switch op & 3 {
	case 1:
		length, offset, size = 4+int(op>>2&7), int(op>>5)<<8|int(rest[0]), 2
		if offset == 0 {
			if offset = w.Offset; length > 8 {
				return length, false
			}
		}
	case 2:
		length, offset = int(op>>2)+1, int(rest[0])|int(rest[1])<<8
	default:
		return 0, false
	}
	from := w.Written - offset
	if offset < length || length > len(w.dst)-w.Written || from < -len(w.dictionary) || from < 0 && from+length > 0 {
		return length, false
	}
	for i := range length {
		if at := from + i; at < 0 {
			w.dst[w.Written+i] = w.dictionary[len(w.dictionary)+at]
		} else {
			w.dst[w.Written+i] = w.dst[at]
		}
	}
	w.Written, w.Read, w.Offset = w.Written+length, w.Read+size, offset
	return length, true
}

// TestDecodeElements decodes blocks of random elements, some of them damaged, in memory that ends at guard pages. The bytes must equal
// those of the reference decoder. The kernel may stop only at an end or at an element that it leaves to its caller.
func TestDecodeElements(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		if k.elements == nil {
			return
		}
		r, decoded, rare, ends := random(t), 0, 0, 0
		for range 3000 {
			n := r.IntN(1 + r.IntN(2000))
			dictionary := guarded[byte](t, n+ElementRoom)[:n]
			fill(r, dictionary[:cap(dictionary)])
			block := randomBlock(r, n)
			src := guarded[byte](t, len(block))
			copy(src, block)
			dst := guarded[byte](t, r.IntN(1<<r.IntN(13)))
			begin := ElementCursor{Offset: r.IntN(2*n+3) - 1}
			lastWritten := min(len(dst)-ElementRoom, r.IntN(1+2*len(dst)))
			got := k.elements(dst, src, dictionary, begin, lastWritten)
			want := blockWalk{make([]byte, len(dst)), src, dictionary, begin}
			last := len(src) - ElementRoom - 1
			for want.Read <= last && want.Written <= lastWritten && want.ElementCursor != got {
				if _, ok := want.next(); !ok {
					break
				}
				decoded++
			}
			if want.ElementCursor != got || !bytes.Equal(dst[:got.Written], want.dst[:got.Written]) {
				t.Fatalf("dictionary of %d bytes, src % x, dst of %d, up to %d, from %+v: got %+v, want %+v", n, src, len(dst), lastWritten, begin, got,
					want.ElementCursor)
			}
			if got.Read > last || got.Written > lastWritten {
				ends++
				continue
			}
			length, ok := want.next()
			if ok && (length <= ElementRoom || got.Written <= len(dst)-mostElement && got.Read+ElementRoom < last) {
				t.Fatalf("src % x, dst %d: the kernel leaves an element of %d bytes at %d", src, len(dst), length, got.Read)
			}
			rare++
		}
		if decoded < 5000 || rare < 300 || ends < 300 {
			t.Errorf("%d elements were decoded, %d left, %d blocks decoded to their ends", decoded, rare, ends)
		}
	})
}

// TestDecodeElementsWithRoom is TestDecodeElements with room after blocks and what they become: only elements that are left to others are
// not decoded.
func TestDecodeElementsWithRoom(t *testing.T) {
	if current.elements == nil {
		t.Skip("there is no kernel")
	}
	r, whole, rare, ends := random(t), 0, 0, 0
	for range 4000 {
		n := r.IntN(1 + r.IntN(2000))
		dictionary := guarded[byte](t, n+ElementRoom)[:n]
		fill(r, dictionary[:cap(dictionary)])
		block := randomBlock(r, n)
		src := guarded[byte](t, len(block)+ElementRoom)
		fill(r, src[copy(src, block):])
		src = src[:len(block)]
		length := r.IntN(1 << r.IntN(13))
		dst := guarded[byte](t, length+DecodedRoom)[:length]
		begin, enough := ElementCursor{Offset: r.IntN(2*n+3) - 1}, r.IntN(2+3*length)
		got, left := DecodeElements(dst, src, dictionary, begin, enough)
		want := blockWalk{make([]byte, cap(dst)), src[:cap(src)], dictionary, begin}
		for want.Read < len(src) && want.Written < min(length, enough) && want.ElementCursor != got {
			if _, ok := want.next(); !ok {
				break
			}
		}
		if want.ElementCursor != got || !bytes.Equal(dst[:got.Written], want.dst[:got.Written]) {
			t.Fatalf("dictionary of %d bytes, src % x, dst of %d, enough %d, from %+v: got %+v, want %+v", n, src, length, enough, begin, got, want.ElementCursor)
		}
		if ended := got.Read >= len(src) || got.Written >= min(length, enough); ended == left {
			t.Fatalf("src % x, dst of %d, enough %d: %+v, left %t", src, length, enough, got, left)
		} else if ended {
			ends++
			if got.Read == len(src) {
				whole++
			}
			continue
		}
		if size, ok := want.next(); ok && (size <= ElementRoom || got.Written <= length && got.Read+ElementRoom < len(src)-1) {
			t.Fatalf("src % x, dst %d: the kernel leaves an element of %d bytes at %d", src, length, size, got.Read)
		}
		rare++
	}
	if whole < 50 || rare < 300 || ends < 1000 {
		t.Errorf("%d blocks were decoded to their last element, %d to their ends, %d elements left", whole, ends, rare)
	}
}

// randomBlock returns elements for a dictionary of n bytes. Most of them are valid.
func randomBlock(r *rand.Rand, n int) (block []byte) {
	written := 0
	for range r.IntN(200) {
		length := 1 + r.IntN(1+r.IntN(64))
		offset := uint16(length + r.IntN(max(1, written+n-2*length)))
		switch r.IntN(8) {
		case 0, 1, 2:
			literal := make([]byte, length)
			fill(r, literal)
			if length > 60 {
				block = append(block, 60<<2)
			}
			block = append(append(block, byte(length-1)<<2), literal...)
			if length > 60 {
				block[len(block)-length-1] = byte(length - 1)
			}
		case 3, 4:
			length = min(length+3, 11)
			offset %= 1 << 11
			block = append(block, byte(offset>>8)<<5|byte(length-4)<<2|1, byte(offset))
		case 5:
			length = 4 + r.IntN(1+r.IntN(8))
			block = append(block, byte(length-4)<<2|1, 0)
		default:
			block = append(block, byte(length-1)<<2|2, byte(offset), byte(offset>>8))
		}
		written += length
		if r.IntN(300) == 0 {
			block[r.IntN(len(block))] = byte(r.Uint32())
		}
	}
	return block
}

func fill(r *rand.Rand, p []byte) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
}
