package settings

import (
	"encoding/json"
	"net/http"
	"strconv"

	"svc/internal/apierr"
)

// Features are the experimental features that open settings.
type Features struct{ ForeignKeys, Chat, CompositeEmbedders, Multimodal bool }

// setting is one row of the table of settings: everything that is specific to one of them.
type setting struct {
	key    string // in JSON
	route  string // below /settings
	method string // that updates it there
	code   apierr.Code
	shape  Schema // of a value that is not null, for the document of the API

	// read puts a value that is not null into s, replacing or merging. It checks all that can be known
	// without the rest of the index's settings. Everything it stores is its own.
	read  func(s *Settings, v value) error
	reset func(s, defaults *Settings)
	show  func(s *Settings, secrets bool) any

	echo  func(v value, secrets bool) any           // how tasks show a value, when not as sent
	open  func(v value, f Features) error           // refuses a value whose feature is off
	valid func(s *Settings, code apierr.Code) error // checks the setting after a merge
	null  json.RawMessage                           // what a null that was sent stands for; nil: the default
	stale stale
	own   bool // of svc alone: all settings together show it only while it is set, as clients of the reference know them without it
}

// table has the settings in the order in which the API shows them.
var table = []setting{
	{
		key: "displayedAttributes", route: "displayed-attributes", method: http.MethodPut, code: "invalid_settings_displayed_attributes",
		shape: textsShape,
		read:  func(s *Settings, v value) error { return readStarred(&s.DisplayedAttributes, v) },
		reset: func(s, d *Settings) { s.DisplayedAttributes = d.DisplayedAttributes },
		show:  func(s *Settings, _ bool) any { return starred(s.DisplayedAttributes) },
	},
	{
		key: "searchableAttributes", route: "searchable-attributes", method: http.MethodPut, code: "invalid_settings_searchable_attributes",
		shape: searchableShape,
		read:  readSearchable,
		reset: func(s, d *Settings) { s.SearchableAttributes = d.SearchableAttributes },
		show:  func(s *Settings, _ bool) any { return showSearchable(s.SearchableAttributes) },
		stale: wordsOfNewFields,
	},
	{
		key: "filterableAttributes", route: "filterable-attributes", method: http.MethodPut, code: "invalid_settings_filterable_attributes",
		shape: listShape(filterableShape),
		read:  readFilterable,
		reset: func(s, d *Settings) { s.FilterableAttributes = d.FilterableAttributes },
		show:  func(s *Settings, _ bool) any { return showFilterable(s.FilterableAttributes) },
		echo:  echoRead(readFilterable, func(s *Settings) any { return showFilterable(s.FilterableAttributes) }),
		stale: columns,
	},
	{
		key: "sortableAttributes", route: "sortable-attributes", method: http.MethodPut, code: "invalid_settings_sortable_attributes",
		shape: textsShape,
		read:  func(s *Settings, v value) error { return readSet(&s.SortableAttributes, v) },
		reset: func(s, d *Settings) { s.SortableAttributes = d.SortableAttributes },
		show:  func(s *Settings, _ bool) any { return list(s.SortableAttributes) },
		echo:  echoSet,
		stale: columns,
	},
	{
		key: "foreignKeys", route: "foreign-keys", method: http.MethodPut, code: "invalid_settings_foreign_keys",
		shape: listShape(strict(members{"foreignIndexUid": textShape, "fieldName": textShape}, "foreignIndexUid", "fieldName")),
		read:  readForeignKeys,
		reset: func(s, d *Settings) { s.ForeignKeys = d.ForeignKeys },
		show:  func(s *Settings, _ bool) any { return list(s.ForeignKeys) },
		open: func(_ value, f Features) error {
			return needs(f.ForeignKeys, "foreignKeys", "The setting `foreignKeys`")
		},
	},
	{
		key: "rankingRules", route: "ranking-rules", method: http.MethodPut, code: "invalid_settings_ranking_rules",
		shape: textsShape,
		read:  readRankingRules,
		reset: func(s, d *Settings) { s.RankingRules = d.RankingRules },
		show:  func(s *Settings, _ bool) any { return showRankingRules(s.RankingRules) },
		stale: columns,
	},
	{
		key: "stopWords", route: "stop-words", method: http.MethodPut, code: "invalid_settings_stop_words",
		shape: textsShape,
		read:  func(s *Settings, v value) error { return readSet(&s.StopWords, v) },
		reset: func(s, d *Settings) { s.StopWords = d.StopWords },
		show:  func(s *Settings, _ bool) any { return list(s.StopWords) },
		echo:  echoSet,
		stale: words,
	},
	{
		key: "nonSeparatorTokens", route: "non-separator-tokens", method: http.MethodPut, code: "invalid_settings_non_separator_tokens",
		shape: textsShape,
		read:  func(s *Settings, v value) error { return readSet(&s.NonSeparatorTokens, v) },
		reset: func(s, d *Settings) { s.NonSeparatorTokens = d.NonSeparatorTokens },
		show:  func(s *Settings, _ bool) any { return list(s.NonSeparatorTokens) },
		echo:  echoSet,
		stale: words,
	},
	{
		key: "separatorTokens", route: "separator-tokens", method: http.MethodPut, code: "invalid_settings_separator_tokens",
		shape: textsShape,
		read:  func(s *Settings, v value) error { return readSet(&s.SeparatorTokens, v) },
		reset: func(s, d *Settings) { s.SeparatorTokens = d.SeparatorTokens },
		show:  func(s *Settings, _ bool) any { return list(s.SeparatorTokens) },
		echo:  echoSet,
		stale: words,
	},
	{
		key: "dictionary", route: "dictionary", method: http.MethodPut, code: "invalid_settings_dictionary",
		shape: textsShape,
		read:  func(s *Settings, v value) error { return readSet(&s.Dictionary, v) },
		reset: func(s, d *Settings) { s.Dictionary = d.Dictionary },
		show:  func(s *Settings, _ bool) any { return list(s.Dictionary) },
		echo:  echoSet,
		stale: words,
	},
	{
		key: "synonyms", route: "synonyms", method: http.MethodPut, code: "invalid_settings_synonyms",
		shape: mapShape(textsShape),
		read:  readSynonyms,
		reset: func(s, d *Settings) { s.Synonyms = d.Synonyms },
		show:  func(s *Settings, _ bool) any { return s.Synonyms },
	},
	{
		key: "distinctAttribute", route: "distinct-attribute", method: http.MethodPut, code: "invalid_settings_distinct_attribute",
		shape: textShape,
		read: func(s *Settings, v value) (err error) {
			s.DistinctAttribute, err = v.text()
			return err
		},
		reset: func(s, d *Settings) { s.DistinctAttribute = d.DistinctAttribute },
		show: func(s *Settings, _ bool) any {
			if s.DistinctAttribute == "" {
				return nil
			}
			return s.DistinctAttribute
		},
		stale: columns,
	},
	{
		// Positions are always kept, so both precisions are read from the same postings.
		key: "proximityPrecision", route: "proximity-precision", method: http.MethodPut, code: "invalid_settings_proximity_precision",
		shape: choiceShape(ByWord.String(), ByAttribute.String()),
		read: func(s *Settings, v value) error {
			n, err := v.choice(ByWord.String(), ByAttribute.String())
			s.ProximityPrecision = ProximityPrecision(n)
			return err
		},
		reset: func(s, d *Settings) { s.ProximityPrecision = d.ProximityPrecision },
		show:  func(s *Settings, _ bool) any { return s.ProximityPrecision.String() },
	},
	{
		// Exact attributes and numbers take effect when a query's words are derived, by the field of a posting.
		key: "typoTolerance", route: "typo-tolerance", method: http.MethodPatch, code: "invalid_settings_typo_tolerance",
		shape: typoToleranceShape,
		read:  readTypoTolerance,
		reset: func(s, d *Settings) { s.TypoTolerance = d.TypoTolerance },
		show:  func(s *Settings, _ bool) any { return showTypoTolerance(&s.TypoTolerance) },
		echo:  echoTypoTolerance,
		valid: validTypoTolerance,
	},
	{
		key: "faceting", route: "faceting", method: http.MethodPatch, code: "invalid_settings_faceting",
		shape: loose(members{"maxValuesPerFacet": countShape, "sortFacetValuesBy": mapShape(choiceShape(facetOrderNames[:]...))}),
		read:  readFaceting,
		reset: func(s, d *Settings) { s.Faceting = d.Faceting },
		show:  func(s *Settings, _ bool) any { return showFaceting(&s.Faceting) },
	},
	{
		key: "pagination", route: "pagination", method: http.MethodPatch, code: "invalid_settings_pagination",
		shape: loose(members{"maxTotalHits": {"type": "integer", "minimum": 1}}),
		read:  readPagination,
		reset: func(s, d *Settings) { s.Pagination = d.Pagination },
		show:  func(s *Settings, _ bool) any { return object{{"maxTotalHits", s.Pagination.MaxTotalHits}} },
	},
	{
		key: "embedders", route: "embedders", method: http.MethodPatch, code: "invalid_settings_embedders",
		shape: mapShape(orNull(embedderShape(false))),
		read:  readEmbedders,
		reset: func(s, d *Settings) { s.Embedders = d.Embedders },
		show:  func(s *Settings, secrets bool) any { return showEmbedders(s.Embedders, secrets) },
		echo:  echoEmbedders,
		open:  openEmbedders,
		valid: validEmbedders,
	},
	{
		key: "searchCutoffMs", route: "search-cutoff-ms", method: http.MethodPut, code: "invalid_settings_search_cutoff_ms",
		shape: countShape,
		read: func(s *Settings, v value) error {
			n, err := v.whole(NoCutoff)
			s.SearchCutoffMs = &n
			return err
		},
		reset: func(s, d *Settings) { s.SearchCutoffMs = d.SearchCutoffMs },
		show: func(s *Settings, secrets bool) any {
			if n := s.SearchCutoffMs; n != nil && *n == NoCutoff && !secrets {
				return nil
			}
			return s.SearchCutoffMs
		},
		echo: func(v value, secrets bool) any {
			if n, err := v.whole(NoCutoff); err == nil && n == NoCutoff && !secrets {
				return nil
			}
			return v.raw
		},
		null: strconv.AppendUint(nil, NoCutoff, 10),
	},
	{
		key: "localizedAttributes", route: "localized-attributes", method: http.MethodPut, code: "invalid_settings_localized_attributes",
		shape: listShape(Schema{"type": "object", "properties": Schema{"attributePatterns": textsShape, "locales": textsShape}, "required": []any{"attributePatterns", "locales"}}),
		read:  readLocalized,
		reset: func(s, d *Settings) { s.LocalizedAttributes = d.LocalizedAttributes },
		show:  func(s *Settings, _ bool) any { return showLocalized(s.LocalizedAttributes) },
		echo:  echoLocalized,
		stale: wordsOfNewFields,
	},
	{
		key: "facetSearch", route: "facet-search", method: http.MethodPut, code: "invalid_settings_facet_search",
		shape: flagShape,
		read: func(s *Settings, v value) (err error) {
			s.FacetSearch, err = v.boolean()
			return err
		},
		reset: func(s, d *Settings) { s.FacetSearch = d.FacetSearch },
		show:  func(s *Settings, _ bool) any { return s.FacetSearch },
	},
	{
		key: "prefixSearch", route: "prefix-search", method: http.MethodPut, code: "invalid_settings_prefix_search",
		shape: choiceShape(IndexingTime.String(), PrefixDisabled.String()),
		read: func(s *Settings, v value) error {
			n, err := v.choice(IndexingTime.String(), PrefixDisabled.String())
			s.PrefixSearch = PrefixSearch(n)
			return err
		},
		reset: func(s, d *Settings) { s.PrefixSearch = d.PrefixSearch },
		show:  func(s *Settings, _ bool) any { return s.PrefixSearch.String() },
		stale: prefixes,
	},
	{
		key: "chat", route: "chat", method: http.MethodPatch, code: "invalid_settings_index_chat",
		shape: chatShape,
		read:  readChat,
		reset: func(s, d *Settings) { s.Chat = d.Chat },
		show:  func(s *Settings, _ bool) any { return showChat(&s.Chat) },
		echo:  echoChat,
		open: func(_ value, f Features) error {
			return needs(f.Chat, "chatCompletions", "The setting `chat`")
		},
		valid: validChat,
	},
	{
		key: "timeToLive", route: "time-to-live", method: http.MethodPut, code: "invalid_settings_time_to_live",
		shape: strict(members{"attribute": {"type": "string", "minLength": 1}, "seconds": {"type": "integer", "minimum": 0, "maximum": int64(MaxTimeToLive)}}, "attribute"),
		read:  readTimeToLive,
		reset: func(s, d *Settings) { s.TimeToLive = d.TimeToLive },
		show:  func(s *Settings, _ bool) any { return showTimeToLive(s.TimeToLive) },
		stale: columns,
		own:   true,
	},
	{
		key: "scoreFunctions", route: "score-functions", method: http.MethodPut, code: "invalid_settings_score_functions",
		shape: scoreShape,
		read: func(s *Settings, v value) (err error) {
			s.ScoreFunctions, err = readScores(v)
			return err
		},
		reset: func(s, d *Settings) { s.ScoreFunctions = d.ScoreFunctions },
		show:  func(s *Settings, _ bool) any { return showScores(s.ScoreFunctions) },
		stale: columns,
		own:   true,
	},
	{
		key: "suggestions", route: "suggestions", method: http.MethodPut, code: "invalid_settings_suggestions",
		shape: suggestionsShape,
		read:  readSuggestions,
		reset: func(s, d *Settings) { s.Suggestions = d.Suggestions },
		show:  func(s *Settings, _ bool) any { return showSuggestions(s.Suggestions) },
		own:   true,
	},
}

// byKey and byRoute find rows of the table.
var byKey, byRoute = index()

func index() (keys, routes map[string]int) {
	keys, routes = map[string]int{}, map[string]int{}
	for i := range table {
		keys[table[i].key], routes[table[i].route] = i, i
	}
	return keys, routes
}

// shown reports whether the setting is part of GET /settings under f.
func (t *setting) shown(s *Settings, f Features) bool {
	if t.own && t.show(s, true) == nil {
		return false
	}
	switch t.key {
	case "foreignKeys":
		return f.ForeignKeys
	case "chat":
		return f.Chat
	}
	return true
}

// starts reports whether a reset shows as ["*"] in tasks.
func (t *setting) starts() bool {
	return t.key == "displayedAttributes" || t.key == "searchableAttributes"
}

func needs(on bool, feature, what string) error {
	if on {
		return nil
	}
	return apierr.New("feature_not_enabled", "%s needs the experimental feature `%s`. "+
		"Enable it with PATCH /experimental-features.", what, feature)
}

// list shows an empty list as [], not null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func dict[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
