package filter

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/numeric"
)

// describeWays formats ways as "attribute:values that pass …", for some values.
func describeWays(ways []Way) string {
	var b strings.Builder
	for i, w := range ways {
		if i > 0 {
			b.WriteString(" | ")
		}
		for n, t := range w {
			if n > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(t.Attribute + ":")
			for _, text := range []string{"1", "2", "3", "red", "Été"} {
				v := NewValue(Pair{t.Attribute, text})
				if t.Passes(&v) {
					b.WriteString(text + ",")
				}
			}
		}
	}
	return b.String()
}

func TestWays(t *testing.T) {
	free := Bounds{Ways: 100, Or: 100, And: 100, Depth: 25}
	const all = "1,2,3,red,Été,"
	for _, tt := range []struct {
		filter string
		bounds Bounds
		want   string
	}{
		{"a = 1", free, "a:1,"},
		{"a = RED", free, "a:red,"},
		{"a = 'ÉTÉ'", free, "a:Été,"},
		{"a != 1", free, "a:2,3,red,Été,"},
		{"NOT a != 1", free, "a:1,"},
		{"a IN [1, red]", free, "a:1,red,"},
		{"a NOT IN [1, red]", free, "a:2,3,Été,"},
		{"a IN []", free, ""},
		{"a > 1", free, "a:2,3,red,Été,"},
		{"NOT a > 1", free, "a:1,"},
		{"a 1.5 TO 2.5", free, "a:2,"},
		{"a >= red", free, "a:red,"},
		{"a EXISTS", free, "a:" + all},
		{"a NOT EXISTS", free, "a:"},
		{"a IS NULL AND b = 1", free, "b:1,"},
		{"a STARTS WITH r", free, ""},
		{"a = 1 AND b = 2", free, "a:1, b:2,"},
		{"NOT (a = 1 AND b = 2)", free, "a:2,3,red,Été, | b:1,3,red,Été,"},
		{"NOT (a = 1 OR b = 2)", free, "a:2,3,red,Été, b:1,3,red,Été,"},
		{"(a = 1 OR b = 2) AND (c = 1 OR c = 3)", free, "a:1, c:1, | a:1, c:3, | b:2, c:1, | b:2, c:3,"},
		{"(a = 1 OR b = 2) AND (c = 1 OR c = 3)", Bounds{Ways: 3, Or: 100, And: 100, Depth: 25}, "a:1, c:1, | a:1, c:3, | b:2, c:1,"},
		{"a = 1 OR b = 2 OR c = 3", Bounds{Ways: 100, Or: 2, And: 100, Depth: 25}, "a:1, | b:2,"},
		{"a IN [1, 2, 3]", Bounds{Ways: 100, Or: 2, And: 100, Depth: 25}, "a:1,2,"},
		{"a NOT IN [1, 2, 3] AND b = 1", Bounds{Ways: 100, Or: 2, And: 100, Depth: 25}, "b:1,"},
		{"a = 1 AND b = 2 AND c = 3", Bounds{Ways: 100, Or: 100, And: 2, Depth: 25}, "a:1, b:2,"},
		{"a = 1 AND (b = 2 OR (c = 3 AND d = 1))", Bounds{Ways: 100, Or: 100, And: 100, Depth: 2}, "a:1, b:2, | a:1, "},
	} {
		e, err := FromJSON(fmt.Appendf(nil, "%q", tt.filter), "invalid_search_filter")
		if err != nil {
			t.Fatal(err)
		}
		if got := describeWays(e.Ways(tt.bounds)); strings.TrimSpace(got) != strings.TrimSpace(tt.want) {
			t.Errorf("%s: %s, want %s", tt.filter, got, tt.want)
		}
	}
	if (*Expr)(nil).Ways(free) != nil {
		t.Error("a nil filter has ways")
	}
}

// TestSpans compares what a test finds in sorted lists with the values that it passes.
func TestSpans(t *testing.T) {
	numbers := []string{"-3", "0", "1", "1", "2.5", "7"}
	texts := []string{"ab", "b", "red", "red", "z"}
	for _, f := range []string{"a > 1", "a >= 1", "a < 1", "a <= 1", "a 1 TO 2.5", "a 5 TO 2", "a > red", "a <= red", "a b TO red", "a > 100", "a < -100"} {
		e, err := FromJSON(fmt.Appendf(nil, "%q", f), "invalid_search_filter")
		if err != nil {
			t.Fatal(err)
		}
		test := e.Ways(Bounds{Ways: 1, Or: 1, And: 1, Depth: 1})[0][0]
		if !test.Spans() || test.Keys() != nil {
			t.Fatalf("%s is not a range", f)
		}
		number := func(i int) numeric.Value { x, _ := numeric.Parse(numbers[i]); return x }
		lo, hi := test.Numbers(len(numbers), number)
		for i := range numbers {
			v := NewValue(Pair{"a", numbers[i]})
			if test.Passes(&v) != (lo <= i && i < hi) {
				t.Errorf("%s: %s passes: %t, found %d to %d", f, numbers[i], test.Passes(&v), lo, hi)
			}
		}
		lo, hi = test.Texts(len(texts), func(i int) string { return texts[i] })
		for i := range texts {
			v := NewValue(Pair{"a", texts[i]})
			if test.Passes(&v) != (lo <= i && i < hi) {
				t.Errorf("%s: %s passes: %t, found %d to %d", f, texts[i], test.Passes(&v), lo, hi)
			}
		}
	}
}
