package rule

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"svc/internal/query"
	"svc/internal/text"
)

// Newest returns all rules, the one that changed last first. Rules of the form Lists have no time of their last change. They come last, by
// uid. Callers must not modify the rules or the slice.
func (s *Set) Newest() []*Rule { return s.newest() }

func (s *Set) sortNewest() []*Rule {
	all := slices.Clone(s.all)
	slices.SortStableFunc(all, func(a, b *Rule) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	return all
}

// Find returns the rules that have the words in their description or in their conditions on the query. Rules with all words come first,
// then rules without the last word, and so on; rules with equally many words are ordered by typos, then as by Newest. Words of at least
// five letters may have one typo, words of at least nine two. The last word may be a prefix.
func (s *Set) Find(words string) []*Rule { return s.found().find(words) }

// finder finds rules by words.
type finder struct {
	rules []*Rule
	words []string           // ascending
	of    map[string][]int32 // places in rules, ascending
}

// newFinder indexes rules by the words of their descriptions and conditions, for lists of rules.
func newFinder(rules []*Rule) *finder {
	f := &finder{rules: rules, of: map[string][]int32{}}
	for i, r := range rules {
		add := func(s *string) {
			if s == nil {
				return
			}
			for _, w := range wordsOf(*s, maxFoundWords) {
				if at := f.of[w]; len(at) == 0 || at[len(at)-1] != int32(i) {
					f.of[w] = append(at, int32(i))
				}
			}
		}
		add(r.Description)
		for c := range r.Conditions {
			if q := r.Conditions[c].Query; q != nil {
				add(q.Words)
				add(q.Contains)
			}
		}
	}
	for w := range f.of {
		f.words = append(f.words, w)
	}
	slices.Sort(f.words)
	return f
}

// maxFoundWords is how many words of a text Find reads, and maxAskedWords how many words it searches for.
const (
	maxFoundWords = 1_000
	maxAskedWords = 10
)

// The shortest words that may have one typo, and two, in letters.
const (
	oneTypo  = 5
	twoTypos = 9
)

// foundRule counts the words of a query that a rule has, from the first, and the typos in them.
type foundRule struct {
	words, typos int
}

// find returns the rules that have all words of a text, the last one as a prefix, with typos: best first.
func (f *finder) find(asked string) []*Rule {
	asked = query.Readable(asked)
	tokens := words.Tokens(nil, asked, nil, false)
	var list []string
	for _, t := range tokens {
		if t.Kind == text.Word && len(list) < maxAskedWords {
			list = append(list, t.Form)
		}
	}
	if len(list) == 0 {
		return f.rules
	}
	open := tokens[len(tokens)-1].Kind == text.Word // the last word may be incomplete
	fits := map[int32]foundRule{}
	for i, w := range list {
		for at, typos := range f.lookUp(w, open && i == len(list)-1) {
			if r := fits[at]; r.words == i { // it has all words before
				fits[at] = foundRule{i + 1, r.typos + typos}
			}
		}
	}
	places := make([]int32, 0, len(fits))
	for at, r := range fits {
		if r.words > 0 {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b int32) int {
		return cmp.Or(cmp.Compare(fits[b].words, fits[a].words), cmp.Compare(fits[a].typos, fits[b].typos), cmp.Compare(a, b))
	})
	found := make([]*Rule, len(places))
	for i, at := range places {
		found[i] = f.rules[at]
	}
	return found
}

// lookUp returns the places of the rules that have a word, with the fewest typos in it.
func (f *finder) lookUp(word string, prefix bool) map[int32]int {
	runes := []rune(word)
	limit := 0
	switch {
	case len(runes) >= twoTypos:
		limit = 2
	case len(runes) >= oneTypo:
		limit = 1
	}
	best := map[int32]int{}
	for _, w := range f.words {
		typos := 0
		switch {
		case w == word, prefix && strings.HasPrefix(w, word):
		case limit == 0:
			continue
		case prefix:
			typos = query.PrefixDistance(runes, w, limit)
		default:
			if n := utf8.RuneCountInString(w); n < len(runes)-limit || n > len(runes)+limit {
				continue
			}
			typos = query.Distance(runes, w, limit)
		}
		if typos > limit {
			continue
		}
		for _, at := range f.of[w] {
			if before, ok := best[at]; !ok || typos < before {
				best[at] = typos
			}
		}
	}
	return best
}
