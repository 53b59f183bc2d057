package query

import (
	"math"
	"slices"
	"strings"

	"svc/segment"
)

// derivePhrase makes the match of a phrase in all its readings. A phrase has no typos.
func (ix *resolver) derivePhrase(s *pattern, fields FieldSet) *Match {
	m := ix.newMatch()
	for _, slots := range append([][]string{s.phrase}, s.readings...) {
		p := ix.phrase(slots, fields)
		m.Exists = m.Exists || ix.liveRows(p) > 0
		m.Levels[0].Phrases = append(m.Levels[0].Phrases, p)
	}
	m.Spelt = ix.spelt(s.phrase)
	ix.segmentRows(m, s, fields)
	return m
}

// deriveSpread derives an n-gram with stop words between its words: it has nothing but the synonyms of these.
func (ix *resolver) deriveSpread(s *pattern, fields FieldSet) *Match {
	m := ix.newMatch()
	for _, words := range ix.Synonyms.Lookup(synonymKey(s.words), math.MaxInt) {
		m.Levels[0].Phrases = append(m.Levels[0].Phrases, ix.phrase(words, fields))
	}
	ix.segmentRows(m, s, fields)
	return m
}

// deriveWord derives a word or n-gram that is searched in the given fields (nil: all). Which other words count depends on
// the whole index; phrases are found in these fields only.
func (ix *resolver) deriveWord(s *pattern, fields FieldSet) (*Match, error) {
	d := &derivation{resolver: ix, pattern: s, word: strings.Join(s.words, ""), all: ix.in(nil)}
	d.tolerant = ix.tolerant(d.all)
	defer d.release()
	m := ix.newMatch()
	if len(d.word) > maxWordBytes {
		if !s.forms {
			ix.segmentRows(m, s, fields)
		}
		return m, nil
	}
	m.Spelt = !s.gram() && ix.spelt(s.words)
	if m.Budget = ix.budget(d.word); s.gram() {
		m.Budget = max(0, m.Budget-len(s.words)+1)
	}
	if d.budget = m.Budget; s.near {
		d.budget = min(d.budget, 1)
	}
	if !s.near && !s.written && ix.isInfix(s) {
		d.infix = ix.prepared().infix
	}
	if err := d.find(); err != nil {
		return nil, err
	}
	if s.written && d.most() < s.least {
		return nil, nil
	}
	for _, f := range d.lookups {
		m.bytes += f.bytes
	}

	if err := d.matchWritten(m, fields); err != nil {
		return nil, err
	}
	if s.written {
		ix.segmentRows(m, s, fields)
		return m, nil
	}
	if err := d.misspelt(m); err != nil {
		return nil, err
	}
	if d.infix != nil {
		if err := d.containing(m); err != nil {
			return nil, err
		}
	}
	for _, p := range []*PhraseMatch{d.split(fields), d.initials(fields)} {
		if p != nil {
			m.Levels[1].Phrases = append(m.Levels[1].Phrases, p)
		}
	}
	if !s.forms {
		ix.segmentRows(m, s, fields)
	}

	if (m.Exists || d.parted) && !s.prefix {
		m.forms.lists = append(m.forms.lists, []string{d.word})
	}
	return m, nil
}

// matchWritten adds to a match what the word matches as it is written: itself, words that begin with a prefix, synonyms and other
// readings.
func (d *derivation) matchWritten(m *Match, fields FieldSet) error {
	ix, s := d.resolver, d.pattern
	for i, f := range d.lookups {
		if m.Words[i] = f.exact; s.stop {
			m.Words[i] = f.exact[:f.stops:f.stops]
		}
		if len(m.Words[i]) > 0 {
			m.Exists = m.Exists || alive(ix.Segments[i], f.exact[0], f.exactRow, d.written())
		}
		d.parted = d.parted || d.standsInside(ix.Segments[i], f)
	}
	whole, err := d.choose(zero, maxPrefixWords, maxPrefixWords, m.Levels[0].Postings)
	if err != nil {
		return err
	}
	if err := d.innerWords(m); err != nil {
		return err
	}
	m.forms = &forms{prefix: s.prefix}
	if s.prefix {
		if m.Wide, m.forms.lists, err = d.shown(m, whole); err != nil {
			return err
		}
	}
	for _, words := range ix.synonyms(s.words) {
		m.Levels[0].Phrases = append(m.Levels[0].Phrases, ix.phrase(words, fields))
	}

	for _, words := range s.readings {
		if len(words) > 1 || words[0] != d.word {
			m.Levels[0].Phrases = append(m.Levels[0].Phrases, ix.phrase(words, fields))
		}
	}
	return nil
}

// innerWords adds the inner words to the first level of a match. Which of them count does not depend on how documents are spread over
// segments.
func (d *derivation) innerWords(m *Match) error {
	if !slices.ContainsFunc(d.lookups, func(f *lookup) bool { return f.runs[inner] != nil }) {
		return nil
	}
	postings := make([][]segment.Posting, len(d.Segments))
	if _, err := d.choose(inner, maxParts, maxParts, postings); err != nil {
		return err
	}
	l := &m.Levels[0]
	for i, more := range postings {
		if len(more) > 0 {
			l.Postings[i] = slices.Concat(l.Postings[i], more)
		}
	}
	return nil
}

// misspelt adds the words at one typo and at two typos to the levels of a match.
//
// Words that are misspelt as a whole come first. If there are more than count, it chooses those that most documents have. Words that
// begin with a misspelt prefix fill up the limit, in byte order, if some word begins as typed. If none does, the user can only mean
// misspelt words: many more of them count, and again those that most documents have.
func (d *derivation) misspelt(m *Match) error {
	asTyped := m.Exists || d.parted || d.pattern.prefix && len(m.forms.lists[0]) > 0 || d.over // unknown when time is over
	longer := make([][]segment.Posting, len(d.Segments))
	for _, typos := range []runKind{one, two} {
		postings, most := m.Levels[typos].Postings, maxTypoWords[typos]
		words, err := d.choose(typos, maxMisspelt, most, postings)
		if err != nil {
			return err
		}
		m.forms.lists = append(m.forms.lists, words)
		if !d.pattern.prefix {
			continue
		}
		looked := maxMisspelt
		if most -= len(words); asTyped {
			looked = most
		} else {
			most = maxLongerWords
		}
		if words, err = d.choose(typos+toLonger, looked, most, longer); err != nil {
			return err
		}
		m.forms.lists = append(m.forms.lists, words)
		for i, more := range longer {
			switch {
			case len(postings[i]) == 0:
				postings[i] = more
			case len(more) > 0:
				postings[i] = slices.Concat(postings[i], more)
			}
		}
	}
	return nil
}

// shown returns the words by which a prefix matches without a typo: itself, if it is a word, begins an inner word or is wide, else the
// words that begin with it. words are those of a long prefix.
//
// A short prefix is wide when so many words begin with it, in fields that are not exact, that Meilisearch keeps
// rows for it as if it were a word. Answers show it: where only the word itself should count, as
// after the rule exactness, all words with such a prefix still do.
func (d *derivation) shown(m *Match, words []string) (isWide bool, lists [][]string, err error) {
	if len(d.word) <= shortPrefixBytes {
		if words, err = d.choose(wide, wideWords, wideWords, nil); err != nil {
			return false, nil, err
		}
		if isWide = len(words) == wideWords; !isWide && !m.Exists {
			if d.plain() {
				words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == d.word })
			} else if words, err = d.choose(prefixed, maxPrefixWords, maxPrefixWords, nil); err != nil {
				return false, nil, err
			}
		}
	}
	if m.Exists || d.parted || isWide {
		words = []string{d.word}
	}
	return isWide, [][]string{words}, nil
}
