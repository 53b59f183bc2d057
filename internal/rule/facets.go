package rule

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"svc/internal/filter"
	"svc/internal/numeric"
)

// facet is an attribute of a filter condition with its values.
type facet struct {
	attribute string
	values    []filter.Value
}

// facetsOf returns the facets of a condition, by attribute.
func facetsOf(c *FilterCondition) []facet {
	var all []facet
	for i := range c.Values { // in the order of their keys, which begin with the attribute
		v := filter.NewValue(c.Values[i].Pair)
		if n := len(all); n > 0 && all[n-1].attribute == v.Attribute {
			all[n-1].values = append(all[n-1].values, v)
			continue
		}
		all = append(all, facet{v.Attribute, []filter.Value{v}})
	}
	slices.SortStableFunc(all, func(a, b facet) int { return strings.Compare(a.attribute, b.attribute) })
	return all
}

// way is one way to satisfy the filter of a search: its tests by attribute.
type way []*filter.Test

// waysOf returns the ways to satisfy a filter.
func waysOf(f *filter.Expr, b Bounds) []way {
	found := f.Ways(filter.Bounds{Ways: b.FilterCombinations, Or: b.Or, And: b.And, Depth: b.Depth})
	ways := make([]way, len(found))
	for i, w := range found {
		slices.SortStableFunc(w, func(a, b *filter.Test) int { return strings.Compare(a.Attribute, b.Attribute) })
		ways[i] = way(w)
	}
	return ways
}

// of returns the tests of an attribute.
func (w way) of(attribute string) []*filter.Test {
	lo, _ := slices.BinarySearchFunc(w, attribute, func(t *filter.Test, a string) int { return strings.Compare(t.Attribute, a) })
	hi := lo
	for hi < len(w) && w[hi].Attribute == attribute {
		hi++
	}
	return w[lo:hi]
}

// satisfies reports whether each value has a test of its own that it passes.
func (w way) satisfies(facets []facet) bool {
	for i := range facets {
		f := &facets[i]
		tests := w.of(f.attribute)
		switch {
		case len(tests) < len(f.values):
			return false
		case len(f.values) == 1:
			if !slices.ContainsFunc(tests, func(t *filter.Test) bool { return t.Passes(&f.values[0]) }) {
				return false
			}
		case !assign(f.values, tests):
			return false
		}
	}
	return true
}

// assign reports whether the values can have different tests that they pass. It matches a bipartite graph by augmenting paths.
func assign(values []filter.Value, tests []*filter.Test) bool {
	of := make([]int, len(tests)) // the value of a test, plus 1
	var seen []bool
	var augment func(v int) bool
	augment = func(v int) bool {
		for i, t := range tests {
			if seen[i] || !t.Passes(&values[v]) {
				continue
			}
			seen[i] = true
			if of[i] == 0 || augment(of[i]-1) {
				of[i] = v + 1
				return true
			}
		}
		return false
	}
	for v := range values {
		seen = make([]bool, len(tests))
		if !augment(v) {
			return false
		}
	}
	return true
}

// group is the rules whose filter conditions name the same attributes.
type group struct {
	facets []facetIndex
	rules  []uint32 // ascending
}

// facetIndex finds the rules of a group by their values of one attribute.
type facetIndex struct {
	attribute string
	keys      map[string][]uint32
	numbers   []ruleNumber // ascending
	texts     []ruleText   // ascending
}

type ruleNumber struct {
	numeric.Value
	rule uint32
}

type ruleText struct {
	text string
	rule uint32
}

// signature is equal for facets of the same attributes.
func signature(facets []facet) string {
	var b strings.Builder
	for i := range facets {
		b.WriteString(facets[i].attribute)
		b.WriteByte(0)
	}
	return b.String()
}

// add adds a rule, the next in their order.
func (g *group) add(n uint32, facets []facet) {
	if g.facets == nil {
		g.facets = make([]facetIndex, len(facets))
		for i := range facets {
			g.facets[i] = facetIndex{attribute: facets[i].attribute, keys: map[string][]uint32{}}
		}
	}
	g.rules = append(g.rules, n)
	for i := range facets {
		x := &g.facets[i]
		for _, v := range facets[i].values {
			x.keys[v.Key] = append(x.keys[v.Key], n)
			if v.Number != nil {
				x.numbers = append(x.numbers, ruleNumber{*v.Number, n})
			} else if v.Text != "" {
				x.texts = append(x.texts, ruleText{v.Text, n})
			}
		}
	}
}

// close ends the adding.
func (g *group) close() {
	for i := range g.facets {
		x := &g.facets[i]
		slices.SortFunc(x.numbers, func(a, b ruleNumber) int { return cmp.Or(a.Compare(b.Value), cmp.Compare(a.rule, b.rule)) })
		slices.SortFunc(x.texts, func(a, b ruleText) int { return cmp.Or(strings.Compare(a.text, b.text), cmp.Compare(a.rule, b.rule)) })
	}
}

// candidates appends a superset of the rules that a way satisfies, with duplicates. It takes them from the attribute that leaves the
// fewest.
func (g *group) candidates(dst []uint32, w way) []uint32 {
	best, fewest := -1, math.MaxInt
	for i := range g.facets {
		tests := w.of(g.facets[i].attribute)
		if len(tests) == 0 {
			return dst
		}
		if n := g.facets[i].count(tests, len(g.rules)); n < fewest {
			best, fewest = i, n
		}
	}
	if fewest >= len(g.rules) {
		return append(dst, g.rules...)
	}
	x := &g.facets[best]
	for _, t := range w.of(x.attribute) {
		if t.Spans() {
			lo, hi := x.numbersOf(t)
			for _, n := range x.numbers[lo:hi] {
				dst = append(dst, n.rule)
			}
			lo, hi = x.textsOf(t)
			for _, n := range x.texts[lo:hi] {
				dst = append(dst, n.rule)
			}
			continue
		}
		for _, key := range t.Keys() {
			dst = append(dst, x.keys[key]...)
		}
	}
	return dst
}

// count returns how many candidate rules an attribute would give: all if a test is neither an equality nor a range.
func (x *facetIndex) count(tests []*filter.Test, all int) (n int) {
	for _, t := range tests {
		switch keys := t.Keys(); {
		case t.Spans():
			lo, hi := x.numbersOf(t)
			n += hi - lo
			lo, hi = x.textsOf(t)
			n += hi - lo
		case keys == nil:
			return all
		default:
			for _, key := range keys {
				n += len(x.keys[key])
			}
		}
	}
	return n
}

func (x *facetIndex) numbersOf(t *filter.Test) (lo, hi int) {
	return t.Numbers(len(x.numbers), func(i int) numeric.Value { return x.numbers[i].Value })
}

func (x *facetIndex) textsOf(t *filter.Test) (lo, hi int) {
	return t.Texts(len(x.texts), func(i int) string { return x.texts[i].text })
}
