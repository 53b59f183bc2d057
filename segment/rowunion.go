package segment

import (
	"math/bits"
	"slices"
)

// rowUnion unites lists of rows. Its memory is used again.
type rowUnion struct {
	rows, spare []uint32
	bits        []uint64 // all 0 between two unions
}

// unionSpan is the most words of a bit set for each row of the lists: in wider sets, reading empty words takes longer than merging lists.
const unionSpan = 2

// of returns the ascending union of the rows of fields, none of them empty, valid until the next call.
func (u *rowUnion) of(fields []fieldRows) []uint32 {
	first, last, total := uint32(noRow), uint32(0), 0
	for i := range fields {
		rows := fields[i].rows
		first, last, total = min(first, rows[0]), max(last, rows[len(rows)-1]), total+len(rows)
	}
	first &^= 63
	if words := int(last-first)/64 + 1; words <= unionSpan*total {
		return u.byBits(fields, first, words)
	}
	u.rows = append(u.rows[:0], fields[0].rows...)
	for i := range fields[1:] {
		u.merge(fields[i+1].rows)
	}
	return u.rows
}

// merge adds the rows of an ascending list.
func (u *rowUnion) merge(list []uint32) {
	u.spare = appendUnion(u.spare[:0], u.rows, list)
	u.rows, u.spare = u.spare, u.rows
}

// mergedParts is the most ascending parts of a list that are merged. Each merge goes through the parts before it again, so sorting takes
// less time if there are more.
const mergedParts = 8

// ascending returns the rows of a list in ascending order, each once, valid until the next call. It may reorder the list, which consists
// of few ascending parts if rows were gathered input by input.
func (u *rowUnion) ascending(list []uint32) []uint32 {
	var ends [mergedParts]int
	parts := 0
	for i := 1; i < len(list); i++ {
		if list[i] > list[i-1] {
			continue
		}
		if parts == mergedParts-1 {
			slices.Sort(list)
			return slices.Compact(list)
		}
		ends[parts] = i
		parts++
	}
	if parts == 0 {
		return list
	}
	ends[parts] = len(list)
	u.rows = append(u.rows[:0], list[:ends[0]]...)
	for i := range parts {
		u.merge(list[ends[i]:ends[i+1]])
	}
	return u.rows
}

// byBits unites lists by a set of so many words, of which the first bit is row first. Where lists interleave, the processor predicts the
// steps of a merge badly, and a merge of many fields goes through the first ones again and again.
func (u *rowUnion) byBits(fields []fieldRows, first uint32, words int) []uint32 {
	if len(u.bits) < words {
		u.bits = make([]uint64, words+words/4)
	}
	set := u.bits[:words]
	for i := range fields {
		for _, r := range fields[i].rows {
			set[(r-first)/64] |= 1 << (r % 64)
		}
	}
	rows := u.rows[:0]
	for i, w := range set {
		set[i] = 0
		for ; w != 0; w &= w - 1 {
			rows = append(rows, first+uint32(64*i+bits.TrailingZeros64(w)))
		}
	}
	u.rows = rows
	return rows
}

// appendUnion appends the union of two ascending lists.
func appendUnion(dst, a, b []uint32) []uint32 {
	n := len(dst)
	dst = slices.Grow(dst, len(a)+len(b))[:n+len(a)+len(b)]
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		dst[n] = min(x, y)
		n++
		if x <= y {
			i++
		}
		if y <= x {
			j++
		}
	}
	return append(append(dst[:n], a[i:]...), b[j:]...)
}
