package rank

import (
	"iter"

	"svc/internal/invariant"
)

// rankBucket ranks a bucket by the rules from i on.
func (s *search) rankBucket(b *bucket, i int) {
	if invariant.Enabled {
		checkBucket(s, b)
	}
	// To scores duplicates may matter. Where some documents are still to be passed over, they matter to which of those are kept that have
	// several values.
	if d := s.out.distinct; d != nil && (!s.scored || alike(&s.request, b)) && (s.out.skip == 0 || s.out.alone()) && b.n >= classRows {
		if left := d.unlike(b.rows); left.count() < b.n {
			b = b.part(left)
		}
	}
	switch {
	case b.n == 0 || !s.out.wants():
		return
	case s.out.skips(b.n):
		s.out.addRows(rowsOfAll(&s.view, b))
		return
	case i == len(s.rules) || b.n == 1 && !asksAll(s) && (s.unknown == 0 || i > 0):
		s.out.addRows(rowsOfAll(&s.view, b))
		return
	case s.late():
		s.addUnranked(rowsOfAll(&s.view, b))
		return
	}
	if rounds(s, b, i) {
		rankRounds(s, b, i)
		return
	}
	r := s.rules[i]
	if b.paths == nil && r.traits().paths {
		interpret(&s.view, b)
	}
	if parts := cheapest(s, b, i); parts.parts != nil {
		s.open(b, i, s.r.Plan.watch(r.name(), b.n, parts))
	} else {
		s.rankAsList(b, i)
	}
}

// cheapest splits a bucket by rule i along the path of the least effort that does not decline. It declines where rows cost less one by one.
func cheapest(s *search, b *bucket, i int) split {
	left := s.rules[i].access(s, b, i)
	rows := s.rules[i].traits().row * effort(b.n)
	for {
		var best *access
		for k := range left {
			if p := &left[k]; p.open != nil && p.effort <= rows && (best == nil || p.effort < best.effort) {
				best = p
			}
		}
		if best == nil {
			return declined
		}
		if parts := best.open(s, b, i); parts.parts != nil {
			return parts
		}
		best.open = nil
	}
}

// open ranks the parts into which rule i splits a bucket, best first, as far as needed.
func (s *search) open(b *bucket, i int, parts iter.Seq2[*bucket, part]) {
	var opened []rows
	var before *part
	look := 8
	rest := func() rows {
		r := rowsOfAll(&s.view, b)
		for _, o := range opened {
			r = r.andNot(o)
		}
		return r
	}
	for sub, p := range parts {
		if s.late() {
			s.addUnranked(rest())
			return
		}
		p.by = s.rules[i]
		if invariant.Enabled {
			checkPart(b, sub, opened, before, &p)
			before = &p
		}
		s.push(p)
		if s.below() {
			s.pop()
			s.out.dropRows(rest())
			return
		}
		s.rankBucket(sub, i+1)
		s.pop()
		opened = append(opened, sub.rows)
		if !s.out.wants() {
			return
		}
		if len(opened) == look { // to look takes as long as to split a large bucket
			look *= 2
			if d := s.out.distinct; d != nil && s.r.Threshold == nil && d.unlike(b.rows).isEmpty() {
				return
			}
		}
	}
}

// rankAsList ranks a bucket by the rules from i on as a list.
func (s *search) rankAsList(b *bucket, i int) {
	ls := &s.list
	ls.paths, ls.sets = b.paths, ls.sets[:0]
	ls.ids = nil
	mark := ls.entries.Mark()
	l := list{entries: ls.entries.Take(b.n)[:0], terms: b.terms, narrowed: b.narrowed, fixed: b.fixed}
	for seg, r := range b.rows {
		if r == nil {
			continue
		}
		for it := r.Iterator(); it.HasNext(); {
			l.entries = append(l.entries, entry{row: it.Next(), segment: uint16(seg)})
		}
	}
	if len(b.paths) > 0 {
		label(s, &l, b)
	} else {
		l.uniform = true
	}
	s.rankList(l, i)
	ls.entries.Release(mark)
}

// rankList ranks a list by the rules from i on.
func (s *search) rankList(l list, i int) {
	switch {
	case !s.out.wants():
		return
	case s.out.skips(len(l.entries)) || i == len(s.rules) || len(l.entries) == 1 && !asksAll(s):
		s.addEntries(l.entries)
		return
	case s.late():
		s.addUnranked(s.rowsOf(l.entries))
		return
	}
	ls := &s.list
	mark, sorted := ls.numbers.Mark(), s.sorting.distinct.Mark()
	costs := ls.numbers.Take(len(l.entries))
	r := s.rules[i]
	s.r.Plan.begin(r.name(), rowByRow, len(l.entries))
	c := r.costs(s, &l, i, costs)
	s.r.Plan.end(len(l.entries))
	if s.isLate {
		s.addUnranked(s.rowsOf(l.entries))
		return
	}
	order(&s.scratch, l.entries, costs)
	if invariant.Enabled {
		checkList(s, r, l.entries, costs, &c)
	}
	for begin := 0; begin < len(l.entries); {
		end := begin + 1
		for end < len(l.entries) && costs[end] == costs[begin] {
			end++
		}
		if s.late() {
			s.addUnranked(s.rowsOf(l.entries[begin:]))
			break
		}
		sub := l
		sub.entries = l.entries[begin:end]
		if c.narrows {
			sub.narrowed = true
		}
		if c.misses {
			sub.terms = len(s.graph.Terms) - int(costs[begin])
		}
		if c.fixes {
			sub.fixed = true
		}
		sub.uniform = l.uniform && !c.relabels || isUniform(sub.entries)
		p := c.part(costs[begin])
		p.by = r
		s.push(p)
		if s.below() {
			s.pop()
			s.out.dropRows(s.rowsOf(l.entries[begin:]))
			break
		}
		s.rankList(sub, i+1)
		s.pop()
		if !s.out.wants() {
			break
		}
		begin = end
	}
	ls.numbers.Release(mark)
	s.sorting.distinct.Release(sorted)
}
