package rank

import (
	"slices"
	"strconv"

	"svc/internal/apierr"
	"svc/internal/settings"
)

type ruleKind uint8

const (
	ruleWords ruleKind = iota
	ruleTypo
	ruleProximity
	ruleAttributeRank
	ruleWordPosition
	ruleExactAttribute
	ruleExactWords
	ruleVector
	ruleSort
	ruleGeo
	skipped // in score parts only: the deadline passed before this rule
)

// rule is one entry of the final rule list.
type rule struct {
	kind   ruleKind
	merged bool // of attributeRank and wordPosition: they are shown as one, "attribute"
	field  string
	key    string // under which the details of a sort stand
	hidden bool   // the value of the field is not shown
	desc   bool
	point  point
}

// isGraph reports whether the rule looks at how the query matched.
func (r *rule) isGraph() bool { return r.kind < ruleVector }

// rules makes the list of a request from the settings.
func (s *search) makeRules(placeholder bool) error {
	b := ruleBuilder{s: s}
	withSort := slices.ContainsFunc(s.ix.Settings.RankingRules, func(r settings.RankingRule) bool { return r.Kind == settings.Sort })
	if len(s.r.Sort) > 0 && !withSort {
		return apierr.New("invalid_search_sort", "This index does not sort: add `sort` to its `rankingRules` to use the `sort` parameter.")
	}
	if v := s.r.Vectors; v != nil && v.Only {
		s.rules = []rule{{kind: ruleVector}}
		return nil
	}
	for _, r := range s.ix.Settings.RankingRules {
		switch r.Kind {
		case settings.Sort:
			for i := range s.r.Sort {
				b.addKey(&s.r.Sort[i])
			}
			continue
		case settings.Asc, settings.Desc:
			b.addKey(&SortKey{Field: r.Field, Desc: r.Kind == settings.Desc})
			continue
		}
		if s.r.Vectors != nil {
			b.addVector()
			continue
		}
		if placeholder {
			continue
		}
		switch r.Kind {
		case settings.Typo, settings.Attribute, settings.Proximity, settings.Exactness:
			b.addGraph(ruleWords, false)
		}
		switch r.Kind {
		case settings.Words:
			b.addGraph(ruleWords, false)
		case settings.Typo:
			b.addGraph(ruleTypo, false)
		case settings.Proximity:
			b.addGraph(ruleProximity, false)
		case settings.Attribute:
			b.addGraph(ruleAttributeRank, true)
			b.addGraph(ruleWordPosition, true)
		case settings.AttributeRank:
			b.addGraph(ruleAttributeRank, false)
		case settings.WordPosition:
			b.addGraph(ruleWordPosition, false)
		case settings.Exactness:
			b.addGraph(ruleExactAttribute, false)
			b.addGraph(ruleExactWords, false)
		}
	}
	s.rules = b.rules
	return nil
}

type ruleBuilder struct {
	s     *search
	rules []rule
}

func (b *ruleBuilder) addGraph(k ruleKind, merged bool) {
	if k == ruleWords && b.s.mandatoryTerms() {
		return
	}
	for i := range b.rules {
		if b.rules[i].kind == k {
			return
		}
	}
	b.rules = append(b.rules, rule{kind: k, merged: merged})
}

// addVector adds the vector rule, once.
func (b *ruleBuilder) addVector() {
	if !slices.ContainsFunc(b.rules, func(r rule) bool { return r.kind == ruleVector }) {
		b.rules = append(b.rules, rule{kind: ruleVector})
	}
}

func (b *ruleBuilder) addKey(k *SortKey) {
	order := ":asc"
	if k.Desc {
		order = ":desc"
	}
	if k.Geo {
		key := "_geoPoint(" + formatNumber(k.Lat) + ", " + formatNumber(k.Lng) + ")" + order
		b.rules = append(b.rules, rule{kind: ruleGeo, key: key, desc: k.Desc, point: point{k.Lat, k.Lng}})
		return
	}
	for i := range b.rules {
		if b.rules[i].kind == ruleSort && b.rules[i].field == k.Field {
			return
		}
	}
	displayed := b.s.ix.Settings.DisplayedAttributes
	hidden := displayed != nil && !slices.Contains(displayed, k.Field)
	b.rules = append(b.rules, rule{kind: ruleSort, field: k.Field, key: k.Field + order, hidden: hidden, desc: k.Desc})
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
