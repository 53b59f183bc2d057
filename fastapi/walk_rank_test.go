package fastapi

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"svc/internal/query"
)

// walkReading is an interpretation of the query for a document: nodes that cover its terms, except dropped ones.
type walkReading struct {
	nodes   []*walkNode
	levels  []int
	dropped int
}

// walkCandidate is a matching document, with its readings that are best under the rules so far.
type walkCandidate struct {
	*walkDoc
	readings []walkReading
}

// readings returns all readings that match a document, single words before longer nodes.
func (w *walkQuery) readings(d *walkDoc) []walkReading {
	var all []walkReading
	terms := w.Terms.Terms
	var walk func(term, rank, dropped int, nodes []*walkNode)
	walk = func(term, rank, dropped int, nodes []*walkNode) {
		if term == len(terms) {
			all = append(all, walkReading{slices.Clone(nodes), slices.Repeat([]int{walkAnyLevel}, len(nodes)), dropped})
			return
		}
		for _, n := range w.nodes {
			if n.term == term && slices.Max(w.ranks[term:term+n.len]) >= rank && w.level(d, n) >= 0 {
				walk(term+n.len, rank, dropped, append(nodes, n))
			}
		}
		if w.ranks[term] != query.Mandatory {
			walk(term+1, max(rank, w.ranks[term]), dropped+1, nodes)
		}
	}
	walk(0, 0, 0, nil)
	return all
}

// walkRule is a rule of a search: the name of a ranking rule, or an order.
type walkRule struct {
	name  string
	sort  *walkSort
	score *walkScoring
}

// judges reports whether the rule depends on how the query matched.
func (r *walkRule) judges() bool { return r.sort == nil && r.score == nil }

// walkRank is the rank that a rule gives to a document, out of ranks.
type walkRank struct {
	rule        walkRule
	rank, ranks int
}

func walkScore(ranks []walkRank) float64 {
	rank, all := 1.0, 1.0
	for _, r := range ranks {
		if r.rule.judges() {
			rank = (rank-1)*float64(r.ranks) + float64(r.rank)
			all *= float64(r.ranks)
		}
	}
	return rank / all
}

// rules returns the rules of a search.
func (s *walkSettings) rules(sort []walkSort, scoring *walkScoring, words, all bool) []walkRule {
	var rules []walkRule
	add := func(name string) {
		if words && !(name == "words" && all) && !slices.ContainsFunc(rules, func(r walkRule) bool { return r.name == name }) {
			rules = append(rules, walkRule{name: name})
		}
	}
	order := func(by walkSort) {
		if by.geo || !slices.ContainsFunc(rules, func(r walkRule) bool {
			return r.sort != nil && !r.sort.geo && r.sort.field == by.field
		}) {
			rules = append(rules, walkRule{name: by.String(), sort: &by})
		}
	}
	for _, name := range s.RankingRules {
		switch name {
		case "typo", "proximity", "attribute", "exactness":
			add("words")
		}
		field, direction, ordered := strings.Cut(name, ":")
		switch {
		case ordered:
			order(walkSort{field: field, desc: direction == "desc"})
		case name == "sort":
			for _, by := range sort {
				order(by)
			}
		case name == "score":
			if scoring = cmp.Or(scoring, s.ScoreFunctions); scoring != nil && len(scoring.Functions) > 0 {
				rules = append(rules, walkRule{name: name, score: scoring})
			}
		case name == "attribute":
			add("attributeRank")
			add("wordPosition")
		case name == "exactness":
			add("exactAttribute")
			add("exactness")
		default:
			add(name)
		}
	}
	return rules
}

// judge computes the costs of documents under a rule, and leaves them their cheapest readings. ranks is the number of possible ranks.
func (w *walkQuery) judge(cs []*walkCandidate, rule walkRule, narrowed, worded bool) (costs []int, ranks int) {
	costs = make([]int, len(cs))
	terms := len(w.Terms.Terms)
	if worded {
		terms -= cs[0].readings[0].dropped
	}
	cheapest := func(cost func(d *walkDoc, r *walkReading) int) {
		for i, c := range cs {
			costs[i] = math.MaxInt
			var kept []walkReading
			for _, r := range c.readings {
				n := cost(c.walkDoc, &r)
				if n < costs[i] {
					costs[i], kept = n, nil
				}
				if n == costs[i] {
					kept = append(kept, r)
				}
			}
			c.readings = kept
		}
	}
	each := func(cost func(d *walkDoc, r *walkReading, i int) int) {
		cheapest(func(d *walkDoc, r *walkReading) int {
			sum := 0
			for i := range r.nodes {
				sum += cost(d, r, i)
			}
			return sum
		})
	}
	switch rule.name {
	case "words":
		ranks = w.wordsRanks()
		cheapest(func(_ *walkDoc, r *walkReading) int { return r.dropped })
	case "typo":
		ranks = 1 + w.most(cs, narrowed, 0, func(n *walkNode, level int) int {
			if n.IsPhrase() || level == walkWordOnly && n.budget > 0 {
				return 0
			}
			return max(n.budget, 1) + n.joining()
		})
		cheapest(w.typos)
	case "proximity":
		ranks = 1 + w.most(cs, narrowed, 3, func(n *walkNode, _ int) int { return n.len - 1 })
		each(func(d *walkDoc, r *walkReading, i int) int {
			cost := r.nodes[i].len - 1
			if i > 0 && r.nodes[i-1].End+1 == r.nodes[i].Start {
				cost += w.apart(d, r, i-1, i)
			}
			return cost
		})
	case "attributeRank":
		ranks = 1 + terms*w.set.maxWeight()
		each(func(d *walkDoc, r *walkReading, i int) int {
			least := w.set.maxWeight()
			w.eachSpot(d, r, i, func(s walkSpot) {
				if w.searched(s) {
					least = min(least, w.set.weight(s.field))
				}
			})
			return r.nodes[i].len * least
		})
	case "wordPosition":
		ranks = 1 + 10*terms
		each(func(d *walkDoc, r *walkReading, i int) int {
			n := r.nodes[i]
			least := 10 * n.len
			w.eachSpot(d, r, i, func(s walkSpot) {
				cost := 0
				for more := range n.len {
					cost += walkPositionCost(walkBucket(s.position), int(n.Start), more)
				}
				least = min(least, cost)
			})
			return least
		})
	case "exactAttribute":
		ranks = 3
		for i, c := range cs {
			costs[i] = w.exactAttribute(c)
		}
	case "exactness":
		ranks = 1 + terms
		each(func(d *walkDoc, r *walkReading, i int) int {
			if w.isExact(d, r, i) {
				return 0
			}
			return r.nodes[i].len
		})
		for _, c := range cs {
			for k := range c.readings {
				r := &c.readings[k]
				r.levels = slices.Clone(r.levels)
				for i, n := range r.nodes {
					if !n.IsPhrase() && w.isExact(c.walkDoc, r, i) {
						r.levels[i] = walkWordOnly
					}
				}
			}
		}
	case "score":
		for i, c := range cs {
			costs[i] = rule.score.Levels - 1 - rule.score.level(w.walkModel, c.walkDoc)
		}
	default:
		for i, c := range cs {
			for _, other := range cs {
				if rule.sort.compare(other.walkDoc, c.walkDoc) < 0 {
					costs[i]++
				}
			}
		}
	}
	return costs, ranks
}

func (w *walkQuery) wordsRanks() int {
	removable, phraseWords := 0, 0
	for i, t := range w.Terms.Terms {
		if w.ranks[i] != query.Mandatory {
			removable++
		}
		if t.IsPhrase() {
			phraseWords += t.Words()
		}
	}
	return 1 + max(0, phraseWords-1) + removable
}

// joining is the number of typos that a node costs because it joins several words.
func (n *walkNode) joining() int {
	if n.len == 1 {
		return 0
	}
	return n.len
}

func (w *walkQuery) typos(d *walkDoc, r *walkReading) int {
	sum := 0
	r.levels = slices.Clone(r.levels)
	for i, n := range r.nodes {
		sum += n.joining()
		if r.levels[i] != walkWordOnly {
			r.levels[i] = w.level(d, n)
			sum += r.levels[i]
		}
	}
	return sum
}

func (w *walkQuery) isExact(d *walkDoc, r *walkReading, i int) bool {
	n := r.nodes[i]
	return n.len == 1 && (n.IsPhrase() || r.levels[i] <= 0) && w.isTyped(d, n)
}

// most is the largest sum over readings: the first one of each document or, before a rule judged them, all readings of the query.
func (w *walkQuery) most(cs []*walkCandidate, narrowed bool, pair int, of func(n *walkNode, level int) int) int {
	best := 0
	sum := func(nodes []*walkNode, level func(i int) int) {
		total := 0
		for i, n := range nodes {
			total += of(n, level(i))
			if i > 0 && nodes[i-1].End+1 == n.Start {
				total += pair
			}
		}
		best = max(best, total)
	}
	if narrowed {
		for _, c := range cs {
			first := slices.MinFunc(c.readings, func(a, b walkReading) int { return walkBefore(a.nodes, b.nodes) })
			sum(first.nodes, func(i int) int { return first.levels[i] })
		}
		return best
	}
	var walk func(term int, nodes []*walkNode)
	walk = func(term int, nodes []*walkNode) {
		if term == len(w.Terms.Terms) {
			sum(nodes, func(int) int { return walkAnyLevel })
		}
		for _, n := range w.nodes {
			if n.term == term {
				walk(term+n.len, append(nodes, n))
			}
		}
	}
	walk(0, nil)
	return best
}

// walkBefore orders readings by their first difference: the earlier term, then the shorter node.
func walkBefore(a, b []*walkNode) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Or(cmp.Compare(a[i].term, b[i].term), cmp.Compare(a[i].len, b[i].len)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(b), len(a))
}
