package rank

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/resultcache"
)

// TestValueQueueAgainstCosts takes documents from a queue until it is empty. They must come in the order of the costs of a list, all
// documents with a value at once, and several values together if they may.
func TestValueQueueAgainstCosts(t *testing.T) {
	defer func(n int) { shortRange = n }(shortRange)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	divided, uneven, merged := 0, 0, 0
	for round := range 200 {
		shortRange = 9 + rng.IntN(30)
		parts := make([][]*document, 1+rng.IntN(4))
		wide, rising := []int{2, 20, 1000}[rng.IntN(3)], rng.IntN(3) == 0
		for id := range 1 + rng.IntN(600) {
			d := doc(id)
			for range []int{0, 1, 1, 1, 3}[rng.IntN(5)] {
				v := float64(rng.IntN(wide))
				if rising {
					v = float64(id * wide / 1000)
				}
				if rng.IntN(4) > 0 {
					d.values["price"] = append(d.values["price"], v)
				} else {
					d.values["price"] = append(d.values["price"], strings.Repeat("a", rng.IntN(2))+strconv.Itoa(int(v)))
				}
			}
			at := rng.IntN(len(parts))
			parts[at] = append(parts[at], d)
		}
		ix := build(t, parseSettings(t, `{"sortableAttributes":["price"]}`), parts, nil)
		columns := columnsOf(ix, "price")
		in := make(rows, len(ix.Segments))
		var all []entry
		for seg := range ix.Segments {
			for row := range ix.Segments[seg].Rows() {
				if rng.IntN(4) > 0 {
					if in[seg] == nil {
						in[seg] = roaring.New()
					}
					in[seg].Add(uint32(row))
					all = append(all, entry{segment: uint16(seg), row: uint32(row)})
				}
			}
		}
		for _, desc := range []bool{false, true} {
			s := &scratch{memory: new(memory)}
			costs := make([]uint32, len(all))
			values := sortCosts(s, all, columns, desc, costs)
			ofCost := func(cost int) rows {
				r := make(rows, len(in))
				for i, e := range all {
					if costs[i] == uint32(cost) {
						if r[e.segment] == nil {
							r[e.segment] = roaring.New()
						}
						r[e.segment].Add(e.row)
					}
				}
				return r
			}
			q := newValueQueue(s, in, columns, desc)
			for i := range q.parts {
				if divided += len(q.parts[i].bounds); rng.IntN(10) == 0 {
					q.parts[i].spare = 0
				}
			}
			for cost := 0; cost < len(values); cost++ {
				pass := rng.IntN(2) * rng.IntN(40)
				want, n := ofCost(cost), 0
				for n = want.count(); n < pass && cost+1 < len(values); cost++ {
					more := ofCost(cost + 1)
					if n += more.count(); n > pass {
						break
					}
					want = want.or(more)
					merged++
				}
				for i := range q.parts {
					if q.parts[i].spare == 0 {
						uneven++
					}
				}
				value, got := q.next(pass)
				if value.Compare(&values[cost], desc) != 0 || !got.andNot(want).isEmpty() || !want.andNot(got).isEmpty() {
					t.Fatalf("round %d, descending %t: part %d is %v with value %v, want %v with %v", round, desc, cost, got, value, want, values[cost])
				}
			}
			if _, got := q.next(rng.IntN(2)); got != nil {
				t.Fatalf("round %d, descending %t: %v after the last document", round, desc, got)
			}
		}
	}
	if divided == 0 || uneven == 0 || merged == 0 {
		t.Errorf("%d divisions, %d parts sorted without, %d values together with earlier ones", divided, uneven, merged)
	}
}

// TestDivide divides keys in random, ascending and descending order.
func TestDivide(t *testing.T) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for round := range 1000 {
		keys := make([]sortKey, 9+rng.IntN(200))
		for i := range keys {
			keys[i] = newSortKey(OfNumber, uint32(rng.IntN(1+rng.IntN(100))), i, false)
		}
		switch round % 3 {
		case 1:
			slices.Sort(keys)
		case 2:
			slices.Sort(keys)
			slices.Reverse(keys)
		}
		sorted := slices.Sorted(slices.Values(keys))
		n := divide(keys)
		if n < 1 || n >= len(keys) || slices.Max(keys[:n]) > slices.Min(keys[n:]) {
			t.Fatalf("%d of %v are low", n, keys)
		}
		if slices.Sort(keys); !slices.Equal(keys, sorted) {
			t.Fatalf("keys were lost: %v, want %v", keys, sorted)
		}
	}
}

// TestSortedPagesOfWords searches words and sorts, for first and for later pages. They must be those of a search that ranks a list.
func TestSortedPagesOfWords(t *testing.T) {
	defer func(l, r int) { listRows, shortRange = l, r }(listRows, shortRange)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ran, lists, later := taken{}, taken{}, 0
	paths := []accessPath{lookUpValues, walkValues}
	for round := 0; round < 30 || round < 600 && ran.lacks(paths...); round++ {
		wide := []int{3, 40, 4000}[rng.IntN(3)]
		parts := make([][]*document, 1+rng.IntN(3))
		for id := range 300 + rng.IntN(300) {
			d := doc(id, "title", []string{"fox", "the fox", "the red fox", "fax the", "fox red"}[rng.IntN(5)])
			if rng.IntN(8) > 0 {
				d.values["price"] = append(d.values["price"], float64(rng.IntN(wide)))
			}
			at := rng.IntN(len(parts))
			parts[at] = append(parts[at], d)
		}
		rules := []string{`null`, `["words","typo","sort","exactness"]`, `["sort","words","attributeRank"]`}[rng.IntN(3)]
		ix := build(t, parseSettings(t, `{"sortableAttributes":["price"],"rankingRules":`+rules+`}`), parts, nil)
		for range 8 {
			r := &Request{Query: []string{"fox ", "the fox", "fo", "red the "}[rng.IntN(4)], Limit: 1 + rng.IntN(20), Offset: rng.IntN(2) * rng.IntN(100), MaxTotal: 1000,
				Sort: []SortKey{{Field: "price", Desc: rng.IntN(2) == 0}}}
			listRows = 1 << 20
			want, err := lists.search(ix, r)
			if err != nil {
				t.Fatal(err)
			}
			listRows, shortRange = rng.IntN(10), 9+rng.IntN(30)
			ix.Cache = query.NewCache(resultcache.New(64 << 20))
			got, err := ran.search(ix, r)
			if err != nil {
				t.Fatal(err)
			}
			if r.Offset > 0 {
				later += len(got.Hits)
			}
			if !slices.EqualFunc(got.Hits, want.Hits, func(a, b Hit) bool { return a.ID == b.ID }) {
				t.Fatalf("%q, %v from %d, rules %s: %s, want %s", r.Query, r.Sort, r.Offset, rules, found(got), found(want))
			}
		}
	}
	ran.wants(t, paths...)
	lists.wants(t, rowByRow)
	if later == 0 {
		t.Error("no later page has hits")
	}
}
