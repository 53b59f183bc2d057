package settings

import (
	"strings"
	"testing"
)

func TestRankingRulesAreReadAsTheyAreShown(t *testing.T) {
	for k := range RuleKinds {
		if k.String() == "" {
			t.Errorf("kind %d of ranking rules has no name", k)
			continue
		}
		r := RankingRule{Kind: k}
		if k.ofField() {
			r.Field = "a:b"
		}
		if got, ok := ParseRankingRule(r.String()); !ok || got != r {
			t.Errorf("%q is read as %+v, %v", r.String(), got, ok)
		}
		if !strings.Contains(ruleForms(), k.String()) {
			t.Errorf("%q does not name %v", ruleForms(), k)
		}
	}
}
