package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/internal/turns"
	"svc/segment"
)

// searchEach is the reference facet search: it folds and compares each value, and counts its documents.
func searchEach(v *index.View, r *FacetRequest, candidates []*roaring.Bitmap) []string {
	field, _ := v.Fields.ID(r.FacetName)
	var found []facetValue
	for i, s := range v.Segments {
		c := s.Column(field)
		if c == nil {
			continue
		}
		in := &facetRows{Live: s, column: c}
		if s.Deleted != nil {
			in.among = s.LiveRows()
		}
		for ord := range c.Numbers() {
			rows := roaring.New()
			c.AddNumberRows(rows, ord, ord+1)
			x := c.Number(ord)
			found = append(found, facetValue{isNumber: true, number: x, key: x.AppendText(nil), shown: x.AppendText(nil), count: int(rows.AndCardinality(candidates[i]))})
		}
		for ord := range c.Strings() {
			rows := roaring.New()
			c.AddStringRows(rows, ord, ord+1)
			rows.And(candidates[i])
			n := int(rows.GetCardinality())
			rows.Clear()
			c.AddStringRows(rows, ord, ord+1)
			if rows.And(s.LiveRows()); !rows.IsEmpty() {
				found = append(found, facetValue{key: c.String(ord), shown: c.Original(ord), count: n, in: in, ord: ord, varies: c.Varies(ord)})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b facetValue) int {
		if c := a.compare(&b); c != 0 || a.isNumber {
			return c
		}
		return cmp.Compare(a.first(), b.first())
	})
	merged := found[:0]
	for _, f := range found {
		if last := len(merged) - 1; last >= 0 && merged[last].compare(&f) == 0 {
			merged[last].count += f.count
		} else {
			merged = append(merged, f)
		}
	}
	found = merged
	found = slices.DeleteFunc(found, func(f facetValue) bool {
		if f.count == 0 || r.FacetQuery == nil {
			return f.count == 0
		}
		folded, asked, t := text.FacetSearchKey(string(f.key), nil), text.FacetSearchKey(*r.FacetQuery, nil), v.Settings.TypoTolerance
		budget := 0
		switch {
		case slices.Contains(t.DisableOnWords, asked):
			return folded != asked
		case f.isNumber && t.DisableOnNumbers:
		case len(asked) >= int(t.TwoTypos):
			budget = 2
		case len(asked) >= int(t.OneTypo):
			budget = 1
		}
		return query.PrefixDistance([]rune(asked), folded, budget) > budget
	})
	for i := range found { // a number and a string of equal text are one value
		for k := range found {
			if found[i].isNumber && !found[k].isNumber && found[i].count > 0 && string(found[i].key) == string(found[k].key) {
				found[i].count += found[k].count - eachWithBoth(v, field, &found[i], candidates)
				found[k].count = 0
			}
		}
	}
	found = slices.DeleteFunc(found, func(f facetValue) bool { return f.count == 0 })
	for i := range found {
		if found[i].isNumber {
			continue
		}
		if err := found[i].spell(facetField{name: r.FacetName}); err != nil {
			panic(err)
		}
	}
	if v.Settings.Faceting.Order(r.FacetName) == settings.Count {
		slices.SortFunc(found, func(a, b facetValue) int {
			return cmp.Or(cmp.Compare(b.count, a.count), bytes.Compare(b.shown, a.shown))
		})
	} else {
		slices.SortFunc(found, func(a, b facetValue) int { return bytes.Compare(a.key, b.key) })
		if r.FacetQuery != nil {
			sortByFold(found, nil)
		}
	}
	hits := []string{}
	for _, f := range found[:min(len(found), v.Settings.Faceting.MaxValuesPerFacet)] {
		hits = append(hits, fmt.Sprintf("%s %d", f.shown, f.count))
	}
	return hits
}

// eachWithBoth counts the candidates that have a number and its text, row by row.
func eachWithBoth(v *index.View, field segment.FieldID, number *facetValue, candidates []*roaring.Bitmap) (n int) {
	for i, s := range v.Segments {
		c := s.Column(field)
		for it := candidates[i].Iterator(); c != nil && it.HasNext(); {
			row := segment.Row(it.Next())
			has := slices.ContainsFunc(c.RowNumbers(nil, row), func(ord uint32) bool { return c.Number(int(ord)) == number.number })
			if has && slices.ContainsFunc(c.RowStrings(nil, row), func(ord uint32) bool { return bytes.Equal(c.String(int(ord)), number.key) }) {
				n++
			}
		}
	}
	return n
}

// TestFacetSearchAgainstEachValue compares facet search with searchEach.
func TestFacetSearchAgainstEachValue(t *testing.T) {
	defer func(few, values, share, matched, spelt int) {
		aggregate.FewCounted, fewValues, respeltShare, matchedShare, manyPerSpelt = few, values, share, matched, spelt
	}(aggregate.FewCounted, fewValues, respeltShare, matchedShare, manyPerSpelt)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	kinds := 1 // kinds of values: strings, numbers, both
	number := func() string {
		return pick("", "", "-") + pick("1", "2", "20", "9", "0", "19", "9007199254740992", "9007199254740993", "18446744073709551615", "1"+strings.Repeat("0", 300)) + pick("", "", "", "0", "00", "000")
	}
	asking := func() string {
		n := number() + pick("", "", ".", ".0", ".5")
		return n[:1+r.IntN(min(len(n), 20))]
	}
	literal := func() string { // JSON
		n := number()
		if r.IntN(3) == 0 {
			n += pick(".5", ".25", ".0", ".999")
		}
		if strings.TrimLeft(n, "-0") == "" || strings.HasPrefix(strings.TrimLeft(n, "-"), "0") {
			n = pick("0", "0.5", "0.0001", "-0.25")
		}
		return n
	}
	value := func() string {
		if kinds > 1 && r.IntN(2) == 0 {
			return asking()
		}
		var b strings.Builder
		for range 1 + r.IntN(7) {
			b.WriteString(pick("a", "b", "c", "a", "b", "A", "ab", "é", "日", " ", "-"))
		}
		return b.String()
	}
	shown := 0
	for round := range 12 {
		kinds = 1 + round%3
		aggregate.FewCounted, fewValues, respeltShare = []int{4096, 3}[r.IntN(2)], []int{4096, 0, 0}[r.IntN(3)], []int{16, 0, 0}[r.IntN(3)]
		matchedShare, manyPerSpelt = []int{8, 1 << 20}[r.IntN(2)], []int{1, 1 << 20}[r.IntN(2)]
		l := newLibrary(t)
		l.put("a", fmt.Sprintf(`{"filterableAttributes":["f","third","part"],"faceting":{"maxValuesPerFacet":%d,"sortFacetValuesBy":{"*":"%s"}},
			"typoTolerance":{"minWordSizeForTypos":{"oneTypo":%d,"twoTypos":%d},"disableOnWords":["abc","20"],"disableOnNumbers":%s}}`,
			[]int{1 + r.IntN(40), 1 + r.IntN(40), math.MaxInt}[r.IntN(3)], pick("alpha", "count"), 2+r.IntN(3), 4+r.IntN(3), pick("true", "false")))
		for part := range 1 + r.IntN(4) {
			var docs []string
			for i := range 1 + r.IntN(120) {
				f := fmt.Sprintf("%q,%q", value(), value())
				if kinds > 1 && (kinds == 2 || r.IntN(2) == 0) {
					f = literal() + "," + literal()
					if kinds == 3 && r.IntN(3) == 0 { // a document with both counts once
						n := literal()
						f = fmt.Sprintf("%s,%q", n, n)
					}
				}
				docs = append(docs, fmt.Sprintf(`{"id":%d,"f":[%s],"third":%v,"part":%d}`, r.IntN(200)+part*50, f, i%3 == 0, part))
			}
			l.put("a", "", docs...)
		}
		var filters []*filter.Expr // the second leaves segments without candidates
		for _, condition := range []string{"third = true", "part = 1"} {
			f, err := filter.Parse(condition)
			if err != nil {
				t.Fatal(err)
			}
			filters = append(filters, f)
		}
		v := held(l.c.Get("a").View())
		t.Cleanup(v.Release) // before the library is closed
		for range 60 {
			request := FacetRequest{FacetName: "f"}
			if asked := value(); r.IntN(8) > 0 {
				request.FacetQuery = &asked
			}
			if r.IntN(3) == 0 {
				request.Search.Filter = filters[r.IntN(2)]
			}
			candidates, err := universe(context.Background(), v, request.Search.Filter, request.Search.filtering())
			if err != nil {
				t.Fatal(err)
			}
			body, err := FacetSearch(context.Background(), nil, v, &request)
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				FacetHits []struct {
					Value string
					Count int
				}
			}
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, h := range answer.FacetHits {
				got = append(got, fmt.Sprintf("%s %d", h.Value, h.Count))
			}
			want := searchEach(v, &request, candidates)
			if shown += len(want); !slices.Equal(got, want) {
				asked := "nothing"
				if request.FacetQuery != nil {
					asked = fmt.Sprintf("%q", *request.FacetQuery)
				}
				t.Fatalf("round %d, %s, filtered %v, %+v:\ngot  %q\nwant %q", round, asked, request.Search.Filter != nil, v.Settings.Faceting, got, want)
			}
		}
	}
	if shown == 0 {
		t.Error("no value was found")
	}
}

// BenchmarkFacetSearchByCount lists the most frequent values that several segments share, by number and by comparison.
func BenchmarkFacetSearchByCount(b *testing.B) {
	defer func(values int) { fewValues = values }(fewValues)
	l := newLibrary(b)
	l.put("a", `{"filterableAttributes":["s"],"faceting":{"sortFacetValuesBy":{"*":"count"}}}`)
	rng := rand.New(rand.NewPCG(1, 2))
	for part := range 8 {
		var docs []string
		for i := range 15_000 {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"s":["package-%d","module-%d"]}`, part*15_000+i, rng.IntN(40_000), rng.IntN(20_000)))
		}
		l.put("a", "", docs...)
	}
	v := held(l.c.Get("a").View())
	defer v.Release()
	b.Logf("%d segments", len(v.Segments))
	prefix := "package-"
	for _, asked := range []*string{nil, &prefix} {
		for _, few := range []int{fewValues, 1 << 30} {
			fewValues = few
			b.Run(fmt.Sprint("asked ", asked != nil, ", numbered ", few < 1<<30), func(b *testing.B) {
				for b.Loop() {
					if _, err := FacetSearch(context.Background(), nil, v, &FacetRequest{FacetName: "s", FacetQuery: asked}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		fewValues = 1 << 12
	}
}

// TestLongFacetQueries searches with a text much longer than all values. The cost depends on the values only, and the search stops at any
// yield where its turn ends.
func TestLongFacetQueries(t *testing.T) {
	l := newLibrary(t)
	var docs []string
	for i := range 300 { // letters beyond ASCII and capitals are folded
		docs = append(docs, fmt.Sprintf(`{"id":%d,"f":["kaka%d","kaké%d","KAKA%d"]}`, i, i, i, i))
	}
	l.put("a", `{"filterableAttributes":["f"]}`, docs...)
	v := held(l.c.Get("a").View())
	t.Cleanup(v.Release)
	long := strings.Repeat("ka", 30_000)
	request := FacetRequest{FacetName: "f", FacetQuery: &long}
	var turn *fakeTurn
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 2 { // the first one folds values for the cache
		turn = new(fakeTurn)
		if _, err := FacetSearch(context.WithValue(t.Context(), turns.Key, turn), nil, v, &request); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 8<<20 {
		t.Errorf("%d MiB are allocated", spent>>20)
	}
	if turn.yields < 3 { // for the segment and the two kinds of values
		t.Errorf("the search yields only %d times", turn.yields)
	}
	for ends := range turn.yields {
		turn := &fakeTurn{ends: ends + 1}
		if _, err := FacetSearch(context.WithValue(t.Context(), turns.Key, turn), nil, v, &request); !errors.Is(err, errOver) || turn.yields != turn.ends {
			t.Errorf("the turn ended at yield %d, the search at %d: %v", turn.ends, turn.yields, err)
		}
	}
}
