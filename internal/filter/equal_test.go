package filter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/numeric"
	"svc/internal/text"
)

func TestKeysOfValuesAgreeWithAReference(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	letters := []string{"a", "b", "Z", "\x00", "é", "İ", "ΑΣ", "ﬁ", " ", "7", "-1", "9007199254740993", "18446744073709551615", "\xff"}
	for range 300 {
		values := make([]string, r.IntN(40))
		front := strings.Repeat("brand ", r.IntN(3))
		for i := range values {
			values[i] = front
			if r.IntN(4) == 0 {
				values[i] = strconv.FormatUint(1<<60+r.Uint64N(9), 10)
				continue
			}
			for range r.IntN(12) {
				values[i] += letters[r.IntN(len(letters))]
			}
		}
		var keys [][]byte
		var numbers []numeric.Value
		for _, v := range values {
			if key := text.FacetKey(nil, []byte(v)); len(key) > 0 {
				keys = append(keys, key)
			}
			if x, ok := numeric.Parse(v); ok {
				numbers = append(numbers, x)
			}
		}
		slices.SortFunc(keys, bytes.Compare)
		slices.SortFunc(numbers, numeric.Value.Compare)
		keys, numbers = slices.CompactFunc(keys, bytes.Equal), slices.Compact(numbers)
		got := newEqualMatch(1, values)
		all := slices.Clone(got.integers)
		for _, x := range got.floats {
			all = append(all, numeric.Of(x))
		}
		slices.SortFunc(all, numeric.Value.Compare)
		if !slices.EqualFunc(got.keys, keys, bytes.Equal) || !slices.Equal(all, numbers) || !slices.IsSorted(got.floats) || !slices.IsSortedFunc(got.integers, numeric.Value.Compare) {
			t.Fatalf("%q: keys %q and numbers %v, want %q and %v", values, got.keys, all, keys, numbers)
		}
	}
}

// TestBindingTakesLittleMemoryForEachValue counts the allocations of filters with very many values or conditions: once for all values
// together, and for conditions one by one.
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
		t.Errorf("binding %d values takes %v allocations", len(values), n)
	}
	if n := allocations(strings.Join(conditions, " OR ")); n > 12*maxConditions {
		t.Errorf("binding %d conditions takes %v allocations", maxConditions, n)
	}
}
