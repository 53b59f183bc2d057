package search

import (
	"svc/internal/index"
	"svc/internal/resultcache"
	"svc/segment"
)

// topMost is mostFrequent for a field most of whose values have one row: the values of several rows are known, and the others follow
// in their order. It returns false for other fields.
func topMost(v *index.View, field segment.FieldID, sources []*facetSource, limit int) ([]facetValue, bool) {
	size := 0
	for _, s := range sources {
		size += s.size
	}
	if size < fewValues || len(sources) == 0 || limit == 0 {
		return nil, false
	}
	again, ok := repeatedValues(v, field, sources[0].all.Strings)
	if !ok {
		return nil, false
	}
	bySegment := make([]*facetSource, len(v.Segments))
	for _, s := range sources {
		bySegment[s.segment] = s
	}
	best := again.mostFrequent(bySegment, limit)
	if len(best) < limit {
		best = appendRising(best, sources, limit, func(same []*facetSource) bool { return len(same) == 1 && same[0].count(same[0].at) == 1 })
	}
	return best, true
}

// columnsOf returns the columns of a field with numbers, or with strings.
func columnsOf(v *index.View, field segment.FieldID, strings bool) []facetColumn {
	var columns []facetColumn
	for i, s := range v.Segments {
		c := s.Column(field)
		if c == nil {
			continue
		}
		size := c.Numbers()
		if strings {
			size = c.Strings()
		}
		if size > 0 {
			columns = append(columns, facetColumn{segment: i, column: c, strings: strings, size: size, scope: v.Cache.OfFile(i)})
		}
	}
	return columns
}

// nearlyUnique reports whether a field has about as many values as documents, and enough candidates that limit values are found
// quickly.
func nearlyUnique(v *index.View, field segment.FieldID, candidates, limit int) bool {
	all, size, entries := 0, 0, 0
	numbers, strings := false, false
	for _, s := range v.Segments {
		all += s.Rows()
		if c := s.Column(field); c != nil {
			size += c.Numbers() + c.Strings()
			entries += c.NumberEntries(0, c.Numbers()) + c.StringEntries(0, c.Strings())
			numbers, strings = numbers || c.Numbers() > 0, strings || c.Strings() > 0
		}
	}
	return numbers != strings && entries <= 2*size && size >= fewValues && size/8 > limit && all/64 <= candidates
}

// fewValues is the number of values up to which reading all of them takes no time. (A variable, so that tests can lower it.)
var fewValues = 1 << 12

// sourceQueue yields the values of sources in ascending or in descending order.
type sourceQueue struct {
	heap    []*facetSource // the one with the next value on top
	step    func(*facetSource) bool
	descend bool
	same    []*facetSource
}

// newSourceQueue returns a queue of sources at their first values in the order. step moves a source to its next value, and reports
// whether there is one.
func newSourceQueue(sources []*facetSource, step func(*facetSource) bool, descend bool) *sourceQueue {
	q := &sourceQueue{heap: sources, step: step, descend: descend}
	for i := len(q.heap)/2 - 1; i >= 0; i-- {
		q.sift(i)
	}
	return q
}

// before reports whether the value of a comes before that of b.
func (q *sourceQueue) before(a, b *facetSource) bool {
	if q.descend {
		a, b = b, a
	}
	return a.compare(b) < 0
}

// sift restores the heap below i, after the source at i has moved.
func (q *sourceQueue) sift(i int) {
	for h := q.heap; ; {
		first := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(h); k++ {
			if q.before(h[k], h[first]) {
				first = k
			}
		}
		if first == i {
			return
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
}

// next returns the sources that have the next value, or nil at the end. The following call moves them on.
func (q *sourceQueue) next() []*facetSource {
	for _, s := range q.same {
		if q.step(s) {
			q.heap = append(q.heap, s)
			q.raise(len(q.heap) - 1)
		}
	}
	q.same = q.same[:0]
	for len(q.heap) > 0 && (len(q.same) == 0 || q.heap[0].compare(q.same[0]) == 0) {
		q.same = append(q.same, q.heap[0])
		last := len(q.heap) - 1
		q.heap[0] = q.heap[last]
		q.heap = q.heap[:last]
		q.sift(0)
	}
	return q.same
}

func (q *sourceQueue) raise(i int) {
	for h := q.heap; i > 0 && q.before(h[i], h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

// repeatedList has the values of a field with more than one row in a view, including deleted rows, in ascending order, and a few
// others.
type repeatedList struct {
	members []repeatedMember
	ends    []uint32 // of each value's members
}

// repeatedMember is a value of a segment.
type repeatedMember struct{ segment, ord uint32 }

// viewRepeats are kept with a view.
var viewRepeats = resultcache.NewKind[*repeatedList]("values of a field that several documents have")

// repeatedValues returns the repeated values, or false if they are a large part of all. They are cached with the view.
func repeatedValues(v *index.View, field segment.FieldID, strings bool) (*repeatedList, bool) {
	key := columnKey(field, strings)
	if kept, ok := viewRepeats.Get(v.Cache.Own(), key); ok {
		return kept, kept != noRepeatedList
	}
	list := findRepeated(v, field, strings)
	viewRepeats.Put(v.Cache.Own(), key, list, 8*len(list.members)+4*len(list.ends)+64)
	return list, list != noRepeatedList
}

// noRepeatedList says that it would be too long.
var noRepeatedList = new(repeatedList)

// findRepeated lists the values of several documents, over all segments. It gives up if they are more than a quarter of all: then
// listing them costs as much as counting.
func findRepeated(v *index.View, field segment.FieldID, strings bool) *repeatedList {
	columns, size := columnsOf(v, field, strings), 0
	for i := range columns {
		if size += columns[i].size; columns[i].scope == nil {
			return noRepeatedList
		}
	}
	again, ok := repeatsOf(columns, field)
	n := 0
	for _, ords := range again {
		n += len(ords)
	}
	if !ok || n > size/4 {
		return noRepeatedList
	}
	up := func(s *facetSource) bool {
		list := again[s.segment]
		if len(list) == 0 {
			return false
		}
		s.at, again[s.segment] = int(list[0]), list[1:]
		return s.load()
	}
	var open []*facetSource
	for i := range columns {
		s := &facetSource{in: &facetRows{column: columns[i].column}, segment: i, size: columns[i].size}
		if s.all.Strings = strings; up(s) {
			open = append(open, s)
		}
	}
	list := &repeatedList{members: make([]repeatedMember, 0, n)}
	for q := newSourceQueue(open, up, false); ; {
		same := q.next()
		if len(same) == 0 {
			return list
		}
		for _, s := range same {
			list.members = append(list.members, repeatedMember{uint32(columns[s.segment].segment), uint32(s.at)})
		}
		list.ends = append(list.ends, uint32(len(list.members)))
	}
}

// mostFrequent returns the limit most frequent values of the list with more than one document, in order. The sources are by segment,
// nil for segments without counted documents.
func (l *repeatedList) mostFrequent(sources []*facetSource, limit int) []facetValue {
	best := topList{limit: limit}
	from := uint32(0)
	for i, end := range l.ends {
		n := 0
		for _, m := range l.members[from:end] {
			if s := sources[m.segment]; s != nil {
				n += s.count(int(m.ord))
			}
		}
		if from = end; n < 2 {
			n = 0 // it is listed among those with one document
		}
		best.add(n, nil, i)
	}
	values := make([]facetValue, 0, len(best.heap))
	var parts []facetValue
	for _, c := range best.sorted() {
		parts = parts[:0]
		if from = 0; c.ord > 0 {
			from = l.ends[c.ord-1]
		}
		for _, m := range l.members[from:l.ends[c.ord]] {
			s := sources[m.segment]
			if s == nil || s.count(int(m.ord)) == 0 {
				continue
			}
			s.at = int(m.ord)
			s.load()
			parts = append(parts, s.value())
		}
		values = append(values, joined(parts))
	}
	return values
}

// appendRising appends the first wanted values that some document has, until there are limit.
func appendRising(values []facetValue, sources []*facetSource, limit int, wanted func(same []*facetSource) bool) []facetValue {
	var open []*facetSource
	for _, s := range sources {
		if s.rise(0) {
			open = append(open, s)
		}
	}
	var parts []facetValue
	up := func(s *facetSource) bool { return s.rise(s.at + 1) }
	for q := newSourceQueue(open, up, false); len(values) < limit; {
		same := q.next()
		if len(same) == 0 {
			break
		}
		if !wanted(same) {
			continue
		}
		parts = parts[:0]
		for _, s := range same {
			parts = append(parts, s.value())
		}
		values = append(values, joined(parts))
	}
	return values
}
