package settings

import (
	"strings"
	"testing"
)

func TestRankingRulesRoundTrip(t *testing.T) {
	for k := range RuleKinds {
		if k.String() == "" {
			t.Errorf("kind %d of ranking rules has no name", k)
			continue
		}
		r := RankingRule{Kind: k}
		if k.OfField() {
			r.Field = "a:b"
		}
		if ruleRows[k].seeded {
			r.Seed = 1<<64 - 1
		}
		if got, ok := ParseRankingRule(r.String()); !ok || got != r {
			t.Errorf("%q is read as %+v, %v", r.String(), got, ok)
		}
		if !strings.Contains(ruleForms(), k.String()) {
			t.Errorf("%q does not name %v", ruleForms(), k)
		}
	}
}

// TestSeedsHaveOneForm checks that a rule has one spelling, because fields may have names like rules.
func TestSeedsHaveOneForm(t *testing.T) {
	for text, want := range map[string]RankingRule{
		"random": {Kind: Random}, "random:7": {Kind: Random, Seed: 7}, "random:asc": {Kind: Asc, Field: "random"}, "random:7:desc": {Kind: Desc, Field: "random:7"},
		"random:": {}, "random:0": {}, "random:07": {}, "random:-1": {}, "random:+1": {}, "random:1.5": {}, "random:18446744073709551616": {}, "words:1": {}, "Random": {},
	} {
		if got, ok := ParseRankingRule(text); got != want || ok != (want != RankingRule{}) {
			t.Errorf("%q is read as %+v, %v", text, got, ok)
		}
	}
}
