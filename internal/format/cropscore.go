package format

import (
	"math"
	"math/bits"
)

// intervalScore is compared from the first field to the last.
type intervalScore struct{ terms, closeness, ordered int }

// less compares the number of terms, then how close they are, then how many are in the order of the query.
func (a intervalScore) less(b intervalScore) bool {
	if a.terms != b.terms {
		return a.terms < b.terms
	}
	if a.closeness != b.closeness {
		return a.closeness < b.closeness
	}
	return a.ordered < b.ordered
}

// farthest is the largest closeness that a gap between two matches costs.
const farthest = 7

// runSums is the score of a run of matches to which matches are added at the end and removed at the start.
type runSums struct {
	score intervalScore
	count [64]int // matches by their words of the query, as distinguished by termSet
}

// push has the last match of a run, which is new.
func (s *runSums) push(run []match) {
	n := len(run) - 1
	s.match(&run[n], 1)
	if n > 0 {
		s.gap(&run[n-1], &run[n], 1)
	}
}

// shift loses the first match of a run.
func (s *runSums) shift(run []match) {
	s.match(&run[0], -1)
	if len(run) > 1 {
		s.gap(&run[0], &run[1], -1)
	}
}

// further returns how many words a match has after its first.
func (m *match) further() int {
	if m.inner {
		return m.lastWord - m.firstWord - 1
	}
	return m.lastWord - m.firstWord
}

// match adds a match, times being 1, or removes it, times being −1.
func (s *runSums) match(m *match, times int) {
	words := m.further()
	s.score.closeness -= times * words
	s.score.ordered += times * words
	if m.lastTerm < m.firstTerm {
		return
	}
	for t := termPlace(m.firstTerm); t <= termPlace(m.lastTerm); t++ {
		before := s.count[t]
		s.count[t] += times
		if before == 0 || s.count[t] == 0 {
			s.score.terms += times
		}
	}
}

// gap adds or removes the gap between two consecutive matches.
func (s *runSums) gap(a, b *match, times int) {
	s.score.closeness -= times * min(farthest, b.firstWord-a.lastWord)
	if b.firstTerm > a.firstTerm {
		s.score.ordered += times
	}
}

// perfectScore returns an upper bound of the score of a run of matches of the phrases and words: all terms in the fewest matches,
// side by side. Every gap costs at least as much closeness as it adds order.
func perfectScore(h *highlighter) intervalScore { return perfectOf(h.parts()) }

// querySpan has the terms of the query that a phrase or a list of words covers, and the closeness that a match costs.
type querySpan struct{ first, last, cost int }

// parts are the spans of the lists of words, then those of phrases.
func (h *highlighter) parts() (lists, phrases []querySpan) {
	for _, w := range h.words {
		lists = append(lists, querySpan{w.First, w.Last, 0})
	}
	for _, list := range h.phrases {
		for _, p := range list {
			n := 0
			for _, w := range p.words {
				if w != "" {
					n++
				}
			}
			phrases = append(phrases, querySpan{p.first, p.last, n - 1})
		}
	}
	return lists, phrases
}

// perfectOf returns the best possible score of a run of matches. The search for the best run ends when it finds one with this score.
func perfectOf(lists, phrases []querySpan) intervalScore {
	var terms termSet
	end := 0
	for _, parts := range [...][]querySpan{lists, phrases} {
		for _, p := range parts {
			for t := p.first; t <= p.last; t++ {
				terms.add(t)
			}
			end = max(end, p.last+1)
		}
	}
	// least[t] is the least cost of matches of all terms before t, with a gap after each.
	var least [64]int
	end = min(end, len(least)-1) // the last one stands for several: it costs nothing here
	for t := 1; t <= end; t++ {
		if terms>>(t-1)&1 == 0 {
			least[t] = least[t-1]
			continue
		}
		least[t] = math.MaxInt
		for _, parts := range [...][]querySpan{lists, phrases} {
			for _, p := range parts {
				if p.first < t && t <= p.last+1 {
					least[t] = min(least[t], least[max(p.first, 0)]+p.cost+1)
				}
			}
		}
	}
	cost := max(least[end]-1, 0)
	return intervalScore{bits.OnesCount64(uint64(terms)), -cost, cost}
}

// termSet is a set of words of a query. Only the first 64 are distinguished.
type termSet uint64

func (s *termSet) add(t int) bool {
	bit := termSet(1) << termPlace(t)
	added := *s&bit == 0
	*s |= bit
	return added
}

func termPlace(t int) int { return min(max(t, 0), 63) }
