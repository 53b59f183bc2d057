package rowlist

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// RoaringCursor walks a bitmap in Roaring format in place, to find the rank of a row. For ascending rows it continues from the last
// position.
type RoaringCursor struct {
	p          []byte
	headers    int // offset of the (key, cardinality − 1) pairs
	runs       int // offset of the bits that mark run containers, or 0
	containers int

	// The current container, and the place in it.
	container int
	key       uint32
	card      int
	kind      byte // containerArray…
	begin     int  // offset of its values; of a run container, of the first run
	size      int  // bytes from begin to the next container
	base      int  // values in the containers before it
	index     int  // of an array: next value to look at; of a bitmap: word; of runs: run
	passed    int  // values of the container before index
}

const (
	containerArray = iota
	containerBitmap
	containerRuns
)

func (c *RoaringCursor) Init(p []byte) bool {
	*c = RoaringCursor{p: p}
	if len(p) < 8 {
		return false
	}
	le := binary.LittleEndian
	cookie := le.Uint32(p)
	var first int
	switch {
	case cookie&0xffff == roaringCookieRuns:
		c.containers = int(cookie>>16) + 1
		c.runs = 4
		c.headers = 4 + (c.containers+7)/8
		first = c.headers + 4*c.containers
		if c.containers >= roaringOffsetsMin {
			first += 4 * c.containers
		}
	case cookie == roaringCookie:
		c.containers = int(le.Uint32(p[4:]))
		if c.containers > 1<<16 {
			c.containers = 0
			return false
		}
		c.headers = 8
		first = 8 + 8*c.containers
	default:
		return false
	}
	if first > len(p) {
		c.containers = 0
		return false
	}
	c.begin = first
	c.load()
	return c.containers > 0
}

// load reads the description of the container at c.begin. If the description is incomplete, the cursor is at its end.
func (c *RoaringCursor) load() {
	c.index, c.passed = 0, 0
	if c.container >= c.containers {
		return
	}
	h := c.p[c.headers+4*c.container:]
	c.key = uint32(binary.LittleEndian.Uint16(h))
	c.card = int(binary.LittleEndian.Uint16(h[2:])) + 1
	switch {
	case c.runs > 0 && c.p[c.runs+c.container/8]>>(c.container%8)&1 != 0:
		c.kind = containerRuns
		if c.begin+2 > len(c.p) {
			c.container = c.containers
			return
		}
		c.size = 4 * int(binary.LittleEndian.Uint16(c.p[c.begin:]))
		c.begin += 2
	case c.card > arrayMax:
		c.kind, c.size = containerBitmap, containerBytes
	default:
		c.kind, c.size = containerArray, 2*c.card
	}
	if c.begin+c.size > len(c.p) {
		c.container = c.containers
	}
}

func (c *RoaringCursor) nextContainer() {
	c.begin += c.size
	c.base += c.card
	c.container++
	c.load()
}

// Find is Rank for callers that need the index of row only if the list has it.
func (c *RoaringCursor) Find(row uint32) (index int, ok bool, ahead uint32) {
	for c.container < c.containers && c.key < row>>16 {
		c.nextContainer()
	}
	if c.kind != containerBitmap || c.container >= c.containers || c.key != row>>16 {
		return c.Rank(row)
	}
	values := c.p[c.begin : c.begin+containerBytes]
	w := int(row&0xffff) >> 6
	word := binary.LittleEndian.Uint64(values[8*w:])
	if word>>(row&63)&1 == 0 {
		return 0, false, row
	}
	if c.index < w {
		c.passed += ones(values[8*c.index : 8*w])
		c.index = w
	}
	return c.base + c.passed + bits.OnesCount64(word&(1<<(row&63)-1)), true, row
}

// Rank returns how many rows of the list are smaller than row, whether row is in the list, and a row such that the list has none
// between row and it. Successive calls must have ascending rows.
func (c *RoaringCursor) Rank(row uint32) (index int, ok bool, ahead uint32) {
	for c.container < c.containers && c.key < row>>16 {
		c.nextContainer()
	}
	if c.container >= c.containers {
		return c.base, false, math.MaxUint32
	}
	high := c.key << 16
	if high > row {
		return c.base, false, high
	}
	low := int(row & 0xffff)
	values := c.p[c.begin : c.begin+c.size]
	le := binary.LittleEndian
	switch c.kind {
	case containerArray:
		i := gallop(values, c.index, c.card, low)
		c.index = i
		if i == c.card {
			return c.base + i, false, high | 0xffff
		}
		value := int(le.Uint16(values[2*i:]))
		return c.base + i, value == low, high | uint32(value)
	case containerBitmap:
		w := low >> 6
		if c.index < w {
			c.passed += ones(values[8*c.index : 8*w])
			c.index = w
		}
		word := le.Uint64(values[8*w:])
		return c.base + c.passed + bits.OnesCount64(word&(1<<(low&63)-1)), word>>(low&63)&1 != 0, row
	default:
		behind := gallopRuns(values, c.index, low)
		if c.index < behind {
			// The last run that begins no later may have the row.
			last := behind - 1
			c.passed += lengths(values[4*c.index : 4*last])
			c.index = last
			start, length := int(le.Uint16(values[4*last:])), int(le.Uint16(values[4*last+2:]))
			if low <= start+length {
				return c.base + c.passed + low - start, true, row
			}
			c.passed += length + 1
			c.index = behind
		}
		if 4*behind == len(values) {
			return c.base + c.passed, false, high | 0xffff
		}
		return c.base + c.passed, false, high | uint32(le.Uint16(values[4*behind:]))
	}
}

// gallopRuns returns the first run from at on, or their number, that begins above low.
func gallopRuns(runs []byte, at, low int) int {
	le, n := binary.LittleEndian, len(runs)/4
	if at >= n || int(le.Uint16(runs[4*at:])) > low {
		return at
	}
	lo, step := at, 1 // the run at lo begins no later than low
	for lo+step < n && int(le.Uint16(runs[4*(lo+step):])) <= low {
		lo += step
		step *= 2
	}
	hi := min(lo+step, n)
	for lo++; lo < hi; {
		mid := int(uint(lo+hi) >> 1)
		if int(le.Uint16(runs[4*mid:])) <= low {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// AppendBetween appends the rows from lo to hi, both included. The cursor has not been asked for higher rows than lo.
func (c *RoaringCursor) AppendBetween(dst []uint32, lo, hi uint32) []uint32 {
	for c.container < c.containers && c.key < lo>>16 {
		c.nextContainer()
	}
	for ; c.container < c.containers && c.key <= hi>>16; c.nextContainer() {
		from, to := uint32(0), uint32(0xffff)
		if c.key == lo>>16 {
			from = lo & 0xffff
		}
		if c.key == hi>>16 {
			to = hi & 0xffff
		}
		dst = c.appendPart(dst, from, to)
	}
	return dst
}

// appendPart appends the rows of the current container whose lower halves are from…to.
func (c *RoaringCursor) appendPart(dst []uint32, from, to uint32) []uint32 {
	high := c.key << 16
	values := c.p[c.begin : c.begin+c.size]
	le := binary.LittleEndian
	switch c.kind {
	case containerArray:
		for i := gallop(values, 0, c.card, int(from)); i < c.card; i++ {
			v := uint32(le.Uint16(values[2*i:]))
			if v > to {
				break
			}
			dst = append(dst, high|v)
		}
	case containerBitmap:
		for i := from / 64; i <= to/64; i++ {
			w := le.Uint64(values[8*i:])
			if i == from/64 {
				w &= ^uint64(0) << (from % 64)
			}
			if i == to/64 {
				w &= ^uint64(0) >> (63 - to%64)
			}
			for ; w != 0; w &= w - 1 {
				dst = append(dst, high|64*i+uint32(bits.TrailingZeros64(w)))
			}
		}
	default:
		for ; len(values) >= 4; values = values[4:] {
			start, last := uint32(le.Uint16(values)), uint32(le.Uint16(values))+uint32(le.Uint16(values[2:]))
			for r := max(start, from); r <= min(last, to); r++ {
				dst = append(dst, high|r)
			}
		}
	}
	return dst
}

// AppendAt appends the rows with the given indexes in the list, which ascend. The cursor must not have been used. Indexes beyond the
// end have no rows.
func (c *RoaringCursor) AppendAt(dst []uint32, indexes []uint32) []uint32 {
	le := binary.LittleEndian
	dst = slices.Grow(dst, len(indexes))
	for i := 0; i < len(indexes); i++ {
		for c.container < c.containers && int(indexes[i]) >= c.base+c.card {
			c.nextContainer()
		}
		if c.container >= c.containers {
			break
		}
		k := int(indexes[i]) - c.base
		high := c.key << 16
		values := c.p[c.begin : c.begin+c.size]
		switch c.kind {
		case containerArray:
			dst = append(dst, high|uint32(le.Uint16(values[2*k:])))
		case containerBitmap:
			for ; 8*c.index < len(values); c.index++ {
				word := le.Uint64(values[8*c.index:])
				n := bits.OnesCount64(word)
				if c.passed+n <= k {
					c.passed += n
					continue
				}
				// Others of the word are found from one to the next.
				at := oneAt(word, k-c.passed)
				dst = append(dst, high|uint32(64*c.index+at))
				end := uint32(c.base + min(c.passed+n, c.card))
				for rest := word >> at << at; i+1 < len(indexes) && indexes[i+1] < end; i++ {
					for step := indexes[i]; step < indexes[i+1]; step++ {
						rest &= rest - 1
					}
					dst = append(dst, high|uint32(64*c.index+bits.TrailingZeros64(rest)))
				}
				break
			}
		default:
			for ; 4*c.index < len(values); c.index++ {
				start, n := uint32(le.Uint16(values[4*c.index:])), int(le.Uint16(values[4*c.index+2:]))+1
				if c.passed+n <= k {
					c.passed += n
					continue
				}
				dst = append(dst, high|(start+uint32(k-c.passed))&0xffff)
				break
			}
		}
	}
	return dst
}

// gallop returns the first index from at on, or n, whose value is at least low, in n 16-bit values.
func gallop(values []byte, at, n, low int) int {
	le := binary.LittleEndian
	if at >= n || int(le.Uint16(values[2*at:])) >= low {
		return at
	}
	lo, step := at, 1 // the value at lo is below low
	for lo+step < n && int(le.Uint16(values[2*(lo+step):])) < low {
		lo += step
		step *= 2
	}
	hi := min(lo+step, n)
	for lo++; lo < hi; {
		mid := int(uint(lo+hi) >> 1)
		if int(le.Uint16(values[2*mid:])) < low {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// appendContainer appends the rows of the current container.
func (c *RoaringCursor) appendContainer(dst []uint32) []uint32 {
	high := c.key << 16
	values := c.p[c.begin : c.begin+c.size]
	le := binary.LittleEndian
	switch c.kind {
	case containerArray:
		for ; len(values) >= 2; values = values[2:] {
			dst = append(dst, high|uint32(le.Uint16(values)))
		}
	case containerBitmap:
		for i := uint32(0); len(values) >= 8; i, values = i+64, values[8:] {
			for w := le.Uint64(values); w != 0; w &= w - 1 {
				dst = append(dst, high|i|uint32(bits.TrailingZeros64(w)))
			}
		}
	default:
		for ; len(values) >= 4; values = values[4:] {
			start, length := uint32(le.Uint16(values)), uint32(le.Uint16(values[2:]))
			for r := start; r <= start+length && r <= 0xffff; r++ {
				dst = append(dst, high|r)
			}
		}
	}
	return dst
}

// Cursor finds the index of rows in a row list of either code.
type Cursor struct {
	list List

	roaring RoaringCursor
	at      int    // of deltas: offset of the next one
	index   int    // of deltas: of row
	row     uint32 // of deltas: the one at index
	from    uint32 // the last row asked for; the list has none in (from, ahead)
	ahead   uint32
	started bool
}

func (c *Cursor) reset() {
	c.at, c.index, c.started = 0, 0, true
	if c.list.Code == Roaring {
		c.roaring.Init(c.list.P)
	} else {
		d, n := binary.Uvarint(c.list.P)
		if n <= 0 {
			c.list.Count = 0
		}
		c.at, c.row = n, uint32(d)
	}
}

// Find returns the index of a row in the list.
func (c *Cursor) Find(row uint32) (index int, ok bool) {
	if c.from < row && row < c.ahead {
		return 0, false
	}
	if !c.started || row < c.from {
		c.reset()
	}
	c.from = row
	if c.list.Code == Roaring {
		index, ok, c.ahead = c.roaring.Find(row)
		return index, ok
	}
	for c.index < c.list.Count && c.row < row {
		c.index++
		if c.index == c.list.Count {
			break
		}
		d, n := binary.Uvarint(c.list.P[c.at:])
		if n <= 0 {
			c.list.Count = c.index
			break
		}
		c.at += n
		c.row += uint32(d) + 1
	}
	if c.index == c.list.Count {
		c.ahead = math.MaxUint32
		return c.index, false
	}
	c.ahead = c.row
	return c.index, c.row == row
}
