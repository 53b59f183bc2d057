package search

import (
	"encoding/binary"
	"slices"

	"svc/internal/aggregate"
	"svc/internal/resultcache"
	"svc/segment"
)

// byNumber is mostFrequent by the numbers of values, for many of them. It returns false if that is not faster.
//
// Among equal counts the spelling decides. Most values are spelt like their normalised form: among these the last in the order of the
// columns are the last. All others are read.
func (m *matchedValues) byNumber() ([]facetValue, bool, error) {
	size, values, respelt := 0, 0, 0
	for _, of := range m.found {
		size += of.size()
	}
	if size < fewValues {
		return nil, false, nil
	}
	for _, c := range m.all.columns {
		values += c.in.column.Strings()
		respelt += len(respeltOf(c.in.column, m.field.id, m.view.Cache.OfFile(c.segment)))
	}
	if values > size*matchedShare || respelt*respeltShare > size {
		return nil, false, nil
	}
	sources := make([]*facetSource, len(m.all.columns))
	only := make([]*facetMatches, len(m.all.columns))
	for i, c := range m.all.columns {
		only[i] = &facetMatches{in: c.in, segment: c.segment, counts: ordinalCounts{Ordinals: aggregate.Ordinals{Strings: true, Column: c.in.column}}, folds: new(foldedValues)}
		for _, of := range m.found {
			if of.segment == c.segment {
				only[i] = of
			}
		}
		sources[i] = &facetSource{in: c.in, segment: c.segment, all: only[i].counts, size: c.in.column.Strings()}
	}
	c := newNumberedCounts(m.view, m.field.id, sources, only)
	least, more := c.leastOf(m.limit)
	best := make([]counted, 0, min(m.limit, len(c.counts)))
	add := func(s *facetSource, ord, count int) {
		best = append(best, counted{count: count, seen: len(best), source: s, ord: ord})
	}
	c.each(least+1, add)
	if least > 0 {
		for _, s := range sources {
			for _, ord := range respeltOf(s.in.column, m.field.id, m.view.Cache.OfFile(s.segment)) {
				if number := c.of.Of(s.segment, ord); int(c.counts[number]) == least {
					c.counts[number] = 0
					add(s, int(ord), least)
				}
			}
		}
	}
	for _, last := range c.endOf(least, m.limit-more, true) {
		add(last.source, last.ord, least)
	}
	top := (&topList{heap: best}).values(sources)
	for i := range top {
		m.all.find(&top[i])
		if err := top[i].spell(m.field); err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(top, beforeByCount)
	return top[:min(len(top), m.limit)], true, nil
}

// matchedShare is the share of a field's values that has to match for clearing a count per value to be faster than comparing the
// matching values. (A variable, so that tests can raise it.)
var matchedShare = 8

// respeltShare is the share of values with other spellings up to which reading these is faster than reading all values. (A variable,
// so that tests can lower it.)
var respeltShare = 16

// respeltOrdinals are kept with a segment under a field.
var respeltOrdinals = resultcache.NewKind[[]uint32]("values of a field with several spellings")

// respeltOf returns the strings of a column that rows may spell differently from their normalised form, ascending. They are cached
// with the segment.
func respeltOf(c *segment.Column, field segment.FieldID, scope *resultcache.Scope) []uint32 {
	key := binary.LittleEndian.AppendUint16(nil, uint16(field))
	if scope != nil {
		if kept, ok := respeltOrdinals.Get(scope, key); ok {
			return kept
		}
	}
	ords := []uint32{}
	for ord := range c.Strings() {
		if c.Respelt(ord) {
			ords = append(ords, uint32(ord))
		}
	}
	if ords = slices.Clip(ords); scope != nil {
		respeltOrdinals.Put(scope, key, ords, 4*len(ords)+64)
	}
	return ords
}
