package ann

import (
	"math"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestWalkAdaptsToTheRarityOfAllowedRows checks that a walk finds the allowed rows if the filter leaves the half of the rows that is
// nearer to the query. If it leaves the other half, the walk must give up, or be patient enough to find them.
func TestWalkAdaptsToTheRarityOfAllowedRows(t *testing.T) {
	const rows, queries = 6000, 20
	r := seeded(t)
	g, q, codes := testGraph(t, r, rows, 1)
	reach := Reach{Pool: 100, Wanted: 10, Patience: 40, Perfect: 1 << 30}
	gaveUp, near, far := 0, 0.0, 0.0
	for range queries {
		code := q.AppendCode(nil, clustered(r, 1, testDimensions))
		order := Scan(nil, codes, code, rows, nil)
		halves := [2]*roaring.Bitmap{roaring.New(), roaring.New()}
		for i, n := range order {
			halves[2*i/rows].Add(n.Row)
		}
		walk := func(half int, rarest float64) ([]Neighbour, bool) {
			w := walkers.Get().(*walker)
			defer w.end()
			w.descend(g, codes, code, rows, g.entry, len(g.upper), 0)
			ok := w.seekAllowed(g, code, reach, forecast{}, restriction{allowed: halves[half], rarity: 2, rarest: rarest, budget: math.MaxInt, longer: signsLonger})
			return appendPool(nil, w.pool), ok
		}
		found, ok := walk(0, 3)
		if !ok {
			t.Error("a walk among the nearer half gave up")
		}
		near += recall(found, codes, code, 10, halves[0]) / queries
		if _, ok := walk(1, 3); !ok {
			gaveUp++
		}
		if found, ok = walk(1, math.Inf(1)); !ok {
			t.Error("a walk gave up within its budget")
		}
		far += recall(found, codes, code, 10, halves[1]) / queries
	}
	if near < 0.9 || far < 0.6 || gaveUp < queries*3/4 {
		t.Errorf("recall %.2f of the nearer half, %.2f of the other one, where %d of %d walks gave up", near, far, gaveUp, queries)
	}
}
