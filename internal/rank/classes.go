package rank

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
)

// classes are documents by cost: of one node under a rule, or of two neighbours. They are
// computed for all documents that match, not for those of one search, so that they can be
// kept and serve the next search with the word.
type classes struct {
	costs   []int  // ascending
	rows    []rows // disjoint, as costs
	rest    int    // cost of all documents in none of rows; −1: there are none
	covered rows   // all of rows; set when rest ≥ 0
}

// Large buckets are split by classes, small ones document by document. (Variables, so that tests can lower them.)
var (
	classRows  = 48       // documents from which on classes are used that are there
	derivedMax = 64 << 10 // documents up to which classes are made in any case
	derivedPer = 4        // and otherwise only when there are at most so many for each document of the bucket
)

// worthwhile reports whether classes of so many documents should be made for a bucket.
func worthwhile(documents, bucket int) bool {
	return bucket > listRows && (documents <= derivedMax || documents <= derivedPer*bucket)
}

// sizeOf estimates the memory of classes.
func (c *classes) sizeOf() int {
	n := 100
	for _, r := range append(c.rows, c.covered) {
		for _, b := range r {
			if b != nil {
				n += 200 + int(b.GetSizeInBytes())
			}
		}
	}
	return n
}

// sums finds the documents of a bucket by the sum of the costs of several classes.
type sums struct {
	within rows
	items  []*classes
	memo   []map[int]rows // memo[i]: documents whose first i items have a sum
}

func newSums(within rows, items []*classes) *sums {
	return &sums{within: within, items: items, memo: make([]map[int]rows, len(items)+1)}
}

// most is the largest sum there can be.
func (t *sums) most() int {
	n := 0
	for _, c := range t.items {
		last := c.rest
		if k := len(c.costs); k > 0 {
			last = max(last, c.costs[k-1])
		}
		n += last
	}
	return n
}

// at returns the documents with a sum; nil for none.
func (t *sums) at(sum int) rows { return t.first(len(t.items), sum) }

func (t *sums) first(i, sum int) rows {
	if i == 0 {
		if sum == 0 {
			return t.within
		}
		return nil
	}
	if r, ok := t.memo[i][sum]; ok {
		return r
	}
	c := t.items[i-1]
	var out rows
	add := func(r rows) {
		switch {
		case r.isEmpty():
		case out == nil:
			out = r
		default:
			out = out.or(r)
		}
	}
	for k, cost := range c.costs {
		if cost > sum {
			break
		}
		if before := t.first(i-1, sum-cost); before != nil {
			add(before.and(c.rows[k]))
		}
	}
	if c.rest >= 0 && c.rest <= sum {
		if before := t.first(i-1, sum-c.rest); before != nil {
			add(before.andNot(c.covered))
		}
	}
	if t.memo[i] == nil {
		t.memo[i] = map[int]rows{}
	}
	t.memo[i][sum] = out
	return out
}

// splitSums yields the documents of a bucket by the sum of the costs of items, base added.
func (s *search) splitSums(b *bucket, kind ruleKind, items []*classes, base, ranks int, yield func(*bucket, part) bool) {
	t := newSums(b.rows, items)
	left := b.n
	for sum := 0; left > 0 && sum <= t.most(); sum++ {
		r := t.at(sum)
		if r == nil {
			continue
		}
		sub := b.part(r)
		sub.narrowed = true
		left -= sub.n
		if !yield(sub, part{kind: kind, rank: uint64(ranks - base - sum), ranks: uint64(ranks)}) {
			return
		}
	}
}

// mask returns the levels that count in all documents of a uniform bucket.
func (b *bucket) mask() int {
	if b.exactLevels {
		return 1
	}
	return 1<<query.Levels - 1
}

// matching returns the documents of a node at the levels of a mask: the first, or all.
func (s *search) matching(node, mask int) rows {
	if mask != 1 {
		return s.any[node]
	}
	v := &s.graph.Nodes[node]
	r := make(rows, len(v.Segments))
	for i := range r {
		r[i] = v.Segments[i].At[0]
	}
	return r
}

// cachedClasses returns the classes under a key, made by derive if they are not kept yet
// and are worth it; nil otherwise. documents is how many they would hold.
func (s *search) cachedClasses(key []byte, bucket int, documents func() int, derive func() *classes) *classes {
	if c := s.ix.Cache.Get(key); c != nil {
		return c.(*classes)
	}
	if !worthwhile(documents(), bucket) {
		return nil
	}
	c := derive()
	s.ix.Cache.Put(key, c, c.sizeOf())
	return c
}

// key begins the key of classes of a node.
func (s *search) key(kind byte, node, mask int, n uint16) []byte {
	k := append(make([]byte, 0, 64), kind, byte(mask))
	k = binary.LittleEndian.AppendUint16(k, n)
	return append(k, s.graph.Nodes[node].Key...)
}

// classify computes the costs of documents by batches and sorts them into classes.
func (s *search) classify(of rows, mask int, rest int, eval func(b *batch, costs []uint32)) *classes {
	ls := &s.list
	c := &classes{rest: rest}
	index := map[uint32]int{}
	var byCost []rows
	var values []uint32
	for seg, r := range of {
		if r == nil || r.IsEmpty() {
			continue
		}
		mark := ls.numbers.used
		b := batch{segment: seg, rows: r.ToArray(), fixed: mask == 1}
		costs := ls.numbers.take(len(b.rows))
		eval(&b, costs)
		for i := 0; i < len(costs); {
			// Runs of equal cost go in together.
			j := i + 1
			for j < len(costs) && costs[j] == costs[i] {
				j++
			}
			if int(costs[i]) != rest {
				k, ok := index[costs[i]]
				if !ok {
					k = len(byCost)
					index[costs[i]] = k
					byCost = append(byCost, make(rows, len(of)))
					values = append(values, costs[i])
				}
				if byCost[k][seg] == nil {
					byCost[k][seg] = roaring.New()
				}
				byCost[k][seg].AddMany(b.rows[i:j])
			}
			i = j
		}
		ls.numbers.used = min(mark, ls.numbers.used)
	}
	for cost := uint32(0); len(c.costs) < len(values); cost++ {
		if k, ok := index[cost]; ok {
			c.costs = append(c.costs, int(cost))
			c.rows = append(c.rows, byCost[k])
		}
	}
	c.cover(len(of))
	return c
}

// cover computes the union where it is needed.
func (c *classes) cover(segments int) {
	if c.rest < 0 {
		return
	}
	c.covered = make(rows, segments)
	for _, r := range c.rows {
		c.covered = c.covered.or(r)
	}
}

// ruleClasses returns what a uniform bucket is split by under a rule, as far as it is at hand: classes, a
// cost that all documents have, and the number of ranks.
func (s *search) ruleClasses(b *bucket, i int) (items []*classes, base, ranks int, ok bool) {
	if b.n < classRows || !s.uniform(b) || len(b.paths) == 0 {
		return nil, 0, 0, false
	}
	nodes := b.paths[0].nodes
	mask := b.mask()
	one := func(c *classes) bool {
		items = append(items, c)
		return c != nil
	}
	switch s.rules[i].kind {
	case ruleProximity:
		if s.scored {
			ranks = 1 + s.largest(b, extraTerms, farPair)
		}
		for i, v := range nodes {
			base += extraTerms(&s.graph.Nodes[v])
			if i > 0 && s.touch(nodes[i-1], v) && !one(s.pairClasses(nodes[i-1], v, mask, b.n)) {
				return nil, 0, 0, false
			}
		}
		return items, base, max(ranks, 1), true
	case ruleAttributeRank:
		ranks = 1 + b.terms*s.ix.Fields.MaxWeight()
		for _, v := range nodes {
			if !one(s.attributeClasses(v, mask, b.n)) {
				return nil, 0, 0, false
			}
		}
		return items, 0, ranks, true
	case ruleWordPosition:
		ranks = 1 + farthestPosition*b.terms
		for _, v := range nodes {
			if !one(s.positionClasses(v, mask, b.n)) {
				return nil, 0, 0, false
			}
		}
		return items, 0, ranks, true
	case ruleExactAttribute:
		return items, 0, 3, one(s.exactAttributeClasses(b))
	case ruleExactWords:
		// For rules after it, each node would have to be told by document whether it is the word itself.
		if s.graphFollows(i) {
			return nil, 0, 0, false
		}
		for _, v := range nodes {
			one(s.exactWordClasses(v))
		}
		return items, 0, 1 + b.terms, true
	}
	return nil, 0, 0, false
}

// pairClasses are the documents of two neighbours by distance, the far ones left out.
func (s *search) pairClasses(u, v, mask, bucket int) *classes {
	key := s.key('n', u, mask, 0)
	key = append(key, 0xff)
	key = append(key, s.graph.Nodes[v].Key...)
	left, right := s.matching(u, mask), s.matching(v, mask)
	return s.cachedClasses(key, bucket, func() int {
		n := 0
		for i := range left {
			if left[i] != nil && right[i] != nil {
				n += int(left[i].AndCardinality(right[i]))
			}
		}
		return n
	}, func() *classes {
		return s.classify(left.and(right), mask, farPair, func(b *batch, costs []uint32) { s.pairCosts(b, u, v, costs) })
	})
}

// positionClasses are the documents of a node by the distance from its place.
func (s *search) positionClasses(v, mask, bucket int) *classes {
	n := &s.graph.Nodes[v]
	of := s.matching(v, mask)
	return s.cachedClasses(s.key('p', v, mask, n.Start), bucket, of.count, func() *classes {
		nodes := []int{v}
		return s.classify(of, mask, -1, func(b *batch, costs []uint32) { s.positionCosts(b, nodes, costs) })
	})
}

// attributeClasses are the documents of a node by the weight of its best field.
func (s *search) attributeClasses(v, mask, bucket int) *classes {
	of := s.matching(v, mask)
	return s.cachedClasses(s.key('a', v, mask, 0), bucket, func() int { return 0 }, func() *classes {
		c := &classes{rest: -1}
		length := s.graph.Nodes[v].Len
		left := of
		for _, w := range s.weightsInUse() {
			r := s.standing(v, mask, int32(w), left)
			if r.isEmpty() {
				continue
			}
			c.costs = append(c.costs, w*length)
			c.rows = append(c.rows, r)
			if left = left.andNot(r); left.isEmpty() {
				break
			}
		}
		return c
	})
}
