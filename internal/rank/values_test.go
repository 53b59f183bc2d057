package rank

import (
	"fmt"
	"testing"
)

func TestScoreValues(t *testing.T) {
	s := &search{rules: []rule{{kind: ruleWords}, {kind: ruleTypo}, {kind: ruleSort, desc: true}, {kind: ruleProximity}, {kind: ruleGeo}}}
	parts := []part{
		{rule: 0, kind: ruleWords, rank: 1, ranks: 2},
		{rule: 1, kind: ruleTypo, rank: 2, ranks: 4},
		{rule: 2, kind: ruleSort, value: SortValue{Class: OfText, Text: []byte("x")}},
		{rule: 3, kind: ruleProximity, rank: 1, ranks: 4},
		{rule: 4, kind: ruleGeo, value: SortValue{Class: OfPlace, Number: 7}},
		{rule: 5, kind: skipped, ranks: 1},
	}
	got := ""
	for _, v := range s.appendValues(nil, parts) {
		got += fmt.Sprintf("%d %v %s %v %v; ", v.Kind, v.Score, v.Sort.Text, v.Sort.Number, v.Desc)
	}
	if want := "0 0.25  0 false; 2 0 x 0 true; 0 0.25  0 false; 3 0  7 false; 0 0  0 false; "; got != want {
		t.Errorf("sequence\n%s\nwant\n%s", got, want)
	}
	if len(s.appendValues(nil, nil)) != 0 {
		t.Error("a hit of a placeholder search has a sequence")
	}
}

func TestCompareScores(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want int
	}{{1, .5, -1}, {.5, 1, 1}, {1, 1 - 0x1p-53, 0}, {1, 1 - 0x1p-52, 0}, {1, 1 - 0x1p-51, -1}} {
		if got := CompareScores(c.a, c.b); got != c.want {
			t.Errorf("CompareScores(%v, %v) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
