package aggregate

import (
	"math"
	"math/big"
	"math/bits"

	"svc/internal/jsontext"
	"svc/internal/numeric"
)

// deviation is the standard deviation of the values as a population: √(Σx²/n − (Σx/n)²), with sums of some 106 bits.
type deviation struct {
	count   *count
	sum     *sum
	squares []double
}

func newDeviation(of *Figures) Accumulator {
	return &deviation{count: of.state("count").(*count), sum: of.state("sum").(*sum)}
}

func (d *deviation) Grow(groups int) int { return grow(&d.squares, groups, 16) }

// Fold adds the squares with what they have beyond float64.
func (d *deviation) Fold(groups []uint32, values []numeric.Value, times []uint32) {
	if groups == nil {
		s := d.squares[0] // a copy stays in registers
		for i, x := range values {
			high, low := square(x)
			if times != nil && times[i] != 1 {
				high, low = product(high, low, times[i])
			}
			s = s.plus(high, low)
		}
		d.squares[0] = s
		return
	}
	for i, g := range groups {
		high, low := square(values[i])
		if times != nil && times[i] != 1 {
			high, low = product(high, low, times[i])
		}
		d.squares[g] = d.squares[g].plus(high, low)
	}
}

// square returns the square of a value. (The rest of a float64 below 2⁵³ is 0.)
func square(x numeric.Value) (high, low float64) {
	p, rest := x.Float*x.Float, float64(x.Rest)
	return p, math.FMA(x.Float, x.Float, -p) + (2*x.Float*rest + rest*rest)
}

func (d *deviation) FoldTotal(group uint32, n *Total) {
	s := n.squared()
	d.squares[group] = d.squares[group].plus(s.high, s.low)
}

func (d *deviation) Merge(group uint32, other Accumulator, from int) {
	o := other.(*deviation).squares[from]
	d.squares[group] = d.squares[group].plus(o.high, o.low)
}

// AppendJSON appends the deviation of the population, computed from exact sums with 300 bits.
func (d *deviation) AppendJSON(dst []byte, group int) []byte {
	sum, squares, n := &d.sum.of[group], &d.squares[group], d.count.n[group]
	if n == 0 || !sum.finite() || !squares.finite() {
		return append(dst, "null"...)
	}
	if v, ok := wholeVariance(sum, squares, n); ok {
		return jsontext.AppendFloat(dst, math.Sqrt(v))
	}
	// (n·Σx² − (Σx)²) / n²
	count, total := new(big.Float).SetPrec(precision).SetUint64(n), sum.big()
	v := squares.big()
	v.Mul(v, count).Sub(v, total.Mul(total, total)).Quo(v, count.Mul(count, count))
	x, _ := v.Float64()
	return jsontext.AppendFloat(dst, math.Sqrt(max(x, 0)))
}

// wholeVariance returns (n·Σx² − (Σx)²) / n² for sums that are integers with 128-bit products, rounded once. The result equals that
// of the computation with 300 bits.
func wholeVariance(sum, squares *double, n uint64) (v float64, ok bool) {
	s, whole := sum.whole()
	q, wholeSquares := squares.whole()
	if !whole || !wholeSquares || q < 0 || n >= 1<<32 {
		return 0, false
	}
	if s < 0 {
		s = -s
	}
	high, low := bits.Mul64(n, uint64(q))
	lessHigh, lessLow := bits.Mul64(uint64(s), uint64(s))
	low, borrow := bits.Sub64(low, lessLow, 0)
	if high, borrow = bits.Sub64(high, lessHigh, borrow); borrow != 0 { // a peer sent what cannot be
		return 0, false
	}
	return quotient128(high, low, n*n), true
}

// quotient128 returns the float64 nearest to the quotient of a number of two words and a number of one word, which is not 0.
func quotient128(high, low, by uint64) float64 {
	if high|low == 0 {
		return 0
	}
	// Shift both so that their first bit is the first of their word: the quotient then has at least 62 bits. Its last bit is set if
	// any later bit is.
	shift := bits.LeadingZeros64(high)
	if high == 0 {
		shift = 64 + bits.LeadingZeros64(low)
	}
	exponent := bits.LeadingZeros64(by) - shift + 1
	by <<= bits.LeadingZeros64(by)
	if shift >= 64 {
		high, low = low<<(shift-64), 0
	} else {
		high, low = high<<shift|low>>(64-shift), low<<shift
	}
	last := low & 1
	q, rest := bits.Div64(high>>1, high<<63|low>>1, by)
	if rest|last != 0 {
		q |= 1
	}
	return math.Ldexp(float64(q), exponent)
}

func (d *deviation) AppendPeer(dst []byte, group int) []byte {
	return appendSum(dst, &d.squares[group])
}

func (d *deviation) ReadPeer(r Reader, group int) { readSum(r, &d.squares[group]) }
