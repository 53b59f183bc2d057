package rank

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// TestSortOfARangeAgainstOracle sorts documents by the field of their filter: those with the first or last values are excluded, and some
// have several values on both sides of the bound.
func TestSortOfARangeAgainstOracle(t *testing.T) {
	defer func(l, i int) { listRows, idleSteps = l, i }(listRows, idleSteps)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	passed, ran := 0, taken{}
	for round := range 80 {
		wide := []int{3, 40, 400}[rng.IntN(3)]
		parts := make([][]*document, 1+rng.IntN(4))
		deleted := map[segment.DocID]bool{}
		low, high := rng.IntN(wide), wide-rng.IntN(wide)/2
		var among []*document
		n := 100 + rng.IntN(300)
		for id := range n {
			d, in := doc(id), false
			for range []int{1, 1, 1, 0, 1 + rng.IntN(3)}[rng.IntN(5)] {
				v := rng.IntN(wide)
				in = in || low <= v && v <= high
				if rng.IntN(4) == 0 {
					d.values["price"] = append(d.values["price"], "a"+strconv.Itoa(v))
				} else {
					d.values["price"] = append(d.values["price"], float64(v))
				}
			}
			at := rng.IntN(len(parts))
			parts[at] = append(parts[at], d)
			if rng.IntN(6) == 0 {
				deleted[d.id] = true
			} else if in {
				among = append(among, d)
			}
		}
		ix := build(t, parseSettings(t, `{"sortableAttributes":["price"]}`), parts, deleted)
		o := newOracle(ix, among)
		allowed := make([]*roaring.Bitmap, len(ix.Segments))
		for i, s := range ix.Segments {
			allowed[i] = roaring.New()
			for it := s.LiveRows().Iterator(); it.HasNext(); {
				row := it.Next()
				if slices.ContainsFunc(among, func(d *document) bool { return d.id == s.DocID(segment.Row(row)) }) {
					allowed[i].Add(row)
				}
			}
		}
		for range 10 {
			listRows, idleSteps = rng.IntN(3), 1+rng.IntN(4)
			r := &Request{Limit: 1 + rng.IntN(10), Offset: rng.IntN(2) * rng.IntN(10), MaxTotal: 1000, Universe: allowed,
				Sort: []SortKey{{Field: "price", Desc: rng.IntN(2) == 0}}}
			got, err := ran.search(ix, r)
			if err != nil {
				t.Fatal(err)
			}
			hits, _ := o.rank(r)
			passed += len(hits)
			if !slices.EqualFunc(got.Hits, hits, func(a, b Hit) bool { return a.ID == b.ID }) {
				t.Fatalf("round %d: %d documents in %d segments, %d among them from %d to %d, %+v:\n%s, want %s",
					round, n, len(parts), len(among), low, high, r.Sort, found(got), found(&Result{Hits: hits}))
			}
		}
	}
	ran.wants(t, walkValues, lookUpValues, rowByRow)
	if passed == 0 {
		t.Error("no document was found")
	}
}

// TestSortCostsAgainstValues numbers rows of several segments by their values. Rows may have several values or none.
func TestSortCostsAgainstValues(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 60 {
		parts := make([][]*document, 1+rng.IntN(4))
		wide := []int{2, 20, 1000}[rng.IntN(3)]
		kinds := 1 + rng.IntN(4)
		for id := range 1 + rng.IntN(200) {
			d := doc(id)
			for range []int{0, 1, 1, 1, 3}[rng.IntN(5)] {
				v := rng.IntN(wide)
				switch rng.IntN(kinds) {
				case 0:
					d.values["price"] = append(d.values["price"], float64(v)-float64(wide/2))
				case 1:
					d.values["price"] = append(d.values["price"], "a"+strconv.Itoa(v))
				case 2:
					d.values["price"] = append(d.values["price"], "")
				case 3:
					d.values["price"] = append(d.values["price"], float64(v)*1e300)
				}
			}
			at := rng.IntN(len(parts))
			parts[at] = append(parts[at], d)
		}
		ix := build(t, parseSettings(t, `{"sortableAttributes":["price"]}`), parts, nil)
		field := "price"
		if rng.IntN(20) == 0 {
			field = "absent"
		}
		columns := columnsOf(ix, field)
		var all []entry
		for seg := range ix.Segments {
			for row := range ix.Segments[seg].Rows() {
				if rng.IntN(4) > 0 {
					all = append(all, entry{segment: uint16(seg), row: uint32(row)})
				}
			}
		}
		for _, desc := range []bool{false, true} {
			s := &scratch{memory: new(memory)}
			costs, want := make([]uint32, len(all)), make([]uint32, len(all))
			values := sortCosts(s, all, columns, desc, costs)
			m := new(sorting)
			for _, e := range all {
				m.values = append(m.values, FirstValue(columns[e.segment], e.row, desc, new([]uint32)))
			}
			wantValues := m.number(desc, want)
			if !slices.Equal(costs, want) || !slices.EqualFunc(values, wantValues, func(a, b SortValue) bool { return a.Compare(&b, desc) == 0 }) {
				t.Fatalf("round %d, descending %t, %d rows of %d segments:\n%d %v, want\n%d %v", round, desc, len(all), len(ix.Segments), costs, values, want, wantValues)
			}
		}
	}
}
