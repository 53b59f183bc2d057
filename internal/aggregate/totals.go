package aggregate

import (
	"math/bits"

	"svc/internal/numeric"
	"svc/segment"
)

// Total is what whole numbers of one segment add up to, exactly. Adding is several times cheaper than folding.
type Total struct {
	added
	low, high numeric.Value
}

// added are numbers of a group.
type added struct {
	count       uint64
	sum         int64
	squares     [2]uint64 // the high and the low word
	least, most uint32    // ordinals
}

// What is added up: numbers below 2³¹, and up to 2³² of them, so that their sum has 63 bits.
const endWhole = 1 << 31

// Bounds, which tests lower: totals are settled before one of them has more than endTotal numbers, and at most maxTotals groups have one.
var (
	endTotal  uint64 = 1 << 32
	maxTotals        = 1 << 12
)

// addedBytes is the size of an added.
const addedBytes = 40

// totals has the sums of each group in the open segment, until settle folds them into figures.
type totals struct {
	of     []added
	column *segment.Column
	n      uint64 // numbers at most in one of them

	restGroups []uint32
	rest       []numeric.Value
}

// add adds numbers of groups, with their ordinals, to their totals, for which there is room. nil groups stand for group 0. It returns
// those that are not whole, or too large, with their groups, until it is called again.
func (t *totals) add(groups, ords []uint32, values []numeric.Value) (restGroups []uint32, rest []numeric.Value) {
	t.rest, t.restGroups = t.rest[:0], t.restGroups[:0]
	t.n += uint64(len(ords))
	of := t.of
	for i, ord := range ords {
		g := uint32(0)
		if groups != nil {
			g = groups[i]
		}
		x := int64(values[i].Float)
		if float64(x) != values[i].Float || uint64(x+endWhole) >= 2*endWhole {
			t.rest, t.restGroups = append(t.rest, values[i]), append(t.restGroups, g)
			continue
		}
		n := &of[g]
		if n.count == 0 {
			n.least = ord
		}
		n.count++
		n.sum += x
		var carry uint64
		n.squares[1], carry = bits.Add64(n.squares[1], uint64(x*x), 0)
		n.squares[0] += carry
		n.least, n.most = min(n.least, ord), max(n.most, ord)
	}
	if groups == nil {
		return nil, t.rest
	}
	return t.restGroups, t.rest
}

// settle folds the totals into figures, which have room for all groups, and empties them.
func (t *totals) settle(f *Figures) {
	if t.n == 0 {
		return
	}
	for g := range t.of {
		if n := &t.of[g]; n.count > 0 {
			f.foldTotal(uint32(g), &Total{*n, t.column.Number(int(n.least)), t.column.Number(int(n.most))})
			*n = added{}
		}
	}
	t.n = 0
}

// squared returns the sum of the squares: 2⁶² times 2³² at most.
func (n *Total) squared() double {
	const half, whole = 1 << 32, 1 << 64
	d := double{}.plus(float64(n.squares[0])*whole, 0)
	d = d.plus(float64(n.squares[1]>>32)*half, 0)
	return d.plus(float64(n.squares[1]%half), 0)
}

// summed returns the sum.
func (n *Total) summed() double {
	const half = 1 << 32
	return double{}.plus(float64(n.sum>>32)*half, 0).plus(float64(n.sum&(half-1)), 0)
}
