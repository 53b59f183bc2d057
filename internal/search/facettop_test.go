package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/rank"
	"svc/internal/settings"
)

// TestNearlyUniqueValues compares the most frequent and the first values of fields with nearly unique values with a count of each value of
// each row, while documents are added, replaced and deleted, a few and many at a time.
func TestNearlyUniqueValues(t *testing.T) {
	defer func(few, values, repeats int) { fewCandidates, fewValues, maxRepeats = few, values, repeats }(fewCandidates, fewValues, maxRepeats)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["s","n"],"faceting":{"maxValuesPerFacet":7}}`)
	number, next := 0, 0
	value := func() int {
		if next++; r.IntN(12) == 0 {
			return r.IntN(next)
		}
		return next
	}
	topped := 0
	for round := range 40 {
		fewCandidates, fewValues, maxRepeats = 0, 0, []int{1 << 15, 1 << 15, 1 << 15, 20}[r.IntN(4)]
		var docs []string
		for range []int{1, 1, 3, 60, 300}[r.IntN(5)] {
			number++
			id := number
			if r.IntN(4) == 0 {
				id = 1 + r.IntN(number)
			}
			docs = append(docs, fmt.Sprintf(`{"id":%d,"s":"v%d","n":[%d,-%d.5]}`, id, value(), value(), value()))
		}
		l.put("a", "", docs...)
		v := held(l.c.Get("a").View())
		for range 6 {
			candidates, less := make([]*roaring.Bitmap, len(v.Segments)), make([]*roaring.Bitmap, len(v.Segments))
			share, duplicates := r.IntN(5), r.IntN(3) == 0
			for i, live := range v.LiveRows() {
				candidates[i] = roaring.New()
				for it := live.Iterator(); it.HasNext(); {
					if row := it.Next(); share == 0 || r.IntN(5) < share {
						candidates[i].Add(row)
						if duplicates && r.IntN(4) == 0 {
							if less[i] == nil {
								less[i] = roaring.New()
							}
							less[i].Add(row)
						}
					}
				}
			}
			for _, name := range []string{"s", "n"} {
				id, _ := v.Fields.ID(name)
				field := facetField{id, name, min(settings.Count, settings.FacetOrder(r.IntN(3)))}
				got, err := distribution(context.Background(), v, []facetField{field}, &rank.Result{Candidates: candidates}, less, false)
				if err != nil {
					t.Fatal(err)
				}
				few := rows(candidates)-rows(less) <= fewCandidates
				want, _, _ := countEach(v.Segments, field, candidates, less, few)
				want = want[:min(len(want), 7)]
				have := []string{}
				for _, value := range got[0].values {
					have = append(have, fmt.Sprintf("%s %d", value.shown, value.count))
				}
				if !slices.Equal(have, want) {
					t.Fatalf("round %d, %s of %d segments, by %v:\ngot  %v\nwant %v", round, name, len(v.Segments), field.order, have, want)
				}
				if field.order == settings.Count {
					var sources []*facetSource
					for i, s := range v.Segments {
						if c := s.Column(id); !candidates[i].IsEmpty() {
							sources = append(sources, newFacetSource(&candidateCounts{view: v, found: &rank.Result{}}, id, &facetRows{Live: s, column: c, among: candidates[i], segment: i}, name == "s", false, 0, nil))
						}
					}
					if _, ok := topMost(v, id, sources, 7); ok {
						topped++
					}
				}
			}
		}
		v.Release()
	}
	if topped == 0 {
		t.Error("no field was nearly unique")
	}
}

// TestCommonValuesAreFound compares both ways to find the values that columns share.
func TestCommonValuesAreFound(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["s","n"]}`)
	r := rand.New(rand.NewPCG(5, 6))
	for i, size := range []int{400, 90, 1, 30} {
		var docs []string
		for k := range size {
			docs = append(docs, fmt.Sprintf(`{"id":"%d-%d","s":["v%d","w%d"],"n":[%d,0]}`, i, k, r.IntN(2000), r.IntN(2000), r.IntN(2000)-1000))
		}
		l.put("a", "", docs...)
	}
	v := held(l.c.Get("a").View())
	defer v.Release()
	for _, name := range []string{"s", "n"} {
		id, _ := v.Fields.ID(name)
		columns, total := columnsOf(v, id, name == "s"), 0
		for i := range columns {
			total += columns[i].size
		}
		want, looked, joined := make([][]uint32, len(columns)), make([][]uint32, len(columns)), make([][]uint32, len(columns))
		for i := range columns {
			for j := range columns {
				for a := range columns[i].size {
					for b := range columns[j].size {
						if i != j && columns[i].compare(a, &columns[j], b) == 0 {
							want[i] = append(want[i], uint32(a))
						}
					}
				}
				if j < i {
					eachCommon(&columns[i], &columns[j], func(a, b int) {
						looked[i], looked[j] = append(looked[i], uint32(a)), append(looked[j], uint32(b))
					})
				}
			}
		}
		joinColumns(columns, total, joined)
		for i := range columns {
			for _, list := range [][]uint32{want[i], looked[i]} {
				slices.Sort(list)
			}
			want[i], looked[i] = slices.Compact(want[i]), slices.Compact(looked[i])
			if !slices.Equal(looked[i], want[i]) || !slices.Equal(joined[i], want[i]) {
				t.Errorf("%s of segment %d of %d: looked up %v, joined %v, want %v", name, i, len(columns), looked[i], joined[i], want[i])
			}
		}
		if len(columns) < 3 || len(want[0]) == 0 {
			t.Errorf("%s: %d columns, %v are common", name, len(columns), want)
		}
	}
}

// BenchmarkUniqueFacet counts a facet of 200,000 documents with nearly unique values: for all documents, for a tenth of them, and without
// caches. Background merges decide the number of segments, so compare only runs with the same number.
func BenchmarkUniqueFacet(b *testing.B) {
	l := newLibrary(b)
	l.put("a", `{"filterableAttributes":["s","n","tenth"]}`)
	const documents, parts = 200_000, 10
	rng := rand.New(rand.NewPCG(1, 2))
	for part := range parts {
		var docs []string
		for i := range documents / parts {
			id := part*documents/parts + i
			n := rng.IntN(documents * 50)
			docs = append(docs, fmt.Sprintf(`{"id":%d,"s":"package-%d","n":%d,"tenth":%v}`, id, n, n, id%10 == 0))
		}
		l.put("a", "", docs...)
	}
	v := held(l.c.Get("a").View())
	defer v.Release()
	tenth := make([]*roaring.Bitmap, len(v.Segments))
	for i, rows := range v.LiveRows() {
		tenth[i] = roaring.New()
		for it := rows.Iterator(); it.HasNext(); {
			if row := it.Next(); row%10 == 0 {
				tenth[i].Add(row)
			}
		}
	}
	for _, name := range []string{"s", "n"} {
		id, _ := v.Fields.ID(name)
		for _, c := range []struct {
			name       string
			order      settings.FacetOrder
			candidates []*roaring.Bitmap
		}{{"count", settings.Count, v.LiveRows()}, {"count tenth", settings.Count, tenth}, {"alpha", settings.Alpha, v.LiveRows()}, {"alpha tenth", settings.Alpha, tenth}} {
			b.Run(name+" "+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := distribution(context.Background(), v, []facetField{{id, name, c.order}}, &rank.Result{Candidates: c.candidates}, nil, false); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(v.Segments)), "segments")
			})
		}
		columns := columnsOf(v, id, name == "s")
		b.Run(name+" first", func(b *testing.B) {
			owners := make([]uint64, len(columns))
			for i := range owners {
				owners[i] = uint64(i)
			}
			for b.Loop() {
				compareColumns(columns, make([]*repeats, len(columns)), owners)
			}
		})
	}
}
