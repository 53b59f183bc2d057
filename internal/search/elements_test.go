package search

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/geo"
	"svc/internal/index"
	"svc/internal/settings"
)

// This file has the reference implementation of filters in braces: an object at the path is tested like a document of its own.

// objectsAt returns the objects at a path. prefix is the path of object with a dot, or "" for a document.
func objectsAt(object map[string]any, prefix, path string) (found []map[string]any) {
	for key, value := range object {
		at := prefix + key
		if at != path && !strings.HasPrefix(path, at+".") {
			continue
		}
		for _, o := range objectsIn(value) {
			if at == path {
				found = append(found, o)
			} else {
				found = append(found, objectsAt(o, at+".", path)...)
			}
		}
	}
	return found
}

// objectsIn returns a value that is an object, or the objects in its arrays.
func objectsIn(value any) (found []map[string]any) {
	switch v := value.(type) {
	case map[string]any:
		return []map[string]any{v}
	case []any:
		for _, e := range v {
			found = append(found, objectsIn(e)...)
		}
	}
	return found
}

// modelValue is a value at a path. inArray reports an array on the path.
type modelValue struct {
	value   any
	inArray bool
}

func valuesAt(object map[string]any, prefix, path string, inArray bool) (found []modelValue, present bool) {
	var into func(at string, value any, inArray bool)
	into = func(at string, value any, inArray bool) {
		switch v := value.(type) {
		case map[string]any:
			if at != path {
				below, has := valuesAt(v, at+".", path, inArray)
				found, present = append(found, below...), present || has
				return
			}
			if len(v) == 0 {
				found = append(found, modelValue{v, inArray})
			}
		case []any:
			if at == path && len(v) == 0 {
				found = append(found, modelValue{v, inArray})
			}
			for _, e := range v {
				into(at, e, true)
			}
		default:
			if at == path {
				found = append(found, modelValue{v, inArray})
			}
		}
	}
	for key, value := range object {
		at := prefix + key
		if at == path {
			present = true
		}
		if at == path || strings.HasPrefix(path, at+".") {
			into(at, value, inArray)
		}
	}
	return found, present
}

type modelTest func(object map[string]any) bool

// elementFilters makes random filters and their reference tests.
type elementFilters struct {
	r     *rand.Rand
	geo   bool
	nests int // nested braces
}

var elementColors = []string{"red", "Blue", "light blue", "green"}

// condition makes a condition on a path relative to the objects at scope.
func (g *elementFilters) condition(path string) (string, modelTest) {
	some := func(holds func(modelValue) bool) modelTest {
		return func(o map[string]any) bool {
			values, _ := valuesAt(o, "", path, false)
			return slices.ContainsFunc(values, holds)
		}
	}
	not := func(t modelTest) modelTest { return func(o map[string]any) bool { return !t(o) } }
	word := elementColors[g.r.IntN(len(elementColors))]
	is := func(words ...string) modelTest {
		return some(func(v modelValue) bool {
			s, ok := v.value.(string)
			return ok && slices.Contains(words, strings.ToLower(s))
		})
	}
	n := g.r.IntN(6)
	numbers := func(holds func(x int) bool) modelTest {
		return some(func(v modelValue) bool { x, ok := v.value.(int); return ok && holds(x) })
	}
	low := strings.ToLower(word)
	switch g.r.IntN(14) {
	case 0, 1:
		return fmt.Sprintf("%s = %q", path, word), is(low)
	case 2:
		return fmt.Sprintf("%s != %q", path, word), not(is(low))
	case 3:
		return fmt.Sprintf("%s IN [%q, green]", path, word), is(low, "green")
	case 4:
		return fmt.Sprintf("%s NOT IN [%q, green]", path, word), not(is(low, "green"))
	case 5:
		test := func(o map[string]any) bool { _, present := valuesAt(o, "", path, false); return present }
		return path + " EXISTS", test
	case 6:
		return path + " NOT EXISTS", func(o map[string]any) bool { _, present := valuesAt(o, "", path, false); return !present }
	case 7:
		return path + " IS NULL", some(func(v modelValue) bool { return v.value == nil && !v.inArray })
	case 8:
		return path + " IS NOT EMPTY", not(some(func(v modelValue) bool {
			switch e := v.value.(type) {
			case string:
				return e == "" && !v.inArray
			case map[string]any, []any:
				return !v.inArray
			}
			return false
		}))
	case 9:
		return fmt.Sprintf("%s > %d", path, n), some(func(v modelValue) bool {
			x, number := v.value.(int)
			s, text := v.value.(string) // letters sort after digits
			return number && x > n || text && s != ""
		})
	case 10:
		return fmt.Sprintf("%s %d TO 4", path, n), numbers(func(x int) bool { return n <= x && x <= 4 })
	case 11:
		return fmt.Sprintf("%s CONTAINS blue", path), some(func(v modelValue) bool {
			s, ok := v.value.(string)
			return ok && strings.Contains(strings.ToLower(s), "blue")
		})
	case 12:
		return fmt.Sprintf("%s STARTS WITH %q", path, low[:2]), some(func(v modelValue) bool {
			s, ok := v.value.(string)
			return ok && strings.HasPrefix(strings.ToLower(s), low[:2])
		})
	default:
		return fmt.Sprintf("%s <= %d", path, n), numbers(func(x int) bool { return x <= n })
	}
}

// inside makes the filter inside the braces of scope "v" or "v.s".
func (g *elementFilters) inside(scope string, depth int) (string, modelTest) {
	paths := []string{"c", "n", "s.c", "s.n", "s", "d.e"}
	if scope == "v.s" {
		paths = []string{"c", "n"}
	}
	if depth > 0 {
		switch g.r.IntN(6) {
		case 0, 1, 2:
			a, testA := g.inside(scope, depth-1)
			b, testB := g.inside(scope, depth-1)
			if g.r.IntN(2) == 0 {
				return fmt.Sprintf("(%s AND %s)", a, b), func(o map[string]any) bool { return testA(o) && testB(o) }
			}
			return fmt.Sprintf("(%s OR %s)", a, b), func(o map[string]any) bool { return testA(o) || testB(o) }
		case 3:
			a, test := g.inside(scope, depth-1)
			return "NOT " + a, func(o map[string]any) bool { return !test(o) }
		case 4:
			if scope == "v" {
				g.nests++
				a, test := g.inside("v.s", depth-1)
				return "s.{" + a + "}", func(o map[string]any) bool { return slices.ContainsFunc(objectsAt(o, "", "s"), test) }
			}
		case 5:
			if scope == "v" && g.geo {
				meters := float64(g.r.IntN(3) * 600_000)
				return fmt.Sprintf("_geoRadius(0, 0, %.0f)", meters), func(o map[string]any) bool {
					p, ok := o["_geo"].(map[string]any)
					return ok && geo.Distance(0, 0, float64(p["lat"].(int)), float64(p["lng"].(int))) <= meters
				}
			}
		}
	}
	return g.condition(paths[g.r.IntN(len(paths))])
}

// outside makes a filter with braces.
func (g *elementFilters) outside() (string, modelTest) {
	scope := []string{"v", "v", "v", "v.s"}[g.r.IntN(4)]
	a, test := g.inside(scope, 3)
	text, whole := scope+".{"+a+"}", modelTest(func(o map[string]any) bool { return slices.ContainsFunc(objectsAt(o, "", scope), test) })
	switch g.r.IntN(5) {
	case 0:
		return "NOT " + text, func(o map[string]any) bool { return !whole(o) }
	case 1:
		return text + " AND id < 12", func(o map[string]any) bool { return whole(o) && o["id"].(int) < 12 }
	case 2:
		b, test := g.condition("v.c")
		return text + " OR " + b, func(o map[string]any) bool { return whole(o) || test(o) }
	}
	return text, whole
}

func randomElements(r *rand.Rand, id int) map[string]any {
	value := func() any {
		switch r.IntN(9) {
		case 0:
			return nil
		case 1:
			return []any{}
		case 2:
			return []any{r.IntN(6), elementColors[r.IntN(4)], nil}
		case 3:
			return ""
		case 4, 5:
			return r.IntN(6)
		default:
			return elementColors[r.IntN(4)]
		}
	}
	var object func(depth int) map[string]any
	some := func(depth int) any {
		switch r.IntN(6) {
		case 0:
			return value()
		case 1:
			return object(depth)
		case 2:
			return []any{object(depth), []any{object(depth)}, value()}
		}
		list := []any{}
		for range r.IntN(4) {
			list = append(list, object(depth))
		}
		return list
	}
	object = func(depth int) map[string]any {
		o := map[string]any{}
		for _, key := range []string{"c", "n"} {
			if r.IntN(4) > 0 {
				o[key] = value()
			}
		}
		if depth > 0 {
			return o
		}
		if r.IntN(2) == 0 {
			o["s"] = some(1)
		}
		switch r.IntN(6) {
		case 0:
			o["d.e"] = value() // a key with a dot
		case 1:
			o["d"] = map[string]any{"e": value()}
		case 2: // both, the inner one first or last
			o["d"], o["d.e"] = []any{map[string]any{"e": value()}}, value()
		}
		if r.IntN(3) == 0 {
			o["_geo"] = map[string]any{"lat": r.IntN(20), "lng": r.IntN(20)}
		}
		return o
	}
	doc := map[string]any{"id": id}
	if r.IntN(8) > 0 {
		doc["v"] = some(0)
	}
	if r.IntN(10) == 0 {
		doc["v.c"] = value()
	}
	return doc
}

// everyElementField has a value at each path, so that no path is unknown.
var everyElementField = map[string]any{"id": 99, "v": map[string]any{"c": 1, "n": 1, "s": map[string]any{"c": 1, "n": 1}, "d": map[string]any{"e": 1}, "_geo": map[string]any{"lat": 80, "lng": 80}}}

const elementRules = `{"filterableAttributes":["id",{"attributePatterns":["v*"],"features":{"elements":true,"filter":{"equality":true,"comparison":true}}}]}`

func TestFiltersOnOneObject(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	nests, found, rejected, segments := 0, 0, 0, 0
	for round := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, round))
		g := newGrown(t)
		set := func() {
			u, err := settings.ParseUpdate([]byte(elementRules), settings.Features{})
			if err != nil {
				t.Fatal(err)
			}
			g.apply(index.UpdateSettings{Update: u})
		}
		late := round%3 == 2 // the rule is added to existing documents
		if !late {
			set()
		}
		docs := map[int]map[string]any{99: everyElementField}
		g.add([]map[string]any{everyElementField})
		for range 6 {
			switch r.IntN(5) {
			case 0:
				var ids []string
				for range 3 {
					id := r.IntN(25)
					delete(docs, id)
					ids = append(ids, fmt.Sprint(id))
				}
				g.apply(index.DeleteDocuments{IDs: ids})
			case 1:
				g.batch++
				if _, _, err := g.ix.Compact(t.Context(), g.batch, nil); err != nil {
					t.Fatal(err)
				}
			default:
				var batch []map[string]any
				for range 1 + r.IntN(12) {
					doc := randomElements(r, r.IntN(25))
					docs[doc["id"].(int)] = doc
					batch = append(batch, doc)
				}
				g.add(batch)
			}
		}
		if late {
			set()
		}
		v := held(g.ix.View())
		segments = max(segments, len(v.Segments))
		v.Release()
		f := &elementFilters{r: r, geo: true}
		for range 60 {
			text, test := f.outside()
			e, err := filter.Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if again, err := filter.Parse(e.String()); err != nil || again.String() != e.String() {
				t.Fatalf("%s prints as %s: %v", text, e, err)
			}
			want := []int{}
			for id, doc := range docs {
				if test(doc) {
					want = append(want, id)
				}
			}
			slices.Sort(want)
			got := g.ids(&Request{Filter: e, Limit: 100, Contains: true})
			if !slices.Equal(got, want) {
				for _, id := range append(slices.Clone(got), want...) {
					if slices.Contains(got, id) != slices.Contains(want, id) {
						body, _ := json.Marshal(docs[id])
						t.Logf("%d: %s", id, body)
					}
				}
				t.Fatalf("round %d, %s:\ngot  %v\nwant %v", round, text, got, want)
			}
			g.matches(e, docs, want)
			found, rejected = found+len(want), rejected+len(docs)-len(want)
		}
		nests += f.nests
	}
	if nests == 0 || found == 0 || rejected == 0 || segments < 2 {
		t.Errorf("%d nested braces, %d documents found, %d rejected, %d segments at most", nests, found, rejected, segments)
	}
}

// ids returns the ids of the hits, ascending.
func (g *grown) ids(r *Request) []int {
	g.t.Helper()
	var answer struct{ Hits []struct{ ID int } }
	body := strings.ReplaceAll(g.ask(r), ",,", ",") // the time was left out
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		g.t.Fatalf("%v: %s", err, body)
	}
	ids := []int{}
	for _, h := range answer.Hits {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	return ids
}

// matches checks that a Matcher, which reads documents, selects the same documents as the segments.
func (g *grown) matches(e *filter.Expr, docs map[int]map[string]any, want []int) {
	g.t.Helper()
	v := held(g.ix.View())
	defer v.Release()
	m, err := e.Matcher(filter.Env{Fields: v.Fields, Code: "invalid_document_filter", Contains: true}, func(doc []byte) (w filter.Where) {
		var o struct {
			Geo *struct{ Lat, Lng float64 } `json:"_geo"`
		}
		if json.Unmarshal(doc, &o) == nil && o.Geo != nil {
			w.Point, w.Lat, w.Lng = true, o.Geo.Lat, o.Geo.Lng
		}
		return w
	})
	if err != nil {
		g.t.Fatal(err)
	}
	for id, doc := range docs {
		raw, err := json.Marshal(doc)
		if err != nil {
			g.t.Fatal(err)
		}
		got, err := m.Matches(raw)
		if err != nil || got != slices.Contains(want, id) {
			g.t.Fatalf("%s of %s: %v, %v", e, raw, got, err)
		}
	}
}

func TestFiltersOnUndeclaredObjects(t *testing.T) {
	g := newGrown(t)
	g.set([]string{"id", "v", "w"}, nil)
	g.add([]map[string]any{{"id": 1, "v": []any{map[string]any{"c": 1}}}})
	v := held(g.ix.View())
	defer v.Release()
	for _, text := range []string{"v.{c = 1}", "id = 1 AND NOT v.{c = 1}"} {
		e, err := filter.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Search(t.Context(), v, &Request{Filter: e})
		if err == nil || apierr.From(err).Code != "invalid_search_filter" || !strings.Contains(err.Error(), `"elements": true`) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
