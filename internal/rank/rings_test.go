package rank

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/segment"
)

// places makes clustered documents, so that many have equal distances, and some without a location.
func places(rng *rand.Rand, n int) [][]*document {
	parts := make([][]*document, 3)
	centers := make([]point, 1+rng.IntN(6))
	for i := range centers {
		centers[i] = point{rng.Float64()*180 - 90, rng.Float64()*360 - 180}
	}
	spread := math.Pow(10, -rng.Float64()*6) * 90
	for id := range n {
		d := doc(id, "t", "a", "k", rng.IntN(3))
		if rng.IntN(10) > 0 {
			c := centers[rng.IntN(len(centers))]
			at := point{c.lat + rng.NormFloat64()*spread, c.lng + rng.NormFloat64()*spread}
			if rng.IntN(4) == 0 {
				at = c
			}
			d.at = &point{min(max(at.lat, -90), 90), min(max(at.lng, -180), 180)}
		}
		p := rng.IntN(len(parts))
		parts[p] = append(parts[p], d)
	}
	return parts
}

// TestRingsSortByDistance compares the ring search with sorting all documents.
func TestRingsSortByDistance(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ran := taken{}
	for range 30 {
		parts := places(rng, 2000+rng.IntN(3000))
		gone := map[segment.DocID]bool{}
		for range rng.IntN(300) {
			gone[segment.DocID(rng.IntN(2000))] = true
		}
		ix := build(t, parseSettings(t, `{"sortableAttributes":["_geo","k"]}`), parts, gone)
		var live []*document
		for _, p := range parts {
			for _, d := range p {
				if !gone[d.id] {
					live = append(live, d)
				}
			}
		}
		for range 6 {
			from := point{rng.Float64()*180 - 90, rng.Float64()*360 - 180}
			if d := live[rng.IntN(len(live))]; d.at != nil && rng.IntN(2) == 0 {
				from = *d.at
			}
			key := SortKey{Geo: true, Lat: from.lat, Lng: from.lng, Desc: rng.IntN(2) == 0}
			r := Request{Sort: []SortKey{key, {Field: "k"}}, Offset: rng.IntN(30), Limit: 1 + rng.IntN(60), MaxTotal: 1 << 20}
			if rng.IntN(8) == 0 {
				r.Offset = len(live) - 20
			}
			var want []string
			for _, d := range byDistance(live, from, key.Desc) {
				want = append(want, fmt.Sprint(d.id))
			}
			want = want[min(r.Offset, len(want)):]
			want = want[:min(r.Limit, len(want))]
			got, err := ran.search(ix, &r)
			if err != nil {
				t.Fatal(err)
			}
			if got := found(got); got != strings.Join(want, " ") {
				t.Fatalf("%d documents from %v, %+v:\n got %s\nwant %s", len(live), from, r, got, strings.Join(want, " "))
			}
		}
	}
	ran.wants(t, ringSearch, rowByRow)
}

// byDistance sorts by groups of distance, then k, then id, like ranking if at least geoBucketSize documents have a location.
func byDistance(docs []*document, from point, desc bool) []*document {
	sign := 1
	if desc {
		sign = -1
	}
	far := func(d *document) float64 { return Distance(from.lat, from.lng, d.at.lat, d.at.lng) }
	var placed, out []*document
	var nowhere []*document
	for _, d := range docs {
		if d.at != nil {
			placed = append(placed, d)
		} else {
			nowhere = append(nowhere, d)
		}
	}
	slices.SortFunc(placed, func(a, b *document) int {
		return sign * cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(a.id, b.id))
	})
	group := func(g []*document) {
		slices.SortFunc(g, func(a, b *document) int {
			return cmp.Or(cmp.Compare(a.values["k"][0].(float64), b.values["k"][0].(float64)), cmp.Compare(a.id, b.id))
		})
		out = append(out, g...)
	}
	for len(placed) > 0 {
		n := 0
		for n < len(placed) && n < geoBucketSize && math.Abs(far(placed[n])-far(placed[0])) <= geoMargin {
			n++
		}
		group(placed[:n])
		placed = placed[n:]
	}
	group(nowhere)
	return out
}

// BenchmarkSortByDistance sorts all documents by distance for a page of 20.
func BenchmarkSortByDistance(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var docs []*document
	for id := range 50000 {
		docs = append(docs, doc(id, "t", "a", "_geo", point{rng.Float64()*180 - 90, rng.Float64()*360 - 180}))
	}
	ix := build(b, parseSettings(b, `{"sortableAttributes":["_geo"]}`), [][]*document{docs}, nil)
	for b.Loop() {
		mustSearch(b, ix, Request{Sort: []SortKey{{Geo: true, Lat: rng.Float64()*180 - 90, Lng: rng.Float64()*360 - 180}}})
	}
}
