package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
)

// typo puts documents first that have the words of the query with fewer typos.
type typo struct{ relevance }

func (typo) name() string { return "typo" }

func (typo) traits() *traits { return &typoTraits }

var typoTraits = traits{row: compareRow, says: ByRelevance, interprets: true, sets: true, levels: true, typos: true, counts: true}

func (typo) access(*search, *bucket, int) paths { return paths{{atHand, openTypos}} }

// openTypos splits by the sum of typos. The first call does the work, because a page may not need it.
func openTypos(s *search, b *bucket, _ int) split {
	var next func() (*bucket, int)
	ranks := 0
	return split{levelSets, func() (*bucket, verdict) {
		if next == nil {
			if next = byTypos(&s.findings, b); s.scored {
				ranks = 1 + largest(&s.findings, b, maxTypos, 0)
			}
		}
		sub, cost := next()
		return sub, verdict{cost: uint64(cost), rank: uint64(max(ranks-cost, 0)), ranks: uint64(ranks)}
	}}
}

func (typo) costs(s *search, l *list, _ int, costs []uint32) outcome {
	o := outcome{narrows: true, fixes: true, ranks: uint64(1 + largestTypos(s, l))}
	o.relabels = eachInterpretation(s, l, costs, func(b *batch, nodes []int, costs []uint32) { typoCosts(&s.findings, b, nodes, costs) })
	return o
}

func (typo) details(d *detailWriter, verdicts []verdict) int {
	p := &verdicts[0]
	d.open("typo")
	d.integer("typoCount", p.ranks-p.rank)
	d.integer("maxTypoCount", p.ranks-1)
	d.score(p)
	return 1
}

// gramCost is the typo cost of a node apart from its own typos: the length of an n-gram, 0 for a single word.
func gramCost(v *query.Node) int {
	if v.Len == 1 {
		return 0
	}
	return v.Len
}

// maxTypos is the largest typo cost of a node. It is at least one, because splitting is always possible.
func maxTypos(v *query.Node) int {
	if v.Phrase {
		return 0
	}
	return max(v.Budget, 1) + gramCost(v)
}

// typoLevels computes on demand which documents of an interpretation have which typo cost.
type typoLevels struct {
	s    *findings
	p    *interpretation
	base int
	memo [][]rows // memo[i][c]: documents whose first i nodes have c typos; nil: not computed
}

func newTypoLevels(s *findings, p *interpretation) *typoLevels {
	t := &typoLevels{s: s, p: p, memo: make([][]rows, len(p.nodes)+1)}
	for _, n := range p.nodes {
		t.base += gramCost(&s.graph.Nodes[n])
	}
	return t
}

func (t *typoLevels) most() int { return t.base + (query.Levels-1)*len(t.p.nodes) }

// at returns the documents of the interpretation with a cost.
func (t *typoLevels) at(cost int) rows {
	if cost < t.base || cost > t.most() {
		return nil
	}
	return t.first(len(t.p.nodes), cost-t.base)
}

// first returns the rows that match the first i nodes of a path with cost typos in total. Results are cached.
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
	if level := t.s.onlyAt[t.p.nodes[i-1]]; level >= 0 { // its documents were selected before
		if cost < level {
			return nil
		}
		r := t.first(i-1, cost-level)
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
			at := v.Segments[seg].At[level]
			switch {
			case before[seg] == nil || !at.Intersects(before[seg]):
			case before[seg] == v.Segments[seg].Any: // all that the node finds
				out[seg] = or(out[seg], at)
			case areAt(&v.Segments[seg], level, before[seg]):
				out[seg] = or(out[seg], before[seg])
			case isAlive(before[seg], v.Segments[seg].Any, t.s.ix.Segments[seg].Deleted):
				out[seg] = or(out[seg], andNot(at, t.s.ix.Segments[seg].Deleted))
			default:
				out[seg] = or(out[seg], and(before[seg], at))
			}
		}
	}
	t.memo[i][cost] = out
	return out
}

// isAlive reports whether the given documents, all live, are all documents that a node finds in a segment. Those at a level are then
// found without checking each, because few are deleted.
func isAlive(in, all, deleted *roaring.Bitmap) bool {
	return deleted != nil && in.GetCardinality()+all.AndCardinality(deleted) == all.GetCardinality()
}

// areAt reports whether the given documents, which a node finds in a segment, all match it at one level. Searching for others costs
// less than copying the documents.
func areAt(v *query.SegmentRows, level int, in *roaring.Bitmap) bool {
	for l, at := range v.At {
		if l != level && at.Intersects(in) {
			return false
		}
	}
	return true
}

// byTypos returns the documents of a bucket by typos, fewest first.
func byTypos(s *findings, b *bucket) (next func() (sub *bucket, cost int)) {
	levels, most := make([]*typoLevels, len(b.interpretations)), 0
	for i := range b.interpretations {
		levels[i] = newTypoLevels(s, &b.interpretations[i])
		most = max(most, levels[i].most())
	}
	seen := make(rows, len(b.rows))
	left, at := b.n, 0
	return func() (*bucket, int) {
		for at <= most && left > 0 {
			cost := at
			at++
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
				sub.interpretations = append(sub.interpretations, interpretation{nodes: b.interpretations[i].nodes, terms: b.interpretations[i].terms, rows: r})
				sub.rows = sub.rows.or(r)
				sub.typos = max(sub.typos, cost-l.base)
			}
			if len(sub.interpretations) == 0 {
				continue
			}
			if len(levels) > 1 {
				seen = seen.or(sub.rows)
			}
			sub.n = sub.rows.count()
			left -= sub.n
			return sub, cost
		}
		return nil, 0
	}
}

// largestTypos is the largest number of typos in a live interpretation of the list.
func largestTypos(s *search, l *list) int {
	if !s.scored || !l.narrowed || l.counted != nil {
		return largestIn(s, l, maxTypos, 0)
	}
	ls := &s.list
	most := 0
	for i := range l.entries {
		e := &l.entries[i]
		if i > 0 && e.interpretations == l.entries[i-1].interpretations && e.levels == l.entries[i-1].levels {
			continue
		}
		sum := 0
		for _, n := range ls.interpretations[ls.sets[e.interpretations][0]].nodes {
			v := &s.graph.Nodes[n]
			if e.levels.Of(n) == wordOnly && v.Budget > 0 {
				continue // it now matches as the word only; without a budget its split still counts
			}
			sum += maxTypos(v)
		}
		most = max(most, sum)
	}
	return most
}

// typoCosts charges each node its level.
func typoCosts(s *findings, b *batch, nodes []int, costs []uint32) {
	cost := uint32(0)
	for _, n := range nodes {
		cost += uint32(gramCost(&s.graph.Nodes[n]))
		if l := b.levels.Of(n); l != wordOnly {
			cost += uint32(l)
		}
	}
	for i := range costs {
		costs[i] = cost
	}
}
