package rank

import "svc/internal/query"

// largest returns the largest sum over the nodes of a live interpretation of the bucket, plus extra for each two adjacent nodes.
func largest(s *findings, b *bucket, of func(*query.Node) int, extra int) int {
	switch {
	case !b.narrowed:
		return largestOfAll(s, of, extra)
	case b.counted != nil:
		return largestOf(s, b.counted, of, extra)
	}
	return largestOf(s, b.interpretations, of, extra)
}

// largestOf is the largest sum over the nodes of those interpretations that some document needs.
func largestOf(s *findings, all []interpretation, of func(*query.Node) int, extra int) int {
	most := 0
	var seen rows
	for i := range all {
		p := &all[i]
		if len(all) > 1 {
			if seen == nil {
				seen = p.rows
			} else {
				if p.rows.andNot(seen).isEmpty() {
					continue
				}
				seen = seen.or(p.rows)
			}
		}
		most = max(most, sum(s, p, of, extra))
	}
	return most
}

func sum(s *findings, p *interpretation, of func(*query.Node) int, extra int) int {
	n := 0
	for i, v := range p.nodes {
		n += of(&s.graph.Nodes[v])
		if i > 0 && s.touch(p.nodes[i-1], v) {
			n += extra
		}
	}
	return n
}

// largestOfAll is largest over all complete interpretations of the query, whether or not a document has them.
func largestOfAll(s *findings, of func(*query.Node) int, extra int) int {
	n := len(s.graph.Terms)
	best := make([]int, n+1)
	for i := 1; i <= n; i++ {
		best[i] = -1
	}
	for k := range s.graph.Nodes {
		v := &s.graph.Nodes[k]
		sum := best[v.Term] + of(v)
		if v.Term > 0 && s.graph.Terms[v.Term-1].End+1 == v.Start {
			sum += extra
		}
		best[v.Term+v.Len] = max(best[v.Term+v.Len], sum)
	}
	return best[n]
}

// largestIn is largest for a list.
func largestIn(s *search, l *list, of func(*query.Node) int, extra int) int {
	if !s.scored {
		return 1 << 20 // unused; above any cost
	}
	switch {
	case !l.narrowed:
		return largestOfAll(&s.findings, of, extra)
	case l.counted != nil:
		return largestOf(&s.findings, l.counted, of, extra)
	}
	ls := &s.list
	most, last := 0, -1
	for i := range l.entries {
		// The document needs the first of its interpretations.
		if first := int(ls.sets[l.entries[i].interpretations][0]); first != last {
			last = first
			most = max(most, sum(&s.findings, &ls.interpretations[first], of, extra))
		}
	}
	return most
}

// extraTerms is the proximity cost of an n-gram, for not being one word.
func extraTerms(v *query.Node) int { return v.Len - 1 }
