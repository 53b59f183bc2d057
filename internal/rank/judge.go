package rank

import "svc/internal/rank/positions"

// Proximity, attributeRank and wordPosition look at the same occurrences of
// the same words, so they are judged at once for all documents of a list: to read positions costs
// more than to compute what a later rule may not need.

// positional is a rule that looks at occurrences, and is judged together with its like: its traits say what it adds up.
type positional interface {
	// charge adds to the sums of the rows of a batch what the node nodes[k] costs, whose occurrences are s.pos.Right, those
	// of the node before it s.pos.Left. one is room for as many numbers.
	charge(s *search, b *batch, nodes []int, k int, sum, one []uint32)
}

// positionalRules are the rules by what they add up.
var positionalRules = [judgedRules]positional{judgedProximity: proximity{}, judgedAttribute: attributeRank{}, judgedPosition: wordPosition{}}

// judgement is what is asked of an interpretation in a batch: costs by rule, nil where they are not wanted.
type judgement [judgedRules][]uint32

// judge gives the costs of rule i and notes those of the rules behind it that can be judged with it.
// It reports whether interpretations were dropped.
func judge(s *search, l *list, i, which int, costs []uint32) bool {
	if !l.judged[which] {
		if !s.list.oneInterpretation() {
			// What a later rule costs depends on what this one leaves alive.
			return eachInterpretation(s, l, costs, func(b *batch, nodes []int, costs []uint32) {
				var j judgement
				j[which] = costs
				judgeInterpretation(s, b, nodes, &j)
			})
		}
		var with [judgedRules]bool
		s.together(i, &with)
		judgeEntries(s, l, with)
		for k, ok := range with {
			l.judged[k] = l.judged[k] || ok
		}
	}
	for e := range l.entries {
		costs[e] = l.entries[e].costs[which]
	}
	return false
}

// judgeEntries judges a list whose entries all have one and the same interpretation.
func judgeEntries(s *search, l *list, with [judgedRules]bool) {
	ls := &s.list
	nodes := ls.interpretations[ls.sets[0][0]].nodes
	done := 0
	batches(s, l, func(b *batch, at []uint32) {
		mark := ls.numbers.Mark()
		var j judgement
		for k := range j {
			if with[k] {
				j[k] = ls.numbers.Take(len(b.rows))
			}
		}
		judgeInterpretation(s, b, nodes, &j)
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
		ls.numbers.Release(mark)
	})
}

// judgeInterpretation computes the costs of one interpretation for the rows of a batch.
func judgeInterpretation(s *search, b *batch, nodes []int, j *judgement) {
	for k := range j {
		clear(j[k])
	}
	mark := s.list.numbers.Mark()
	one := s.list.numbers.Take(len(b.rows))
	for i, n := range nodes {
		right := &s.pos.Right
		right.Words = s.pos.Gather(right.Words[:0], b.at(), n, positions.NodeWords)
		right.First = s.pos.Gather(right.First[:0], b.at(), n, positions.PhraseStarts)
		for k, sum := range j {
			if sum != nil {
				positionalRules[k].charge(s, b, nodes, i, sum, one)
			}
		}
		s.pos.Left, s.pos.Right = s.pos.Right, s.pos.Left
	}
	s.list.numbers.Release(mark)
}
