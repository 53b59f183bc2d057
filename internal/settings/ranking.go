package settings

import "strings"

// RuleKind is a ranking rule's name.
type RuleKind uint8

const (
	Words RuleKind = iota
	Typo
	Proximity
	Attribute // AttributeRank, then WordPosition
	AttributeRank
	WordPosition
	Sort
	Exactness
	Asc  // by RankingRule.Field, ascending
	Desc // by RankingRule.Field, descending
)

var ruleNames = [...]string{
	Words: "words", Typo: "typo", Proximity: "proximity", Attribute: "attribute", AttributeRank: "attributeRank",
	WordPosition: "wordPosition", Sort: "sort", Exactness: "exactness", Asc: "asc", Desc: "desc",
}

// RankingRule is one entry of rankingRules.
type RankingRule struct {
	Kind  RuleKind
	Field string // of Asc and Desc
}

func (r RankingRule) String() string {
	if r.Kind == Asc || r.Kind == Desc {
		return r.Field + ":" + ruleNames[r.Kind]
	}
	return ruleNames[r.Kind]
}

// ParseRankingRule reads a rule as the API writes it: a name, or field:asc and field:desc.
func ParseRankingRule(s string) (RankingRule, bool) {
	for k := Words; k < Asc; k++ {
		if s == ruleNames[k] {
			return RankingRule{Kind: k}, true
		}
	}
	if f, ok := strings.CutSuffix(s, ":asc"); ok {
		return RankingRule{Kind: Asc, Field: f}, true
	}
	if f, ok := strings.CutSuffix(s, ":desc"); ok {
		return RankingRule{Kind: Desc, Field: f}, true
	}
	return RankingRule{}, false
}

// reservedForSort reports whether a name cannot be that of a field to sort by.
func reservedForSort(name string) bool {
	for _, r := range []string{"_geo", "_geoDistance", "_geoPoint", "_geoRadius", "_geoBoundingBox", "_geoPolygon"} {
		if rest, ok := strings.CutPrefix(name, r); ok && (rest == "" || rest[0] == '(') {
			return true
		}
	}
	return false
}
