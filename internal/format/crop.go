package format

import (
	"math"
	"slices"
	"sort"

	"svc/internal/budget"
	"svc/internal/text"
	"svc/internal/turns"
	"svc/segment"
)

// cropWindow returns the part of a text that a crop to length words (at least one) shows: around a run of matches, or from the start
// if there is none. It never splits a token. tokens has the tokens from base on; they must include length words on both sides of the
// run.
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

// crop finds the best run of matches within length words: with the most words of the query, then the closest together, then the most
// in the order of the query; among equals the first. It stops when no other run can be better.
type crop struct {
	length  int
	perfect intervalScore
	needed  needed
	matches []match // those that may still be shown, or are within length words of a later match
	open    int     // of them, the first that is
	sums    runSums // of those that are open
	found   bool
	score   intervalScore
	run     [2]match // the first and the last match of the best run so far
	count   int      // of its matches
	settled bool     // start and end are those of the run, or of a text without matches
	start   int
	end     int
	shown   []match // those between start and end

	concord concord
	near    []match // of all matches, those that may be shown with the run
	looked  int     // number of matches already checked for it
	tail    segment.Tail
	offset  int // of the text that was read

	clock
	room budget.Room // of matches and near
}

// clock looks now and then whether an answer is wanted still.
type clock struct {
	turn turns.Turn // of the search; nil: it has all the time
	tick int        // calls of wanted since the last yield
}

// clockMatches and clockParts are how many matches, and parts of a text, are processed between checks whether the answer is still
// wanted.
const (
	clockMatches = 1 << 12
	clockParts   = 1 << 6
)

// wanted returns an error if the answer is no longer wanted, and yields to other work, both only now and then.
func (c *clock) wanted(calls int) error {
	if c.tick++; c.tick < calls || c.turn == nil {
		return nil
	}
	c.tick = 0
	return c.turn.Yield()
}

// matchBytes is how many bytes a match takes.
const matchBytes = 80

// hold has room for one more in matches or near.
func (c *crop) hold(list []match) error {
	if n := len(list); n < cap(list) || n < 1<<10 {
		return nil
	}
	return c.room.Hold((cap(c.matches) + cap(c.near)) * matchBytes) // growing one of them now takes up to twice that
}

// find computes start, end and shown of a text. rest, if not nil, is the rest of the text, of which it reads no more than necessary.
func (c *crop) find(r *textScan, s []byte, rest continuation, l text.Locales) error {
	c.matches, c.open, c.sums, c.found, c.settled, c.shown = c.matches[:0], 0, runSums{}, false, false, c.shown[:0]
	c.needed.chosen = false
	r.begin(s, rest, l)
	for !r.find.empty() {
		window := c.matches[c.open:]
		limit := math.MaxInt
		if n := len(window); 0 < n && n <= 1-c.perfect.closeness && !c.overlong() && c.sums.score == c.perfect {
			limit = window[0].firstWord + c.length
		}
		m, ok := r.next(limit)
		switch {
		case ok:
			if err := c.add(m); err != nil {
				return err
			}
		case r.at >= limit || r.due() && r.atEnd():
			c.finish()
			c.settle(r)
			return r.err
		default:
			if err := c.wanted(clockParts); err != nil {
				return err
			}
			c.rest(r)
		}
		if c.found && c.score == c.perfect {
			break
		}
	}
	c.settle(r)
	return r.err
}

// add adds the next match to the run of matches within length words.
func (c *crop) add(m match) error {
	c.needed.met(m)
	window := c.matches[c.open:]
	if len(window) > 0 && m.lastWord-window[0].firstWord >= c.length {
		c.consider(window)
	}
	if err := c.hold(c.matches); err != nil {
		return err
	}
	c.matches = append(c.matches, m)
	c.sums.push(c.matches[c.open:])
	for c.open < len(c.matches)-1 && m.lastWord-c.matches[c.open].firstWord >= c.length {
		c.sums.shift(c.matches[c.open:])
		c.open++
	}
	return nil
}

// overlong reports whether the current matches are one phrase that is longer than length.
func (c *crop) overlong() bool {
	window := c.matches[c.open:]
	return len(window) == 1 && window[0].lastWord-window[0].firstWord >= c.length
}

// finish considers the last matches of a text. A phrase longer than the crop counts only if there is nothing else.
func (c *crop) finish() {
	if window := c.matches[c.open:]; len(window) > 0 && !(c.found && c.overlong()) {
		c.consider(window)
	}
}

// consider compares the current matches with the best run so far.
func (c *crop) consider(window []match) {
	if !c.found || c.score.less(c.sums.score) {
		c.found, c.settled, c.score, c.run, c.count = true, false, c.sums.score, [2]match{window[0], window[len(window)-1]}, len(window)
	}
}

// bestRun returns the first match of the run and the last, or nothing if there is none.
func (c *crop) bestRun() []match {
	if !c.found {
		return nil
	}
	return c.run[:]
}

// rest is called between two parts of a text, when all of its words so far were processed. It forgets as much of the earlier text as
// possible, and skips words that match nothing.
func (c *crop) rest(r *textScan) {
	window := c.matches[c.open:]
	near := len(window) // of these, the last that can be in one run with a later match
	if near > 0 && !c.overlong() && r.at-window[0].firstWord >= c.length {
		c.consider(window)
		near -= sort.Search(near, func(i int) bool { return r.at-window[i].firstWord < c.length })
	}
	last := 0 // word that has to be processed before the crop is known
	if c.found {
		last = c.run[0].firstWord
	}
	// Settle a run later than possible, so that a series of better runs does not cost a crop for each.
	if !c.settled && (c.found && r.at-last >= 2*c.length || !c.found && r.at >= c.length && len(window) == 0) {
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
	behind := sort.Search(c.open, func(i int) bool { return c.matches[i].lastWord >= needed })
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

// pass skips words that match nothing, if no later match can be in one run with the near ones. Once there is a run, it also skips
// matches other than those of which every better run has one.
func (c *crop) pass(r *textScan, near []match) {
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
	// The next needed match is at least length words further on: all matches of its runs are known. Other runs may begin earlier, but
	// are not better than the best one.
	c.open, c.sums = len(c.matches), runSums{}
	c.needed.passed(r.cursor.Offset() - at)
}

// settle computes what is shown of the best run, or of a text without matches. All matches there are known.
func (c *crop) settle(r *textScan) {
	if c.settled {
		return
	}
	c.settled = true
	last := 0
	if c.found {
		last = c.run[1].lastWord
	}
	r.word(last + c.length) // cuts the text into words up to there
	c.start, c.end = cropWindow(r.tokens, r.base, c.bestRun(), c.length)
	c.shown = c.shown[:0]
	for _, m := range c.matches {
		if m.end > c.start && m.start < c.end {
			c.shown = append(c.shown, m)
		}
	}
}
