package query

import (
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/segment"
)

// PhraseMatch is a phrase and where it stands, by segment.
type PhraseMatch struct {
	Slots    []string
	Segments []PhraseSegment
}

// PhraseSegment is where a phrase stands in one segment. When a word of it is missing there, Rows is empty
// and nothing else is set.
type PhraseSegment struct {
	Rows  *roaring.Bitmap   // rows that match, in whatever fields; shared
	Words []segment.Posting // of the words, holes left out
}

// StartsWithHole and EndsWithHole report whether a stop word stands at an end of the phrase.
func (p *PhraseMatch) StartsWithHole() bool { return p.Slots[0] == "" }
func (p *PhraseMatch) EndsWithHole() bool   { return p.Slots[len(p.Slots)-1] == "" }

// phrase finds the rows of a phrase: its words one after another in one
// field, where h holes between two words allow a distance of up to h+1. With
// the precision byAttribute, words that stand in one field are neighbours. Holes at the ends do not constrain.
func (ix *resolver) phrase(slots []string) *PhraseMatch {
	m := &PhraseMatch{Slots: slots, Segments: make([]PhraseSegment, len(ix.Segments))}
	var words []string
	var reach []int // reach[i]: the largest distance between words i and i+1
	for _, s := range slots {
		switch {
		case s != "":
			words = append(words, s)
			reach = append(reach, 1)
		case len(words) > 0:
			reach[len(reach)-1]++
		}
	}
	for i, s := range ix.Segments {
		m.Segments[i] = ix.phraseIn(i, s, slots, words, reach)
	}
	return m
}

// phraseIn finds the rows of a phrase in a segment, which keeps what was found.
func (ix *resolver) phraseIn(i int, s segment.Live, slots, words []string, reach []int) PhraseSegment {
	if s.Rows() < phraseRowsKept {
		return ix.findPhrase(s, words, reach)
	}
	c := ix.OfSegment(i)
	var buf [128]byte
	key := c.Key(buf[:0], 'h')
	for _, w := range slots {
		key = append(append(key, w...), 0)
	}
	if p, ok := c.Get(key).(*PhraseSegment); ok {
		return *p
	}
	p := ix.findPhrase(s, words, reach)
	if !ix.over {
		rows, n := resultcache.Trim(p.Rows)
		p.Rows = rows
		c.Put(key, &p, 200+112*len(p.Words)+n)
	}
	return p
}

// phraseRowsKept is how many rows a segment has where phrases are kept: in smaller ones they are found as quickly again.
const phraseRowsKept = 64

func (ix *resolver) findPhrase(s segment.Live, words []string, reach []int) PhraseSegment {
	fields := ix.in(nil)
	postings := make([]segment.Posting, len(words))
	for i, w := range words {
		var ok bool
		if postings[i], ok = s.Term([]byte(w)); !ok {
			return PhraseSegment{Rows: noRows}
		}
	}
	if len(words) == 1 {
		return PhraseSegment{Rows: rowsIn(s, postings[0], fields), Words: postings}
	}
	m := PhraseSegment{Words: postings}
	if ix.Settings.ProximityPrecision == settings.ByAttribute {
		m.Rows = inOneField(postings, fields, s.Rows())
	} else {
		m.Rows = ix.inARow(s, postings, reach, fields)
	}
	return m
}

// inOneField returns those of n rows where each two neighbours, and next but one neighbours, have a field in common. A word
// is in one field with itself.
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
					if both := roaring.And(f.Rows(), g.Rows()); !both.IsEmpty() {
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

// inARow returns the rows where the words follow each other in one field, word i+1 at most reach[i] behind word i.
func (p *pace) inARow(s segment.Live, postings []segment.Posting, reach []int, in FieldSet) *roaring.Bitmap {
	out := roaring.New()
	m := phrases.Get().(*phraseMemory)
	defer phrases.Put(m)
	all, ends, next := m.rows, m.ends, m.next
	defer func() { m.rows, m.ends, m.next = all, ends, next }()
	fields := make([]segment.FieldPosting, len(postings))
	known := knownPairs(s, postings, reach)
	for k := range postings[0].Fields() {
		fields[0] = postings[0].Field(k)
		if !in.Has(fields[0].ID()) || !findAll(fields, postings) {
			continue
		}
		rows, exact := candidates(s, fields, postings, known)
		switch {
		case exact && rows.IsEmpty(): // as in most fields, where there are many
			continue
		case exact && out.IsEmpty():
			out.Or(rows) // a copy
			continue
		case exact:
			out = Union(out, rows, s.Rows())
			continue
		}
		all = appendRows(all[:0], rows)
		for rest := all; len(rest) > 0; {
			rows := rest[:min(len(rest), phraseRows)]
			rest = rest[len(rows):]
			if !p.spend(len(rows) * len(fields)) {
				return out
			}
			// ends: where the words so far may end.
			ends = fields[0].AppendOccurrences(ends[:0], rows, 0)
			for i := 1; i < len(fields) && len(ends) > 0; i++ {
				next = fields[i].AppendOccurrences(next[:0], rows, 0)
				ends, next = follow(ends, next, reach[i-1]), ends
			}
			n := 0
			for i, o := range ends {
				if i == 0 || o>>16 != ends[i-1]>>16 {
					rows[n] = rows[o>>16]
					n++
				}
			}
			out.AddMany(rows[:n])
		}
	}
	return out
}

// phraseMemory is what a phrase is looked for in. Occurrences are the index of the row in bits 16 and up, and the position.
type phraseMemory struct {
	rows       []uint32
	ends, next []uint64
}

var phrases = sync.Pool{New: func() any { return new(phraseMemory) }}

func appendRows(dst []uint32, b *roaring.Bitmap) []uint32 {
	n := int(b.GetCardinality())
	dst = slices.Grow(dst, n)[:n]
	b.ManyIterator().NextMany(dst)
	return dst
}

// knownPairs returns the places i where the segment keeps the rows in which word i+1 stands directly behind word i.
func knownPairs(s segment.Live, postings []segment.Posting, reach []int) (known []int) {
	for i := range len(postings) - 1 {
		if reach[i] == 1 && s.KnowsNeighbours(postings[i]) && s.KnowsNeighbours(postings[i+1]) {
			known = append(known, i)
		}
	}
	return known
}

// candidates returns rows that may have the words in a row in one field, all of those that do. exact: no others.
func candidates(s segment.Live, fields []segment.FieldPosting, postings []segment.Posting, known []int) (rows *roaring.Bitmap, exact bool) {
	for _, i := range known {
		pair := s.Neighbours(postings[i], postings[i+1], fields[0].ID())
		switch {
		case pair == nil:
			return noRows, true
		case rows == nil:
			rows = pair
		default:
			rows = roaring.And(rows, pair)
		}
	}
	if rows == nil {
		return common(fields), false
	}
	if len(postings) == 2 {
		return rows, true
	}
	for i := range fields {
		if !slices.Contains(known, i) && !slices.Contains(known, i-1) {
			rows = roaring.And(rows, fields[i].Rows())
		}
	}
	return rows, false
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

// common returns the rows that all the fields have.
func common(fields []segment.FieldPosting) *roaring.Bitmap {
	rows := roaring.And(fields[0].Rows(), fields[1].Rows())
	for _, f := range fields[2:] {
		rows.And(f.Rows())
	}
	return rows
}

// follow keeps, in place, the occurrences that are at most reach behind one of ends, in the same row.
func follow(ends, occurrences []uint64, reach int) []uint64 {
	kept := occurrences[:0]
	i := 0
	for _, o := range occurrences {
		for i < len(ends) && (ends[i]+uint64(reach) < o || ends[i]>>16 < o>>16) {
			i++
		}
		if i < len(ends) && ends[i] < o {
			kept = append(kept, o)
		}
	}
	return kept
}
