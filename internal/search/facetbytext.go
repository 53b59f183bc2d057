package search

import (
	"bytes"
	"slices"

	"svc/internal/numeric"
)

// With few candidates, numbers are listed by their texts, so all numbers of the candidates are read to show the first hundred.

// countedNumber is a number with its count of candidates.
type countedNumber struct {
	number numeric.Value
	count  int
}

// firstByText returns the first limit numbers that some document has, in the order of their texts.
func firstByText(sources []*facetSource, limit int) []facetValue {
	if limit <= 0 {
		return nil
	}
	type shown struct {
		at, end int // of the text, in texts
		countedNumber
	}
	var texts []byte
	behind := func(a, b shown) bool { return bytes.Compare(texts[a.at:a.end], texts[b.at:b.end]) > 0 }
	var first []shown // a heap, the last of them on top
	for _, n := range countedNumbers(sources) {
		at := len(texts)
		texts = n.number.AppendText(texts)
		s := shown{at, len(texts), n}
		if len(first) == limit && behind(s, first[0]) {
			texts = texts[:at]
			continue
		}
		first = keepBest(first, limit, s, behind)
	}
	slices.SortFunc(first, func(a, b shown) int { return bytes.Compare(texts[a.at:a.end], texts[b.at:b.end]) })
	values := make([]facetValue, len(first))
	for i, s := range first {
		values[i] = facetValue{isNumber: true, number: s.number, count: s.count, shown: texts[s.at:s.end:s.end]}
	}
	return values
}

// countedNumbers returns the numbers that some document has, ascending.
func countedNumbers(sources []*facetSource) []countedNumber {
	var all []countedNumber
	for _, s := range slices.Backward(sources) { // the first ones have most
		var own []countedNumber
		if k := &s.all; k.listed() && s.less == nil {
			own = make([]countedNumber, 0, len(k.Have))
			for i, ord := range k.Have {
				if int(ord) < s.size { // a forged segment may name others
					own = append(own, countedNumber{s.in.column.Number(int(ord)), int(k.Times[i])})
				}
			}
		} else {
			for more := s.rise(0); more; more = s.rise(s.at + 1) {
				own = append(own, countedNumber{s.number, s.count(s.at)})
			}
		}
		switch {
		case len(all) == 0:
			all = own
		case len(own) > 0:
			all = addedNumbers(own, all)
		}
	}
	return all
}

// addedNumbers adds up the counts of two ascending lists.
func addedNumbers(a, b []countedNumber) []countedNumber {
	sum := make([]countedNumber, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].number.Compare(b[0].number); {
		case c < 0:
			sum, a = append(sum, a[0]), a[1:]
		case c > 0:
			sum, b = append(sum, b[0]), b[1:]
		default:
			sum = append(sum, countedNumber{a[0].number, a[0].count + b[0].count})
			a, b = a[1:], b[1:]
		}
	}
	return append(append(sum, a...), b...)
}
