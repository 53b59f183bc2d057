package query

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/internal/text"
	"svc/segment"
)

// Levels is how many levels of matching there are: as written, one typo or a split, two typos.
const Levels = 3

// Match is everything that a word, an n-gram or a phrase of a query matches. It is immutable and valid as long as the view. It
// combines the results of all segments (see lookup and piece).
type Match struct {
	Key      string // tells the match from all others of the view
	Levels   [Levels]Level
	Segments []SegmentRows       // by segment
	Words    [][]segment.Posting // by segment: the word, or stop word, as it is written; empty where it does not stand
	Exists   bool                // the word is in a live document
	Wide     bool                // a short prefix with so many words that it counts as one word (see isWide)
	Budget   int                 // the most typos that count, apart from the split of a word
	Spelt    bool                // some segment has spellings of the word or of words of the phrase

	forms *forms
	bytes int // that its pieces take
}

// Level is what a match accepts at one level.
type Level struct {
	Postings [][]segment.Posting // by segment: words, and short prefixes as if they were one word
	Inside   []int               // by segment: how many of the last postings belong to words that contain the word; nil: none
	Phrases  []*PhraseMatch
}

// SegmentRows are the rows of a match in one segment. All bitmaps are shared and never nil.
type SegmentRows struct {
	Piece uint64                  // identifies the content among all pieces ever made; 0 if it is empty
	At    [Levels]*roaring.Bitmap // rows whose best level is this
	Any   *roaring.Bitmap         // rows of all levels
	Word  *roaring.Bitmap         // rows with the word, or phrase, as it is written
}

// pattern is what a match is derived from: a word, an n-gram or a phrase, and how loosely it matches.
type pattern struct {
	words    []string   // one, or those of an n-gram
	phrase   []string   // or the words of a phrase
	readings [][]string // the words of its other readings
	prefix   bool
	stop     bool // a stop word, which counts as a word
	spread   bool // stop words stand between words of an n-gram, which has nothing but synonyms

	written bool // match only as written and as a prefix: no typos, no splits
	least   int  // of such a word: how many documents it has to have for a match to be of use
	near    bool // skip words with two typos
	forms   bool // only highlights are needed
}

func (s *pattern) gram() bool { return len(s.words) > 1 }

var matches = resultcache.NewKind[*Match]("matches of a word or phrase")

// restricted marks the forms of keys that name fields.
const restricted = 0x80

// readingWords comes before the words of another reading in keys. No word begins with it.
const readingWords = 1

// appendKey appends a key that identifies this pattern and fields.
func (s *pattern) appendKey(dst []byte, fields FieldSet) []byte {
	form := byte('w')
	switch {
	case s.phrase != nil:
		form = 'q'
	case s.spread:
		form = 's'
	case s.near && s.prefix:
		form = 'y'
	case s.near:
		form = 'x'
	case s.prefix:
		form = 'p'
	}
	if s.written {
		form -= 'a' - 'A'
	}
	if fields != nil {
		form |= restricted
	}
	dst = s.appendWords(appendFields(append(dst, form), fields))
	for _, w := range s.phrase {
		dst = append(append(dst, w...), 0)
	}
	for _, words := range s.readings {
		dst = append(dst, readingWords)
		for _, w := range words {
			dst = append(append(dst, w...), 0)
		}
	}
	return dst
}

// appendWords appends the words, with the entry of a stop word.
func (s *pattern) appendWords(dst []byte) []byte {
	for _, w := range s.words {
		if s.stop {
			w = text.StopEntry(w)
		}
		dst = append(append(dst, w...), 0)
	}
	return dst
}

// appendFields appends the fields of a set with their number, so that the end is known. It appends nothing for all fields.
func appendFields(dst []byte, fields FieldSet) []byte {
	if fields == nil {
		return dst
	}
	at := len(dst)
	dst = append(dst, 0, 0)
	for i, in := range fields {
		if in {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(i))
		}
	}
	binary.LittleEndian.PutUint16(dst[at:], uint16((len(dst)-at)/2-1))
	return dst
}

// forms are the words of a match, for highlighting.
type forms struct {
	lists  [][]string // shared
	prefix bool       // a word that begins with one of them is meant
	inside []string   // words that contain the word; shared

	once     sync.Once
	set      map[string]struct{}
	prefixes []string
}

// resolve makes the set, or the sorted prefixes.
func (f *forms) resolve() *forms {
	f.once.Do(func() {
		whole := append(slices.Clip(f.lists), f.inside)
		if f.prefix {
			f.prefixes = slices.Concat(f.lists...)
			slices.Sort(f.prefixes)
			whole = whole[len(f.lists):]
		}
		f.set = map[string]struct{}{}
		for _, list := range whole {
			for _, w := range list {
				f.set[w] = struct{}{}
			}
		}
	})
	return f
}

// match resolves a pattern, from the cache if possible. It returns nil for a written word with fewer documents than its pattern
// requires.
func (ix *resolver) match(s *pattern, fields FieldSet) (*Match, error) {
	var buf [128]byte
	key := s.appendKey(buf[:0], fields)
	if m, ok := matches.Get(ix.Cache.own, key); ok {
		return m, nil
	}
	if s.forms && s.phrase == nil {
		key = append(key, 0, 'f')
		if m, ok := matches.Get(ix.Cache.own, key); ok {
			return m, nil
		}
	}
	var m *Match
	var err error
	own := &resolver{ix.Index, pace{stop: ix.stop}}
	switch {
	case s.phrase != nil:
		m = own.derivePhrase(s, fields)
	case s.spread:
		m = own.deriveSpread(s, fields)
	default:
		m, err = own.deriveWord(s, fields)
	}
	if m == nil || err != nil {
		return nil, err
	}
	m.Key = string(key)
	if own.over {
		ix.over = true
	} else {
		matches.Put(ix.Cache.own, key, m, m.size())
	}
	return m, nil
}

// newMatch returns a match of nothing. Its lists are one piece of memory, as caches hold many matches for the garbage collector to mark.
// In a view of one segment, the match is in this piece, too.
func (ix *resolver) newMatch() *Match {
	n := len(ix.Segments)
	var m *Match
	var lists [][]segment.Posting
	if n == 1 {
		var one struct {
			match Match
			lists [1 + Levels][]segment.Posting
			rows  [1]SegmentRows
		}
		m, lists = &one.match, one.lists[:]
		m.Segments = one.rows[:0]
	} else {
		m, lists = new(Match), make([][]segment.Posting, (1+Levels)*n)
	}
	m.Words = lists[:n:n]
	for l := range m.Levels {
		lists = lists[n:]
		m.Levels[l].Postings = lists[:n:n]
	}
	return m
}

// most returns how many documents a match has at most: deleted ones count.
func (m *Match) most() (n int) {
	for i := range m.Segments {
		n += int(m.Segments[i].Any.GetCardinality())
	}
	return n
}

// sought returns how many levels are looked up.
func (s *pattern) sought() int {
	switch {
	case s.written:
		return 1
	case s.near:
		return 2
	}
	return Levels
}

// size estimates the memory of a match. A match keeps its pieces in memory even after their segments' cache drops them, so they count
// in both places; the one that is not used is evicted first.
func (m *Match) size() int {
	n := 512 + 200*len(m.Segments) + m.bytes
	for l := range m.Levels {
		n += 64 * len(m.Levels[l].Phrases) * len(m.Segments)
	}
	return n
}
