package rank

import "svc/internal/query"

// gramCost is what a node costs in typos before its own: an n-gram its length.
func gramCost(v *query.Node) int {
	if v.Len == 1 {
		return 0
	}
	return v.Len
}

// maxTypos is the largest typo cost of a node. Splitting is always possible, so it is one at least.
func maxTypos(v *query.Node) int {
	if v.Phrase {
		return 0
	}
	return max(v.Budget, 1) + gramCost(v)
}

// typoLevels computes, as asked for, which documents of a path have which typo cost.
type typoLevels struct {
	s    *search
	p    *path
	base int
	memo [][]rows // memo[i][c]: documents whose first i nodes have c typos; nil when not computed
}

func (s *search) newTypoLevels(p *path) *typoLevels {
	t := &typoLevels{s: s, p: p, memo: make([][]rows, len(p.nodes)+1)}
	for _, n := range p.nodes {
		t.base += gramCost(&s.graph.Nodes[n])
	}
	return t
}

func (t *typoLevels) most() int { return t.base + (query.Levels-1)*len(t.p.nodes) }

// at returns the documents of the path with a cost.
func (t *typoLevels) at(cost int) rows {
	if cost < t.base || cost > t.most() {
		return nil
	}
	return t.first(len(t.p.nodes), cost-t.base)
}

func (t *typoLevels) first(i, cost int) rows {
	if i == 0 {
		if cost == 0 {
			return t.p.rows
		}
		return nil
	}
	if cost > (query.Levels-1)*i {
		return nil
	}
	for len(t.memo[i]) <= cost {
		t.memo[i] = append(t.memo[i], nil)
	}
	if r := t.memo[i][cost]; r != nil {
		return r
	}
	v := &t.s.graph.Nodes[t.p.nodes[i-1]]
	if t.s.exactOnly[t.p.nodes[i-1]] { // its documents were picked before
		r := t.first(i-1, cost)
		t.memo[i][cost] = r
		return r
	}
	out := make(rows, len(t.p.rows))
	for level := range min(query.Levels, cost+1) {
		before := t.first(i-1, cost-level)
		if before == nil {
			continue
		}
		for seg := range out {
			if at := v.Segments[seg].At[level]; !at.IsEmpty() {
				out[seg] = or(out[seg], and(before[seg], at))
			}
		}
	}
	t.memo[i][cost] = out
	return out
}

// splitTypo yields the documents by typos, fewest first.
func (s *search) splitTypo(b *bucket, yield func(*bucket, part) bool) {
	levels := make([]*typoLevels, len(b.paths))
	most := 0
	for i := range b.paths {
		levels[i] = s.newTypoLevels(&b.paths[i])
		most = max(most, levels[i].most())
	}
	var ranks int
	if s.scored {
		ranks = 1 + s.largest(b, maxTypos, 0)
	}
	seen := make(rows, len(b.rows))
	left := b.n
	for cost := 0; cost <= most && left > 0; cost++ {
		sub := &bucket{terms: b.terms, narrowed: true, fixed: true, rows: make(rows, len(b.rows))}
		for i, l := range levels {
			r := l.at(cost)
			if r == nil {
				continue
			}
			if len(levels) > 1 {
				r = r.andNot(seen)
			}
			if r.isEmpty() {
				continue
			}
			sub.paths = append(sub.paths, path{nodes: b.paths[i].nodes, terms: b.paths[i].terms, rows: r})
			sub.rows = sub.rows.or(r)
			sub.typos = max(sub.typos, cost-l.base)
		}
		if len(sub.paths) == 0 {
			continue
		}
		if len(levels) > 1 {
			seen = seen.or(sub.rows)
		}
		sub.n = sub.rows.count()
		left -= sub.n
		if !yield(sub, part{kind: ruleTypo, cost: uint64(cost), rank: uint64(max(ranks-cost, 0)), ranks: uint64(ranks)}) {
			return
		}
	}
}
