package fastapi

import (
	"cmp"
	"maps"
	"slices"
)

// walkSearch is a search, as sent and as the model answers it.
type walkSearch struct {
	body     map[string]any
	q        string
	strategy string
	on       []string
	keep     func(*walkDoc) bool // the filter
	sort     []walkSort
	scoring  *walkScoring
	distinct string
	facets   []string

	offset, limit int
	paged         bool
	perPage       int
	threshold     float64 // 0: none
	scored        bool    // hits have scores
}

// walkFound is the expected result of a search.
type walkFound struct {
	hits       []walkHit
	candidates []*walkDoc
}

type walkHit struct {
	*walkDoc
	ranks []walkRank
}

// find answers a search document by document.
func (m *walkModel) find(s *walkSearch) walkFound {
	w := m.query(s.q, s.strategy, s.on)
	words := len(w.Terms.Terms) > 0
	var all []*walkCandidate
	for _, d := range m.docs {
		if s.keep != nil && !s.keep(d) || w.excluded(d) {
			continue
		}
		c := &walkCandidate{walkDoc: d}
		if words {
			if c.readings = w.readings(d); len(c.readings) == 0 {
				continue
			}
		}
		all = append(all, c)
	}
	maxTotal := m.set.Pagination.MaxTotalHits
	page := &walkPage{walkQuery: w, rules: m.set.rules(s.sort, s.scoring, words, s.strategy == "all"), distinct: cmp.Or(s.distinct, m.set.DistinctAttribute),
		threshold: s.threshold, scored: s.scored || s.threshold > 0, gone: map[*walkDoc]bool{}}
	page.skip = min(s.offset, maxTotal)
	page.limit = min(s.limit, maxTotal-page.skip)
	exact := s.threshold > 0 || s.paged && page.distinct != ""
	whole := exact || page.distinct != "" && s.limit > 0 && len(all) < maxTotal // pages are slices of one list
	if whole {
		page.skip, page.limit = 0, maxTotal
	}
	page.rank(all, 0, false, false, nil)
	found := walkFound{hits: page.hits}
	for _, c := range all {
		if !page.gone[c.walkDoc] {
			found.candidates = append(found.candidates, c.walkDoc)
		}
	}
	if exact && page.distinct != "" {
		seen := map[string]bool{}
		found.candidates = slices.DeleteFunc(found.candidates, func(d *walkDoc) bool { return !d.first(page.distinct, seen) })
	}
	if whole {
		first := min(s.offset, maxTotal)
		last := min(len(found.hits), first+min(s.limit, maxTotal-first))
		found.hits = found.hits[min(first, last):last]
	}
	return found
}

// first reports whether no value of a field was seen before, and records them.
func (d *walkDoc) first(field string, seen map[string]bool) bool {
	var values []string
	for _, x := range d.at(field).numbers {
		values = append(values, "#"+x.RatString())
	}
	for _, key := range d.at(field).keys {
		values = append(values, "$"+key)
	}
	if slices.ContainsFunc(values, func(v string) bool { return seen[v] }) {
		return false
	}
	for _, v := range values {
		seen[v] = true
	}
	return true
}

// walkPage takes documents bucket by bucket until it is full.
type walkPage struct {
	*walkQuery
	rules       []walkRule
	distinct    string
	threshold   float64
	scored      bool
	skip, limit int
	hits        []walkHit
	seen        map[string]bool
	gone        map[*walkDoc]bool // no longer candidates
}

func (p *walkPage) rank(cs []*walkCandidate, rule int, narrowed, entered bool, ranks []walkRank) {
	switch {
	case len(cs) == 0 || len(p.hits) == p.limit:
		return
	case len(cs) <= p.skip && p.threshold == 0 && p.distinct == "", len(cs) == 1 && !p.scored:
		p.add(cs, ranks)
		return
	case rule == len(p.rules):
		slices.SortStableFunc(cs, func(a, b *walkCandidate) int { return cmp.Compare(p.accents(a.walkDoc), p.accents(b.walkDoc)) })
		for len(cs) > 0 && len(p.hits) < p.limit {
			n := 1
			for n < len(cs) && p.accents(cs[n].walkDoc) == p.accents(cs[0].walkDoc) {
				n++
			}
			p.add(cs[:n], ranks)
			cs = cs[n:]
		}
		return
	}
	r := p.rules[rule]
	graph := r.judges()
	if graph && r.name != "words" && !entered {
		for _, c := range cs { // only readings that miss the fewest words count
			fewest := slices.MinFunc(c.readings, func(a, b walkReading) int { return cmp.Compare(a.dropped, b.dropped) }).dropped
			c.readings = slices.DeleteFunc(c.readings, func(r walkReading) bool { return r.dropped > fewest })
		}
	}
	worded := slices.ContainsFunc(ranks, func(r walkRank) bool { return r.rule.name == "words" })
	costs, best := p.judge(cs, r, narrowed, worded)
	if graph {
		entered = true
		narrowed = narrowed || r.name != "exactAttribute"
	}
	buckets := map[int][]*walkCandidate{}
	for i, c := range cs {
		buckets[costs[i]] = append(buckets[costs[i]], c)
	}
	order := slices.Sorted(maps.Keys(buckets))
	for i, cost := range order {
		next := append(slices.Clone(ranks), walkRank{r, best - cost, best})
		if p.threshold > 0 && graph && walkScore(next) < p.threshold {
			for _, worse := range order[i:] {
				for _, c := range buckets[worse] {
					p.gone[c.walkDoc] = true
				}
			}
			return
		}
		p.rank(buckets[cost], rule+1, narrowed, entered, next)
		if len(p.hits) == p.limit {
			return
		}
	}
}

func (p *walkPage) add(cs []*walkCandidate, ranks []walkRank) {
	for _, c := range cs {
		if p.distinct != "" {
			if p.seen == nil {
				p.seen = map[string]bool{}
			}
			if !c.first(p.distinct, p.seen) {
				continue
			}
			for _, d := range p.docs { // drops all others with one of its values
				own := map[string]bool{}
				c.first(p.distinct, own)
				if d != c.walkDoc && !d.first(p.distinct, own) {
					p.gone[d] = true
				}
			}
		}
		if p.skip > 0 {
			p.skip--
		} else if len(p.hits) < p.limit {
			p.hits = append(p.hits, walkHit{c.walkDoc, ranks})
		}
	}
}
