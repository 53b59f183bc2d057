package settings

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"svc/segment"
)

func mustApply(t testing.TB, s *Settings, body string) *Settings {
	t.Helper()
	u, err := ParseUpdate([]byte(body), allFeatures)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	next, err := s.Apply(u)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return next
}

func TestInfoOf(t *testing.T) {
	tests := []struct {
		settings string
		field    string
		want     FieldInfo // without Name
	}{
		{`{}`, "a", FieldInfo{Searchable: true, Displayed: true}},
		{`{}`, "_geo.lat", FieldInfo{Displayed: true}},
		{`{}`, "_geojson", FieldInfo{Displayed: true}},
		{`{}`, "_geolocation", FieldInfo{Searchable: true, Displayed: true}},
		{`{"filterableAttributes":["_vectors"],"displayedAttributes":[]}`, "_vectors.e", FieldInfo{}},
		{`{"filterableAttributes":["_geo"]}`, "_geo.lat", FieldInfo{Displayed: true, Filterable: true, Equality: true, Comparison: true, FacetSearch: true, Column: true}},
		{`{"filterableAttributes":["_geo"]}`, "_geo", FieldInfo{Displayed: true, Filterable: true, Equality: true, Comparison: true, FacetSearch: true, Column: true, GeoFilter: true, Places: true}},
		{`{"filterableAttributes":[{"attributePatterns":["*"],"features":{"filter":{"equality":false,"comparison":true}}},"_geo"]}`, "_geo",
			FieldInfo{Displayed: true, Filterable: true, Comparison: true, Column: true, GeoFilter: true, Places: true}},
		{`{"filterableAttributes":[{"attributePatterns":["_geo"]}],"sortableAttributes":["_geo"]}`, "_geo",
			FieldInfo{Displayed: true, Filterable: true, Equality: true, Sortable: true, Column: true, Places: true}},
		{`{"filterableAttributes":[{"attributePatterns":["_geo*"]},{"attributePatterns":["_geojson"]}]}`, "_geojson", FieldInfo{Displayed: true, Filterable: true, Equality: true, Column: true}},
		{`{"filterableAttributes":[{"attributePatterns":["*"]}]}`, "_geo", FieldInfo{Displayed: true, Filterable: true, Equality: true, Column: true}},
		{`{"sortableAttributes":["_geo"]}`, "_geo", FieldInfo{Displayed: true, Sortable: true, Column: true, Places: true}},
		{`{"searchableAttributes":["a","b","c.e","c"]}`, "c.e", FieldInfo{Searchable: true, Weight: 2, Displayed: true}},
		{`{"searchableAttributes":["a","b","c.e","c"]}`, "c.e.f", FieldInfo{Searchable: true, Weight: 2, Displayed: true}},
		{`{"searchableAttributes":["a","b","c.e","c"]}`, "c.d", FieldInfo{Searchable: true, Weight: 3, Displayed: true}},
		{`{"searchableAttributes":["a","c","c.d","a"]}`, "c.d", FieldInfo{Searchable: true, Weight: 1, Displayed: true}},
		{`{"searchableAttributes":["a",["b","c.e"],"d"]}`, "b", FieldInfo{Searchable: true, Weight: 1, Displayed: true}},
		{`{"searchableAttributes":["a",["b","c.e"],"d"]}`, "c.e.f", FieldInfo{Searchable: true, Weight: 1, Displayed: true}},
		{`{"searchableAttributes":["a",["b","c.e"],"d"]}`, "d", FieldInfo{Searchable: true, Weight: 2, Displayed: true}},
		{`{"searchableAttributes":["a",["b","c.e"],"d"]}`, "c", FieldInfo{Displayed: true}},
		{`{"searchableAttributes":["a",["b*","c.e"],"d"]}`, "bb", FieldInfo{Displayed: true}},
		{`{"searchableAttributes":["c.d",["c","b"]]}`, "c.d.e", FieldInfo{Searchable: true, Displayed: true}},
		{`{"searchableAttributes":["a"]}`, "ab", FieldInfo{Displayed: true}},
		{`{"searchableAttributes":["a.b"]}`, "a", FieldInfo{Displayed: true}},
		{`{"searchableAttributes":[]}`, "a", FieldInfo{Displayed: true}},
		{`{"displayedAttributes":["a.b"]}`, "a.b.c", FieldInfo{Searchable: true, Displayed: true}},
		{`{"displayedAttributes":["a.b"]}`, "a", FieldInfo{Searchable: true}},
		{`{"typoTolerance":{"disableOnAttributes":["a"]}}`, "a.b", FieldInfo{Searchable: true, Displayed: true, Exact: true}},
		{`{"sortableAttributes":["a"]}`, "a.b", FieldInfo{Searchable: true, Displayed: true, Sortable: true, Column: true}},
		{`{"sortableAttributes":["*"]}`, "a", FieldInfo{Searchable: true, Displayed: true}},
		{`{"distinctAttribute":"a"}`, "a", FieldInfo{Searchable: true, Displayed: true, Distinct: true, Column: true}},
		{`{"distinctAttribute":"a"}`, "a.b", FieldInfo{Searchable: true, Displayed: true}},
		{`{"rankingRules":["a:desc"]}`, "a", FieldInfo{Searchable: true, Displayed: true, Column: true}},
		{`{"filterableAttributes":["a"]}`, "a.b", FieldInfo{Searchable: true, Displayed: true, Filterable: true, Equality: true, Comparison: true, FacetSearch: true, Column: true}},
		{`{"filterableAttributes":["a*"]}`, "ab", FieldInfo{Searchable: true, Displayed: true}},
		{`{"filterableAttributes":[{"attributePatterns":["a"]}]}`, "a", FieldInfo{Searchable: true, Displayed: true, Filterable: true, Equality: true, Column: true}},
		{`{"filterableAttributes":[{"attributePatterns":["a"]}]}`, "a.b", FieldInfo{Searchable: true, Displayed: true}},
		{`{"filterableAttributes":[{"attributePatterns":["a","*.b"]}]}`, "a.b", FieldInfo{Searchable: true, Displayed: true, Filterable: true, Equality: true, Column: true}},
		{`{"filterableAttributes":[{"attributePatterns":["a"],"features":{"filter":{"equality":false}}},"a"]}`, "a", FieldInfo{Searchable: true, Displayed: true}},
		{`{"filterableAttributes":[{"attributePatterns":["a"],"features":{"facetSearch":true,"filter":{"equality":false}}}]}`, "a", FieldInfo{Searchable: true, Displayed: true, Filterable: true, FacetSearch: true, Column: true}},
		{`{"filterableAttributes":[{"attributePatterns":["v.*","w.x"],"features":{"elements":true}}]}`, "v.a", FieldInfo{Searchable: true, Displayed: true, Filterable: true, Equality: true, Column: true, Elements: true, Scope: true}},
		{`{"filterableAttributes":[{"attributePatterns":["v.*","w.x"],"features":{"elements":true}}]}`, "v", FieldInfo{Searchable: true, Displayed: true, Scope: true}},
		{`{"filterableAttributes":[{"attributePatterns":["v.*","w.x"],"features":{"elements":true}}]}`, "w", FieldInfo{Searchable: true, Displayed: true, Scope: true}},
		{`{"filterableAttributes":[{"attributePatterns":["v.*","w.x"],"features":{"elements":true}}]}`, "w.x", FieldInfo{Searchable: true, Displayed: true, Filterable: true, Equality: true, Column: true, Elements: true}},
		{`{"filterableAttributes":[{"attributePatterns":["v.*","w.x"],"features":{"elements":true}}]}`, "vw", FieldInfo{Searchable: true, Displayed: true}},
		{`{"filterableAttributes":[{"attributePatterns":["*.a"],"features":{"elements":true,"filter":{"equality":false}}}]}`, "v.a", FieldInfo{Searchable: true, Displayed: true, Scope: true}},
		{`{"filterableAttributes":[{"attributePatterns":["a*"],"features":{"infix":true}}]}`, "ab", FieldInfo{Searchable: true, Displayed: true, Filterable: true, Equality: true, Column: true, Infix: true}},
		{`{"filterableAttributes":["ab",{"attributePatterns":["a*"],"features":{"infix":true}}]}`, "ab", FieldInfo{Searchable: true, Displayed: true, Filterable: true, Equality: true, Comparison: true, FacetSearch: true, Column: true}},
		{`{"filterableAttributes":[{"attributePatterns":["a"],"features":{"infix":true,"filter":{"equality":false}}}]}`, "a", FieldInfo{Searchable: true, Displayed: true}},
		{`{"localizedAttributes":[{"attributePatterns":["*_de"],"locales":["de"]},{"attributePatterns":["*"],"locales":[]}]}`, "a_de", FieldInfo{Searchable: true, Displayed: true, Locales: []string{"deu"}}},
		{`{"localizedAttributes":[{"attributePatterns":["*_de"],"locales":["de"]},{"attributePatterns":["*"],"locales":[]}]}`, "a", FieldInfo{Searchable: true, Displayed: true, Locales: []string{}}},
	}
	for _, test := range tests {
		s := mustApply(t, Default(), test.settings)
		test.want.Name = test.field
		known := Resolve([]string{"x", test.field}, s, "id")
		if got := *known.Info(1); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %s: got %+v, want %+v", test.settings, test.field, got, test.want)
		}
		for _, f := range []*Fields{known, Resolve(nil, s, "id"), Resolve([]string{"x"}, s, "id").Extend([]string{test.field})} {
			if got := f.InfoOf(test.field); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s: %s: InfoOf gives %+v, want %+v", test.settings, test.field, got, test.want)
			}
		}
	}
}

func TestFieldsNumbering(t *testing.T) {
	f := Resolve([]string{"a", "b"}, mustApply(t, Default(), `{"searchableAttributes":["x","b","y"]}`), "id")
	g := f.Extend([]string{"c"})
	for _, test := range []struct {
		f    *Fields
		name string
		id   segment.FieldID
		ok   bool
	}{{f, "a", 0, true}, {f, "b", 1, true}, {f, "c", 0, false}, {g, "a", 0, true}, {g, "b", 1, true}, {g, "c", 2, true}} {
		if id, ok := test.f.ID(test.name); id != test.id || ok != test.ok {
			t.Errorf("ID(%q) = %d, %v, want %d, %v", test.name, id, ok, test.id, test.ok)
		}
	}
	if f.Len() != 2 || g.Len() != 3 || g.Info(2).Name != "c" || g.Info(1).Weight != 1 {
		t.Errorf("lengths %d and %d, field 2 is %+v", f.Len(), g.Len(), *g.Info(2))
	}
	if f.MaxWeight() != 2 || f.PrimaryKey() != "id" || Resolve(nil, Default(), "").MaxWeight() != 0 {
		t.Errorf("MaxWeight %d, PrimaryKey %q", f.MaxWeight(), f.PrimaryKey())
	}
	if n := Resolve(nil, mustApply(t, Default(), `{"searchableAttributes":[["x","b"],["y","z"]]}`), "id").MaxWeight(); n != 1 {
		t.Errorf("MaxWeight of two groups is %d", n)
	}
}

func TestResolveAllFieldIDs(t *testing.T) {
	var rules []string
	for i := range 2000 {
		rules = append(rules, fmt.Sprintf(`{"attributePatterns":["p%d_*","*_s%d"]}`, i, i))
	}
	s := mustApply(t, Default(), `{"filterableAttributes":[`+strings.Join(rules, ",")+`]}`)
	names := make([]string, 1<<16)
	for i := range names {
		names[i] = fmt.Sprintf("p%d_x", i)
	}
	f := Resolve(names, s, "id")
	if !f.Info(1999).Filterable || f.Info(2000).Filterable || f.Info(1<<16-1).Name != names[1<<16-1] {
		t.Error("wrong fields are filterable")
	}
}

// TestPatternsRandom compares the choice of a pattern with trying the patterns one by one.
func TestPatternsRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	word := func(letters string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	for range 2000 {
		var p patterns
		type rule struct {
			pattern string
			tree    bool
		}
		rules := make([]rule, r.IntN(6))
		for i := range rules {
			w := word("ab.", r.IntN(4))
			rules[i] = rule{[]string{w, w + "*", "*" + w, "*" + w + "*", "*"}[r.IntN(5)], r.IntN(4) == 0}
			if rules[i].tree {
				p.addTree(rules[i].pattern, i)
			} else {
				p.add(rules[i].pattern, i)
			}
		}
		for range 20 {
			name := word("ab.", r.IntN(6))
			want := -1
			for i, rule := range rules {
				if Covers(rule.pattern, name) && !rule.tree || rule.tree && (name == rule.pattern || strings.HasPrefix(name, rule.pattern+".")) {
					want = i
					break
				}
			}
			if got := p.first(name); got != want {
				t.Fatalf("%+v: first(%q) = %d, want %d", rules, name, got, want)
			}
		}
	}
}
