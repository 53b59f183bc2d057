package rank

import (
	"slices"
)

// words puts documents first that have more words of the query.
type words struct{ relevance }

func (words) name() string { return "words" }

func (words) traits() traits { return traits{says: ByRelevance, sets: true} }

func (words) split(s *search, b *bucket, _ int) split {
	return split{termSets, func(yield func(*bucket, part) bool) { splitWords(s, b, yield) }}
}

// costs: each document has those interpretations only that miss the fewest terms.
func (words) costs(s *search, l *list, _ int, costs []uint32) outcome {
	for i := range costs {
		costs[i] = uint32(len(s.graph.Terms) - s.list.paths[s.list.sets[l.entries[i].paths][0]].terms)
	}
	return outcome{ranks: s.wordsMax, narrows: true, misses: true}
}

func (words) details(d *detailWriter, parts []part) int {
	p := &parts[0]
	d.open("words")
	d.integer("matchingWords", p.rank)
	d.integer("maxMatchingWords", p.ranks)
	d.score(p)
	return 1
}

// splitWords yields the documents by missing terms, fewest first.
func splitWords(s *search, b *bucket, yield func(*bucket, part) bool) {
	byMissing(&s.view, b, func(sub *bucket, cost int) bool {
		if s.unknown > 0 && (cost > 0 || !tells(s, sub)) {
			s.untold = true
			return false
		}
		sub.narrowed = true
		return yield(sub, part{cost: uint64(cost), rank: s.wordsMax - uint64(cost), ranks: s.wordsMax})
	})
}

// byMissing yields the documents of a bucket by missing terms, with the interpretations that miss as many, until
// yield returns false.
func byMissing(s *view, b *bucket, yield func(sub *bucket, cost int) bool) {
	if b.paths != nil { // a rule before this one looked at the interpretations
		for cost := 0; cost < len(s.graph.Terms); cost++ {
			sub := *b
			sub.rows, sub.paths, sub.byCost, sub.levels = make(rows, len(b.rows)), nil, nil, nil
			sub.terms = len(s.graph.Terms) - cost
			for _, p := range b.paths {
				if p.terms == sub.terms {
					sub.paths = append(sub.paths, p)
					sub.rows = sub.rows.or(p.rows)
				}
			}
			if sub.n = sub.rows.count(); sub.n > 0 && !yield(&sub, cost) {
				return
			}
		}
		return
	}
	var seen rows
	sets := costSets(s, b)
	for cost, r := range sets {
		if r == nil {
			continue
		}
		all := r
		if seen != nil {
			r = r.andNot(seen)
			if !s.nested {
				all = seen.or(r)
			}
		}
		seen = all
		if b.raw && !slices.ContainsFunc(sets[cost+1:], func(r rows) bool { return r != nil }) {
			r = s.live(r)
		}
		if n := r.count(); n > 0 {
			sub := &bucket{rows: r, n: n, paths: pathsOf(s, r, cost), terms: len(s.graph.Terms) - cost}
			if !yield(sub, cost) {
				return
			}
		}
	}
}
