package aggregate

import (
	"encoding/binary"
	"math"
	"strconv"

	"svc/internal/numeric"
)

// count is how many values there are.
type count struct{ n []uint64 }

func newCount(*Figures) Accumulator { return new(count) }

func (c *count) Grow(groups int) int { return grow(&c.n, groups, 8) }

// Fold counts values by group. groups is nil for one group, times is nil if each value counts once.
func (c *count) Fold(groups []uint32, values []numeric.Value, times []uint32) {
	switch {
	case groups == nil && times == nil:
		c.n[0] += uint64(len(values))
	case groups == nil:
		n := uint64(0)
		for _, t := range times {
			n += uint64(t)
		}
		c.n[0] += n
	case times == nil:
		for _, g := range groups {
			c.n[g]++
		}
	default:
		for i, g := range groups {
			c.n[g] += uint64(times[i])
		}
	}
}

func (c *count) FoldTotal(group uint32, n *Total) { c.n[group] += n.Count }

func (c *count) Merge(group uint32, other Accumulator, from int) {
	c.n[group] = addCounts(c.n[group], other.(*count).n[from])
}

func (c *count) AppendJSON(dst []byte, group int) []byte {
	return strconv.AppendUint(dst, c.n[group], 10)
}

func (c *count) AppendPeer(dst []byte, group int) []byte {
	return binary.AppendUvarint(dst, c.n[group])
}

func (c *count) ReadPeer(r Reader, group int) { c.n[group] = uint64(r.Int(maxCount)) }

// maxCount bounds counts of other machines, so that sums of some are numbers of JSON that programs read exactly.
const maxCount = 1 << 53

// addCounts adds counts up to MaxInt64.
func addCounts(a, b uint64) uint64 { return min(a+b, math.MaxInt64) }
