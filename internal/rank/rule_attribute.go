package rank

import (
	"slices"

	"svc/internal/query"
	"svc/segment"
)

// attributeCosts charges each node the smallest weight of a searched field where it stands, for each term it covers.
func (s *search) attributeCosts(b *batch, nodes []int, costs []uint32) {
	clear(costs)
	mark := s.list.numbers.used
	best := s.list.numbers.take(len(b.rows))
	for _, n := range nodes {
		v := &s.graph.Nodes[n]
		worst := uint32(s.ix.Fields.MaxWeight())
		for i := range best {
			best[i] = worst
		}
		mask, word := b.mask(n)
		switch {
		case worst == 0: // all fields are alike
		case word:
			for _, p := range wordPostings(v, b.segment) {
				s.lowerWeights(best, b, p, nil)
			}
		default:
			for level := range query.Levels {
				if mask>>level&1 == 0 {
					continue
				}
				for _, p := range v.Levels[level].Postings[b.segment] {
					s.lowerWeights(best, b, p, nil)
				}
				for _, p := range v.Levels[level].Phrases {
					if ps := &p.Segments[b.segment]; !ps.Rows.IsEmpty() {
						s.lowerWeights(best, b, ps.Words[0], ps)
					}
				}
			}
		}
		for i, w := range best {
			costs[i] += w * uint32(v.Len)
		}
	}
	s.list.numbers.used = min(mark, s.list.numbers.used)
}

// lowerWeights notes the fields of a word, in the rows of a phrase if there is one.
func (s *search) lowerWeights(best []uint32, b *batch, p segment.Posting, phrase *query.PhraseSegment) {
	for k := range p.Fields() {
		f := p.Field(k)
		w := s.weights[f.ID()]
		if w < 0 {
			continue
		}
		in := f.Rows()
		for i, row := range b.rows {
			if uint32(w) < best[i] && in.Contains(row) && (phrase == nil || phrase.Rows.Contains(row)) {
				best[i] = uint32(w)
			}
		}
	}
}

// splitAttributeRank yields the documents of a large bucket, which has one path, by the sum
// of the weights of its nodes. It works as typoLevels does.
func (s *search) splitAttributeRank(b *bucket, yield func(*bucket, part) bool) {
	p := &b.paths[0]
	most := s.ix.Fields.MaxWeight()
	weights := make([]int, 0, most+1) // in use, ascending
	for _, w := range s.weights {
		if w >= 0 {
			weights = append(weights, int(w))
		}
	}
	slices.Sort(weights)
	weights = slices.Compact(weights)
	a := attributeSums{s: s, b: b, weights: weights, byWeight: make([][]rows, len(p.nodes)), memo: make([]map[int]rows, len(p.nodes)+1)}
	ranks := uint64(1 + b.terms*most)
	left := b.n
	for cost := 0; cost <= b.terms*most && left > 0; cost++ {
		r := a.first(len(p.nodes), cost)
		if r == nil {
			continue
		}
		sub := *b
		sub.rows, sub.n, sub.byCost = r, r.count(), nil
		if sub.n == 0 {
			continue
		}
		left -= sub.n
		sub.narrowed = true
		sub.paths = []path{{nodes: p.nodes, terms: p.terms, rows: r}}
		if !yield(&sub, part{kind: ruleAttributeRank, rank: ranks - uint64(cost), ranks: ranks}) {
			return
		}
	}
}

type attributeSums struct {
	s        *search
	b        *bucket
	weights  []int
	byWeight [][]rows // of each node: documents by best weight, as weights; nil until asked for
	memo     []map[int]rows
}

// first returns the documents whose first i nodes cost so much.
func (a *attributeSums) first(i, cost int) rows {
	if i == 0 {
		if cost == 0 {
			return a.b.rows
		}
		return nil
	}
	if r, ok := a.memo[i][cost]; ok {
		return r
	}
	if a.memo[i] == nil {
		a.memo[i] = map[int]rows{}
	}
	node := a.b.paths[0].nodes[i-1]
	length := a.s.graph.Nodes[node].Len
	var out rows
	for k, w := range a.weights {
		if w*length > cost {
			break
		}
		before := a.first(i-1, cost-w*length)
		if before == nil {
			continue
		}
		if both := before.and(a.node(i-1, k)); !both.isEmpty() {
			if out == nil {
				out = both
			} else {
				out = out.or(both)
			}
		}
	}
	a.memo[i][cost] = out
	return out
}

// node returns the documents of the bucket where the best weight of a node is weights[k].
func (a *attributeSums) node(i, k int) rows {
	for len(a.byWeight[i]) <= k {
		w := a.weights[len(a.byWeight[i])]
		r := a.s.standing(a.b, a.b.paths[0].nodes[i], int32(w))
		for _, better := range a.byWeight[i] {
			r = r.andNot(better)
		}
		a.byWeight[i] = append(a.byWeight[i], r)
	}
	return a.byWeight[i][k]
}

// standing returns the documents of a bucket where a node stands in a field of a weight.
func (s *search) standing(b *bucket, node int, weight int32) rows {
	v := &s.graph.Nodes[node]
	out := make(rows, len(b.rows))
	levels := query.Levels
	if b.exactLevels {
		levels = 1
	}
	for seg, within := range b.rows {
		if within == nil {
			continue
		}
		add := func(p segment.Posting, phrase *query.PhraseSegment) {
			for k := range p.Fields() {
				f := p.Field(k)
				if s.weights[f.ID()] != weight {
					continue
				}
				r := and(f.Rows(), within)
				if phrase != nil {
					r = and(r, phrase.Rows)
				}
				out[seg] = or(out[seg], r)
			}
		}
		for level := range levels {
			for _, p := range v.Levels[level].Postings[seg] {
				add(p, nil)
			}
			for _, p := range v.Levels[level].Phrases {
				if ps := &p.Segments[seg]; !ps.Rows.IsEmpty() {
					add(ps.Words[0], ps)
				}
			}
		}
	}
	return out
}
