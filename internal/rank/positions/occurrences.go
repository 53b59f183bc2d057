package positions

import (
	"encoding/binary"
	"slices"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/segment"
)

// Role says which words of a node count.
type Role uint8

const (
	NodeWords    Role = iota // its words, no phrases, in all fields where words count
	PhraseStarts             // the first words of its phrases, in the searched fields
	PhraseEnds               // the last words of its phrases, there
)

// An occurrence is a word at a position: field in bits 48–63, index of the row in the batch in bits 16–47, position in bits 0–15.
// Sorted, they are grouped by field, then by row.

// IndexOf returns the index in the batch of the row of an occurrence.
func IndexOf(o uint64) int { return int(o >> 16 & (1<<32 - 1)) }

// FieldOf returns the field of an occurrence.
func FieldOf(o uint64) segment.FieldID { return segment.FieldID(o >> 48) }

// PositionOf returns the position of an occurrence in its field.
func PositionOf(o uint64) int { return int(uint16(o)) }

func sameFieldAndRow(a, b uint64) bool { return a>>16 == b>>16 }

// Sides are the occurrences of a node: of its words, and of the ends of its phrases.
type Sides struct {
	Words, First, Last []uint64
}

// Gather appends the occurrences of a node in the rows of a batch, sorted.
func (r *Reader) Gather(dst []uint64, b *Batch, node int, as Role) []uint64 {
	v := &r.Graph.Nodes[node]
	mask, word := b.Mask(node)
	begin, sources := len(dst), 0
	if word {
		if as == NodeWords {
			words := wordPostings(v, b.Segment)
			for _, p := range words {
				dst = r.gatherPosting(dst, b, p)
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
		if as == NodeWords {
			var n int
			dst, n = r.gatherLevel(dst, b, node, level)
			sources += n
			continue
		}
		for _, p := range v.Levels[level].Phrases {
			ps := &p.Segments[b.Segment]
			if ps.Rows.IsEmpty() {
				continue
			}
			w := ps.Words[0]
			if as == PhraseEnds {
				w = ps.Words[len(ps.Words)-1]
			}
			if v.Phrase && len(v.Levels[level].Phrases) == 1 {
				ps = nil // nothing else finds the rows
			}
			dst = r.gatherWord(dst, b, w, r.Searched, ps)
			sources++
		}
	}
	if sources > 1 {
		slices.Sort(dst[begin:])
	}
	return dst
}

// wordPostings returns the postings that count for a node of which only the word itself counts.
func wordPostings(v *query.Node, seg int) []segment.Posting {
	if v.Wide {
		return v.Levels[0].Postings[seg]
	}
	return v.Words[seg]
}

// gatherLevel gathers the words of a level and returns from how many sources.
func (r *Reader) gatherLevel(dst []uint64, b *Batch, node, level int) ([]uint64, int) {
	postings := r.Graph.Nodes[node].Levels[level].Postings[b.Segment]
	if len(postings) < tablePostings {
		for _, p := range postings {
			dst = r.gatherPosting(dst, b, p)
		}
		return dst, len(postings)
	}
	t := r.table(node, level, b.Segment)
	for _, p := range t.frequent {
		dst = r.gatherPosting(dst, b, p)
	}
	return t.gather(dst, b), len(t.frequent) + 1
}

// gatherPosting appends the occurrences of one word, sorted.
func (r *Reader) gatherPosting(dst []uint64, b *Batch, p segment.Posting) []uint64 {
	return r.gatherWord(dst, b, p, r.Words, nil)
}

// gatherWord gathers one word in the fields that have a weight. It gathers a word of a phrase only in the rows of the phrase.
func (r *Reader) gatherWord(dst []uint64, b *Batch, p segment.Posting, weights []int32, phrase *query.PhraseSegment) []uint64 {
	for k := range p.Fields() {
		f := p.Field(k)
		if weights[f.ID()] < 0 {
			continue
		}
		begin := len(dst)
		dst = r.gatherField(dst, b, f)
		if phrase == nil {
			continue
		}
		kept := dst[:begin]
		for _, o := range dst[begin:] {
			if phrase.Rows.Contains(b.Rows[IndexOf(o)]) {
				kept = append(kept, o)
			}
		}
		dst = kept
	}
	return dst
}

// gatherField appends the occurrences of a word in a field.
func (r *Reader) gatherField(dst []uint64, b *Batch, f segment.FieldPosting) []uint64 {
	tag := uint64(f.ID()) << 48
	if b.beside == nil {
		return f.AppendOccurrences(dst, b.Rows, tag)
	}
	first, _ := slices.BinarySearch(b.beside, tag)
	r.rows, r.beside = r.rows[:0], r.beside[:0]
	for _, o := range b.beside[first:] {
		if FieldOf(o) != f.ID() {
			break
		}
		if i, n := uint32(IndexOf(o)), len(r.beside); n == 0 || r.beside[n-1] != i {
			r.rows, r.beside = append(r.rows, b.Rows[i]), append(r.beside, i)
		}
	}
	begin := len(dst)
	dst = f.AppendOccurrences(dst, r.rows, tag)
	for i, o := range dst[begin:] {
		dst[begin+i] = tag | uint64(r.beside[IndexOf(o)])<<16 | uint64(PositionOf(o))
	}
	return dst
}

const (
	tablePostings = 4   // words of a level from which on the rare ones get a table
	frequentRows  = 256 // rows of a field from which on a word is not rare
)

// table holds the occurrences of the rare words of a level in one segment. Looking up hundreds of words in each row would cost more
// than everything else.
type table struct {
	frequent    []segment.Posting
	occurrences []uint64 // with rows in place of indexes of rows, sorted
}

var tables = resultcache.NewKind[*table]("occurrences of the terms of a level")

// table returns the table of a level in a segment, cached or made now.
func (r *Reader) table(node, level, seg int) *table {
	at := (node*query.Levels+level)*len(r.Segments) + seg
	for len(r.tables) <= at {
		r.tables = append(r.tables, nil)
	}
	if t := r.tables[at]; t != nil {
		return t
	}
	c := r.OfSegment(seg)
	var buf [64]byte
	key := binary.LittleEndian.AppendUint64(append(c.Key(buf[:0]), byte(level)), r.Graph.Nodes[node].Segments[seg].Piece)
	t, ok := tables.Get(c.Scope, key)
	if !ok {
		t = &table{}
		r.fillTable(t, r.Graph.Nodes[node].Levels[level].Postings[seg])
		tables.Put(c.Scope, key, t, 200+8*len(t.occurrences)+112*len(t.frequent))
	}
	r.tables[at] = t
	return t
}

func (r *Reader) fillTable(t *table, postings []segment.Posting) {
	all := r.tableScratch[:0]
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
			if r.Words[f.ID()] < 0 {
				continue
			}
			r.rows = f.AppendRows(r.rows[:0])
			begin := len(all)
			all = f.AppendOccurrences(all, r.rows, uint64(f.ID())<<48)
			for i, o := range all[begin:] {
				row := r.rows[IndexOf(o)]
				all[begin+i] = uint64(FieldOf(o))<<48 | uint64(row)<<16 | uint64(PositionOf(o))
			}
		}
	}
	slices.Sort(all)
	t.occurrences, r.tableScratch = slices.Clone(all), all // without spare room
}

// gather appends the occurrences in the rows of a batch.
func (t *table) gather(dst []uint64, b *Batch) []uint64 {
	rest := t.occurrences
	for len(rest) > 0 {
		field := rest[0] &^ (1<<48 - 1)
		for i, row := range b.Rows {
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
