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
	defer func(c, l, s, u, d, b, n int) {
		classRows, listRows, stopRows, unorderedRows, denseRows, beginningBytes, segment.NeighbourRows = c, l, s, u, d, b, n
	}(classRows, listRows, stopRows, unorderedRows, denseRows, beginningBytes, segment.NeighbourRows)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	vocabulary := strings.Fields("fox of the of the red other often then")
	all := vocabulary
	words := func(n int) string {
		var list []string
		for range n {
			list = append(list, vocabulary[rng.IntN(len(vocabulary))])
		}
		return strings.Join(list, " ")
	}
	rules := []string{`null`, `["wordPosition","exactness"]`, `["words","typo","wordPosition"]`, `["words","proximity","wordPosition","typo"]`,
		`["words","proximity","wordPosition"]`, `["words","typo","proximity","attribute","exactness"]`}
	searchable := []string{`["title","body"]`, `null`}
	filled := 0
	for round := range 36 {
		s := parseSettings(t, `{"searchableAttributes":`+searchable[rng.IntN(2)]+`,"rankingRules":`+rules[round%len(rules)]+`}`)
		segment.NeighbourRows = []int{1, 1000}[rng.IntN(2)]
		vocabulary = all
		if round%2 == 1 { // some words more often than others
			vocabulary = nil
			for range 3 + rng.IntN(6) {
				vocabulary = append(vocabulary, all[rng.IntN(len(all))])
			}
		}
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
			r := Request{Query: words(2 + rng.IntN(2)), Limit: 1 + rng.IntN(12)*(1+4*rng.IntN(2)), Offset: rng.IntN(4), MaxTotal: 1000, Scores: true, Details: true}
			switch rng.IntN(5) {
			case 0, 1:
				r.Query += " "
			case 2:
				r.Query = `"` + words(2) + `" ` + words(1)
			default:
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
			classRows, listRows, stopRows, denseRows, unorderedRows = 1, 1, 1+rng.IntN(60), 1+rng.IntN(2)*rng.IntN(20), rng.IntN(10)
			beginningBytes = []int{1, 64, 1 << 10}[rng.IntN(3)]
			got := ask()
			compareHits(t, rules[round%len(rules)], r, got, want)
			if len(got) == r.Limit {
				filled++
			}
		}
	}
	if filled < 450 {
		t.Errorf("only %d pages were filled", filled)
	}
}

// TestTiesOfFrequentWords asks for words that all documents have at the same places, half of them not as they are written: these come
// behind the others, which have higher ids.
func TestTiesOfFrequentWords(t *testing.T) {
	defer func(c, l, s, u, d, b int) {
		classRows, listRows, stopRows, unorderedRows, denseRows, beginningBytes = c, l, s, u, d, b
	}(classRows, listRows, stopRows, unorderedRows, denseRows, beginningBytes)
	classRows, listRows, stopRows, unorderedRows, denseRows, beginningBytes = 1, 1, 10, 5, 1, 1<<10
	var docs []*document
	for i := range 200 {
		d := doc(i, "title", "red often", "body", "red the often")
		if i >= 100 {
			d = doc(i, "title", "red often", "body", "red the often of")
		}
		docs = append(docs, d)
	}
	ix := build(t, parseSettings(t, `{}`), [][]*document{docs}, nil)
	got, err := Search(context.Background(), ix, &Request{Query: "the of", Limit: 20, MaxTotal: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range got.Hits {
		if int(h.ID) != 100+i {
			t.Fatalf("hit %d is document %d, want %d", i, h.ID, 100+i)
		}
	}
	if len(got.Hits) != 20 {
		t.Errorf("%d hits", len(got.Hits))
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
