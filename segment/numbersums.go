package segment

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// NumberSums is what whole numbers of some rows add up to. The zero value is that of no rows.
type NumberSums struct {
	Count   uint64
	Sum     int64
	Squares [2]uint64 // the high and the low word of the sum of the squares
	Most    uint32    // ordinal of the largest number
	Below   uint32    // ordinal of the least one, subtracted from MaxUint32
}

// Least returns the ordinal of the least number.
func (n *NumberSums) Least() uint32 { return math.MaxUint32 - n.Below }

// Add adds a number between −2³¹ and 2³¹. The sum of up to 2³² numbers has room.
func (n *NumberSums) Add(ord uint32, x int64) {
	n.Count++
	n.Sum += x
	var carry uint64
	n.Squares[1], carry = bits.Add64(n.Squares[1], uint64(x*x), 0)
	n.Squares[0] += carry
	n.Most, n.Below = max(n.Most, ord), max(n.Below, math.MaxUint32-ord)
}

// endWhole is where the numbers end that a sum has room for.
const endWhole = 1 << 31

// Whole returns a number as an integer. ok is false if it is none between −2³¹ and 2³¹.
func Whole(x float64) (n int64, ok bool) {
	n = int64(x)
	return n, float64(n) == x && uint64(n+endWhole) < 2*endWhole
}

// States of Column.sums.
const (
	sumsUnknown = iota
	sumsWhole
	sumsOther
)

// SumsNumbers reports whether SumNumbers works: no row has two numbers, and all numbers are whole and between −2³¹ and 2³¹. The first call
// goes through the different numbers.
func (c *Column) SumsNumbers() bool {
	if !c.SingleNumbers() {
		return false
	}
	state := c.sums.Load()
	if state == sumsUnknown {
		if state = sumsOther; c.allWhole() {
			state = sumsWhole
		}
		c.sums.Store(state)
	}
	return state == sumsWhole
}

func (c *Column) allWhole() bool {
	c.need(partNumbers)
	for p := c.numbers; len(p) >= 8; p = p[8:] {
		if _, ok := Whole(math.Float64frombits(binary.LittleEndian.Uint64(p))); !ok {
			return false
		}
	}
	return true
}

// SumNumbers adds the numbers of rows to the sums of their groups, all of which are below len(sums); nil groups: all rows are in group 0.
// The column is one of SumsNumbers.
func (c *Column) SumNumbers(sums []NumberSums, rows, groups []uint32) {
	c.need(partRowNumbers)
	c.need(partNumbers)
	if groups == nil {
		c.sumRows(&sums[0], rows)
		return
	}
	numbers, ords := c.numbers, c.rowNumbers.ords
	groups = groups[:len(rows)]
	switch c.rowNumbers.width {
	case 1:
		for i, row := range rows {
			if int(row) < len(ords) {
				ord := uint32(ords[row])
				if p := 8 * int(ord); p+8 <= len(numbers) {
					sums[groups[i]].Add(ord, int64(math.Float64frombits(binary.LittleEndian.Uint64(numbers[p:p+8]))))
				}
			}
		}
	case 2:
		for i, row := range rows {
			if at := 2 * int(row); at+2 <= len(ords) {
				ord := uint32(binary.LittleEndian.Uint16(ords[at:]))
				if p := 8 * int(ord); p+8 <= len(numbers) {
					sums[groups[i]].Add(ord, int64(math.Float64frombits(binary.LittleEndian.Uint64(numbers[p:p+8]))))
				}
			}
		}
	default:
		for i, row := range rows {
			if at := 4 * int(row); at+4 <= len(ords) {
				ord := binary.LittleEndian.Uint32(ords[at:])
				if p := 8 * int(ord); p+8 <= len(numbers) {
					sums[groups[i]].Add(ord, int64(math.Float64frombits(binary.LittleEndian.Uint64(numbers[p:p+8]))))
				}
			}
		}
	}
}

// sumRows adds the numbers of rows to one sum. Variables stay in registers, which the fields of n would not.
func (c *Column) sumRows(n *NumberSums, rows []uint32) {
	numbers, ords, width := c.numbers, c.rowNumbers.ords, c.rowNumbers.width
	var count, high, low, carry uint64
	var sum int64
	most, below := n.Most, n.Below
	for _, row := range rows {
		at := width * int(row)
		if at+width > len(ords) {
			continue
		}
		var ord uint32
		switch width {
		case 1:
			ord = uint32(ords[at])
		case 2:
			ord = uint32(binary.LittleEndian.Uint16(ords[at:]))
		default:
			ord = binary.LittleEndian.Uint32(ords[at:])
		}
		p := 8 * int(ord)
		if p+8 > len(numbers) {
			continue
		}
		x := int64(math.Float64frombits(binary.LittleEndian.Uint64(numbers[p : p+8])))
		count++
		sum += x
		low, carry = bits.Add64(low, uint64(x*x), 0)
		high += carry
		most, below = max(most, ord), max(below, math.MaxUint32-ord)
	}
	n.Count += count
	n.Sum += sum
	n.Squares[1], carry = bits.Add64(n.Squares[1], low, 0)
	n.Squares[0] += high + carry
	n.Most, n.Below = most, below
}

// FloatsOf appends the number of each row, without its rest; NaN for a row that has none. The column is one of SingleNumbers.
func (c *Column) FloatsOf(dst []float64, rows []uint32) []float64 {
	c.need(partRowNumbers)
	c.need(partNumbers)
	numbers, f, none := c.numbers, &c.rowNumbers, math.NaN()
	for _, row := range rows {
		x := none
		if ord, ok := f.single(row); ok {
			if p := 8 * int(ord); p+8 <= len(numbers) {
				x = math.Float64frombits(binary.LittleEndian.Uint64(numbers[p : p+8]))
			}
		}
		dst = append(dst, x)
	}
	return dst
}

// StringOrdinals appends the ordinal of the string of each row; Strings() for a row that has none. The column is one of SingleStrings.
// NumberOrdinals likewise.
func (c *Column) StringOrdinals(dst, rows []uint32) []uint32 {
	c.need(partRowStrings)
	return c.rowStrings.ordinals(dst, rows, uint32(c.Strings()))
}

func (c *Column) NumberOrdinals(dst, rows []uint32) []uint32 {
	c.need(partRowNumbers)
	return c.rowNumbers.ordinals(dst, rows, uint32(c.Numbers()))
}

// single returns the ordinal of a row that has one at most. That of a row without one is past all ordinals.
func (f *forward) single(row uint32) (ord uint32, ok bool) {
	p := int(row) * f.width
	switch {
	case p+f.width > len(f.ords):
		return 0, false
	case f.width == 2:
		return uint32(binary.LittleEndian.Uint16(f.ords[p:])), true
	case f.width == 1:
		return uint32(f.ords[p]), true
	}
	return binary.LittleEndian.Uint32(f.ords[p:]), true
}

// ordinals appends the ordinal of each row, which has one at most, or none.
func (f *forward) ordinals(dst, rows []uint32, none uint32) []uint32 {
	switch f.width {
	case 1:
		for _, row := range rows {
			ord := none
			if int(row) < len(f.ords) {
				ord = min(uint32(f.ords[row]), none)
			}
			dst = append(dst, ord)
		}
	case 2:
		for _, row := range rows {
			ord := none
			if p := 2 * int(row); p+2 <= len(f.ords) {
				ord = min(uint32(binary.LittleEndian.Uint16(f.ords[p:])), none)
			}
			dst = append(dst, ord)
		}
	default:
		for _, row := range rows {
			ord := none
			if p := 4 * int(row); p+4 <= len(f.ords) {
				ord = min(binary.LittleEndian.Uint32(f.ords[p:]), none)
			}
			dst = append(dst, ord)
		}
	}
	return dst
}
