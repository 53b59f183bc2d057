package rank

import (
	"fmt"
	"testing"
)

func TestScoreValues(t *testing.T) {
	verdicts := []verdict{
		{by: words{}, rank: 1, ranks: 2},
		{by: typo{}, rank: 2, ranks: 4},
		{by: &fieldSort{desc: true}, value: SortValue{Class: OfText, Text: []byte("x")}},
		{by: proximity{}, rank: 1, ranks: 4},
		{by: &geoSort{}, value: SortValue{Class: OfPlace, Number: 7}},
		{by: skipped{}, ranks: 1},
	}
	got := ""
	for _, v := range appendValues(nil, verdicts) {
		got += fmt.Sprintf("%d %v %s %v %v; ", v.Kind, v.Score, v.Sort.Text, v.Sort.Number, v.Desc)
	}
	if want := "0 0.25  0 false; 2 0 x 0 true; 0 0.25  0 false; 3 0  7 false; 0 0  0 false; "; got != want {
		t.Errorf("sequence\n%s\nwant\n%s", got, want)
	}
	if len(appendValues(nil, nil)) != 0 {
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
