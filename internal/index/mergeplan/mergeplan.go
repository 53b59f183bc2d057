// Package mergeplan decides which segments of an index to merge. It is a pure function over a small view of them: no
// files, no clock.
//
// The policy is logarithmic. Segments are ordered by the bytes of their live rows. A run of them is merged if it is long enough, and
// if each member is at most as large as all members before it together, or twice its neighbour. So a row is rewritten only into
// segments about twice as large as its own, at most log₂(n) times, and about log₂(n) segments remain. A compactor that falls behind
// finds longer runs, which cost less per row: the policy slows down by itself.
//
// A long run of segments that are not tiny, as after a large import, is merged in two or more passes: first its smallest segments, a
// dozen or more at a time. Each row is written once more for that. But searches, which visit all segments, soon visit fewer of them,
// and not only when the whole run is merged.
package mergeplan

import (
	"cmp"
	"slices"
)

// Segment is what the plan needs to know of a segment.
type Segment struct {
	Rows, Live int // rows in the file, and those not deleted
	Bytes      int64
}

// Options are the knobs; see Default.
type Options struct {
	// Floor is the size below which segments count as equally small, in bytes.
	Floor int64
	// A run needs MinRun segments, or only MinLargeRun when it has at least
	// Large bytes: below that, what a merge costs is its commit, above it is the bytes.
	MinRun, MinLargeRun int
	Large               int64
	// Part: of a long run, about so many of the smallest segments, or more up to Large bytes, are merged first if they have at most
	// half of its bytes.
	Part int
	// MaxBytes bounds the live bytes of a merge's result. Segments of more than half of it are left alone.
	MaxBytes int64
	// DeadShare: a segment with a larger share of deleted rows is rewritten alone.
	DeadShare float64
}

// Default returns the options svc runs with.
func Default() Options {
	return Options{Floor: 4 << 10, MinRun: 4, MinLargeRun: 2, Large: 4 << 20, Part: 16, MaxBytes: 16 << 30, DeadShare: 1. / 3}
}

// OfImport returns the options for the segments of an import in progress, which are not searched yet: of a run as long as two parts,
// the smaller part is merged. So fewer remain to be merged at the end.
func OfImport() Options {
	o := Default()
	o.MinRun, o.MinLargeRun = 2*o.Part, 2*o.Part
	return o
}

// Merge is one merge to do.
type Merge struct {
	Inputs []int // indices into the segments given to Plan, ascending
	Bytes  int64 // of their live rows
}

// Plan returns disjoint merges, the smallest first; none when the segments are fine as they are.
func Plan(segments []Segment, o Options) []Merge {
	type entry struct {
		index  int
		weight int64
	}
	var line []entry
	for i, s := range segments {
		if w := s.weight(); w <= o.MaxBytes/2 {
			line = append(line, entry{i, w})
		}
	}
	floored := func(e entry) int64 { return max(e.weight, o.Floor) }
	slices.SortStableFunc(line, func(a, b entry) int { return cmp.Compare(a.weight, b.weight) })

	var merges []Merge
	taken := make([]bool, len(segments))
	first := 0 // of the entries that no merge has
	for start := 0; start < len(line); {
		sum := floored(line[start])
		end := start + 1
		for ; end < len(line); end++ {
			w := floored(line[end])
			if w > max(sum, 2*floored(line[end-1])) || sum+w > o.MaxBytes {
				break
			}
			sum += w
		}
		n := end - start
		if n < 2 || n < o.MinRun && (n < o.MinLargeRun || sum < o.Large) {
			start++
			continue
		}
		end = start + o.part(n, sum, func(i int) int64 { return floored(line[start+i]) })
		// Smaller segments that make no run of their own come along: they cost little.
		var m Merge
		for i := end - 1; i >= first && (i >= start || m.Bytes+line[i].weight <= o.MaxBytes); i-- {
			m.Inputs = append(m.Inputs, line[i].index)
			m.Bytes += line[i].weight
			taken[line[i].index] = true
		}
		slices.Sort(m.Inputs)
		merges = append(merges, m)
		start, first = end, end
	}
	for i, s := range segments {
		if !taken[i] && s.Live < s.Rows && float64(s.Rows-s.Live) > o.DeadShare*float64(s.Rows) {
			merges = append(merges, Merge{[]int{i}, s.weight()})
		}
	}
	slices.SortStableFunc(merges, func(a, b Merge) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return merges
}

// part returns how many segments of a run of n are merged at once, at least two. weight returns the weight of each, smallest first;
// sum is the total. If a few segments beyond a part are of similar size and the next one is far larger, the part includes them.
func (o *Options) part(n int, sum int64, weight func(i int) int64) int {
	part, least := n, max(2, o.Part)
	var before int64
	for i := range n {
		if i >= least && before >= o.Large {
			if before > sum/2 || part < n && i >= 2*least {
				break
			}
			if weight(i) > 2*weight(i-1) {
				return i
			}
			part = min(part, i)
		}
		before += weight(i)
	}
	return part
}

// weight estimates the bytes of the live rows.
func (s Segment) weight() int64 {
	if s.Rows == 0 {
		return 0
	}
	return int64(float64(s.Bytes) * float64(s.Live) / float64(s.Rows))
}
