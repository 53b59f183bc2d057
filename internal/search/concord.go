package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"svc/internal/budget"
	"svc/internal/text"
	"svc/segment"
)

// concord finds the matches of a text from left to right like a textScan, but in its concordance, without the text. It finds the
// words of a match, but not their place in bytes.
type concord struct {
	find  *highlighter // that keys and classes are made of
	able  bool
	keys  []concordKey
	class []wordClass    // by number; number 0 is for words that the query does not have
	ids   map[string]int // the classes of words of phrases

	text  *segment.Concordance
	print uint64 // fingerprint of the analysis
	part  segment.ConcordancePart
	next  int // number of the part after that one
	open  []openPlaces
	stale bool        // the concordance is useless for this text
	room  budget.Room // of open

	// found and classes have the words from base up to known; part ends at end.
	base, known, end int
	found            []uint64 // a bit a word: it has a class
	classes          []uint16
	at               int // word to look at next
}

// concordKey is what forms are looked up by.
type concordKey struct {
	text   string
	prefix bool
	list   int    // of words that has it; -1 for a word of a phrase
	class  uint16 // of all forms found; 0: each has its own
}

// kind orders keys of the same text: what begins with it comes first.
func (k *concordKey) kind() int {
	if k.prefix {
		return 0
	}
	return 1
}

// wordClass is what the words of some forms match.
type wordClass struct {
	list    int // of words, -1 for none
	id      int // of a word of phrases: its class; -1 for others
	phrases []phraseIDs
}

// phraseIDs is a phrase by the numbers of its words.
type phraseIDs struct {
	words       []int
	first, last int
}

// openPlaces are the places of one form, from the next one on.
type openPlaces struct {
	segment.Places
	at    int // word of the text
	class uint16
}

// openPlacesBytes is about how many bytes one takes.
const openPlacesBytes = 96

// concordStretch is how many words are looked up at a time.
const concordStretch = 1 << 15

// prepare makes keys and classes for the words of a query.
func (c *concord) prepare(h *highlighter) {
	if c.find == h {
		return
	}
	c.find, c.keys, c.class = h, nil, []wordClass{{list: -1, id: -1}}
	for i := range h.words {
		c.class = append(c.class, wordClass{list: i, id: -1})
		for _, p := range h.words[i].Prefixes {
			c.keys = append(c.keys, concordKey{text: p, prefix: true, list: i})
		}
		for form := range h.words[i].Forms {
			c.keys = append(c.keys, concordKey{text: form, list: i})
		}
	}
	c.ids = map[string]int{}
	for _, list := range h.phrases {
		for _, p := range list {
			for _, word := range p.words {
				if _, ok := c.ids[word]; ok {
					continue
				}
				// A stop word is one of a phrase only.
				id := len(c.class)
				c.ids[word], c.ids[text.StopEntry(word)] = id, id+1
				c.class = append(c.class, wordClass{list: h.word(word).list, id: id}, wordClass{list: -1, id: id})
				c.keys = append(c.keys, concordKey{text: word, list: -1}, concordKey{text: text.StopEntry(word), list: -1})
			}
		}
	}
	for first, list := range h.phrases {
		class := &c.class[c.ids[first]]
		for _, p := range list {
			words := make([]int, len(p.words))
			for i, word := range p.words {
				words[i] = c.ids[word]
			}
			class.phrases = append(class.phrases, phraseIDs{words, p.first, p.last})
		}
		c.class[c.ids[first]+1].phrases = class.phrases
	}
	c.able = len(c.class) <= math.MaxUint16 && !slices.ContainsFunc(c.keys, func(k concordKey) bool {
		// It has neither long forms, nor articles, nor inner words.
		return len(k.text) > segment.LongestConcordForm || text.BeginsWithArticle(k.text, k.prefix) || text.IsOfInner(k.text, k.prefix)
	})
	if !c.able {
		return
	}
	slices.SortFunc(c.keys, func(a, b concordKey) int {
		return cmp.Or(strings.Compare(a.text, b.text), cmp.Compare(a.kind(), b.kind()), cmp.Compare(a.list, b.list))
	})
	// A prefix includes the keys that begin with it, so that no form is found twice. The first list with a form counts.
	kept := c.keys[:0]
	for _, k := range c.keys {
		if n := len(kept) - 1; n >= 0 && (kept[n].prefix && strings.HasPrefix(k.text, kept[n].text) || kept[n].text == k.text) {
			if kept[n].prefix && k.list < kept[n].list {
				kept[n].class = 0
			}
			continue
		}
		if k.prefix {
			k.class = uint16(1 + k.list)
		} else if k.class = uint16(c.ids[k.text]); k.class == 0 {
			k.class = uint16(1 + h.word(k.text).list)
		}
		kept = append(kept, k)
	}
	c.keys = kept
}

// begin goes to the start of a text. Its concordance is useful if it has this fingerprint.
func (c *concord) begin(text *segment.Concordance, fingerprint uint64) {
	c.text, c.print, c.next, c.open, c.stale = text, fingerprint, 0, c.open[:0], false
	c.base, c.known, c.end, c.at, c.found, c.classes = 0, 0, 0, 0, c.found[:0], c.classes[:0]
}

// more looks further words up. It reports false at the end.
func (c *concord) more() (bool, error) {
	for c.known == c.end {
		if c.next == c.text.Parts() || c.stale {
			return false, nil
		}
		if err := c.openPart(); err != nil {
			return false, err
		}
	}
	c.forget()
	n := min(concordStretch, c.end-c.known)
	known := c.known + n
	for len(c.found)*64 < known-c.base {
		c.found = append(c.found, 0)
	}
	if more := known - c.base - len(c.classes); more > 0 {
		c.classes = slices.Grow(c.classes, more)[:known-c.base]
	}
	for i := 0; i < len(c.open); {
		p := &c.open[i]
		for at := p.at; ; {
			if at >= known {
				p.at = at
				i++
				break
			}
			c.found[(at-c.base)/64] |= 1 << ((at - c.base) % 64)
			c.classes[at-c.base] = p.class
			next, ok := p.Next()
			if !ok {
				if !p.Sound() {
					return false, c.part.Damaged()
				}
				c.open[i] = c.open[len(c.open)-1]
				c.open = c.open[:len(c.open)-1]
				break
			}
			at = c.part.First + next
		}
	}
	c.known = known
	return true, nil
}

// openPart moves to the next part, and finds the forms in it that the query may contain.
func (c *concord) openPart() error {
	if err := c.text.Open(c.next, &c.part); err != nil {
		return err
	}
	c.next++
	if c.stale = c.part.Fingerprint != c.print || c.part.First != c.end; c.stale {
		return nil
	}
	c.end += c.part.Words
	c.open = c.open[:0]
	var class uint16
	var full error
	found := func(form []byte, cut bool, places segment.Places) {
		of := class
		if of == 0 {
			of = c.classOf(string(form))
		}
		if c.stale = c.stale || cut; of == 0 || c.stale || full != nil {
			return
		}
		if n := len(c.open); n == cap(c.open) && n >= 1<<10 { // it takes twice that now
			full = c.room.Hold(n * openPlacesBytes)
		}
		if at, ok := places.Next(); ok {
			c.open = append(c.open, openPlaces{places, c.part.First + at, of})
		} else {
			c.stale = true
		}
	}
	for i := range c.keys {
		k := &c.keys[i]
		class = k.class
		if err := c.part.Find(k.text, k.prefix, found); err != nil || full != nil {
			return cmp.Or(full, err)
		}
	}
	return nil
}

func (c *concord) classOf(form string) uint16 {
	if id := c.ids[form]; id > 0 {
		return uint16(id)
	}
	return uint16(1 + c.find.word(form).list)
}

// forget drops processed words, if that pays off.
func (c *concord) forget() {
	words := min(c.at, c.known) - c.base
	if words < concordStretch {
		return
	}
	words &^= 63
	c.found = slices.Delete(c.found, 0, words/64)
	c.classes = slices.Delete(c.classes, 0, words)
	c.base += words
}

// classAt returns the class of a word; 0 behind the end.
func (c *concord) classAt(word int) (uint16, error) {
	for word >= c.known {
		if ok, err := c.more(); !ok {
			return 0, err
		}
	}
	i := word - c.base
	if c.found[i/64]>>(i%64)&1 == 0 {
		return 0, nil
	}
	return c.classes[i], nil
}

// hit returns the next word that has a class; -1 at the end.
func (c *concord) hit() (int, error) {
	for {
		for i := c.at - c.base; i < c.known-c.base; i = i&^63 + 64 {
			if left := c.found[i/64] >> (i % 64); left != 0 {
				return c.base + i + bits.TrailingZeros64(left), nil
			}
		}
		c.at = max(c.at, c.known)
		if ok, err := c.more(); !ok {
			return -1, err
		}
	}
}

// match returns the next match; false at the end.
func (c *concord) match() (match, bool, error) {
	for {
		w, err := c.hit()
		if w < 0 || err != nil {
			return match{}, false, err
		}
		class := &c.class[c.classes[w-c.base]]
		c.at = w + 1
		for i := range class.phrases {
			p := &class.phrases[i]
			n, err := c.phrase(p, w)
			if err != nil {
				return match{}, false, err
			}
			if n > 0 {
				c.at = w + n
				return match{firstWord: w, lastWord: w + n - 1, firstTerm: p.first, lastTerm: p.last, list: -1}, true, nil
			}
		}
		if class.list >= 0 {
			list := &c.find.words[class.list]
			return match{firstWord: w, lastWord: w, firstTerm: list.First, lastTerm: list.Last, list: class.list}, true, nil
		}
	}
}

// phrase returns how many words a phrase covers from word w on, or 0 if it is not there. It agrees with textScan.phrase.
func (c *concord) phrase(p *phraseIDs, w int) (int, error) {
	for n, id := range p.words[1:] {
		class, err := c.classAt(w + 1 + n)
		if err != nil {
			return 0, err
		}
		if c.class[class].id != id {
			return 0, nil
		}
	}
	return len(p.words), nil
}
