package rank

import (
	"encoding/binary"
	"slices"

	"svc/internal/query"
	"svc/segment"
)

// role says which words of a node count.
type role uint8

const (
	asWords     role = iota // its words, no phrases, in all searchable fields
	asStart                 // the first words of its phrases, in the searched fields
	asFirstSlot             // the same, unless a hole comes before
	asLastSlot              // the last words of its phrases, unless a hole comes behind
)

// An occurrence is a word at a place: field in bits 48–63, index of the row in the
// batch in bits 16–47, position in bits 0–15. Sorted, they stand field by field, row by row.

func indexOf(o uint64) int             { return int(o >> 16 & (1<<32 - 1)) }
func fieldOf(o uint64) segment.FieldID { return segment.FieldID(o >> 48) }
func positionOf(o uint64) int          { return int(uint16(o)) }
func sameFieldAndRow(a, b uint64) bool { return a>>16 == b>>16 }

// gather appends the occurrences of a node in the rows of a batch, sorted.
func (s *search) gather(dst []uint64, b *batch, node int, as role) []uint64 {
	v := &s.graph.Nodes[node]
	mask, word := b.mask(node)
	begin, sources := len(dst), 0
	if word {
		if as == asWords {
			words := wordPostings(v, b.segment)
			for _, p := range words {
				dst = s.gatherPosting(dst, b, p)
			}
			if len(words) > 1 {
				slices.Sort(dst[begin:])
			}
		}
		return dst
	}
	for level := range query.Levels {
		if mask>>level&1 == 0 {
			continue
		}
		if as == asWords {
			var n int
			dst, n = s.gatherLevel(dst, b, node, level)
			sources += n
			continue
		}
		for _, p := range v.Levels[level].Phrases {
			ps := &p.Segments[b.segment]
			if ps.Rows.IsEmpty() || as == asFirstSlot && p.StartsWithHole() || as == asLastSlot && p.EndsWithHole() {
				continue
			}
			w := ps.Words[0]
			if as == asLastSlot {
				w = ps.Words[len(ps.Words)-1]
			}
			if v.Phrase {
				ps = nil // nothing else finds the rows
			}
			dst = s.gatherWord(dst, b, w, s.weights, ps)
			sources++
		}
	}
	if sources > 1 {
		slices.Sort(dst[begin:])
	}
	return dst
}

// wordPostings returns what counts of a node of which a rule has found the word itself.
func wordPostings(v *query.Node, seg int) []segment.Posting {
	if v.Wide {
		return v.Levels[0].Postings[seg]
	}
	return v.Words[seg]
}

// gatherLevel gathers the words of a level and returns from how many sources.
func (s *search) gatherLevel(dst []uint64, b *batch, node, level int) ([]uint64, int) {
	postings := s.graph.Nodes[node].Levels[level].Postings[b.segment]
	if len(postings) < tablePostings {
		for _, p := range postings {
			dst = s.gatherPosting(dst, b, p)
		}
		return dst, len(postings)
	}
	t := s.table(node, level, b.segment)
	for _, p := range t.frequent {
		dst = s.gatherPosting(dst, b, p)
	}
	return t.gather(dst, b), len(t.frequent) + 1
}

// gatherPosting appends the occurrences of one word, sorted.
func (s *search) gatherPosting(dst []uint64, b *batch, p segment.Posting) []uint64 {
	return s.gatherWord(dst, b, p, s.searchable, nil)
}

// gatherWord gathers one word in the fields that have a weight; a word of a phrase in the rows where the phrase stands.
func (s *search) gatherWord(dst []uint64, b *batch, p segment.Posting, weights []int32, phrase *query.PhraseSegment) []uint64 {
	for k := range p.Fields() {
		f := p.Field(k)
		if weights[f.ID()] < 0 {
			continue
		}
		begin := len(dst)
		dst = s.gatherField(dst, b, f)
		if phrase == nil {
			continue
		}
		kept := dst[:begin]
		for _, o := range dst[begin:] {
			if phrase.Rows.Contains(b.rows[indexOf(o)]) {
				kept = append(kept, o)
			}
		}
		dst = kept
	}
	return dst
}

// gatherField appends the occurrences of a word in a field.
func (s *search) gatherField(dst []uint64, b *batch, f segment.FieldPosting) []uint64 {
	tag := uint64(f.ID()) << 48
	if b.beside == nil {
		return f.AppendOccurrences(dst, b.rows, tag)
	}
	first, _ := slices.BinarySearch(b.beside, tag)
	s.rowNumbers, s.besideAt = s.rowNumbers[:0], s.besideAt[:0]
	for _, o := range b.beside[first:] {
		if fieldOf(o) != f.ID() {
			break
		}
		if i, n := uint32(indexOf(o)), len(s.besideAt); n == 0 || s.besideAt[n-1] != i {
			s.rowNumbers, s.besideAt = append(s.rowNumbers, b.rows[i]), append(s.besideAt, i)
		}
	}
	begin := len(dst)
	dst = f.AppendOccurrences(dst, s.rowNumbers, tag)
	for i, o := range dst[begin:] {
		dst[begin+i] = tag | uint64(s.besideAt[indexOf(o)])<<16 | uint64(positionOf(o))
	}
	return dst
}

const (
	tablePostings = 4   // words of a level from which on the rare ones get a table
	frequentRows  = 256 // rows of a field from which on a word is not rare
)

// table holds the occurrences of the rare words of a level in one segment: asking hundreds of
// words whether they stand in a row would cost more than all else.
type table struct {
	frequent    []segment.Posting
	occurrences []uint64 // with rows in place of indexes of rows, sorted
}

// table returns the table of a level in a segment, kept or made now.
func (s *search) table(node, level, seg int) *table {
	at := (node*query.Levels+level)*len(s.ix.Segments) + seg
	for len(s.tables) <= at {
		s.tables = append(s.tables, nil)
	}
	if t := s.tables[at]; t != nil {
		return t
	}
	c := (*query.Index)(s.ix).OfSegment(seg)
	var buf [64]byte
	key := binary.LittleEndian.AppendUint64(append(c.Key(buf[:0], 't'), byte(level)), s.graph.Nodes[node].Pieces[seg])
	t, ok := c.Get(key).(*table)
	if !ok {
		t = &table{}
		s.fillTable(t, s.graph.Nodes[node].Levels[level].Postings[seg])
		c.Put(key, t, 200+8*len(t.occurrences)+112*len(t.frequent))
	}
	s.tables[at] = t
	return t
}

func (s *search) fillTable(t *table, postings []segment.Posting) {
	all := s.tableScratch[:0]
postings:
	for _, p := range postings {
		for k := range p.Fields() {
			if p.Field(k).Count() >= frequentRows {
				t.frequent = append(t.frequent, p)
				continue postings
			}
		}
		for k := range p.Fields() {
			f := p.Field(k)
			if s.searchable[f.ID()] < 0 {
				continue
			}
			s.rowNumbers = f.AppendRows(s.rowNumbers[:0])
			begin := len(all)
			all = f.AppendOccurrences(all, s.rowNumbers, uint64(f.ID())<<48)
			for i, o := range all[begin:] {
				row := s.rowNumbers[indexOf(o)]
				all[begin+i] = uint64(fieldOf(o))<<48 | uint64(row)<<16 | uint64(positionOf(o))
			}
		}
	}
	slices.Sort(all)
	t.occurrences, s.tableScratch = slices.Clone(all), all // without spare room
}

// gather appends the occurrences in the rows of a batch.
func (t *table) gather(dst []uint64, b *batch) []uint64 {
	rest := t.occurrences
	for len(rest) > 0 {
		field := rest[0] &^ (1<<48 - 1)
		for i, row := range b.rows {
			want := field | uint64(row)<<16
			rest = rest[gallop(rest, want):]
			for len(rest) > 0 && rest[0]&^0xffff == want {
				dst = append(dst, field|uint64(i)<<16|rest[0]&0xffff)
				rest = rest[1:]
			}
		}
		if field == maxField {
			break
		}
		rest = rest[gallop(rest, field+1<<48):]
	}
	return dst
}

const maxField = uint64(1<<16-1) << 48

// gallop returns the index of the first occurrence that is not below want.
func gallop(o []uint64, want uint64) int {
	step := 1
	for step <= len(o) && o[step-1] < want {
		step *= 2
	}
	low, high := step/2, min(step, len(o))
	for low < high {
		mid := int(uint(low+high) >> 1)
		if o[mid] < want {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
