package rank

import "svc/internal/query"

// Proximity, attributeRank and wordPosition look at the same occurrences of
// the same words, so they are judged at once for all documents of a list: to read positions costs
// more than to compute what a later rule may not need.

// judgement is what is asked of a path in a batch: costs by rule, nil where they are not wanted.
type judgement [judgedRules][]uint32

// judge gives the costs of rule i and notes those of the rules behind it that can be judged with it.
// It reports whether interpretations were dropped.
func (s *search) judge(l *list, i, which int, costs []uint32) bool {
	if !l.judged[which] {
		if !s.list.onePath() {
			// What a later rule costs depends on what this one leaves alive.
			return s.eachPath(l, costs, func(b *batch, nodes []int, costs []uint32) {
				var j judgement
				j[which] = costs
				s.judgePath(b, nodes, &j)
			})
		}
		var with [judgedRules]bool
		s.together(i, &with)
		s.judgeEntries(l, with)
		for k, ok := range with {
			l.judged[k] = l.judged[k] || ok
		}
	}
	for e := range l.entries {
		costs[e] = l.entries[e].costs[which]
	}
	return false
}

// together marks the rules from i on that look at occurrences, up to one that changes which words count.
func (s *search) together(i int, with *[judgedRules]bool) {
	for _, r := range s.rules[i:] {
		switch r.kind {
		case ruleProximity:
			with[judgedProximity] = true
		case ruleAttributeRank:
			with[judgedAttribute] = true
		case ruleWordPosition:
			with[judgedPosition] = true
		case ruleTypo, ruleExactWords:
			return
		}
	}
}

// judgeEntries judges a list whose entries all have one and the same path.
func (s *search) judgeEntries(l *list, with [judgedRules]bool) {
	ls := &s.list
	nodes := ls.paths[ls.sets[0][0]].nodes
	done := 0
	s.batches(l, func(b *batch, at []uint32) {
		mark := ls.numbers.used
		var j judgement
		for k := range j {
			if with[k] {
				j[k] = ls.numbers.take(len(b.rows))
			}
		}
		s.judgePath(b, nodes, &j)
		for i := range b.rows {
			e := done + i
			if at != nil {
				e = int(at[i])
			}
			for k := range j {
				if with[k] {
					l.entries[e].costs[k] = j[k][i]
				}
			}
		}
		done += len(b.rows)
		ls.numbers.used = min(mark, ls.numbers.used)
	})
}

// sides are the occurrences of a node: of its words, and of the ends of its phrases.
type sides struct {
	words, start, first, last []uint64
}

// judgePath computes the costs of one interpretation for the rows of a batch.
func (s *search) judgePath(b *batch, nodes []int, j *judgement) {
	for k := range j {
		clear(j[k])
	}
	mark := s.list.numbers.used
	one := s.list.numbers.take(len(b.rows))
	for i, n := range nodes {
		v := &s.graph.Nodes[n]
		right := &s.right
		right.words = s.gather(right.words[:0], b, n, asWords)
		right.start = s.gather(right.start[:0], b, n, asStart)
		if best := j[judgedAttribute]; best != nil {
			s.addWeights(best, one, right, v)
		}
		if best := j[judgedPosition]; best != nil {
			addPlaces(best, one, right, v)
		}
		if sum := j[judgedProximity]; sum != nil {
			for k := range sum {
				sum[k] += uint32(extraTerms(v))
			}
			right.first = s.gather(right.first[:0], b, n, asFirstSlot)
			right.last = s.gather(right.last[:0], b, n, asLastSlot)
			if i > 0 && s.touch(nodes[i-1], n) {
				s.addDistances(sum, one)
			}
		}
		s.left, s.right = s.right, s.left
	}
	s.list.numbers.used = min(mark, s.list.numbers.used)
}

// addWeights charges a node the smallest weight of a searched field where it stands, for each term it covers.
func (s *search) addWeights(sum, one []uint32, o *sides, v *query.Node) {
	worst := uint32(s.ix.Fields.MaxWeight())
	if worst == 0 {
		return
	}
	for i := range one {
		one[i] = worst
	}
	for _, list := range [][]uint64{o.words, o.start} {
		for _, x := range list {
			if w := s.weights[fieldOf(x)]; w >= 0 && uint32(w) < one[indexOf(x)] {
				one[indexOf(x)] = uint32(w)
			}
		}
	}
	for i, w := range one {
		sum[i] += w * uint32(v.Len)
	}
}

// addPlaces charges a node by the occurrence, in whatever searchable field, that is nearest to its place.
func addPlaces(sum, one []uint32, o *sides, v *query.Node) {
	for i := range one {
		one[i] = uint32(farthestPosition * v.Len)
	}
	for _, list := range [][]uint64{o.words, o.start} {
		for _, x := range list {
			if i := indexOf(x); one[i] > 0 {
				one[i] = min(one[i], placeCost(positionOf(x), int(v.Start), v.Len))
			}
		}
	}
	for i, c := range one {
		sum[i] += c
	}
}

// addDistances charges the nodes of left and right by their smallest distance.
func (s *search) addDistances(sum, one []uint32) {
	s.distances(one)
	for i, c := range one {
		sum[i] += c
	}
}
