package search

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/index"
	"svc/internal/numeric"
	"svc/internal/turns"
	"svc/segment"
)

// A facet search finds numbers by the texts that facets show. Texts with a given prefix belong to a few ranges of numbers: 20 is the
// prefix of 20 to 21, 200 to 210, 2,000 to 2,100 and so on.

// numbersFound returns the numbers of a field that candidates have and q matches, or all of them if q is nil, ascending.
func numbersFound(ctx context.Context, v *index.View, field segment.FieldID, candidates []*roaring.Bitmap, q *facetQuery) ([]countedNumber, error) {
	if q != nil && v.Settings.TypoTolerance.DisableOnNumbers {
		whole := *q
		whole.budget = 0
		q = &whole
	}
	var all []countedNumber
	t, looked := turns.Of(ctx), 0
	for i, s := range v.Segments {
		c := s.Column(field)
		if c == nil || c.Numbers() == 0 || candidates[i].IsEmpty() {
			continue
		}
		ranges := q.numberRanges(c)
		size := 0
		for _, r := range ranges {
			size += r.hi - r.lo
		}
		var counts ordinalCounts
		if n := int(candidates[i].GetCardinality()); size <= n/4 && n > aggregate.FewCounted {
			counts = lookOrdinalsUp(c, false, candidates[i], s.Rows())
		} else {
			counts = countOrdinals(c, false, candidates[i], s.Rows())
		}
		var own []countedNumber
		var text []byte
		for _, r := range ranges {
			for ord := counts.up(r.lo); ord < r.hi; ord = counts.up(ord + 1) {
				if looked++; looked%clockValues == 0 {
					if err := t.Yield(); err != nil {
						return nil, err
					}
				}
				n := counts.of(ord)
				if n == 0 {
					continue
				}
				x := c.Number(ord)
				if text = x.AppendText(text[:0]); q == nil || q.match(string(text)) {
					own = append(own, countedNumber{x, n})
				}
			}
		}
		switch {
		case len(all) == 0:
			all = own
		case len(own) > 0:
			all = addedNumbers(own, all)
		}
	}
	return all, nil
}

// numberRanges returns the ranges of ordinals of a column, ascending, with numbers whose texts may match q. It returns all if q is
// nil or allows typos.
func (q *facetQuery) numberRanges(c *segment.Column) []ordinalRange {
	if q == nil || q.budget > 0 {
		return []ordinalRange{{0, c.Numbers()}}
	}
	digits, negative := strings.CutPrefix(q.asked, "-")
	whole, fraction, decimal := strings.Cut(digits, ".")
	for _, part := range []string{whole, fraction} {
		if strings.TrimLeft(part, "0123456789") != "" {
			return nil
		}
	}
	switch {
	case digits == "" && negative:
		return []ordinalRange{{0, c.SearchNumber(numeric.Value{})}}
	case digits == "":
		return []ordinalRange{{0, c.Numbers()}}
	case whole == "", len(whole) > 1 && whole[0] == '0':
		return nil
	case decimal, whole == "0":
		return []ordinalRange{textRange(c, digits, nextDecimal(digits), negative)}
	}
	var ranges []ordinalRange
	next, furthest := nextDecimal(whole), max(math.Abs(c.Number(0).Float), math.Abs(c.Number(c.Numbers()-1).Float))
	for zeros := ""; ; zeros += "0" {
		if x, ok := numeric.ParseFloat(whole + zeros); !ok || x > furthest {
			break
		}
		ranges = append(ranges, textRange(c, whole+zeros, next+zeros, negative))
	}
	if negative {
		slices.Reverse(ranges)
	}
	return ranges
}

// textRange returns the range in a column of the numbers from low to high, both positive, or of the negative numbers with these
// digits.
func textRange(c *segment.Column, low, high string, negative bool) ordinalRange {
	from, _ := numeric.Parse(low)
	to, ok := numeric.Parse(high)
	if !ok { // beyond all numbers
		to = numeric.Of(math.MaxFloat64)
	}
	if negative {
		from, to = numeric.Value{Float: -to.Float, Rest: -to.Rest}, numeric.Value{Float: -from.Float, Rest: -from.Rest}
	}
	r := ordinalRange{c.SearchNumber(from), c.SearchNumber(to)}
	if r.hi < c.Numbers() && c.Number(r.hi) == to { // other numbers may have been rounded to it
		r.hi++
	}
	return r
}

// nextDecimal adds one to the last digit of a decimal number.
func nextDecimal(s string) string {
	b := []byte(s)
	for i := len(b) - 1; i >= 0; i-- {
		switch b[i] {
		case '.':
		case '9':
			b[i] = '0'
		default:
			b[i]++
			return string(b)
		}
	}
	return "1" + string(b)
}
