package settings

import (
	"strconv"
	"strings"
)

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
	Random
	Score // by Settings.ScoreFunctions

	RuleKinds // how many there are
)

var ruleNames = [RuleKinds]string{
	Words: "words", Typo: "typo", Proximity: "proximity", Attribute: "attribute", AttributeRank: "attributeRank",
	WordPosition: "wordPosition", Sort: "sort", Exactness: "exactness", Asc: "asc", Desc: "desc", Random: "random", Score: "score",
}

// RankingRule is one entry of rankingRules.
type RankingRule struct {
	Kind  RuleKind
	Field string // of Asc and Desc
	Seed  uint64 // of Random
}

func (k RuleKind) String() string { return ruleNames[k] }

// ofField reports whether rules of the kind name a field.
func (k RuleKind) ofField() bool { return k == Asc || k == Desc }

func (r RankingRule) String() string { return string(r.Append(nil)) }

// Append appends the rule as the API writes it.
func (r RankingRule) Append(dst []byte) []byte {
	if r.Kind.ofField() {
		dst = append(append(dst, r.Field...), ':')
	}
	dst = append(dst, r.Kind.String()...)
	if r.Seed != 0 {
		dst = strconv.AppendUint(append(dst, ':'), r.Seed, 10)
	}
	return dst
}

// ParseRankingRule reads a rule as the API writes it: a name, field:asc and field:desc, or random:seed.
func ParseRankingRule(s string) (RankingRule, bool) {
	for k := range RuleKinds {
		if !k.ofField() {
			if s == ruleNames[k] {
				return RankingRule{Kind: k}, true
			}
			if seed, ok := strings.CutPrefix(s, ruleNames[k]+":"); ok && k == Random {
				if n, err := strconv.ParseUint(seed, 10, 64); err == nil && n > 0 && seed[0] != '0' {
					return RankingRule{Kind: k, Seed: n}, true
				}
			}
		} else if f, ok := strings.CutSuffix(s, ":"+ruleNames[k]); ok {
			return RankingRule{Kind: k, Field: f}, true
		}
	}
	return RankingRule{}, false
}

// ruleForms says what ParseRankingRule reads, for users.
func ruleForms() string {
	var names, orders []string
	for k := range RuleKinds {
		if k.ofField() {
			orders = append(orders, ":"+k.String())
		} else {
			names = append(names, k.String())
		}
	}
	return strings.Join(names, ", ") + ", random followed by : and a seed from 1, or an attribute followed by " + strings.Join(orders, " or ")
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
