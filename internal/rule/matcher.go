package rule

import (
	"cmp"
	"slices"
)

// matcher finds the rules that may apply to a search. It indexes each rule under one of its conditions, the rarest of its kind.
type matcher struct {
	words  map[string]postings // by a word of the query
	texts  *tree               // by a text that the query contains
	pairs  map[string]postings // by a pair that the filter fixes
	groups map[string][]*group // by an attribute that the filter tests
	blank  postings            // by an empty query
	typed  postings            // by a query that is not empty
	always postings            // without a condition to index

	last   uint32 // rule that was added last, plus 1
	adding *lists // nil after close
}

// lists are the rules of a matcher before close, ascending.
type lists struct {
	words, texts, pairs  map[string][]uint32
	groups               map[string]*group // by signature
	blank, typed, always []uint32
}

func newMatcher() *matcher {
	return &matcher{adding: &lists{words: map[string][]uint32{}, texts: map[string][]uint32{}, pairs: map[string][]uint32{}, groups: map[string]*group{}},
		groups: map[string][]*group{}}
}

// add adds the rule with a number. uses counts the rules of each key.
func (m *matcher) add(n uint32, r *matched, uses map[string]int) {
	rarest := func(kind string, all []string) string {
		return slices.MinFunc(all, func(a, b string) int {
			return cmp.Or(cmp.Compare(uses[kind+a], uses[kind+b]), cmp.Compare(len(b), len(a)))
		})
	}
	l := m.adding
	put := func(to map[string][]uint32, key string) { to[key] = append(to[key], n) }
	switch {
	case len(r.words) > 0:
		put(l.words, rarest(byWord, r.words))
	case len(r.contains) > 0:
		put(l.texts, rarest(byText, r.contains))
	case len(r.fixes) > 0:
		put(l.pairs, rarest(byPair, slices.Concat(r.fixes...)))
	case len(r.facets) > 0:
		s := signature(r.facets)
		g := l.groups[s]
		if g == nil {
			g = &group{}
			l.groups[s] = g
			var attributes []string
			for i := range r.facets {
				attributes = append(attributes, r.facets[i].attribute)
			}
			by := rarest(byAttribute, attributes)
			m.groups[by] = append(m.groups[by], g)
		}
		g.add(n, r.facets)
	default:
		for i := range r.Conditions {
			if q := r.Conditions[i].Query; q != nil && q.IsEmpty != nil {
				if *q.IsEmpty {
					l.blank = append(l.blank, n)
				} else {
					l.typed = append(l.typed, n)
				}
				return
			}
		}
		l.always = append(l.always, n)
	}
}

// close ends the adding.
func (m *matcher) close(rules []matched) {
	l := m.adding
	m.adding = nil
	all := func(from map[string][]uint32) map[string]postings {
		to := make(map[string]postings, len(from))
		for key, list := range from {
			to[key] = newPostings(list, rules)
		}
		return to
	}
	m.words, m.pairs = all(l.words), all(l.pairs)
	m.texts = newTree(all(l.texts))
	m.blank, m.typed, m.always = newPostings(l.blank, rules), newPostings(l.typed, rules), newPostings(l.always, rules)
	for _, g := range l.groups {
		g.close()
	}
}

// look appends the rules that may apply to a.
func (m *matcher) look(a *asked) {
	a.found = m.always.appendAt(a.found, a.at)
	if a.blank {
		a.found = m.blank.appendAt(a.found, a.at)
	} else {
		a.found = m.typed.appendAt(a.found, a.at)
		if len(m.words) > 0 {
			for _, w := range a.words() {
				if p, ok := m.words[w]; ok {
					a.byWord = p.appendAt(a.byWord, a.at)
				}
			}
		}
		a.found = m.texts.appendIn(a.found, a.folded, a.at)
	}
	if a.filter == nil {
		return
	}
	if len(m.pairs) > 0 {
		for key := range a.tested() {
			if p, ok := m.pairs[key]; ok {
				a.found = p.appendAt(a.found, a.at)
			}
		}
	}
	if len(m.groups) > 0 {
		m.lookGroups(a)
	}
}

// lookGroups appends the rules whose facets match a way to satisfy the filter.
func (m *matcher) lookGroups(a *asked) {
	var near []candidateWay
	var list []uint32
	most := 16 * a.set.bounds.FilterCombinations
search:
	for i, w := range a.ways() {
		before := ""
		for _, t := range w {
			if t.Attribute == before {
				continue
			}
			before = t.Attribute
			for _, g := range m.groups[t.Attribute] {
				list = g.candidates(list[:0], w)
				for _, n := range list {
					if len(near) == most {
						break search
					}
					if a.set.rules[n].window.has(a.at) {
						near = append(near, candidateWay{n, int32(i)})
					}
				}
			}
		}
	}
	slices.SortFunc(near, func(a, b candidateWay) int { return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.way, b.way)) })
	near = slices.Compact(near)
	for _, c := range near {
		if n := len(a.satisfied); n > 0 && a.satisfied[n-1] == c.rule {
			continue
		}
		if a.satisfy(a.ways()[c.way], a.set.rules[c.rule].facets) {
			a.satisfied = append(a.satisfied, c.rule)
		}
	}
}

// candidateWay is a rule with a way to satisfy the filter that may satisfy its facets.
type candidateWay struct {
	rule uint32
	way  int32
}
