package fastapi

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"svc/internal/text"
)

// walkSettings are the settings of an index in the model. nil lists mean all.
type walkSettings struct {
	SearchableAttributes walkRanks           `json:"searchableAttributes"`
	DisplayedAttributes  []string            `json:"displayedAttributes"`
	FilterableAttributes walkFilterable      `json:"filterableAttributes"`
	SortableAttributes   []string            `json:"sortableAttributes"`
	RankingRules         []string            `json:"rankingRules"`
	DistinctAttribute    string              `json:"distinctAttribute"`
	StopWords            []string            `json:"stopWords"`
	Synonyms             map[string][]string `json:"synonyms"`
	SeparatorTokens      []string            `json:"separatorTokens"`
	NonSeparatorTokens   []string            `json:"nonSeparatorTokens"`
	Dictionary           []string            `json:"dictionary"`
	ProximityPrecision   string              `json:"proximityPrecision"`
	PrefixSearch         string              `json:"prefixSearch"`
	FacetSearch          bool                `json:"facetSearch"`
	ScoreFunctions       *walkScoring        `json:"scoreFunctions"`
	TypoTolerance        struct {
		Enabled             bool                            `json:"enabled"`
		MinWordSizeForTypos struct{ OneTypo, TwoTypos int } `json:"minWordSizeForTypos"`
		DisableOnWords      []string                        `json:"disableOnWords"`
		DisableOnAttributes []string                        `json:"disableOnAttributes"`
		DisableOnNumbers    bool                            `json:"disableOnNumbers"`
	} `json:"typoTolerance"`
	Pagination struct{ MaxTotalHits int } `json:"pagination"`
	Faceting   struct {
		MaxValuesPerFacet int
		SortFacetValuesBy map[string]string
	} `json:"faceting"`

	analyzer *text.Analyzer
}

// walkRanks are groups of searchable attributes of equal rank. nil means all.
type walkRanks [][]string

func (w *walkRanks) UnmarshalJSON(b []byte) error {
	var entries []json.RawMessage
	if err := json.Unmarshal(b, &entries); err != nil {
		return err
	}
	*w = walkRanks{}
	for _, entry := range entries {
		var names []string
		if json.Unmarshal(entry, &names) != nil {
			names = []string{""}
			if err := json.Unmarshal(entry, &names[0]); err != nil {
				return err
			}
		}
		*w = append(*w, names)
	}
	if slices.ContainsFunc(*w, func(names []string) bool { return slices.Contains(names, "*") }) {
		*w = nil
	}
	return nil
}

// walkFilterable are the filterable attributes. Rules name fields without nested ones, or walkElements.
type walkFilterable []walkFilter

// walkFilter is an entry of walkFilterable: a name, or a rule with features.
type walkFilter struct {
	name            string
	infix, elements bool
}

// has reports whether an entry includes a field.
func (f *walkFilter) has(field string) bool {
	switch {
	case f.elements:
		return strings.HasPrefix(field, strings.TrimSuffix(walkElements, "*"))
	case f.infix:
		return f.name == field
	}
	return covers([]string{f.name}, field)
}

func (w *walkFilterable) UnmarshalJSON(b []byte) error {
	var entries []json.RawMessage
	if err := json.Unmarshal(b, &entries); err != nil {
		return err
	}
	*w = nil
	for _, entry := range entries {
		var name string
		var rule struct {
			AttributePatterns []string
			Features          struct{ Infix, Elements bool }
		}
		if json.Unmarshal(entry, &name) == nil {
			*w = append(*w, walkFilter{name: name})
			continue
		}
		if err := json.Unmarshal(entry, &rule); err != nil {
			return err
		}
		for _, pattern := range rule.AttributePatterns {
			*w = append(*w, walkFilter{pattern, rule.Features.Infix, rule.Features.Elements})
		}
	}
	return nil
}

// walkDefaults are the default values of the members that the walk changes.
var walkDefaults = map[string]any{
	"searchableAttributes": []string{"*"}, "displayedAttributes": []string{"*"},
	"filterableAttributes": []string{}, "sortableAttributes": []string{},
	"rankingRules":      []string{"words", "typo", "proximity", "attributeRank", "sort", "wordPosition", "exactness"},
	"distinctAttribute": nil, "stopWords": []string{}, "synonyms": map[string]any{},
	"separatorTokens": []string{}, "nonSeparatorTokens": []string{}, "dictionary": []string{},
	"proximityPrecision": "byWord", "prefixSearch": "indexingTime", "facetSearch": true, "scoreFunctions": nil,
	"typoTolerance": map[string]any{"enabled": true, "minWordSizeForTypos": map[string]any{"oneTypo": 5, "twoTypos": 9},
		"disableOnWords": []string{}, "disableOnAttributes": []string{}, "disableOnNumbers": false},
	"pagination": map[string]any{"maxTotalHits": 1000},
	"faceting":   map[string]any{"maxValuesPerFacet": 100, "sortFacetValuesBy": map[string]any{"*": "alpha"}},
}

// parseWalkSettings parses a whole settings object.
func parseWalkSettings(all map[string]any) walkSettings {
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	var s walkSettings
	if err := json.Unmarshal(raw, &s); err != nil {
		panic(err)
	}
	if slices.Contains(s.DisplayedAttributes, "*") {
		s.DisplayedAttributes = nil
	}
	s.analyzer = text.New(text.Config{StopWords: s.StopWords, Separators: s.SeparatorTokens, NonSeparators: s.NonSeparatorTokens,
		Dictionary: s.Dictionary})
	return s
}

// searches reports whether a field is searchable.
func (s *walkSettings) searches(field string) bool {
	return !covers([]string{"_geo"}, field) && (s.SearchableAttributes == nil || covers(slices.Concat(s.SearchableAttributes...), field))
}

// weight is the rank of a field among the searchable attributes.
func (s *walkSettings) weight(field string) int {
	return max(0, slices.IndexFunc(s.SearchableAttributes, func(names []string) bool { return covers(names, field) }))
}

func (s *walkSettings) maxWeight() int { return max(0, len(s.SearchableAttributes)-1) }

// exact reports whether words of a field must match without typos.
func (s *walkSettings) exact(field string) bool {
	return covers(s.TypoTolerance.DisableOnAttributes, field)
}

// infix reports whether words of a field match by their parts: the first entry with the field decides.
func (s *walkSettings) infix(field string) bool {
	for _, f := range s.FilterableAttributes {
		if f.has(field) {
			return f.infix
		}
	}
	return false
}

func (s *walkSettings) filters(field string) bool {
	return slices.ContainsFunc(s.FilterableAttributes, func(f walkFilter) bool { return f.has(field) })
}
func (s *walkSettings) sorts(field string) bool { return covers(s.SortableAttributes, field) }

// sorting reports whether requests may sort.
func (s *walkSettings) sorting() bool { return slices.Contains(s.RankingRules, "sort") }

// byCount reports whether the values of a facet are listed by count.
func (s *walkSettings) byCount(facet string) bool {
	if order, ok := s.Faceting.SortFacetValuesBy[facet]; ok {
		return order == "count"
	}
	return s.Faceting.SortFacetValuesBy["*"] == "count"
}

// synonyms returns the synonyms as queries use them: the words of a key, joined by spaces, to values as lists of words.
func (s *walkSettings) synonyms() map[string][][]string {
	read := func(phrase string, stops bool) []string {
		var words []string
		for _, t := range s.analyzer.Tokens(nil, phrase, nil, true) {
			switch {
			case t.Kind == text.Word:
				words = append(words, t.Form)
			case t.Kind == text.StopWord && stops:
				words = append(words, text.StopEntry(t.Form))
			}
		}
		return words
	}
	of := map[string][][]string{}
	for key, values := range s.Synonyms {
		words := strings.Join(read(key, false), " ")
		if words == "" { // only stop words
			var plain []string
			for _, word := range read(key, true) {
				plain = append(plain, text.FormOf(word))
			}
			words = strings.Join(plain, " ")
		}
		for _, value := range values {
			if v := read(value, true); words != "" && len(v) > 0 {
				of[words] = append(of[words], v)
			}
		}
	}
	for key, values := range of {
		slices.SortFunc(values, slices.Compare[[]string])
		of[key] = slices.CompactFunc(values, slices.Equal[[]string])
	}
	return of
}

// walkRandom generates the requests of the walk.
type walkRandom struct {
	*rand.Rand
	many bool // hundreds of words and documents
}

func pick[T any](r walkRandom, from ...T) T { return from[r.IntN(len(from))] }

func (r walkRandom) chance(percent int) bool { return r.IntN(100) < percent }

// some returns a few of a list, in random order.
func some[T any](r walkRandom, most int, from ...T) []T {
	list := []T{}
	for _, i := range r.Perm(len(from))[:r.IntN(min(most, len(from))+1)] {
		list = append(list, from[i])
	}
	return list
}

var (
	walkTexts       = []string{"t", "u", "o", "o.p", "g"}
	walkFacetFields = []string{"g", "o.k", "n", "b", "x", "o", "id"}
	walkGrams       = []string{"sun", "flower", "sunflower", "sunflowers", "new", "york", "newyork", "city", "red", "car", "redcar", "ab", "abc", "aab"}
	// walkForms are words with the form of other words: symbols are not part of words, ß is ss, entries of the dictionary match in any
	// case, and the Arabic article is optional.
	walkForms      = []string{"Straße", "strasse", "STRAẞE", "straß", "€12", "fox™", "red→car", "E-Mail", "e-mail", "C++", "c++", "New York", "الكتاب", "كتاب", "كتب"}
	walkVocabulary = append([]string{"planet", "planets", "plamet", "plnaet", "planetary", "lanet", "astronomy", "astronony", "zstronomy",
		"jumped", "jump", "lazy", "über", "uber", "over", "café", "Cafe", "e", "mail", "email", "the", "The", "of", "a", "12", "123", "12345", "1.5",
		"foxe", "fox", "sword", "words", "catalog", "hello"}, append(walkGrams, walkForms...)...)
)

// change makes new values of some settings; null resets a setting.
func (r walkRandom) change() map[string]any {
	change := map[string]any{}
	for _, name := range some(r, 4, slices.Sorted(maps.Keys(walkDefaults))...) {
		if r.chance(20) {
			change[name] = nil
		} else {
			change[name] = r.setting(name)
		}
	}
	return change
}

func (r walkRandom) setting(name string) any {
	words := func(most int) []string { return some(r, most, walkVocabulary...) }
	switch name {
	case "searchableAttributes":
		return r.ranks(r.attributes(4, walkTexts...))
	case "displayedAttributes":
		return append(r.attributes(4, "t", "u", "o", "o.k", "o.p", "g", "_geo"), "id")
	case "filterableAttributes":
		names := append(some(r, 6, append(slices.Clone(walkFacetFields), "t", "_geo")...), some(r, 2, "g", "n")...)
		if r.chance(60) {
			names = append(names, walkElements)
		}
		rules := make([]any, len(names))
		for i, name := range names {
			rules[i] = name
			switch {
			case name == walkElements:
				rules[i] = map[string]any{"attributePatterns": []string{name}, "features": map[string]any{"facetSearch": true, "elements": true,
					"filter": map[string]any{"equality": true, "comparison": true}}}
			case r.chance(50) && slices.Contains([]string{"g", "o.k", "n", "b", "t"}, name):
				rules[i] = map[string]any{"attributePatterns": []string{name}, "features": map[string]any{"facetSearch": true, "infix": true,
					"filter": map[string]any{"equality": true, "comparison": true}}}
			}
		}
		return rules
	case "sortableAttributes":
		return some(r, 5, "n", "g", "o", "o.k", "b", "t", "_geo", "id")
	case "rankingRules":
		rules := some(r, 6, pick(r, []string{"words", "typo", "proximity", "attribute", "sort", "exactness"},
			[]string{"words", "typo", "proximity", "attributeRank", "sort", "wordPosition", "exactness"})...)
		if r.chance(60) {
			rules = walkDefaults["rankingRules"].([]string)
		}
		return slices.Insert(slices.Clone(rules), r.IntN(len(rules)+1), some(r, 2, "n:asc", "o.k:desc", "g:asc", "score")...)
	case "distinctAttribute":
		return pick[any](r, nil, "g", "n", "o.k")
	case "stopWords":
		return some(r, 5, "the", "Of", "A", "jump", "CITY", "كتب", "Straße")
	case "synonyms":
		of := map[string][]string{}
		for range r.IntN(5) {
			key := strings.Join(words(3), " ")
			for range r.IntN(4) {
				of[key] = append(of[key], strings.Join(words(3), " "))
			}
		}
		if r.chance(30) {
			of[pick(r, "sun of flower", "planet the of red", "the of", "new a york city")] = []string{strings.Join(words(2), " "), "lazy fox"}
		}
		return of
	case "separatorTokens":
		return some(r, 2, "x", "ew")
	case "nonSeparatorTokens":
		return some(r, 2, "-", ".")
	case "dictionary":
		return some(r, 2, "e-Mail", "new York", "C++")
	case "proximityPrecision":
		return pick(r, "byWord", "byAttribute")
	case "prefixSearch":
		return pick(r, "indexingTime", "disabled")
	case "scoreFunctions":
		return r.scoring(func(string) bool { return true })
	case "facetSearch":
		return r.chance(70)
	case "typoTolerance":
		one := 1 + r.IntN(6)
		return map[string]any{"enabled": r.chance(90), "minWordSizeForTypos": map[string]any{"oneTypo": one, "twoTypos": one + r.IntN(5)},
			"disableOnWords": words(2), "disableOnAttributes": some(r, 2, "t", "u", "o"), "disableOnNumbers": r.chance(50)}
	case "pagination":
		return map[string]any{"maxTotalHits": pick(r, 1, 5, 20, 1000)}
	default:
		by := map[string]any{"*": pick(r, "alpha", "count")}
		for _, facet := range some(r, 2, "g", "o.k") {
			by[facet] = pick(r, "alpha", "count")
		}
		return map[string]any{"maxValuesPerFacet": pick(r, 1, 3, 10, 100), "sortFacetValuesBy": by}
	}
}

// attributes returns some names, or all.
func (r walkRandom) attributes(most int, from ...string) []string {
	if r.chance(30) {
		return []string{"*"}
	}
	return some(r, most, from...)
}

// ranks groups some adjacent names.
func (r walkRandom) ranks(names []string) []any {
	entries := []any{}
	for len(names) > 0 {
		n := 1 + r.IntN(min(3, len(names)))
		if names[0] == "*" || r.chance(60) {
			entries, names = append(entries, names[0]), names[1:]
			continue
		}
		entries, names = append(entries, names[:n]), names[n:]
	}
	return entries
}

// settingsAfter returns settings after a change. Objects are merged member by member.
func settingsAfter(all, change map[string]any) map[string]any {
	all = maps.Clone(all)
	for name, value := range change {
		if value == nil {
			value = walkDefaults[name]
		}
		all[name] = value
	}
	return all
}
