package search

import (
	"math"
	"math/bits"
	"slices"

	"svc/internal/text"
	"svc/segment"
)

// cropWindow returns the part of a text that a crop to length words (at least one) shows: around a run of matches, or from the
// start if there is none. It never splits a token. Of the tokens base and those after it are given, and those of length words on both
// sides of the run.
func cropWindow(tokens []text.Token, base int, run []match, length int) (start, end int) {
	if len(tokens) == 0 {
		return 0, 0
	}
	before, after := -1, 0 // the next tokens to take on both sides
	remaining := length
	if len(run) > 0 {
		first, last := run[0], run[len(run)-1]
		words := last.lastWord - first.firstWord + 1
		before, after = first.firstToken-base-1, last.lastToken-base+1
		if words > length {
			// A phrase that is longer than the window: its first words.
			after = first.firstToken - base
			for n := 0; n < length; after++ {
				if isWord(&tokens[after]) {
					n++
				}
			}
			words = length
		}
		remaining -= words
	}
	separator := func(i int) bool { return !isWord(&tokens[i]) }
	for remaining > 0 {
		hasBefore, hasAfter := before >= 0, after < len(tokens)
		switch {
		case !hasBefore && !hasAfter:
			remaining = 0
		case !hasAfter:
			if !separator(before) {
				remaining--
			}
			before--
		case !hasBefore:
			if !separator(after) {
				remaining--
			}
			after++
		case separator(before) && separator(after):
			switch {
			case tokens[before].Kind == tokens[after].Kind:
				before--
				if remaining > 1 {
					after++
				}
			case tokens[before].Kind == text.Soft:
				before--
			default:
				after++
			}
		case separator(after):
			before--
			remaining--
		case separator(before):
			after++
			remaining--
		default:
			before--
			if remaining--; remaining > 0 {
				after++
				remaining--
			}
		}
	}
	return tokens[before+1].Start, tokens[after-1].End
}

// crop looks for the run of matches that says most in length words: with the most words of the query, then the closest together,
// then the most in the order of the query; the first of equals. It stops where no other one can say more.
type crop struct {
	length  int
	perfect intervalScore
	needed  needed
	matches []match // those that may be shown still, or are within length words of a match to come
	open    int     // of them, the first that is
	found   bool
	score   intervalScore
	run     []match // the best so far
	settled bool    // start and end are that one's, or without one those of a text without matches
	start   int
	end     int
	shown   []match // those between start and end

	concord concord
	near    []match // of all matches, those that may be shown with the run
	tail    segment.Tail
	offset  int // of the text that was read
}

// find works out start, end and shown of a text, which has a rest where that is not nil. It reads no more of that than it must.
func (c *crop) find(r *reading, s []byte, rest continuation, l text.Locales) {
	c.matches, c.open, c.found, c.settled, c.run, c.shown = c.matches[:0], 0, false, false, c.run[:0], c.shown[:0]
	c.needed.chosen = false
	r.begin(s, rest, l)
	for !r.find.empty() {
		window := c.matches[c.open:]
		limit := math.MaxInt
		if n := len(window); 0 < n && n <= 1-c.perfect.closeness && !c.overlong() && scoreInterval(window) == c.perfect {
			limit = window[0].firstWord + c.length
		}
		m, ok := r.next(limit)
		switch {
		case ok:
			c.add(m)
		case r.at >= limit || r.due() && r.atEnd():
			c.finish()
			c.settle(r)
			return
		default:
			c.rest(r)
		}
		if c.found && c.score == c.perfect {
			break
		}
	}
	c.settle(r)
}

// add adds the next match to the run of those that are within length words.
func (c *crop) add(m match) {
	c.needed.met(m)
	window := c.matches[c.open:]
	c.matches = append(c.matches, m)
	if len(window) == 0 || m.lastWord-window[0].firstWord < c.length {
		return
	}
	c.consider(window)
	for c.open < len(c.matches)-1 && m.lastWord-c.matches[c.open].firstWord >= c.length {
		c.open++
	}
}

// overlong reports whether the matches at hand are one phrase that is longer than length.
func (c *crop) overlong() bool {
	window := c.matches[c.open:]
	return len(window) == 1 && window[0].lastWord-window[0].firstWord >= c.length
}

// finish considers the last matches of a text. A phrase that is longer than the crop counts where there is nothing else.
func (c *crop) finish() {
	if window := c.matches[c.open:]; len(window) > 0 && !(c.found && c.overlong()) {
		c.consider(window)
	}
}

func (c *crop) consider(run []match) {
	if s := scoreInterval(run); !c.found || c.score.less(s) {
		c.found, c.settled, c.score, c.run = true, false, s, append(c.run[:0], run...)
	}
}

// rest is between two parts of a text, when all of its words so far were looked at: what is behind is forgotten as far as it can be,
// and words that match nothing are passed over.
func (c *crop) rest(r *reading) {
	window := c.matches[c.open:]
	near := len(window) // of them, the last that a match to come may be in one run with
	if near > 0 && !c.overlong() && r.at-window[0].firstWord >= c.length {
		c.consider(window)
		for near > 0 && r.at-window[len(window)-near].firstWord >= c.length {
			near--
		}
	}
	last := 0 // word that has to be looked at before the crop is known
	if c.found {
		last = c.run[0].firstWord
	}
	if !c.settled && r.at-last >= c.length && (c.found || len(window) == 0) {
		c.settle(r)
	}
	needed := r.at
	if !c.settled {
		needed = last
	}
	if near > 0 {
		needed = min(needed, window[len(window)-near].firstWord)
	}
	needed -= c.length
	r.forget(needed)
	behind := 0
	for behind < c.open && c.matches[behind].lastWord < needed {
		behind++
	}
	if behind > len(c.matches)/2 {
		c.matches = slices.Delete(c.matches, 0, behind)
		c.open -= behind
	}
	if c.settled {
		c.pass(r, c.matches[len(c.matches)-near:])
	}
	at := r.cursor.Offset()
	r.more()
	c.needed.read += r.cursor.Offset() - at
}

// pass passes over words that match nothing, if no match to come may be in one run with those that are near. Once there is a run, it
// passes over matches, too, but those that every better run has one of.
func (c *crop) pass(r *reading, near []match) {
	at := r.cursor.Offset()
	if !c.found {
		if len(near) == 0 && r.pass(c.length) {
			c.needed.read += r.cursor.Offset() - at
		}
		return
	}
	c.needed.beyond(r.find, c.score)
	if len(near) > 0 && c.needed.in(near) {
		return
	}
	r.starts, r.wanted = c.needed.begins()
	moved := r.pass(c.length)
	r.starts, r.wanted = r.find.starts, r.find.wanted
	if !moved {
		return
	}
	// The next match that is needed is length words behind or more: of runs that it is in all matches are known. Others may begin before,
	// but say no more than the best one.
	c.open = len(c.matches)
	c.needed.passed(r.cursor.Offset() - at)
}

// settle works out what is shown of the best run, or of a text without matches. All matches there are known.
func (c *crop) settle(r *reading) {
	if c.settled {
		return
	}
	c.settled = true
	last := 0
	if c.found {
		last = c.run[len(c.run)-1].lastWord
	}
	r.word(last + c.length) // is cut, if it is there
	c.start, c.end = cropWindow(r.tokens, r.base, c.run, c.length)
	c.shown = c.shown[:0]
	for _, m := range c.matches {
		if m.end > c.start && m.start < c.end {
			c.shown = append(c.shown, m)
		}
	}
}

// intervalScore is compared from the first field to the last.
type intervalScore struct{ terms, closeness, ordered int }

func (a intervalScore) less(b intervalScore) bool {
	if a.terms != b.terms {
		return a.terms < b.terms
	}
	if a.closeness != b.closeness {
		return a.closeness < b.closeness
	}
	return a.ordered < b.ordered
}

func scoreInterval(matches []match) intervalScore {
	const farthest = 7
	var s intervalScore
	var terms termSet
	for i, m := range matches {
		for t := m.firstTerm; t <= m.lastTerm; t++ {
			if terms.add(t) {
				s.terms++
			}
		}
		s.closeness -= m.lastWord - m.firstWord
		s.ordered += m.lastWord - m.firstWord
		if i == 0 {
			continue
		}
		previous := matches[i-1]
		s.closeness -= min(farthest, m.firstWord-previous.lastWord)
		if m.firstTerm > previous.firstTerm {
			s.ordered++
		}
	}
	return s
}

// perfectScore is what no run of matches of the phrases and words exceeds: all terms in the fewest matches, one beside the other. Every
// gap takes from closeness at least what it adds to the order.
func perfectScore(h *highlighter) intervalScore { return perfectOf(h.parts()) }

// part is what a phrase or a list of words covers of the query, and what a match of it takes from closeness.
type part struct{ first, last, cost int }

// parts are those of the lists of words, then those of phrases.
func (h *highlighter) parts() (lists, phrases []part) {
	for _, w := range h.words {
		lists = append(lists, part{w.First, w.Last, 0})
	}
	for _, list := range h.phrases {
		for _, p := range list {
			n := 0
			for _, w := range p.words {
				if w != "" {
					n++
				}
			}
			phrases = append(phrases, part{p.first, p.last, n - 1})
		}
	}
	return lists, phrases
}

func perfectOf(lists, phrases []part) intervalScore {
	var terms termSet
	end := 0
	for _, parts := range [...][]part{lists, phrases} {
		for _, p := range parts {
			for t := p.first; t <= p.last; t++ {
				terms.add(t)
			}
			end = max(end, p.last+1)
		}
	}
	// least[t] is the least that matches of all terms before t cost, with a gap behind each.
	var least [64]int
	end = min(end, len(least)-1) // the last of the set stands for several: it costs nothing here
	for t := 1; t <= end; t++ {
		if terms>>(t-1)&1 == 0 {
			least[t] = least[t-1]
			continue
		}
		least[t] = math.MaxInt
		for _, parts := range [...][]part{lists, phrases} {
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

// termSet is a set of words of a query, of which the first 64 are told apart.
type termSet uint64

func (s *termSet) add(t int) bool {
	bit := termSet(1) << min(max(t, 0), 63)
	added := *s&bit == 0
	*s |= bit
	return added
}
