package rank

import (
	"encoding/binary"
	"slices"

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
	derivedPer = 3        // classes are made at once when they hold at most so many for each document of the bucket,
	derivedMax = 64 << 10 // and when they are wished for again, up to so many
	placedMax  = 24 << 10 // where positions of several terms are read, which is dear
)

// worthwhile reports whether classes of so many documents should be made for a bucket. again: they were wished for
// before, so up to most of them may serve later searches, too.
func worthwhile(documents, bucket, most int, again bool) bool {
	return documents <= most && again || bucket > listRows && documents <= derivedPer*bucket
}

// sizeOf estimates the memory of classes.
func (c *classes) sizeOf() int {
	n := 100
	for _, r := range append(slices.Clip(c.rows), c.covered) {
		for _, b := range r {
			if b != nil {
				n += 200 + int(b.GetSizeInBytes())
			}
		}
	}
	return n
}

// anyLevel stands for all levels of a node together, as before the typo rule; the others are
// those that the rule charged.
const anyLevel = query.Levels

// levelsIn returns the levels at which documents of the bucket may match a node.
func (b *bucket) levelsIn() []int {
	switch {
	case !b.fixed:
		return []int{anyLevel}
	default:
		return []int{0, 1, 2}[:min(query.Levels, b.typos+1)]
	}
}

// matching returns the documents of a node at a level.
func (s *search) matching(node, level int) rows {
	if level == anyLevel {
		return s.docs[node]
	}
	v := &s.graph.Nodes[node]
	r := make(rows, len(v.Segments))
	for i := range r {
		r[i] = v.Segments[i].At[level]
	}
	return r
}

// mergeClasses joins classes of different documents: of a node at different levels.
func mergeClasses(all []*classes, rest, segments int) *classes {
	if len(all) == 1 {
		return all[0]
	}
	m := &classes{rest: rest}
	for {
		best := -1
		for i, c := range all {
			if len(c.costs) > 0 && (best < 0 || c.costs[0] < all[best].costs[0]) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		c := *all[best]
		m.costs, m.rows = append(m.costs, c.costs[0]), append(m.rows, c.rows[0])
		c.costs, c.rows = c.costs[1:], c.rows[1:]
		all[best] = &c
	}
	m.cover(segments)
	return m
}

// cachedClasses returns the classes under a key, made by derive if they are not kept yet
// and are worth it; nil otherwise. documents is how many they would hold.
func (s *search) cachedClasses(key []byte, bucket, most int, documents func() int, derive func() *classes) *classes {
	if c := s.ix.Cache.Get(key); c != nil {
		return c.(*classes)
	}
	if !worthwhile(documents(), bucket, most, s.ix.Cache.Again(key)) {
		return nil
	}
	c := derive()
	if c == nil {
		return nil
	}
	s.ix.Cache.Put(key, c, c.sizeOf())
	return c
}

// key begins the key of classes of a node.
func (s *search) key(kind byte, node, level int, n uint16) []byte {
	k := append(make([]byte, 0, 64), kind, byte(level))
	k = binary.LittleEndian.AppendUint16(k, n)
	return append(k, s.graph.Nodes[node].Key...)
}

// levelBatch is a batch whose documents match a node at a level.
func levelBatch(nodes, at []int) batch {
	var b batch
	for i, n := range nodes {
		if at[i] != anyLevel {
			b.fixed = true
			b.levels.set(n, at[i])
		}
	}
	return b
}

// classify computes the costs of documents by batches and sorts them into classes; nil when time is over.
func (s *search) classify(of rows, b batch, rest int, eval func(b *batch, costs []uint32)) *classes {
	ls := &s.list
	c := &classes{rest: rest}
	var byCost []rows // by cost
	for seg, r := range of {
		if r == nil || r.IsEmpty() {
			continue
		}
		b.segment = seg
		for all := r.ToArray(); len(all) > 0; all = all[len(b.rows):] {
			if s.late() {
				return nil
			}
			b.rows = all[:min(len(all), batchRows)]
			mark := ls.numbers.used
			costs := ls.numbers.take(len(b.rows))
			eval(&b, costs)
			byCost = addByCost(byCost, &b, costs, rest, len(of))
			ls.numbers.used = min(mark, ls.numbers.used)
		}
	}
	for cost, r := range byCost {
		if r != nil {
			c.costs = append(c.costs, cost)
			c.rows = append(c.rows, r)
		}
	}
	c.cover(len(of))
	return c
}

// addByCost adds the rows of a batch to those of their cost, the costly rest left out.
func addByCost(byCost []rows, b *batch, costs []uint32, rest, segments int) []rows {
	for i := 0; i < len(costs); {
		// Runs of equal cost go in together.
		cost := int(costs[i])
		j := i + 1
		for j < len(costs) && costs[j] == costs[i] {
			j++
		}
		if cost != rest {
			for len(byCost) <= cost {
				byCost = append(byCost, nil)
			}
			if byCost[cost] == nil {
				byCost[cost] = make(rows, segments)
			}
			r := &byCost[cost][b.segment]
			if *r == nil {
				*r = roaring.New()
			}
			(*r).AddMany(b.rows[i:j])
		}
		i = j
	}
	return byCost
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

// ruleClasses returns what a bucket is split by under rule i, as far as it is at hand or worth to be made: classes,
// a cost that all documents have, and the number of ranks.
func (s *search) ruleClasses(b *bucket, i int) (items []*classes, base, ranks int, ok bool) {
	if b.n < classRows || len(b.paths) != 1 {
		return nil, 0, 0, false
	}
	nodes := b.paths[0].nodes
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
			if i > 0 && s.touch(nodes[i-1], v) && !one(s.pairClasses(b, nodes[i-1], v)) {
				return nil, 0, 0, false
			}
		}
		return items, base, ranks, true
	case ruleAttributeRank:
		ranks = 1 + b.terms*s.ix.Fields.MaxWeight()
		for _, v := range nodes {
			if !one(s.nodeClasses(b, v, s.attributeClasses)) {
				return nil, 0, 0, false
			}
		}
		return items, 0, ranks, true
	case ruleWordPosition:
		ranks = 1 + farthestPosition*b.terms
		for _, v := range nodes {
			if !one(s.nodeClasses(b, v, s.positionClasses)) {
				return nil, 0, 0, false
			}
		}
		return items, 0, ranks, true
	case ruleExactAttribute:
		return items, 0, 3, one(s.exactAttributeClasses(b))
	case ruleExactWords:
		// For rules after it, each node would have to be told by document whether it is the word itself.
		if s.setsFollow(i) {
			return nil, 0, 0, false
		}
		for _, v := range nodes {
			one(s.exactWordClasses(v))
		}
		return items, 0, 1 + b.terms, true
	}
	return nil, 0, 0, false
}

// nodeClasses joins the classes of a node at all levels that the bucket has.
func (s *search) nodeClasses(b *bucket, v int, at func(b *bucket, v, level int) *classes) *classes {
	var all []*classes
	for _, level := range b.levelsIn() {
		if level != anyLevel && level > 0 && !b.rows.intersects(s.matching(v, level)) {
			continue
		}
		c := at(b, v, level)
		if c == nil {
			return nil
		}
		all = append(all, c)
	}
	return mergeClasses(all, -1, len(b.rows))
}

// pairClasses are the documents of two neighbours by distance, the far ones left out.
func (s *search) pairClasses(b *bucket, u, v int) *classes {
	var all []*classes
	for _, lu := range b.levelsIn() {
		left := s.matching(u, lu)
		for _, lv := range b.levelsIn() {
			if b.fixed && lu+lv > b.typos {
				continue
			}
			right := s.matching(v, lv)
			if lu+lv > 0 && b.fixed && b.rows.and(left).and(right).isEmpty() {
				continue
			}
			key := s.key('n', u, lu, uint16(lv))
			key = append(key, 0xff)
			key = append(key, s.graph.Nodes[v].Key...)
			c := s.cachedClasses(key, b.n, placedMax, func() int { return left.commonCount(right) }, func() *classes {
				return s.classify(left.and(right), levelBatch([]int{u, v}, []int{lu, lv}), farPair,
					func(b *batch, costs []uint32) { s.pairCosts(b, u, v, costs) })
			})
			if c == nil {
				return nil
			}
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return &classes{rest: farPair, covered: make(rows, len(b.rows))}
	}
	return mergeClasses(all, farPair, len(b.rows))
}

// positionClasses are the documents of a node by the distance from its place.
func (s *search) positionClasses(b *bucket, v, level int) *classes {
	n := &s.graph.Nodes[v]
	of := s.matching(v, level)
	most := placedMax
	if b.terms == 1 { // its buckets are large: without classes, many positions are read each time
		most = derivedMax
	}
	return s.cachedClasses(s.key('p', v, level, n.Start), b.n, most, of.count, func() *classes {
		return s.classify(of, levelBatch([]int{v}, []int{level}), -1, func(b *batch, costs []uint32) { s.placeNode(b, v, costs) })
	})
}

// attributeClasses are the documents of a node by the weight of its best field.
func (s *search) attributeClasses(b *bucket, v, level int) *classes {
	of := s.matching(v, level)
	return s.cachedClasses(s.key('a', v, level, 0), b.n, derivedMax, func() int { return 0 }, func() *classes {
		c := &classes{rest: -1}
		length := s.graph.Nodes[v].Len
		left := of
		for _, w := range s.weightsInUse() {
			r := s.standing(v, level, int32(w), left)
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

// levelsOf returns the level of each node of a bucket with one path; ok is false when it differs between documents.
func (s *search) levelsOf(b *bucket) (l levels, ok bool) {
	if !b.fixed || b.typos == 0 {
		return 0, true
	}
nodes:
	for _, n := range b.paths[0].nodes {
		for level := range query.Levels {
			switch s.matching(n, level).commonCount(b.rows) {
			case 0:
				continue
			case b.n:
				l.set(n, level)
				continue nodes
			}
			return 0, false
		}
	}
	return l, true
}
