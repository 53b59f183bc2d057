package ann

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// fartherRows and fartherClusters are the numbers of rows of clusteredGraph, and of their clusters.
const fartherRows, fartherClusters = 4000, 50

// clusteredGraph returns a graph of rows in narrow clusters, how far its walks go, and a function that draws the code of a query at about
// a distance from a row.
func clusteredGraph(t *testing.T) (g *Graph, codes Codes, reach Reach, draw func(away float64) []int8) {
	r := seeded(t)
	near := func(base []float32, away float64) []float32 {
		v := make([]float32, testDimensions)
		for i, x := range base {
			v[i] = x + float32(away*r.NormFloat64())
		}
		simd.Normalize(v)
		return v
	}
	centres := make([][]float32, fartherClusters)
	for i := range centres {
		centres[i] = near(make([]float32, testDimensions), 1)
	}
	var vectors []float32
	for i := range fartherRows {
		vectors = append(vectors, near(centres[i%fartherClusters], 0.02)...)
	}
	q := NewQuantizer(testDimensions, vectors)
	codes = encode(q, vectors)
	g, err := Build(context.Background(), codes, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g, codes, Reach{Pool: 200, Wanted: 10, Patience: 20, Perfect: int64(q.Scale * q.Scale)}, func(away float64) []int8 {
		row := r.IntN(fartherRows)
		return q.AppendCode(nil, near(vectors[row*testDimensions:][:testDimensions], away))
	}
}

// TestWalksForFarQueriesGoFarther checks that most walks for queries far from narrow clusters go farther and find more, and that most
// walks for queries near rows do not.
func TestWalksForFarQueriesGoFarther(t *testing.T) {
	const queries = 100
	g, codes, reach, draw := clusteredGraph(t)
	search := func(away float64) (farther int, once, whole float64) {
		for range queries {
			code := draw(away)
			w := walkers.Get().(*walker)
			w.descend(g, codes, code, fartherRows, g.entry, len(g.upper), 0)
			w.seek(g, code, reach, forecast{})
			if w.farther(g, reach, 1) > 1 {
				farther++
			}
			once += recall(appendPool(nil, w.pool), codes, code, 10, nil) / queries
			w.end()
			whole += recall(g.Search(nil, code, reach, nil, Signs{}, 0), codes, code, 10, nil) / queries
		}
		return farther, once, whole
	}
	if farther, once, whole := search(0.005); farther > queries/4 || whole < 0.95 {
		t.Errorf("near rows, %d of %d walks go farther, recall %.3f, %.3f before", farther, queries, whole, once)
	}
	if farther, once, whole := search(0.3); farther < queries/2 || whole < 0.9 || whole <= once {
		t.Errorf("far from all rows, %d of %d walks go farther, recall %.3f, %.3f before", farther, queries, whole, once)
	} else {
		t.Logf("far from all rows, recall %.3f, and %.3f before", whole, once)
	}
}

// TestDoubtsEndWalksForFarQueries checks that walks with doubts give up early for most queries far from all rows, and for few of those near
// rows. A walk that does not give up must find what it finds without doubts.
func TestDoubtsEndWalksForFarQueries(t *testing.T) {
	const queries = 100
	g, codes, reach, draw := clusteredGraph(t)
	r := seeded(t)
	search := func(away float64) (gaveUp, needless int) {
		allowed := roaring.New()
		for row := range uint32(fartherRows) {
			if r.IntN(4) > 0 {
				allowed.Add(row)
			}
		}
		for range queries {
			code := draw(away)
			walk := func(doubts bool) (found []Neighbour, far, ok bool) {
				w := walkers.Get().(*walker)
				defer w.end()
				w.descend(g, codes, code, fartherRows, g.entry, len(g.upper), 0)
				ok = w.seekAllowed(g, code, reach, forecast{}, restriction{allowed: allowed, rarity: 4. / 3, rarest: math.Inf(1), budget: math.MaxInt,
					longer: signsLonger, doubts: doubts})
				return appendPool(nil, w.pool), w.farther(g, reach, 1) > 1, ok
			}
			want, far, ok := walk(false)
			if !ok {
				t.Fatal("a walk without doubts gave up")
			}
			switch found, _, ok := walk(true); {
			case !ok && !far:
				needless++
				fallthrough
			case !ok:
				gaveUp++
			case !slices.Equal(found, want):
				t.Fatalf("with doubts a walk found %v, without them %v", found, want)
			}
		}
		return gaveUp, needless
	}
	if gaveUp, needless := search(0.005); needless > queries/10 {
		t.Errorf("near rows, %d of %d walks gave up, %d of them needlessly", gaveUp, queries, needless)
	}
	if gaveUp, needless := search(0.3); gaveUp < queries/2 || needless > queries/10 {
		t.Errorf("far from all rows, %d of %d walks gave up, %d of them needlessly", gaveUp, queries, needless)
	} else {
		t.Logf("far from all rows, %d of %d walks gave up", gaveUp, queries)
	}
}
