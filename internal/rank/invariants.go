package rank

import (
	"cmp"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
)

// What follows is called under invariant.Enabled alone.

// checkBucket checks that a bucket is a set of live documents, and that its interpretations reach exactly these.
func checkBucket(s *search, b *bucket) {
	live := b.rows
	if b.raw {
		live = s.live(b.rows)
	}
	if n := live.count(); n != b.n {
		invariant.Fail("a bucket of %d documents says that it has %d", n, b.n)
	}
	for seg, r := range live {
		if r == nil || r.IsEmpty() {
			continue
		}
		if rows := s.ix.Segments[seg].Rows(); int(r.Maximum()) >= rows {
			invariant.Fail("a bucket has row %d of segment %d, which has %d", r.Maximum(), seg, rows)
		}
		if d := s.ix.Segments[seg].Deleted; d != nil && r.Intersects(d) {
			invariant.Fail("a bucket has deleted rows of segment %d", seg)
		}
	}
	if len(b.interpretations) == 0 {
		return
	}
	reached := make(rows, len(b.rows))
	for _, p := range b.interpretations {
		if !p.rows.andNot(b.rows).isEmpty() {
			invariant.Fail("interpretation %v leads to documents outside its bucket", p.nodes)
		}
		reached = reached.or(p.rows)
		terms := 0
		for i, n := range p.nodes {
			if i > 0 && n <= p.nodes[i-1] {
				invariant.Fail("interpretation %v is not in the order of nodes", p.nodes)
			}
			terms += s.graph.Nodes[n].Len
		}
		if terms != p.terms || terms > b.terms {
			invariant.Fail("interpretation %v covers %d terms, says %d, and its bucket %d", p.nodes, terms, p.terms, b.terms)
		}
	}
	if left := live.andNot(reached); !left.isEmpty() {
		invariant.Fail("no interpretation leads to %d of the %d documents of a bucket", left.count(), b.n)
	}
}

// checkPart checks that a part of a bucket has documents of it that no earlier part had, and comes after the earlier part.
func checkPart(b *bucket, part rows, opened []rows, before, now *verdict) {
	if out := part.andNot(b.rows); !out.isEmpty() {
		invariant.Fail("%s: a part has %d documents that its bucket has not", now.by.name(), out.count())
	}
	for _, o := range opened {
		if part.intersects(o) {
			invariant.Fail("%s: two parts have a document in common", now.by.name())
		}
	}
	if before != nil && compareVerdicts(before, now) > 0 {
		invariant.Fail("%s: a part with cost %d and value %v comes behind one with cost %d and value %v", now.by.name(), now.cost, now.value, before.cost, before.value)
	}
}

// checkList checks that the entries of a list are in the order of their costs, and equal ones in the order of segments and rows.
func checkList(s *search, r rule, e []entry, costs []uint32, o *outcome) {
	for i := range e {
		if rows := s.ix.Segments[e[i].segment].Rows(); int(e[i].row) >= rows {
			invariant.Fail("%s: a list has row %d of segment %d, which has %d", r.name(), e[i].row, e[i].segment, rows)
		}
		if o.values != nil && int(costs[i]) >= len(o.values) {
			invariant.Fail("%s: cost %d stands for one of %d values", r.name(), costs[i], len(o.values))
		}
		if i == 0 {
			continue
		}
		a, b := &e[i-1], &e[i]
		if costs[i-1] > costs[i] {
			invariant.Fail("%s: cost %d comes behind %d", r.name(), costs[i], costs[i-1])
		}
		if costs[i-1] == costs[i] && (a.segment > b.segment || a.segment == b.segment && a.row >= b.row) {
			invariant.Fail("%s: row %d of segment %d comes behind row %d of segment %d", r.name(), b.row, b.segment, a.row, a.segment)
		}
	}
}

// hitOrder checks that hits come in the order of their keys: first the verdicts of the rules, last the document.
type hitOrder struct {
	verdicts []verdict // of the previous hit; nil: none
	hit      Hit
}

// check compares a hit with the previous one: it is live, and the first rule that distinguishes the two puts it later.
func (k *hitOrder) check(ix *Index, h Hit, verdicts []verdict) {
	live := &ix.Segments[h.Segment]
	if live.DocID(h.Row) != h.ID {
		invariant.Fail("row %d of segment %d is document %d, not %d", h.Row, h.Segment, live.DocID(h.Row), h.ID)
	}
	if live.Deleted != nil && live.Deleted.Contains(uint32(h.Row)) {
		invariant.Fail("document %d is deleted, and a hit", h.ID)
	}
	before := *k
	k.verdicts, k.hit = append(make([]verdict, 0, len(verdicts)), verdicts...), h
	if before.verdicts == nil || len(verdicts) == 0 {
		return
	}
	for i := range min(len(before.verdicts), len(verdicts)) {
		switch c := compareVerdicts(&before.verdicts[i], &verdicts[i]); {
		case before.verdicts[i].by != verdicts[i].by, c < 0: // time ran out, or the key is greater
			return
		case c > 0:
			invariant.Fail("document %d comes behind %d, and %s puts it first", h.ID, before.hit.ID, verdicts[i].by.name())
		}
	}
	if len(before.verdicts) == len(verdicts) && before.hit.ID >= h.ID {
		invariant.Fail("document %d comes behind %d, and no rule tells them apart", h.ID, before.hit.ID)
	}
}

// compareVerdicts orders the verdicts of a rule on two documents: smaller ones come first.
func compareVerdicts(a, b *verdict) int {
	if a.by != b.by {
		return 0
	}
	switch a.says() {
	case ByRelevance:
		return cmp.Compare(a.cost, b.cost)
	case BySimilarity: // a graph may find a nearer document when more are requested; a shift makes similarities equal
		if c := cmp.Compare(a.value.Class, b.value.Class); c != 0 { // documents without vectors come last
			return c
		}
		if a.value.Number != b.value.Number || a.by.traits().rounds {
			return -1
		}
		return 0
	}
	v, _ := a.by.value([]verdict{*a})
	if math.Abs(a.value.Number-b.value.Number) <= 2*geoMargin && v.Kind == ByDistance && a.value.Class == b.value.Class {
		return -1 // groups of about the same distance
	}
	return a.value.Compare(&b.value, v.Desc)
}

// checkShared checks that bitmaps shared between searches are unchanged. sums is the result of the previous call, or nil at first.
func checkShared(s *findings, r *Request, sums []uint64) []uint64 {
	var now []uint64
	sum := func(b *roaring.Bitmap) {
		if b != nil {
			now = append(now, b.Checksum())
		}
	}
	for _, set := range [][]*roaring.Bitmap{r.Universe, r.Live} {
		for _, b := range set {
			sum(b)
		}
	}
	for _, live := range s.ix.Segments {
		sum(live.Deleted)
	}
	for k := range s.graph.Nodes {
		for seg := range s.graph.Nodes[k].Segments {
			v := &s.graph.Nodes[k].Segments[seg]
			for _, at := range v.At {
				sum(at)
			}
			sum(v.Any)
			sum(v.Word)
		}
	}
	if sums == nil {
		return now
	}
	for i := range now {
		if i >= len(sums) || now[i] != sums[i] {
			invariant.Fail("a search has changed a bitmap that others share")
		}
	}
	return now
}

// checksum returns the checksum of all bitmaps of some classes.
func (c *segmentClasses) checksum() uint64 {
	sum := uint64(len(c.costs))
	for _, b := range append([]*roaring.Bitmap{c.covered}, c.rows...) {
		if b != nil {
			sum = sum*0x100000001b3 ^ b.Checksum()
		}
	}
	return sum
}

// checkClasses checks that classes, by segment, are in the order of their costs, are disjoint, and are unchanged.
func checkClasses(rule string, parts []*segmentClasses) {
	for _, c := range parts {
		if c != nil {
			c.check(rule)
		}
	}
}

// check verifies that the classes are unchanged, that costs ascend, and that no row is in two classes.
func (c *segmentClasses) check(rule string) {
	if c.sum != c.checksum() {
		invariant.Fail("%s: classes were changed after they were made", rule)
	}
	for i, b := range c.rows {
		if i > 0 && c.costs[i-1] >= c.costs[i] {
			invariant.Fail("%s: classes with cost %d come behind %d", rule, c.costs[i], c.costs[i-1])
		}
		for _, o := range c.rows[:i] {
			if o.Intersects(b) {
				invariant.Fail("%s: two classes have a document in common", rule)
			}
		}
	}
}
