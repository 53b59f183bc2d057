package main

import (
	"fmt"

	"svc/internal/rule"
)

// ruleOptions bound what search rules cost a search.
type ruleOptions struct {
	QueryWords         int `name:"rule-query-words" default:"10" placeholder:"N" help:"Maximum words of a query that search rules evaluate (default: ${default})."`
	Active             int `name:"rule-active-rules" default:"1000" placeholder:"N" help:"Maximum search rules that apply to a search (default: ${default})."`
	Pins               int `name:"rule-pins" default:"100" placeholder:"N" help:"Maximum documents that search rules pin in a search (default: ${default})."`
	WordCombinations   int `name:"rule-word-combinations" default:"4096" placeholder:"N" help:"Maximum search rules whose words are compared with those of a query (default: ${default})."`
	FilterCombinations int `name:"rule-filter-combinations" default:"4096" placeholder:"N" help:"Maximum ways to satisfy a filter that search rules evaluate, and comparisons of a rule with a way (default: ${default})."`
	Or                 int `name:"rule-filter-or" default:"100" placeholder:"N" help:"Maximum parts of an OR and values of an IN that search rules evaluate (default: ${default})."`
	And                int `name:"rule-filter-and" default:"100" placeholder:"N" help:"Maximum parts of an AND that search rules evaluate (default: ${default})."`
	Depth              int `name:"rule-filter-depth" default:"25" placeholder:"N" help:"Maximum nesting of filters that search rules evaluate (default: ${default})."`
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
			return fmt.Errorf("--%s must be from 1 to 1000000, got %d", name, n)
		}
	}
	return nil
}
