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
	number   uint64 // tells it from all other pieces, of whatever segment
	bytes    int    // that it takes
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
	m.Segments = make([]SegmentRows, len(ix.Segments))
	m.Pieces = make([]uint64, len(ix.Segments))
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
			p.number = pieces.Add(1)
			if !ix.over {
				segmentPieces.Put(c.Scope, key, p, p.bytes)
			}
		}
		m.Segments[i], m.Pieces[i] = p.rows, p.number
		m.bytes += p.bytes
	}
}

// stands reports whether a match finds anything in a segment, deleted or not.
func (m *Match) stands(i int) bool {
	for l := range m.Levels {
		if len(m.Levels[l].Postings[i]) > 0 {
			return true
		}
		for _, p := range m.Levels[l].Phrases {
			if !p.Segments[i].Rows.IsEmpty() {
				return true
			}
		}
	}
	return len(m.Words[i]) > 0
}

// is reports whether a piece was made of what the match has in a segment.
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
	trim := func(b *roaring.Bitmap) *roaring.Bitmap {
		b, n := resultcache.Trim(b)
		size += n
		return b
	}
	r := &p.rows
	r.Any = noRows
	for level := range Levels {
		in := fields.tolerant
		if level == 0 && !s.gram() {
			in = fields.all
		}
		if rows, all, ok := denseRows(live, &m.Levels[level], i, in, fields.infix, r.Any); ok {
			if r.At[level] = rows; !rows.IsEmpty() {
				r.Any = all
				size += resultcache.Size(rows) + resultcache.Size(all)
			}
			continue
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
				all := rows.GetCardinality()
				if rows = roaring.AndNot(rows, r.Any); rows.IsEmpty() {
					rows = noRows
					break
				}
				if left := rows.GetCardinality(); left < all/4*3 { // it has room for all
					rows, _ = resultcache.Trim(rows)
				}
				mapped = false
			}
			if mapped {
				size += resultcache.Overhead(rows)
			} else {
				size += resultcache.Size(rows)
			}
			r.Any = Union(r.Any, rows, live.Rows()) // of sets without common rows, so it has no spare room
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
			r.Word = trim(r.Word)
		}
	default:
		r.Word = noRows
	}
	return size
}

// Union returns the rows of either of two sets in a segment with so many rows; it may share memory with them. Runs, in which frequent words
// are stored, the library would turn into arrays one run after the other.
func Union(a, b *roaring.Bitmap, rows int) *roaring.Bitmap {
	if !a.HasRunCompression() && !b.HasRunCompression() {
		return roaring.Or(a, b)
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
		rows, _ := resultcache.Trim(roaring.BitmapOf(m.rows...))
		return rows
	}
	bits := rowlist.TakeBits((rows + 63) / 64)
	defer bits.Release()
	if a.GetCardinality() > 0 && int(a.Maximum()) < rows { // a forged segment may name others
		a.WriteDenseTo(bits.Words)
		a = noRows
	}
	for _, set := range []*roaring.Bitmap{a, b} {
		for it := set.ManyIterator(); ; {
			n := it.NextMany(m.some[:])
			if n == 0 {
				break
			}
			for _, r := range m.some[:n] {
				if i := int(r / 64); i < len(bits.Words) {
					bits.Words[i] |= 1 << (r % 64)
				}
			}
		}
	}
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
	rows, _ = resultcache.Trim(rows)
	return rows, false
}

// denseRows returns the rows of the words at a level in segment i but those that match at better ones, and both together, where they are
// many: a bit for each row makes no sets in between. ok is false elsewhere.
func denseRows(s segment.Live, l *Level, i int, words, infix FieldSet, better *roaring.Bitmap) (rows, all *roaring.Bitmap, ok bool) {
	postings := l.Postings[i]
	if better.IsEmpty() || len(postings) == 0 || len(l.Phrases) > 0 || int(better.Maximum()) >= s.Rows() { // a forged segment may name others
		return nil, nil, false
	}
	n := int(better.GetCardinality())
	for _, p := range postings {
		n += p.Most()
	}
	if n < s.Rows()/rowsGrown {
		return nil, nil, false
	}
	size := (s.Rows() + 63) / 64
	found, known := rowlist.TakeBits(size), rowlist.TakeBits(size)
	defer found.Release()
	defer known.Release()
	bits, had := found.Words, known.Words
	plain, inside := l.parts(i)
	segment.AddToBits(bits, plain, words.test())
	segment.AddToBits(bits, inside, infix.test())
	better.WriteDenseTo(had)
	for k := range bits {
		bits[k] &^= had[k]
		had[k] |= bits[k]
	}
	if rows = rowlist.FromBits(bits); rows.IsEmpty() {
		return noRows, better, true
	}
	return rows, rowlist.FromBits(had), true
}

// rowsGrown: sets of fewer than one row in so many are copied, since they may have grown row by row. (A variable, so that tests can change
// it.)
var rowsGrown = 64
