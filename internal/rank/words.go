package rank

import (
	"slices"

	"svc/internal/query"
)

// interpretation has the nodes by which a document is reached, in order, without dropped terms.
type interpretation struct {
	nodes []int // indexes of graph.Nodes
	terms int   // terms covered
	rows  rows  // documents of the bucket that it reaches
}

// partialMatch is a set of documents that match the first terms, some of them dropped.
type partialMatch struct {
	dropped int // highest rank among the dropped terms; 0 for none
	cost    int // number of dropped terms
	rows    rows
	raw     bool // deleted rows are among them
}

// reached returns the documents by the number of terms they miss. A document is in every set that it can reach, not only in the
// first.
//
// When a term is dropped, every later one that may be dropped before it is dropped, too. An n-gram is dropped only by dropping its
// terms, which is equivalent.
//
// all says that base has all live rows of its segments. raw is true if the documents that miss the most terms, of at least two,
// include deleted rows: mostly the documents that miss fewer terms fill the page, and these are never needed.
func reached(s *findings, base rows, all bool) (out []rows, raw bool) {
	n := len(s.graph.Terms)
	at := make([][]partialMatch, n+1)
	at[0] = []partialMatch{{rows: base}}
	for i := range n {
		for _, from := range at[i] {
			for v := s.byTerm[i]; v < s.byTerm[i+1]; v++ {
				if s.matches[v] && s.rankOf(v) >= from.dropped {
					end := i + s.graph.Nodes[v].Len
					next := partialMatch{dropped: from.dropped, cost: from.cost}
					switch {
					case all && i == 0:
						next.rows, next.raw = s.docs[v].inSegmentsOf(base), true
					case from.raw:
						next.rows = liveOfBoth(s, from.rows, s.docs[v])
					default:
						next.rows = from.rows.and(s.docs[v])
					}
					at[end] = addMatch(at[end], next)
				}
			}
			if s.ranks[i] != query.Mandatory {
				from.dropped, from.cost = max(from.dropped, s.ranks[i]), from.cost+1
				at[i+1] = addMatch(at[i+1], from)
			}
		}
	}
	out = make([]rows, n+1)
	for _, f := range at[n] {
		switch {
		case f.raw && f.cost > 0 && s.nested: // only the first term is present
			raw = true
		case f.raw:
			f.rows = s.live(f.rows)
		}
		if out[f.cost] == nil {
			out[f.cost] = f.rows
		} else {
			out[f.cost] = out[f.cost].or(f.rows)
		}
	}
	return out, raw
}

// addMatch adds a match, or its rows to one with the same costs.
func addMatch(matches []partialMatch, m partialMatch) []partialMatch {
	if m.rows.isEmpty() {
		return matches
	}
	for i := range matches {
		if o := &matches[i]; o.dropped == m.dropped && o.cost == m.cost {
			o.rows, o.raw = o.rows.or(m.rows), o.raw || m.raw
			return matches
		}
	}
	return append(matches, m)
}

// unite returns the bucket of documents found by the number of terms they miss.
func unite(s *findings, byCost []rows) *bucket {
	b := &bucket{byCost: byCost}
	if !s.nested {
		b.rows = union(byCost, len(s.ix.Segments))
		return b
	}
	b.rows = make(rows, len(s.ix.Segments))
	for _, r := range byCost {
		if r != nil {
			b.rows = r
		}
	}
	return b
}

// costSets returns the documents of a bucket by missing terms. For the universe it returns what is cached with it.
func costSets(s *findings, b *bucket) []rows {
	if b.byCost != nil {
		return b.byCost
	}
	byCost, raw := reached(s, b.rows, s.isLive(b.rows))
	if raw {
		refine(s, byCost)
	}
	return byCost
}

// refine removes deleted rows from the documents that miss the most terms.
func refine(s *findings, byCost []rows) {
	for cost, r := range slices.Backward(byCost) {
		if r != nil {
			byCost[cost] = s.live(r)
			return
		}
	}
}

// interpret finds the interpretations of a bucket, for a first rule other than words: for each document those that miss the fewest
// terms. Rules judge it by the terms that it has.
func interpret(s *findings, b *bucket) {
	b.interpretations = []interpretation{}
	b.terms = len(s.graph.Terms)
	var found []interpretation
	next := byMissing(s, &bucket{rows: b.rows, byCost: b.byCost, less: b.less})
	for sub, _ := next(); sub != nil; sub, _ = next() {
		found = append(found, sub.interpretations...)
	}
	b.interpretations = found
}

// interpretationsOf returns the interpretations that drop cost terms and match at least one of the documents: single words before
// n-grams, in the order of terms.
func interpretationsOf(s *findings, within rows, cost int) []interpretation {
	f := interpretationFinder{s: s, cost: cost, alone: s.nested}
	f.walk(0, 0, 0, within)
	return f.found
}

type interpretationFinder struct {
	s     *findings
	cost  int
	alone bool // there is only one interpretation: its documents are known
	nodes []int
	found []interpretation
}

// walk continues an interpretation from a term: with each node that begins there, or by dropping the term if that is allowed.
func (f *interpretationFinder) walk(term, dropped, cost int, within rows) {
	s := f.s
	if term == len(s.graph.Terms) {
		if cost == f.cost {
			f.found = append(f.found, interpretation{nodes: append([]int(nil), f.nodes...), terms: term - cost, rows: within})
		}
		return
	}
	for v := s.byTerm[term]; v < s.byTerm[term+1]; v++ {
		if !s.matches[v] || s.rankOf(v) < dropped {
			continue
		}
		next := within
		if !f.alone {
			if next = within.and(s.docs[v]); next.isEmpty() {
				continue
			}
		}
		f.nodes = append(f.nodes, v)
		f.walk(term+s.graph.Nodes[v].Len, dropped, cost, next)
		f.nodes = f.nodes[:len(f.nodes)-1]
	}
	if s.ranks[term] != query.Mandatory && cost < f.cost {
		f.walk(term+1, max(dropped, s.ranks[term]), cost+1, within)
	}
}

// byMissing returns the documents of a bucket by missing terms, with the interpretations that miss as many.
func byMissing(s *findings, b *bucket) (next func() (sub *bucket, cost int)) {
	if b.interpretations != nil {
		return byPathMissing(s, b)
	}
	var seen rows
	sets := costSets(s, b)
	at := 0
	return func() (*bucket, int) {
		for at < len(sets) {
			cost, r := at, sets[at]
			if at++; r == nil {
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
			if b.raw && !slices.ContainsFunc(sets[at:], func(r rows) bool { return r != nil }) {
				r = s.live(r)
			}
			if b.less != nil {
				r = r.andNot(b.less)
			}
			if n := r.count(); n > 0 {
				return &bucket{rows: r, n: n, interpretations: interpretationsOf(s, r, cost), terms: len(s.graph.Terms) - cost}, cost
			}
		}
		return nil, 0
	}
}

// byPathMissing is byMissing if an earlier rule looked at the interpretations.
func byPathMissing(s *findings, b *bucket) (next func() (sub *bucket, cost int)) {
	at := 0
	return func() (*bucket, int) {
		for at < len(s.graph.Terms) {
			cost := at
			at++
			sub := *b
			sub.rows, sub.interpretations, sub.byCost, sub.less = make(rows, len(b.rows)), nil, nil, nil
			sub.terms = len(s.graph.Terms) - cost
			for _, p := range b.interpretations {
				if p.terms == sub.terms {
					sub.interpretations = append(sub.interpretations, p)
					sub.rows = sub.rows.or(p.rows)
				}
			}
			if sub.n = sub.rows.count(); sub.n > 0 {
				return &sub, cost
			}
		}
		return nil, 0
	}
}
