package rank

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/settings"
	"svc/segment"
)

// TestCountedAgainstWholeLists ranks some documents, and counts others. The hits are those of a search for all that are among the some,
// with the same scores and details. Some documents are less than a metre apart.
func TestCountedAgainstWholeLists(t *testing.T) {
	defer func(c, l, s, u, r, h int) {
		classRows, listRows, stopRows, unorderedRows, retryRows, retryHits = c, l, s, u, r, h
	}(classRows, listRows, stopRows, unorderedRows, retryRows, retryHits)
	ran, counted, scores, places := taken{}, 0, 0, 0 // scores: searches whose scores would differ otherwise; places: whose order would
	for n := range 150 {
		m := &maker{Rand: rand.New(rand.NewPCG(7, uint64(n)))}
		m.vocabulary()
		classRows, listRows, stopRows, unorderedRows = []int{48, m.IntN(3)}[n%2], []int{512, m.IntN(3)}[n%2], 1+m.IntN(30), m.IntN(3)
		retryRows, retryHits = m.IntN(5), 1+m.IntN(4)
		s := parseSettings(t, m.settings())
		parts, deleted := make([][]*document, 1+m.IntN(3)), map[segment.DocID]bool{}
		var live []*document
		for _, d := range m.documents(20 + m.IntN(60)) {
			if d.at = nil; m.chance(80) {
				d.at = &point{0, float64(m.IntN(20)) * 0.6 / metresOfDegree}
			}
			at := m.IntN(len(parts))
			parts[at] = append(parts[at], d)
			if m.chance(20) {
				deleted[d.id] = true
			} else {
				live = append(live, d)
			}
		}
		ix := build(t, s, parts, deleted)
		o := newOracle(ix, live)
		sorts := slices.ContainsFunc(s.RankingRules, func(r settings.RankingRule) bool { return r.Kind == settings.Sort })
		for range 25 {
			r := m.request(sorts)
			if r.SearchOn, r.Exhaustive, r.MaxTotal = nil, false, 1000; sorts && m.chance(40) {
				r.Sort = append([]SortKey{{Geo: true, Desc: m.chance(50)}}, r.Sort...)
			}
			r.Scoring, r.Universe = m.scoring(t, ix), make([]*roaring.Bitmap, len(ix.Segments))
			share := 1 + m.IntN(99)
			for seg, all := range universe(ix) {
				some := roaring.New()
				for it := all.Iterator(); it.HasNext(); {
					if row := it.Next(); m.chance(share) {
						some.Add(row)
					}
				}
				r.Universe[seg] = some
			}
			whole := *r
			whole.Universe, whole.Distinct, whole.Offset, whole.Limit = nil, "", 0, 1000
			list := mustSearch(t, ix, whole).Hits
			var want []Hit
			seen := map[any]bool{}
			for o.r = r; len(list) > 0; list = list[1:] {
				h := list[0]
				if r.Universe[h.Segment].Contains(uint32(h.Row)) && (r.Distinct == "" || o.first(o.byID(h.ID), seen)) {
					want = append(want, h)
				}
			}
			want = want[min(r.Offset, len(want)):]
			want = want[:min(r.Limit, len(want))]
			equal := func(got []Hit) bool {
				return slices.EqualFunc(got, want, func(a, b Hit) bool { return a.ID == b.ID && a.Score == b.Score && bytes.Equal(a.Details, b.Details) })
			}
			ask := *r
			ask.Counted, ask.Plan = &Allowed{}, new(Plan)
			got, err := Search(context.Background(), ix, &ask)
			if err != nil {
				t.Fatal(err)
			}
			alone, err := Search(context.Background(), ix, r)
			if err != nil {
				t.Fatal(err)
			}
			if !equal(got.Hits) {
				t.Fatalf("index %d, query %q strategy %d sort %v limit %d offset %d distinct %q threshold %v scores %t rules %v:\n%s, want\n%s", n, r.Query, r.Strategy, r.Sort, r.Limit, r.Offset,
					r.Distinct, show(r.Threshold), r.Scores, s.RankingRules, scoresOf(got.Hits), scoresOf(want))
			}
			if r.Threshold == nil && r.Distinct == "" && got.Total != alone.Total {
				t.Fatalf("index %d, query %q: total %d, want %d", n, r.Query, got.Total, alone.Total)
			}
			if ran.add(ask.Plan); !slices.ContainsFunc(ask.Plan.Steps, func(s Step) bool { return s.Path == string(countOthers) }) {
				continue
			}
			counted++
			switch sameIDs := slices.EqualFunc(alone.Hits, want, func(a, b Hit) bool { return a.ID == b.ID }); {
			case !sameIDs:
				places++
			case !equal(alone.Hits):
				scores++
			}
		}
	}
	ran.wants(t, countOthers)
	if counted < 300 || scores < 20 || places < 20 {
		t.Errorf("%d searches counted other documents; %d would have other scores without, and %d another order", counted, scores, places)
	}
}

// scoresOf shows hits with their scores and details.
func scoresOf(hits []Hit) string {
	var b bytes.Buffer
	for _, h := range hits {
		fmt.Fprintf(&b, " %d:%v %s\n", h.ID, h.Score, h.Details)
	}
	return b.String()
}
