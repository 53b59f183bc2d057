package query

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/segment"
	"svc/segment/rowlist"
)

// piece is what a match has in one segment.
type piece struct {
	bytes    int // that it takes
	postings [Levels][]segment.Posting
	inside   int                // how many of the last level are of words that contain the word
	phrases  [Levels][][]string // their words
	rows     SegmentRows
}

var (
	pieces atomic.Uint64 // numbers given out

	noRows  = roaring.New()
	nothing = SegmentRows{At: [Levels]*roaring.Bitmap{noRows, noRows, noRows}, Any: noRows, Word: noRows}
)

var segmentPieces = resultcache.NewKind[*piece]("rows of a match")

// segmentRows gives a match its rows in some fields.
func (ix *resolver) segmentRows(m *Match, s *pattern, fields FieldSet) {
	m.Segments = slices.Grow(m.Segments, len(ix.Segments))[:len(ix.Segments)]
	in := ix.in(fields)
	tolerant, infix := ix.tolerant(in), ix.infix(in)
	for i := range m.Segments {
		m.Segments[i] = nothing
		if !m.stands(i) {
			continue
		}
		c := ix.OfSegment(i)
		var buf [128]byte
		key := s.appendKey(c.Key(buf[:0]), fields)
		p, ok := segmentPieces.Get(c.Scope, key)
		if !ok || !p.is(m, i) {
			p = &piece{inside: m.Levels[insideLevel].inside(i)}
			for l := range m.Levels {
				p.postings[l] = m.Levels[l].Postings[i]
				for _, phrase := range m.Levels[l].Phrases {
					p.phrases[l] = append(p.phrases[l], phrase.Words)
				}
			}
			p.bytes = p.fill(ix.Segments[i], m, s, i, wordFields{in, tolerant, infix})
			p.rows.Piece = pieces.Add(1)
			if !ix.over {
				segmentPieces.Put(c.Scope, key, p, p.bytes)
			}
		}
		m.Segments[i] = p.rows
		m.bytes += p.bytes
	}
}

// stands reports whether a match finds anything in a segment, including deleted documents.
func (m *Match) stands(i int) bool {
	for l := range m.Levels {
		if m.Levels[l].stands(i) {
			return true
		}
	}
	return len(m.Words[i]) > 0
}

// stands reports whether a level finds anything in a segment.
func (l *Level) stands(i int) bool {
	return len(l.Postings[i]) > 0 || slices.ContainsFunc(l.Phrases, func(p *PhraseMatch) bool { return !p.Segments[i].Rows.IsEmpty() })
}

// is reports whether a piece was made from the data of the match in a segment.
func (p *piece) is(m *Match, i int) bool {
	if p.inside != m.Levels[insideLevel].inside(i) {
		return false
	}
	for l := range m.Levels {
		if !slices.EqualFunc(p.postings[l], m.Levels[l].Postings[i], segment.Posting.Same) ||
			!slices.EqualFunc(p.phrases[l], m.Levels[l].Phrases, func(words []string, b *PhraseMatch) bool { return slices.Equal(words, b.Words) }) {
			return false
		}
	}
	return true
}

// fill computes the rows and estimates the memory of the piece.
func (p *piece) fill(live segment.Live, m *Match, s *pattern, i int, fields wordFields) (size int) {
	size = 500
	r := &p.rows
	r.At, r.Any = [Levels]*roaring.Bitmap{noRows, noRows, noRows}, noRows
	for level := range Levels {
		in := fields.tolerant
		if level == 0 && !s.gram() {
			in = fields.all
		}
		if level > 0 {
			if more, ok := r.addDense(live, m.Levels[level:], level, i, fields); ok {
				size += more
				break
			}
		}
		rows, mapped := levelRows(live, &m.Levels[level], i, in, fields.infix)
		switch {
		case rows.IsEmpty():
			rows = noRows
		case r.Any.IsEmpty():
			if mapped {
				size += resultcache.Overhead(rows)
			} else {
				size += resultcache.Size(rows)
			}
			r.Any = rows
		default:
			if rows.Intersects(r.Any) {
				if rows = rowlist.Flattened(rowlist.AndNot(rows, r.Any)); rows.IsEmpty() {
					rows = noRows
					break
				}
				mapped = false
			}
			if mapped {
				size += resultcache.Overhead(rows)
			} else {
				size += resultcache.Size(rows)
			}
			r.Any = rowlist.Flattened(Union(r.Any, rows, live.Rows()))
			size += resultcache.Size(r.Any)
		}
		r.At[level] = rows
	}
	switch {
	case s.phrase != nil:
		r.Word = r.At[0]
	case len(m.Words[i]) > 0:
		word := m.Words[i][0]
		l := &m.Levels[0]
		if len(l.Phrases) == 0 && len(l.Postings[i]) == 1 && l.Postings[i][0].Same(word) && !s.gram() {
			r.Word = r.At[0]
			break
		}
		if r.Word = rowsIn(live, word, fields.all); fields.all == nil {
			size += resultcache.Overhead(r.Word)
		} else {
			r.Word = rowlist.Flattened(r.Word)
			size += resultcache.Size(r.Word)
		}
	default:
		r.Word = noRows
	}
	return size
}

// Union returns the union of two sets of rows of a segment with the given number of rows. It may share memory with them. Frequent
// words are stored as runs, which the library would convert to arrays one by one.
func Union(a, b *roaring.Bitmap, rows int) *roaring.Bitmap {
	if !a.HasRunCompression() && !b.HasRunCompression() {
		return rowlist.Or(a, b)
	}
	m := unions.Get().(*unionMemory)
	defer unions.Put(m)
	if int(a.GetCardinality()+b.GetCardinality()) < rows/bitsPerRow {
		m.rows = m.rows[:0]
		for _, set := range []*roaring.Bitmap{a, b} {
			for it := set.ManyIterator(); ; {
				n := it.NextMany(m.some[:])
				if n == 0 {
					break
				}
				m.rows = append(m.rows, m.some[:n]...)
			}
		}
		slices.Sort(m.rows)
		return rowlist.FromRows(slices.Compact(m.rows))
	}
	bits := rowlist.TakeBits((rows + 63) / 64)
	defer bits.Release()
	if a.GetCardinality() > 0 && int(a.Maximum()) < rows { // a forged segment may name others
		a.WriteDenseTo(bits.Words)
		a = noRows
	}
	addToBits(bits.Words, a)
	addToBits(bits.Words, b)
	return rowlist.FromBits(bits.Words)
}

// bitsPerRow is up to how many times as many rows a segment has for a union to go through a bit for each.
const bitsPerRow = 256

// unionMemory is what a union works in.
type unionMemory struct {
	some [256]uint32
	rows []uint32
}

var unions = sync.Pool{New: func() any { return new(unionMemory) }}

// levelRows returns the rows that match at a level in segment i, shared and without spare room: words in the fields words, those that
// contain the word in the fields infix, and phrases. mapped: they take no memory.
func levelRows(s segment.Live, l *Level, i int, words, infix FieldSet) (rows *roaring.Bitmap, mapped bool) {
	postings, inside := l.parts(i)
	switch {
	case len(inside) > 0:
	case len(l.Phrases) == 0 && len(postings) == 1 && words == nil:
		return postings[0].Rows(), true
	case len(l.Phrases) == 1 && len(postings) == 0:
		return l.Phrases[0].Segments[i].Rows, false
	}
	rows = s.Union(postings, words.test())
	if len(inside) > 0 {
		rows = Union(rows, s.Union(inside, infix.test()), s.Rows())
	}
	if len(l.Phrases) == 0 && int(rows.GetCardinality()) >= s.Rows()/rowsGrown { // made from a bit a row
		return rows, false
	}
	for _, p := range l.Phrases {
		if of := p.Segments[i].Rows; !of.IsEmpty() {
			rows = Union(rows, of, s.Rows())
		}
	}
	return rowlist.Flattened(rows), false
}

// addDense adds the levels from first on in segment i to the earlier ones, if they have many rows. It works on bit sets, so there are
// no intermediate sets, and it builds Any once. It returns by how much the piece has grown. If there are few rows, it does nothing
// and ok is false.
func (r *SegmentRows) addDense(s segment.Live, levels []Level, first, i int, fields wordFields) (size int, ok bool) {
	n := 0
	for l := range levels {
		n += levels[l].most(i)
	}
	if n == 0 {
		return 0, true
	}
	if n += int(r.Any.GetCardinality()); n*denseShare < s.Rows() || !r.Any.IsEmpty() && int(r.Any.Maximum()) >= s.Rows() { // a forged segment may name others
		return 0, false
	}
	words := (s.Rows() + 63) / 64
	known := rowlist.TakeBits(words)
	defer known.Release()
	had, several := known.Words, false // several levels have rows
	r.Any.WriteDenseTo(had)
	for l := range levels {
		if !levels[l].stands(i) {
			continue
		}
		found := rowlist.TakeBits(words)
		levels[l].addTo(found.Words, i, fields)
		for k, bits := range found.Words[:len(had)] {
			if bits != 0 {
				bits &^= had[k]
				found.Words[k] = bits
				had[k] |= bits
			}
		}
		rows := rowlist.FromBits(found.Words)
		found.Release()
		if rows.IsEmpty() {
			continue
		}
		r.At[first+l] = rows
		size += resultcache.Size(rows)
		if several = several || !r.Any.IsEmpty(); !several {
			r.Any = rows
		}
	}
	if several {
		r.Any = rowlist.FromBits(had)
		size += resultcache.Size(r.Any)
	}
	return size, true
}

// addTo sets the bits of the rows that match in segment i. No bit is set beyond the rows of the segment.
func (l *Level) addTo(bits []uint64, i int, fields wordFields) {
	others, inside := l.parts(i)
	segment.AddToBits(bits, others, fields.tolerant.test())
	segment.AddToBits(bits, inside, fields.infix.test())
	for _, p := range l.Phrases {
		addToBits(bits, p.Segments[i].Rows)
	}
}

// addToBits sets the bits of a small set of rows.
func addToBits(bits []uint64, rows *roaring.Bitmap) {
	var some [256]uint32
	for it := rows.ManyIterator(); ; {
		n := it.NextMany(some[:])
		if n == 0 {
			return
		}
		for _, r := range some[:n] {
			if w := int(r / 64); w < len(bits) {
				bits[w] |= 1 << (r % 64)
			}
		}
	}
}

// most returns how many rows match in segment i at most: one with several words counts for each.
func (l *Level) most(i int) (n int) {
	for _, p := range l.Postings[i] {
		n += p.Most()
	}
	for _, p := range l.Phrases {
		n += int(p.Segments[i].Rows.GetCardinality())
	}
	return n
}

// denseShare: sets with at least one in so many rows of a segment are built on a bit set. (A variable, so that tests can change it.)
var denseShare = 256

// rowsGrown: sets with fewer than one in so many rows are copied, to trim capacity left by growing row by row. (A variable, so that
// tests can change it.)
var rowsGrown = 64
