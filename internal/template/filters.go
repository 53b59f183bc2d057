package template

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// filter is a function of the language. Values that it gets are known; so is the one it returns.
// Its error is a phrase that follows the filter's name.
type filter struct {
	least, most int // arguments
	run         func(r *renderer, v value, args []value) (value, error)
}

func (f filter) arity() string {
	switch {
	case f.most == 0:
		return "no arguments"
	case f.least == f.most:
		return fmt.Sprintf("%d arguments", f.least)
	}
	return fmt.Sprintf("%d to %d arguments", f.least, f.most)
}

// ofText makes a filter from a function of the value's text, which produces at most grows bytes for each byte of it.
func ofText(grows int, f func(s string) string) filter {
	return filter{run: func(r *renderer, v value, _ []value) (value, error) {
		s := r.text(v)
		if r.make(grows*len(s)) != nil {
			return value{}, nil
		}
		return text(f(s)), nil
	}}
}

var filters = map[string]filter{
	"abs":            {0, 0, abs},
	"append":         {1, 1, appendText},
	"at_least":       {1, 1, bound(1)},
	"at_most":        {1, 1, bound(-1)},
	"capitalize":     ofText(2, capitalize),
	"ceil":           {0, 0, rounded(math.Ceil)},
	"compact":        {0, 1, compact},
	"concat":         {1, 1, concat},
	"date":           {1, 1, date},
	"default":        {1, 1, defaultTo},
	"divided_by":     {1, 1, dividedBy},
	"downcase":       ofText(4, downcase),
	"escape":         ofText(10, escape),
	"escape_once":    ofText(12, escapeOnce),
	"first":          {0, 0, end(false)},
	"floor":          {0, 0, rounded(math.Floor)},
	"join":           {0, 1, join},
	"last":           {0, 0, end(true)},
	"lstrip":         ofText(0, trimLeft),
	"map":            {1, 1, mapTo},
	"minus":          {1, 1, minus},
	"modulo":         {1, 1, modulo},
	"newline_to_br":  ofText(8, newlineToBreak),
	"plus":           {1, 1, plus},
	"prepend":        {1, 1, prependText},
	"remove":         {1, 1, replace(-1)},
	"remove_first":   {1, 1, replace(1)},
	"replace":        {1, 2, replace(-1)},
	"replace_first":  {1, 2, replace(1)},
	"reverse":        {0, 0, reverse},
	"round":          {0, 1, round},
	"rstrip":         ofText(0, trimRight),
	"size":           {0, 0, size},
	"slice":          {1, 2, slice},
	"sort":           {0, 1, sorted(false)},
	"sort_natural":   {0, 1, sorted(true)},
	"split":          {1, 1, splitText},
	"strip":          ofText(0, trim),
	"strip_html":     ofText(1, stripHTML),
	"strip_newlines": ofText(2, stripNewlines),
	"times":          {1, 1, times},
	"truncate":       {0, 2, truncate},
	"truncatewords":  {0, 2, truncateWords},
	"uniq":           {0, 1, uniq},
	"upcase":         ofText(4, upcase),
	"url_decode":     {0, 0, urlDecode},
	"url_encode":     ofText(6, urlEncode),
	"where":          {1, 2, where},
}

func filterNames() []string { return slices.Sorted(maps.Keys(filters)) }

func defaultTo(_ *renderer, v value, args []value) (value, error) {
	if v.empty(false) || v.kind == kindBool && !v.bool {
		return args[0], nil
	}
	return v, nil
}

var (
	errNumber = errors.New("needs a number")
	errArray  = errors.New("needs an array")
	errWhole  = errors.New("needs a whole number")
)

func (r *renderer) numbers(v value, args []value) (a, b value, err error) {
	a, aOK := r.numeric(v)
	b, bOK := r.numeric(args[0])
	if !aOK || !bOK {
		return a, b, errNumber
	}
	return a, b, nil
}

func abs(r *renderer, v value, _ []value) (value, error) {
	n, ok := r.numeric(v)
	switch {
	case !ok:
		return value{}, errNumber
	case n.kind == kindInt && n.int != math.MinInt64:
		return integer(max(n.int, -n.int)), nil
	}
	return float(math.Abs(n.asFloat())), nil
}

func bound(sign int) func(*renderer, value, []value) (value, error) {
	return func(r *renderer, v value, args []value) (value, error) {
		a, b, err := r.numbers(v, args)
		if order, _ := r.compare(a, b); order*sign < 0 {
			a = b
		}
		return a, err
	}
}

// arithmetic makes a filter of an operation on whole numbers, which says whether it stayed within 64 bits, and
// one on others.
func (r *renderer) arithmetic(v value, args []value, whole func(a, b int64) (int64, bool), other func(a, b float64) float64) (value, error) {
	a, b, err := r.numbers(v, args)
	if err != nil {
		return value{}, err
	}
	if a.kind == kindInt && b.kind == kindInt {
		if n, ok := whole(a.int, b.int); ok {
			return integer(n), nil
		}
	}
	x := other(a.asFloat(), b.asFloat())
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return value{}, errors.New("has no finite result")
	}
	return float(x), nil
}

func plus(r *renderer, v value, args []value) (value, error) {
	return r.arithmetic(v, args, func(a, b int64) (int64, bool) { return a + b, (a+b > a) == (b > 0) },
		func(a, b float64) float64 { return a + b })
}

func minus(r *renderer, v value, args []value) (value, error) {
	return r.arithmetic(v, args, func(a, b int64) (int64, bool) { return a - b, (a-b < a) == (b > 0) },
		func(a, b float64) float64 { return a - b })
}

func times(r *renderer, v value, args []value) (value, error) {
	return r.arithmetic(v, args, func(a, b int64) (int64, bool) {
		if a == 0 || b == 0 {
			return 0, true
		}
		n := a * b
		return n, n/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
	}, func(a, b float64) float64 { return a * b })
}

func dividedBy(r *renderer, v value, args []value) (value, error) {
	return r.arithmetic(v, args, func(a, b int64) (int64, bool) {
		if b == 0 || a == math.MinInt64 && b == -1 {
			return 0, false
		}
		return a / b, true
	}, func(a, b float64) float64 { return a / b })
}

func modulo(r *renderer, v value, args []value) (value, error) {
	return r.arithmetic(v, args, func(a, b int64) (int64, bool) {
		if b == 0 || b == -1 {
			return 0, b == -1
		}
		return a % b, true
	}, math.Mod)
}

// rounded returns a filter that makes a number whole by f.
func rounded(f func(float64) float64) func(*renderer, value, []value) (value, error) {
	return func(r *renderer, v value, _ []value) (value, error) {
		n, ok := r.numeric(v)
		if !ok {
			return value{}, errNumber
		}
		if n.kind == kindInt {
			return n, nil
		}
		return wholeOf(f(n.float)), nil
	}
}

func wholeOf(x float64) value {
	if math.Abs(x) < 1<<63 {
		return integer(int64(x))
	}
	return float(x)
}

// round rounds to a number of digits. A float has 15 at most that count.
func round(r *renderer, v value, args []value) (value, error) {
	n, ok := r.numeric(v)
	if !ok {
		return value{}, errNumber
	}
	digits := int64(0)
	if len(args) > 0 {
		if digits, ok = r.whole(args[0]); !ok {
			return value{}, errWhole
		}
	}
	switch {
	case n.kind == kindInt:
		return n, nil
	case digits <= 0:
		return wholeOf(math.Round(n.float)), nil
	case digits > 15: // beyond what a number holds
		return n, nil
	}
	scale := math.Pow10(int(digits))
	if x := math.Round(n.float*scale) / scale; !math.IsInf(x, 0) {
		return float(x), nil
	}
	return n, nil
}
