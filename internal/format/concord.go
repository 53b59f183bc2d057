package format

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"svc/internal/budget"
	"svc/internal/text"
	"svc/segment"
)

// concord finds the matches of a text from left to right like a textScan, but in its concordance, without the text. It finds the
// words of a match, but not their place in bytes.
type concord struct {
	find  *highlighter // that keys and classes are made of
	able  bool
	parts bool // matches may be the first character of an inner word
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
	found            []uint64 // a bit a word: it has a class, or an inner word that ends in it does
	classes          []uint16
	inner            []uint16 // classes of the Chinese inner words; nil until there is one
	within           []uint16 // of the other inner words, the first list that has one, from 1; nil until there is one
	at               int      // word to look at next

	takenWord int  // where the last match ends
	covers    bool // the last match includes the last character of that word
}

// Classes have these bits if concord.parts is set.
const (
	classPart   = 1 << 15 // the match ends before the last character of the word
	classSingle = 1 << 14 // the word is one character
	classMask   = classSingle - 1
)

// concordKey is what forms are looked up by.
type concordKey struct {
	text   string // a segment.InnerForm for inner words
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
	of    placesOf
}

// placesOf is what places are of.
type placesOf uint8

const (
	wordPlaces placesOf = iota
	innerPlaces
	partPlaces // inner words of Korean, Thai and Khmer
)

// openPlacesBytes is about how many bytes one takes.
const openPlacesBytes = 96

// concordStretch is how many words are looked up at a time.
const concordStretch = 1 << 15

// prepare makes keys and classes for the words of a query.
func (c *concord) prepare(h *highlighter) {
	if c.find == h {
		return
	}
	c.find, c.keys, c.class, c.parts = h, nil, []wordClass{{list: -1, id: -1}}, false
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
	c.able = len(c.class) <= classMask && !slices.ContainsFunc(c.keys, func(k concordKey) bool {
		// It has neither long forms nor articles. Of an inner word, the whole is matched, or its first character by a key.
		if len(k.text) > segment.LongestConcordForm || text.BeginsWithArticle(k.text, k.prefix) {
			return true
		}
		if !k.prefix || !text.IsOfInner(k.text) {
			return false
		}
		single := utf8.RuneCountInString(k.text) == 1
		c.parts = c.parts || single
		return h.words[k.list].Chars < 2 && !single
	})
	if !c.able {
		return
	}
	for _, k := range c.keys {
		if !text.IsOfInner(k.text) {
			if k.list >= 0 && text.MayBePart(k.text) {
				k.text = segment.InnerForm(k.text)
				c.keys = append(c.keys, k)
			}
			continue
		}
		if k.prefix && utf8.RuneCountInString(k.text) == 1 {
			c.keys = append(c.keys, concordKey{text: text.StopEntry(k.text), list: -1})
		}
		k.text = segment.InnerForm(k.text)
		c.keys = append(c.keys, k)
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
		} else {
			form, _ := segment.CutInnerForm(k.text)
			k.class = c.classOf(form)
		}
		kept = append(kept, k)
	}
	c.keys = kept
}

// begin goes to the start of a text. Its concordance is useful if it has this fingerprint.
func (c *concord) begin(text *segment.Concordance, fingerprint uint64) {
	c.text, c.print, c.next, c.open, c.stale = text, fingerprint, 0, c.open[:0], false
	c.base, c.known, c.end, c.at, c.found, c.classes = 0, 0, 0, 0, c.found[:0], c.classes[:0]
	c.inner, c.within, c.takenWord, c.covers = c.inner[:0], c.within[:0], -1, false
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
		clear(c.classes[known-c.base-more:])
		if len(c.inner) > 0 {
			c.inner = append(c.inner, make([]uint16, more)...)
		}
		if len(c.within) > 0 {
			c.within = append(c.within, make([]uint16, more)...)
		}
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
			switch p.of {
			case wordPlaces:
				c.classes[at-c.base] = p.class
			case innerPlaces:
				if len(c.inner) == 0 {
					c.inner = append(c.inner, make([]uint16, len(c.classes))...)
				}
				c.inner[at-c.base] = p.class
			default:
				if len(c.within) == 0 {
					c.within = append(c.within, make([]uint16, len(c.classes))...)
				}
				if first := &c.within[at-c.base]; *first == 0 || p.class < *first {
					*first = p.class
				}
			}
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
		form, inner := segment.CutInnerForm(form)
		of, kind := class, wordPlaces
		if inner {
			kind = innerPlaces
		}
		switch {
		case inner && text.MayBePart(string(form)):
			kind = partPlaces
			of = uint16(1 + c.find.word(string(form)).list)
		case of == 0:
			of = c.classOf(string(form))
		}
		if c.parts && kind != partPlaces {
			of |= c.partOf(form, inner, of > 0)
		}
		if c.stale = c.stale || cut; of == 0 || c.stale || full != nil {
			return
		}
		if n := len(c.open); n == cap(c.open) && n >= 1<<10 { // it takes twice that now
			full = c.room.Hold(n * openPlacesBytes)
		}
		if at, ok := places.Next(); ok {
			c.open = append(c.open, openPlaces{places, c.part.First + at, of, kind})
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

// partOf returns the bits of a class that say how much of a form is matched, if anything is.
func (c *concord) partOf(form []byte, inner, matched bool) (bits uint16) {
	chars := utf8.RuneCount(form)
	if text.IsStopEntry(form) && chars == 2 {
		c.stale = true // it may hide the first character of an inner word
	}
	if !matched {
		return 0
	}
	if chars == 1 {
		bits = classSingle
	}
	if h := c.find.word(string(form)); h.list >= 0 && h.bytes >= 0 && h.bytes < len(form) {
		bits |= classPart
		c.stale = c.stale || inner && chars != 2 // a mark may be behind that character
	}
	return bits
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
	if len(c.inner) > 0 {
		c.inner = slices.Delete(c.inner, 0, words)
	}
	if len(c.within) > 0 {
		c.within = slices.Delete(c.within, 0, words)
	}
	c.base += words
}

// classesAt returns the classes of a word and of the inner word that ends in it; 0 behind the end.
func (c *concord) classesAt(word int) (class, inner uint16, err error) {
	for word >= c.known {
		if ok, err := c.more(); !ok {
			return 0, 0, err
		}
	}
	i := word - c.base
	if c.found[i/64]>>(i%64)&1 == 0 {
		return 0, 0, nil
	}
	if len(c.inner) > 0 {
		inner = c.inner[i]
	}
	return c.classes[i], inner, nil
}

// hit returns the next word that has a class, or in which an inner word with one ends; -1 at the end.
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

// match returns the next match; false at the end. It agrees with textScan.next.
func (c *concord) match() (match, bool, error) {
	for {
		w, err := c.hit()
		if w < 0 || err != nil {
			return match{}, false, err
		}
		class, inner, err := c.classesAt(w)
		if err != nil {
			return match{}, false, err
		}
		m, last, err := c.ofClass(class, w)
		isInner := last == noClass && inner > 0 && err == nil
		if isInner {
			m, last, err = c.ofInner(inner, w)
		}
		if err != nil {
			return match{}, false, err
		}
		if last == noClass && len(c.within) > 0 && c.within[w-c.base] > 0 {
			last = c.within[w-c.base]
			m = c.ofList(int(last)-1, w)
		}
		if c.at = w + 1; last == noClass {
			continue
		}
		if c.parts {
			if c.covers, err = c.reaches(&m, last, isInner); err != nil {
				return match{}, false, err
			}
		}
		c.at, c.takenWord = m.lastWord+1, m.lastWord
		return m, true, nil
	}
}

// noClass says that nothing matches.
const noClass = math.MaxUint16

// ofClass returns the match that begins with a word of a class, and the class of its last word; noClass if there is none.
func (c *concord) ofClass(of uint16, w int) (match, uint16, error) {
	class := &c.class[of&classMask]
	for i := range class.phrases {
		p := &class.phrases[i]
		n, err := c.phrase(p, w)
		if err != nil {
			return match{}, noClass, err
		}
		if n > 0 {
			return match{firstWord: w, lastWord: w + n - 1, firstTerm: p.first, lastTerm: p.last, list: -1}, uint16(p.words[n-1]), nil
		}
	}
	if class.list < 0 {
		return match{}, noClass, nil
	}
	return c.ofList(class.list, w), of, nil
}

// ofList is the match of a word with a list of words.
func (c *concord) ofList(list, w int) match {
	l := &c.find.words[list]
	return match{firstWord: w, lastWord: w, firstTerm: l.First, lastTerm: l.Last, list: list}
}

// ofInner is ofClass for the inner word that ends in a word. It agrees with textScan.ofInner.
func (c *concord) ofInner(of uint16, w int) (match, uint16, error) {
	m, last, err := c.ofClass(of, w)
	switch {
	case err != nil || last == noClass:
		return match{}, noClass, err
	case c.takenWord < w-1:
		m.firstWord, m.inner = w-1, true
	case m.list >= 0 && of&classPart != 0 && c.covers:
		return match{}, noClass, nil // nothing is left of it
	default:
		m.touches = true
	}
	return m, last, nil
}

// reaches reports whether a match includes the last character of its last word, given the class of that word, or of the inner word that
// ends in it. inner says that the match begins with an inner word.
func (c *concord) reaches(m *match, last uint16, inner bool) (bool, error) {
	if m.list >= 0 && (!inner || last&classPart != 0) {
		return !inner && last&classPart == 0, nil
	}
	class, _, err := c.classesAt(m.lastWord)
	return class&classSingle != 0 || m.list < 0 && c.class[class&classMask].id == int(last), err
}

// phrase returns how many words a phrase covers from word w on, or 0 if it is not there. It agrees with textScan.phrase.
func (c *concord) phrase(p *phraseIDs, w int) (int, error) {
	for n, id := range p.words[1:] {
		class, inner, err := c.classesAt(w + 1 + n)
		if err != nil {
			return 0, err
		}
		if c.class[class&classMask].id != id && c.class[inner&classMask].id != id {
			return 0, nil
		}
	}
	return len(p.words), nil
}
