package search

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/internal/rank"
	"svc/internal/selection"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// facet is the distribution of one field.
type facet struct {
	name   string
	order  settings.FacetOrder
	values []facetValue
	stats  *aggregate.Figures // of its numbers; nil: none
}

// facetField is a field to count, with the order of its values.
type facetField struct {
	id    segment.FieldID
	name  string
	order settings.FacetOrder
}

// facetFields resolves the facets parameter: `*` means every filterable field, a name means that field and those below it, and a
// pattern with a star at an end means all filterable fields that it covers, if any. It omits fields that no document ever had. The
// order of values is that of the name in the parameter. code is the error code of the parameter.
func facetFields(v *index.View, names []string, code apierr.Code) ([]facetField, error) {
	if slices.Contains(names, "*") {
		names = []string{"*"}
	}
	asked := selection.NewCovering(names)
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
			place = asked.First(info.Name)
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

// isPattern reports whether a facet name stands for several: it has a star at an end.
func isPattern(name string) bool { return strings.HasPrefix(name, "*") || strings.HasSuffix(name, "*") }

// maxFacetPatterns limits the patterns among facets, because each is compared with every field.
const maxFacetPatterns = 100

// distribution counts the values of facets among the candidates. less, if not nil, are candidates found to be duplicates: their
// values do not count, but stay in the statistics. merged says that the counts are added to those of other instances.
func distribution(ctx context.Context, v *index.View, fields []facetField, found *rank.Result, less []*roaring.Bitmap, merged bool) ([]facet, error) {
	t, counts := turns.Of(ctx), candidateCounts{ctx: ctx, view: v, found: found}
	total := 0
	for i := range v.Segments {
		total += found.Count(i)
	}
	few := total-rows(less) <= fewCandidates
	facets := make([]facet, 0, len(fields))
	m := facetMemories.Get().(*facetMemory)
	defer m.release()
	for _, field := range fields {
		if err := t.Yield(); err != nil {
			return nil, err
		}
		f := facet{name: field.name, order: field.order}
		limit := v.Settings.Faceting.MaxValuesPerFacet
		if merged {
			limit = mergedLimit(field.order, limit)
		}
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

// count fills the counts for the rows. If the rows are the whole segment, the column has the counts.
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
