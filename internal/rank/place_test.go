package rank

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/segment"
)

// TestPlacesOfFrequentWords asks for two or three words that most documents have, at all kinds of places and distances. Small batches, read
// in all rows between two, give the hits that a list of all documents gives.
func TestPlacesOfFrequentWords(t *testing.T) {
	defer func(c, l, s, u, d, n int) {
		classRows, listRows, stopRows, unorderedRows, denseRows, segment.NeighbourRows = c, l, s, u, d, n
	}(classRows, listRows, stopRows, unorderedRows, denseRows, segment.NeighbourRows)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	vocabulary := strings.Fields("fox of the of the red other often then")
	words := func(n int) string {
		var list []string
		for range n {
			list = append(list, vocabulary[rng.IntN(len(vocabulary))])
		}
		return strings.Join(list, " ")
	}
	rules := []string{`null`, `["wordPosition","exactness"]`, `["words","typo","wordPosition"]`, `["words","proximity","wordPosition","typo"]`}
	filled := 0
	for round := range 24 {
		s := parseSettings(t, `{"searchableAttributes":["title","body"],"rankingRules":`+rules[round%len(rules)]+`}`)
		segment.NeighbourRows = []int{1, 1000}[rng.IntN(2)]
		parts := make([][]*document, 1+rng.IntN(2))
		deleted := map[segment.DocID]bool{}
		for i := range 200 {
			long := 1 + rng.IntN(8)
			if rng.IntN(4) == 0 {
				long = 60 + rng.IntN(300)
			}
			rare := " th" + string(rune('a'+rng.IntN(26))) + string(rune('a'+rng.IntN(3))) + " " // enough of them for a prefix to have a posting
			d := doc(i, "title", words(1+rng.IntN(3)), "body", strings.Repeat("fox ", rng.IntN(2)*rng.IntN(80))+words(long)+rare+words(2))
			deleted[d.id] = rng.IntN(9) == 0
			at := rng.IntN(len(parts))
			parts[at] = append(parts[at], d)
		}
		ix := build(t, s, parts, deleted)
		for range 30 {
			r := Request{Query: words(2 + rng.IntN(2)), Limit: 1 + rng.IntN(12), Offset: rng.IntN(4), MaxTotal: 1000, Scores: true, Details: true}
			if rng.IntN(2) == 0 {
				r.Query += " "
			} else {
				r.Query = strings.TrimSuffix(r.Query[:len(r.Query)-rng.IntN(2)], "e")
			}
			if rng.IntN(4) == 0 {
				r.SearchOn = []string{"body"}
			}
			ask := func() []Hit {
				ix.Cache = query.NewCache(resultcache.New(64 << 20))
				got, err := Search(context.Background(), ix, &r)
				if err != nil {
					t.Fatal(err)
				}
				return got.Hits
			}
			classRows, listRows, stopRows, denseRows = 1000, 1000, 4096, 256
			want := ask()
			classRows, listRows, stopRows, denseRows, unorderedRows = 1, 1, 1+rng.IntN(60), 1, rng.IntN(10)
			got := ask()
			compareHits(t, rules[round%len(rules)], r, got, want)
			if len(got) == r.Limit {
				filled++
			}
		}
	}
	if filled < 300 {
		t.Errorf("only %d pages were filled", filled)
	}
}

func TestCostsOfPlaces(t *testing.T) {
	var costs [placeCosts]uint8
	for _, start := range []int{0, 1, 2, 7, 15, 16, 17, 23, 24, 25, 33, 64, 100, 700, placeStarts - 1} {
		for n := 1; n <= 3; n++ {
			nearest := fillPlaceCosts(&costs, start, n)
			for at := range 1 << 16 {
				if got, want := uint32(costs[min(at, placeCosts-1)]), placeCost(at, start, n); got != want {
					t.Fatalf("%d terms with their place at %d cost %d at %d, want %d", n, start, got, at, want)
				}
			}
			if !slices.IsSorted(costs[nearest:]) {
				t.Fatalf("%d terms with their place at %d: costs fall behind %d", n, start, nearest)
			}
		}
	}
}
