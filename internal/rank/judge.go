package rank

import "svc/internal/rank/positions"

// Rules with a measure read the same occurrences of the same words, so they are judged at once for all documents of a list: reading
// positions costs more than computing what a later rule may not need.

// charges are the rules to be judged, by what they add up.
type charges [measures]charge

// judgement has the costs of an interpretation in a batch, by measure; nil where they are not wanted.
type judgement [measures][]uint32

// judge computes the costs of rule i and stores those of later rules that can be judged with it. It reports whether interpretations
// were dropped.
func judge(s *search, l *list, i int, costs []uint32) bool {
	which := s.rules[i].traits().adds
	if !l.judged[which] {
		var with charges
		if !s.list.oneInterpretation() {
			with[which] = s.rules[i].traits().charge
			// The costs of a later rule depend on which interpretations this one keeps.
			return eachInterpretation(s, l, costs, func(b *batch, nodes []int, costs []uint32) {
				var j judgement
				j[which] = costs
				judgeInterpretation(s, b, nodes, &with, &j)
			})
		}
		s.together(i, &with)
		judgeEntries(s, l, &with)
		for k, charge := range with {
			l.judged[k] = l.judged[k] || charge != nil
		}
	}
	for e := range l.entries {
		costs[e] = l.entries[e].costs[which]
	}
	return false
}

// judgeEntries judges a list whose entries all have the same single interpretation.
func judgeEntries(s *search, l *list, with *charges) {
	ls := &s.list
	nodes := ls.interpretations[ls.sets[0][0]].nodes
	done := 0
	batches(s, l, func(b *batch, at []uint32) {
		mark := ls.numbers.Mark()
		var j judgement
		for k := range j {
			if with[k] != nil {
				j[k] = ls.numbers.Take(len(b.rows))
			}
		}
		judgeInterpretation(s, b, nodes, with, &j)
		for i := range b.rows {
			e := done + i
			if at != nil {
				e = int(at[i])
			}
			for k := range j {
				if with[k] != nil {
					l.entries[e].costs[k] = j[k][i]
				}
			}
		}
		done += len(b.rows)
		ls.numbers.Release(mark)
	})
}

// judgeInterpretation computes the costs of one interpretation for the rows of a batch.
func judgeInterpretation(s *search, b *batch, nodes []int, with *charges, j *judgement) {
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
				with[k](s, b, nodes, i, sum, one)
			}
		}
		s.pos.Left, s.pos.Right = s.pos.Right, s.pos.Left
	}
	s.list.numbers.Release(mark)
}
