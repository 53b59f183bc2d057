package search

import (
	"cmp"
	"slices"

	"svc/internal/index"
	"svc/internal/numbering"
	"svc/segment"
)

// If a facet has many values in common between segments, comparing them to add up their counts is slow. With their numbers (package
// numbering), counts are added up in an array, and only the values with the largest counts are read.

// countedMost is mostFrequent by the numbers of values. It returns false if that is not faster, or if there are no numbers.
func countedMost(v *index.View, field segment.FieldID, sources []*facetSource, limit int) ([]facetValue, bool) {
	size := 0
	for _, s := range sources {
		size += s.size
	}
	if len(sources) < 2 || size < fewValues || limit == 0 {
		return nil, false
	}
	c := newNumberedCounts(v, field, sources, nil)
	least, more := c.leastOf(limit)
	best := make([]counted, 0, min(limit, len(c.counts)))
	c.each(least+1, func(s *facetSource, ord, count int) { best = append(best, counted{count: count, source: s, ord: ord}) })
	best = append(best, c.endOf(least, limit-more, false)...)
	slices.SortFunc(best, func(a, b counted) int { return cmp.Or(cmp.Compare(b.count, a.count), compareCounted(a, b)) })
	for i := range best {
		best[i].seen = i
	}
	return (&topList{heap: best}).values(sources), true
}

// compareCounted orders values as columns do.
func compareCounted(a, b counted) int {
	x, y := *a.source, *b.source
	x.at, y.at = a.ord, b.ord
	x.load()
	y.load()
	return x.compare(&y)
}

// numberedCounts are the counts of a field's values, by number.
type numberedCounts struct {
	sources []*facetSource
	only    []*facetMatches // by source: the values to count; nil: all
	of      *numbering.Numbers
	counts  []uint32
}

// newNumberedCounts adds up the counts of all segments in one array, by the numbers of package numbering.
func newNumberedCounts(v *index.View, field segment.FieldID, sources []*facetSource, only []*facetMatches) *numberedCounts {
	columns := make([]numbering.Column, len(v.Segments))
	for i, s := range v.Segments {
		columns[i] = numbering.Column{Column: s.Column(field), Scope: v.Cache.OfFile(i)}
	}
	c := &numberedCounts{sources: sources, only: only, of: numbering.New(columns, field, sources[0].all.Strings, v.Cache.Own())}
	c.counts = make([]uint32, c.of.Count)
	for i, s := range sources {
		s.countAll()
		c.eachOrdinal(i, func(ord int, number uint32) { c.counts[number] += uint32(s.count(ord)) })
	}
	return c
}

// countAll counts in advance what would be counted on demand.
func (s *facetSource) countAll() {
	for _, k := range []*ordinalCounts{&s.all, s.less} {
		if k != nil && k.among != nil {
			*k = countOrdinals(k.Column, k.Strings, k.among, s.in.Rows())
		}
	}
}

// eachOrdinal calls f for the ordinals of a source that some document may have, in any order.
func (c *numberedCounts) eachOrdinal(source int, f func(ord int, number uint32)) {
	s := c.sources[source]
	if c.only != nil {
		c.only[source].each(func(ord int) { f(ord, c.of.Of(s.segment, uint32(ord))) })
		return
	}
	if s.all.listed() {
		for _, ord := range s.all.Have {
			f(int(ord), c.of.Of(s.segment, ord))
		}
		return
	}
	ord := 0
	for _, chunk := range c.of.Chunks(s.segment) {
		for _, number := range chunk {
			f(ord, number)
			ord++
		}
	}
}

// leastOf returns the count of the last of the limit most frequent values, and how many have a larger one. It is 0 if there are no
// more values.
func (c *numberedCounts) leastOf(limit int) (least, more int) {
	top := make([]uint32, 0, min(limit, len(c.counts))) // a heap, the least first
	for _, n := range c.counts {
		if n > 0 && (len(top) < limit || n > top[0]) {
			top = keepBest(top, limit, n, func(a, b uint32) bool { return a < b })
		}
	}
	if len(top) < limit {
		return 0, len(top)
	}
	for _, n := range top {
		if n > top[0] {
			more++
		}
	}
	return int(top[0]), more
}

// each calls f for each value with a count of at least least, once, and sets the counts to 0.
func (c *numberedCounts) each(least int, f func(s *facetSource, ord, count int)) {
	for i, s := range c.sources {
		c.eachOrdinal(i, func(ord int, number uint32) {
			if n := int(c.counts[number]); n >= least && n > 0 {
				c.counts[number] = 0
				f(s, ord, n)
			}
		})
	}
}

// endOf returns the first, or last, limit of the values with a count.
func (c *numberedCounts) endOf(count, limit int, last bool) []counted {
	if count == 0 || limit == 0 {
		return nil
	}
	all := 0
	for _, n := range c.counts {
		if int(n) == count {
			all++
		}
	}
	if all == 0 {
		return nil
	}
	// If they are many, the wanted ones are near that end of all values.
	if len(c.counts)/all*limit < all {
		return c.walkFromEnd(count, limit, last)
	}
	return c.gatherEnd(count, limit, last)
}

// gatherEnd is endOf by looking at each of the values.
func (c *numberedCounts) gatherEnd(count, limit int, last bool) []counted {
	behind := func(a, b counted) bool {
		if last {
			a, b = b, a
		}
		return compareCounted(a, b) > 0
	}
	end := make([]counted, 0, min(limit, len(c.counts))) // a heap, the furthest from the end on top
	c.each(count, func(s *facetSource, ord, n int) {
		if v := (counted{count: n, source: s, ord: ord}); len(end) < limit || behind(end[0], v) {
			end = keepBest(end, limit, v, behind)
		}
	})
	return end
}

// walkFromEnd is endOf by the order of the values.
func (c *numberedCounts) walkFromEnd(count, limit int, last bool) (end []counted) {
	step := func(s *facetSource) bool {
		for {
			if last {
				s.at = s.all.down(s.at - 1)
			} else {
				s.at = s.all.up(s.at + 1)
			}
			if uint(s.at) >= uint(s.size) {
				return false
			}
			if int(c.counts[c.of.Of(s.segment, uint32(s.at))]) == count {
				return s.load()
			}
		}
	}
	var open []*facetSource
	for _, s := range c.sources {
		if s.at = -1; last {
			s.at = s.size
		}
		if step(s) {
			open = append(open, s)
		}
	}
	for q := newSourceQueue(open, step, last); len(end) < limit; {
		same := q.next()
		if len(same) == 0 {
			break
		}
		end = append(end, counted{count: count, source: same[0], ord: same[0].at})
	}
	return end
}
