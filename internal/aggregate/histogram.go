package aggregate

import (
	"math"

	"svc/internal/apierr"
	"svc/internal/numeric"
	"svc/segment"
)

// histogram has a bucket for each interval of numbers. Its key is the number of the interval: q begins at offset + q·interval.
type histogram struct {
	spec    *Spec
	inverse float64 // 1/interval where that is a whole number, as of 0.1; else 0
}

// newHistogram remembers 1/interval if that is a whole number: bounds such as 0.1 are then exact.
func newHistogram(a *Spec) node {
	h := histogram{spec: a}
	if n := math.Round(1 / a.interval); n > 1 && 1/n == a.interval {
		h.inverse = n
	}
	return newBuckets(a, h)
}

// begin returns where interval q begins. With an interval such as 0.1, that is the number that people write.
func (h histogram) begin(q float64) float64 {
	if h.inverse != 0 {
		return h.spec.offset + q/h.inverse
	}
	return h.spec.offset + q*h.spec.interval
}

const maxIntervals = 1 << 53 // from where on numbers of intervals are not exact

// interval returns the number of the interval of a value. Rounding may move the quotient across a bound, so it is compared with the
// bounds that the answer shows.
func (h histogram) interval(x float64) float64 {
	q := math.Floor((x - h.spec.offset) / h.spec.interval)
	if h.begin(q+1) <= x {
		q++
	} else if h.begin(q) > x {
		q--
	}
	return q
}

func (h histogram) number(w *work, x numeric.Value) (key, bool, error) {
	q := h.interval(x.Float)
	if !(math.Abs(q) < maxIntervals) {
		return key{}, false, apierr.New(w.code, "The `interval` of the aggregation `%s` is too small for the value %v of `%s`. Raise it.", h.spec.Name, x.Float, h.spec.Attribute)
	}
	if x.Rest < 0 && h.begin(q) == x.Float { // x is below the float64 nearest to it
		q--
	}
	return key{isNumber: true, number: numeric.Of(q)}, true, nil
}

func (h histogram) end(k key) float64 { return h.begin(k.number.Float + 1) }

// appendEnds appends where a bucket begins, and where it ends.
func appendEnds(dst []byte, from, to float64) []byte {
	dst = finite(from).AppendText(append(dst, `"from":`...))
	return append(finite(to).AppendText(append(dst, `,"to":`...)), ',')
}

// finite returns the nearest number that JSON can have.
func finite(x float64) numeric.Value {
	return numeric.Of(max(-math.MaxFloat64, min(x, math.MaxFloat64)))
}

func (histogram) text(*segment.Column, int) (key, bool) { return key{}, false }

func (histogram) between(low, high key, f func(key) bool) {
	for q := low.number.Float + 1; q < high.number.Float; q++ {
		if !f(key{isNumber: true, number: numeric.Of(q)}) {
			return
		}
	}
}

func (h histogram) appendKey(dst []byte, k *key) []byte {
	return appendEnds(dst, h.begin(k.number.Float), h.begin(k.number.Float+1))
}
