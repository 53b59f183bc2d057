package segment

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
)

// TestSearchesByGatheredSigns checks that searches by gathered signs have a high recall, also after deletions, and do not read the
// signs in the file.
func TestSearchesByGatheredSigns(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	for _, dimensions := range []int{128, 256} {
		shape, rng := EmbedderShape{ID: 7, Dimensions: dimensions}, testRand(t)
		docs := clusteredDocs(rng, shape, 5, 20_000, 1)
		v := segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, shape).Vectors(shape.ID)
		if !v.comparesSigns() {
			t.Skip("without a kernel, codes are compared")
		}
		all := roaring.New()
		for row := range uint32(len(docs)) {
			if rng.IntN(4) == 0 {
				all.Add(row)
			}
		}
		signs := v.GatherSigns(all)
		if n := 4 * int(all.GetCardinality()) * (1 + dimensions/32); signs == nil || signs.Bytes() < n || signs.Bytes() > 2*n {
			t.Fatalf("%d dimensions: %d bytes are gathered, want %d", dimensions, signs.Bytes(), n)
		}
		live := all.Clone()
		for it := all.Iterator(); it.HasNext(); {
			if row := it.Next(); rng.IntN(20) == 0 {
				live.Remove(row)
			}
		}
		read := false
		v.signs.Touch = func([]uint64) { read = true }
		v.signs.TouchRows = func([]uint32) { read = true }
		for name, allowed := range map[string]*roaring.Bitmap{"all": all, "live": live} {
			const k, queries = 10, 30
			missed := 0
			for range queries {
				q := clusteredDocs(rng, shape, 0, 1, 1)[0].vectors[shape.ID].Vectors
				missed += checkFound(t, v.SearchGathered(nil, q, k, allowed, signs), twinSearch(docs, shape, q, allowed), k)
			}
			if recall := 1 - float64(missed)/(k*queries); recall < 0.97 {
				t.Errorf("%d dimensions, %s: recall %.3f", dimensions, name, recall)
			}
		}
		if read {
			t.Errorf("%d dimensions: signs of the file are read", dimensions)
		}
		half := roaring.New()
		half.AddRange(0, uint64(len(docs)/2+1))
		for name, rows := range map[string]*roaring.Bitmap{"none": roaring.New(), "few": roaring.BitmapOf(1, 2, 3), "most": half} {
			if v.GatherSigns(rows) != nil {
				t.Errorf("signs of %s rows are gathered", name)
			}
		}
	}
}
