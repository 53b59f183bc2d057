package rank

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// unorderedRows is the number of documents with a bound up to which all are read: ordering them first would cost as much. (A
// variable, so that tests can lower it.)
var unorderedRows = 1024

// pruneByProximity returns documents of a bucket with one interpretation by proximity: all of them, or the nearest ones as far as the
// page needs them. It returns nil when time is over.
func pruneByProximity(s *search, b *bucket, i int) *costClasses {
	nodes := b.interpretations[0].nodes
	least := 0
	for _, n := range nodes {
		least += extraTerms(&s.graph.Nodes[n])
	}
	v := &nearPruner{s: s, b: b, pruner: newPruner(s, b, i, least, nil)}
	v.orderOf, v.place = s.orderBehind(i)
	for k := 1; k < len(nodes); k++ {
		if s.touch(nodes[k-1], nodes[k]) {
			v.all |= 1 << len(v.pairs)
			v.pairs = append(v.pairs, [2]int{nodes[k-1], nodes[k]})
		}
	}
	for seg, in := range b.rows {
		if in != nil {
			byLevels(&s.findings, b, seg, in, func(in *roaring.Bitmap, like batch) bool {
				like.segment = seg
				v.sort(&cohort{like: like, rows: in, near: make([]nearRows, len(v.pairs))}, 0, 0)
				return true
			})
		}
	}
	for bound := 0; bound < len(v.waiting); bound++ {
		if !v.open(bound) {
			return nil
		}
		if v.pruner.full(least + bound) {
			return v.pruner.classes(least + bound)
		}
	}
	return v.pruner.classes(math.MaxInt32)
}

// sort makes documents wait by what the segment stores about the pairs from k on.
func (v *nearPruner) sort(st *cohort, k, bound int) {
	if k == len(v.pairs) {
		v.waiting.wait(bound, st)
		return
	}
	n := &st.near[k]
	if !n.ok {
		n.ok = true
		v.s.r.Plan.begin("proximity", neighbourSets, int(st.rows.GetCardinality()))
		n.sure, n.maybe, n.known = v.s.pos.Neighbours(st.like.at(), v.pairs[k][0], v.pairs[k][1])
		v.s.r.Plan.end(cardinality(n.sure))
	}
	if !n.known {
		v.sort(st, k+1, bound)
		return
	}
	left := st.rows.GetCardinality()
	if in := and(st.rows, n.sure); in != nil {
		left -= in.GetCardinality()
		near := *st
		near.rows, near.known = in, st.known|1<<k
		v.sort(&near, k+1, bound)
	}
	if in, _ := less(and(st.rows, n.maybe), n.sure, true); in != nil {
		left -= in.GetCardinality()
		maybe := *st
		maybe.rows = in
		v.sort(&maybe, k+1, bound)
	}
	if left > 0 {
		far := *st
		far.apart |= 1 << k
		far.left, far.pair = true, k
		v.waiting.wait(bound+1, &far)
	}
}

// sortLeft sorts the cohorts that wait under a bound and are remainders of other cohorts.
func (v *nearPruner) sortLeft(bound int) {
	waiting := v.waiting[bound]
	if !slices.ContainsFunc(waiting, func(st *cohort) bool { return st.left }) {
		return
	}
	v.waiting[bound] = nil
	for _, st := range waiting {
		if !st.left {
			v.waiting.wait(bound, st)
			continue
		}
		n := &st.near[st.pair]
		st.left = false
		rows, own := less(st.rows, n.sure, false)
		st.rows, _ = less(rows, n.maybe, own)
		v.sort(st, st.pair+1, bound)
	}
}

// open reads the documents with a bound, in the order of the next rule, until those that cost no more fill the page. It returns false
// when time is over.
func (v *nearPruner) open(bound int) bool {
	v.sortLeft(bound)
	waiting := v.waiting[bound]
	v.waiting[bound] = nil
	within := make(rows, len(v.b.rows))
	unread := false
	for _, st := range waiting {
		seg := st.like.segment
		within[seg] = or(within[seg], st.rows)
		unread = unread || st.known != v.all
	}
	n := within.count()
	v.begin(0)
	if !unread || n <= unorderedRows {
		for _, st := range waiting {
			if !v.read(bound, st, st.rows) {
				return false
			}
		}
		return true
	}
	v.s.r.Plan.begin("proximity", pairsInOrder, n)
	defer v.s.r.Plan.end(0)
	t := newSums(within, v.order())
	for sum, left := 0, n; left > 0 && sum <= t.most(); sum++ {
		part := t.at(sum)
		if part == nil {
			continue
		}
		n := part.count()
		left -= n
		v.begin(n)
		for _, st := range waiting {
			if in := and(st.rows, part[st.like.segment]); in != nil && !v.read(bound, st, in) {
				return false
			}
		}
		if v.pruner.full(v.pruner.least + bound) {
			break
		}
	}
	return true
}

// order returns the classes by which the next rule orders documents, or none if it has no order.
func (v *nearPruner) order() []*costClasses {
	if v.orderOf != nil {
		v.items, v.orderOf = v.orderOf(v.s, v.b), nil
	}
	return v.items
}
