package search

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/index"
	"svc/internal/turns"
)

// facetSelection is what an answer shows of a facet: some of the values that its sources count, over all segments.
type facetSelection struct {
	view             *index.View
	field            facetField
	numbers, strings []*facetSource // by segment
	limit            int            // of values
	few              bool           // there are few candidates
	counts           *candidateCounts
	less             []*roaring.Bitmap // candidates that do not count; nil: none
	memory           *facetMemory
	err              error // of the turn; the selection is then unusable
}

// facetSelector picks the values of a selection. ok is false if another selector has to.
type facetSelector func(s *facetSelection) (values []facetValue, ok bool)

// values returns the values that are shown, in the order of the facet.
func (s *facetSelection) values() []facetValue {
	for _, pick := range orderOf(s.field.order).selectors {
		if values, ok := pick(s); ok {
			return values
		}
	}
	return nil
}

// sources returns the sources of the only kind of values, if there is only one.
func (s *facetSelection) sources() []*facetSource {
	if len(s.numbers) > 0 {
		return s.numbers
	}
	return s.strings
}

// lookalikes is for numbers and strings together: a number and a string may look alike.
func (s *facetSelection) lookalikes() ([]facetValue, bool) {
	if len(s.numbers) == 0 || len(firstValues(s.strings, 1)) == 0 {
		return nil, false
	}
	m := s.memory
	values := append(append(m.values[:0], firstValues(s.numbers, math.MaxInt)...), firstValues(s.strings, math.MaxInt)...)
	m.values = values
	m.used = max(m.used, len(values))
	if values, s.err = mergeLookalikes(turns.Of(s.counts.ctx), values, countBoth(s.view, s.field.id, s.rows)); s.err != nil {
		return nil, true
	}
	order := orderOf(s.field.order)
	if s.few && order.byValue {
		sortByText(values[:countNumbers(values)])
	}
	return slices.Clone(order.top(values, s.limit)), true
}

// rows returns the documents of a segment that count.
func (s *facetSelection) rows(seg int) *roaring.Bitmap {
	rows := s.counts.found.In(seg)
	if s.less != nil && s.less[seg] != nil {
		rows = roaring.AndNot(rows, s.less[seg])
	}
	return rows
}

// byText is for numbers with few candidates, which are listed by their shown texts.
func (s *facetSelection) byText() ([]facetValue, bool) {
	if len(s.numbers) == 0 || !s.few {
		return nil, false
	}
	return firstByText(s.numbers, s.limit), true
}

// repeated is for fields most of whose values have one document: see topMost.
func (s *facetSelection) repeated() ([]facetValue, bool) {
	if s.few {
		return nil, false
	}
	return topMost(s.view, s.field.id, s.sources(), s.limit)
}

// numbered is for many values in common between segments: see countedMost.
func (s *facetSelection) numbered() ([]facetValue, bool) {
	if s.few {
		return nil, false
	}
	return countedMost(s.view, s.field.id, s.sources(), s.limit)
}

func (s *facetSelection) mostFrequent() ([]facetValue, bool) {
	return mostFrequent(s.sources(), s.limit), true
}

// first walks values in their order. It caches the counts of the first ones.
func (s *facetSelection) first() ([]facetValue, bool) {
	sources := s.sources()
	values := firstValues(sources, s.limit)
	for _, source := range sources {
		s.counts.keepFirst(source)
	}
	return values, true
}
