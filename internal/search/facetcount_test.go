package search

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/numeric"
	"svc/internal/rank"
	"svc/internal/settings"
	"svc/segment"
)

// TestDistributionCountsRows compares counts, their order and the statistics with a count of each value of each row, for few and for most
// documents of several segments, with deletions and duplicates.
func TestDistributionCountsRows(t *testing.T) {
	defer func(few, counted, many, values, repeats, row int) {
		fewCandidates, aggregate.FewCounted, aggregate.ManyPerCounted, fewValues, maxRepeats, timeOfRow = few, counted, many, values, repeats, row
	}(fewCandidates, aggregate.FewCounted, aggregate.ManyPerCounted, fewValues, maxRepeats, timeOfRow)
	fewValues = 0
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 1))
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["n","s","m","u"]}`)
	id := 0
	for _, size := range []int{120, 40, 3} { // too few for a merge
		var docs []string
		for range size {
			id++
			doc := id
			if r.IntN(5) == 0 {
				doc = 1 + r.IntN(id) // replaces a document of another segment
			}
			docs = append(docs, fmt.Sprintf(`{"id":%d,"n":[%d,%d,%v,%d],"s":["v%d","w%d"],"m":["%d",%d,"x%d"],"u":"u%d"}`,
				doc, r.IntN(9), r.IntN(40), float64(r.IntN(400)-200)/8, 1<<60+uint64(r.IntN(7)), r.IntN(6), r.IntN(60), r.IntN(4), r.IntN(8), r.IntN(3), id))
		}
		l.put("a", "", docs...)
	}
	v := held(l.c.Get("a").View())
	defer v.Release()
	if len(v.Segments) < 3 {
		t.Fatalf("%d segments", len(v.Segments))
	}
	set := *v.Settings
	v.Settings = &set
	for n := range 400 {
		set.Faceting.MaxValuesPerFacet = []int{100, []int{100, math.MaxInt}[r.IntN(2)], 1 + r.IntN(30)}[n%3]
		fewCandidates, aggregate.FewCounted, aggregate.ManyPerCounted, timeOfRow = r.IntN(200), r.IntN(100), r.IntN(3), r.IntN(2)<<20
		candidates, less := make([]*roaring.Bitmap, len(v.Segments)), make([]*roaring.Bitmap, len(v.Segments))
		share := r.IntN(4) // 0: all live documents
		for i, live := range v.LiveRows() {
			candidates[i] = roaring.New()
			for it := live.Iterator(); it.HasNext(); {
				if row := it.Next(); share == 0 || r.IntN(5) < share {
					candidates[i].Add(row)
					if n%3 == 0 && r.IntN(4) == 0 {
						if less[i] == nil {
							less[i] = roaring.New()
						}
						less[i].Add(row)
					}
				}
			}
		}
		var fields []facetField
		for _, name := range []string{"n", "s", "m", "u"} {
			field, ok := v.Fields.ID(name)
			if !ok {
				t.Fatal(name)
			}
			fields = append(fields, facetField{field, name, settings.FacetOrder(r.IntN(int(settings.FacetOrders)))})
		}
		got, err := distribution(context.Background(), v, fields, &rank.Result{Candidates: candidates}, less, false)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range got {
			limit := v.Settings.Faceting.MaxValuesPerFacet
			few := rows(candidates)-rows(less) <= fewCandidates
			want, low, high := countEach(v.Segments, fields[i], candidates, less, few)
			want = want[:min(limit, len(want))]
			var have []string
			for _, value := range f.values {
				have = append(have, fmt.Sprintf("%s %d", value.shown, value.count))
			}
			if !slices.Equal(have, want) {
				t.Fatalf("seed %d, case %d, %s, by %v, few %v:\ngot  %v\nwant %v", seed, n, f.name, f.order, few, have, want)
			}
			ends := facet{name: f.name}
			if low != nil {
				ends.fold(*low, *high)
			}
			if got, want := string(appendStats(nil, []facet{f})), string(appendStats(nil, []facet{ends})); got != want {
				t.Fatalf("seed %d, case %d, %s: %s, want %s", seed, n, f.name, got, want)
			}
		}
	}
}

// TestNumbersBeyondTheirColumn lists numbers of a forged segment with ordinals beyond its column.
func TestNumbersBeyondTheirColumn(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["n"]}`, `{"id":1,"n":[3,20]}`)
	v := held(l.c.Get("a").View())
	defer v.Release()
	field, _ := v.Fields.ID("n")
	c := v.Segments[0].Column(field)
	s := facetSource{in: &facetRows{column: c}, size: c.Numbers(), all: ordinalCounts{Ordinals: aggregate.Ordinals{Column: c, Have: []uint32{0, 1, 2, 1 << 31}, Times: []uint32{1, 1, 1, 1}}}}
	var got []string
	for _, value := range firstByText([]*facetSource{&s}, 10) {
		got = append(got, string(value.shown))
	}
	if want := []string{"20", "3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// countEach is the reference count.
func countEach(segments []segment.Live, f facetField, candidates, less []*roaring.Bitmap, few bool) (values []string, low, high *numeric.Value) {
	type value struct {
		number bool
		x      numeric.Value
		text   string
		count  int
	}
	counts := map[string]*value{}
	for i, s := range segments {
		c := s.Column(f.id)
		for it := candidates[i].Iterator(); it.HasNext() && c != nil; {
			row := it.Next()
			step := 1
			if less[i] != nil && less[i].Contains(row) {
				step = 0
			}
			for _, ord := range c.RowNumbers(nil, segment.Row(row)) {
				x := c.Number(int(ord))
				if low == nil || x.Compare(*low) < 0 {
					low = &x
				}
				if high == nil || x.Compare(*high) > 0 {
					high = &x
				}
				text := string(x.AppendText(nil))
				if counts[text] == nil {
					counts[text] = &value{text: text}
				}
				counts[text].number = counts[text].number || step > 0
				counts[text].x = x
				counts[text].count += step
			}
			for _, ord := range c.RowStrings(nil, segment.Row(row)) {
				text := string(c.String(int(ord)))
				if slices.ContainsFunc(c.RowNumbers(nil, segment.Row(row)), func(n uint32) bool {
					return string(c.Number(int(n)).AppendText(nil)) == text
				}) {
					continue // it counts only once
				}
				if counts[text] == nil {
					counts[text] = &value{text: text}
				}
				counts[text].count += step
			}
		}
	}
	var list []*value
	for _, v := range counts {
		if v.count > 0 {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b *value) int {
		if f.order == settings.Count && a.count != b.count {
			return cmp.Compare(b.count, a.count)
		}
		if a.number != b.number {
			if a.number {
				return -1
			}
			return 1
		}
		if a.number && (!few || f.order == settings.Count) {
			return a.x.Compare(b.x)
		}
		return bytes.Compare([]byte(a.text), []byte(b.text))
	})
	for _, v := range list {
		values = append(values, fmt.Sprintf("%s %d", v.text, v.count))
	}
	return values, low, high
}
