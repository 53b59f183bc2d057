package fastapi

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"svc/internal/text"
)

// aggregate compares the buckets and metrics of a field over the matches of a search with those of the model, including nested buckets.
func (w *walk) aggregate() {
	w.c.t.Helper()
	m := w.model
	field := pick(w.walkRandom, "g", "o.k", "n")
	if !m.set.filters(field) || m.set.DistinctAttribute != "" {
		return
	}
	s := &walkSearch{}
	body := map[string]any{"limit": w.IntN(3), "aggregations": map[string]any{
		"values": map[string]any{"terms": field, "limit": 10_000, "aggregations": map[string]any{"of": map[string]any{"stats": field}}},
		"all":    map[string]any{"stats": field},
	}}
	if w.chance(60) {
		s.q = w.q()
		body["q"] = s.q
	}
	if w.chance(40) {
		body["filter"], s.keep = w.filter(m, 1)
	}
	type figures struct {
		Count    int
		Min, Max any
		Sum      any
	}
	var got struct {
		Aggregations struct {
			All    figures
			Values struct {
				Buckets []struct {
					Key          any
					Count        int
					Aggregations struct{ Of figures }
				}
			}
		}
	}
	answer := w.ask("POST", "/search", encode(body), &got)
	fail := func(why string, args ...any) {
		w.c.t.Helper()
		w.c.t.Fatalf("search %s: "+why+"\n got %s\n%s", append(append([]any{encode(body)}, args...), answer, w.state())...)
	}
	type bucket struct {
		docs    int
		numbers []walkNumber // of its documents
	}
	buckets, all := map[string]*bucket{}, bucket{}
	for _, d := range m.find(s).candidates {
		keys, numbers := map[string]bool{}, map[string]walkNumber{}
		for _, key := range d.at(field).keys {
			if key != "" {
				keys["$"+key] = true
			}
		}
		for _, x := range d.at(field).numbers {
			keys["#"+x.text()], numbers[x.text()] = true, x
		}
		for key := range keys {
			if buckets[key] == nil {
				buckets[key] = &bucket{}
			}
			buckets[key].docs++
			for _, x := range numbers {
				buckets[key].numbers = append(buckets[key].numbers, x)
			}
		}
		for _, x := range numbers {
			all.numbers = append(all.numbers, x)
		}
	}
	compare := func(a, b walkNumber) int { return a.Cmp(b.Rat) }
	same := func(f figures, numbers []walkNumber) bool {
		if f.Count != len(numbers) || len(numbers) == 0 {
			return f.Count == len(numbers)
		}
		sum := new(big.Rat)
		for _, x := range numbers {
			sum.Add(sum, x.Rat)
		}
		want, _ := sum.Float64()
		shown, ok := f.Sum.(float64)
		if !ok { // a large integer is decoded as text
			encoded, _ := f.Sum.(string)
			x, err := json.Number(strings.TrimPrefix(encoded, largeMark)).Float64()
			if shown = x; err != nil {
				return false
			}
		}
		return shown == want && f.Min == slices.MinFunc(numbers, compare).value() && f.Max == slices.MaxFunc(numbers, compare).value()
	}
	if !same(got.Aggregations.All, all.numbers) {
		fail("figures of %v", all.numbers)
	}
	if shown := got.Aggregations.Values.Buckets; len(shown) != len(buckets) {
		fail("%d buckets, want %d", len(shown), len(buckets))
	}
	for _, b := range got.Aggregations.Values.Buckets {
		key := ""
		switch x := b.Key.(type) {
		case float64:
			key = "#" + walkFloat(x).text()
		case string:
			if key = "$" + string(text.FacetKey(nil, []byte(x))); strings.HasPrefix(x, largeMark) && buckets[x] != nil {
				key = x
			}
		}
		want := buckets[key]
		if want == nil || want.docs != b.Count || !same(b.Aggregations.Of, want.numbers) {
			fail("bucket %v: want %+v", b.Key, want)
		}
	}
}
