package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/rank/positions"
	"svc/internal/settings"
	"svc/segment/rowlist"
)

// proximity puts documents first in which the words of the query are nearer to each other.
type proximity struct{ relevance }

func (proximity) name() string { return "proximity" }

func (proximity) traits() *traits { return &proximityTraits }

var proximityTraits = traits{row: judgeRow, says: ByRelevance, adds: addsDistances, charge: chargeDistance, interprets: true, sets: true, counts: true}

func (proximity) access(s *search, b *bucket, _ int) paths {
	switch {
	case b.isNode() && !s.grams:
		return paths{{atHand, func(_ *search, b *bucket, _ int) split { return unsplit(b) }}} // a single word has no distance
	case !b.hasOneInterpretation():
		return paths{}
	}
	return paths{{ofClasses(), openPairs}, {ofPruner(), openFirstPairs}}
}

// openPairs splits a bucket by the costs of all documents with its pairs of neighbours.
func openPairs(s *search, b *bucket, _ int) split {
	var items []*costClasses
	base, nodes := 0, b.interpretations[0].nodes
	for k, v := range nodes {
		base += extraTerms(&s.graph.Nodes[v])
		if k == 0 || !s.touch(nodes[k-1], v) {
			continue
		}
		c := pairClasses(s, b, nodes[k-1], v)
		if c == nil {
			return declined
		}
		items = append(items, c)
	}
	return bySums(b, items, base, pairRanks(&s.job, b))
}

// openFirstPairs splits off the nearest documents of a bucket.
func openFirstPairs(s *search, b *bucket, i int) split {
	return byPruner(s, b, i, byBounds, pruneByProximity, pairRanks(&s.job, b))
}

// pairRanks returns how many costs documents of a bucket may have, or 0 if no scores are needed.
func pairRanks(s *job, b *bucket) int {
	if !s.scored {
		return 0
	}
	return 1 + largest(&s.findings, b, extraTerms, positions.FarPair)
}

func (proximity) costs(s *search, l *list, i int, costs []uint32) outcome {
	o := outcome{narrows: true, ranks: uint64(1 + largestIn(s, l, extraTerms, positions.FarPair))}
	o.relabels = judge(s, l, i, costs)
	return o
}

// chargeDistance charges the cost of an n-gram, and two neighbours by their smallest distance.
func chargeDistance(s *search, b *batch, nodes []int, k int, sum, one []uint32) {
	extra := uint32(extraTerms(&s.graph.Nodes[nodes[k]]))
	for i := range sum {
		sum[i] += extra
	}
	right := &s.pos.Right
	right.Last = s.pos.Gather(right.Last[:0], b.at(), nodes[k], positions.PhraseEnds)
	if k > 0 && s.touch(nodes[k-1], nodes[k]) {
		s.pos.SideDistances(one)
		for i, c := range one {
			sum[i] += c
		}
	}
}

func (proximity) details(d *detailWriter, verdicts []verdict) int {
	d.open("proximity")
	d.score(&verdicts[0])
	return 1
}

// pairClasses are the documents of two neighbours by distance, without those far apart.
func pairClasses(s *search, b *bucket, u, v int) *costClasses {
	var all []*costClasses
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
			c := classesFor(s, &classesOf{rule: "proximity", kind: settings.Proximity, nodes: []int{u, v}, levels: []int{lu, lv},
				rest: positions.FarPair, least: least,
				documents: func(seg int) int {
					l, r := both(seg)
					if l == nil || r == nil {
						return 0
					}
					return int(l.AndCardinality(r))
				},
				derive: func(seg int) *segmentClasses {
					l, r := both(seg)
					return classify(s, seg, rowlist.And(l, r), levelBatch([]int{u, v}, []int{lu, lv}), positions.FarPair,
						func(b *batch, costs []uint32) { s.pos.Distances(b.at(), u, v, costs) })
				}}, b.n)
			if c == nil {
				return nil
			}
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return &costClasses{rest: positions.FarPair, covered: make(rows, len(b.rows))}
	}
	return mergeClasses(all, positions.FarPair, len(b.rows))
}
