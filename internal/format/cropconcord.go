package format

import (
	"cmp"
	"slices"
	"sort"

	"svc/internal/text"
	"svc/segment"
)

// locate is find for a text with a concordance: it reads only the text around the run. The text is s or, if it is not read yet, a
// tail. It returns false without having read anything if the concordance is not useful.
func (c *crop) locate(r *textScan, concordance *segment.Concordance, s []byte, t *segment.Tail, fingerprint uint64, l text.Locales) (bool, error) {
	if c.concord.prepare(r.find); !c.concord.able {
		return false, nil
	}
	c.concord.begin(concordance, fingerprint)
	if err := c.choose(r.find); err != nil || c.concord.stale {
		return false, err
	}
	return c.read(r, s, t, l)
}

// choose works out the run, and what matches are near to it.
func (c *crop) choose(h *highlighter) error {
	c.matches, c.open, c.sums, c.found, c.settled, c.near, c.looked = c.matches[:0], 0, runSums{}, false, true, c.near[:0], 0
	if h.empty() {
		_, err := c.concord.more() // whether it is of use
		return err
	}
	for full := 1 << 10; ; {
		m, ok, err := c.concord.match()
		if err != nil {
			return err
		}
		if !ok {
			c.finish()
		} else if err := cmp.Or(c.wanted(clockMatches), c.add(m)); err != nil {
			return err
		}
		if !ok || c.found && c.score == c.perfect {
			return c.approach()
		}
		if len(c.matches) < full {
			continue
		}
		if err := c.approach(); err != nil {
			return err
		}
		behind := sort.Search(c.open, func(i int) bool { return c.matches[i].lastWord > c.matches[c.open].firstWord-c.length })
		c.matches = slices.Delete(c.matches, 0, behind)
		c.open -= behind
		c.looked -= behind
		full = max(full, 2*len(c.matches))
	}
}

// approach records the matches that may be shown with the run, of all up to now: first those found before it became the best one.
func (c *crop) approach() error {
	if !c.settled { // another run is the best one
		c.near, c.looked, c.settled = c.near[:0], 0, true
	}
	if !c.found {
		return nil
	}
	first := c.run[0].firstWord
	for _, m := range c.matches[c.looked:] {
		if first-c.length >= m.lastWord || m.firstWord >= first+c.length {
			continue
		}
		if err := c.hold(c.near); err != nil {
			return err
		}
		c.near = append(c.near, m)
	}
	c.looked = len(c.matches)
	return nil
}

// read reads the text around the run, and finds the matches there again.
func (c *crop) read(r *textScan, s []byte, t *segment.Tail, l text.Locales) (bool, error) {
	from, last, limit := 0, 0, c.length // words
	if c.found {
		first := c.run[0].firstWord
		from, last, limit = max(0, min(first-c.length, c.near[0].firstWord)), c.run[1].lastWord, first+c.length
	}
	place, err := c.concord.before(from)
	if err != nil {
		return false, err
	}
	if t == nil {
		if place.Text > len(s) {
			return false, nil // it is of another text
		}
		r.begin(s[place.Text:], nil, l)
	} else {
		rest, err := t.From(place)
		if err != nil {
			return false, err
		}
		c.tail = *rest
		r.begin(s[:0], &c.tail, l)
	}
	c.offset = place.Text
	if place.Text > 0 {
		r.cursor = text.CursorAt(text.Resume(place.Resume))
	}
	r.first, r.at = place.Word, place.Word
	if c.found {
		switch first := &c.near[0]; {
		case first.inner:
			r.at = first.firstWord + 1 // no match begins with the word before
		case first.touches:
			r.at, r.takenWord = first.firstWord, first.firstWord-1
		default:
			r.at = first.firstWord
		}
	}
	c.matches = c.matches[:0]
	for !r.find.empty() {
		m, ok := r.next(limit)
		if ok {
			if err := c.hold(c.matches); err != nil {
				return false, err
			}
			c.matches = append(c.matches, m)
		} else if r.at >= limit || !r.more() {
			break
		} else if err := c.wanted(clockParts); err != nil {
			return false, err
		}
	}
	r.word(last + c.length) // cuts the text into words up to there
	if r.err != nil {
		return false, r.err
	}
	same := func(a, b match) bool {
		return a.firstWord == b.firstWord && a.lastWord == b.lastWord && a.firstTerm == b.firstTerm && a.lastTerm == b.lastTerm && a.list == b.list
	}
	found := c.matches
	if n := len(found) - 1; n >= 0 && found[n].firstWord >= limit {
		found = found[:n] // what is left of an inner word, behind a part of the word before. The concordance has no parts.
	}
	if !slices.EqualFunc(found, c.near, same) {
		return false, nil // it is of another text
	}
	run := c.matches[:0]
	if c.found {
		begins := slices.IndexFunc(c.matches, func(m match) bool { return m.firstWord == c.run[0].firstWord })
		if begins < 0 || begins+c.count > len(c.matches) {
			return false, nil
		}
		run = c.matches[begins : begins+c.count]
	}
	c.start, c.end = cropWindow(r.tokens, r.base, run, c.length)
	c.shown = c.shown[:0]
	for _, m := range c.matches {
		if m.end > c.start && m.start < c.end {
			c.shown = append(c.shown, m)
		}
	}
	return true, nil
}

// before returns the last place, not after a word, from which a text can be read.
func (c *concord) before(word int) (segment.Place, error) {
	part := c.next
	for {
		if part--; part < 0 {
			return segment.Place{}, nil
		}
		if err := c.text.Open(part, &c.part); err != nil {
			return segment.Place{}, err
		}
		if c.part.First <= word || part == 0 {
			return c.part.Before(word), nil
		}
	}
}
