package query

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// TestDenseLevels compares the rows of typos that are made with a bit for each row with the rows of the postings.
func TestDenseLevels(t *testing.T) {
	defer func(n int) { denseShare = n }(denseShare)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	docs := make([]string, 300)
	for i := range docs {
		for range 4 {
			for range 2 + rnd.IntN(4) {
				docs[i] += "abcd"[rnd.IntN(4):][:1]
			}
			docs[i] += " "
		}
	}
	words := strings.Fields(strings.Join(docs, " "))
	const update = `{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":2,"twoTypos":4}}}`
	denseShare = 0 // sets alone
	ix := testIndex(t, update, docs)
	several, phrases := 0, 0
	for range 60 {
		g, err := ix.Build(context.Background(), ix.read(words[rnd.IntN(len(words))]), nil, never)
		if err != nil {
			t.Fatal(err)
		}
		m := g.Nodes[0].Match
		for i, s := range ix.Segments {
			var want [Levels]*roaring.Bitmap
			any := roaring.New()
			for level := range Levels {
				want[level] = roaring.New()
				for _, p := range m.Levels[level].Postings[i] {
					for k := range p.Fields() {
						want[level].Or(p.Field(k).Rows())
					}
				}
				for _, p := range m.Levels[level].Phrases {
					want[level].Or(p.Segments[i].Rows)
					phrases += int(p.Segments[i].Rows.GetCardinality())
				}
				want[level].AndNot(any)
				any.Or(want[level])
			}
			for name, got := range map[string]SegmentRows{"sets": m.Segments[i], "bits": denseOf(t, s, m, i)} {
				for level := range Levels {
					if !got.At[level].Equals(want[level]) {
						t.Fatalf("%s: level %d has %v, want %v", name, level, got.At[level], want[level])
					}
				}
				if !got.Any.Equals(any) {
					t.Fatalf("%s: all levels have %v, want %v", name, got.Any, any)
				}
			}
			if !want[1].IsEmpty() && !want[2].IsEmpty() {
				several++
			}
		}
	}
	if several == 0 || phrases == 0 {
		t.Errorf("%d segments had rows at two levels, and %d rows had split words", several, phrases)
	}
}

// denseOf makes the rows of a match in a segment with a bit for each.
func denseOf(t *testing.T, s segment.Live, m *Match, i int) SegmentRows {
	denseShare = 1 << 30
	defer func() { denseShare = 0 }()
	first := m.Segments[i].At[0]
	r := SegmentRows{At: [Levels]*roaring.Bitmap{first, noRows, noRows}, Any: first}
	if _, ok := r.addDense(s, m.Levels[1:], 1, i, wordFields{}); !ok {
		t.Fatal("no bits were used")
	}
	return r
}
