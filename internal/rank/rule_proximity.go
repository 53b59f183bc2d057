package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/settings"
)

// proximity puts documents first in which the words of the query stand nearer to each other.
type proximity struct{ relevance }

func (proximity) name() string { return "proximity" }

func (proximity) traits() traits { return traits{says: ByRelevance, paths: true, sets: true} }

func (proximity) judgedAs() int { return judgedProximity }

func (proximity) split(s *search, b *bucket, i int) split {
	if b.isNode() && !s.grams {
		// One word is as near to itself as can be.
		return split{singleCost, func(yield func(*bucket, part) bool) { yield(b, part{rank: 1, ranks: 1}) }}
	}
	if !b.hasClasses() {
		return declined
	}
	var items []*classes
	base, ranks := 0, 0
	if s.scored {
		ranks = 1 + s.largest(b, extraTerms, farPair)
	}
	nodes := b.paths[0].nodes
	for k, v := range nodes {
		base += extraTerms(&s.graph.Nodes[v])
		if k == 0 || !s.touch(nodes[k-1], v) {
			continue
		}
		c := s.pairClasses(b, nodes[k-1], v)
		if c == nil {
			return s.bySieve(b, i, byBounds, s.sieveProximity, ranks)
		}
		items = append(items, c)
	}
	return s.bySums(b, items, base, ranks)
}

func (proximity) costs(s *search, l *list, i int, costs []uint32) outcome {
	o := outcome{narrows: true, ranks: uint64(1 + s.largestIn(l, extraTerms, farPair))}
	o.relabels = s.judge(l, i, judgedProximity, costs)
	return o
}

// charge charges what an n-gram costs, and two neighbours by their smallest distance.
func (proximity) charge(s *search, b *batch, nodes []int, k int, sum, one []uint32) {
	extra := uint32(extraTerms(&s.graph.Nodes[nodes[k]]))
	for i := range sum {
		sum[i] += extra
	}
	right := &s.right
	right.first = s.gather(right.first[:0], b, nodes[k], asFirstSlot)
	right.last = s.gather(right.last[:0], b, nodes[k], asLastSlot)
	if k > 0 && s.touch(nodes[k-1], nodes[k]) {
		s.distances(one)
		for i, c := range one {
			sum[i] += c
		}
	}
}

func (proximity) details(d *detailWriter, parts []part) int {
	d.open("proximity")
	d.score(&parts[0])
	return 1
}

// farPair is the cost of two words that are not near.
const farPair = 3

// extraTerms is what an n-gram costs in proximity, for not being one word.
func extraTerms(v *query.Node) int { return v.Len - 1 }

// pairCosts computes the distance of two neighbouring nodes in each row. Of the node that more documents have, it reads what
// stands in a field and row with the other one.
func (s *search) pairCosts(b *batch, u, v int, costs []uint32) {
	if s.pairDense(b, u, v, costs) {
		return
	}
	l, r := &s.left, &s.right
	l.last = s.gather(l.last[:0], b, u, asLastSlot)
	r.first = s.gather(r.first[:0], b, v, asFirstSlot)
	beside := *b
	switch {
	case len(l.last)+len(r.first) > 0:
		l.words, r.words = s.gather(l.words[:0], b, u, asWords), s.gather(r.words[:0], b, v, asWords)
	case s.documents(b, u) <= s.documents(b, v):
		l.words, r.words = s.gather(l.words[:0], b, u, asWords), r.words[:0]
		if beside.beside = l.words; len(l.words) > 0 {
			r.words = s.gather(r.words, &beside, v, asWords)
		}
	default:
		l.words, r.words = l.words[:0], s.gather(r.words[:0], b, v, asWords)
		if beside.beside = r.words; len(r.words) > 0 {
			l.words = s.gather(l.words, &beside, u, asWords)
		}
	}
	s.distances(costs)
}

// documents returns how many documents match a node at the levels of a batch.
func (s *search) documents(b *batch, node int) int {
	level := anyLevel
	if b.fixed {
		level = b.levels.of(node)
	}
	return cardinality(s.matchingIn(node, level, b.segment))
}

// distances computes the distance of the nodes whose occurrences are left and right.
func (s *search) distances(costs []uint32) {
	for i := range costs {
		costs[i] = farPair
	}
	l, r := &s.left, &s.right
	if s.ix.Settings.ProximityPrecision == settings.ByAttribute {
		sameField(l.words, r.words, costs)
		sameField(l.last, r.words, costs)
		sameField(l.words, r.first, costs)
		sameField(l.last, r.first, costs)
		return
	}
	nearest(l.words, r.words, true, costs)
	nearest(l.last, r.words, false, costs)
	nearest(l.words, r.first, false, costs)
	nearest(l.last, r.first, false, costs)
}

// nearest lowers the costs of the rows where an occurrence of a stands up to 3 before
// one of b, or, when both ways count, up to 2 behind it, which costs one more.
func nearest(a, b []uint64, both bool, costs []uint32) {
	i := 0
	for _, y := range b {
		for i < len(a) && a[i] < y {
			i++
		}
		// a[i-1] < y ≤ a[i]
		if i > 0 && sameFieldAndRow(a[i-1], y) {
			if d := uint32(y - a[i-1] - 1); d < costs[indexOf(y)] {
				costs[indexOf(y)] = d
			}
		}
		if !both {
			continue
		}
		j := i
		if j < len(a) && a[j] == y {
			j++
		}
		if j < len(a) && sameFieldAndRow(a[j], y) {
			if d := uint32(a[j] - y); d < costs[indexOf(y)] {
				costs[indexOf(y)] = d
			}
		}
	}
}

// sameField sets the costs of the rows to 0 where a and b stand in one field, be it at one place: a word is in one
// field with itself.
func sameField(a, b []uint64, costs []uint32) {
	i := 0
	for _, y := range b {
		for i < len(a) && a[i]>>16 < y>>16 {
			i++
		}
		if i < len(a) && sameFieldAndRow(a[i], y) {
			costs[indexOf(y)] = 0
		}
	}
}

// pairClasses are the documents of two neighbours by distance, the far ones left out.
func (s *search) pairClasses(b *bucket, u, v int) *classes {
	var all []*classes
	ofLeft, ofRight := s.levelsIn(b, u), s.levelsIn(b, v)
	for _, lu := range ofLeft {
		for _, lv := range ofRight {
			if b.fixed && lu+lv > b.typos {
				continue
			}
			least := b.n // they all match at these levels
			if len(ofLeft)+len(ofRight) > 2 {
				least = b.rows.and(s.matching(u, lu)).commonCount(s.matching(v, lv))
			}
			if least == 0 {
				continue
			}
			both := func(seg int) (l, r *roaring.Bitmap) { return s.matchingIn(u, lu, seg), s.matchingIn(v, lv, seg) }
			c := s.cachedClasses(&classesOf{rule: "proximity", kind: 'n', nodes: []int{u, v}, levels: []int{lu, lv}, rest: farPair, least: least,
				documents: func(seg int) int {
					l, r := both(seg)
					if l == nil || r == nil {
						return 0
					}
					return int(l.AndCardinality(r))
				},
				derive: func(seg int) *segmentClasses {
					l, r := both(seg)
					return s.classify(seg, roaring.And(l, r), levelBatch([]int{u, v}, []int{lu, lv}), farPair,
						func(b *batch, costs []uint32) { s.pairCosts(b, u, v, costs) })
				}}, b.n)
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
