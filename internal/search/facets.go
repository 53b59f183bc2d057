package search

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/internal/rank"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// facetValue is one value of a facet and how many candidates have it. The same
// value of several segments is one facetValue.
type facetValue struct {
	isNumber bool
	number   numeric.Value
	key      []byte // of a string: normalised
	shown    []byte // of a number: nil until it is known to be shown
	count    int

	in     *facetRows // of a string: where it stands; nil for numbers
	ord    int        // of a string: in its column
	varies bool       // candidates may spell it otherwise than shown
}

// facetRows are the documents of a segment whose values of a facet are counted.
type facetRows struct {
	segment.Live
	column  *segment.Column
	found   *rank.Result // whose candidates in the segment they are; nil: those of among
	segment int          // its place in the view
	among   *roaring.Bitmap
}

// rows returns them; nil: all.
func (r *facetRows) rows() *roaring.Bitmap {
	if r.found != nil {
		return r.found.In(r.segment)
	}
	return r.among
}

// count returns how many they are, where not all.
func (r *facetRows) count() int {
	if r.found != nil {
		return r.found.Count(r.segment)
	}
	return int(r.among.GetCardinality())
}

// facet is the distribution of one field.
type facet struct {
	name   string
	order  settings.FacetOrder
	values []facetValue
	stats  *aggregate.Figures // of its numbers; nil: it has none
}

// facetField is a field to count and the order its values come in.
type facetField struct {
	id    segment.FieldID
	name  string
	order settings.FacetOrder
}

// facetFields resolves the facets parameter: `*` is every filterable field,
// a name is that field and those below it, a pattern with a star at an end all filterable fields that it covers, if any. Fields that
// no document ever had are left out. The order of values is looked up under the name that was asked. code is that of the parameter.
func facetFields(v *index.View, names []string, code apierr.Code) ([]facetField, error) {
	if slices.Contains(names, "*") {
		names = []string{"*"}
	}
	asked := newCovering(names)
	var patterns []string
	for _, name := range names {
		if isPattern(name) {
			patterns = append(patterns, name)
		} else if info := v.Fields.InfoOf(name); !info.Filters() {
			return nil, apierr.New(code, "Attribute %q cannot be a facet. Add it to the index's filterable attributes first.", name)
		}
	}
	if len(patterns) > maxFacetPatterns {
		return nil, apierr.New(code, "There are %d patterns in `facets`: the limit is %d.", len(patterns), maxFacetPatterns)
	}
	var found []facetField
	for i := range v.Fields.Len() {
		id := segment.FieldID(i)
		info := v.Fields.Info(id)
		if !info.Filters() {
			continue
		}
		place := 0 // of what asks for the field
		if len(names) == 0 || names[0] != "*" {
			place = asked.first(info.Name)
		}
		switch {
		case place >= 0:
			found = append(found, facetField{id, info.Name, v.Settings.Faceting.Order(names[place])})
		case slices.ContainsFunc(patterns, func(p string) bool { return settings.Covers(p, info.Name) }):
			found = append(found, facetField{id, info.Name, v.Settings.Faceting.Order(info.Name)})
		}
	}
	slices.SortFunc(found, func(a, b facetField) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return found, nil
}

// isPattern reports whether a name of facets stands for several: it has a star at an end.
func isPattern(name string) bool { return strings.HasPrefix(name, "*") || strings.HasSuffix(name, "*") }

// maxFacetPatterns bounds the patterns among facets: each is compared with every field.
const maxFacetPatterns = 100

// distribution counts the values of facets among the candidates that were found. less, where it is not nil, are candidates that turned out
// to be duplicates: their values do not count, but stay within the statistics.
func distribution(ctx context.Context, v *index.View, fields []facetField, found *rank.Result, less []*roaring.Bitmap) ([]facet, error) {
	t, counts := turns.Of(ctx), candidateCounts{ctx: ctx, view: v, found: found}
	total := 0
	for i := range v.Segments {
		total += found.Count(i)
	}
	limit := v.Settings.Faceting.MaxValuesPerFacet
	few := total-rows(less) <= fewCandidates
	facets := make([]facet, 0, len(fields))
	m := facetMemories.Get().(*facetMemory)
	defer m.release()
	for _, field := range fields {
		if err := t.Yield(); err != nil {
			return nil, err
		}
		f := facet{name: field.name, order: field.order}
		var numbers, strings []*facetSource
		looked := !few && nearlyUnique(v, field.id, total, limit)
		first := 0
		if orderOf(field.order).byValue && less == nil && !hasNumbers(v, field.id) {
			first = limit
		}
		for i, s := range v.Segments {
			c := s.Column(field.id)
			if c == nil || found.Count(i) == 0 {
				continue
			}
			in := &facetRows{Live: s, column: c, found: found, segment: i}
			var duplicates *roaring.Bitmap
			if less != nil {
				duplicates = less[i]
			}
			if c.Numbers() > 0 {
				source := newFacetSource(&counts, field.id, in, false, looked, 0, duplicates)
				if low, high, ok := source.span(); ok {
					f.fold(low, high)
					numbers = append(numbers, source)
				}
			}
			if c.Strings() > 0 {
				strings = append(strings, newFacetSource(&counts, field.id, in, true, looked, first, duplicates))
			}
		}
		selection := facetSelection{view: v, field: field, numbers: numbers, strings: strings, limit: limit, few: few, counts: &counts, less: less, memory: m}
		if f.values = selection.values(); selection.err != nil {
			return nil, selection.err
		}
		for i := range f.values {
			f.values[i].showNumber()
			if err := f.values[i].spell(field); err != nil {
				return nil, err
			}
		}
		for _, s := range strings {
			s.all.first.release()
		}
		facets = append(facets, f)
	}
	return facets, nil
}

// hasNumbers reports whether any document has a number in a field.
func hasNumbers(v *index.View, field segment.FieldID) bool {
	for _, s := range v.Segments {
		if c := s.Column(field); c != nil && c.Numbers() > 0 {
			return true
		}
	}
	return false
}

// fold folds numbers into the statistics.
func (f *facet) fold(numbers ...numeric.Value) {
	if f.stats == nil {
		f.stats = aggregate.EndFigures()
	}
	f.stats.Fold(make([]uint32, len(numbers)), numbers, nil)
}

// columnCounts counts how many rows have each ordinal of a column.
type columnCounts struct {
	numbers, strings []uint32
	rows             []uint32
}

// count fills the counts for the rows. Where the rows are the whole segment
// the column knows them.
func (k *columnCounts) count(c *segment.Column, rows *roaring.Bitmap, segmentRows int) {
	k.numbers = resized(k.numbers, c.Numbers())
	k.strings = resized(k.strings, c.Strings())
	n := int(rows.GetCardinality())
	if n == segmentRows {
		for ord := range k.numbers {
			k.numbers[ord] = uint32(c.NumberCount(ord))
		}
		for ord := range k.strings {
			k.strings[ord] = uint32(c.StringCount(ord))
		}
		return
	}
	it := rows.ManyIterator()
	if k.rows == nil {
		k.rows = make([]uint32, 256)
	}
	for {
		got := it.NextMany(k.rows)
		if got == 0 {
			return
		}
		c.CountNumbers(k.numbers, k.rows[:got])
		c.CountStrings(k.strings, k.rows[:got])
	}
}

func resized(s []uint32, n int) []uint32 {
	if cap(s) < n {
		return make([]uint32, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// rows returns the documents that have a string.
func (v *facetValue) rows() *roaring.Bitmap {
	rows := roaring.New()
	v.in.column.AddStringRows(rows, v.ord, v.ord+1)
	if among := v.in.rows(); among != nil {
		rows.And(among)
	}
	return rows
}

// first returns the lowest document that has a string, the largest number there is where all of them are deleted.
func (v *facetValue) first() segment.DocID {
	rows := v.rows()
	if rows.IsEmpty() {
		return math.MaxUint32
	}
	return v.in.DocID(segment.Row(rows.Minimum()))
}

// compare orders numbers by their value, and after them strings by their normalised form.
func (v *facetValue) compare(o *facetValue) int {
	switch {
	case v.isNumber && o.isNumber:
		return v.number.Compare(o.number)
	case v.isNumber:
		return -1
	case o.isNumber:
		return 1
	}
	return bytes.Compare(v.key, o.key)
}

// showNumber makes the text of a number.
func (v *facetValue) showNumber() {
	if v.isNumber && v.shown == nil {
		v.shown = v.number.AppendText(nil)
	}
}

// facetMemory is what the values of facets are gathered in; it serves one search after the other.
type facetMemory struct {
	values, spare []facetValue
	used          int // values of them that may refer to a view
}

var facetMemories = sync.Pool{New: func() any { return new(facetMemory) }}

const maxKeptValues = 1 << 14

// release forgets all that belongs to the view: mapped memory may go away.
func (m *facetMemory) release() {
	if max(cap(m.values), cap(m.spare)) > maxKeptValues {
		return
	}
	clear(m.values[:min(m.used, cap(m.values))])
	clear(m.spare[:min(m.used, cap(m.spare))])
	m.used = 0
	facetMemories.Put(m)
}

// sortRuns sorts values that come in sorted runs, one a segment. The given list is overwritten; what is returned may be
// in the memory's spare list.
func (m *facetMemory) sortRuns(values []facetValue) []facetValue {
	var ends []int // of the runs
	for i := 1; i <= len(values); i++ {
		if i == len(values) || values[i-1].compare(&values[i]) > 0 {
			ends = append(ends, i)
		}
	}
	if len(ends) < 2 {
		return values
	}
	m.spare = slices.Grow(m.spare[:0], len(values))
	for spare := m.spare[:len(values)]; len(ends) > 1; values, spare = spare, values {
		begin, kept := 0, ends[:0]
		for k := 0; k < len(ends); k += 2 {
			middle, end := ends[k], ends[min(k+1, len(ends)-1)]
			mergeRuns(spare[begin:end], values[begin:middle], values[middle:end])
			begin, kept = end, append(kept, end)
		}
		ends = kept
	}
	return values
}

// mergeRuns merges two sorted lists into dst, which is as long as both; of equal values those of a come first.
func mergeRuns(dst, a, b []facetValue) {
	for i := range dst {
		if len(b) == 0 || len(a) > 0 && a[0].compare(&b[0]) <= 0 {
			dst[i], a = a[0], a[1:]
		} else {
			dst[i], b = b[0], b[1:]
		}
	}
}

// merge sums equal values of several segments, each of which gives them in order; the spelling of the
// lowest document is shown. The result is in order.
func (m *facetMemory) merge(values []facetValue) []facetValue {
	m.used = max(m.used, len(values))
	values = m.sortRuns(values)
	merged := values[:0]
	for from := 0; from < len(values); {
		to := from + 1
		for to < len(values) && values[to].compare(&values[from]) == 0 {
			to++
		}
		merged = append(merged, joined(values[from:to]))
		from = to
	}
	return merged
}

// joined makes one value of the same one of several segments: where they spell it in several ways, as the lowest document does.
func joined(same []facetValue) facetValue {
	value := same[0]
	differ := value.varies
	for i := range same[1:] {
		v := &same[1+i]
		value.count += v.count
		differ = differ || v.varies || !bytes.Equal(v.shown, value.shown)
	}
	if !differ || len(same) == 1 {
		return value
	}
	lowest := value.first()
	for i := range same[1:] {
		if v := &same[1+i]; v.first() < lowest {
			lowest = v.first()
			value.shown, value.in, value.ord, value.varies = v.shown, v.in, v.ord, v.varies
		}
	}
	return value
}

// What mergeLookalikes takes for a number, and after how many values it yields.
const (
	lookalikeBytes = 96
	lookalikeSteps = 1024
)

// mergeLookalikes makes a number and a string with the same text one value, the number: they would be the same member of the answer.
// both returns how many documents have both, which count once. The error is that of the turn, which yields
// behind each such pair, or that of its account.
func mergeLookalikes(turn turns.Turn, values []facetValue, both func(number, text *facetValue) int) ([]facetValue, error) {
	numbers := countNumbers(values)
	if numbers == 0 || numbers == len(values) {
		return values, nil
	}
	held := int64(numbers) * lookalikeBytes
	if err := turn.Account().Hold(held); err != nil {
		return nil, err
	}
	defer func() { _ = turn.Account().Hold(-held) }() // giving back does not fail
	var err error
	steps := 0
	step := func() {
		if steps++; err == nil && steps%lookalikeSteps == 0 {
			err = turn.Yield()
		}
	}
	byText := make(map[string]int, numbers)
	for i := range values[:numbers] {
		if step(); err != nil {
			return nil, err
		}
		values[i].showNumber()
		byText[string(values[i].shown)] = i
	}
	values = slices.DeleteFunc(values, func(v facetValue) bool {
		if step(); err != nil || v.isNumber {
			return false
		}
		i, alike := byText[string(v.key)]
		if !alike {
			return false
		}
		values[i].count += v.count - both(&values[i], &v)
		err = turn.Yield()
		return true
	})
	return values, err
}

// countBoth returns a function that counts those of some documents of each segment that have both a number and a string in a field. It asks
// for the documents of a segment once, and only if values of the segment can be alike.
func countBoth(v *index.View, field segment.FieldID, rows func(seg int) *roaring.Bitmap) func(number, text *facetValue) int {
	type mixed struct {
		*segment.Column
		segment int
		among   *roaring.Bitmap // nil: not asked for yet
	}
	var columns []mixed // with numbers and strings
	for i, s := range v.Segments {
		if c := s.Column(field); c != nil && c.Numbers() > 0 && c.Strings() > 0 {
			columns = append(columns, mixed{Column: c, segment: i})
		}
	}
	return func(number, text *facetValue) (n int) {
		for i := range columns {
			c := &columns[i]
			of := c.SearchNumber(number.number)
			if of == c.Numbers() || c.Number(of) != number.number {
				continue
			}
			ord := c.SearchString(text.key)
			if ord == c.Strings() || !bytes.Equal(c.String(ord), text.key) {
				continue
			}
			if c.among == nil {
				c.among = rows(c.segment)
			}
			with := roaring.New()
			c.AddStringRowsAmong(with, ord, c.among)
			n += c.CountNumberRows(of, with)
		}
		return n
	}
}

// countNumbers counts the numbers, which come before strings.
func countNumbers(values []facetValue) int {
	n := 0
	for n < len(values) && values[n].isNumber {
		n++
	}
	return n
}

// fewCandidates is up to how many candidates numbers are listed as the texts that they are shown as, where values are
// not listed by count. With more, they are listed by value. Clients see it where maxValuesPerFacet cuts a list off.
// (A variable, so that tests can lower it.)
var fewCandidates = 3000

// rows counts the rows of all segments; nil has none.
func rows(segments []*roaring.Bitmap) int {
	n := 0
	for _, b := range segments {
		if b != nil {
			n += int(b.GetCardinality())
		}
	}
	return n
}

// sortByText orders numbers by how they are shown.
func sortByText(values []facetValue) {
	for i := range values {
		values[i].showNumber()
	}
	slices.SortFunc(values, func(a, b facetValue) int { return bytes.Compare(a.shown, b.shown) })
}

func (v *facetValue) text() []byte {
	if v.isNumber {
		return v.shown
	}
	return v.key
}

// topValues keeps limit values of a list: those with the largest counts, and of equal counts the first.
func topValues(values []facetValue, limit int) []facetValue {
	var top []int // a heap of the places of the best so far, the worst of them first
	compare := func(i, j int) int { return cmp.Or(cmp.Compare(values[i].count, values[j].count), cmp.Compare(j, i)) }
	worse := func(i, j int) bool { return compare(i, j) < 0 }
	for i := range values {
		if len(top) < limit || limit > 0 && worse(top[0], i) {
			top = keepBest(top, limit, i, worse)
		}
	}
	slices.SortFunc(top, func(i, j int) int { return compare(j, i) })
	kept := make([]facetValue, len(top))
	for i, at := range top {
		kept[i] = values[at]
	}
	return kept
}

// appendDistribution appends the members facetDistribution and facetStats of a response.
func appendDistribution(dst []byte, facets []facet) []byte {
	dst = appendCounts(append(dst, `,"facetDistribution":`...), facets)
	return appendStats(append(dst, `,"facetStats":`...), facets)
}

// appendCounts appends the object with the counts of values by facet.
func appendCounts(dst []byte, facets []facet) []byte {
	dst = append(dst, '{')
	for i, f := range facets {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendQuoted(dst, f.name)
		dst = append(dst, ':', '{')
		for j, v := range f.values {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = jsontext.AppendQuoted(dst, v.shown)
			dst = append(dst, ':')
			dst = strconv.AppendInt(dst, int64(v.count), 10)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendStats appends the object with the statistics of numbers by facet.
func appendStats(dst []byte, facets []facet) []byte {
	dst = append(dst, '{')
	first := true
	for _, f := range facets {
		if f.stats == nil {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = jsontext.AppendQuoted(dst, f.name)
		dst = f.stats.AppendJSON(append(dst, ':'), 0)
	}
	return append(dst, '}')
}
