package rank

import (
	"math/bits"
	"slices"

	"svc/segment"
)

// valueQueue gives documents by their values in the columns of a field. It sorts no more of them than are taken: an incremental
// quicksort (Paredes and Navarro, 2006).
type valueQueue struct {
	desc  bool
	size  int // segments of the index
	parts []queuePart
}

// queuePart has the documents of a segment that were not taken.
type queuePart struct {
	segment int
	column  *segment.Column
	rows    []uint32
	keys    []sortKey // those taken are before begin
	begin   int
	end     int   // of the keys with the least value, once run has counted them
	sorted  int   // keys from begin to here are in order, and below all from here on
	bounds  []int // above sorted, the lowest last: keys before a bound are below those from it on
	spare   int   // how many uneven divisions are accepted
	value   SortValue
}

// shortRange is how many keys are sorted instead of being divided. (A variable, so that tests can lower it.)
var shortRange = 32

// newValueQueue reads the values of documents.
func newValueQueue(s *scratch, of rows, columns []*segment.Column, desc bool) *valueQueue {
	q := &valueQueue{desc: desc, size: len(of), parts: make([]queuePart, 0, len(of))}
	for seg, in := range of {
		n := cardinality(in)
		if n == 0 {
			continue
		}
		p := queuePart{segment: seg, column: columns[seg], rows: make([]uint32, n), keys: make([]sortKey, n), bounds: []int{n}, spare: bits.Len(uint(n))}
		p.rows = p.rows[:in.ManyIterator().NextMany(p.rows)]
		if p.keys = p.keys[:len(p.rows)]; len(p.keys) == 0 {
			continue // a set of a forged segment has fewer rows than it says
		}
		p.bounds[0] = len(p.keys)
		s.sorting.read(p.column, p.rows, 0, p.keys, desc)
		p.settle(desc)
		q.parts = append(q.parts, p)
	}
	return q
}

// next takes the documents with the next value, and those with further values while they are no more than pass together. The value is
// the last one. It returns nil at the end.
func (q *valueQueue) next(pass int) (value SortValue, found rows) {
	if len(q.parts) == 0 {
		return value, nil
	}
	lists := make([][]uint32, q.size)
	for n := 0; len(q.parts) > 0 && (n == 0 || n < pass); {
		least := q.parts[0].value
		for i := 1; i < len(q.parts); i++ {
			if v := &q.parts[i].value; v.Compare(&least, q.desc) < 0 {
				least = *v
			}
		}
		size := 0
		for i := range q.parts {
			if p := &q.parts[i]; p.value.Compare(&least, q.desc) == 0 {
				size += p.run()
			}
		}
		if n > 0 && n+size > pass {
			break
		}
		value, n = least, n+size
		for i := 0; i < len(q.parts); i++ {
			p := &q.parts[i]
			if p.value.Compare(&least, q.desc) != 0 {
				continue
			}
			if lists[p.segment] = p.take(lists[p.segment]); p.begin == len(p.keys) {
				q.parts = slices.Delete(q.parts, i, i+1)
				i--
			} else {
				p.settle(q.desc)
			}
		}
	}
	return value, ofLists(lists)
}

// settle finds the least key and its value.
func (p *queuePart) settle(desc bool) {
	p.sort(p.begin)
	p.value = p.keys[p.begin].value(p.column, desc)
}

// run returns how many rows have the value of the least key.
func (p *queuePart) run() int {
	for p.end = max(p.end, p.begin+1); p.end < len(p.keys); p.end++ {
		if p.sort(p.end); !p.keys[p.end].alike(p.keys[p.begin]) {
			break
		}
	}
	return p.end - p.begin
}

// take appends the rows that run has counted.
func (p *queuePart) take(dst []uint32) []uint32 {
	for ; p.begin < p.end; p.begin++ {
		dst = append(dst, p.rows[p.keys[p.begin].entry()])
	}
	return dst
}

// sort sorts some more keys if those before at are all that are sorted. It must be the index of a key.
func (p *queuePart) sort(at int) {
	for at == p.sorted {
		last := len(p.bounds) - 1
		end := p.bounds[last]
		keys := p.keys[p.sorted:end]
		if len(keys) <= shortRange || p.spare == 0 {
			slices.Sort(keys)
			p.sorted, p.bounds = end, p.bounds[:last]
			continue
		}
		n := divide(keys)
		if n < len(keys)/16 || n > len(keys)/16*15 {
			p.spare--
		}
		p.bounds = append(p.bounds, p.sorted+n)
	}
}

// divide moves low keys before the others, and returns how many: one at least, and not all. There are nine keys or more.
func divide(keys []sortKey) int {
	var sample [9]sortKey
	step := (len(keys) - 1) / 8
	for i := range sample {
		sample[i] = keys[i*step]
	}
	slices.Sort(sample[:])
	const low = 2 // the first keys are wanted, so fewer than half are divided again
	pivot := sample[low]
	n := 0
	for i, k := range keys { // no branch depends on the keys
		keys[i] = keys[n]
		keys[n] = k
		if k < pivot {
			n++
		}
	}
	return n
}
