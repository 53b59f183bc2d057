package segment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
)

// sparseDocs makes documents with sparse vectors like word counts: most of the few nonzero components are among the first.
func sparseDocs(rng *rand.Rand, e EmbedderShape, n, components int) []*doc {
	docs := make([]*doc, n)
	for i := range docs {
		vector := make([]float32, e.Dimensions)
		for range components {
			vector[int(float64(e.Dimensions)*math.Pow(rng.Float64(), 2))] += float32(rng.ExpFloat64())
		}
		docs[i] = &doc{id: DocID(i), externalID: fmt.Sprintf("d%d", i), raw: "{}", vectors: map[EmbedderID]DocVectors{e.ID: {Vectors: vector}}}
	}
	return docs
}

// TestSparseVectorsHaveNoSigns checks that builds and merges write no signs for sparse vectors, for which signs are inaccurate, and that
// searches compare codes.
func TestSparseVectorsHaveNoSigns(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	rng, mem := testRand(t), vfs.NewMem()
	shape := EmbedderShape{ID: 7, Dimensions: 768}
	docs := sparseDocs(rng, shape, 2000, 8)
	base := segmentOfVectors(t, mem, "a.seg", docs, shape)
	for name, deleted := range map[string]*roaring.Bitmap{"copied": nil, "merged": roaring.BitmapOf(1, 17)} {
		if _, err := Merge(context.Background(), mem, name, []Live{{Reader: base, Deleted: deleted}}, MergeOptions{}); err != nil {
			t.Fatal(err)
		}
		if v := openSegment(t, mem, name).Vectors(shape.ID); v.signs.Words != nil || !v.Linked() {
			t.Errorf("%s: %d words of signs, linked: %v", name, len(v.signs.Words), v.Linked())
		}
	}
	if err := base.Verify(); err != nil {
		t.Error(err)
	}
	v := base.Vectors(shape.ID)
	if v.signs.Words != nil {
		t.Error("signs are written")
	}
	const k = 10
	for _, cold := range []bool{false, true} {
		if cold {
			asIfCold(base)
		}
		var missed []int
		for range 30 {
			q, allowed := sparseDocs(rng, shape, 1, 8)[0].vectors[shape.ID].Vectors, roaring.New()
			for row := range uint32(len(docs)) {
				if rng.IntN(2) > 0 {
					allowed.Add(row)
				}
			}
			missed = append(missed, checkFound(t, v.Search(nil, q, k, allowed), twinSearch(docs, shape, q, allowed), k))
		}
		if recall := recallOf(missed, k); recall < 0.95 {
			t.Errorf("cold %v: recall %.3f", cold, recall)
		}
	}
}
