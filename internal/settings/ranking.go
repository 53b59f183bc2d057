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

// Comparison is what hits of different queries are compared by under a rule.
type Comparison uint8

const (
	ByMatch     Comparison = iota // how the query matched, as a score
	ByLeast                       // values, the least first
	ByGreatest                    // values, the greatest first
	BySortParam                   // each entry of the parameter sort, as it says
)

// ruleRow describes a kind of ranking rule, except for how it ranks, which rank.makeRule knows.
type ruleRow struct {
	name    string
	by      Comparison
	ofField bool // entries name a field
	seeded  bool // entries may have a seed
}

// ruleRows has a row for each kind.
var ruleRows = [RuleKinds]ruleRow{
	Words:         {name: "words"},
	Typo:          {name: "typo"},
	Proximity:     {name: "proximity"},
	Attribute:     {name: "attribute"},
	AttributeRank: {name: "attributeRank"},
	WordPosition:  {name: "wordPosition"},
	Sort:          {name: "sort", by: BySortParam},
	Exactness:     {name: "exactness"},
	Asc:           {name: "asc", by: ByLeast, ofField: true},
	Desc:          {name: "desc", by: ByGreatest, ofField: true},
	Random:        {name: "random", by: ByLeast, seeded: true},
	Score:         {name: "score", by: ByGreatest},
}

// RankingRule is one entry of rankingRules.
type RankingRule struct {
	Kind  RuleKind
	Field string // of Asc and Desc
	Seed  uint64 // of Random
}

func (k RuleKind) String() string { return ruleRows[k].name }

// Comparison returns what hits of different queries are compared by under rules of the kind.
func (k RuleKind) Comparison() Comparison { return ruleRows[k].by }

// OfField reports whether rules of the kind name a field.
func (k RuleKind) OfField() bool { return ruleRows[k].ofField }

func (r RankingRule) String() string { return string(r.Append(nil)) }

// Append appends the rule as the API writes it.
func (r RankingRule) Append(dst []byte) []byte {
	if r.Kind.OfField() {
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
		row := &ruleRows[k]
		switch {
		case row.ofField:
			if f, ok := strings.CutSuffix(s, ":"+row.name); ok {
				return RankingRule{Kind: k, Field: f}, true
			}
		case s == row.name:
			return RankingRule{Kind: k}, true
		case row.seeded:
			if seed, ok := strings.CutPrefix(s, row.name+":"); ok {
				if n, err := strconv.ParseUint(seed, 10, 64); err == nil && n > 0 && seed[0] != '0' {
					return RankingRule{Kind: k, Seed: n}, true
				}
			}
		}
	}
	return RankingRule{}, false
}

// ruleForms says what ParseRankingRule reads, for users.
func ruleForms() string {
	var names, seeded, orders []string
	for _, row := range ruleRows {
		if row.ofField {
			orders = append(orders, ":"+row.name)
			continue
		}
		if names = append(names, row.name); row.seeded {
			seeded = append(seeded, row.name)
		}
	}
	return strings.Join(names, ", ") + ", " + strings.Join(seeded, " or ") + " followed by : and a seed from 1, or an attribute followed by " + strings.Join(orders, " or ")
}

// reservedForSort reports whether a name cannot be the name of a field to sort by.
func reservedForSort(name string) bool {
	for _, r := range []string{"_geo", "_geoDistance", "_geoPoint", "_geoRadius", "_geoBoundingBox", "_geoPolygon"} {
		if rest, ok := strings.CutPrefix(name, r); ok && (rest == "" || rest[0] == '(') {
			return true
		}
	}
	return false
}
