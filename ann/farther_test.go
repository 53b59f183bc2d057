package ann

import (
	"context"
	"testing"

	"svc/simd"
)

// TestWalksForFarQueriesGoFarther checks that most walks for queries far from narrow clusters go farther and find more, and that most
// walks for queries near rows do not.
func TestWalksForFarQueriesGoFarther(t *testing.T) {
	const rows, clusters, queries = 4000, 50, 100
	r := seeded(t)
	near := func(base []float32, away float64) []float32 {
		v := make([]float32, testDimensions)
		for i, x := range base {
			v[i] = x + float32(away*r.NormFloat64())
		}
		simd.Normalize(v)
		return v
	}
	centres := make([][]float32, clusters)
	for i := range centres {
		centres[i] = near(make([]float32, testDimensions), 1)
	}
	var vectors []float32
	for i := range rows {
		vectors = append(vectors, near(centres[i%clusters], 0.02)...)
	}
	q := NewQuantizer(testDimensions, vectors)
	codes := encode(q, vectors)
	g, err := Build(context.Background(), codes, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reach := Reach{Pool: 200, Wanted: 10, Patience: 20, Perfect: int64(q.Scale * q.Scale)}
	search := func(away float64) (farther int, once, whole float64) {
		for range queries {
			row := r.IntN(rows)
			code := q.AppendCode(nil, near(vectors[row*testDimensions:][:testDimensions], away))
			w := walkers.Get().(*walker)
			w.descend(g, codes, code, rows, g.entry, len(g.upper), 0)
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
