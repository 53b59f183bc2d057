package search

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/index"
	"svc/internal/turns"
)

// matchedValues are the strings of a facet that a facet search matched, by segment.
type matchedValues struct {
	view       *index.View
	field      facetField
	found      []*facetMatches
	candidates []*roaring.Bitmap // of each of found
	query      *facetQuery       // nil: none
	limit      int               // of values
	all        *lowestSpellings
}

// merged returns the first values of each segment, limit of each at most, in the order of values.
func (m *matchedValues) merged(ctx context.Context, limit int) (values []facetValue, err error) {
	for i, of := range m.found {
		if values, err = of.appendFirst(ctx, values, m.candidates[i], limit); err != nil {
			return nil, err
		}
	}
	return new(facetMemory).merge(values), nil
}

// first returns the first values in their order, spelled as documents have them.
func (m *matchedValues) first(ctx context.Context) ([]facetValue, error) {
	values, err := m.merged(ctx, m.limit)
	if err != nil {
		return nil, err
	}
	if m.query != nil { // values found by their folded forms are sorted by these
		sortByFold(values, m.query.locales)
	}
	values = firstOfValues(values, m.limit)
	turn := turns.Of(ctx)
	for i := range values {
		m.all.find(&values[i])
		if err := cmp.Or(turn.Yield(), values[i].spell(m.field)); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// mostFrequent returns the values that most candidates have, the most frequent first and among equal counts those that are spelt last.
func (m *matchedValues) mostFrequent(ctx context.Context) ([]facetValue, error) {
	if m.limit == 0 || len(m.found) == 0 {
		return nil, nil
	}
	size, counting := 0, 0
	for i, of := range m.found {
		of.count(m.candidates[i], math.MaxInt)
		size += of.size()
		counting += int(m.candidates[i].GetCardinality())
	}
	if values, ok, err := m.byNumber(); ok || err != nil {
		return values, err
	}
	// If there are many values, those without candidates in a segment are also walked, for their spelling; a few are looked up.
	w := matchWalk{everywhere: m.all.some && counting >= size/manyPerSpelt, ords: make([][]int, len(m.found))}
	var best []facetValue // a heap, the last of them on top
	t, looked := turns.Of(ctx), 0
	var parts []facetValue
	for q := newSourceQueue(w.open(m.found), w.down, true); ; {
		same := q.next()
		if len(same) == 0 {
			break
		}
		if looked++; looked%clockValues == 0 {
			if err := t.Yield(); err != nil {
				return nil, err
			}
		}
		n := 0
		for _, s := range same {
			n += s.count(s.at)
		}
		full := len(best) == m.limit
		if n == 0 || full && n < best[0].count {
			continue
		}
		parts = parts[:0]
		for _, s := range same {
			parts = append(parts, s.value())
		}
		// Among equal counts the spelling decides.
		if w.everywhere {
			parts = m.all.appendIdle(parts)
		}
		value := joined(parts)
		if !w.everywhere {
			m.all.find(&value)
		}
		if err := value.spell(m.field); err != nil {
			return nil, err
		}
		if !full || beforeByCount(value, best[0]) < 0 {
			best = keepBest(best, m.limit, value, behindByCount)
		}
	}
	slices.SortFunc(best, beforeByCount)
	return best, nil
}

// matchWalk walks the matched values of each segment, the last ones first.
type matchWalk struct {
	everywhere bool    // also values that no candidate has
	ords       [][]int // by facetSource.segment: the ordinals to come, ascending
}

// open returns a source of each segment that has a value, at its last one.
func (w *matchWalk) open(found []*facetMatches) (sources []*facetSource) {
	for i, m := range found {
		looked := *m
		if w.everywhere {
			looked.counts = ordinalCounts{Ordinals: aggregate.Ordinals{Inverse: true}} // inverse: no value is known to have no candidate
		}
		looked.each(func(ord int) { w.ords[i] = append(w.ords[i], ord) })
		if len(m.folded) > 0 {
			slices.Sort(w.ords[i])
		}
		s := &facetSource{in: m.in, segment: i, all: m.counts, size: m.in.column.Strings()}
		if w.down(s) {
			sources = append(sources, s)
		}
	}
	return sources
}

// down moves a source to its next value. It returns false if there is none.
func (w *matchWalk) down(s *facetSource) bool {
	list := w.ords[s.segment]
	for len(list) > 0 {
		s.at, list = list[len(list)-1], list[:len(list)-1]
		if w.everywhere || s.count(s.at) > 0 {
			w.ords[s.segment] = list
			return s.load()
		}
	}
	w.ords[s.segment] = nil
	return false
}

// withNumbers merges the values with the numbers that a facet search has found, and returns the first ones in order. both is that of
// mergeLookalikes.
func (m *matchedValues) withNumbers(ctx context.Context, numbers []countedNumber, both func(number, text *facetValue) int) ([]facetValue, error) {
	strings, err := m.merged(ctx, math.MaxInt32) // all are looked at: one may look like a number
	if err != nil {
		return nil, err
	}
	values := make([]facetValue, 0, len(numbers)+len(strings))
	for _, n := range numbers {
		text := n.number.AppendText(nil)
		values = append(values, facetValue{isNumber: true, number: n.number, count: n.count, key: text, shown: text})
	}
	if values, err = mergeLookalikes(turns.Of(ctx), append(values, strings...), both); err != nil {
		return nil, err
	}
	order := orderOf(m.field.order)
	if order.spelt {
		if err := m.spell(values); err != nil {
			return nil, err
		}
	}
	order.arrange(values, m.query)
	values = values[:min(len(values), m.limit)]
	if order.spelt {
		return values, nil
	}
	return values, m.spell(values)
}

// spell spells the strings among values as documents have them.
func (m *matchedValues) spell(values []facetValue) error {
	for i := range values {
		if v := &values[i]; !v.isNumber {
			m.all.find(v)
			if err := v.spell(m.field); err != nil {
				return err
			}
		}
	}
	return nil
}

// beforeByCount orders values with known spellings: the most frequent first, among equal counts those that are spelt last.
func beforeByCount(a, b facetValue) int {
	return cmp.Or(cmp.Compare(b.count, a.count), bytes.Compare(b.shown, a.shown))
}

func behindByCount(a, b facetValue) bool { return beforeByCount(a, b) > 0 }
