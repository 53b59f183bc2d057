package rank

import (
	"cmp"
	"slices"

	"svc/internal/rank/positions"
)

// outcome is how a rule judged the entries of a list.
type outcome struct {
	ranks    uint64      // rank is ranks less cost
	values   []SortValue // of sorts: by cost
	narrows  bool        // interpretations worse than the best were dropped
	fixes    bool        // each node now has one level
	misses   bool        // the cost is the number of terms that interpretations miss
	relabels bool        // entries' interpretations or levels have changed
}

func (o *outcome) verdict(cost uint32) verdict {
	p := verdict{cost: uint64(cost), rank: o.ranks - uint64(cost), ranks: o.ranks}
	if o.values != nil {
		p.value = o.values[cost]
	}
	return p
}

// batch is a run of a list that can be judged at once: rows of one segment with the same interpretations, whose nodes match at the
// same levels.
type batch struct {
	segment         int
	rows            []uint32
	interpretations []uint16
	levels          positions.Levels
	fixed           bool
}

// at returns the batch in the form that package positions takes.
func (b *batch) at() *positions.Batch {
	return &positions.Batch{Segment: b.segment, Rows: b.rows, Levels: b.levels, Fixed: b.fixed}
}

// eachBatch calls eval for the batches of a list and stores the costs by entry.
func eachBatch(s *search, l *list, costs []uint32, eval func(b *batch, costs []uint32)) {
	batches(s, l, func(b *batch, at []uint32) {
		if at == nil {
			eval(b, costs[:len(b.rows)])
			costs = costs[len(b.rows):]
			return
		}
		mark := s.list.numbers.Mark()
		own := s.list.numbers.Take(len(b.rows))
		eval(b, own)
		for i, e := range at {
			costs[e] = own[i]
		}
		s.list.numbers.Release(mark)
	})
}

// batchRows limits a batch, so that the clock is checked now and then.
const batchRows = 1 << 15

// batches calls f for the batches of a list. at has the indexes of the batch's entries, or is nil if batches follow the list without
// gaps. When time is over it leaves out the rest.
func batches(s *search, l *list, f func(b *batch, at []uint32)) {
	ls := &s.list
	mark := ls.numbers.Mark()
	var order []uint32
	if !l.uniform {
		order = ls.numbers.Take(len(l.entries))
		for i := range order {
			order[i] = uint32(i)
		}
		slices.SortStableFunc(order, func(i, j uint32) int {
			a, b := &l.entries[i], &l.entries[j]
			return cmp.Or(cmp.Compare(a.interpretations, b.interpretations), cmp.Compare(a.levels, b.levels))
		})
	}
	entry := func(i int) *entry {
		if order != nil {
			i = int(order[i])
		}
		return &l.entries[i]
	}
	rows := ls.numbers.Take(len(l.entries))
	for begin := 0; begin < len(l.entries); {
		if begin > 0 && s.late() {
			break
		}
		first := *entry(begin)
		n := 0
		for begin+n < len(l.entries) && n < batchRows {
			e := entry(begin + n)
			if e.segment != first.segment || order != nil && (e.interpretations != first.interpretations || e.levels != first.levels) {
				break
			}
			rows[n] = e.row
			n++
		}
		b := batch{segment: int(first.segment), rows: rows[:n], levels: first.levels, fixed: l.fixed}
		if len(ls.sets) > 0 {
			b.interpretations = ls.sets[first.interpretations]
		}
		var at []uint32
		if order != nil {
			at = order[begin : begin+n]
		}
		f(&b, at)
		begin += n
	}
	ls.numbers.Release(mark)
}

// eachInterpretation computes the costs of each entry under its cheapest interpretation and drops the others. It reports whether any
// was dropped.
func eachInterpretation(s *search, l *list, costs []uint32, eval func(b *batch, nodes []int, costs []uint32)) bool {
	ls := &s.list
	dropped := false
	done := 0
	batches(s, l, func(b *batch, at []uint32) {
		mark := ls.numbers.Mark()
		n := len(b.rows)
		if len(b.interpretations) == 1 && at == nil {
			eval(b, ls.interpretations[b.interpretations[0]].nodes, costs[done:done+n])
			done += n
			return
		}
		all := ls.numbers.Take(n * len(b.interpretations))
		for k, p := range b.interpretations {
			eval(b, ls.interpretations[p].nodes, all[k*n:(k+1)*n])
		}
		for i := range n {
			e := done + i
			if at != nil {
				e = int(at[i])
			}
			best := all[i]
			ties := 1
			for k := 1; k < len(b.interpretations); k++ {
				switch c := all[k*n+i]; {
				case c < best:
					best, ties = c, 1
				case c == best:
					ties++
				}
			}
			costs[e] = best
			if ties < len(b.interpretations) {
				dropped = true
				var set []uint16
				for k, p := range b.interpretations {
					if all[k*n+i] == best {
						set = append(set, p)
					}
				}
				l.entries[e].interpretations = ls.intern(set)
			}
		}
		done += n
		ls.numbers.Release(mark)
	})
	return dropped
}
