package rank

import "github.com/RoaringBitmap/roaring/v2"

// openRows splits a bucket by the costs of its rows, as bitmaps.
func openRows(s *search, b *bucket, i int) split {
	var next func() (*bucket, verdict)
	return split{lookUpValues, func() (*bucket, verdict) {
		if next == nil {
			next = splitRows(s, b, b.rows, i)
		}
		return next()
	}}
}

// splitRows returns documents of a bucket by the costs that rule i gives each, as bitmaps.
func splitRows(s *search, b *bucket, in rows, i int) (next func() (*bucket, verdict)) {
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
	begin := 0
	return func() (*bucket, verdict) {
		if begin == n {
			return nil, verdict{}
		}
		r := make(rows, len(b.rows))
		end := begin
		for ; end < n && costs[end] == costs[begin]; end++ {
			e := l.entries[end]
			if r[e.segment] == nil {
				r[e.segment] = roaring.New()
			}
			r[e.segment].Add(e.row)
		}
		said := o.verdict(costs[begin])
		begin = end
		return b.part(r), said
	}
}

// unsplit is a bucket whose documents all cost the same.
func unsplit(b *bucket) split {
	return split{singleCost, func() (*bucket, verdict) {
		sub := b
		b = nil
		return sub, verdict{rank: 1, ranks: 1}
	}}
}
