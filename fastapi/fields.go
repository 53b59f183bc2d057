package fastapi

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/settings"
	"svc/segment"
)

// fieldQuery is the body of the listing of fields.
type fieldQuery struct {
	paging
	patterns                                                        []string // nil: not given
	displayed, searchable, sortable, distinct, rankingRule, filters *bool
}

var fieldQueryParams = []param[fieldQuery]{
	{name: "offset", code: "invalid_index_offset", kind: count, set: func(q *fieldQuery, a *arg) error { q.offset = a.count; return nil }},
	{name: "limit", code: "invalid_index_limit", kind: count, set: func(q *fieldQuery, a *arg) error { q.limit = a.count; return nil }},
	{name: "filter", code: "invalid_index_fields_filter", kind: raw, null: true, shape: objectOf(fieldFilterParams), set: func(q *fieldQuery, a *arg) error {
		return decode(q, a.json, fieldFilterParams, object{path: "filter.", code: a.code, notCode: a.code})
	}},
}

var fieldFilterParams = []param[fieldQuery]{
	{name: "attributePatterns", code: "invalid_index_fields_filter_attribute_patterns", kind: list, null: true, set: func(q *fieldQuery, a *arg) error {
		q.patterns = a.list
		return nil
	}},
	fieldFlag("displayed", "displayed", func(q *fieldQuery) **bool { return &q.displayed }),
	fieldFlag("searchable", "searchable", func(q *fieldQuery) **bool { return &q.searchable }),
	fieldFlag("sortable", "sortable", func(q *fieldQuery) **bool { return &q.sortable }),
	fieldFlag("distinct", "distinct", func(q *fieldQuery) **bool { return &q.distinct }),
	fieldFlag("rankingRule", "ranking_rule", func(q *fieldQuery) **bool { return &q.rankingRule }),
	fieldFlag("filterable", "filterable", func(q *fieldQuery) **bool { return &q.filters }),
}

func fieldFlag(name, code string, field func(*fieldQuery) **bool) param[fieldQuery] {
	return param[fieldQuery]{name: name, code: apierr.Code("invalid_index_fields_filter_" + code), kind: flag, null: true,
		set: func(q *fieldQuery, a *arg) error {
			on := a.flag
			*field(q) = &on
			return nil
		}}
}

type enabled struct {
	Enabled bool `json:"enabled"`
}

type fieldRankingRule struct {
	enabled
	Order string `json:"order,omitempty"` // of an asc or desc rule
}

type fieldFilterable struct {
	enabled
	SortBy      string `json:"sortBy"`
	FacetSearch bool   `json:"facetSearch"`
	Equality    bool   `json:"equality"`
	Comparison  bool   `json:"comparison"`
}

type fieldLocales struct {
	Locales []string `json:"locales"`
}

// fieldView is a field of the documents with its settings.
type fieldView struct {
	Name        string           `json:"name"`
	Displayed   enabled          `json:"displayed"`
	Searchable  enabled          `json:"searchable"`
	Sortable    enabled          `json:"sortable"`
	Distinct    enabled          `json:"distinct"`
	RankingRule fieldRankingRule `json:"rankingRule"`
	Filterable  fieldFilterable  `json:"filterable"`
	Localized   fieldLocales     `json:"localized"`
}

// viewField shows what settings make of a field.
func viewField(i *settings.FieldInfo, s *settings.Settings) fieldView {
	v := fieldView{
		Name: i.Name,
		// Unlike in answers, a field does not include those below it here.
		Displayed:  enabled{s.DisplayedAttributes == nil || slices.Contains(s.DisplayedAttributes, i.Name)},
		Searchable: enabled{i.Searchable},
		Sortable:   enabled{i.Sortable},
		Distinct:   enabled{i.Distinct},
		Filterable: fieldFilterable{enabled{i.Filterable}, s.Faceting.Order(i.Name).String(), i.FacetSearch, i.Equality, i.Comparison},
		Localized:  fieldLocales{i.Locales},
	}
	if v.Localized.Locales == nil {
		v.Localized.Locales = []string{}
	}
	for _, r := range s.RankingRules {
		if r.Field == i.Name && (r.Kind == settings.Asc || r.Kind == settings.Desc) {
			v.RankingRule.Enabled, v.RankingRule.Order = true, "asc"
			if r.Kind == settings.Desc {
				v.RankingRule.Order = "desc"
			}
			break
		}
	}
	return v
}

// wants reports whether the query's filter lets a field pass.
func (q *fieldQuery) wants(v *fieldView) bool {
	for _, f := range [...]struct {
		asked *bool
		is    bool
	}{
		{q.displayed, v.Displayed.Enabled}, {q.searchable, v.Searchable.Enabled}, {q.sortable, v.Sortable.Enabled},
		{q.distinct, v.Distinct.Enabled}, {q.rankingRule, v.RankingRule.Enabled}, {q.filters, v.Filterable.Enabled},
	} {
		if f.asked != nil && *f.asked != f.is {
			return false
		}
	}
	return q.patterns == nil || slices.ContainsFunc(q.patterns, func(p string) bool { return settings.Covers(p, v.Name) })
}

func (s *Server) listFields(ctx *fasthttp.RequestCtx) error {
	q := fieldQuery{paging: paging{limit: defaultLimit}}
	if err := readObject(s, ctx, &q, fieldQueryParams); err != nil {
		return err
	}
	v, err := s.outline(ctx)
	if err != nil {
		return err
	}
	var views []fieldView
	for id := range v.Fields.Len() {
		field := viewField(v.Fields.Info(segment.FieldID(id)), v.Settings)
		if q.wants(&field) {
			views = append(views, field)
		}
	}
	slices.SortFunc(views, func(a, b fieldView) int { return strings.Compare(a.Name, b.Name) })
	return answerPage(s, ctx, views, q.offset, q.limit, func(v fieldView) (fieldView, bool) { return v, true })
}
