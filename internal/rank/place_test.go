package rank

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/query"
	"svc/internal/rank/positions"
	"svc/internal/resultcache"
	"svc/segment"
)

// TestPlacesOfFrequentWords searches two or three words of most documents at various positions and distances. Reading small batches, with
// all rows between two of them, must give the hits of a list of all documents.
func TestPlacesOfFrequentWords(t *testing.T) {
	defer func(c, l, s, u, d, b, n int) {
		classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes, segment.NeighbourRows = c, l, s, u, d, b, n
	}(classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes, segment.NeighbourRows)
	defer func(n int) { segment.NeighbourSegmentRows = n }(segment.NeighbourSegmentRows)
	segment.NeighbourSegmentRows = 0
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	vocabulary := strings.Fields("fox of the of the red other often then")
	all := vocabulary
	accents := 0 // percent
	words := func(n int) string {
		var list []string
		for range n {
			list = append(list, accented(rng, vocabulary[rng.IntN(len(vocabulary))], accents))
		}
		return strings.Join(list, " ")
	}
	rules := []string{`null`, `["wordPosition","exactness"]`, `["words","typo","wordPosition"]`, `["words","proximity","wordPosition","typo"]`,
		`["words","proximity","wordPosition"]`, `["words","typo","proximity","attribute","exactness"]`}
	searchable := []string{`["title","body"]`, `null`}
	filled, ran := 0, taken{}
	paths := []accessPath{byBounds, neighbourSets, pairsInOrder, wordPlaces, misplaced, denseDistance, densePlaces, leadingFirst}
	for round := 0; round < 36 || round < 720 && ran.lacks(paths...); round++ {
		s := parseSettings(t, `{"searchableAttributes":`+searchable[rng.IntN(2)]+`,"rankingRules":`+rules[round%len(rules)]+`}`)
		segment.NeighbourRows = []int{1, 1000}[rng.IntN(2)]
		accents = []int{0, 3, 50}[rng.IntN(3)]
		vocabulary = all
		if round%2 == 1 { // different word frequencies
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
			rare := " th" + string(rune('a'+rng.IntN(26))) + string(rune('a'+rng.IntN(3))) + " " // enough for the prefix to have a posting
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
				r.Query = strings.TrimSuffix(strings.ToValidUTF8(r.Query[:len(r.Query)-rng.IntN(2)], ""), "e")
			}
			if rng.IntN(4) == 0 {
				r.SearchOn = []string{"body"}
			}
			ask := func() []Hit {
				ix.Cache = query.NewCache(resultcache.New(64 << 20))
				got, err := ran.search(ix, &r)
				if err != nil {
					t.Fatal(err)
				}
				return got.Hits
			}
			classRows, listRows, stopRows, positions.DenseRows = 1000, 1000, 4096, 256
			want := ask()
			classRows, listRows, stopRows, positions.DenseRows, unorderedRows = 1, 1, 1+rng.IntN(60), 1+rng.IntN(2)*rng.IntN(20), rng.IntN(10)
			startBytes = []int{1, 64, 1 << 10}[rng.IntN(3)]
			got := ask()
			compareHits(t, rules[round%len(rules)], r, got, want)
			if len(got) == r.Limit {
				filled++
			}
		}
	}
	ran.wants(t, paths...)
	if filled < 100 {
		t.Errorf("only %d pages were filled", filled)
	}
}

// TestTiesOfFrequentWords searches words that the first documents have far from their exact positions. Of the other documents, with the
// words at equal positions, some are better for other reasons than a low id.
func TestTiesOfFrequentWords(t *testing.T) {
	defer func(c, l, s, u, d, b int) {
		classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes = c, l, s, u, d, b
	}(classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes)
	type kind struct {
		until       int // id
		title, body string
	}
	for _, tt := range []struct {
		name, query string
		kinds       []kind
		want        [][2]int // ids, from and until (excluded)
	}{
		{"half have them as they are written", "the of", []kind{{100, "red often", "red the often"}, {200, "red often", "red the often of"}}, [][2]int{{100, 120}}},
		{"some have them as they are written", "the of", []kind{{60, "red", "red red the often"}, {150, "red", "the often"}, {155, "red", "the often of"},
			{200, "red", "the often"}}, [][2]int{{150, 155}, {60, 75}}},
		{"a field is the only one that is a word", "the oft", []kind{{60, "red", "red red the often"}, {120, "the red", "the the often"},
			{200, "the", "the the often"}}, [][2]int{{120, 140}}},
		{"most have the words in their places, but in two fields", "the of", []kind{{120, "the oft", "red of"}, {200, "the of fox", "red"}}, [][2]int{{120, 140}}},
		{"of some that come late a field is the query", "the of", []kind{{150, "the of fox", "red"}, {155, "the of", "red"}, {200, "the of fox", "red"}},
			[][2]int{{150, 155}, {0, 15}}},
		{"half have accents, where words are not in their places", "the of", []kind{{100, "red", "red óf the óf"}, {200, "red", "red of the of"}}, [][2]int{{100, 120}}},
		{"half have accents, where words are in their places", "the of", []kind{{100, "the óf fox", "red"}, {200, "the of fox", "red"}}, [][2]int{{100, 120}}},
		{"few have the accents of the query", "the óf", []kind{{100, "the of fox", "red"}, {110, "the óf fox", "red"}, {200, "the of fox", "red"}},
			[][2]int{{100, 110}, {0, 10}}},
		{"half have accents in a phrase", `"the of"`, []kind{{100, "the óf fox", "red"}, {200, "the of fox", "red"}}, [][2]int{{100, 120}}},
		{"another word is misspelt", "the red ", []kind{{40, "fox", "fox fox the rod"}, {70, "fox", "the the rod"}, {110, "fox", "thy red"}}, [][2]int{{70, 90}}},
	} {
		var docs []*document
		for _, k := range tt.kinds {
			for len(docs) < k.until {
				docs = append(docs, doc(len(docs), "title", k.title, "body", k.body))
			}
		}
		var want []int
		for _, ids := range tt.want {
			for id := ids[0]; id < ids[1]; id++ {
				want = append(want, id)
			}
		}
		ix := build(t, parseSettings(t, `{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":3}}}`), [][]*document{docs}, nil)
		for _, asList := range []bool{true, false} {
			classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes = 1, 1, 10, 5, 1, 1<<10
			if asList {
				classRows, listRows = 1000, 1000
			}
			var got []int
			for _, h := range mustSearch(t, ix, Request{Query: tt.query, Limit: 20, MaxTotal: 1000}).Hits {
				got = append(got, int(h.ID))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, as a list %v: %d, want %d", tt.name, asList, got, want)
			}
		}
	}
}

// TestTiesWithoutExactness searches words that some documents have exactly at their positions, with rules that do not prefer these.
func TestTiesWithoutExactness(t *testing.T) {
	defer func(c, l, s, u, d, b int) {
		classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes = c, l, s, u, d, b
	}(classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes)
	var docs []*document
	for id := range 200 {
		switch {
		case id < 60: // far from their positions
			docs = append(docs, doc(id, "title", "red", "body", "red red the often"))
		case id < 120: // another word with the prefix is at the position
			docs = append(docs, doc(id, "title", "the oft", "body", "red"))
		default:
			docs = append(docs, doc(id, "title", "the of fox", "body", "red"))
		}
	}
	for _, rules := range []string{`["words","proximity","wordPosition"]`, `["words","typo","proximity","wordPosition","exactness"]`} {
		ix := build(t, parseSettings(t, `{"rankingRules":`+rules+`}`), [][]*document{docs}, nil)
		want := 60
		if strings.Contains(rules, "exactness") {
			want = 120
		}
		for _, asList := range []bool{true, false} {
			classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes = 1, 1, 10, 5, 1, 1<<10
			if asList {
				classRows, listRows = 1000, 1000
			}
			for i, h := range mustSearch(t, ix, Request{Query: "the of", Limit: 20, MaxTotal: 1000}).Hits {
				if int(h.ID) != want+i {
					t.Errorf("rules %s, as a list %v: hit %d is document %d, want %d", rules, asList, i, h.ID, want+i)
				}
			}
		}
	}
}
