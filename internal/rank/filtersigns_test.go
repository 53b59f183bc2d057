package rank

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/internal/vfs"
	"svc/segment"
)

// TestSignsOfAFilter checks that the signs of a repeated filter are gathered, that searches with them find as much as without, and no
// documents deleted since. A filter without a key has no signs.
func TestSignsOfAFilter(t *testing.T) {
	const documents, embedder, k = 13_500, 7, 10
	shape := segment.EmbedderShape{ID: embedder, Dimensions: 128}
	rng := rand.New(rand.NewPCG(4, 3))
	centres := make([][]float32, 100)
	for i := range centres {
		centres[i] = make([]float32, shape.Dimensions)
		for j := range centres[i] {
			centres[i][j] = float32(rng.NormFloat64())
		}
	}
	vector := func() []float32 {
		v := make([]float32, shape.Dimensions)
		for j, x := range centres[rng.IntN(len(centres))] {
			v[j] = x + 0.5*float32(rng.NormFloat64())
		}
		return v
	}
	fs := vfs.NewMem()
	b := segment.NewBuilder(segment.BuilderOptions{Embedders: []segment.EmbedderShape{shape}, GraphThreads: 2})
	for i := range documents {
		b.StartDoc(segment.DocID(i), fmt.Append(nil, i), []byte("{}"))
		b.Vectors(embedder, segment.DocVectors{Vectors: vector()})
		b.EndDoc()
	}
	if _, err := b.Write(context.Background(), fs, "0.seg"); err != nil {
		t.Fatal(err)
	}
	reader, err := segment.Open(fs, "0.seg")
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	s := parseSettings(t, `{}`)
	a := analyzerOf(s)
	ix := &Index{Settings: s, Fields: settings.Resolve(nil, s, "id"), Analyzer: a, Synonyms: query.Synonyms(s, a),
		Cache: query.NewCache(resultcache.New(64<<20), resultcache.New(64<<20).Scope()), Segments: []segment.Live{{Reader: reader}}}
	for _, unnamed := range []bool{true, false} {
		f := &everyNth{ix: ix, n: 3, rest: 1, unnamed: unnamed}
		key := append(binary.AppendUvarint(nil, embedder), fmt.Append(nil, f.n, " ", f.rest)...)
		deleted, missed := roaring.New(), 0
		for round := range 40 {
			q := vector()
			ix.Segments[0].Deleted = deleted.Clone()
			truth := map[segment.DocID]bool{}
			for _, x := range reader.Vectors(embedder).SearchEffort(nil, q, k, 1000, f.Rows(0)) {
				truth[reader.DocID(x.Row)] = true
			}
			got, err := Search(context.Background(), ix, &Request{Filter: f, Vectors: &VectorQuery{Embedder: embedder, Vectors: [][]float32{q}, Only: true}, Limit: k, MaxTotal: 1000})
			if err != nil || len(got.Hits) != k {
				t.Fatalf("%d hits, %v", len(got.Hits), err)
			}
			for _, h := range got.Hits {
				if !truth[h.ID] {
					missed++
				}
				if deleted.Contains(uint32(h.ID)) || h.ID%f.n != f.rest {
					t.Fatalf("document %d is found, which is deleted or not allowed", h.ID)
				}
			}
			deleted.Add(uint32(got.Hits[0].ID))
			signs, ok := filterSigns.Get(ix.Cache.OfFile(0), key)
			if want := !unnamed && round > 0; ok != want || ok && signs.Bytes() < 20*(documents/3) {
				t.Fatalf("search %d, without a key %t: signs are cached %t, %d bytes", round, unnamed, ok, signs.Bytes())
			}
		}
		if missed > 40*k/50 {
			t.Errorf("%d of %d are missed", missed, 40*k)
		}
	}
}
