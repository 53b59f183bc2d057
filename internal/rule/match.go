package rule

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/text/unicode/norm"

	"svc/internal/filter"
)

// Set is the rules at one moment, ready to be matched. It does not change.
type Set struct {
	all []*Rule // in the order of their uids

	mu  sync.Mutex // held by who makes an era
	now atomic.Pointer[era]
}

func newSet(all []*Rule) *Set { return &Set{all: all} }

// List returns all rules in the order of their uids. They are shared: nothing of them is to be modified.
func (s *Set) List() []*Rule { return s.all }

// Effects is what rules do to a search.
type Effects struct {
	Pins   []Pin   // in the order in which they take their places
	Scales []Scale // all of them apply
}

// Pin gives a document a place.
type Pin struct {
	ID       string
	Position uint32
}

// Scale multiplies the scores of documents.
type Scale struct {
	Selector *Selector
	Factor   float64
}

// Match returns what the rules do to a search for a text in an index, with a filter that may be nil.
func (s *Set) Match(index, query string, f *filter.Expr, now time.Time) Effects {
	if s == nil || len(s.all) == 0 {
		return Effects{}
	}
	e := s.now.Load()
	if e == nil || !e.covers(now) {
		e = s.newEra(now)
	}
	var buffer [32]uint32
	a := asked{query: query, blank: strings.TrimSpace(query) == "", filter: f, found: buffer[:0]}
	if m := e.byIndex[index]; m != nil {
		m.look(&a)
	}
	if e.every != nil {
		e.every.look(&a)
	}
	if len(a.found) == 0 {
		return Effects{}
	}
	slices.Sort(a.found)
	var effects Effects
	var pinned map[string]bool
	for _, n := range slices.Compact(a.found) {
		r := &e.rules[n]
		if !r.holds(&a) {
			continue
		}
		for i := range r.Actions {
			action := &r.Actions[i]
			sel := &action.Selector
			switch {
			case sel.IndexUID != nil && *sel.IndexUID != index:
			case action.Scale != nil:
				effects.Scales = append(effects.Scales, Scale{sel, *action.Scale})
			case sel.ID != nil && !pinned[*sel.ID]:
				if pinned == nil {
					pinned = map[string]bool{}
				}
				pinned[*sel.ID] = true
				effects.Pins = append(effects.Pins, Pin{*sel.ID, *action.Pin})
			}
		}
	}
	slices.SortStableFunc(effects.Pins, func(a, b Pin) int { return cmp.Compare(a.Position, b.Position) })
	return effects
}

// asked is the search that rules are matched with.
type asked struct {
	query  string
	blank  bool
	filter *filter.Expr

	foldedQuery string
	isFolded    bool
	pairs       map[string]bool // keys of all pairs that the filter tests for; nil: not looked at yet
	found       []uint32        // rules that may apply
}

// tested returns the keys of all pairs that the filter tests for.
func (a *asked) tested() map[string]bool {
	if a.pairs == nil {
		a.pairs = map[string]bool{}
		a.filter.Equalities(func(p filter.Pair) { a.pairs[p.Key()] = true })
	}
	return a.pairs
}

// folded returns the query as texts of rules are compared with it.
func (a *asked) folded() string {
	if !a.isFolded {
		a.foldedQuery, a.isFolded = fold(a.query), true
	}
	return a.foldedQuery
}

// fold undoes what makes equal texts look different: case, compatibility forms, and whether accents are letters of their own. An
// accent stays a part of its letter: "cafe" is not in "café".
func fold(s string) string { return norm.NFKC.String(strings.ToLower(norm.NFKC.String(s))) }

// era is a time during which no rule starts or ends.
type era struct {
	from, to time.Time // to is exclusive; zero: no rule starts or ends before, or afterwards
	rules    []timely  // those that apply, by precedence
	byIndex  map[string]*matcher
	every    *matcher // of rules with actions in every index; nil: none
}

func (e *era) covers(now time.Time) bool {
	return !now.Before(e.from) && (e.to.IsZero() || now.Before(e.to))
}

// timely is a rule whose time it is.
type timely struct {
	*Rule
	contains []string   // folded
	fixes    [][]string // keys of each filter condition
}

// holds reports whether the conditions but those on the time hold.
func (r *timely) holds(a *asked) bool {
	for i := range r.Conditions {
		if q := r.Conditions[i].Query; q != nil && q.IsEmpty != nil && *q.IsEmpty != a.blank {
			return false
		}
	}
	for _, text := range r.contains {
		if !strings.Contains(a.folded(), text) {
			return false
		}
	}
	for _, keys := range r.fixes {
		if slices.ContainsFunc(keys, func(key string) bool { return !a.tested()[key] }) || !a.filter.Fixes(keys) {
			return false
		}
	}
	return true
}

// matcher finds the rules that may apply to a search: it knows each rule by one of its conditions, the rarest of them.
type matcher struct {
	always []uint32            // by no condition
	blank  []uint32            // by an empty query
	typed  []uint32            // by one that is not
	byText map[string][]uint32 // by a text that the query contains
	byPair map[string][]uint32 // by a pair that the filter fixes
	texts  *tree               // of byText
	last   uint32              // rule that was added last, plus 1
}

// look appends the rules that may apply to a.found.
func (m *matcher) look(a *asked) {
	a.found = append(a.found, m.always...)
	if a.blank {
		a.found = append(a.found, m.blank...)
	} else {
		a.found = append(a.found, m.typed...)
	}
	if len(m.byText) > 0 {
		a.found = m.texts.appendIn(a.found, a.folded())
	}
	if len(m.byPair) > 0 {
		for key := range a.tested() {
			a.found = append(a.found, m.byPair[key]...)
		}
	}
}

// add adds the rule with a number. uses counts the rules of each text and pair.
func (m *matcher) add(n uint32, r *timely, uses map[string]int) {
	rarer := func(a, b string) int { return cmp.Or(cmp.Compare(uses[a], uses[b]), cmp.Compare(len(b), len(a))) }
	if len(r.contains) > 0 {
		text := slices.MinFunc(r.contains, rarer)
		m.byText[text] = append(m.byText[text], n)
		return
	}
	if len(r.fixes) > 0 {
		key := slices.MinFunc(slices.Concat(r.fixes...), rarer)
		m.byPair[key] = append(m.byPair[key], n)
		return
	}
	for i := range r.Conditions {
		if q := r.Conditions[i].Query; q != nil && q.IsEmpty != nil {
			if *q.IsEmpty {
				m.blank = append(m.blank, n)
			} else {
				m.typed = append(m.typed, n)
			}
			return
		}
	}
	m.always = append(m.always, n)
}

// newEra makes the era of a moment.
func (s *Set) newEra(now time.Time) *era {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.now.Load(); e != nil && e.covers(now) {
		return e // somebody else made it
	}
	e := &era{byIndex: map[string]*matcher{}}
	for _, r := range s.all {
		if !r.Active {
			continue
		}
		open := true
		for i := range r.Conditions {
			if t := r.Conditions[i].Time; t != nil {
				open = e.meets(t, now) && open
			}
		}
		if open {
			e.rules = append(e.rules, newTimely(r))
		}
	}
	slices.SortStableFunc(e.rules, func(a, b timely) int { return cmp.Compare(a.precedence(), b.precedence()) })
	uses := map[string]int{}
	for i := range e.rules {
		for _, s := range slices.Concat(e.rules[i].contains, slices.Concat(e.rules[i].fixes...)) {
			uses[s]++
		}
	}
	for n := range e.rules {
		e.place(uint32(n), uses)
	}
	for _, m := range e.byIndex {
		m.texts = newTree(m.byText)
	}
	if e.every != nil {
		e.every.texts = newTree(e.every.byText)
	}
	s.now.Store(e)
	return e
}

// meets reports whether it is time now, and cuts the era off where that changes.
func (e *era) meets(t *TimeCondition, now time.Time) bool {
	open := true
	cut := func(at time.Time) bool {
		if now.Before(at) {
			if e.to.IsZero() || at.Before(e.to) {
				e.to = at
			}
			return false
		}
		if at.After(e.from) {
			e.from = at
		}
		return true
	}
	if t.Start != nil {
		open = cut(*t.Start)
	}
	if t.End != nil {
		open = !cut(t.End.Add(1)) && open // the end itself belongs to the time
	}
	return open
}

func newTimely(r *Rule) timely {
	l := timely{Rule: r}
	for i := range r.Conditions {
		switch c := &r.Conditions[i]; {
		case c.Query != nil && c.Query.Contains != nil:
			if text := fold(strings.TrimSpace(*c.Query.Contains)); text != "" {
				l.contains = append(l.contains, text)
			}
		case c.Filter != nil:
			var keys []string
			for _, v := range c.Filter.Values {
				keys = append(keys, v.Key())
			}
			l.fixes = append(l.fixes, keys)
		}
	}
	return l
}

// precedence of rules: the lower one wins. Those without a priority come last.
func (r *Rule) precedence() uint64 {
	if r.Priority == nil {
		return math.MaxUint64
	}
	return *r.Priority
}

// place puts a rule where the indexes of its actions find it.
func (e *era) place(n uint32, uses map[string]int) {
	r := &e.rules[n]
	if slices.ContainsFunc(r.Actions, func(a Action) bool { return a.Selector.IndexUID == nil }) {
		if e.every == nil {
			e.every = newMatcher()
		}
		e.every.add(n, r, uses)
		return
	}
	for i := range r.Actions {
		uid := *r.Actions[i].Selector.IndexUID
		m := e.byIndex[uid]
		if m == nil {
			m = newMatcher()
			e.byIndex[uid] = m
		}
		if m.last != n+1 {
			m.last = n + 1
			m.add(n, r, uses)
		}
	}
}

func newMatcher() *matcher {
	return &matcher{byText: map[string][]uint32{}, byPair: map[string][]uint32{}}
}
