package rank

import (
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/segment"
)

// Rows of a large bucket first get the highest level that their sum can have, from the largest shares of the values in each block of
// ordinals. Exact sums are computed only for rows that may have a wanted level.

// fullSum is the sum of all weights, in the units of shareBounds. The remaining bits of 32 have room for one more unit per function.
const fullSum = 1 << 20

// maxShareBlocks is the largest number of blocks of ordinals that a column is cut into. (A variable, so that tests can lower it.)
var maxShareBlocks = 4096

// shareBounds are upper bounds of what a function adds to the sums of documents, rounded up.
type shareBounds struct {
	most    []uint32     // by block of ordinals
	shift   int          // an ordinal is in block ord >> shift
	missing uint32       // of documents without a value
	least   *shareBounds // lower bounds, rounded down, in its field most; nil in these themselves
}

var columnShares = resultcache.NewKind[*shareBounds]("bounds of a score function in a column")

// bounded returns the bounds of a function in a segment. They are computed once and cached with the segment.
func (p *scorer) bounded(ix *Index, seg, function int) *shareBounds {
	f := &p.functions[function]
	c := f.columns[seg]
	scope := ix.OfSegment(seg).Scope
	key := binary.AppendUvarint(nil, uint64(function))
	key = binary.LittleEndian.AppendUint64(key, math.Float64bits(f.origin))
	key = append(key, p.text...)
	if b, ok := columnShares.Get(scope, key); ok && b.blocks(c) == len(b.most) {
		return b
	}
	b := &shareBounds{shift: max(0, bits.Len(uint((c.Numbers()-1)/maxShareBlocks)))}
	b.missing = p.upper(f, f.missing)
	b.most = make([]uint32, b.blocks(c))
	b.least = &shareBounds{most: make([]uint32, len(b.most)), shift: b.shift, missing: p.lower(f, f.missing)}
	peak := f.peak(f.ascendingNumbers(c))
	share := func(ord int, no float64) float64 {
		if x := f.number(c.Number(ord).Float); x >= 0 {
			return x
		}
		return no // not a date: it is unknown where the neighbouring values begin
	}
	for k := range b.most {
		from, to := k<<b.shift, min((k+1)<<b.shift, c.Numbers())
		most := max(share(from, 1), share(to-1, 1)) // shares ascend up to the peak and then descend
		if from < peak && peak < to {
			most = max(most, share(peak-1, 1), share(peak, 1))
		}
		b.most[k] = p.upper(f, most)
		b.least.most[k] = p.lower(f, min(share(from, 0), share(to-1, 0)))
	}
	columnShares.Put(scope, key, b, 128+8*len(b.most))
	return b
}

func (b *shareBounds) blocks(c *segment.Column) int { return (c.Numbers() + 1<<b.shift - 1) >> b.shift }

// upper returns an upper bound of what a share adds to a sum, above the least sum.
func (p *scorer) upper(f *scored, share float64) uint32 {
	if f.Weight <= 0 || p.span() == 0 {
		return 0
	}
	return uint32(math.Ceil(min(share+sumMargin, 1)*f.Weight/p.span()*fullSum)) + 1
}

// lower returns a lower bound of what a share adds to a sum, above the least sum.
func (p *scorer) lower(f *scored, share float64) uint32 {
	if f.Weight <= 0 || p.span() == 0 {
		return 0
	}
	return uint32(max(share-sumMargin, 0) * f.Weight / p.span() * fullSum)
}

// bounds returns the bounds of functions in a segment, nil for those without, and for the latter the upper and lower bounds of what
// they add to all sums. ok is false if the bounds of some function are unknown.
func (p *scorer) bounds(ix *Index, seg int) (all []*shareBounds, base, least uint32, ok bool) {
	all = make([]*shareBounds, len(p.functions))
	base = 1 // rounding a sum removes less than this
	for i := range p.functions {
		f := &p.functions[i]
		switch {
		case f.Weight < 0: // a share of 0 subtracts nothing
			base += uint32(math.Ceil(-f.Weight / p.span() * fullSum))
		case f.Weight == 0, f.Kind == settings.FilterScore:
		case f.Origin.Point, f.Origin.Date && f.dates[seg] != nil:
			return nil, 0, 0, false
		case f.columns[seg] == nil || f.columns[seg].Numbers() == 0:
			base, least = base+p.upper(f, f.missing), least+p.lower(f, f.missing)
		default:
			all[i] = p.bounded(ix, seg, i)
			base, least = base+all[i].missing, least+all[i].least.missing
		}
	}
	return all, base, least, true
}

// upperLevels has rows of a segment with the highest level that each may have.
type upperLevels struct {
	rows   []uint32
	levels []uint16
}

// upperRowBytes is what upperLevels take for a row.
const upperRowBytes = 4 + 2

// upperLevels returns the upper levels of rows. The request is charged for them until the search ends. It returns nil if a function
// has no bounds in the segment, or if there is not enough memory. If time is over, the remaining rows keep level 0.
func (p *scorer) upperLevels(s *search, seg int, in *roaring.Bitmap) *upperLevels {
	all, base, _, ok := p.bounds(s.ix, seg)
	if !ok {
		return nil
	}
	n := int(in.GetCardinality())
	if err := s.turn.Account().Hold(int64(n) * upperRowBytes); err != nil {
		return nil // the caller does without
	}
	p.held += int64(n) * upperRowBytes
	u := &upperLevels{rows: make([]uint32, n), levels: make([]uint16, n)}
	u.rows = u.rows[:in.ManyIterator().NextMany(u.rows)]
	for from := 0; from < len(u.rows); from += scoreRows {
		if s.late() {
			return u
		}
		to := min(from+scoreRows, len(u.rows))
		for i, sum := range p.upperSums(seg, all, base, u.rows[from:to]) {
			u.levels[from+i] = uint16(p.levelOf(sum))
		}
	}
	return u
}

// levelOf returns the level of a sum above the least one, in the units of shareBounds.
func (p *scorer) levelOf(sum uint32) int {
	return int(min(uint64(sum)*uint64(p.levels)/fullSum, uint64(p.levels)-1))
}

// upperSums returns upper bounds of the sums of rows, valid until the next call. base is the bound of rows without values.
func (p *scorer) upperSums(seg int, all []*shareBounds, base uint32, rows []uint32) []uint32 {
	p.uppers = slices.Grow(p.uppers[:0], len(rows))[:len(rows)]
	sums := p.uppers
	for i := range sums {
		sums[i] = base
	}
	for i, b := range all {
		f := &p.functions[i]
		switch {
		case f.Kind == settings.FilterScore && f.Weight > 0:
			in, one := f.selected(seg), p.upper(f, 1)
			for k, row := range rows {
				if in.Contains(row) {
					sums[k] += one
				}
			}
		case b == nil:
		default:
			p.ords, p.places = f.columns[seg].EachNumber(p.ords[:0], p.places[:0], rows)
			if f.columns[seg].SingleNumbers() {
				for k, ord := range p.ords {
					sums[p.places[k]] += b.most[ord>>b.shift] - b.missing
				}
				continue
			}
			for k := 0; k < len(p.ords); { // among several values the one with the largest share counts
				place, most := p.places[k], uint32(0)
				for ; k < len(p.ords) && p.places[k] == place; k++ {
					most = max(most, b.most[p.ords[k]>>b.shift])
				}
				sums[place] += most - b.missing
			}
		}
	}
	return sums
}

// between yields the rows whose level is at least lo and below hi, up to scoreRows at once.
func (u *upperLevels) between(lo, hi int) iter.Seq[[]uint32] {
	return func(yield func([]uint32) bool) {
		var rows [2 * scoreRows]uint32
		n := 0
		for from := 0; from < len(u.rows); from += scoreRows {
			of := u.rows[from:min(from+scoreRows, len(u.rows))]
			for i, level := range u.levels[from : from+len(of)] {
				rows[n] = of[i]
				if uint(int(level)-lo) < uint(hi-lo) { // avoids a branch around the line above
					n++
				}
			}
			if n < scoreRows {
				continue
			}
			if !yield(rows[:scoreRows]) {
				return
			}
			n = copy(rows[:], rows[scoreRows:n])
		}
		if n > 0 {
			yield(rows[:n])
		}
	}
}
