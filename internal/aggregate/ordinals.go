package aggregate

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// Ordinals says how many of some rows of a segment have each ordinal of a column, as numbers or as strings. It counts those rows, or the
// others where they are fewer.
type Ordinals struct {
	Strings bool
	Column  *segment.Column
	Inverse bool     // the column's own counts, less those below
	Counts  []uint32 // by ordinal; nil if few rows are counted:
	Have    []uint32 // ordinals that some row has, ascending
	Times   []uint32 // and how many rows
}

// FewCounted is the number of rows up to which only their ordinals are listed: an array of counts would have to be cleared for all
// ordinals. ManyPerCounted is the minimum number of values of the column for each of these rows. (Variables, so that tests can change
// them.)
var (
	FewCounted     = 4096
	ManyPerCounted = 4
)

// CountOrdinals counts some rows of a segment that has segmentRows.
func CountOrdinals(c *segment.Column, strings bool, among *roaring.Bitmap, segmentRows int) Ordinals {
	k := Ordinals{Strings: strings, Column: c}
	n := int(among.GetCardinality())
	if n > segmentRows-n {
		k.Inverse = true
		if n == segmentRows {
			return k
		}
		among = roaring.Flip(among, 0, uint64(segmentRows))
		n = segmentRows - n
	}
	count, row, size := c.CountNumbers, c.RowNumbers, c.Numbers()
	if strings {
		count, row, size = c.CountStrings, c.RowStrings, c.Strings()
	}
	if n <= FewCounted && n*ManyPerCounted <= size {
		for it := among.Iterator(); it.HasNext(); {
			k.Have = row(k.Have, segment.Row(it.Next()))
		}
		slices.Sort(k.Have)
		distinct := k.Have[:0]
		for _, ord := range k.Have {
			if last := len(distinct) - 1; last >= 0 && distinct[last] == ord {
				k.Times[last]++
				continue
			}
			distinct, k.Times = append(distinct, ord), append(k.Times, 1)
		}
		k.Have = distinct
		return k
	}
	k.Counts = make([]uint32, size)
	var buf [256]uint32
	for it := among.ManyIterator(); ; {
		got := it.NextMany(buf[:])
		if got == 0 {
			return k
		}
		count(k.Counts, buf[:got])
	}
}

// Of returns the count of an ordinal.
func (k *Ordinals) Of(ord int) int {
	n := 0
	if k.Counts != nil {
		n = int(k.Counts[ord])
	} else if len(k.Have) > 0 && uint32(ord) >= k.Have[0] && uint32(ord) <= k.Have[len(k.Have)-1] {
		if i, ok := slices.BinarySearch(k.Have, uint32(ord)); ok {
			n = int(k.Times[i])
		}
	}
	switch {
	case !k.Inverse:
		return n
	case k.Strings:
		return k.Column.StringCount(ord) - n
	default:
		return k.Column.NumberCount(ord) - n
	}
}

// Listed reports whether no ordinals count but those in Have.
func (k *Ordinals) Listed() bool { return !k.Inverse && k.Counts == nil }

// Up returns the first ordinal from ord on that some row may have.
func (k *Ordinals) Up(ord int) int {
	if !k.Listed() {
		return ord
	}
	if i, _ := slices.BinarySearch(k.Have, uint32(ord)); i < len(k.Have) {
		return int(k.Have[i])
	}
	return math.MaxInt
}

// Down returns the last ordinal up to ord that some row may have, or −1.
func (k *Ordinals) Down(ord int) int {
	if !k.Listed() || ord < 0 {
		return ord
	}
	if i, _ := slices.BinarySearch(k.Have, uint32(ord)+1); i > 0 {
		return int(k.Have[i-1])
	}
	return -1
}

// size returns how many ordinals there are.
func (k *Ordinals) size() int {
	if k.Strings {
		return k.Column.Strings()
	}
	return k.Column.Numbers()
}

// distinct returns about how many ordinals some row has.
func (k *Ordinals) distinct() int {
	n := len(k.Have)
	for _, times := range k.Counts {
		if times > 0 {
			n++
		}
	}
	if k.Inverse {
		return k.size() - n // most rows count, so that an ordinal is rarely one of the others alone
	}
	return n
}

// Each calls f with up to batch ordinals at once that some row has, ascending, and their counts, until it fails.
func (k *Ordinals) Each(f func(ords, counts []uint32) error) error {
	var ords, counts, block [batch]uint32
	size, have := k.size(), 0
	if k.Listed() {
		size, _ = slices.BinarySearch(k.Have, uint32(size)) // a forged segment may name others
	}
	for lo := 0; lo < size; lo += batch {
		list, all := ords[:min(batch, size-lo)], block[:min(batch, size-lo)]
		if k.Listed() {
			copy(list, k.Have[lo:])
			copy(all, k.Times[lo:])
		} else {
			have = k.block(all, lo, have)
			for i := range list {
				list[i] = uint32(lo + i)
			}
		}
		n := 0
		for i, count := range all {
			list[n], counts[n] = list[i], count
			if count > 0 { // instead of a branch around the line above. A row that was taken away leaves a 0.
				n++
			}
		}
		if n > 0 {
			if err := f(list[:n], counts[:n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// block sets the counts of the ordinals from lo on. have is how many entries of Have the earlier ordinals fill; block returns that
// number with its own included.
func (k *Ordinals) block(counts []uint32, lo, have int) int {
	switch {
	case !k.Inverse:
		copy(counts, k.Counts[lo:])
		return have
	case k.Strings:
		k.Column.StringCounts(counts, lo)
	default:
		k.Column.NumberCounts(counts, lo)
	}
	if k.Counts != nil {
		for i, less := range k.Counts[lo : lo+len(counts)] {
			counts[i] -= min(less, counts[i])
		}
	}
	for ; have < len(k.Have) && int(k.Have[have]) < lo+len(counts); have++ {
		if at := int(k.Have[have]) - lo; at >= 0 {
			counts[at] -= min(k.Times[have], counts[at])
		}
	}
	return have
}
