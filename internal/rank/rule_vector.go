package rank

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// VectorQuery makes a ranking semantic: the vector rule stands in the place of all rules
// that look at how a query matches.
type VectorQuery struct {
	Embedder segment.EmbedderID
	Vectors  [][]float32 // a document is as near as its nearest vector is to any of these
	Shift    *Shift      // nil: none
	Only     bool        // the vector rule is the only one, and documents without vectors are not found
}

// Shift moves similarities, of which Mean is a usual one and Sigma their deviation, so that they spread over the scale.
type Shift struct{ Mean, Sigma float32 }

// apply returns the similarity that is shown: Mean becomes 0.5.
func (s *Shift) apply(similarity float32) float32 {
	if s == nil {
		return similarity
	}
	const least = 0x1p-23 // of a document with a vector; 0 is that of one without
	x := 0.5 + (similarity-s.Mean)*0.4/s.Sigma
	switch {
	case x <= 0:
		return least
	case x > 1:
		return 1
	}
	return x
}

// near is a document with the similarity of its nearest vector.
type near struct {
	similarity float32
	segment    uint16
	row        uint32
}

// rankVectors ranks a bucket from rule i, the vector rule, on. It finds the nearest documents that are still wanted
// and more when they turn out to be too few; those without vectors follow.
func (s *search) rankVectors(b *bucket, i int) {
	q := s.r.Vectors
	readers := make([]*segment.Vectors, len(s.ix.Segments))
	for seg, live := range s.ix.Segments {
		if b.rows[seg] != nil {
			readers[seg] = live.Vectors(q.Embedder)
		}
	}
	left := b.rows
	k := min(s.out.skip+s.out.limit-len(s.out.hits), b.n)
	if s.out.distinct != nil {
		k *= 2 // some will be duplicates
	}
	for {
		found, more := s.nearest(readers, left, k)
		if !s.rankNear(left, found, i) {
			return
		}
		if len(found) > 0 {
			left = left.andNot(rowsNear(found, len(left)))
		}
		if !more {
			break
		}
		k *= 4
	}
	if q.Only {
		return
	}
	s.push(part{kind: ruleVector, rule: i, value: SortValue{Class: OfNothing}})
	if s.below() {
		s.out.dropRows(left)
	} else {
		s.rankBucket(b.part(left), i+1)
	}
	s.pop()
}

// rankNear ranks documents in groups of equal similarity; all that are left are dropped with those under the threshold.
// It reports whether more are wanted.
func (s *search) rankNear(left rows, found []near, i int) bool {
	rest := func(from int) rows { return left.andNot(rowsNear(found[:from], len(left))) }
	for begin := 0; begin < len(found); {
		end := begin + 1
		for end < len(found) && found[end].similarity == found[begin].similarity {
			end++
		}
		if s.late() {
			s.addUnranked(rest(begin))
			return false
		}
		s.push(part{kind: ruleVector, rule: i, value: SortValue{Number: float64(s.r.Vectors.Shift.apply(found[begin].similarity))}})
		if s.below() {
			s.pop()
			s.out.dropRows(rest(begin))
			return false
		}
		mark := s.list.entries.used
		l := list{entries: s.list.entries.take(end - begin), uniform: true}
		for e, n := range found[begin:end] {
			l.entries[e] = entry{row: n.row, segment: n.segment}
		}
		s.rankList(l, i+1)
		s.list.entries.used = min(mark, s.list.entries.used)
		s.pop()
		if !s.out.wants() {
			return false
		}
		begin = end
	}
	return true
}

// nearest returns about k of the documents that are left, the nearest first and equally near ones by segment and
// row; groups of equally near ones are whole. more: there are others with vectors.
func (s *search) nearest(readers []*segment.Vectors, left rows, k int) (found []near, more bool) {
	var scored []segment.Scored
	cut := float32(-1) // those that are not farther than this may be missing
	for _, q := range s.r.Vectors.Vectors {
		for seg, v := range readers {
			if v == nil || left[seg] == nil {
				continue
			}
			allowed := left[seg]
			if int(allowed.GetCardinality()) == s.ix.Segments[seg].Rows() {
				allowed = nil
			}
			scored = v.Search(scored[:0], q, k+1, allowed)
			if len(scored) > k {
				cut, more = max(cut, scored[k].Similarity), true
			}
			for _, x := range scored {
				found = append(found, near{x.Similarity, uint16(seg), uint32(x.Row)})
			}
		}
	}
	if len(s.r.Vectors.Vectors) > 1 {
		found = bestNear(found)
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(a.segment, b.segment), cmp.Compare(a.row, b.row))
	})
	if more {
		n, _ := slices.BinarySearchFunc(found, cut, func(x near, cut float32) int { return cmp.Compare(cut, x.similarity) })
		found = found[:n]
	}
	return found, more
}

// bestNear leaves each document once, with its best similarity.
func bestNear(found []near) []near {
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.segment, b.segment), cmp.Compare(a.row, b.row), cmp.Compare(b.similarity, a.similarity))
	})
	return slices.CompactFunc(found, func(a, b near) bool { return a.segment == b.segment && a.row == b.row })
}

// rowsNear returns documents as a set.
func rowsNear(found []near, segments int) rows {
	numbers := make([][]uint32, segments)
	for _, n := range found {
		numbers[n.segment] = append(numbers[n.segment], n.row)
	}
	out := make(rows, segments)
	for i, all := range numbers {
		if len(all) > 0 {
			out[i] = roaring.BitmapOf(all...)
		}
	}
	return out
}
