package search

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"svc/internal/numeric"
	"svc/internal/text"
)

// decodedFacets is the reference implementation of parseFacets, which uses encoding/json.
func decodedFacets(object []byte) (map[string][]facet, error) {
	var indexes map[string]*struct {
		Distribution map[string]map[string]int
		Stats        map[string]struct{ Min, Max json.Number }
	}
	if err := json.Unmarshal(object, &indexes); err != nil || indexes == nil {
		return nil, err
	}
	all := map[string][]facet{}
	for uid, of := range indexes {
		if of == nil {
			continue
		}
		facets := []facet{}
		for name, counts := range of.Distribution {
			one := facet{name: name, values: []facetValue{}}
			for shown, n := range counts {
				one.values = append(one.values, facetValue{key: text.FacetKey(nil, []byte(shown)), shown: []byte(shown), count: n})
			}
			slices.SortFunc(one.values, compareValue)
			if s, ok := of.Stats[name]; ok {
				low, _ := numeric.Parse(string(s.Min))
				high, _ := numeric.Parse(string(s.Max))
				one.fold(low, high)
			}
			facets = append(facets, one)
		}
		slices.SortFunc(facets, func(a, b facet) int { return cmp.Compare(a.name, b.name) })
		all[uid] = facets
	}
	return all, nil
}

// parsedFacets parses all facets.
func parsedFacets(object []byte) (map[string][]facet, error) {
	p := answerParser{Reading: new(Reading), asked: everything}
	return p.parseFacets(object)
}

// comparableFacets prints facets.
func comparableFacets(all map[string][]facet) string {
	var b bytes.Buffer
	uids := make([]string, 0, len(all))
	for uid := range all {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	for _, uid := range uids {
		fmt.Fprintf(&b, "%q\n", uid)
		for _, f := range all[uid] {
			fmt.Fprintf(&b, "  %q %s\n", f.name, appendStats(nil, []facet{f}))
			for _, v := range f.values {
				fmt.Fprintf(&b, "    %q %q %d\n", v.key, v.shown, v.count)
			}
		}
	}
	return b.String()
}

// manyFacets returns the counts of an instance: a number of values per facet, ordered by count.
func manyFacets(random *rand.Rand, values int) []byte {
	spelled := []string{"Änderung", "a\"b", "x", "Zoë", "line\nbreak", "\u2028", "Straße", "ΣΟΦΟΣ"}
	counts := func() map[string]int {
		m := map[string]int{}
		for range random.IntN(values + 1) {
			m[fmt.Sprint(spelled[random.IntN(len(spelled))], random.IntN(3*values))] = random.IntN(1000)
		}
		return m
	}
	type stats struct {
		Min json.Number `json:"min"`
		Max json.Number `json:"max"`
	}
	b, err := json.Marshal(map[string]any{
		"a": map[string]any{"distribution": map[string]any{"g": counts(), "h.i": counts(), "empty": map[string]int{}}, "stats": map[string]any{"g": stats{json.Number(fmt.Sprint(random.Int64())), "18446744073709551615"}, "h.i": stats{"-1.5", "1e9"}}},
		"b": map[string]any{"distribution": map[string]any{}, "stats": map[string]any{}},
		"c": nil,
	})
	if err != nil {
		panic(err)
	}
	return b
}

// TestParseFacets compares parseFacets with encoding/json.
func TestParseFacets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		object := manyFacets(random, 20)
		want, err := decodedFacets(object)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parsedFacets(object)
		if err != nil {
			t.Fatalf("%v: %s", err, object)
		}
		if w, g := comparableFacets(want), comparableFacets(got); w != g {
			t.Fatalf("%s\ngot\n%s\nwant\n%s", object, g, w)
		}
	}
	for _, object := range []string{`null`, `{}`, `{"a":null}`} {
		want, _ := decodedFacets([]byte(object))
		if got, err := parsedFacets([]byte(object)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %v, want %v (%v)", object, got, want, err)
		}
	}
	for _, object := range []string{`[]`, `3`, `{"a":3}`, `{"a":{"distribution":3}}`, `{"a":{"distribution":{"g":{"x":"1"}}}}`, `{"a":{"distribution":{"g":{"x":1.5}}}}`,
		`{"a":{"stats":{"g":3}}}`, `{"a":{"stats":{"g":{"min":"x"}}}}`} {
		if got, err := parsedFacets([]byte(object)); err == nil {
			t.Errorf("%s is read as %v", object, got)
		}
	}
}

func BenchmarkParseFacets(b *testing.B) {
	object := manyFacets(rand.New(rand.NewPCG(1, 2)), 100)
	b.Run("parsed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := parsedFacets(object); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decoded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodedFacets(object); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestSumValues compares sums of values with those of a map.
func TestSumValues(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var lists [][]facetValue
		sums := map[string]int{}
		for range random.IntN(4) {
			var list []facetValue
			for _, n := range random.Perm(12)[:random.IntN(12)] {
				shown := []byte(fmt.Sprint([]string{"x", "X", "é"}[n%3], n/3))
				v := facetValue{key: text.FacetKey(nil, shown), shown: shown, count: 1 + random.IntN(9)}
				list = append(list, v)
				sums[string(shown)] += v.count
			}
			if random.IntN(2) == 0 {
				slices.SortFunc(list, compareValue)
			}
			lists = append(lists, list)
		}
		before := fmt.Sprint(lists)
		got := sumValues(new(Reading), lists, math.MaxInt)
		most := random.IntN(len(got) + 2)
		if few := sumValues(new(Reading), lists, most); !reflect.DeepEqual(few, got[:min(most, len(got))]) {
			t.Fatalf("the first %d of %v: got %v", most, got, few)
		}
		if fmt.Sprint(lists) != before {
			t.Fatal("the input lists changed")
		}
		if !slices.IsSortedFunc(got, compareValue) || len(got) != len(sums) {
			t.Fatalf("%v is not the list of %v", got, sums)
		}
		for _, v := range got {
			if sums[string(v.shown)] != v.count {
				t.Fatalf("%s has %d, want %d", v.shown, v.count, sums[string(v.shown)])
			}
		}
	}
}
