package ann

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// Many rows may have the same code: those of empty texts, say, or of texts that differ only beyond what is embedded. Linked like other
// rows, they fill each other's slots, and a walk that meets them finds no way to other rows. So only one row of each code, the
// original, is linked like other rows. The copies are a tree below it: the original has one link to the first copy, and each copy has
// a link to the original and links to further copies.

// originals returns the original of each row, or nil if all codes differ. Of equal rows it is the first that is known, or else the first.
// known may be nil.
func originals(c Codes, known []bool) []uint32 {
	type hashed struct {
		sum uint64
		row uint32
	}
	all := make([]hashed, c.Rows())
	var ids []uint32
	for from := 0; from < len(all); from += 1024 {
		to := min(from+1024, len(all))
		if c.Touch != nil {
			ids = ids[:0]
			for row := from; row < to; row++ {
				ids = append(ids, uint32(row))
			}
			c.Touch(ids)
		}
		for row := from; row < to; row++ {
			code := c.row(uint32(row))
			all[row] = hashed{xxhash.Sum64(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(code))), len(code))), uint32(row)}
		}
	}
	later := func(row uint32) int {
		if known != nil && !known[row] {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(x, y hashed) int {
		return cmp.Or(cmp.Compare(x.sum, y.sum), later(x.row)-later(y.row), cmp.Compare(x.row, y.row))
	})
	var of []uint32
	first := 0
	for i := 1; i < len(all); i++ {
		if all[i].sum != all[first].sum {
			first = i
			continue
		}
		row, original := all[i].row, all[first].row
		if !slices.Equal(c.row(row), c.row(original)) { // another code with the same hash: its row is linked like others
			continue
		}
		if of == nil {
			of = make([]uint32, len(all))
			for row := range of {
				of[row] = uint32(row)
			}
		}
		of[row] = original
	}
	return of
}

// isCopy reports whether a row has an original other than itself. original is of originals.
func isCopy(original []uint32, row uint32) bool { return original != nil && original[row] != row }

// hang links the copies below their originals, which are all linked.
func (b *builder) hang() {
	var copies []uint32 // by original, then by row
	for row, original := range b.original {
		if uint32(row) != original {
			copies = append(copies, uint32(row))
		}
	}
	slices.SortStableFunc(copies, func(x, y uint32) int { return cmp.Compare(b.original[x], b.original[y]) })
	for len(copies) > 0 {
		original, n := b.original[copies[0]], 1
		for n < len(copies) && b.original[copies[n]] == original {
			n++
		}
		b.lead(original, copies[0])
		for i, row := range copies[:n] {
			s := b.slotsLocked(row, 0)
			s[0] = original
			below := s[1:]
			if from := 1 + i*len(below); from < n {
				copy(below, copies[from:n])
			}
		}
		copies = copies[n:]
	}
}

// lead adds a link from an original to its first copy. If there is no room, it replaces a link to a row to which another neighbour leads,
// if there is one.
func (b *builder) lead(original, first uint32) {
	s := b.slotsLocked(original, 0)
	if n := len(neighbours(s)); n < len(s) {
		s[n] = first
		return
	}
	at := len(s) - 1
	for i := at; i >= 0; i-- {
		if slices.ContainsFunc(s, func(other uint32) bool { return slices.Contains(b.slotsLocked(other, 0), s[i]) }) {
			at = i
			break
		}
	}
	s[at] = first
}
