package aggregate

import (
	"math/big"

	"svc/internal/jsontext"
	"svc/internal/numeric"
)

// mean is the average of the values, computed from their sum and their number.
type mean struct {
	count *count
	sum   *sum
}

func newMean(of *Figures) Accumulator {
	return &mean{of.state("count").(*count), of.state("sum").(*sum)}
}

func (m *mean) Grow(int) int                             { return 0 }
func (m *mean) Fold([]uint32, []numeric.Value, []uint32) {}
func (m *mean) FoldTotal(uint32, *Total)                 {}
func (m *mean) Merge(uint32, Accumulator, int)           {}
func (m *mean) AppendPeer(dst []byte, _ int) []byte      { return dst }
func (m *mean) ReadPeer(Reader, int)                     {}

// AppendJSON appends the mean, rounded once, or null for an empty group.
func (m *mean) AppendJSON(dst []byte, group int) []byte {
	d, n := &m.sum.of[group], m.count.n[group]
	if !d.finite() || n == 0 {
		return append(dst, "null"...)
	}
	if d.low == 0 && n < 1<<53 { // the quotient of two float64 is rounded once
		return jsontext.AppendFloat(dst, d.high/float64(n)+0)
	}
	x, _ := d.big().Quo(d.big(), new(big.Float).SetUint64(n)).Float64()
	return jsontext.AppendFloat(dst, x+0)
}
