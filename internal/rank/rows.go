package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/segment"
	"svc/segment/rowlist"
)

// rows is a set of documents: a bitmap of rows per segment. A nil bitmap is empty. Bitmaps may be shared and are not modified once
// they are in a set.
type rows []*roaring.Bitmap

// ofLists returns the set of the rows in lists, by segment. It sorts the lists.
func ofLists(lists [][]uint32) rows {
	r := make(rows, len(lists))
	for seg, list := range lists {
		if len(list) > 0 {
			slices.Sort(list)
			r[seg] = rowlist.FromRows(list)
		}
	}
	return r
}

func (r rows) count() int {
	n := 0
	for _, b := range r {
		if b != nil {
			n += int(b.GetCardinality())
		}
	}
	return n
}

// only returns the document of a set of one document. ok is false for other sets, and if a bitmap is empty.
func (r rows) only() (seg int, row segment.Row, ok bool) {
	for i, b := range r {
		switch {
		case b == nil:
			continue
		case ok || b.GetCardinality() != 1:
			return 0, 0, false
		}
		seg, row, ok = i, segment.Row(b.Minimum()), true
	}
	return seg, row, ok
}

func (r rows) isEmpty() bool {
	for _, b := range r {
		if b != nil && !b.IsEmpty() {
			return false
		}
	}
	return true
}

// and intersects two bitmaps, either of which may be nil (empty). The result is nil if it is empty, and may be one of the arguments.
func and(a, b *roaring.Bitmap) *roaring.Bitmap {
	if a == nil || b == nil {
		return nil
	}
	r := a
	if a != b {
		r = rowlist.And(a, b)
	}
	if r.IsEmpty() {
		return nil
	}
	return r
}

func or(a, b *roaring.Bitmap) *roaring.Bitmap {
	switch {
	case a == nil:
		return b
	case b == nil || a == b:
		return a
	default:
		return rowlist.Or(a, b)
	}
}

// andNot subtracts b from a. The result is nil if it is empty, and may be a.
func andNot(a, b *roaring.Bitmap) *roaring.Bitmap {
	switch {
	case a == nil || b == nil:
		return a
	case a == b:
		return nil
	case !a.Intersects(b): // which takes less than a copy
		return a
	}
	d := rowlist.AndNot(a, b)
	if d.IsEmpty() {
		return nil
	}
	return d
}

// less returns a without b. If own is set, a is not shared and less may overwrite it. The second result says whether the returned
// bitmap is not shared.
func less(a, b *roaring.Bitmap, own bool) (*roaring.Bitmap, bool) {
	if !own || a == nil || b == nil || a == b {
		d := andNot(a, b)
		return d, own || d != a
	}
	if a = rowlist.Subtract(a, b); a.IsEmpty() {
		return nil, true
	}
	return a, true
}

func each(a, b rows, f func(a, b *roaring.Bitmap) *roaring.Bitmap) rows {
	out := make(rows, len(a))
	for i := range a {
		out[i] = f(a[i], b[i])
	}
	return out
}

// remove removes documents from r, which belongs to the caller. own says by segment which bitmaps are not shared; nil: none. Shared
// bitmaps are copied once. remove returns the updated own.
func (r rows) remove(o rows, own []bool) []bool {
	if own == nil {
		own = make([]bool, len(r))
	}
	for i, b := range o {
		switch {
		case r[i] == nil || b == nil:
			continue
		case own[i]:
			r[i] = rowlist.Subtract(r[i], b)
		default:
			r[i], own[i] = rowlist.AndNot(r[i], b), true
		}
		if r[i].IsEmpty() {
			r[i] = nil
		}
	}
	return own
}

// union returns the documents of any of some sets; nil stands for an empty one. The result belongs to the caller.
func union(sets []rows, segments int) rows {
	out := make(rows, segments)
	var few [query.MaxTerms + 1]*roaring.Bitmap
	for seg := range out {
		of := few[:0]
		for _, r := range sets {
			if r != nil && r[seg] != nil && !slices.Contains(of, r[seg]) {
				of = append(of, r[seg])
			}
		}
		out[seg] = rowlist.OrAll(of)
	}
	return out
}

func (r rows) and(o rows) rows    { return each(r, o, and) }
func (r rows) or(o rows) rows     { return each(r, o, or) }
func (r rows) andNot(o rows) rows { return each(r, o, andNot) }

// inSegmentsOf returns the documents in segments where another set has documents.
func (r rows) inSegmentsOf(o rows) rows {
	out := make(rows, len(r))
	for i := range r {
		if o[i] != nil {
			out[i] = r[i]
		}
	}
	return out
}

func (r rows) intersects(o rows) bool {
	for i := range r {
		if r[i] != nil && o[i] != nil && r[i].Intersects(o[i]) {
			return true
		}
	}
	return false
}

// commonCount returns how many documents are in both sets.
func (r rows) commonCount(o rows) int {
	n := 0
	for i := range r {
		if r[i] != nil && o[i] != nil {
			n += int(r[i].AndCardinality(o[i]))
		}
	}
	return n
}

func (r rows) has(segment int, row uint32) bool {
	return r[segment] != nil && r[segment].Contains(row)
}

func cardinality(r *roaring.Bitmap) int {
	if r == nil {
		return 0
	}
	return int(r.GetCardinality())
}
