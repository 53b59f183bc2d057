package aggregate

import (
	"math"
	"math/big"

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
	// (n·Σx² − (Σx)²) / n²
	count, total := new(big.Float).SetPrec(precision).SetUint64(n), sum.big()
	v := squares.big()
	v.Mul(v, count).Sub(v, total.Mul(total, total)).Quo(v, count.Mul(count, count))
	x, _ := v.Float64()
	return jsontext.AppendFloat(dst, math.Sqrt(max(x, 0)))
}

func (d *deviation) AppendPeer(dst []byte, group int) []byte {
	return appendSum(dst, &d.squares[group])
}

func (d *deviation) ReadPeer(r Reader, group int) { readSum(r, &d.squares[group]) }
