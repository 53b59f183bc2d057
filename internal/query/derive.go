package query

import (
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// Levels is how many levels of matching there are: as written, one typo or a split, two typos.
const Levels = 3

// Match is all by which a word, an n-gram or a phrase of a query matches. It is
// immutable and valid as long as the view.
type Match struct {
	Key      string // tells the match from all others of the view
	Levels   [Levels]Level
	Segments []SegmentRows       // by segment
	Words    [][]segment.Posting // by segment: the word as it is written; none where it does not stand, one otherwise
	Exists   bool                // the word is in a live document
	Wide     bool                // a short prefix of so many words that it counts as one word (see width)
	Budget   int

	forms    map[string]struct{}
	prefixes []string
}

// Level is what a match accepts at one level.
type Level struct {
	Postings [][]segment.Posting // by segment: words, and short prefixes as if they were one word
	Phrases  []*PhraseMatch
}

// SegmentRows are the rows of a match in one segment. All bitmaps are shared and never nil.
type SegmentRows struct {
	At   [Levels]*roaring.Bitmap // rows whose best level is this
	Any  *roaring.Bitmap         // rows of all levels
	Word *roaring.Bitmap         // rows with the word, or phrase, as it is written
}

// source is what a match is derived from.
type source struct {
	words  []string // one, or those of an n-gram
	phrase []string // or the slots of a phrase
	prefix bool
}

func (s *source) gram() bool { return len(s.words) > 1 }

// appendKey appends what tells this source and fields from others.
func (s *source) appendKey(dst []byte, fields FieldSet) []byte {
	kind := byte('w')
	switch {
	case s.phrase != nil:
		kind = 'q'
	case s.prefix:
		kind = 'p'
	}
	dst = append(dst, kind)
	for _, w := range s.words {
		dst = append(append(dst, w...), 0)
	}
	for _, w := range s.phrase {
		dst = append(append(dst, w...), 0)
	}
	if fields != nil {
		dst = append(dst, 0)
		for i, in := range fields {
			if in {
				dst = append(dst, byte(i), byte(i>>8))
			}
		}
	}
	return dst
}

// match resolves a source, from the cache if it is there.
func (ix *resolver) match(s *source, fields FieldSet) (*Match, error) {
	var buf [128]byte
	key := s.appendKey(buf[:0], fields)
	if m := ix.Cache.Get(key); m != nil {
		return m.(*Match), nil
	}
	var m *Match
	var err error
	own := &resolver{ix.Index, pace{stop: ix.stop}}
	switch {
	case fields != nil:
		var all *Match
		if all, err = own.match(s, nil); err == nil {
			restricted := *all
			m = &restricted
			m.Segments = ix.segmentRows(m, s, fields)
		}
	case s.phrase != nil:
		m = own.derivePhrase(s)
	default:
		m, err = own.deriveWord(s)
	}
	if err != nil {
		return nil, err
	}
	m.Key = string(key)
	if own.over {
		ix.over = true
	} else {
		ix.Cache.Put(key, m, m.size())
	}
	return m, nil
}

func (ix *resolver) derivePhrase(s *source) *Match {
	p := ix.phrase(s.phrase)
	m := &Match{Words: make([][]segment.Posting, len(ix.Segments))}
	m.Exists = ix.liveRows(p) > 0
	m.Levels[0].Phrases = []*PhraseMatch{p}
	for l := range m.Levels {
		m.Levels[l].Postings = make([][]segment.Posting, len(ix.Segments))
	}
	m.Segments = ix.segmentRows(m, s, nil)
	return m
}

func (ix *resolver) deriveWord(s *source) (*Match, error) {
	word := strings.Join(s.words, "")
	all := ix.in(nil)
	tolerant := ix.tolerant(all)
	m := &Match{Words: make([][]segment.Posting, len(ix.Segments)), forms: map[string]struct{}{}}
	if len(word) > maxWordBytes {
		for l := range m.Levels {
			m.Levels[l].Postings = make([][]segment.Posting, len(ix.Segments))
		}
		m.Segments = ix.segmentRows(m, s, nil)
		return m, nil
	}

	if m.Budget = ix.budget(word); s.gram() {
		m.Budget = max(0, m.Budget-len(s.words)+1)
	}

	// As it is written.
	fields := all
	if s.gram() {
		fields = tolerant
	}
	zero := ix.newWordList(all, maxPrefixWords)
	if !s.gram() || ix.tolerates([]byte(word)) {
		for i, seg := range ix.Segments {
			p, ok := seg.Term([]byte(word))
			if !ok {
				continue
			}
			m.Words[i] = []segment.Posting{p}
			zero.postings[i] = append(zero.postings[i], p)
			m.Exists = m.Exists || isLive(seg, p, fields)
		}
	}
	if s.prefix {
		if err := ix.prefixed(word, s.gram(), zero); err != nil {
			return nil, err
		}
		var err error
		if m.Wide, m.prefixes, err = ix.width(word, s.gram()); err != nil {
			return nil, err
		}
		switch {
		case m.Exists || m.Wide:
			m.prefixes = []string{word}
		case len(word) > shortPrefixBytes:
			m.prefixes = zero.words
		}
	}
	m.Levels[0].Postings = zero.postings
	for _, words := range ix.synonyms(s.words) {
		m.Levels[0].Phrases = append(m.Levels[0].Phrases, ix.phrase(words))
	}

	// Misspelt.
	one, two := ix.newWordList(tolerant, maxOneTypoWords), ix.newWordList(tolerant, maxTwoTypoWords)
	if m.Budget > 0 {
		if err := ix.typos(word, s.prefix, m.Budget, one, two); err != nil {
			return nil, err
		}
	}
	m.Levels[1].Postings = one.postings
	m.Levels[2].Postings = two.postings
	if p := ix.split(word, s.words); p != nil {
		m.Levels[1].Phrases = []*PhraseMatch{p}
	}

	m.Segments = ix.segmentRows(m, s, nil)
	for _, list := range [][]string{one.words, two.words} {
		for _, w := range list {
			if s.prefix {
				m.prefixes = append(m.prefixes, w)
			} else {
				m.forms[w] = struct{}{}
			}
		}
	}
	if m.Exists && !s.prefix {
		m.forms[word] = struct{}{}
	}
	slices.Sort(m.prefixes)
	return m, nil
}

// prefixed adds the words that begin with a prefix, without the prefix itself. A short
// prefix matches them all, through its own posting where the segment has one.
func (ix *resolver) prefixed(prefix string, gram bool, l *wordList) error {
	start, end := []byte(prefix), after([]byte(prefix))
	passes := func(word []byte) bool { return len(word) > len(prefix) && (!gram || ix.tolerates(word)) }
	if len(prefix) > shortPrefixBytes {
		w := ix.newWalk(start, end, nil)
		for !l.full() && w.next() && ix.spend(wordSteps) {
			if passes(w.word) {
				l.take(ix.Index, w)
			}
		}
		return w.err
	}
	whole := !gram || ix.tolerates([]byte(prefix)) // no word among them needs to be told apart
	for i, s := range ix.Segments {
		if whole {
			if p, ok := s.Prefix(start); ok {
				l.postings[i] = append(l.postings[i][:0], p) // the prefix itself is in it
				continue
			}
		}
		it := s.Terms(start, end, nil)
		for it.Next() && ix.spend(wordSteps) {
			if passes(it.Word()) {
				l.postings[i] = append(l.postings[i], it.Posting())
			}
		}
		if err := it.Err(); err != nil {
			return err
		}
	}
	return nil
}

// width looks at the words with a short prefix, the prefix itself left out. wide reports whether there are so many, in
// fields that are not exact, that Meilisearch keeps rows for the prefix as if it were a word. Answers show it: where only
// the word itself should count, as after the rule exactness, all words with such a prefix still do. words are the first of them.
func (ix *Index) width(prefix string, gram bool) (wide bool, words []string, err error) {
	if len(prefix) > shortPrefixBytes {
		return false, nil, nil
	}
	tolerant := ix.newWordList(ix.tolerant(ix.in(nil)), wideWords)
	all := ix.newWordList(ix.in(nil), maxPrefixWords)
	w := ix.newWalk([]byte(prefix), after([]byte(prefix)), nil)
	for !tolerant.full() && w.next() {
		tolerates := ix.tolerates(w.word)
		if tolerates {
			tolerant.take(ix, w)
		}
		if len(w.word) > len(prefix) && (tolerates || !gram) && !all.full() {
			all.take(ix, w)
		}
	}
	return tolerant.full(), all.words, w.err
}

// segmentRows computes the rows of a match in some fields.
func (ix *Index) segmentRows(m *Match, s *source, fields FieldSet) []SegmentRows {
	out := make([]SegmentRows, len(ix.Segments))
	fields = ix.in(fields)
	tolerant := ix.tolerant(fields)
	for i := range out {
		r := &out[i]
		r.Any = noRows
		for level := range Levels {
			in := tolerant
			if level == 0 && !s.gram() {
				in = fields
			}
			rows := levelRows(&m.Levels[level], i, in, fields)
			switch {
			case rows.IsEmpty():
				rows = noRows
			case r.Any.IsEmpty():
				r.Any = rows
			default:
				rows = roaring.AndNot(rows, r.Any)
				r.Any = roaring.Or(r.Any, rows)
			}
			r.At[level] = rows
		}
		switch {
		case s.phrase != nil:
			r.Word = r.At[0]
		case len(m.Words[i]) > 0:
			r.Word = rowsIn(m.Words[i][0], fields)
		default:
			r.Word = noRows
		}
	}
	return out
}

// levelRows returns the rows that match at a level in segment i: words in the fields words, and
// phrases all of whose words stand in the fields phrases.
func levelRows(l *Level, i int, words, phrases FieldSet) *roaring.Bitmap {
	if len(l.Phrases) == 0 && len(l.Postings[i]) == 1 {
		return rowsIn(l.Postings[i][0], words)
	}
	b := roaring.New()
	for _, p := range l.Postings[i] {
		addRowsIn(b, p, words)
	}
	for _, p := range l.Phrases {
		b.Or(p.Segments[i].rowsIn(phrases))
	}
	return b
}

// rowsIn returns the rows of the phrase that have each of its words in one of the fields.
func (p *PhraseSegment) rowsIn(fields FieldSet) *roaring.Bitmap {
	if fields == nil || p.Rows.IsEmpty() {
		return p.Rows
	}
	b := p.Rows.Clone()
	for _, w := range p.Words {
		b.And(rowsIn(w, fields))
	}
	return b
}

// size estimates the memory of a match beyond what is mapped.
func (m *Match) size() int {
	const posting, bitmap = 96, 200
	n := 512
	for l := range m.Levels {
		for _, p := range m.Levels[l].Postings {
			n += posting * len(p)
		}
		for _, p := range m.Levels[l].Phrases {
			for i := range p.Segments {
				n += bitmap + int(p.Segments[i].Rows.GetSizeInBytes())
			}
		}
	}
	for i := range m.Segments {
		r := &m.Segments[i]
		n += 4*bitmap + int(2*r.Any.GetSizeInBytes())
	}
	for w := range m.forms {
		n += 48 + len(w)
	}
	for _, w := range m.prefixes {
		n += 16 + len(w)
	}
	return n
}
