package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/text"
	"svc/internal/turns"
	"svc/segment"
)

// A facet search finds the values that begin with a few characters, in a field with maybe as many values as documents. Folding does
// not change nearly all of them: these are found by the order of the column.

// facetQuery is the query of a facet search.
type facetQuery struct {
	asked   string // folded
	runes   []rune
	budget  int  // of typos
	exact   bool // only the whole value counts
	locales text.Locales
}

// newFacetQuery returns the query of a request, or nil if it has none (the index's typo settings apply, with lengths in bytes).
func newFacetQuery(v *index.View, r *FacetRequest) *facetQuery {
	if r.FacetQuery == nil {
		return nil
	}
	q := &facetQuery{asked: text.FacetSearchKey(*r.FacetQuery, r.Search.Locales), locales: r.Search.Locales}
	q.runes = []rune(q.asked)
	t := v.Settings.TypoTolerance
	switch {
	case slices.ContainsFunc(t.DisableOnWords, func(w string) bool { return text.Fold(w) == q.asked }):
		q.exact = true
	case !t.Enabled || slices.Contains(t.DisableOnAttributes, r.FacetName):
	case len(q.asked) >= int(t.TwoTypos):
		q.budget = 2
	case len(q.asked) >= int(t.OneTypo):
		q.budget = 1
	}
	return q
}

// match reports whether a folded value matches.
func (q *facetQuery) match(folded string) bool {
	switch {
	case q.exact:
		return folded == q.asked
	case q.budget == 0:
		return strings.HasPrefix(folded, q.asked)
	}
	return query.PrefixDistance(q.runes, folded, q.budget) <= q.budget
}

// ordinalRange are the ordinals from lo up to hi.
type ordinalRange struct{ lo, hi int }

// ranges returns the ranges of ordinals of a column, ascending, whose values match without folding. There may be other values in
// between.
func (q *facetQuery) ranges(t turns.Turn, c *segment.Column) ([]ordinalRange, error) {
	if q.budget > 0 {
		return q.nearRanges(t, c)
	}
	asked := []byte(q.asked)
	lo := c.SearchString(asked)
	switch {
	case !q.exact:
		return []ordinalRange{{lo, endOfPrefix(c, asked)}}, nil
	case lo == c.Strings() || !bytes.Equal(c.String(lo), asked):
		return nil, nil
	}
	return []ordinalRange{{lo, lo + 1}}, nil
}

// endOfPrefix returns the first ordinal after the values that begin with a prefix.
func endOfPrefix(c *segment.Column, prefix []byte) int {
	next := bytes.Clone(prefix)
	for len(next) > 0 {
		if last := len(next) - 1; next[last] < 0xff {
			next[last]++
			return c.SearchString(next)
		}
		next = next[:len(next)-1]
	}
	return c.Strings()
}

// nearRanges is ranges with typos. It descends the order of the column like a tree: it skips values with a beginning that is near
// enough already, or can no longer be. It treats a byte as a character; values with other characters are decided by their folded
// forms.
func (q *facetQuery) nearRanges(t turns.Turn, c *segment.Column) ([]ordinalRange, error) {
	n, far := len(q.runes), q.budget+1
	if n <= q.budget {
		return []ordinalRange{{0, c.Strings()}}, nil
	}
	// The table of distances, as in query.PrefixDistance: row j is for the first j bytes of the value. A row has the columns from
	// j-budget to j+budget, because distances in others exceed the budget. So its size does not depend on the query.
	width := 2*q.budget + 1
	rows := make([]int, width)
	for k := range rows { // column k-budget
		rows[k] = far
		if k >= q.budget {
			rows[k] = k - q.budget
		}
	}
	least := []int{0}
	var found []ordinalRange
	var before []byte
	for ord, looked := 0, 0; ord < c.Strings(); looked++ {
		if looked%clockValues == 0 {
			if err := t.Yield(); err != nil {
				return nil, err
			}
		}
		value := c.String(ord)
		depth := 0 // the rows include those of this value up to this depth
		for limit := min(len(before), len(value), len(least)-1); depth < limit && before[depth] == value[depth]; {
			depth++
		}
		rows, least, before = rows[:(depth+1)*width], least[:depth+1], value
		ord++
		for j := depth + 1; j <= len(value); j++ {
			low := q.appendRow(&rows, value, j)
			least = append(least, low)
			last := n - j + q.budget // index in the row of the column for the whole query
			if near := last >= 0 && last < width && rows[j*width+last] < far; near || low == far && least[j-1]+1 >= far {
				end := endOfPrefix(c, value[:j])
				if near {
					found = append(found, ordinalRange{ord - 1, end})
				}
				ord = max(ord, end)
				break
			}
		}
	}
	return found, nil
}

// appendRow appends row j of the table in nearRanges, and returns the smallest distance in it.
func (q *facetQuery) appendRow(rows *[]int, value []byte, j int) (low int) {
	far, width := q.budget+1, 2*q.budget+1
	last := (*rows)[(j-1)*width:] // column i is in k here, and in k+1 in the previous row
	low = far
	for k := range width {
		i, d := j-q.budget+k, far
		switch {
		case i == 0:
			d = min(j, far)
		case i > 0 && i <= len(q.runes):
			d = last[k]
			if q.runes[i-1] != rune(value[j-1]) {
				d++
			}
			if k > 0 {
				d = min(d, (*rows)[len(*rows)-1]+1)
			}
			if k+1 < width {
				d = min(d, last[k+1]+1)
			}
			if i > 1 && j > 1 && q.runes[i-1] == rune(value[j-2]) && q.runes[i-2] == rune(value[j-1]) {
				d = min(d, (*rows)[(j-2)*width+k]+1)
			}
			d = min(d, far)
		}
		*rows, low = append(*rows, d), min(low, d)
	}
	return low
}

// foldedValues has the strings of a column that folding may change, ascending, and their folded forms. It is cached with the segment.
type foldedValues struct {
	ords   []uint32
	folded []string
}

// foldedOf are cached with a segment under a field and the locale.
var foldedOf = resultcache.NewKind[*foldedValues]("folded values of a field")

// foldedValuesOf returns the values of a column that folding changes, with their folded forms. They are cached with the segment.
func foldedValuesOf(ctx context.Context, c *segment.Column, field segment.FieldID, l text.Locales, scope *resultcache.Scope) (*foldedValues, error) {
	key := binary.LittleEndian.AppendUint16(nil, uint16(field))
	if len(l) == 1 { // with several none counts
		key = append(key, l[0]...)
	}
	if scope != nil {
		if kept, ok := foldedOf.Get(scope, key); ok {
			return kept, nil
		}
	}
	f := new(foldedValues)
	t, size := turns.Of(ctx), 0
	for ord := range c.Strings() {
		if ord%clockValues == 0 {
			if err := t.Yield(); err != nil {
				return nil, err
			}
		}
		if value := c.String(ord); !text.IsFolded(value) {
			f.ords = append(f.ords, uint32(ord))
			f.folded = append(f.folded, text.FacetSearchKey(string(value), l))
			size += len(f.folded[len(f.folded)-1])
		}
	}
	if scope != nil {
		foldedOf.Put(scope, key, f, size+20*cap(f.ords)+64)
	}
	return f, nil
}

// facetMatches are the values of a segment that a facet search finds.
type facetMatches struct {
	in      *facetRows
	segment int // its place in the view
	counts  ordinalCounts
	plain   []ordinalRange // of these, all except those that folding may change
	folds   *foldedValues
	folded  []int // indexes in folds of the matching ones
}

// newFacetMatches finds the values that match q, or all values if q is nil.
func newFacetMatches(ctx context.Context, v *index.View, in *facetRows, field segment.FieldID, segment int, q *facetQuery) (*facetMatches, error) {
	m := &facetMatches{in: in, segment: segment, folds: new(foldedValues)}
	if q == nil {
		m.plain = []ordinalRange{{0, in.column.Strings()}}
		return m, nil
	}
	var err error
	if m.folds, err = foldedValuesOf(ctx, in.column, field, q.locales, v.Cache.OfFile(segment)); err != nil {
		return nil, err
	}
	t := turns.Of(ctx)
	if m.plain, err = q.ranges(t, in.column); err != nil {
		return nil, err
	}
	for i, folded := range m.folds.folded {
		if i%clockValues == 0 {
			if err := t.Yield(); err != nil {
				return nil, err
			}
		}
		if q.match(folded) {
			m.folded = append(m.folded, i)
		}
	}
	return m, nil
}

// eachPlain calls f for the ordinals that match without folding, ascending, until it returns false.
func (m *facetMatches) eachPlain(f func(ord int) bool) {
	for _, r := range m.plain {
		i, _ := slices.BinarySearch(m.folds.ords, uint32(r.lo))
		for ord := m.counts.up(r.lo); ord < r.hi; ord = m.counts.up(ord + 1) {
			for i < len(m.folds.ords) && int(m.folds.ords[i]) < ord {
				i++
			}
			if i < len(m.folds.ords) && int(m.folds.ords[i]) == ord {
				continue
			}
			if !f(ord) {
				return
			}
		}
	}
}

// each calls f for the ordinals that match.
func (m *facetMatches) each(f func(ord int)) {
	m.eachPlain(func(ord int) bool { f(ord); return true })
	for _, i := range m.folded {
		f(int(m.folds.ords[i]))
	}
}

// size returns how many values match, and a few more.
func (m *facetMatches) size() int {
	n := len(m.folded)
	for _, r := range m.plain {
		n += r.hi - r.lo
	}
	return n
}

// count counts the candidates or, if only about the given number of values is needed, looks them up per value.
func (m *facetMatches) count(candidates *roaring.Bitmap, values int) {
	size, n := m.size(), int(candidates.GetCardinality())
	if min(size, values) <= n/4 && n > aggregate.FewCounted || n == m.in.Rows() {
		m.counts = lookOrdinalsUp(m.in.column, true, candidates, m.in.Rows())
		return
	}
	m.counts = countOrdinals(m.in.column, true, candidates, m.in.Rows())
}

// appendFirst appends the first limit values in the order of their folded forms that some candidate has.
func (m *facetMatches) appendFirst(ctx context.Context, values []facetValue, candidates *roaring.Bitmap, limit int) ([]facetValue, error) {
	var ords []int
	m.count(candidates, limit)
	t, looked := turns.Of(ctx), 0
	take := func(ord, enough int) bool {
		if looked++; looked%clockValues == 0 {
			if t.Yield() != nil {
				return false
			}
			if m.counts.among != nil { // counting all is faster than so many lookups
				m.counts = countOrdinals(m.in.column, true, candidates, m.in.Rows())
			}
		}
		if m.counts.of(ord) > 0 {
			ords = append(ords, ord)
		}
		return len(ords) < enough
	}
	if limit > 0 {
		m.eachPlain(func(ord int) bool { return take(ord, limit) })
		slices.SortStableFunc(m.folded, func(a, b int) int { return cmp.Compare(m.folds.folded[a], m.folds.folded[b]) })
		enough := len(ords) + min(limit, len(m.folded))
		for _, i := range m.folded {
			if !take(int(m.folds.ords[i]), enough) {
				break
			}
		}
	}
	slices.Sort(ords)
	c := m.in.column
	for _, ord := range ords {
		values = append(values, facetValue{key: c.String(ord), shown: c.Original(ord), count: m.counts.of(ord), in: m.in, ord: ord, varies: c.Varies(ord)})
	}
	return values, ctx.Err()
}
