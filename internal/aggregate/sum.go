package aggregate

import (
	"math"
	"math/big"

	"svc/internal/jsontext"
	"svc/internal/numeric"
)

// double is a sum as the unevaluated sum of two float64 (T. J. Dekker 1971). It has about 106 bits, so the float64 nearest to it does
// not depend on the order of the values. A sum that overflows has no number in JSON.
type double struct{ high, low float64 }

// plus returns the sum after adding a value and its part beyond float64 (D. E. Knuth's two-sum).
func (d double) plus(high, low float64) double {
	s := d.high + high
	b := s - d.high
	return double{s, d.low + ((d.high - (s - b)) + (high - b) + low)}
}

// finite reports whether the sum is a number.
func (d *double) finite() bool { x := d.high + d.low; return !math.IsNaN(x) && !math.IsInf(x, 0) }

// whole returns the sum as an integer, if both of its parts are integers below 2⁶².
func (d *double) whole() (n int64, ok bool) {
	const end = 1 << 62
	high, low := int64(d.high), int64(d.low)
	return high + low, math.Abs(d.high) < end && math.Abs(d.low) < end && float64(high) == d.high && float64(low) == d.low
}

// precision is the precision of computations with sums, in bits.
const precision = 300

func (d *double) big() *big.Float {
	x := new(big.Float).SetPrec(precision).SetFloat64(d.high)
	return x.Add(x, new(big.Float).SetFloat64(d.low))
}

func (d *double) appendPeer(dst []byte) []byte { return appendFloat(appendFloat(dst, d.high), d.low) }

func (d *double) readPeer(r Reader) { d.high, d.low = r.Float(), r.Float() }

// sum is the sum of the values.
type sum struct{ of []double }

func newSum(*Figures) Accumulator { return new(sum) }

func (s *sum) Grow(groups int) int { return grow(&s.of, groups, 16) }

// Fold adds values, each as often as times says. The exact product of value and count is added, so a tally
// equals a walk.
func (s *sum) Fold(groups []uint32, values []numeric.Value, times []uint32) {
	if groups == nil {
		d := s.of[0] // a copy stays in registers
		for i, x := range values {
			high, low := x.Float, float64(x.Rest)
			if times != nil && times[i] != 1 {
				high, low = product(high, low, times[i])
			}
			d = d.plus(high, low)
		}
		s.of[0] = d
		return
	}
	for i, g := range groups {
		high, low := values[i].Float, float64(values[i].Rest)
		if times != nil && times[i] != 1 {
			high, low = product(high, low, times[i])
		}
		s.of[g] = s.of[g].plus(high, low)
	}
}

// product returns (high + low)·times.
func product(high, low float64, times uint32) (_, _ float64) {
	n := float64(times)
	p := high * n
	return p, math.FMA(high, n, -p) + low*n
}

func (s *sum) FoldTotal(group uint32, n *Total) {
	d := n.summed()
	s.of[group] = s.of[group].plus(d.high, d.low)
}

func (s *sum) Merge(group uint32, other Accumulator, from int) {
	o := other.(*sum).of[from]
	s.of[group] = s.of[group].plus(o.high, o.low)
}

func (s *sum) AppendJSON(dst []byte, group int) []byte {
	d := &s.of[group]
	if !d.finite() {
		return append(dst, "null"...)
	}
	return jsontext.AppendFloat(dst, d.high+d.low)
}

// An overflowed sum is encoded as zero and a flag, because the encoding has no infinity.
func (s *sum) AppendPeer(dst []byte, group int) []byte { return appendSum(dst, &s.of[group]) }

func (s *sum) ReadPeer(r Reader, group int) { readSum(r, &s.of[group]) }

func appendSum(dst []byte, d *double) []byte {
	if !d.finite() {
		return append(dst, 0)
	}
	return d.appendPeer(append(dst, 1))
}

func readSum(r Reader, d *double) {
	if d.high = math.Inf(1); r.Byte() != 0 {
		d.readPeer(r)
	}
}
