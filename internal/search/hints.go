package search

import (
	"bytes"
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/turns"
	"svc/segment"
)

// FilterHint names a field that filters may use, with some of its values.
type FilterHint struct {
	Field  string
	Values []string // the most frequent first; among equal ones the lower first
}

const (
	hintedFields   = 100
	hintedValues   = 10
	maxHintedValue = 100 // bytes
)

// FilterHints returns fields and values for filters on the view, counting only the documents that f, which may be nil, allows. Their
// number is limited to fit a prompt. Errors are *apierr.Error or the context's.
func FilterHints(ctx context.Context, v *index.View, f *filter.Expr, contains bool, foreign *Foreign) ([]FilterHint, error) {
	rows, err := universe(ctx, v, f, filtering{code: "invalid_search_filter", contains: contains, foreign: foreign})
	if err != nil {
		return nil, err
	}
	fields, err := facetFields(v, []string{"*"}, "invalid_search_facets")
	if err != nil {
		return nil, err
	}
	var hints []FilterHint
	for _, field := range fields[:min(len(fields), hintedFields)] {
		values, err := frequent(ctx, v, field.id, rows)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			hints = append(hints, FilterHint{field.name, values})
		}
	}
	return hints, nil
}

// frequentValue is a value and how many rows have it.
type frequentValue struct {
	text  string
	count uint32
}

// frequentValues are the values with the highest counts, in that order. Among equal counts the first added is first.
type frequentValues []frequentValue

// add adds a value unless enough others are more frequent. It calls text only if it adds the value.
func (f *frequentValues) add(count uint32, text func() string) {
	best := *f
	at := len(best)
	for at > 0 && best[at-1].count < count {
		at--
	}
	if count == 0 || at == hintedValues {
		return
	}
	shown := text()
	if len(shown) > maxHintedValue {
		return
	}
	if len(best) < hintedValues {
		best = append(best, frequentValue{})
	}
	copy(best[at+1:], best[at:])
	best[at] = frequentValue{shown, count}
	*f = best
}

// countedColumn is the column of a segment, on the way through its values.
type countedColumn struct {
	*segment.Column
	counts columnCounts
	next   int // ordinal
}

// columnValues are the numbers of columns, or their strings: each column has them in order, by ordinal.
type columnValues struct {
	size    func(*segment.Column) int
	compare func(a *segment.Column, i int, b *segment.Column, j int) int
	counts  func(*columnCounts) []uint32
	text    func(c *segment.Column, ord int) string
}

var (
	numberValues = columnValues{
		(*segment.Column).Numbers,
		func(a *segment.Column, i int, b *segment.Column, j int) int {
			return a.Number(i).Compare(b.Number(j))
		},
		func(k *columnCounts) []uint32 { return k.numbers },
		func(c *segment.Column, ord int) string { return string(c.Number(ord).AppendText(nil)) },
	}
	stringValues = columnValues{
		(*segment.Column).Strings,
		func(a *segment.Column, i int, b *segment.Column, j int) int {
			return bytes.Compare(a.String(i), b.String(j))
		},
		func(k *columnCounts) []uint32 { return k.strings },
		func(c *segment.Column, ord int) string { return string(c.Original(ord)) },
	}
)

// frequent returns the values of a field that most of the rows have. There may be millions of values: it walks those of all segments
// in order, sums their counts, and keeps the best.
func frequent(ctx context.Context, v *index.View, id segment.FieldID, rows []*roaring.Bitmap) ([]string, error) {
	var columns []*countedColumn
	for i, s := range v.Segments {
		if c := s.Column(id); c != nil && !rows[i].IsEmpty() {
			k := &countedColumn{Column: c}
			k.counts.count(c, rows[i], s.Rows())
			columns = append(columns, k)
		}
	}
	t := turns.Of(ctx)
	var best frequentValues
	for _, values := range [...]columnValues{numberValues, stringValues} {
		for _, c := range columns {
			c.next = 0
		}
		for n := 1; ; n++ {
			if n%clockValues == 0 {
				if err := t.Yield(); err != nil {
					return nil, err
				}
			}
			var least *countedColumn
			for _, c := range columns {
				if c.next < values.size(c.Column) && (least == nil || values.compare(c.Column, c.next, least.Column, least.next) < 0) {
					least = c
				}
			}
			if least == nil {
				break
			}
			at, count := least.next, uint32(0)
			for _, c := range columns {
				if c.next < values.size(c.Column) && (c == least || values.compare(c.Column, c.next, least.Column, at) == 0) {
					count += values.counts(&c.counts)[c.next]
					c.next++
				}
			}
			best.add(count, func() string { return values.text(least.Column, at) })
		}
	}
	texts := make([]string, len(best))
	for i, b := range best {
		texts[i] = b.text
	}
	return texts, nil
}
