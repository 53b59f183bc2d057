package search

import (
	"bytes"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/segment"
)

// A facet may have about as many values as there are documents, and a page shows a hundred of them. Where values are listed in their
// order, the segments' lists are walked until enough are found; where they are listed by count, all are counted, but only the
// best are looked at.

// ordinalCounts says how many of some documents of a segment have each ordinal of a column, as numbers or as strings. It counts those
// documents, or the others where they are fewer.
type ordinalCounts struct {
	strings bool
	column  *segment.Column
	inverse bool            // the column's own counts, less those below
	among   *roaring.Bitmap // an ordinal is counted when it is asked for; else nil
	first   *firstCounts    // those of the first ordinals are kept; else nil
	counts  []uint32        // by ordinal; nil where few documents are counted:
	have    []uint32        // ordinals that some have, ascending
	times   []uint32        // and how many
}

// fewCounted is up to how many documents only the ordinals that they have are noted: an array would have to be cleared for all.
// (A variable, so that tests can lower it.)
var fewCounted = 4096

// manyPerCounted is how many values at least a column has for each of them: to clear a count is quicker than to sort one.
var manyPerCounted = 4

// countOrdinals counts some documents of a segment.
func countOrdinals(c *segment.Column, strings bool, among *roaring.Bitmap, segmentRows int) ordinalCounts {
	k := ordinalCounts{strings: strings, column: c}
	n := int(among.GetCardinality())
	if n > segmentRows-n {
		k.inverse = true
		if n == segmentRows {
			return k
		}
		among = roaring.Flip(among, 0, uint64(segmentRows))
		n = segmentRows - n
	}
	count, size := c.CountNumbers, c.Numbers()
	if strings {
		count, size = c.CountStrings, c.Strings()
	}
	if n <= fewCounted && n*manyPerCounted <= size {
		for it := among.Iterator(); it.HasNext(); {
			if row := segment.Row(it.Next()); strings {
				k.have = c.RowStrings(k.have, row)
			} else {
				k.have = c.RowNumbers(k.have, row)
			}
		}
		slices.Sort(k.have)
		distinct := k.have[:0]
		for _, ord := range k.have {
			if last := len(distinct) - 1; last >= 0 && distinct[last] == ord {
				k.times[last]++
				continue
			}
			distinct, k.times = append(distinct, ord), append(k.times, 1)
		}
		k.have = distinct
		return k
	}
	k.counts = make([]uint32, size)
	var buf [256]uint32
	for it := among.ManyIterator(); ; {
		got := it.NextMany(buf[:])
		if got == 0 {
			return k
		}
		count(k.counts, buf[:got])
	}
}

// of returns the count of an ordinal.
func (k *ordinalCounts) of(ord int) int {
	if k.first != nil {
		return k.first.of(ord)
	}
	if k.among != nil {
		if k.strings {
			return k.column.CountStringRows(ord, k.among)
		}
		return k.column.CountNumberRows(ord, k.among)
	}
	n := 0
	if k.counts != nil {
		n = int(k.counts[ord])
	} else if len(k.have) > 0 && uint32(ord) >= k.have[0] && uint32(ord) <= k.have[len(k.have)-1] {
		if i, ok := slices.BinarySearch(k.have, uint32(ord)); ok {
			n = int(k.times[i])
		}
	}
	switch {
	case !k.inverse:
		return n
	case k.strings:
		return k.column.StringCount(ord) - n
	default:
		return k.column.NumberCount(ord) - n
	}
}

// listed reports whether no ordinals count but those in have.
func (k *ordinalCounts) listed() bool {
	return !k.inverse && k.counts == nil && k.among == nil && k.first == nil
}

// up returns the first ordinal from ord on that some document may have.
func (k *ordinalCounts) up(ord int) int {
	if !k.listed() {
		return ord
	}
	if i, _ := slices.BinarySearch(k.have, uint32(ord)); i < len(k.have) {
		return int(k.have[i])
	}
	return math.MaxInt
}

// down returns the last ordinal up to ord that some document may have, or −1.
func (k *ordinalCounts) down(ord int) int {
	if !k.listed() || ord < 0 {
		return ord
	}
	if i, _ := slices.BinarySearch(k.have, uint32(ord)+1); i > 0 {
		return int(k.have[i-1])
	}
	return -1
}

// facetSource is a segment whose values are counted, as numbers or as strings.
type facetSource struct {
	in      *facetRows
	segment int            // its place in the view
	all     ordinalCounts  // of the candidates
	less    *ordinalCounts // of those among them that do not count; nil: none
	size    int            // ordinals
	at      int            // the ordinal that a walk has come to
	number  numeric.Value  // its value
	key     []byte
}

// newFacetSource counts in advance, or where a few values are looked at only, each when it is asked for. first is how many values are
// looked at if they are the first; 0: any may be.
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

// lookOrdinalsUp is countOrdinals where few of the ordinals are asked for.
func lookOrdinalsUp(c *segment.Column, strings bool, among *roaring.Bitmap, segmentRows int) ordinalCounts {
	if among.GetCardinality() == uint64(segmentRows) {
		return ordinalCounts{strings: strings, column: c, inverse: true}
	}
	return ordinalCounts{strings: strings, column: c, among: among}
}

// count returns how many documents have an ordinal.
func (s *facetSource) count(ord int) int {
	n := s.all.of(ord)
	if s.less != nil {
		n -= s.less.of(ord)
	}
	return n
}

// span returns the least and the largest number that a candidate has.
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

// load looks at the value of the ordinal at; ok is false when there is none.
func (s *facetSource) load() bool {
	switch {
	case uint(s.at) >= uint(s.size):
		return false
	case s.all.strings:
		s.key = s.in.column.String(s.at)
	default:
		s.number = s.in.column.Number(s.at)
	}
	return true
}

// compare orders the values that two sources have come to.
func (s *facetSource) compare(o *facetSource) int {
	if s.all.strings {
		return bytes.Compare(s.key, o.key)
	}
	return s.number.Compare(o.number)
}

// search returns the first ordinal whose value is not below that which o has come to.
func (s *facetSource) search(o *facetSource) int {
	if s.all.strings {
		return s.in.column.SearchString(o.key)
	}
	return s.in.column.SearchNumber(o.number)
}

// value returns the facet value of the ordinal at.
func (s *facetSource) value() facetValue {
	n := s.count(s.at)
	if !s.all.strings {
		return facetValue{isNumber: true, number: s.number, count: n}
	}
	c := s.in.column
	return facetValue{key: s.key, shown: c.Original(s.at), count: n, in: s.in, ord: s.at, varies: c.Varies(s.at)}
}

// rise goes to the first ordinal from ord on that a document has, and reports whether there is one.
func (s *facetSource) rise(ord int) bool {
	for s.at = s.all.up(ord); s.at < s.size && s.count(s.at) == 0; {
		s.at = s.all.up(s.at + 1)
	}
	return s.load()
}

// most returns how many values a document may have at most.
func (s *facetSource) most() int {
	if s.all.listed() {
		return len(s.all.have)
	}
	return s.size
}

// pageValues is for how many values of a facet there is room at once: most pages have no more.
const pageValues = 100

// firstValues returns the first values in their order, as many as limit, that some document has.
func firstValues(sources []*facetSource, limit int) []facetValue {
	var parts []facetValue
	var open, same []*facetSource
	size := 0
	for _, s := range sources {
		if s.rise(0) {
			open = append(open, s)
			size += s.most()
		}
	}
	values := make([]facetValue, 0, min(limit, size, pageValues))
	for len(open) > 0 && len(values) < limit {
		least := open[0]
		for _, s := range open[1:] {
			if s.compare(least) < 0 {
				least = s
			}
		}
		same = same[:0]
		for _, s := range open {
			if s == least || s.compare(least) == 0 {
				same = append(same, s)
			}
		}
		parts = parts[:0]
		for _, s := range same {
			parts = append(parts, s.value())
		}
		values = append(values, joined(parts))
		for _, s := range same {
			if !s.rise(s.at + 1) {
				open = slices.DeleteFunc(open, func(o *facetSource) bool { return o == s })
			}
		}
	}
	return values
}

// counted is a value on its way to the most frequent ones.
type counted struct {
	count  int
	seen   int // when, counted from the first value on
	source *facetSource
	ord    int
}

// before reports whether a value is listed before another: of equal counts in their order.
func (c counted) before(o counted) bool {
	return c.count > o.count || c.count == o.count && c.seen < o.seen
}

// mostFrequent returns the values with the largest counts, as many as limit, and of equal counts the first in their order.
//
// Values are walked in their order. A stretch of one segment without values of others in it is walked without looking
// at the values, and whoever has no larger count than the least of the best so far is passed over.
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
		var next *facetSource // with the least value of the others
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

// topList is a heap of the best values so far, the worst of them first.
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

// keepBest adds a value to a heap of the best, the worst of them first; where it has as many as limit, in place of that one.
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
