package query

import (
	"math"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
	"svc/segment/rowlist"
)

// PhraseMatch is a phrase and where it stands, by segment.
type PhraseMatch struct {
	Words    []string // stop words as their entries
	Segments []PhraseSegment
}

// PhraseSegment is the result of a phrase in one segment. If the segment lacks a word of it, Rows is empty and nothing else is set.
type PhraseSegment struct {
	Rows  *roaring.Bitmap   // rows where the phrase stands in a searched field; shared
	Words []segment.Posting // of the words
}

// counted returns how many of some words count among the words of a field: stop words do not.
func counted(words []string) (n int) {
	for _, w := range words {
		if !text.IsStopEntry(w) {
			n++
		}
	}
	return n
}

// Counted returns how many words of the phrase count among the words of a field.
func (p *PhraseMatch) Counted() int { return counted(p.Words) }

// PhraseIn returns the reading of a quoted phrase that finds rows in a segment, the first one of several; nil when none does. only: no
// other one does. Other versions of the analysis and other locales may read a phrase as other words.
func (v *Node) PhraseIn(seg int) (p *PhraseMatch, only bool) {
	for _, reading := range v.Levels[0].Phrases {
		switch {
		case reading.Segments[seg].Rows.IsEmpty():
		case p != nil:
			return p, false
		default:
			p = reading
		}
	}
	return p, p != nil
}

// phrase finds the rows of a phrase: its words must be consecutive in one of the given fields (nil: all). With the precision
// byAttribute, words in the same field count as neighbours.
func (ix *resolver) phrase(words []string, fields FieldSet) *PhraseMatch {
	m := &PhraseMatch{Words: words, Segments: make([]PhraseSegment, len(ix.Segments))}
	for i, s := range ix.Segments {
		m.Segments[i] = ix.phraseIn(i, s, words, fields)
	}
	return m
}

var segmentPhrases = resultcache.NewKind[*PhraseSegment]("rows of a phrase")

// phraseIn finds the rows of a phrase in a segment. The result is cached with the segment.
func (ix *resolver) phraseIn(i int, s segment.Live, words []string, fields FieldSet) PhraseSegment {
	if s.Rows() < phraseRowsKept {
		return ix.findPhrase(s, words, fields)
	}
	c := ix.OfSegment(i)
	var buf [128]byte
	form := byte(0)
	if fields != nil {
		form = restricted
	}
	key := appendFields(append(c.Key(buf[:0]), form), fields)
	for _, w := range words {
		key = append(append(key, w...), 0)
	}
	if p, ok := segmentPhrases.Get(c.Scope, key); ok {
		return *p
	}
	p := ix.findPhrase(s, words, fields)
	if !ix.over {
		segmentPhrases.Put(c.Scope, key, &p, 200+112*len(p.Words)+resultcache.Size(p.Rows))
	}
	return p
}

// phraseRowsKept is the number of rows from which a segment caches phrases. In smaller segments, finding them again is as fast.
const phraseRowsKept = 64

// findPhrase finds the rows of a phrase in a segment, as a set without spare room and of its own.
func (ix *resolver) findPhrase(s segment.Live, words []string, fields FieldSet) PhraseSegment {
	fields = ix.in(fields)
	postings := make([]segment.Posting, len(words))
	for i, w := range words {
		var ok bool
		if postings[i], ok = s.Term([]byte(w)); !ok {
			return PhraseSegment{Rows: noRows}
		}
	}
	m := PhraseSegment{Words: postings}
	switch {
	case len(words) == 1:
		m.Rows = rowlist.Flat(rowsIn(s, postings[0], fields))
	case ix.Settings.ProximityPrecision == settings.ByAttribute:
		m.Rows = rowlist.Flat(inOneField(postings, fields, s.Rows()))
	default:
		m.Rows = ix.inARow(s, postings, fields)
	}
	return m
}

// inOneField returns those of n rows where each two neighbours, and each two words with one between them, have a field in common. A
// word is in one field with itself.
func inOneField(postings []segment.Posting, in FieldSet, n int) *roaring.Bitmap {
	var rows *roaring.Bitmap
	for i := range postings {
		for j := i + 1; j < min(i+3, len(postings)); j++ {
			pair := roaring.New()
			for k := range postings[i].Fields() {
				f := postings[i].Field(k)
				if !in.Has(f.ID()) {
					continue
				}
				if g, ok := postings[j].Find(f.ID()); ok {
					if both := rowlist.And(f.Rows(), g.Rows()); !both.IsEmpty() {
						pair = Union(pair, both, n)
					}
				}
			}
			if rows == nil {
				rows = pair
			} else {
				rows.And(pair)
			}
		}
	}
	return rows
}

// inARow returns the rows where the words are consecutive in one field, as a set like those of findPhrase.
func (p *pace) inARow(s segment.Live, postings []segment.Posting, in FieldSet) *roaring.Bitmap {
	known := knownPairs(s, postings)
	if len(postings) == 2 && len(known) == 1 {
		return s.NeighboursIn(postings[0], postings[1], in.Has)
	}
	m := phrases.Get().(*phraseMemory)
	defer phrases.Put(m)
	m.found = m.found[:0] // of all fields, one after the other
	m.fields = slices.Grow(m.fields[:0], len(postings))[:len(postings)]
	defer clear(m.fields)
	several, inTime := false, true
	for k := 0; k < postings[0].Fields() && inTime; k++ {
		m.fields[0] = postings[0].Field(k)
		if !in.Has(m.fields[0].ID()) || !findAll(m.fields, postings) {
			continue
		}
		before := len(m.found)
		if len(known) == 0 {
			inTime = p.findInARow(m)
		} else {
			inTime = p.findAmong(m, candidates(s, m.fields, postings, known), known)
		}
		several = several || before > 0 && len(m.found) > before
	}
	if several {
		slices.Sort(m.found)
		m.found = slices.Compact(m.found)
	}
	return rowlist.FromRows(m.found)
}

// findInARow finds the rows in which the words of a field follow each other. It returns false when the time is up.
func (p *pace) findInARow(m *phraseMemory) bool {
	// The pair with the rarest word has the fewest rows.
	pair, least := 0, math.MaxInt
	for i := range m.fields[1:] {
		if n := min(m.fields[i].Count(), m.fields[i+1].Count()); n < least {
			pair, least = i, n
		}
	}
	m.common = m.fields[pair].Common(m.common[:0], m.fields[pair+1])
	for common := range slices.Chunk(m.common, phraseRows) {
		if !p.spend(len(common) * len(m.fields)) {
			return false
		}
		m.rows = segment.AppendFollowed(m.rows[:0], common, m.fields[pair], m.fields[pair+1], 1)
		m.keepInARow(m.rows, []int{pair})
	}
	return true
}

// findAmong is findInARow of some rows, in which some pairs of the words are known to follow each other.
func (p *pace) findAmong(m *phraseMemory, rows *roaring.Bitmap, known []int) bool {
	m.rows = appendRows(m.rows[:0], rows)
	for rows := range slices.Chunk(m.rows, phraseRows) {
		if !p.spend(len(rows) * len(m.fields)) {
			return false
		}
		m.keepInARow(rows, known)
	}
	return true
}

// keepInARow finds those of some rows in which all words are consecutive, given that some pairs are. It changes rows.
func (m *phraseMemory) keepInARow(rows []uint32, known []int) {
	for i := range m.fields[1:] {
		if !slices.Contains(known, i) {
			rows = segment.KeepFollowed(rows, m.fields[i], m.fields[i+1], 1)
		}
	}
	if len(m.fields) == 2 || len(rows) == 0 {
		m.found = append(m.found, rows...)
		return
	}
	// Each word occurs somewhere directly after the previous one. ends: where the words so far may end.
	m.ends = m.fields[0].AppendOccurrences(m.ends[:0], rows, 0)
	for i := 1; i < len(m.fields) && len(m.ends) > 0; i++ {
		m.next = m.fields[i].AppendOccurrences(m.next[:0], rows, 0)
		m.ends, m.next = follow(m.ends, m.next), m.ends
	}
	for i, o := range m.ends {
		if i == 0 || o>>16 != m.ends[i-1]>>16 {
			m.found = append(m.found, rows[o>>16])
		}
	}
}

// phraseMemory is working memory of phrase searches. An occurrence has the index of the row in bits 16 and up, and the position
// below.
type phraseMemory struct {
	fields      []segment.FieldPosting // of the words
	common      []rowlist.Place
	rows, found []uint32
	ends, next  []uint64
}

var phrases = sync.Pool{New: func() any { return new(phraseMemory) }}

func appendRows(dst []uint32, b *roaring.Bitmap) []uint32 {
	n := int(b.GetCardinality())
	dst = slices.Grow(dst, n)[:n]
	b.ManyIterator().NextMany(dst)
	return dst
}

// knownPairs returns the indexes i for which the segment stores the rows in which word i+1 is directly after word i.
func knownPairs(s segment.Live, postings []segment.Posting) (known []int) {
	for i := range len(postings) - 1 {
		if s.KnowsNeighbours(postings[i]) && s.KnowsNeighbours(postings[i+1]) {
			known = append(known, i)
		}
	}
	return known
}

// candidates returns rows that may have the words in a row in one field, all of those that do, where some pairs are known.
func candidates(s segment.Live, fields []segment.FieldPosting, postings []segment.Posting, known []int) (rows *roaring.Bitmap) {
	for _, i := range known {
		pair := s.Neighbours(postings[i], postings[i+1], fields[0].ID())
		switch {
		case pair == nil:
			return noRows
		case rows == nil:
			rows = pair
		default:
			rows = rowlist.And(rows, pair)
		}
	}
	for i := range fields {
		if !slices.Contains(known, i) && !slices.Contains(known, i-1) {
			rows = rowlist.And(rows, fields[i].Rows())
		}
	}
	return rows
}

// findAll finds the field of fields[0] in the other postings.
func findAll(fields []segment.FieldPosting, postings []segment.Posting) bool {
	for i := 1; i < len(postings); i++ {
		var ok bool
		if fields[i], ok = postings[i].Find(fields[0].ID()); !ok {
			return false
		}
	}
	return true
}

// follow keeps, in place, the occurrences that are directly after one of ends, in the same row.
func follow(ends, occurrences []uint64) []uint64 {
	kept := occurrences[:0]
	i := 0
	for _, o := range occurrences {
		for i < len(ends) && ends[i]+1 < o {
			i++
		}
		if i < len(ends) && ends[i]+1 == o && ends[i]>>16 == o>>16 {
			kept = append(kept, o)
		}
	}
	return kept
}
