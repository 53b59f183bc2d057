package rank

import (
	"slices"

	"svc/internal/rank/positions"
)

// A list is a bucket as rows. It is used once buckets are so small, or positions so expensive, that bitmaps no longer pay off.
type list struct {
	entries []entry        // by segment and row
	uniform bool           // all entries have the same interpretations and levels
	judged  [measures]bool // rules for which the entries already have costs
	terms   int            // as in bucket

	narrowed, fixed bool             // as in bucket
	chosen          bool             // the same
	counted         []interpretation // the same
	pruned          int              // the same
}

// entry is one document of a list.
type entry struct {
	row             uint32
	segment         uint16
	interpretations uint16 // index in lists.sets: its live interpretations
	levels          positions.Levels
	costs           [measures]uint32
}

const wordOnly = positions.WordOnly

// lists is the memory of the list rules of one search.
type lists struct {
	interpretations []interpretation // of the list being ranked
	sets            [][]uint16       // interned sets of indexes of interpretations, ascending
	ids             map[string]uint16

	entries positions.Stack[entry]
	numbers positions.Stack[uint32]
}

// listOf makes a list of a bucket.
func listOf(s *search, b *bucket, l *list) {
	ls := &s.list
	ls.interpretations, ls.sets = b.interpretations, ls.sets[:0]
	ls.ids = nil
	*l = list{entries: ls.entries.Take(b.n)[:0], terms: b.terms, narrowed: b.narrowed, fixed: b.fixed, chosen: b.chosen, counted: b.counted, pruned: b.pruned}
	for seg, r := range b.rows {
		if r == nil {
			continue
		}
		for it := r.Iterator(); it.HasNext(); {
			l.entries = append(l.entries, entry{row: it.Next(), segment: uint16(seg)})
		}
	}
	if len(b.interpretations) > 0 {
		label(s, l, b)
	} else {
		l.uniform = true
	}
}

// label stores for each entry the interpretations that reach it and the level of each of their nodes.
func label(s *search, l *list, b *bucket) {
	ls := &s.list
	if len(b.interpretations) == 1 {
		ls.intern([]uint16{0})
	} else {
		var set []uint16
		for e := range l.entries {
			set = set[:0]
			for p := range b.interpretations {
				if b.interpretations[p].rows.has(int(l.entries[e].segment), l.entries[e].row) {
					set = append(set, uint16(p))
				}
			}
			l.entries[e].interpretations = ls.intern(set)
		}
	}
	if len(b.interpretations) > 1 || !b.fixed || b.typos > 0 {
		var seen positions.Levels // nodes done
		for p := range b.interpretations {
			for _, n := range b.interpretations[p].nodes {
				if seen.Of(n) != 0 {
					continue
				}
				seen.Set(n, 1)
				labelNode(&s.findings, l, n)
			}
		}
	}
	l.uniform = isUniform(l.entries)
}

// labelNode stores for each row of a list the lowest level at which it has a node.
func labelNode(s *findings, l *list, n int) {
	v := &s.graph.Nodes[n]
	for e := range l.entries {
		x := &l.entries[e]
		at := &v.Segments[x.segment].At
		switch {
		case at[0].Contains(x.row):
		case at[1].Contains(x.row):
			x.levels.Set(n, 1)
		case at[2].Contains(x.row):
			x.levels.Set(n, 2)
		}
	}
}

func isUniform(e []entry) bool {
	for i := 1; i < len(e); i++ {
		if e[i].interpretations != e[0].interpretations || e[i].levels != e[0].levels {
			return false
		}
	}
	return true
}

// intern returns the number of a set of interpretations.
func (ls *lists) intern(set []uint16) uint16 {
	for i, other := range ls.sets[:min(len(ls.sets), 4)] {
		if slices.Equal(other, set) {
			return uint16(i)
		}
	}
	if len(ls.sets) < 4 {
		ls.sets = append(ls.sets, slices.Clone(set))
		return uint16(len(ls.sets) - 1)
	}
	key := make([]byte, 0, 2*len(set))
	for _, p := range set {
		key = append(key, byte(p), byte(p>>8))
	}
	if id, ok := ls.ids[string(key)]; ok {
		return id
	}
	if ls.ids == nil {
		ls.ids = map[string]uint16{}
	}
	id := uint16(len(ls.sets))
	ls.sets = append(ls.sets, slices.Clone(set))
	ls.ids[string(key)] = id
	return id
}

// oneInterpretation reports whether all entries have the same single live interpretation.
func (ls *lists) oneInterpretation() bool { return len(ls.sets) == 1 && len(ls.sets[0]) == 1 }

// order sorts entries by cost; equal ones keep their order.
func order(s *scratch, e []entry, costs []uint32) {
	least, most := costs[0], costs[0]
	for _, c := range costs {
		least, most = min(least, c), max(most, c)
	}
	if least == most {
		return
	}
	ls := &s.list
	used, usedEntries := ls.numbers.Mark(), ls.entries.Mark()
	if n := int(most-least) + 1; n <= len(e)+256 {
		starts := ls.numbers.Take(n)
		clear(starts)
		for _, c := range costs {
			starts[c-least]++
		}
		at := uint32(0)
		for i, n := range starts {
			starts[i] = at
			at += n
		}
		sorted, sortedCosts := ls.entries.Take(len(e)), ls.numbers.Take(len(e))
		for i, c := range costs {
			k := &starts[c-least]
			sorted[*k], sortedCosts[*k] = e[i], c
			*k++
		}
		copy(e, sorted)
		copy(costs, sortedCosts)
	} else {
		type pair struct {
			cost uint32
			e    entry
		}
		pairs := make([]pair, len(e))
		for i := range e {
			pairs[i] = pair{costs[i], e[i]}
		}
		slices.SortStableFunc(pairs, func(a, b pair) int { return int(a.cost) - int(b.cost) })
		for i, p := range pairs {
			e[i], costs[i] = p.e, p.cost
		}
	}
	ls.numbers.Release(used)
	ls.entries.Release(usedEntries)
}
