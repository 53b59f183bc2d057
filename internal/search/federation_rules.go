package search

import (
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/query"
	"svc/internal/settings"
)

// ruleKind is what a ranking rule compares documents by, as far as hits of different queries are concerned.
type ruleKind uint8

const (
	byRelevancy ruleKind = iota
	byValueAsc
	byValueDesc
	byDistanceAsc
	byDistanceDesc
)

var ruleKindNames = [...]string{"relevancy", "ascending values", "descending values", "ascending distance", "descending distance"}

// ruleKinds returns the kinds of a query's rules, in order. Consecutive rules that look at how the query matches form one score.
func ruleKinds(k *ranking) []ruleKind {
	asked := k.kind != keyword || strings.TrimSpace(k.request.Query) != ""
	var kinds []ruleKind
	var sorted []string // fields; a second sort by one of them has no effect
	addField := func(field string, desc bool) {
		if slices.Contains(sorted, field) {
			return
		}
		sorted = append(sorted, field)
		if desc {
			kinds = append(kinds, byValueDesc)
		} else {
			kinds = append(kinds, byValueAsc)
		}
	}
	rules := k.view.Settings.RankingRules
	for i, rule := range rules {
		switch by := rule.Kind.Comparison(); by {
		case settings.ByLeast, settings.ByGreatest:
			switch {
			case rule.Kind.OfField():
				addField(rule.Field, by == settings.ByGreatest)
			case slices.Contains(rules[:i], rule), rule.Kind == settings.Score && !k.addsScores():
			case by == settings.ByGreatest:
				kinds = append(kinds, byValueDesc)
			default:
				kinds = append(kinds, byValueAsc)
			}
		case settings.BySortParam:
			for i := range k.sort {
				switch s := &k.sort[i]; {
				case s.Elements != nil:
					addField(s.Elements.String(), s.Desc)
				case !s.Geo:
					addField(s.Field, s.Desc)
				case s.Desc:
					kinds = append(kinds, byDistanceDesc)
				default:
					kinds = append(kinds, byDistanceAsc)
				}
			}
		default:
			if !asked || rule.Kind == settings.Words && k.kind == keyword && k.request.Strategy == query.All {
				continue
			}
			if n := len(kinds); n > 0 && kinds[n-1] == byRelevancy {
				continue
			}
			if k.kind == semantic && slices.Contains(kinds, byRelevancy) {
				return kinds // similarity replaces only the first of them
			}
			kinds = append(kinds, byRelevancy)
		}
	}
	return kinds
}

// addsScores reports whether the rule score has functions.
func (k *ranking) addsScores() bool {
	return k.scoring != nil && len(k.scoring.functions.Functions) > 0
}

// checkComparable refuses queries whose hits have no common order.
func checkComparable(queries []federated) error {
	var longest []ruleKind
	of := 0
	for i := range queries {
		kinds := ruleKinds(queries[i].ranking)
		for at := range min(len(kinds), len(longest)) {
			if kinds[at] != longest[at] {
				return &QueryError{i, apierr.New("invalid_multi_search_query_ranking_rules",
					"The hits of this query and those of `.queries[%d]` have no common order: the ranking rules of `%s` with its `sort` compare by %s, those of `%s` by %s. "+
						"Use `rankingRules` and `sort` with the same order in both.",
					of, queries[i].view.UID, kindNames(kinds), queries[of].view.UID, kindNames(longest))}
			}
		}
		if len(kinds) > len(longest) {
			longest, of = kinds, i
		}
	}
	return nil
}

func kindNames(kinds []ruleKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = ruleKindNames[k]
	}
	return strings.Join(names, ", then ")
}
