package filter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/text"
)

func TestKeysOfValuesAreThoseOfTheTwin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	letters := []string{"a", "b", "Z", "\x00", "é", "İ", "ΑΣ", "ﬁ", " ", "7", "-1", "\xff"}
	for range 300 {
		values := make([]string, r.IntN(40))
		front := strings.Repeat("brand ", r.IntN(3))
		for i := range values {
			values[i] = front
			for range r.IntN(12) {
				values[i] += letters[r.IntN(len(letters))]
			}
		}
		var keys [][]byte
		var numbers []float64
		for _, v := range values {
			if key := text.FacetKey(nil, []byte(v)); len(key) > 0 {
				keys = append(keys, key)
			}
			if x, ok := ParseNumber(v); ok {
				numbers = append(numbers, x)
			}
		}
		slices.SortFunc(keys, bytes.Compare)
		slices.Sort(numbers)
		keys, numbers = slices.CompactFunc(keys, bytes.Equal), slices.Compact(numbers)
		got := newEqualMatch(1, values)
		if !slices.EqualFunc(got.keys, keys, bytes.Equal) || !slices.Equal(got.numbers, numbers) {
			t.Fatalf("%q: keys %q and numbers %v, want %q and %v", values, got.keys, got.numbers, keys, numbers)
		}
	}
}

// What a filter with very many values or conditions costs is counted: memory is taken for all values together, and for
// conditions one by one.
func TestBindingTakesLittleMemoryForEachValue(t *testing.T) {
	c := newCorpus(t, `{"filterableAttributes":["id"]}`, []string{`{"id":1}`})
	allocations := func(source string) float64 {
		e, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(2, func() {
			if _, err := e.Bind(c.env()); err != nil {
				t.Fatal(err)
			}
		})
	}
	var values, conditions []string
	for i := range 100_000 {
		values = append(values, fmt.Sprintf("b%d", i*7919%100_003))
	}
	for i := range maxConditions {
		conditions = append(conditions, fmt.Sprintf("id = %d", i))
	}
	if n := allocations("id IN [" + strings.Join(values, ",") + "]"); n > 30 {
		t.Errorf("%d values are bound with %v allocations", len(values), n)
	}
	if n := allocations(strings.Join(conditions, " OR ")); n > 12*maxConditions {
		t.Errorf("%d conditions are bound with %v allocations", maxConditions, n)
	}
}
