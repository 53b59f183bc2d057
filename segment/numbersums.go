package segment

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// NumberSums is the sum of whole numbers of some rows. The zero value is the sum of no rows.
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
	square := uint64(x * x)
	low := n.Squares[1] + square
	n.Squares[1] = low
	// The branches are rarely taken, and save stores.
	if low < square {
		n.Squares[0]++
	}
	if ord > n.Most {
		n.Most = ord
	}
	if below := math.MaxUint32 - ord; below > n.Below {
		n.Below = below
	}
}

// endWhole is where the numbers end that a sum has room for.
const endWhole = 1 << 31

// Whole returns a number as an integer. ok is false if it is not an integer between −2³¹ and 2³¹.
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

// SumsNumbers reports whether SumNumbers works: no row has two numbers, and all numbers are integers between −2³¹ and 2³¹. The first
// call reads all distinct numbers.
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

// sumBatch is how many ordinals are read before their numbers. Cache misses of one kind overlap better than alternating ones.
const sumBatch = 512

// SumNumbers adds the numbers of rows to the sums of their groups, all below len(sums); nil groups: all rows are in group 0.
// SumsNumbers must be true for the column.
func (c *Column) SumNumbers(sums []NumberSums, rows, groups []uint32) {
	c.need(partRowNumbers)
	c.need(partNumbers)
	var ords [sumBatch]uint32
	for len(rows) > 0 {
		n := min(len(rows), len(ords))
		list := c.rowNumbers.ordinals(ords[:0], rows[:n], uint32(c.Numbers()))
		if groups == nil {
			sums[0].addAll(list, c.numbers)
		} else {
			addEach(sums, groups[:n], list, c.numbers)
			groups = groups[n:]
		}
		rows = rows[n:]
	}
}

// addEach adds the numbers of ordinals to the sums of groups. An ordinal without a number stands for a row without one.
func addEach(sums []NumberSums, groups, ords []uint32, numbers []byte) {
	groups = groups[:len(ords)]
	for i, ord := range ords {
		if p := 8 * int(ord); p+8 <= len(numbers) {
			sums[groups[i]].Add(ord, int64(math.Float64frombits(binary.LittleEndian.Uint64(numbers[p:p+8]))))
		}
	}
}

// addAll adds the numbers of up to sumBatch ordinals to one sum. Variables stay in registers, which the fields of n would not.
func (n *NumberSums) addAll(ords []uint32, numbers []byte) {
	var count, high, low uint64 // high and low: sums of the upper and lower halves of the squares
	var sum int64
	most, below := n.Most, n.Below
	for _, ord := range ords {
		p := 8 * int(ord)
		if p+8 > len(numbers) {
			continue
		}
		x := int64(math.Float64frombits(binary.LittleEndian.Uint64(numbers[p : p+8])))
		square := uint64(x * x)
		count++
		sum += x
		high += square >> 32
		low += uint64(uint32(square))
		most, below = max(most, ord), max(below, math.MaxUint32-ord)
	}
	n.add(count, sum, high, low)
	n.Most, n.Below = most, below
}

// SumCounted adds the number of each ordinal as many times as times says. Ordinals ascend, and there is at least one. SumsNumbers
// must be true for the column.
func (c *Column) SumCounted(sum *NumberSums, ords, times []uint32) {
	c.need(partNumbers)
	var count, high, low uint64 // as in addAll
	var total int64
	numbers := c.numbers
	times = times[:len(ords)]
	for i, ord := range ords {
		p := 8 * int(ord)
		x, n := int64(math.Float64frombits(binary.LittleEndian.Uint64(numbers[p:p+8]))), uint64(times[i])
		square := uint64(x * x)
		count += n
		total += int64(n) * x
		high += n * (square >> 32)
		low += n * uint64(uint32(square))
	}
	sum.add(count, total, high, low)
	sum.Most, sum.Below = max(sum.Most, ords[len(ords)-1]), max(sum.Below, math.MaxUint32-ords[0])
}

// add adds numbers, and the sums of the upper and lower halves of their squares. These have room for 2³² numbers.
func (n *NumberSums) add(count uint64, sum int64, high, low uint64) {
	var carry uint64
	n.Count += count
	n.Sum += sum
	high += low >> 32
	n.Squares[1], carry = bits.Add64(n.Squares[1], high<<32|uint64(uint32(low)), 0)
	n.Squares[0] += high>>32 + carry
}

// MaxIntervalSize is up to which size CountIntervals divides exactly.
const MaxIntervalSize = endWhole

// CountIntervals counts the numbers of rows by interval: counts[i] is the number of those from first + i·size on, below the next
// interval. It ignores numbers outside. SumsNumbers must be true for the column. No number is below first, which is above −2³², and
// size is from 2 to MaxIntervalSize.
func (c *Column) CountIntervals(counts, rows []uint32, first int64, size uint64) {
	c.need(partRowNumbers)
	c.need(partNumbers)
	// The upper half of a product is a quotient. It is exact because a number less first, times size, is below 2⁶⁴.
	factor := math.MaxUint64/size + 1
	var ords [sumBatch]uint32
	for len(rows) > 0 {
		n := min(len(rows), len(ords))
		for _, ord := range c.rowNumbers.ordinals(ords[:0], rows[:n], uint32(c.Numbers())) {
			p := 8 * int(ord)
			if p+8 > len(c.numbers) {
				continue
			}
			x := int64(math.Float64frombits(binary.LittleEndian.Uint64(c.numbers[p : p+8])))
			if at, _ := bits.Mul64(uint64(x-first), factor); at < uint64(len(counts)) {
				counts[at]++
			}
		}
		rows = rows[n:]
	}
}

// FloatsOf appends the number of each row, without its rest, or NaN for a row without one. SingleNumbers must be true for the column.
func (c *Column) FloatsOf(dst []float64, rows []uint32) []float64 {
	c.need(partRowNumbers)
	c.need(partNumbers)
	var ords [sumBatch]uint32
	dst = slices.Grow(dst, len(rows))
	for len(rows) > 0 {
		n, has := min(len(rows), len(ords)), len(dst)
		dst = dst[:has+n]
		floats := dst[has:]
		for i, ord := range c.rowNumbers.ordinals(ords[:0], rows[:n], uint32(c.Numbers())) {
			x := math.NaN()
			if p := 8 * int(ord); p+8 <= len(c.numbers) {
				x = math.Float64frombits(binary.LittleEndian.Uint64(c.numbers[p : p+8]))
			}
			floats[i] = x
		}
		rows = rows[n:]
	}
	return dst
}

// StringOrdinals appends the ordinal of the string of each row, or Strings() for a row without one. SingleStrings must be true for
// the column. NumberOrdinals does the same for numbers.
func (c *Column) StringOrdinals(dst, rows []uint32) []uint32 {
	c.need(partRowStrings)
	return c.rowStrings.ordinals(dst, rows, uint32(c.Strings()))
}

func (c *Column) NumberOrdinals(dst, rows []uint32) []uint32 {
	c.need(partRowNumbers)
	return c.rowNumbers.ordinals(dst, rows, uint32(c.Numbers()))
}

// ordinals appends the ordinal of each row, which has one at most, or none.
func (f *forward) ordinals(dst, rows []uint32, none uint32) []uint32 {
	n, all := len(dst), f.ords
	dst = slices.Grow(dst, len(rows))[:n+len(rows)]
	to := dst[n:]
	to = to[:len(rows)]
	switch f.width {
	case 1:
		for i, row := range rows {
			ord := none
			if int(row) < len(all) {
				ord = min(uint32(all[row]), none)
			}
			to[i] = ord
		}
	case 2:
		for i, row := range rows {
			ord := none
			if p := 2 * int(row); p+2 <= len(all) {
				ord = min(uint32(binary.LittleEndian.Uint16(all[p:])), none)
			}
			to[i] = ord
		}
	default:
		for i, row := range rows {
			ord := none
			if p := 4 * int(row); p+4 <= len(all) {
				ord = min(binary.LittleEndian.Uint32(all[p:]), none)
			}
			to[i] = ord
		}
	}
	return dst
}
