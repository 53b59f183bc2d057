package aggregate

import (
	"svc/internal/numeric"
	"svc/segment"
)

// Total is the exact sum of the integers of one segment. Adding to it is several times cheaper than folding.
type Total struct {
	segment.NumberSums
	low, high numeric.Value
}

// Bounds, which tests lower: totals are settled before one of them has more than endTotal numbers, and at most maxTotals groups have one.
var (
	endTotal  uint64 = 1 << 32
	maxTotals        = 1 << 12
)

// sumsBytes is the size of the sums of a group.
const sumsBytes = 40

// totals has the sums of each group in the open segment, until settle folds them into figures.
type totals struct {
	of     []segment.NumberSums
	column *segment.Column
	n      uint64 // numbers at most in one of them

	restGroups []uint32
	rest       []numeric.Value
	total      Total // that is folded
}

// room settles the totals if they have no room for the given number of further numbers, and makes room for groups.
func (t *totals) room(w *work, f *Figures, numbers, groups int) error {
	if t.n+uint64(numbers) > endTotal {
		t.settle(f)
	}
	t.n += uint64(numbers)
	return w.hold(f.Grow(groups) + grow(&t.of, max(groups, len(t.of)), sumsBytes))
}

// add adds numbers of groups, with their ordinals, to their totals, which have room. nil groups stand for group 0. It returns the
// numbers that are not integers or too large, with their groups. They are valid until the next call.
func (t *totals) add(groups, ords []uint32, values []numeric.Value) (restGroups []uint32, rest []numeric.Value) {
	t.rest, t.restGroups = t.rest[:0], t.restGroups[:0]
	of := t.of
	for i, ord := range ords {
		g := uint32(0)
		if groups != nil {
			g = groups[i]
		}
		x, ok := segment.Whole(values[i].Float)
		if !ok {
			t.rest, t.restGroups = append(t.rest, values[i]), append(t.restGroups, g)
			continue
		}
		of[g].Add(ord, x)
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
		if n := &t.of[g]; n.Count > 0 {
			t.total = Total{*n, t.column.Number(int(n.Least())), t.column.Number(int(n.Most))}
			f.foldTotal(uint32(g), &t.total)
			*n = segment.NumberSums{}
		}
	}
	t.n = 0
}

// squared returns the sum of the squares: 2⁶² times 2³² at most.
func (n *Total) squared() double {
	const half, whole = 1 << 32, 1 << 64
	d := double{}.plus(float64(n.Squares[0])*whole, 0)
	d = d.plus(float64(n.Squares[1]>>32)*half, 0)
	return d.plus(float64(n.Squares[1]%half), 0)
}

// summed returns the sum.
func (n *Total) summed() double {
	const half = 1 << 32
	return double{}.plus(float64(n.Sum>>32)*half, 0).plus(float64(n.Sum&(half-1)), 0)
}
