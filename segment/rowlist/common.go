package rowlist

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"

	"svc/simd"
)

// Place is a row that two lists have, and its indexes in them.
type Place struct{ Row, A, B uint32 }

// AppendCommon appends the rows that both lists have, ascending.
func AppendCommon(dst []Place, a, b List) []Place {
	if a.Code == Delta || b.Code == Delta {
		return appendFound(dst, a, b)
	}
	var c, d RoaringCursor
	if !c.Init(a.P) || !d.Init(b.P) {
		return dst
	}
	for meet(&c, &d) {
		dst = appendCommon(dst, &c, &d)
		c.nextContainer()
		d.nextContainer()
	}
	return dst
}

// meet moves to the next key that both have, starting with the current containers. It returns false if there is none.
func meet(c, d *RoaringCursor) bool {
	for c.container < c.containers && d.container < d.containers && c.key != d.key {
		if c.key < d.key {
			c.nextContainer()
		} else {
			d.nextContainer()
		}
	}
	return c.container < c.containers && d.container < d.containers
}

// appendFound looks for the rows of the shorter list in the other one.
func appendFound(dst []Place, a, b List) []Place {
	swapped := b.Count < a.Count
	if swapped {
		a, b = b, a
	}
	var few [RoaringFrom]uint32
	c := b.Cursor()
	for i, row := range a.AppendTo(few[:0]) {
		if j, ok := c.Find(row); ok {
			dst = append(dst, placeOf(row, i, j, swapped))
		}
	}
	return dst
}

func placeOf(row uint32, i, j int, swapped bool) Place {
	if swapped {
		i, j = j, i
	}
	return Place{row, uint32(i), uint32(j)}
}

// appendCommon appends the rows of two containers with the same key.
func appendCommon(dst []Place, c, d *RoaringCursor) []Place {
	swapped := false
	if d.kind < c.kind || d.kind == c.kind && d.card < c.card {
		c, d, swapped = d, c, true
	}
	// Arrays come before bitmaps, and these before runs; the first of two of a kind has no more values.
	begin := len(dst)
	switch {
	case c.kind == containerArray && d.kind == containerArray && hasKernel:
		dst = commonOfArrays(dst, c, d)
	case c.kind == containerArray && d.kind == containerArray && d.card < gallopFrom*c.card:
		dst = mergeArrays(dst, c, d)
	case c.kind == containerArray && d.kind == containerArray:
		dst = arrayInArray(dst, c, d)
	case c.kind == containerArray && d.kind == containerBitmap:
		dst = arrayInBitmap(dst, c, d)
	case c.kind == containerArray:
		dst = arrayInRuns(dst, c, d)
	case d.kind == containerBitmap:
		dst = bothBitmaps(dst, c, d)
	case c.kind == containerBitmap:
		dst = bitmapInRuns(dst, c, d)
	default:
		dst = bothRuns(dst, c, d)
	}
	if swapped {
		for i := range dst[begin:] {
			p := &dst[begin+i]
			p.A, p.B = p.B, p.A
		}
	}
	return dst
}

// commonRooms are where kernels write.
var commonRooms = sync.Pool{New: func() any { return new(simd.CommonRoom) }}

// commonOfArrays gets the indexes in the second array from the kernel. If these are few, it searches for them in the first array.
// Otherwise it calls the kernel again.
func commonOfArrays(dst []Place, c, d *RoaringCursor) []Place {
	le := binary.LittleEndian
	v, w := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	inD := commonRooms.Get().(*simd.CommonRoom)
	defer commonRooms.Put(inD)
	n := min(simd.CommonPlaces(inD, v, w), c.card) // more only if the arrays are damaged
	if n*lookedFor < d.card {
		i := 0
		for at := range n {
			j := int(le.Uint16(inD[2*at:]))
			x := le.Uint16(w[2*j:])
			if i = gallop(v, i, c.card, int(x)); i == c.card {
				break
			}
			dst = append(dst, Place{c.key<<16 | uint32(x), uint32(c.base + i), uint32(d.base + j)})
		}
		return dst
	}
	inC := commonRooms.Get().(*simd.CommonRoom)
	defer commonRooms.Put(inC)
	n = min(simd.CommonPlaces(inC, w, v), n)
	for at := range n {
		i, j := int(le.Uint16(inC[2*at:])), int(le.Uint16(inD[2*at:]))
		dst = append(dst, Place{c.key<<16 | uint32(le.Uint16(v[2*i:])), uint32(c.base + i), uint32(d.base + j)})
	}
	return dst
}

// lookedFor: if at most one in this many values of an array is common, searching for them takes less time than another call of the
// kernel.
const lookedFor = 64

// gallopFrom: if one array has at least so many times as many values, those of the shorter one are searched for one by one.
const gallopFrom = 16

// mergeArrays merges both arrays. Which of two values is lower is unpredictable, so there is no branch for it.
func mergeArrays(dst []Place, c, d *RoaringCursor) []Place {
	le := binary.LittleEndian
	v, w := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	n := len(dst)
	dst = slices.Grow(dst, c.card+1)
	dst = dst[:n+c.card+1]
	for i, j := 0, 0; 2*i+2 <= len(v) && 2*j+2 <= len(w) && n < len(dst); {
		x, y := uint32(le.Uint16(v[2*i:])), uint32(le.Uint16(w[2*j:]))
		dst[n] = Place{c.key<<16 | x, uint32(c.base + i), uint32(d.base + j)}
		less, more := int((x-y)>>31), int((y-x)>>31) // x < y, x > y
		n += 1 - less - more
		i += 1 - more
		j += 1 - less
	}
	return dst[:n]
}

// arrayInArray looks for each value of the first array in the second one.
func arrayInArray(dst []Place, c, d *RoaringCursor) []Place {
	le := binary.LittleEndian
	v, w := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	for i, j := 0, 0; 2*i+2 <= len(v); i++ {
		x := int(le.Uint16(v[2*i:]))
		if j = gallop(w, j, d.card, x); j == d.card {
			break
		}
		if int(le.Uint16(w[2*j:])) == x {
			dst = append(dst, Place{c.key<<16 | uint32(x), uint32(c.base + i), uint32(d.base + j)})
		}
	}
	return dst
}

// arrayInBitmap looks at the bit of each value.
func arrayInBitmap(dst []Place, c, d *RoaringCursor) []Place {
	le := binary.LittleEndian
	v, words := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	if len(words) < containerBytes {
		return dst
	}
	counted, before := 0, 0 // the ones of the words before counted
	for i := 0; 2*i+2 <= len(v); i++ {
		x := int(le.Uint16(v[2*i:]))
		word := le.Uint64(words[x>>6<<3:])
		if word>>(x&63)&1 == 0 {
			continue
		}
		if at := x >> 6; at > counted {
			before += ones(words[8*counted : 8*at])
			counted = at
		}
		j := before + bits.OnesCount64(word&(1<<(x&63)-1))
		dst = append(dst, Place{c.key<<16 | uint32(x), uint32(c.base + i), uint32(d.base + j)})
	}
	return dst
}

// bothBitmaps goes through the words of both.
func bothBitmaps(dst []Place, c, d *RoaringCursor) []Place {
	le := binary.LittleEndian
	v, w := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	i, j := c.base, d.base
	for at := 0; at+8 <= len(v) && at+8 <= len(w); at += 8 {
		x, y := le.Uint64(v[at:]), le.Uint64(w[at:])
		for both := x & y; both != 0; both &= both - 1 {
			below := both&-both - 1
			row := c.key<<16 | uint32(8*at+bits.TrailingZeros64(both))
			dst = append(dst, Place{row, uint32(i + bits.OnesCount64(x&below)), uint32(j + bits.OnesCount64(y&below))})
		}
		i += bits.OnesCount64(x)
		j += bits.OnesCount64(y)
	}
	return dst
}

// arrayInRuns alternates between values and runs, skipping those without a match.
func arrayInRuns(dst []Place, c, d *RoaringCursor) []Place {
	le := binary.LittleEndian
	v, runs := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	at, before := 0, 0 // a run, and the values of those before it
	for i := 0; 2*i+2 <= len(v); {
		x := int(le.Uint16(v[2*i:]))
		if behind := gallopRuns(runs, at, x); behind > at {
			before += lengths(runs[4*at : 4*behind-4])
			at = behind - 1
		}
		if 4*at == len(runs) {
			break
		}
		start, last := int(le.Uint16(runs[4*at:])), int(le.Uint16(runs[4*at:]))+int(le.Uint16(runs[4*at+2:]))
		switch {
		case x < start:
			i = gallop(v, i, c.card, start)
		case x <= last:
			dst = append(dst, Place{c.key<<16 | uint32(x), uint32(c.base + i), uint32(d.base + before + x - start)})
			i++
		default:
			before += last - start + 1
			at++
		}
	}
	return dst
}

// bitmapInRuns looks at the bits of each run. Damaged runs that overlap give no more rows than one of the containers says it has.
func bitmapInRuns(dst []Place, c, d *RoaringCursor) []Place {
	le := binary.LittleEndian
	words, runs := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	if len(words) < containerBytes {
		return dst
	}
	j, counted, before := d.base, 0, c.base // before: up to the word counted
	for most := len(dst) + min(c.card, d.card); len(runs) >= 4 && len(dst) < most; runs = runs[4:] {
		start, last := int(le.Uint16(runs)), min(int(le.Uint16(runs))+int(le.Uint16(runs[2:])), 0xffff)
		for at := start >> 6; at <= last>>6; at++ {
			word := le.Uint64(words[8*at:])
			in := word
			if at == start>>6 {
				in = in >> (start & 63) << (start & 63)
			}
			if at == last>>6 {
				in = in << (63 - last&63) >> (63 - last&63)
			}
			if in == 0 {
				continue
			}
			if at > counted {
				before += ones(words[8*counted : 8*at])
				counted = at
			}
			for ; in != 0; in &= in - 1 {
				x := 64*at + bits.TrailingZeros64(in)
				dst = append(dst, Place{c.key<<16 | uint32(x), uint32(before + bits.OnesCount64(word&(in&-in-1))), uint32(j + x - start)})
			}
		}
		j += last - start + 1
	}
	return dst
}

// bothRuns goes from overlap to overlap. Even if damaged runs overlap, it returns no more rows than the smaller count of the two
// containers.
func bothRuns(dst []Place, c, d *RoaringCursor) []Place {
	le := binary.LittleEndian
	v, w := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	most := len(dst) + min(c.card, d.card)
	for i, j := c.base, d.base; len(v) >= 4 && len(w) >= 4 && len(dst) < most; {
		start, last := int(le.Uint16(v)), min(int(le.Uint16(v))+int(le.Uint16(v[2:])), 0xffff)
		begin, end := int(le.Uint16(w)), min(int(le.Uint16(w))+int(le.Uint16(w[2:])), 0xffff)
		for x := max(start, begin); x <= min(last, end); x++ {
			dst = append(dst, Place{c.key<<16 | uint32(x), uint32(i + x - start), uint32(j + x - begin)})
		}
		if last <= end {
			v, i = v[4:], i+last-start+1
		}
		if end <= last {
			w, j = w[4:], j+end-begin+1
		}
	}
	return dst
}
