package settings

import "math"

// Settings are the complete settings of one index: settings that are not set have their default. A value is immutable once it is
// shared. Maps and slices may be shared between versions of an index's settings.
type Settings struct {
	// DisplayedAttributes and SearchableAttributes are nil for all ("*"); an empty list is none. The index of an entry of
	// SearchableAttributes is its rank.
	DisplayedAttributes  []string
	SearchableAttributes []SearchableEntry

	FilterableAttributes []FilterableRule // the first rule that covers a field wins
	SortableAttributes   []string         // sorted, unique
	ForeignKeys          []ForeignKey
	RankingRules         []RankingRule

	StopWords          []string // sorted, unique
	NonSeparatorTokens []string // sorted, unique
	SeparatorTokens    []string // sorted, unique
	Dictionary         []string // sorted, unique
	Synonyms           Synonyms

	DistinctAttribute   string // "" for none
	ProximityPrecision  ProximityPrecision
	TypoTolerance       TypoTolerance
	Faceting            Faceting
	Pagination          Pagination
	Embedders           map[string]*Embedder // not to be modified
	SearchCutoffMs      *uint64              // nil: the product's default; NoCutoff: none
	LocalizedAttributes []LocalizedRule      // nil: not set; the first rule that covers a field wins
	FacetSearch         bool
	PrefixSearch        PrefixSearch
	Chat                Chat
	TimeToLive          *TimeToLive     // nil: documents do not expire; not to be modified
	ScoreFunctions      *ScoreFunctions // nil: none; not to be modified
	Suggestions         *Suggestions    // nil: none are made; not to be modified
}

// TimeToLive says when documents expire: Seconds after the time in a field, in seconds since 1970. Of several numbers in the field the
// greatest counts. A document without a number there does not expire.
type TimeToLive struct {
	Attribute string
	Seconds   uint64
}

// MaxTimeToLive is the greatest number of seconds of a TimeToLive, some 31,000 years.
const MaxTimeToLive = 1e12

// SearchableEntry is an entry of searchableAttributes: attributes with the same rank. A plain entry is a string in the settings and
// has one name. A group is an array and has one or more.
type SearchableEntry struct {
	Names []string
	Plain bool
}

// FilterableRule opens fields to filters and facets. A plain rule was given as a
// string: it has one pattern, taken literally, that covers the field and all below it,
// and all features. The patterns of other rules cover full paths only.
type FilterableRule struct {
	Patterns    []string
	Plain       bool
	FacetSearch bool
	Equality    bool
	Comparison  bool
	Elements    bool // filters may ask for the objects that the fields stand in one by one
	Infix       bool // texts are indexed for CONTAINS
}

// ForeignKey says that a field holds ids of documents of another index.
type ForeignKey struct {
	ForeignIndexUID string `json:"foreignIndexUid"`
	FieldName       string `json:"fieldName"`
}

// LocalizedRule says which languages the fields that a pattern covers are written in.
type LocalizedRule struct {
	Patterns []string
	Locales  []string // ISO-639-3 codes
}

// TypoTolerance steers which words match with typos.
type TypoTolerance struct {
	Enabled             bool
	OneTypo             uint8    // characters from which a word may have one typo
	TwoTypos            uint8    // characters from which a word may have two
	DisableOnWords      []string // lower case, sorted, unique
	DisableOnAttributes []string // sorted, unique
	DisableOnNumbers    bool
}

// Faceting steers the values shown of each facet.
type Faceting struct {
	MaxValuesPerFacet int
	SortFacetValuesBy map[string]FacetOrder // "*" is always there
}

// Order returns the order of the values of a facet.
func (f *Faceting) Order(facet string) FacetOrder {
	if o, ok := f.SortFacetValuesBy[facet]; ok {
		return o
	}
	return f.SortFacetValuesBy["*"]
}

// Pagination bounds how deep a search reaches.
type Pagination struct{ MaxTotalHits int }

// Chat is the description of the index for a language model, with the parameters of its searches.
type Chat struct {
	Description              string
	DocumentTemplate         string
	DocumentTemplateMaxBytes int
	SearchParameters         ChatSearch
}

// NoCutoff is the SearchCutoffMs for an explicit null. It is shown as null, but stored, dumped and exported as this number, because
// null is the default there.
const NoCutoff = math.MaxUint64

// FacetOrder is an order of facet values.
type FacetOrder uint8

const (
	Alpha FacetOrder = iota
	Count            // most frequent first

	FacetOrders // how many there are
)

// facetOrderNames has a name for each order.
var facetOrderNames = [FacetOrders]string{Alpha: "alpha", Count: "count"}

// ProximityPrecision says how near words must be to count as near.
type ProximityPrecision uint8

const (
	ByWord ProximityPrecision = iota
	ByAttribute
)

// PrefixSearch says whether the last word of a query matches as a prefix.
type PrefixSearch uint8

const (
	IndexingTime PrefixSearch = iota
	PrefixDisabled
)

func (o FacetOrder) String() string         { return facetOrderNames[o] }
func (p ProximityPrecision) String() string { return [...]string{"byWord", "byAttribute"}[p] }
func (p PrefixSearch) String() string       { return [...]string{"indexingTime", "disabled"}[p] }

// Default returns the settings of a new index.
func Default() *Settings {
	return &Settings{
		RankingRules: []RankingRule{{Kind: Words}, {Kind: Typo}, {Kind: Proximity}, {Kind: AttributeRank},
			{Kind: Sort}, {Kind: WordPosition}, {Kind: Exactness}},
		TypoTolerance: TypoTolerance{Enabled: true, OneTypo: 5, TwoTypos: 9},
		Faceting:      Faceting{MaxValuesPerFacet: 100, SortFacetValuesBy: map[string]FacetOrder{"*": Alpha}},
		Pagination:    Pagination{MaxTotalHits: 1000},
		FacetSearch:   true,
		Chat:          Chat{DocumentTemplate: defaultTemplate, DocumentTemplateMaxBytes: defaultTemplateBytes},
	}
}

// FieldRules lists the fields that ranking rules name.
func (s *Settings) FieldRules() []string {
	var names []string
	for _, r := range s.RankingRules {
		if r.Kind.OfField() {
			names = append(names, r.Field)
		}
	}
	return names
}
