package filter

import (
	"math"
	"math/bits"
	"slices"
	"strconv"

	"svc/internal/numeric"
	"svc/internal/text"
)

// Pair is an attribute and one of its values.
type Pair struct{ Attribute, Value string }

// Key returns equal keys for pairs that filters do not distinguish.
func (p Pair) Key() string {
	if x, ok := numeric.Parse(p.Value); ok {
		return p.Attribute + "\x00n" + strconv.FormatUint(math.Float64bits(x.Float), 16) + "/" + strconv.Itoa(int(x.Rest))
	}
	return p.Attribute + "\x00s" + string(text.FacetKey(nil, []byte(p.Value)))
}

// MaxPairs is how many pairs Fixes looks for at once.
const MaxPairs = 8

// Equalities calls f for each pair that the filter tests for equality anywhere. It may repeat some.
func (e *Expr) Equalities(f func(Pair)) {
	if e == nil {
		return
	}
	// Nothing returns an error here.
	_ = walk(e.root, func(n node) error {
		if c, ok := n.(*condition); ok && (c.op == equal || c.op == in || c.op == notEqual) {
			for _, v := range c.values {
				f(Pair{c.attr, v})
			}
		}
		return nil
	})
}

// Fixes reports whether one way to satisfy the filter fixes all of the given pairs, at most MaxPairs. For example, one way of `(color
// = red AND size = 3) OR color = blue` fixes red and 3, another one blue. A `_foreign` condition fixes nothing.
func (e *Expr) Fixes(keys []string) bool {
	if len(keys) == 0 {
		return true
	}
	if e == nil {
		return false
	}
	all := ways(1<<len(keys) - 1)
	return slices.Contains(waysOf(e.root, keys, false), all)
}

// ways is a set of keys, as bits, that one way to satisfy a filter fixes.
type ways uint16

// waysOf returns the largest sets of keys that ways to satisfy a node fix, or to satisfy its contrary. None: it can't be satisfied.
func waysOf(n node, keys []string, contrary bool) []ways {
	switch n := n.(type) {
	case *not:
		return waysOf(n.kid, keys, !contrary)
	case *junction:
		var sum []ways
		for i, k := range n.kids {
			w := waysOf(k, keys, contrary)
			switch {
			case i == 0:
				sum = w
			case n.or != contrary:
				sum = largest(append(slices.Clone(sum), w...))
			default:
				var both []ways
				for _, a := range sum {
					for _, b := range w {
						both = append(both, a|b)
					}
				}
				sum = largest(both)
			}
		}
		return sum
	case *elements:
		if !contrary {
			return waysOf(n.kid, keys, false)
		}
	case *condition:
		switch {
		case !contrary && (n.op == equal || n.op == in), contrary && n.op == notEqual:
			var each []ways
			for _, v := range n.values {
				way := ways(0)
				if i := slices.Index(keys, Pair{n.attr, v}.Key()); i >= 0 {
					way = 1 << i
				}
				each = append(each, way)
			}
			return largest(each)
		}
	}
	return []ways{0}
}

// largest leaves out sets that are within others.
func largest(sets []ways) []ways {
	slices.SortFunc(sets, func(a, b ways) int { return bits.OnesCount16(uint16(b)) - bits.OnesCount16(uint16(a)) })
	kept := sets[:0]
next:
	for _, s := range sets {
		for _, k := range kept {
			if s&^k == 0 {
				continue next
			}
		}
		kept = append(kept, s)
	}
	return kept
}
