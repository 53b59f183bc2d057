package search

import (
	"bytes"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/numeric"
	"svc/segment"
)

// A facet may have about as many values as there are documents, and a page shows a hundred of them. If values are listed in their
// order, the segments' lists are walked until enough are found. If they are listed by count, all are counted, but only the best are
// read.

// ordinalCounts are the counts of a column's ordinals. Some are computed on demand.
type ordinalCounts struct {
	aggregate.Ordinals
	among *roaring.Bitmap // ordinals are counted on demand; else nil
	first *firstCounts    // cached counts of the first ordinals; else nil
}

// countOrdinals counts some documents of a segment.
func countOrdinals(c *segment.Column, strings bool, among *roaring.Bitmap, segmentRows int) ordinalCounts {
	return ordinalCounts{Ordinals: aggregate.CountOrdinals(c, strings, among, segmentRows)}
}

// of returns the count of an ordinal.
func (k *ordinalCounts) of(ord int) int {
	switch {
	case k.first != nil:
		return k.first.of(ord)
	case k.among == nil:
		return k.Of(ord)
	case k.Strings:
		return k.Column.CountStringRows(ord, k.among)
	}
	return k.Column.CountNumberRows(ord, k.among)
}

// listed reports whether no ordinals count but those in Have.
func (k *ordinalCounts) listed() bool { return k.Listed() && k.among == nil && k.first == nil }

// up returns the first ordinal from ord on that some document may have.
func (k *ordinalCounts) up(ord int) int {
	if !k.listed() {
		return ord
	}
	return k.Up(ord)
}

// down returns the last ordinal up to ord that some document may have, or −1.
func (k *ordinalCounts) down(ord int) int {
	if !k.listed() {
		return ord
	}
	return k.Down(ord)
}

// facetSource is a segment whose values are counted, as numbers or as strings.
type facetSource struct {
	in      *facetRows
	segment int            // its place in the view
	all     ordinalCounts  // of the candidates
	less    *ordinalCounts // of candidates that do not count; nil: none
	size    int            // ordinals
	at      int            // current ordinal of a walk
	number  numeric.Value  // its value
	key     []byte
}

// newFacetSource counts in advance or, if only a few values are needed, each on demand. first is how many values are needed if these
// are the first; 0: any may be.
func newFacetSource(counts *candidateCounts, field segment.FieldID, in *facetRows, strings, looked bool, first int, less *roaring.Bitmap) *facetSource {
	s := &facetSource{in: in, segment: in.segment, size: in.column.Numbers()}
	if strings {
		s.size = in.column.Strings()
	}
	count := countOrdinals
	if looked {
		count = lookOrdinalsUp
		s.all = count(in.column, strings, in.rows(), in.Rows())
	} else {
		s.all = counts.count(field, in, strings, first)
	}
	if less != nil && !less.IsEmpty() {
		k := count(in.column, strings, less, in.Rows())
		s.less = &k
	}
	return s
}

// lookOrdinalsUp is countOrdinals for a few ordinals.
func lookOrdinalsUp(c *segment.Column, strings bool, among *roaring.Bitmap, segmentRows int) ordinalCounts {
	if among.GetCardinality() == uint64(segmentRows) {
		among = nil
	}
	return ordinalCounts{Ordinals: aggregate.Ordinals{Strings: strings, Column: c, Inverse: among == nil}, among: among}
}

// count returns how many documents have an ordinal.
func (s *facetSource) count(ord int) int {
	n := s.all.of(ord)
	if s.less != nil {
		n -= s.less.of(ord)
	}
	return n
}

// span returns the smallest and the largest number of a candidate.
func (s *facetSource) span() (low, high numeric.Value, ok bool) {
	for ord := s.all.up(0); ord < s.size; ord = s.all.up(ord + 1) {
		if s.all.of(ord) > 0 {
			low, ok = s.in.column.Number(ord), true
			break
		}
	}
	for ord := s.all.down(s.size - 1); ord >= 0 && ok; ord = s.all.down(ord - 1) {
		if s.all.of(ord) > 0 {
			return low, s.in.column.Number(ord), true
		}
	}
	return low, low, false
}

// load reads the value at the current ordinal. ok is false if there is none.
func (s *facetSource) load() bool {
	switch {
	case uint(s.at) >= uint(s.size):
		return false
	case s.all.Strings:
		s.key = s.in.column.String(s.at)
	default:
		s.number = s.in.column.Number(s.at)
	}
	return true
}

// compare orders the values that two sources have come to.
func (s *facetSource) compare(o *facetSource) int {
	if s.all.Strings {
		return bytes.Compare(s.key, o.key)
	}
	return s.number.Compare(o.number)
}

// search returns the first ordinal whose value is not below the current value of o.
func (s *facetSource) search(o *facetSource) int {
	if s.all.Strings {
		return s.in.column.SearchString(o.key)
	}
	return s.in.column.SearchNumber(o.number)
}

// value returns the facet value of the ordinal at.
func (s *facetSource) value() facetValue {
	n := s.count(s.at)
	if !s.all.Strings {
		return facetValue{isNumber: true, number: s.number, count: n}
	}
	c := s.in.column
	return facetValue{key: s.key, shown: c.Original(s.at), count: n, in: s.in, ord: s.at, varies: c.Varies(s.at)}
}

// rise moves to the first ordinal from ord on that a document has, and reports whether there is one.
func (s *facetSource) rise(ord int) bool {
	for s.at = s.all.up(ord); s.at < s.size && s.count(s.at) == 0; {
		s.at = s.all.up(s.at + 1)
	}
	return s.load()
}

// most returns how many values a document may have at most.
func (s *facetSource) most() int {
	if s.all.listed() {
		return len(s.all.Have)
	}
	return s.size
}

// pageValues is the initial capacity for values of a facet: most pages have no more.
const pageValues = 100

// firstValues returns the first limit values, in their order, that some document has.
func firstValues(sources []*facetSource, limit int) []facetValue {
	size := 0
	for _, s := range sources {
		size += s.most()
	}
	return appendRising(make([]facetValue, 0, min(limit, size, pageValues)), sources, limit, func([]*facetSource) bool { return true })
}

// counted is a value on its way to the most frequent ones.
type counted struct {
	count  int
	seen   int // when, counted from the first value on
	source *facetSource
	ord    int
}

// before reports whether a value is listed before another: by count, then in their order.
func (c counted) before(o counted) bool {
	return c.count > o.count || c.count == o.count && c.seen < o.seen
}

// mostFrequent returns the limit values with the largest counts; among equal counts, the first ones in their order.
//
// It walks the values in order. Within a run of values of a single segment, without values of others in between, it does not read the
// values, and skips those with a count no larger than the least of the best so far.
func mostFrequent(sources []*facetSource, limit int) []facetValue {
	best := topList{limit: limit}
	var open []*facetSource
	for _, s := range sources {
		if s.at = s.all.up(0); s.load() {
			open = append(open, s)
		}
	}
	for len(open) > 0 && limit > 0 {
		first := open[0]
		for _, s := range open[1:] {
			if s.compare(first) < 0 {
				first = s
			}
		}
		var next *facetSource // with the smallest value of the others
		sum := 0
		for _, s := range open {
			if s != first && (next == nil || s.compare(next) < 0) {
				next = s
			}
		}
		switch {
		case next != nil && next.compare(first) == 0:
			key := *first
			for _, s := range open {
				if s.compare(&key) == 0 {
					sum += s.count(s.at)
				}
			}
			best.add(sum, first, first.at)
			for _, s := range slices.Clone(open) {
				if s.compare(&key) == 0 {
					if s.at = s.all.up(s.at + 1); !s.load() {
						open = slices.DeleteFunc(open, func(o *facetSource) bool { return o == s })
					}
				}
			}
		default:
			end := first.size
			if next != nil {
				end = first.search(next)
			}
			ord := first.at
			for ; ord < end; ord = first.all.up(ord + 1) {
				best.add(first.count(ord), first, ord)
			}
			if first.at = ord; !first.load() {
				open = slices.DeleteFunc(open, func(o *facetSource) bool { return o == first })
			}
		}
	}
	return best.values(sources)
}

// topList is a heap of the best values so far, the worst of them on top.
type topList struct {
	limit int
	seen  int
	heap  []counted
}

func (t *topList) add(count int, s *facetSource, ord int) {
	t.seen++
	if count == 0 || len(t.heap) == t.limit && count <= t.heap[0].count {
		return
	}
	c := counted{count, t.seen, s, ord}
	t.heap = keepBest(t.heap, t.limit, c, func(a, b counted) bool { return b.before(a) })
}

// keepBest adds a value to a heap of the best, the worst of them on top. If the heap is full, the value replaces that one.
func keepBest[T any](heap []T, limit int, value T, worse func(a, b T) bool) []T {
	if len(heap) < limit {
		heap = append(heap, value)
		for at := len(heap) - 1; at > 0 && worse(heap[at], heap[(at-1)/2]); at = (at - 1) / 2 {
			heap[at], heap[(at-1)/2] = heap[(at-1)/2], heap[at]
		}
		return heap
	}
	heap[0] = value
	for at := 0; 2*at+1 < len(heap); {
		worst := 2*at + 1
		if worst+1 < len(heap) && worse(heap[worst+1], heap[worst]) {
			worst++
		}
		if !worse(heap[worst], heap[at]) {
			break
		}
		heap[at], heap[worst] = heap[worst], heap[at]
		at = worst
	}
	return heap
}

// sorted returns the best, the most frequent first.
func (t *topList) sorted() []counted {
	slices.SortFunc(t.heap, func(a, b counted) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return t.heap
}

// values returns the best values, the most frequent first.
func (t *topList) values(sources []*facetSource) []facetValue {
	values := make([]facetValue, 0, len(t.heap))
	var parts []facetValue
	for _, c := range t.sorted() {
		key := *c.source
		key.at = c.ord
		key.load()
		parts = parts[:0]
		for _, s := range sources {
			if s.at = s.search(&key); !s.load() || s.compare(&key) != 0 || s.count(s.at) == 0 {
				continue
			}
			parts = append(parts, s.value())
		}
		values = append(values, joined(parts))
	}
	return values
}
