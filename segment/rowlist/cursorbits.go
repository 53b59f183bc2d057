package rowlist

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// ones counts the bits of some words.
func ones(words []byte) (n int) {
	le := binary.LittleEndian
	i := 0
	for ; i+32 <= len(words); i += 32 {
		w := words[i : i+32 : i+32]
		n += bits.OnesCount64(le.Uint64(w)) + bits.OnesCount64(le.Uint64(w[8:])) +
			bits.OnesCount64(le.Uint64(w[16:])) + bits.OnesCount64(le.Uint64(w[24:]))
	}
	for ; i+8 <= len(words); i += 8 {
		n += bits.OnesCount64(le.Uint64(words[i:]))
	}
	return n
}

// lengths counts the values of some runs.
func lengths(runs []byte) int {
	const seconds = 0x0000ffff0000ffff
	le := binary.LittleEndian
	n := len(runs) / 4 // a run has one value more than its length says
	sum := uint64(0)   // of every other run in the lower half, of the rest in the upper one
	i := 0
	for ; i+32 <= len(runs); i += 32 {
		r := runs[i : i+32 : i+32]
		sum += le.Uint64(r)>>16&seconds + le.Uint64(r[8:])>>16&seconds + le.Uint64(r[16:])>>16&seconds + le.Uint64(r[24:])>>16&seconds
	}
	for ; i+4 <= len(runs); i += 4 {
		sum += uint64(le.Uint16(runs[i+2:]))
	}
	return n + int(sum&math.MaxUint32+sum>>32)
}

// oneAt returns where the k-th 1 of a word is, from 0; it has more than k.
func oneAt(word uint64, k int) int {
	const every = 0x0101010101010101 // 1 in each byte
	x := word - word>>1&(0x55*every)
	x = x&(0x33*every) + x>>2&(0x33*every)
	upTo := (x + x>>4) & (0x0f * every) * every // byte i: the ones in bytes 0…i
	// The k-th is in the first byte up to which there are more than k. None borrows from the next.
	at := bits.TrailingZeros64(((upTo|0x80*every)-uint64(k+1)*every)&(0x80*every)) &^ 7
	k -= int(upTo << 8 >> at & 0xff)
	rest := word >> at
	for range k {
		rest &= rest - 1
	}
	return at + bits.TrailingZeros64(rest)
}

// addTo sets the bits of the rows of all containers.
func (c *RoaringCursor) addTo(words []uint64) {
	for ; c.container < c.containers; c.nextContainer() {
		first := int(c.key) << 10
		if first >= len(words) {
			return
		}
		c.mark(words[first:min(len(words), first+1024)])
	}
}

// mark sets the bits of the values of the container.
func (c *RoaringCursor) mark(own []uint64) {
	le := binary.LittleEndian
	values := c.p[c.begin : c.begin+c.size]
	switch c.kind {
	case containerArray:
		markValues(values, own)
	case containerBitmap:
		for len(own) >= 4 && len(values) >= 32 {
			w, v := own[:4:4], values[:32:32]
			w[0] |= le.Uint64(v)
			w[1] |= le.Uint64(v[8:])
			w[2] |= le.Uint64(v[16:])
			w[3] |= le.Uint64(v[24:])
			own, values = own[4:], values[32:]
		}
		for i := range own {
			own[i] |= le.Uint64(values[8*i:])
		}
	default:
		for i := 0; i+4 <= len(values); i += 4 {
			start := int(le.Uint16(values[i:]))
			setBits(own, start, min(start+int(le.Uint16(values[i+2:]))+1, 64*len(own)))
		}
	}
}

// markValues sets the bits of the values of an array container in its words.
func markValues(values []byte, words []uint64) {
	le := binary.LittleEndian
	if len(words) == 1024 {
		all := (*[1024]uint64)(words)
		for ; len(values) >= 8; values = values[8:] {
			four := le.Uint64(values)
			all[four>>6&1023] |= 1 << (four & 63)
			all[four>>22&1023] |= 1 << (four >> 16 & 63)
			all[four>>38&1023] |= 1 << (four >> 32 & 63)
			all[four>>54] |= 1 << (four >> 48 & 63)
		}
	}
	for ; len(values) >= 2; values = values[2:] {
		if v := le.Uint16(values); int(v>>6) < len(words) {
			words[v>>6] |= 1 << (v & 63)
		}
	}
}

// countIn returns how many rows of all containers have bits in words.
func (c *RoaringCursor) countIn(words []uint64) (n int) {
	for ; c.container < c.containers; c.nextContainer() {
		first := int(c.key) << 10
		if first >= len(words) {
			return n
		}
		n += c.marked(words[first:min(len(words), first+1024)])
	}
	return n
}

// marked returns how many values of the container have bits.
func (c *RoaringCursor) marked(own []uint64) (n int) {
	le := binary.LittleEndian
	values := c.p[c.begin : c.begin+c.size]
	switch c.kind {
	case containerArray:
		return countValues(values, own)
	case containerBitmap:
		return commonOnes(values, own)
	}
	for i := 0; i+4 <= len(values); i += 4 {
		start := int(le.Uint16(values[i:]))
		n += countBits(own, start, min(start+int(le.Uint16(values[i+2:]))+1, 64*len(own)))
	}
	return n
}

// countValues counts the values of an array container that have bits in its words.
func countValues(values []byte, words []uint64) (n int) {
	le := binary.LittleEndian
	if len(words) == 1024 {
		all := (*[1024]uint64)(words)
		for ; len(values) >= 8; values = values[8:] {
			four := le.Uint64(values)
			n += int(all[four>>6&1023]>>(four&63)&1 + all[four>>22&1023]>>(four>>16&63)&1 +
				all[four>>38&1023]>>(four>>32&63)&1 + all[four>>54]>>(four>>48&63)&1)
		}
	}
	for ; len(values) >= 2; values = values[2:] {
		if v := le.Uint16(values); int(v>>6) < len(words) {
			n += int(words[v>>6] >> (v & 63) & 1)
		}
	}
	return n
}

// commonOnes counts the bits that a bitmap container, which is not shorter, has in common with its words.
func commonOnes(values []byte, words []uint64) (n int) {
	le := binary.LittleEndian
	for len(words) >= 4 && len(values) >= 32 {
		w, v := words[:4:4], values[:32:32]
		n += bits.OnesCount64(w[0]&le.Uint64(v)) + bits.OnesCount64(w[1]&le.Uint64(v[8:])) +
			bits.OnesCount64(w[2]&le.Uint64(v[16:])) + bits.OnesCount64(w[3]&le.Uint64(v[24:]))
		words, values = words[4:], values[32:]
	}
	for i, w := range words {
		n += bits.OnesCount64(w & le.Uint64(values[8*i:]))
	}
	return n
}

// countBits counts the bits from start up to end, which words have.
func countBits(words []uint64, start, end int) int {
	if start >= end {
		return 0
	}
	first, last := start/64, (end-1)/64
	from, to := ^uint64(0)<<(start%64), ^uint64(0)>>(63-(end-1)%64)
	if first == last {
		return bits.OnesCount64(words[first] & from & to)
	}
	n := bits.OnesCount64(words[first]&from) + bits.OnesCount64(words[last]&to)
	for _, w := range words[first+1 : last] {
		n += bits.OnesCount64(w)
	}
	return n
}

// setBits sets the bits from start up to end, which words have.
func setBits(words []uint64, start, end int) {
	if start >= end {
		return
	}
	first, last := start/64, (end-1)/64
	from, to := ^uint64(0)<<(start%64), ^uint64(0)>>(63-(end-1)%64)
	if first == last {
		words[first] |= from & to
		return
	}
	words[first] |= from
	for i := first + 1; i < last; i++ {
		words[i] = ^uint64(0)
	}
	words[last] |= to
}
