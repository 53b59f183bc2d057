package rank

// In most combinations of frequent words, the words stand near each other nowhere. Documents would wait under one bound after the other,
// and be put in order each time. So the pruner looks at a sample before it puts many documents in order. If those that cost no more than
// the bound will hardly fill the page, it reads all documents to the end, each only as long as it may be among the first.

// sampleRows is how many documents are looked at. (A variable, so that tests can lower it.)
var sampleRows = 256

// isFar reports whether those of some documents with a bound, n of them, that cost no more will hardly fill the page.
func isFar(v *nearPruner, bound int, waiting []*cohort, n int) bool {
	missing := v.pruner.wanted - v.pruner.count(v.pruner.least+bound)
	near := 0
	for _, st := range waiting {
		if st.known == v.all {
			if near += int(st.rows.GetCardinality()); near >= missing {
				return false
			}
			continue
		}
		rows := v.s.rowsIn(st.rows)
		every := max(1, n/sampleRows)
		some := rows[:0]
		for i := every / 2; i < len(rows); i += every {
			some = append(some, rows[i])
		}
		if near += every * countNear(v, *st, some); near >= missing {
			return false
		}
	}
	return true
}

// countNear returns how many of some rows of a cohort, which it overwrites, cost no more than is known.
func countNear(v *nearPruner, st cohort, rows []uint32) int {
	ls := &v.s.list
	mark := ls.numbers.Mark()
	for k := st.next(v.all); k >= 0 && len(rows) > 0; k = st.next(v.all) {
		n := 0
		for i, c := range v.readNext(&st, k, rows) {
			if c == 0 {
				rows[n] = rows[i]
				n++
			}
		}
		rows = rows[:n]
		ls.numbers.Release(mark)
	}
	return len(rows)
}

// farPairs is what was learnt from documents that were read to the end.
type farPairs struct {
	more   []int // by pair: by how much documents cost more for it,
	judged []int // and how many these are
	ended  []int // by cost: documents that wait
}

// farthest returns that pair of a cohort that is left by which documents cost most, as far as it was read: the others need not be read in
// those of which that is known to be too much. −1: none is left.
func (f *farPairs) farthest(st *cohort) int {
	best := -1
	for k := range f.more {
		switch {
		case st.known>>k&1 != 0:
		case f.judged[k] == 0: // nothing is known of it
			return k
		case best < 0 || f.more[k]*f.judged[best] > f.more[best]*f.judged[k]:
			best = k
		}
	}
	return best
}

// enoughKnown returns a cost of which it is known that documents that cost no more fill the page, of those with a bound as far as they were
// read to the end; tooMuch before it is known of any.
func enoughKnown(v *nearPruner, bound int) int {
	left := v.pruner.wanted - v.pruner.count(v.pruner.least+bound)
	if left <= 0 {
		return bound
	}
	for cost := bound + 1; cost < len(v.far.ended); cost++ {
		if left -= v.far.ended[cost]; left <= 0 {
			return cost
		}
	}
	return tooMuch
}

// readToEnd reads all pairs in the documents with a bound, and leaves out those of which others that cost less fill the page. It returns
// false when time is over.
func readToEnd(v *nearPruner, bound int, waiting []*cohort) bool {
	v.s.r.Plan.begin("proximity", pairsToEnd, 0)
	defer v.s.r.Plan.end(0)
	n := min(askRows, stopRows)
	for _, st := range waiting {
		all := v.s.rowsIn(st.rows)
		if st.known == v.all {
			v.find(bound, st, all, nil)
			continue
		}
		for len(all) > 0 {
			if v.s.late() {
				return false
			}
			rows := all[:min(n, len(all))]
			all = all[len(rows):]
			readRowsToEnd(v, bound, *st, rows)
			n = min(2*n, stopRows)
		}
	}
	return true
}

// readRowsToEnd is readToEnd for rows of a cohort, which it overwrites.
func readRowsToEnd(v *nearPruner, bound int, st cohort, rows []uint32) {
	ls := &v.s.list
	mark := ls.numbers.Mark()
	costs := ls.numbers.Take(len(rows))
	clear(costs)
	taken := ls.numbers.Mark()
	most := enoughKnown(v, bound)
	for k := v.far.farthest(&st); k >= 0 && len(rows) > 0; k = v.far.farthest(&st) {
		more := v.readNext(&st, k, rows)
		n := 0
		for i, c := range more {
			v.far.more[k] += int(c)
			if c += costs[i]; bound+int(c) <= most {
				rows[n], costs[n] = rows[i], c
				n++
			}
		}
		v.far.judged[k] += len(rows)
		rows, costs = rows[:n], costs[:n]
		ls.numbers.Release(taken)
	}
	same := ls.numbers.Take(len(rows))
	for left, cost := len(rows), 0; left > 0; cost++ {
		n := 0
		for i, c := range costs {
			if int(c) == cost {
				same[n] = rows[i]
				n++
			}
		}
		switch {
		case n == 0:
		case cost == 0:
			v.find(bound, &st, same[:n], nil)
		default:
			v.waiting.postpone(bound+cost, &st, same[:n])
			for len(v.far.ended) <= bound+cost {
				v.far.ended = append(v.far.ended, 0)
			}
			v.far.ended[bound+cost] += n
		}
		left -= n
	}
	ls.numbers.Release(mark)
}
