package rule

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"

	"svc/internal/filter"
	"svc/internal/text"
)

// Set is the rules at one moment, ready to be matched. It does not change.
type Set struct {
	all     []*Rule // in the order of their uids
	bounds  Bounds
	rules   []matched // the active ones, by precedence
	byIndex map[string]*matcher
	every   *matcher // of rules with actions in every index; nil: none

	newest func() []*Rule // see Newest
	found  func() *finder // see Find
}

// newSet makes the set of rules in the order of their uids.
func newSet(all []*Rule, b Bounds) *Set {
	s := &Set{all: all, bounds: b, byIndex: map[string]*matcher{}}
	s.newest = sync.OnceValue(s.sortNewest)
	s.found = sync.OnceValue(func() *finder { return newFinder(s.newest()) })
	for _, r := range all {
		if r.Active {
			s.rules = append(s.rules, newMatched(r))
		}
	}
	slices.SortStableFunc(s.rules, func(a, b matched) int { return cmp.Compare(a.precedence(), b.precedence()) })
	uses := map[string]int{}
	for i := range s.rules {
		for key := range s.rules[i].keys {
			uses[key]++
		}
	}
	for n := range s.rules {
		s.place(uint32(n), uses)
	}
	for _, m := range s.byIndex {
		m.close(s.rules)
	}
	if s.every != nil {
		s.every.close(s.rules)
	}
	return s
}

// List returns all rules in the order of their uids. They are shared and must not be modified.
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
	Rule     string // uid
	Selector *Selector
	Factor   float64
}

// Match returns the effects of the rules on a search for a text in an index, with a filter that may be nil.
func (s *Set) Match(index, query string, f *filter.Expr, now time.Time) Effects {
	if s == nil || len(s.rules) == 0 {
		return Effects{}
	}
	a := asked{set: s, query: query, blank: strings.TrimSpace(query) == "", filter: f, at: nanos(now), left: s.bounds.FilterCombinations}
	return s.match(&a, index)
}

// match returns the effects of the rules that apply to a search in an index. Rules come in their precedence;
// a document is pinned once.
func (s *Set) match(a *asked, index string) Effects {
	if m := s.byIndex[index]; m != nil {
		m.look(a)
	}
	if s.every != nil {
		s.every.look(a)
	}
	candidates := a.candidates()
	if len(candidates) == 0 {
		return Effects{}
	}
	var effects Effects
	var pinned map[string]bool
	applied := 0
	for _, c := range candidates {
		if applied >= s.bounds.Rules {
			break
		}
		r := &s.rules[c.rule]
		a.examined++
		if !r.holds(a, c.satisfied) {
			continue
		}
		applied++
		for i := range r.Actions {
			action := &r.Actions[i]
			sel := &action.Selector
			switch {
			case sel.IndexUID != nil && *sel.IndexUID != index:
			case action.Scale != nil:
				effects.Scales = append(effects.Scales, Scale{r.UID, sel, *action.Scale})
			case sel.ID != nil && !pinned[*sel.ID] && len(effects.Pins) < s.bounds.Pins:
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
	set    *Set
	query  string
	blank  bool
	filter *filter.Expr
	at     int64 // now

	foldedQuery string
	isFolded    bool
	queryWords  []string        // nil: not looked at yet
	pairs       map[string]bool // keys of all pairs that the filter tests for; nil: not looked at yet
	queryWays   []way           // of the filter
	hasWays     bool
	left        int // of Bounds.FilterCombinations

	found     []uint32 // rules that may apply
	byWord    []uint32 // rules that may apply, found by a word of the query
	satisfied []uint32 // rules that may apply, whose filter conditions hold
	examined  int      // rules whose conditions were compared with the search
}

// candidate is a rule that may apply.
type candidate struct {
	rule      uint32
	satisfied bool // its filter condition holds
}

// candidates returns the rules that may apply, by precedence.
func (a *asked) candidates() []candidate {
	n := len(a.found) + len(a.byWord) + len(a.satisfied)
	if n == 0 {
		return nil
	}
	slices.Sort(a.byWord)
	a.byWord = slices.Compact(a.byWord)
	a.byWord = a.byWord[:min(len(a.byWord), a.set.bounds.WordCombinations)]
	all := make([]candidate, 0, n)
	for i, list := range [...][]uint32{a.found, a.byWord, a.satisfied} {
		for _, n := range list {
			all = append(all, candidate{n, i == 2})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.rule, b.rule) })
	return slices.Compact(all)
}

// tested returns the keys of all pairs that the filter tests for.
func (a *asked) tested() map[string]bool {
	if a.pairs == nil {
		a.pairs = map[string]bool{}
		a.filter.Equalities(func(p filter.Pair) { a.pairs[p.Key()] = true })
	}
	return a.pairs
}

// ways returns the ways to satisfy the filter.
func (a *asked) ways() []way {
	if !a.hasWays {
		a.queryWays, a.hasWays = waysOf(a.filter, a.set.bounds), true
	}
	return a.queryWays
}

// satisfy reports whether a way satisfies facets. It is false once the bound on comparisons is reached.
func (a *asked) satisfy(w way, facets []facet) bool {
	if a.left == 0 {
		return false
	}
	a.left--
	return w.satisfies(facets)
}

// words returns the words of the query that rules are compared with.
func (a *asked) words() []string {
	if a.queryWords == nil {
		a.queryWords = wordsOf(a.query, a.set.bounds.Words)
	}
	return a.queryWords
}

// folded returns the query as texts of rules are compared with it.
func (a *asked) folded() string {
	if !a.isFolded {
		a.foldedQuery, a.isFolded = fold(a.query), true
	}
	return a.foldedQuery
}

// fold removes differences between equal texts: case, compatibility forms, and composed or decomposed accents. An accent stays a part
// of its letter: "café" does not contain "cafe".
func fold(s string) string { return norm.NFKC.String(strings.ToLower(norm.NFKC.String(s))) }

// words is the analysis of queries and of the words of rules: that of an index without settings.
var words = text.New(text.Config{})

// wordsOf returns the first words of a text, at most `most`, normalised. It is never nil.
func wordsOf(s string, most int) []string {
	all := []string{}
	var cursor text.Cursor
	var tokens []text.Token
	for b := []byte(s); !cursor.AtEnd(b); {
		tokens = words.More(tokens[:0], b, nil, &cursor, tokensAtOnce, false)
		for _, t := range tokens {
			if t.Kind != text.Word {
				continue
			}
			if len(all) == most {
				return all
			}
			all = append(all, t.Form)
		}
	}
	return all
}

// tokensAtOnce is how many tokens wordsOf makes between two checks of its limit.
const tokensAtOnce = 32

// matched is an active rule, ready to be matched.
type matched struct {
	*Rule
	window
	contains []string   // folded
	words    []string   // each once
	fixes    [][]string // keys of each filter condition of the form Lists
	facets   []facet    // of a filter condition of the other forms
}

// newMatched prepares the conditions of a rule for comparing: folded texts, words, keys of values.
func newMatched(r *Rule) matched {
	m := matched{Rule: r, window: windowOf(r.Conditions)}
	for i := range r.Conditions {
		switch c := &r.Conditions[i]; {
		case c.Query != nil:
			if c.Query.Contains != nil {
				if text := fold(strings.TrimSpace(*c.Query.Contains)); text != "" {
					m.contains = append(m.contains, text)
				}
			}
			if c.Query.Words != nil {
				m.words = wordsOf(*c.Query.Words, math.MaxInt)
				slices.Sort(m.words)
				m.words = slices.Compact(m.words)
			}
		case c.Filter == nil:
		case c.Filter.raw != nil:
			m.facets = facetsOf(c.Filter)
		default:
			var keys []string
			for _, v := range c.Filter.Values {
				keys = append(keys, v.Key())
			}
			m.fixes = append(m.fixes, keys)
		}
	}
	return m
}

// Prefixes of keys, so that keys of different kinds differ.
const (
	byWord      = "w"
	byText      = "t"
	byPair      = "p"
	byAttribute = "a"
)

// keys calls f for each key that the rule can be indexed under.
func (m *matched) keys(f func(key string) bool) {
	for _, w := range m.words {
		if !f(byWord + w) {
			return
		}
	}
	for _, t := range m.contains {
		if !f(byText + t) {
			return
		}
	}
	for _, keys := range m.fixes {
		for _, key := range keys {
			if !f(byPair + key) {
				return
			}
		}
	}
	for i := range m.facets {
		if !f(byAttribute + m.facets[i].attribute) {
			return
		}
	}
}

// holds reports whether the conditions hold; satisfied says that the one on facets does.
func (m *matched) holds(a *asked, satisfied bool) bool {
	if !m.window.has(a.at) {
		return false
	}
	for i := range m.Conditions {
		if q := m.Conditions[i].Query; q != nil && q.IsEmpty != nil && *q.IsEmpty != a.blank {
			return false
		}
	}
	for _, word := range m.words {
		if !slices.Contains(a.words(), word) {
			return false
		}
	}
	for _, text := range m.contains {
		if !strings.Contains(a.folded(), text) {
			return false
		}
	}
	for _, keys := range m.fixes {
		if slices.ContainsFunc(keys, func(key string) bool { return !a.tested()[key] }) || !a.filter.Fixes(keys) {
			return false
		}
	}
	return len(m.facets) == 0 || satisfied || slices.ContainsFunc(a.ways(), func(w way) bool { return a.satisfy(w, m.facets) })
}

// precedence of rules: the lower one wins. Those without a priority come last.
func (r *Rule) precedence() uint64 {
	if r.Priority == nil {
		return math.MaxUint64
	}
	return *r.Priority
}

// place puts a rule where the indexes of its actions find it.
func (s *Set) place(n uint32, uses map[string]int) {
	r := &s.rules[n]
	if slices.ContainsFunc(r.Actions, func(a Action) bool { return a.Selector.IndexUID == nil }) {
		if s.every == nil {
			s.every = newMatcher()
		}
		s.every.add(n, r, uses)
		return
	}
	for i := range r.Actions {
		uid := *r.Actions[i].Selector.IndexUID
		m := s.byIndex[uid]
		if m == nil {
			m = newMatcher()
			s.byIndex[uid] = m
		}
		if m.last != n+1 {
			m.last = n + 1
			m.add(n, r, uses)
		}
	}
}
