package rank

import (
	"slices"

	"svc/internal/query"
	"svc/segment"
)

// role says which words of a node count.
type role uint8

const (
	asWords     role = iota // its words, no phrases
	asStart                 // the first words of its phrases
	asFirstSlot             // the same, unless a hole comes before
	asLastSlot              // the last words of its phrases, unless a hole comes behind
)

// An occurrence is a word at a place: index of the row in the batch in bits 32–63,
// field in bits 16–31, position in bits 0–15. Sorted, they stand row by row, field by field.

func occurrence(index int, f segment.FieldID, position uint16) uint64 {
	return uint64(index)<<32 | uint64(f)<<16 | uint64(position)
}

func indexOf(o uint64) int             { return int(o >> 32) }
func fieldOf(o uint64) segment.FieldID { return segment.FieldID(o >> 16) }
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
			dst = s.gatherPhrase(dst, b, ps, w)
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
	t := s.table(node, level)
	if t == nil {
		return dst, 0
	}
	for _, p := range t[b.segment].frequent {
		dst = s.gatherPosting(dst, b, p)
	}
	return t[b.segment].gather(dst, b), len(t[b.segment].frequent) + 1
}

// gatherPosting appends the occurrences of one word, sorted.
func (s *search) gatherPosting(dst []uint64, b *batch, p segment.Posting) []uint64 {
	return s.gatherWord(dst, b, p, nil)
}

// gatherPhrase gathers one word of a phrase, in the rows where the phrase stands.
func (s *search) gatherPhrase(dst []uint64, b *batch, ps *query.PhraseSegment, word segment.Posting) []uint64 {
	return s.gatherWord(dst, b, word, ps)
}

func (s *search) gatherWord(dst []uint64, b *batch, p segment.Posting, phrase *query.PhraseSegment) []uint64 {
	s.readers, s.readerFields = s.readers[:0], s.readerFields[:0]
	for k := range p.Fields() {
		if f := p.Field(k); s.searchable[f.ID()] >= 0 {
			s.readers = append(s.readers, f.Positions())
			s.readerFields = append(s.readerFields, f.ID())
		}
	}
	for i, row := range b.rows {
		if phrase != nil && !phrase.Rows.Contains(row) {
			continue
		}
		for k := range s.readers {
			s.positions = s.readers[k].Append(s.positions[:0], segment.Row(row))
			for _, at := range s.positions {
				dst = append(dst, occurrence(i, s.readerFields[k], at))
			}
		}
	}
	return dst
}

const (
	tablePostings = 4   // words of a level from which on the rare ones get a table
	frequentRows  = 256 // rows of a field from which on a word is not rare
)

// table holds the occurrences of the rare words of a level in one segment, by row: asking hundreds of
// words whether they stand in a row would cost more than all else.
type table struct {
	frequent    []segment.Posting
	occurrences []uint64 // with rows in place of indexes, sorted
}

// table returns the tables of a level by segment, kept or made now.
func (s *search) table(node, level int) []table {
	at := node*query.Levels + level
	for len(s.tables) <= at {
		s.tables = append(s.tables, nil)
	}
	if t := s.tables[at]; t != nil {
		return t
	}
	key := s.key('t', node, level, 0)
	t, ok := s.ix.Cache.Get(key).([]table)
	if !ok {
		t = make([]table, len(s.ix.Segments))
		size := 100
		for i := range t {
			s.fillTable(&t[i], s.graph.Nodes[node].Levels[level].Postings[i])
			size += 8*len(t[i].occurrences) + 96*len(t[i].frequent)
		}
		s.ix.Cache.Put(key, t, size)
	}
	s.tables[at] = t
	return t
}

func (s *search) fillTable(t *table, postings []segment.Posting) {
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
			positions := f.Positions()
			s.rowNumbers = f.AppendRows(s.rowNumbers[:0])
			for _, row := range s.rowNumbers {
				s.positions = positions.Append(s.positions[:0], segment.Row(row))
				for _, at := range s.positions {
					t.occurrences = append(t.occurrences, occurrence(int(row), f.ID(), at))
				}
			}
		}
	}
	slices.Sort(t.occurrences)
	t.occurrences = slices.Clip(t.occurrences)
}

// gather appends the occurrences in the rows of a batch.
func (t *table) gather(dst []uint64, b *batch) []uint64 {
	rest := t.occurrences
	for i, row := range b.rows {
		want := uint64(row) << 32
		// Gallop: rows ascend.
		step := 1
		for step < len(rest) && rest[step] < want {
			step *= 2
		}
		low, high := step/2, min(step, len(rest))
		for low < high {
			mid := int(uint(low+high) >> 1)
			if rest[mid] < want {
				low = mid + 1
			} else {
				high = mid
			}
		}
		rest = rest[low:]
		for len(rest) > 0 && rest[0]>>32 == uint64(row) {
			dst = append(dst, uint64(i)<<32|rest[0]&(1<<32-1))
			rest = rest[1:]
		}
	}
	return dst
}
