package rank

import "github.com/RoaringBitmap/roaring/v2"

// openRows splits a bucket by the costs of its rows, as bitmaps.
func openRows(s *search, b *bucket, i int) split {
	return split{lookUpValues, func(yield func(*bucket, part) bool) { splitRows(s, b, b.rows, i, yield) }}
}

// splitRows yields some documents of a bucket by the costs that rule i gives each, as bitmaps.
func splitRows(s *search, b *bucket, in rows, i int, yield func(*bucket, part) bool) {
	n := in.count()
	l := list{entries: make([]entry, 0, n), uniform: true}
	for seg, r := range in {
		if r == nil {
			continue
		}
		for it := r.Iterator(); it.HasNext(); {
			l.entries = append(l.entries, entry{row: it.Next(), segment: uint16(seg)})
		}
	}
	costs := make([]uint32, n)
	o := s.rules[i].costs(s, &l, i, costs)
	order(&s.scratch, l.entries, costs)
	for begin := 0; begin < n; {
		r := make(rows, len(b.rows))
		end := begin
		for ; end < n && costs[end] == costs[begin]; end++ {
			e := l.entries[end]
			if r[e.segment] == nil {
				r[e.segment] = roaring.New()
			}
			r[e.segment].Add(e.row)
		}
		if !yield(b.part(r), o.part(costs[begin])) {
			return
		}
		begin = end
	}
}
