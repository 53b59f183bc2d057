package main

import (
	"fmt"

	"svc/internal/rule"
)

// ruleOptions bound what search rules cost a search.
type ruleOptions struct {
	QueryWords         int `name:"rule-query-words" default:"10" placeholder:"N" help:"Words of a query that search rules see (default: ${default})."`
	Active             int `name:"rule-active-rules" default:"1000" placeholder:"N" help:"Search rules that apply to a search, at most (default: ${default})."`
	Pins               int `name:"rule-pins" default:"100" placeholder:"N" help:"Documents that search rules pin in a search, at most (default: ${default})."`
	WordCombinations   int `name:"rule-word-combinations" default:"4096" placeholder:"N" help:"Search rules whose words are compared with those of a query, at most (default: ${default})."`
	FilterCombinations int `name:"rule-filter-combinations" default:"4096" placeholder:"N" help:"Ways to satisfy a filter that search rules see, and comparisons of a rule with a way, at most (default: ${default})."`
	Or                 int `name:"rule-filter-or" default:"100" placeholder:"N" help:"Parts of an OR, and values of an IN, that search rules see (default: ${default})."`
	And                int `name:"rule-filter-and" default:"100" placeholder:"N" help:"Parts of an AND that search rules see (default: ${default})."`
	Depth              int `name:"rule-filter-depth" default:"25" placeholder:"N" help:"Depth of nested filters down to which search rules see them (default: ${default})."`
}

func (o *ruleOptions) bounds() rule.Bounds {
	return rule.Bounds{Words: o.QueryWords, Rules: o.Active, Pins: o.Pins, WordCombinations: o.WordCombinations,
		FilterCombinations: o.FilterCombinations, Or: o.Or, And: o.And, Depth: o.Depth}
}

func (o *ruleOptions) validate() error {
	for name, n := range map[string]int{
		"rule-query-words": o.QueryWords, "rule-active-rules": o.Active, "rule-pins": o.Pins, "rule-word-combinations": o.WordCombinations,
		"rule-filter-combinations": o.FilterCombinations, "rule-filter-or": o.Or, "rule-filter-and": o.And, "rule-filter-depth": o.Depth,
	} {
		if n < 1 || n > 1_000_000 {
			return fmt.Errorf("--%s must be from 1 to 1000000, but it is %d", name, n)
		}
	}
	return nil
}
