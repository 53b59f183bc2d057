package fastapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestDistinctPages splits searches with distinct into pages: they must be slices of one list with one total, and facets must count that
// list. Documents have several distinct values, so that keeping one affects others.
func TestDistinctPages(t *testing.T) {
	o := Options{}
	openInstance(t, &o)
	c := newClient(t, o)
	seed := rand.Uint64()
	r := walkRandom{Rand: rand.New(rand.NewPCG(seed, 1))}
	words := []string{"lamp", "lamps", "table", "desk", "red", "lam"}
	c.settled(c.json("PATCH", "/indexes/case/settings", `{"filterableAttributes": ["several", "one", "k"], "sortableAttributes": ["k"], "pagination": {"maxTotalHits": 60}, "searchCutoffMs": 60000}`))
	k := map[string]int{}
	for range 3 { // segments
		var docs []map[string]any
		for range 80 {
			d := map[string]any{"id": r.IntN(400), "t": pick(r, words...) + " " + pick(r, words...), "k": r.IntN(3)}
			if r.chance(90) {
				d["several"], d["one"] = []any{r.IntN(60), fmt.Sprint("x", r.IntN(90))}, r.IntN(50)
			}
			k[fmt.Sprint(d["id"])] = d["k"].(int)
			docs = append(docs, d)
		}
		c.settled(c.json("POST", "/indexes/case/documents?primaryKey=id", encode(docs)))
	}
	type page struct {
		Hits              []struct{ ID json.Number }
		TotalHits         int
		FacetDistribution map[string]map[string]int
	}
	ask := func(body map[string]any, more map[string]any) (ids []string, p page) {
		body = maps.Clone(body)
		maps.Copy(body, more)
		reply := c.json("POST", "/indexes/case/search", encode(body))
		if err := json.Unmarshal([]byte(reply.body), &p); err != nil || reply.status != 200 {
			t.Fatalf("%s: %d %s", encode(body), reply.status, reply.body)
		}
		for _, h := range p.Hits {
			ids = append(ids, h.ID.String())
		}
		return ids, p
	}
	for range 12 {
		body := map[string]any{"q": pick(r, "", "lamp", "lamp table", "l", "red desk lamp"), "distinct": pick(r, "several", "several", "one")}
		if r.chance(50) {
			body["facets"] = []string{"k"}
		}
		if r.chance(30) {
			body["sort"] = []string{"k:desc"}
		}
		if r.chance(30) {
			body["filter"] = "k > 0"
		}
		all, whole := ask(body, map[string]any{"page": 1, "hitsPerPage": 100})
		if len(all) != whole.TotalHits {
			t.Fatalf("seed %d: %s: %d hits, but a total of %d", seed, encode(body), len(all), whole.TotalHits)
		}
		if counts := whole.FacetDistribution["k"]; counts != nil && len(all) < 60 {
			want := map[string]int{}
			for _, id := range all {
				want[fmt.Sprint(k[id])]++
			}
			if !reflect.DeepEqual(counts, want) {
				t.Fatalf("seed %d: %s: facets %v, want %v", seed, encode(body), counts, want)
			}
		}
		size := 1 + r.IntN(20)
		var paged, cut []string
		for n := 1; n <= 60/size+2; n++ {
			ids, p := ask(body, map[string]any{"page": n, "hitsPerPage": size})
			if p.TotalHits != whole.TotalHits || !reflect.DeepEqual(p.FacetDistribution, whole.FacetDistribution) {
				t.Fatalf("seed %d: %s: page %d of %d has a total of %d and facets %v, but the list %d and %v",
					seed, encode(body), n, size, p.TotalHits, p.FacetDistribution, whole.TotalHits, whole.FacetDistribution)
			}
			paged = append(paged, ids...)
			ids, _ = ask(body, map[string]any{"offset": (n - 1) * size, "limit": size})
			cut = append(cut, ids...)
		}
		if !slices.Equal(paged, all) || !slices.Equal(cut, all) {
			t.Fatalf("seed %d: %s: the list\n%v has pages\n%v and slices\n%v", seed, encode(body), all, paged, cut)
		}
	}
}
