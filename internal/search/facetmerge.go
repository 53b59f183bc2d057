package search

import (
	"bytes"
	"slices"
	"sync"

	"svc/internal/turns"
)

// facetMemory is reusable working memory for the values of facets.
type facetMemory struct {
	values, spare []facetValue
	used          int // values of them that may refer to a view
}

var facetMemories = sync.Pool{New: func() any { return new(facetMemory) }}

const maxKeptValues = 1 << 14

// release forgets everything that belongs to the view, because mapped memory may be unmapped.
func (m *facetMemory) release() {
	if max(cap(m.values), cap(m.spare)) > maxKeptValues {
		return
	}
	clear(m.values[:min(m.used, cap(m.values))])
	clear(m.spare[:min(m.used, cap(m.spare))])
	m.used = 0
	facetMemories.Put(m)
}

// sortRuns sorts values that come in sorted runs, one per segment. It overwrites the given list. The result may be in the memory's
// spare list.
func (m *facetMemory) sortRuns(values []facetValue) []facetValue {
	var ends []int // of the runs
	for i := 1; i <= len(values); i++ {
		if i == len(values) || values[i-1].compare(&values[i]) > 0 {
			ends = append(ends, i)
		}
	}
	if len(ends) < 2 {
		return values
	}
	m.spare = slices.Grow(m.spare[:0], len(values))
	for spare := m.spare[:len(values)]; len(ends) > 1; values, spare = spare, values {
		begin, kept := 0, ends[:0]
		for k := 0; k < len(ends); k += 2 {
			middle, end := ends[k], ends[min(k+1, len(ends)-1)]
			mergeRuns(spare[begin:end], values[begin:middle], values[middle:end])
			begin, kept = end, append(kept, end)
		}
		ends = kept
	}
	return values
}

// mergeRuns merges two sorted lists into dst, which is as long as both. Among equal values those of a come first.
func mergeRuns(dst, a, b []facetValue) {
	for i := range dst {
		if len(b) == 0 || len(a) > 0 && a[0].compare(&b[0]) <= 0 {
			dst[i], a = a[0], a[1:]
		} else {
			dst[i], b = b[0], b[1:]
		}
	}
}

// merge sums equal values of several segments, whose values come in order. It shows the spelling of the lowest document. The result
// is in order.
func (m *facetMemory) merge(values []facetValue) []facetValue {
	m.used = max(m.used, len(values))
	values = m.sortRuns(values)
	merged := values[:0]
	for from := 0; from < len(values); {
		to := from + 1
		for to < len(values) && values[to].compare(&values[from]) == 0 {
			to++
		}
		merged = append(merged, joined(values[from:to]))
		from = to
	}
	return merged
}

// joined merges the same value of several segments. If they spell it in several ways, the lowest document decides.
func joined(same []facetValue) facetValue {
	value := same[0]
	differ := value.varies
	for i := range same[1:] {
		v := &same[1+i]
		value.count += v.count
		differ = differ || v.varies || !bytes.Equal(v.shown, value.shown)
	}
	if !differ || len(same) == 1 {
		return value
	}
	lowest := value.first()
	for i := range same[1:] {
		if v := &same[1+i]; v.first() < lowest {
			lowest = v.first()
			value.shown, value.in, value.ord, value.varies = v.shown, v.in, v.ord, v.varies
		}
	}
	return value
}

// The size of a number in mergeLookalikes, and after how many values it yields.
const (
	lookalikeBytes = 96
	lookalikeSteps = 1024
)

// mergeLookalikes merges a number and a string with the same text into one value, the number, because both would be the same member
// of the answer. both returns how many documents have both, which count once. The error is that of the turn, which yields after each
// such pair, or that of its account.
func mergeLookalikes(turn turns.Turn, values []facetValue, both func(number, text *facetValue) int) ([]facetValue, error) {
	numbers := countNumbers(values)
	if numbers == 0 || numbers == len(values) {
		return values, nil
	}
	held := int64(numbers) * lookalikeBytes
	if err := turn.Account().Hold(held); err != nil {
		return nil, err
	}
	defer func() { _ = turn.Account().Hold(-held) }() // giving back does not fail
	var err error
	steps := 0
	step := func() {
		if steps++; err == nil && steps%lookalikeSteps == 0 {
			err = turn.Yield()
		}
	}
	byText := make(map[string]int, numbers)
	for i := range values[:numbers] {
		if step(); err != nil {
			return nil, err
		}
		values[i].showNumber()
		byText[string(values[i].shown)] = i
	}
	values = slices.DeleteFunc(values, func(v facetValue) bool {
		if step(); err != nil || v.isNumber {
			return false
		}
		i, alike := byText[string(v.key)]
		if !alike {
			return false
		}
		values[i].count += v.count - both(&values[i], &v)
		err = turn.Yield()
		return true
	})
	return values, err
}
