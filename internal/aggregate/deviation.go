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

func (d *deviation) Fold(groups []uint32, values []numeric.Value, times []uint32) {
	for i, g := range groups {
		x := values[i].Float
		p := x * x
		low := math.FMA(x, x, -p)
		if rest := float64(values[i].Rest); rest != 0 {
			low += 2*x*rest + rest*rest
		}
		if times != nil && times[i] != 1 {
			n := float64(times[i])
			q := p * n
			p, low = q, math.FMA(p, n, -q)+low*n
		}
		d.squares[g].add(p, low)
	}
}

func (d *deviation) Merge(group uint32, other Accumulator, from int) {
	o := other.(*deviation).squares[from]
	d.squares[group].add(o.high, o.low)
}

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
