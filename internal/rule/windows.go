package rule

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// window is a time, in nanoseconds since 1970, both ends included.
type window struct{ from, to int64 }

// always is the window that has no ends.
var always = window{math.MinInt64, math.MaxInt64}

func (w window) has(at int64) bool { return w.from <= at && at <= w.to }

// The first and the last moment that nanoseconds since 1970 reach in 64 bits.
var (
	firstMoment = time.Unix(0, math.MinInt64)
	lastMoment  = time.Unix(0, math.MaxInt64)
)

// nanos is a moment, or the nearest one that 64 bits have.
func nanos(at time.Time) int64 {
	switch {
	case at.Before(firstMoment):
		return math.MinInt64
	case at.After(lastMoment):
		return math.MaxInt64
	}
	return at.UnixNano()
}

// windowOf is when all conditions of a rule on the time hold.
func windowOf(all []Condition) window {
	w := always
	for i := range all {
		t := all[i].Time
		if t == nil {
			continue
		}
		if t.Start != nil {
			w.from = max(w.from, nanos(*t.Start))
		}
		if t.End != nil {
			w.to = min(w.to, nanos(*t.End))
		}
	}
	return w
}

// postings is a list of rules by their windows.
type postings struct {
	open  []uint32 // ascending: rules without a window
	timed []timedRule
}

// timedRule is a node of an implicit interval tree. The list is sorted by the starts of the windows, the root of a range is in its middle,
// and latest is the last end within the range.
type timedRule struct {
	window
	latest int64
	rule   uint32
}

// newPostings makes the postings of some rules, ascending.
func newPostings(list []uint32, rules []matched) postings {
	var p postings
	for _, n := range list {
		if w := rules[n].window; w == always {
			p.open = append(p.open, n)
		} else if w.from <= w.to {
			p.timed = append(p.timed, timedRule{window: w, rule: n})
		}
	}
	slices.SortFunc(p.timed, func(a, b timedRule) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.rule, b.rule)) })
	setLatest(p.timed)
	return p
}

// setLatest fills in the latest end of each subtree of a sorted list, as in an interval tree whose root is the middle.
func setLatest(part []timedRule) int64 {
	if len(part) == 0 {
		return math.MinInt64
	}
	mid := len(part) / 2
	root := &part[mid]
	root.latest = max(root.to, setLatest(part[:mid]), setLatest(part[mid+1:]))
	return root.latest
}

// appendAt appends the rules whose windows contain at. Rules with windows are unordered.
func (p *postings) appendAt(dst []uint32, at int64) []uint32 {
	return appendTimed(append(dst, p.open...), p.timed, at)
}

// appendTimed takes O(log n + k) for k rules.
func appendTimed(dst []uint32, part []timedRule, at int64) []uint32 {
	for len(part) > 0 {
		mid := len(part) / 2
		root := &part[mid]
		if root.latest < at {
			return dst
		}
		dst = appendTimed(dst, part[:mid], at)
		if at < root.from {
			return dst
		}
		if at <= root.to {
			dst = append(dst, root.rule)
		}
		part = part[mid+1:]
	}
	return dst
}
