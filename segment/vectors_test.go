package segment

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// testEmbedders are the embedders of random documents: one scanned in full precision, one binary, one with codes, and of half precision
// one of odd length and one with codes.
var testEmbedders = []EmbedderShape{{ID: 3, Dimensions: 3}, {ID: 1, Dimensions: 70, Binary: true}, {ID: 900, Dimensions: 40},
	{ID: 12, Dimensions: 5, Half: true}, {ID: 13, Dimensions: 33, Half: true}}

// lowerThresholds lowers the numbers of vectors from which a segment has codes and a graph, and those from which searches use them, until
// restore is called.
func lowerThresholds(newCodes, newGraph int) (restore func()) {
	codes, graph, bits, direct, rows := codeVectors, graphVectors, graphBitVectors, directVectors, NeighbourRows
	inSegments := NeighbourSegmentRows
	slots, bytes, block := infixSlots, MinInfixBytes, InfixBlockBytes
	infixSlots, MinInfixBytes, InfixBlockBytes = 32, 1, 16
	codeVectors, graphVectors, graphBitVectors, directVectors = newCodes, newGraph, newGraph, 64
	NeighbourRows, NeighbourSegmentRows = 2, 0
	return func() {
		codeVectors, graphVectors, graphBitVectors, directVectors = codes, graph, bits, direct
		NeighbourRows, NeighbourSegmentRows = rows, inSegments
		infixSlots, MinInfixBytes, InfixBlockBytes = slots, bytes, block
	}
}

// randomVector returns a random vector, sometimes an extreme one.
func randomVector(rng *rand.Rand, dimensions int) []float32 {
	v := make([]float32, dimensions)
	scale := 1.0
	switch rng.IntN(40) {
	case 0:
		return v
	case 1:
		v[rng.IntN(dimensions)] = float32(rng.NormFloat64())
		return v
	case 2:
		scale = 1e-6
	case 3:
		scale = 1e30 // the squares overflow float32
	}
	for i := range v {
		v[i] = float32(rng.NormFloat64() * scale)
	}
	return v
}

func randomVectors(rng *rand.Rand, embedders []EmbedderShape) map[EmbedderID]DocVectors {
	all := map[EmbedderID]DocVectors{}
	for i, e := range embedders {
		if i > 0 && rng.IntN(5) == 0 {
			continue
		}
		v := DocVectors{Regenerate: rng.IntN(2) == 0, Given: rng.IntN(3) == 0}
		n := 1
		if i > 1 || rng.IntN(10) == 0 {
			n = rng.IntN(4)
		}
		for range n {
			v.Vectors = append(v.Vectors, randomVector(rng, e.Dimensions)...)
		}
		if rng.IntN(4) == 0 {
			for range n {
				v.Fragments = append(v.Fragments, uint16(rng.IntN(3))*((MaxFragments-1)/2))
			}
		}
		all[e.ID] = v
	}
	return all
}

// keptOf returns a vector as an embedder stores it.
func keptOf(e EmbedderShape, v []float32) []float32 {
	if e.Half {
		h, kept := make([]uint16, len(v)), make([]float32, len(v))
		simd.Halve(h, v)
		simd.Widen(kept, h)
		return kept
	}
	if !e.Binary {
		return slices.Clone(v)
	}
	bits := make([]float32, len(v))
	for i, x := range v {
		if x > 0 {
			bits[i] = 1
		}
	}
	return bits
}

// twinSimilarity is the reference similarity of two vectors.
func twinSimilarity(e EmbedderShape, a, b []float32) float64 {
	if e.Binary {
		differ := 0
		for i := range a {
			if (a[i] > 0) != (b[i] > 0) {
				differ++
			}
		}
		return 1 - float64(differ)/float64((e.Dimensions+63)/64*64)
	}
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	if math.Sqrt(aa)*math.Sqrt(bb) <= 1.0/(1<<23) {
		return 1
	}
	return (1 + dot/math.Sqrt(aa)/math.Sqrt(bb)) / 2
}

// twinSearch is the reference search. It returns all allowed rows with a vector, best first.
func twinSearch(docs []*doc, e EmbedderShape, q []float32, allowed *roaring.Bitmap) []Scored {
	var all []Scored
	for row, d := range docs {
		if v := d.vectors[e.ID]; len(v.Vectors) > 0 && (allowed == nil || allowed.Contains(uint32(row))) {
			best := -1.0
			for x := range slices.Chunk(keptOf(e, v.Vectors), e.Dimensions) {
				best = max(best, twinSimilarity(e, q, x))
			}
			all = append(all, Scored{Row(row), float32(best)})
		}
	}
	slices.SortFunc(all, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.Row, b.Row))
	})
	return all
}

// checkFound compares search results with those of twinSearch, and returns how many of the k best are missing.
func checkFound(t *testing.T, found, all []Scored, k int) (missed int) {
	t.Helper()
	if len(found) != min(k, len(all)) {
		t.Fatalf("%d rows, want %d", len(found), min(k, len(all)))
	}
	want := map[Row]float32{}
	for _, x := range all {
		want[x.Row] = x.Similarity
	}
	for i, x := range found {
		s, ok := want[x.Row]
		if !ok {
			t.Fatalf("row %d is not allowed, has no vector, or is listed twice", x.Row)
		}
		delete(want, x.Row)
		if math.Abs(float64(x.Similarity-s)) > 1e-6 {
			t.Fatalf("row %d has similarity %v, want %v", x.Row, x.Similarity, s)
		}
		if i > 0 && cmp.Or(cmp.Compare(found[i-1].Similarity, x.Similarity), cmp.Compare(x.Row, found[i-1].Row)) < 0 {
			t.Fatalf("%v is followed by %v", found[i-1], x)
		}
		if x.Similarity < all[min(k, len(all))-1].Similarity-1e-6 {
			missed++
		}
	}
	return missed
}

func checkVectors(t *testing.T, r *Reader, docs []*doc, embedders []EmbedderShape, rng *rand.Rand) {
	t.Helper()
	if v := r.Vectors(2); v != nil {
		t.Fatal("vectors of a missing embedder")
	}
	for _, e := range embedders {
		if !slices.ContainsFunc(docs, func(d *doc) bool { _, ok := d.vectors[e.ID]; return ok }) {
			if r.Vectors(e.ID) != nil {
				t.Fatalf("embedder %d has vectors", e.ID)
			}
			continue
		}
		v := r.Vectors(e.ID)
		if v == nil || v.Dimensions() != e.Dimensions || v.Binary() != e.Binary || v.Half() != e.Half || !slices.Contains(r.Embedders(), e) {
			t.Fatalf("embedder %d: %v, %v", e.ID, v, r.Embedders())
		}
		count := 0
		buf := []float32{7}
		for row, d := range docs {
			want, wantOK := d.vectors[e.ID]
			want.Vectors = keptOf(e, want.Vectors)
			got, ok := v.Row(buf, Row(row))
			if len(want.Vectors) == 0 {
				want.Fragments = nil
			}
			if ok != wantOK || ok && (!slices.Equal(got.Vectors, want.Vectors) || !slices.Equal(got.Fragments, want.Fragments) ||
				got.Given != want.Given || got.Regenerate != want.Regenerate) {
				t.Fatalf("embedder %d, row %d: %.300v %v, want %.300v %v", e.ID, row, fmt.Sprint(got), ok, fmt.Sprint(want), wantOK)
			}
			count += len(want.Vectors) / e.Dimensions
		}
		if _, ok := v.Row(nil, Row(len(docs))); ok || v.Count() != count {
			t.Fatalf("embedder %d: %d vectors, want %d", e.ID, v.Count(), count)
		}
		for what, set := range map[string]struct {
			got *roaring.Bitmap
			has func(v DocVectors) bool
		}{
			"rows":       {v.Rows(), func(DocVectors) bool { return true }},
			"given":      {v.Given(), func(v DocVectors) bool { return v.Given }},
			"regenerate": {v.Regenerate(), func(v DocVectors) bool { return v.Regenerate }},
			"fragment 0": {v.Fragment(0), func(v DocVectors) bool { return slices.Contains(v.Fragments, 0) }},
			"last":       {v.Fragment(MaxFragments - 1), func(v DocVectors) bool { return slices.Contains(v.Fragments, MaxFragments-1) }},
			"fragment 1": {v.Fragment(1), func(v DocVectors) bool { return false }},
			"beyond":     {v.Fragment(MaxFragments), func(v DocVectors) bool { return false }},
		} {
			want := wantRows(docs, func(d *doc) bool { v := d.vectors[e.ID]; return (len(v.Vectors) > 0 || what == "given") && set.has(v) })
			if got := rowsOf(set.got); !slices.Equal(got, want) {
				t.Fatalf("embedder %d: %s are %v, want %v", e.ID, what, got, want)
			}
		}
		checkVectorSearch(t, v, docs, e, rng)
	}
}

func checkVectorSearch(t *testing.T, v *Vectors, docs []*doc, e EmbedderShape, rng *rand.Rand) {
	t.Helper()
	missed, asked := 0, 0
	for range 12 {
		q := randomVector(rng, e.Dimensions)
		var allowed *roaring.Bitmap
		if share := rng.IntN(4); share > 0 {
			allowed = roaring.New()
			for row := range uint32(len(docs) + 5) { // some past the end, as a caller's mistake
				if rng.IntN(share) == 0 {
					allowed.Add(row)
				}
			}
			inside := 0
			for row, d := range docs {
				if allowed.Contains(uint32(row)) {
					inside += len(d.vectors[e.ID].Vectors) / e.Dimensions
				}
			}
			if got := v.CountIn(allowed); v.ends != nil && got != inside {
				t.Fatalf("%d vectors in the rows, want %d", got, inside)
			}
		}
		k := 1 + rng.IntN(1+rng.IntN(60))
		found := v.Search([]Scored{{99, 9}}, q, k, allowed)
		if found[0] != (Scored{99, 9}) {
			t.Fatal("the contents of the slice are overwritten")
		}
		all := twinSearch(docs, e, q, allowed)
		missed += checkFound(t, found[1:], all, k)
		asked += min(k, len(all))
	}
	if missed > asked/50 {
		t.Fatalf("embedder %d: %d of %d rows are missed", e.ID, missed, asked)
	}
	if got := v.Search(nil, make([]float32, e.Dimensions+1), 5, nil); len(got) > 0 {
		t.Fatal("a query of other dimensions finds something")
	}
	if got := v.Search(nil, make([]float32, e.Dimensions), 0, nil); len(got) > 0 {
		t.Fatal("no rows were requested")
	}
}
