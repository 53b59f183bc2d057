package settings

import (
	"strings"

	"svc/internal/document"
	"svc/segment"
)

// Paths with a special meaning. They have no words, and _vectors has no column either.
const (
	GeoField     = "_geo"
	GeoJSONField = "_geojson"
	VectorsField = document.VectorsField
)

// FieldInfo is what the settings say of one field.
type FieldInfo struct {
	Name                              string
	Searchable                        bool
	Weight                            int  // index in searchableAttributes of the first entry that covers it; 0 with "*"
	Exact                             bool // in typoTolerance.disableOnAttributes
	Displayed                         bool
	Sortable                          bool
	Distinct                          bool
	Filterable                        bool // any filter feature or facet search
	Equality, Comparison, FacetSearch bool
	Elements                          bool     // filters in braces may use the field
	Infix                             bool     // the column has an index for parts of its texts
	Scope                             bool     // braces may follow the path: the objects there are elements
	GeoFilter                         bool     // of _geo and _geojson: geo filters may use it, as filterableAttributes has its plain name
	Places                            bool     // of _geo and _geojson: in use, by geo filters, to sort or to score
	Column                            bool     // a column is kept: filterable, sortable, distinct, in an asc/desc rule, timeToLive or scoreFunctions
	Locales                           []string // of the localised rule that covers it; nil: no rule
}

// Filters reports whether filters (some at least) and facet distributions may use the field.
// Filterable is wider: it holds, too, when only facet search is open.
func (i *FieldInfo) Filters() bool { return i.Equality || i.Comparison }

// Fields resolves the settings for each field of an index. Immutable.
type Fields struct {
	rules *rules
	infos []FieldInfo
	ids   map[string]segment.FieldID
}

// Resolve computes what s says of each field; names[i] is the path of FieldID i.
func Resolve(names []string, s *Settings, primaryKey string) *Fields {
	f := &Fields{
		rules: compile(s, primaryKey),
		infos: make([]FieldInfo, len(names)),
		ids:   make(map[string]segment.FieldID, len(names)),
	}
	for i, name := range names {
		f.infos[i] = f.rules.info(name)
		f.ids[name] = segment.FieldID(i)
	}
	return f
}

// Extend returns f with further fields: names[i] is the path of FieldID f.Len()+i. It
// costs a copy and the new names, so it serves when documents bring new fields.
func (f *Fields) Extend(names []string) *Fields {
	g := &Fields{
		rules: f.rules,
		infos: make([]FieldInfo, len(f.infos), len(f.infos)+len(names)),
		ids:   make(map[string]segment.FieldID, len(f.infos)+len(names)),
	}
	copy(g.infos, f.infos)
	for i, name := range names {
		g.infos = append(g.infos, f.rules.info(name))
		g.ids[name] = segment.FieldID(len(f.infos) + i)
	}
	for i := range f.infos {
		g.ids[f.infos[i].Name] = segment.FieldID(i)
	}
	return g
}

func (f *Fields) Len() int { return len(f.infos) }

// ID returns the number of a field.
func (f *Fields) ID(name string) (segment.FieldID, bool) {
	id, ok := f.ids[name]
	return id, ok
}

// Info returns the FieldInfo of a field. The value is shared.
func (f *Fields) Info(id segment.FieldID) *FieldInfo { return &f.infos[id] }

// InfoOf resolves a path that need not be a known field.
func (f *Fields) InfoOf(name string) FieldInfo {
	if id, ok := f.ids[name]; ok {
		return f.infos[id]
	}
	return f.rules.info(name)
}

// MaxWeight is the largest weight a field can have: entries of
// searchableAttributes less one, whether or not a field matches them all.
func (f *Fields) MaxWeight() int { return f.rules.maxWeight }

// HasElements reports whether there may be elements: objects that filters match one by one.
func (f *Fields) HasElements() bool { return f.rules.elements.any() }

// PrimaryKey returns the path of the primary key, or "" while it is not known.
func (f *Fields) PrimaryKey() string { return f.rules.primaryKey }

// rules is Settings prepared for resolving one path in time independent of how many entries the lists have.
type rules struct {
	primaryKey    string
	allSearchable bool
	maxWeight     int
	weights       map[string]int // name in searchableAttributes → the index of the first entry that has it
	exact         map[string]bool
	allDisplayed  bool
	displayed     map[string]bool
	sortable      map[string]bool
	fieldRules    map[string]bool
	distinct      string
	expiry        string // "" for none
	scored        map[string]bool
	filterable    []FilterableRule
	filterRule    patterns
	elements      elementRules
	localized     []LocalizedRule
	localizedRule patterns
}

// compile turns settings into rules for names of fields: sets, weights and patterns.
func compile(s *Settings, primaryKey string) *rules {
	expiry := ""
	if s.TimeToLive != nil {
		expiry = s.TimeToLive.Attribute
	}
	var scored map[string]bool
	if s.ScoreFunctions != nil {
		scored = map[string]bool{}
		for i := range s.ScoreFunctions.Functions {
			scored[s.ScoreFunctions.Functions[i].Attribute] = true
		}
	}
	r := &rules{
		primaryKey:    primaryKey,
		allSearchable: s.SearchableAttributes == nil,
		exact:         set(s.TypoTolerance.DisableOnAttributes),
		allDisplayed:  s.DisplayedAttributes == nil,
		displayed:     set(s.DisplayedAttributes),
		sortable:      set(s.SortableAttributes),
		fieldRules:    set(s.FieldRules()),
		distinct:      s.DistinctAttribute,
		expiry:        expiry,
		scored:        scored,
		filterable:    s.FilterableAttributes,
		localized:     s.LocalizedAttributes,
	}
	if !r.allSearchable {
		r.maxWeight = max(len(s.SearchableAttributes)-1, 0)
		r.weights = make(map[string]int, len(s.SearchableAttributes))
		for i, entry := range s.SearchableAttributes {
			for _, a := range entry.Names {
				if _, ok := r.weights[a]; !ok {
					r.weights[a] = i
				}
			}
		}
	}
	for i, rule := range s.FilterableAttributes {
		for _, p := range rule.Patterns {
			if rule.Plain {
				r.filterRule.addTree(p, i)
			} else {
				r.filterRule.add(p, i)
				if rule.Elements {
					r.elements.add(p)
				}
			}
		}
	}
	for i, rule := range s.LocalizedAttributes {
		for _, p := range rule.Patterns {
			r.localizedRule.add(p, i)
		}
	}
	return r
}

func set(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// info applies the rules to a name. Embeddings are never searched, sorted or filtered by name, places not by
// words.
func (r *rules) info(name string) FieldInfo {
	i := FieldInfo{Name: name}
	i.Displayed = r.allDisplayed || covers(r.displayed, name)
	if within(name, VectorsField) {
		return i
	}
	if !within(name, GeoField) && !within(name, GeoJSONField) {
		i.Weight, i.Searchable = r.weight(name)
		i.Exact = covers(r.exact, name)
		if n := r.localizedRule.first(name); n >= 0 {
			i.Locales = r.localized[n].Locales
			if i.Locales == nil {
				i.Locales = []string{}
			}
		}
	}
	i.Sortable = covers(r.sortable, name)
	i.Distinct = r.distinct != "" && name == r.distinct
	if n := r.filterRule.first(name); n >= 0 {
		rule := &r.filterable[n]
		i.Equality, i.Comparison, i.FacetSearch = rule.Equality, rule.Comparison, rule.FacetSearch
		i.Filterable = i.Equality || i.Comparison || i.FacetSearch
		i.Elements = rule.Elements && i.Filters()
		i.Infix = rule.Infix && i.Equality // which opens CONTAINS
	}
	i.Scope = r.elements.scope(name)
	if name == GeoField || name == GeoJSONField {
		// A pattern that covers the name requires no points there, and its features do not affect geo filters.
		i.GeoFilter = r.filterRule.hasTree(name)
		i.Places = i.Sortable || i.GeoFilter || r.scored[name]
	}
	i.Column = i.Filterable || i.Sortable || i.Distinct || r.fieldRules[name] || r.expiry != "" && name == r.expiry || r.scored[name]
	return i
}

// weight returns the index of the first entry of searchableAttributes that has the path or a parent of it.
func (r *rules) weight(name string) (int, bool) {
	if r.allSearchable {
		return 0, true
	}
	best, found := 0, false
	for path := range upwards(name) {
		if w, ok := r.weights[path]; ok && (!found || w < best) {
			best, found = w, true
		}
	}
	return best, found
}

// covers reports whether the set has the path or a parent of it.
func covers(m map[string]bool, name string) bool {
	if len(m) == 0 {
		return false
	}
	for path := range upwards(name) {
		if m[path] {
			return true
		}
	}
	return false
}

// within reports whether name is the path root or lies below it.
func within(name, root string) bool {
	return strings.HasPrefix(name, root) && (len(name) == len(root) || name[len(root)] == '.')
}

// upwards yields the path and its parents: a.b.c, a.b, a.
func upwards(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for yield(name) {
			i := strings.LastIndexByte(name, '.')
			if i < 0 {
				return
			}
			name = name[:i]
		}
	}
}
