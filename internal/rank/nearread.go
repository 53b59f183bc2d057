package rank

import (
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/rank/positions"
)

// waitingList is documents by the bound under which they wait.
type waitingList [][]*cohort

// wait has documents wait under a bound.
func (w *waitingList) wait(bound int, st *cohort) {
	for len(*w) <= bound {
		*w = append(*w, nil)
	}
	(*w)[bound] = append((*w)[bound], st)
}

// postpone has rows of a cohort wait under a higher bound.
func (w *waitingList) postpone(bound int, st *cohort, rows []uint32) {
	if bound < len(*w) {
		for _, o := range (*w)[bound] {
			if o.own && o.like.segment == st.like.segment && o.like.levels == st.like.levels && o.known == st.known && o.apart == st.apart {
				o.rows.AddMany(rows)
				return
			}
		}
	}
	o := &cohort{like: st.like, known: st.known, apart: st.apart, rows: roaring.New(), own: true}
	o.rows.AddMany(rows)
	w.wait(bound, o)
}

// pairSet has a bit for each pair of neighbours in a query.
type pairSet uint32

const _ uint = 32 - (query.MaxTerms - 1) // all pairs have a bit

// cohort has documents of a segment that match the nodes at the same levels, and about which the same is known.
type cohort struct {
	like  batch   // without rows
	known pairSet // pairs whose cost is known
	apart pairSet // pairs known not to be as near as possible
	rows  *roaring.Bitmap
	own   bool // rows is not shared

	// Most documents that are not near are never needed. Until they are, their cohort stays a remainder of another one.
	left bool       // of rows: those that pair has neither in sure nor in maybe
	pair int        // the pair by which the rows are to be split next; later pairs follow
	near []nearRows // by pair; shared by all cohorts of one segment with the same levels
}

// nearRows is the result of positions.Reader.Neighbours for a pair.
type nearRows struct {
	sure, maybe *roaring.Bitmap
	ok, known   bool
}

// next returns the next pair of a cohort to be read, of all. Among those counted as far apart it returns the last one. −1: none is
// left.
func (st *cohort) next(all pairSet) int {
	if left := all &^ st.known; left == 0 {
		return -1
	} else if first := left &^ st.apart; first != 0 {
		return bits.TrailingZeros32(uint32(first))
	} else {
		return bits.TrailingZeros32(uint32(left))
	}
}

// nearPruner finds the documents of a bucket with one interpretation by proximity, only as far as the page needs. It is a best-first
// search within the rule. Each document waits under a lower bound of its cost: the cost of the pairs of neighbours read so far, plus
// 1 for each other pair that is known not to be as near as possible. The pruner reads one pair after the other in the documents with
// the least bound, until they cost more and wait under a higher bound, or have no pair left.
type nearPruner struct {
	s       *search
	b       *bucket
	pruner  *pruner
	pairs   [][2]int // nodes
	all     pairSet  // pairs
	waiting waitingList
	items   []*costClasses // the order of documents with equal costs; computed when needed
	orderOf orderOf        // computes items; nil: done, or the next rule has no order
	place   int            // of the next rule that sums up displacements; −1: none
	placement
}

// placement is what is known about the positions of the words in the documents found.
type placement struct {
	checks  bool     // check the positions of documents before reading them
	byCost  []int    // number of documents found, by the cost of their positions
	missing int      // number of documents that fill the page
	idle    int      // while enough() is so high, skip the check: few documents cost more
	inPlace []uint32 // rows found in the current cohort with displacement 0; only if asked
	asked   bool     // inPlace is needed
}

// enough returns the least cost of positions such that the documents found up to that cost fill the page. It is tooMuch until there
// are enough documents.
func (v *placement) enough() int {
	n := 0
	for cost, found := range v.byCost {
		if n += found; n >= v.missing {
			return cost
		}
	}
	return tooMuch
}

// readRows continues with rows of a cohort, which it overwrites. It returns false when time is over.
func (v *nearPruner) readRows(bound int, st *cohort, all []uint32) bool {
	ls := &v.s.list
	for len(all) > 0 {
		if v.s.late() {
			return false
		}
		mark := ls.numbers.Mark()
		rows := all[:min(len(all), stopRows)]
		all = all[len(rows):]
		var costs []uint32
		if most := v.enough(); v.checks && most < v.idle {
			n := len(rows)
			if rows, costs = v.placeRows(st, rows, most); len(rows) > n/2 {
				v.idle = most
			}
		}
		v.readPair(bound, *st, rows, costs)
		ls.numbers.Release(mark)
	}
	return true
}

// placeRows returns the rows whose positions cost no more than most, with their costs. It overwrites rows.
func (v *nearPruner) placeRows(st *cohort, rows []uint32, most int) (left, costs []uint32) {
	costs = v.s.list.numbers.Take(len(rows))
	like := st.like
	like.rows = rows
	v.s.pos.Displacements(like.at(), v.b.interpretations[0].nodes, most, costs)
	n := 0
	for i, c := range costs {
		if c != tooMuch {
			rows[n], costs[n] = rows[i], c
			n++
		}
	}
	return rows[:n], costs[:n]
}

// find adds rows of a cohort that cost no more than a bound. places has the costs of their positions, or is nil if these are unknown.
func (v *nearPruner) find(bound int, st *cohort, rows, places []uint32) {
	v.pruner.put(st.like.segment, v.pruner.least+bound, rows)
	if v.checks && places == nil {
		_, places = v.placeRows(st, rows, tooMuch)
	}
	for i, c := range places {
		if c == 0 && v.asked {
			v.inPlace = append(v.inPlace, rows[i])
		}
		for len(v.byCost) <= int(c) {
			v.byCost = append(v.byCost, 0)
		}
		v.byCost[c]++
	}
}

// readPair reads the next pair of words in rows, which it overwrites, and continues with the rows whose cost stays within the bound.
// places has the costs of their positions, or is nil.
func (v *nearPruner) readPair(bound int, st cohort, rows, places []uint32) {
	switch {
	case len(rows) == 0:
		return
	case st.known == v.all:
		v.find(bound, &st, rows, places)
		return
	}
	k := st.next(v.all)
	ls := &v.s.list
	mark := ls.numbers.Mark()
	costs := v.readNext(&st, k, rows)
	more := ls.numbers.Take(len(rows))
	for cost := uint32(1); cost <= positions.FarPair; cost++ {
		n := 0
		for i, c := range costs {
			if c == cost {
				more[n] = rows[i]
				n++
			}
		}
		if n > 0 {
			v.waiting.postpone(bound+int(cost), &st, more[:n])
		}
	}
	n := 0
	for i, c := range costs {
		if c == 0 {
			rows[n] = rows[i]
			if places != nil {
				places[n] = places[i]
			}
			n++
		}
	}
	ls.numbers.Release(mark)
	if places != nil {
		places = places[:n]
	}
	v.readPair(bound, st, rows[:n], places)
}

// readNext reads a pair in rows and returns by how much the pair increases the cost of each. The costs are allocated from the numbers
// of lists.
func (v *nearPruner) readNext(st *cohort, k int, rows []uint32) (more []uint32) {
	more = v.s.list.numbers.Take(len(rows))
	st.like.rows = rows
	knownPairCosts(v.s, &st.like, v.pairs[k][0], v.pairs[k][1], more)
	st.like.rows = nil
	if st.apart>>k&1 != 0 { // 1 has been counted
		for i, c := range more {
			more[i] = max(c, 1) - 1
		}
	}
	st.known |= 1 << k
	st.apart &^= 1 << k
	return more
}

// knownPairCosts is positions.Reader.Distances, except that a round reuses what earlier rounds have read, as far as there is memory.
func knownPairCosts(s *search, b *batch, u, v int, costs []uint32) {
	if s.rounds == nil {
		s.pos.Distances(b.at(), u, v, costs)
		return
	}
	key := pairKey{u: u, v: v, fixed: b.fixed, segment: b.segment}
	key.levels.Set(u, b.levels.Of(u))
	key.levels.Set(v, b.levels.Of(v))
	known := s.readPairs[key] // by row: the cost plus 1; 0: not read
	if known == nil {
		n := s.ix.Segments[b.segment].Rows()
		if s.readPairBytes+n > mostReadPairs {
			s.pos.Distances(b.at(), u, v, costs)
			return
		}
		s.readPairBytes += n
		if s.readPairs == nil {
			s.readPairs = map[pairKey][]uint8{}
		}
		known = make([]uint8, n)
		s.readPairs[key] = known
	}
	ls := &s.list
	mark := ls.numbers.Mark()
	unread := ls.numbers.Take(len(b.rows))
	index := ls.numbers.Take(len(b.rows)) // of unread, in b.rows
	n := 0
	for i, row := range b.rows {
		if int(row) < len(known) && known[row] > 0 { // a forged segment may name other rows
			costs[i] = uint32(known[row] - 1)
		} else {
			unread[n], index[n] = row, uint32(i)
			n++
		}
	}
	if n > 0 {
		like := *b
		like.rows = unread[:n]
		read := ls.numbers.Take(n)
		s.pos.Distances(like.at(), u, v, read)
		for k, c := range read {
			costs[index[k]] = c
			if row := int(unread[k]); row < len(known) {
				known[row] = uint8(c) + 1
			}
		}
	}
	ls.numbers.Release(mark)
}

// pairKey identifies the costs of a pair: two nodes at their levels in a segment.
type pairKey struct {
	u, v    int
	levels  positions.Levels
	fixed   bool
	segment int
}

// mostReadPairs limits the bytes for costs of pairs. (A variable, so that tests can lower it.)
var mostReadPairs = 4 << 20
