package rank

import "svc/internal/invariant"

// tied has documents that are equal under all rules, or that there was no time to rank. The verdicts of the rules on them are in
// search.stack.
type tied struct {
	rows    rows
	entries []entry // where rows is nil
	pruned  int     // of entries, as in list
}

// next returns the next documents. ok is false at the end.
func (s *search) next() (g tied, ok bool) {
	for {
		if r := s.rounds; r != nil && r.left == 0 {
			s.drop(r.at + 1)
		}
		if !s.out.wants() && s.rounds == nil {
			return tied{}, false
		}
		var w *set
		if n := len(s.sets); n > 0 {
			w = &s.sets[n-1]
			s.stack = s.stack[:w.depth]
		}
		switch {
		case s.lazy.bound != nil && (w == nil || s.lazy.isNext(s.stack)):
			s.lazy.expand()
		case s.cached.isNext():
			s.cached.expand()
		case w == nil:
			return tied{}, false
		case w.rounds != nil && w.rounds.retry != nil:
			g, ok = nextRetry(s, w.rounds)
		case w.rounds != nil:
			nextRound(s, w.rounds)
		case w.parts != nil:
			g, ok = nextPart(s, w)
		case w.bucket != nil:
			g, ok = refineBucket(s)
		case w.runs.costs != nil:
			g, ok = nextRun(s, w)
		default:
			g, ok = refineList(s, w)
		}
		if ok {
			return g, true
		}
	}
}

// refineBucket asks the next rule about the least set, a bucket.
func refineBucket(s *search) (g tied, ok bool) {
	w := s.pop()
	b, i := w.bucket, w.depth
	if invariant.Enabled {
		checkBucket(s, b)
	}
	if dedups(s, b, i) {
		if left := s.out.distinct.unlike(b.rows); left.count() < b.n {
			b = b.part(left)
		}
	}
	if s.out.groups != nil {
		b = s.out.groups.prune(s, b)
	}
	if b = leaveOthers(s, b, i); b == nil {
		return tied{}, false
	}
	s.wide = s.chosen != nil && !b.chosen
	switch {
	case b.n == 0:
		return tied{}, false
	case i < len(s.lazy.bound):
	case s.out.skips(b.n), i == len(s.rules), b.n == 1 && !asksAll(s):
		return tied{rows: rowsOfAll(&s.findings, b)}, true
	case s.late():
		return unranked(s, rowsOfAll(&s.findings, b))
	case !w.whole && !s.wide && s.out.groups != nil && s.out.groups.goesRound(s, b, i):
		startRounds(s, b, i)
		return tied{}, false
	case !w.whole && !s.wide && retries(s, b, i):
		startRetry(s, b, i)
		return tied{}, false
	}
	r := s.rules[i]
	if b.interpretations == nil && r.traits().interprets {
		interpret(&s.findings, b)
	}
	if p := cheapest(s, b, i); p.next != nil {
		s.push(set{depth: i, whole: w.whole, bucket: b, parts: &parts{next: s.r.Plan.watch(r.name(), b.n, p), look: 8}})
	} else {
		s.push(set{depth: i, whole: w.whole})
		listOf(s, b, &s.sets[len(s.sets)-1].list)
	}
	return tied{}, false
}

// cheapest splits a bucket by rule i along the path with the least effort that does not decline. It declines if judging rows one by
// one costs less.
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
		if p := best.open(s, b, i); p.next != nil {
			return p
		}
		best.open = nil
	}
}

// nextPart pulls the next part of a bucket.
func nextPart(s *search, w *set) (g tied, ok bool) {
	p := w.parts
	if len(p.taken)+len(p.alone) == p.look { // to look takes as long as to split a large bucket
		p.look *= 2
		if hasAll(s, w.bucket) {
			if s.rounds != nil {
				leaveOut(s, untaken(s, *w).count())
			}
			s.pop()
			return tied{}, false
		}
	}
	sub, said := p.next()
	switch {
	case sub == nil:
		s.pop()
		return tied{}, false
	case s.late():
		return unranked(s, untaken(s, s.pop()))
	}
	said.by = s.rules[w.depth]
	if invariant.Enabled {
		part := sub.rows
		if part == nil {
			part = s.rowsOf(sub.entries)
		}
		checkPart(w.bucket, part, append([]rows{s.rowsOf(p.alone)}, p.taken...), p.last, &said)
		p.last = &said
	}
	s.stack = append(s.stack, said)
	if s.below() {
		s.out.dropRows(untaken(s, s.pop()))
		return tied{}, false
	}
	if sub.rows == nil {
		p.alone = append(p.alone, sub.entries...)
		s.push(set{depth: w.depth + 1, whole: w.whole})
		l := &s.sets[len(s.sets)-1].list
		*l = list{entries: append(s.list.entries.Take(sub.n)[:0], sub.entries...), uniform: true, chosen: w.bucket.chosen, pruned: w.bucket.pruned}
		return tied{}, false
	}
	sub.chosen, sub.pruned = w.bucket.chosen, w.bucket.pruned
	p.taken = append(p.taken, sub.rows)
	s.push(set{depth: w.depth + 1, whole: w.whole, bucket: sub})
	return tied{}, false
}

// untaken returns the documents of a bucket that are in none of the parts taken so far.
func untaken(s *search, w set) rows {
	r := rowsOfAll(&s.findings, w.bucket)
	for _, o := range w.parts.taken {
		r = r.andNot(o)
	}
	if len(w.parts.alone) > 0 {
		r = r.andNot(s.rowsOf(w.parts.alone))
	}
	return r
}

// unranked returns documents for which there is no time any more, or none if their score is too low.
func unranked(s *search, r rows) (g tied, ok bool) {
	s.stack = append(s.stack, verdict{by: skipped{}, ranks: 1})
	if s.below() {
		s.out.dropRows(r)
		return tied{}, false
	}
	return tied{rows: r}, true
}

// refineList asks the next rule about the least set, a list.
func refineList(s *search, w *set) (g tied, ok bool) {
	l := &w.list
	if s.out.groups != nil {
		if l.entries, l.pruned = s.out.groups.pruneList(s, l.entries, l.pruned); len(l.entries) == 0 {
			s.pop()
			return tied{}, false
		}
	}
	if !leaveOtherEntries(s, l, w.depth) {
		s.pop()
		return tied{}, false
	}
	switch {
	case s.out.skips(len(l.entries)), w.depth == len(s.rules), len(l.entries) == 1 && !asksAll(s):
		l := s.pop().list
		return tied{entries: l.entries, pruned: l.pruned}, true
	case s.late():
		return unranked(s, s.rowsOf(s.pop().list.entries))
	}
	ls := &s.list
	costs := ls.numbers.Take(len(l.entries))
	r := s.rules[w.depth]
	s.r.Plan.begin(r.name(), rowByRow, len(l.entries))
	w.runs.outcome = r.costs(s, l, w.depth, costs)
	s.r.Plan.end(len(l.entries))
	if s.isLate {
		return unranked(s, s.rowsOf(s.pop().list.entries))
	}
	order(&s.scratch, l.entries, costs)
	if invariant.Enabled {
		checkList(s, r, l.entries, costs, &w.runs.outcome)
	}
	w.runs.costs = costs
	return tied{}, false
}

// nextRun pulls the entries of a list that cost the least.
func nextRun(s *search, w *set) (g tied, ok bool) {
	l, c := &w.list, &w.runs
	begin := c.begin
	switch {
	case begin == len(l.entries):
		s.pop()
		return tied{}, false
	case s.late():
		return unranked(s, s.rowsOf(s.pop().list.entries[begin:]))
	}
	end := begin + 1
	for end < len(l.entries) && c.costs[end] == c.costs[begin] {
		end++
	}
	c.begin = end
	p := c.verdict(c.costs[begin])
	p.by = s.rules[w.depth]
	s.stack = append(s.stack, p)
	if s.below() {
		s.out.dropRows(s.rowsOf(s.pop().list.entries[begin:]))
		return tied{}, false
	}
	entries := l.entries[begin:end]
	if w.depth+1 == len(s.rules) || len(entries) == 1 && !asksAll(s) {
		return tied{entries: entries, pruned: l.pruned}, true
	}
	sub := *l
	sub.entries, sub.counted = entries, nil
	if c.narrows {
		sub.narrowed = true
	}
	if c.misses {
		sub.terms = len(s.graph.Terms) - int(c.costs[begin])
	}
	if c.fixes {
		sub.fixed = true
	}
	sub.uniform = l.uniform && !c.relabels || isUniform(sub.entries)
	s.push(set{depth: w.depth + 1, whole: w.whole, list: sub})
	return tied{}, false
}
