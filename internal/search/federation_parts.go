package search

import (
	"cmp"
	"maps"
	"slices"
)

// Hits of a hybrid query are not in the order of their scores: results of words and of vectors are merged with the weights of the
// semanticRatio. A network searches in parts, each on one instance or of one shard. The lists of the parts are merged with the same
// weights before hits of different queries are compared by their scores. Otherwise the ratio would apply only within each part.

// parts say what the parts of queries share, by the position of their hits.
type parts struct {
	hybrids   map[int]hybridPart
	alike     map[string]int    // by text of a hybrid query without its filter: the first such query
	uids      map[int]string    // of the indexes
	distincts map[string]string // by index: the distinct field of all its queries; "": none, or not the same
}

// hybridPart is a part of a hybrid query.
type hybridPart struct {
	of    int // the same for all parts of a query
	ratio float64
}

// AddPart records a part of query i, whose hits have this position. A request of another instance (Proxy) has a query for each part:
// queries that differ only in filters, which name the shards, are parts of one.
func (r *FederatedRequest) AddPart(i, position int, uid string, q *Request, weight float64) {
	if !r.Proxy {
		r.parts.addDistinct(position, uid, q.Distinct)
	}
	if q.kind() != hybrid {
		return
	}
	if r.parts.hybrids == nil {
		r.parts.hybrids, r.parts.alike = make(map[int]hybridPart), make(map[string]int)
	}
	if r.Proxy {
		all := *q
		all.Filter = nil
		text := string(all.AppendRemote(nil, uid, weight, 0))
		if _, ok := r.parts.alike[text]; !ok {
			r.parts.alike[text] = i
		}
		i = r.parts.alike[text]
	}
	r.parts.hybrids[position] = hybridPart{i, q.ratio()}
}

// addDistinct records the distinct field of a query. If other queries of the index have none, an instance may have shown a document
// as a hit of either. Then only documents dropped locally are known to be duplicates.
func (p *parts) addDistinct(position int, uid string, field *string) {
	if p.uids == nil {
		p.uids, p.distincts = make(map[int]string), make(map[string]string)
	}
	p.uids[position] = uid
	f := ""
	if field != nil {
		f = *field
	}
	if others, ok := p.distincts[uid]; ok && others != f {
		f = ""
	}
	p.distincts[uid] = f
}

// distinctOf returns the distinct field of all parts of a query, or "".
func (p *parts) distinctOf(position int) string { return p.distincts[p.uids[position]] }

// distinct reports whether hits of some parts share no values.
func (p *parts) distinct() bool {
	for _, field := range p.distincts {
		if field != "" {
			return true
		}
	}
	return false
}

// uniteHybrids takes lists with hits of parts and of other queries. It returns one list for each hybrid query, and the rest of the
// other lists. Hits of one part, and those of other queries, keep their order. headOf returns the head of an item, by which it is
// compared.
func uniteHybrids[T any](lists [][]T, headOf func(item *T) *head, parts map[int]hybridPart) [][]T {
	var left [][]T
	of := make(map[int][][]T) // by query
	ratios := make(map[int]float64)
	for _, list := range lists {
		var others []T
		its := make(map[int][]T) // by position of a part
		for i := range list {
			at := headOf(&list[i]).position
			if _, ok := parts[at]; ok {
				its[at] = append(its[at], list[i])
			} else {
				others = append(others, list[i])
			}
		}
		if len(others) > 0 {
			left = append(left, others)
		}
		for at, hits := range its {
			query := parts[at].of
			of[query], ratios[query] = append(of[query], hits), parts[at].ratio
		}
	}
	for _, query := range slices.Sorted(maps.Keys(of)) {
		left = append(left, uniteHybrid(of[query], headOf, ratios[query]))
	}
	return left
}

// uniteHybrid merges the lists of the parts of a hybrid query.
func uniteHybrid[T any](lists [][]T, headOf func(item *T) *head, ratio float64) (all []T) {
	for len(lists) > 0 {
		best := 0
		for i := 1; i < len(lists); i++ {
			if compareSides(headOf(&lists[i][0]), headOf(&lists[best][0]), ratio) < 0 {
				best = i
			}
		}
		all = append(all, lists[best][0])
		if lists[best] = lists[best][1:]; len(lists[best]) == 0 {
			lists = slices.Delete(lists, best, best+1)
		}
	}
	return all
}

// compareSides is negative if a comes before b, another hit of the same hybrid query. Among equals, hits found by vectors come first,
// as in mergeHybrid, and then those of the lower position.
func compareSides(a, b *head, ratio float64) int {
	p, q := 1-ratio, 1-ratio
	side := 0
	if slices.ContainsFunc(a.values, isSimilarity) {
		p = ratio
		side--
	}
	if slices.ContainsFunc(b.values, isSimilarity) {
		q = ratio
		side++
	}
	return cmp.Or(compareWeighted(a.values, b.values, product(p, a.weight), product(q, b.weight)), side,
		cmp.Compare(a.spelling, b.spelling), cmp.Compare(a.position, b.position))
}

// headBytes is what a head takes in a list.
const headBytes = 112

// uniteHybrids merges the lists of the parts of hybrid queries before those of different queries are merged.
func (m *merger) uniteHybrids(parts map[int]hybridPart) {
	if len(parts) == 0 {
		return
	}
	n := 0
	for i := range m.heads {
		for h, ok := m.heads[i], true; ok; h, ok = h.next() {
			n++
		}
	}
	// An item is in its list, in the part of its query and in the united list.
	if m.err = m.turn.Account().Hold(int64(3*n) * headBytes); m.err != nil {
		return
	}
	lists := make([][]head, len(m.heads))
	for i := range m.heads {
		for h, ok := m.heads[i], true; ok; h, ok = h.next() {
			lists[i] = append(lists[i], h)
		}
	}
	m.heads = m.heads[:0]
	for _, list := range uniteHybrids(lists, func(h *head) *head { return h }, parts) {
		h, _ := firstOf(list)
		m.heads = append(m.heads, h)
	}
}

// uniteHybrids merges lists of groups, or of hits of a group, like merger.uniteHybrids.
func (h listHeap) uniteHybrids(parts map[int]hybridPart) listHeap {
	if len(parts) == 0 {
		return h
	}
	lists := make([][]listedGroup, len(h))
	for i := range h {
		lists[i] = h[i].left
	}
	h = h[:0]
	for _, list := range uniteHybrids(lists, func(g *listedGroup) *head { return &g.best }, parts) {
		h = append(h, mergedList{list, len(h)})
	}
	return h
}
