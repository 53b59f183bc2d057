package rank

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/turns"
	"svc/segment"
)

// TestCachedPairCosts reads the costs of a pair of words in random rows of a bucket repeatedly, with and without memory for the cache, and
// compares with an uncached reader.
func TestCachedPairCosts(t *testing.T) {
	defer func(n int) { mostReadPairs = n }(mostReadPairs)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	vocabulary := strings.Fields("apple pear plum fig quince cherry")
	parts := make([][]*document, 2)
	for i := range 160 {
		var words []string
		for range 2 + r.IntN(12) {
			words = append(words, vocabulary[r.IntN(len(vocabulary))])
		}
		parts[i%2] = append(parts[i%2], doc(i, "title", strings.Join(words, " ")))
	}
	ix := build(t, parseSettings(t, `{"searchableAttributes":["title"]}`), parts, map[segment.DocID]bool{})
	known, refused := 0, 0
	for round := range 24 {
		mostReadPairs = []int{4 << 20, 0, ix.Segments[0].Rows()}[round%3]
		ctx := context.Background()
		words := vocabulary[r.IntN(3)] + " " + vocabulary[3+r.IntN(3)]
		s := &search{job: job{request: request{ctx: ctx, turn: turns.Of(ctx), r: &Request{Query: words}}, findings: findings{ix: ix}}, scratch: scratch{memory: memories.Get().(*memory)}}
		s.pos.Open()
		terms, err := read(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := buildAll(s, terms); err != nil {
			t.Fatal(err)
		}
		s.rounds = new(rounds)
		last := len(s.graph.Nodes) - 1
		for range 12 {
			b := batch{segment: r.IntN(2)}
			for row := range ix.Segments[b.segment].Rows() {
				if r.IntN(3) == 0 {
					b.rows = append(b.rows, uint32(row))
				}
			}
			got, want := make([]uint32, len(b.rows)), make([]uint32, len(b.rows))
			had := len(s.readPairs)
			knownPairCosts(s, &b, 0, last, got)
			s.pos.Distances(b.at(), 0, last, want)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, round %d, %q: %v, want %v", seed, round, words, got, want)
			}
			switch {
			case s.readPairBytes > mostReadPairs:
				t.Fatalf("seed %d, round %d: %d bytes are taken, more than %d", seed, round, s.readPairBytes, mostReadPairs)
			case len(s.readPairs) == had && had > 0:
				known++
			case len(s.readPairs) == had:
				refused++
			}
		}
		s.pos.Release()
		s.release()
	}
	if known == 0 || refused == 0 {
		t.Errorf("seed %d: %d batches had cached costs, %d had no memory", seed, known, refused)
	}
}
