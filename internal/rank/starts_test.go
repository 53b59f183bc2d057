package rank

import (
	"math"
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

// TestStartsWithMatches searches a word or phrase that many documents have at different positions. A page that documents with a
// starts-with match fill must equal that of a list of all documents.
func TestStartsWithMatches(t *testing.T) {
	defer func(c, l, s, b, n int) {
		classRows, listRows, stopRows, startBytes, positions.ShortRows = c, l, s, b, n
	}(classRows, listRows, stopRows, startBytes, positions.ShortRows)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	vocabulary := strings.Fields("fox foxes foxy red read the")
	accents := 0 // percent
	words := func(n int) string {
		var list []string
		for range n {
			list = append(list, accented(rng, vocabulary[rng.IntN(len(vocabulary))], accents))
		}
		return strings.Join(list, " ")
	}
	rules := []string{`null`, `["words","typo","proximity","attribute","exactness"]`, `["words","wordPosition","exactness"]`, `["wordPosition","exactness","typo"]`,
		`["typo","wordPosition"]`}
	filled, ran := 0, taken{}
	paths := []accessPath{scanInOrder, startsWith, wordStarts, phraseStarts, knownStarts, leadingFirst}
	for round := 0; round < 30 || round < 600 && ran.lacks(paths...); round++ {
		accents = []int{0, 3, 50}[rng.IntN(3)]
		s := parseSettings(t, `{"searchableAttributes":["title","body","tags"],"stopWords":["the"],"typoTolerance":{"disableOnAttributes":`+
			[]string{`[]`, `["title"]`}[rng.IntN(2)]+`},"proximityPrecision":`+[]string{`"byWord"`, `"byWord"`, `"byAttribute"`}[rng.IntN(3)]+
			`,"rankingRules":`+rules[round%len(rules)]+`}`)
		parts := make([][]*document, 1+rng.IntN(3))
		deleted := map[segment.DocID]bool{}
		for i := range 150 {
			d := doc(i, "title", words(1+rng.IntN(3)), "body", words(1+rng.IntN(6)))
			if rng.IntN(3) == 0 {
				d.values["tags"] = []any{words(1), words(1)}
			}
			deleted[d.id] = round%2 == 0 && rng.IntN(9) == 0
			at := rng.IntN(len(parts))
			parts[at] = append(parts[at], d)
		}
		ix := build(t, s, parts, deleted)
		kept := query.NewCache(resultcache.New(64 << 20))
		for range 40 {
			r := Request{Query: words(1), Limit: 1 + rng.IntN(12)*(1+4*rng.IntN(2)), Offset: rng.IntN(4), MaxTotal: 1000, Scores: true, Details: true}
			switch rng.IntN(4) {
			case 0:
				if r.Query = `"` + words(1+rng.IntN(3)) + `"`; rng.IntN(4) == 0 {
					r.Query += " " + words(1)
				}
			case 1:
				r.Query = strings.ToValidUTF8(r.Query[:1+rng.IntN(len(r.Query))], "")
			case 2:
				r.Query = []string{"fox es", "fo xy", "re ad"}[rng.IntN(3)] // matches one joined word
			}
			if rng.IntN(4) == 0 {
				r.Query = "the " + r.Query
			}
			if rng.IntN(3) == 0 {
				r.SearchOn = [][]string{{"title"}, {"body", "tags"}}[rng.IntN(2)]
			}
			ask := func() []Hit {
				got, err := ran.search(ix, &r)
				if err != nil {
					t.Fatal(err)
				}
				return got.Hits
			}
			classRows, listRows, stopRows = 1000, 1000, 4096
			ix.Cache = query.NewCache(resultcache.New(64 << 20))
			want := ask()
			classRows, listRows, stopRows, startBytes, positions.ShortRows = 1, 1, 1+rng.IntN(20), rng.IntN(2)<<20, 40*rng.IntN(2)
			if ix.Cache = kept; rng.IntN(3) == 0 {
				ix.Cache = query.NewCache(resultcache.New(64 << 20))
			}
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

// accented writes a percentage of words with accents.
func accented(rng *rand.Rand, word string, percent int) string {
	if rng.IntN(100) < percent {
		return strings.NewReplacer("o", "ó", "e", "é").Replace(word)
	}
	return word
}

// TestFieldsOfStopWordsAlone searches a word that is not counted: fields that consist of it have no word count.
func TestFieldsOfStopWordsAlone(t *testing.T) {
	defer func(c, l, s, b, n int) {
		classRows, listRows, stopRows, startBytes, positions.ShortRows = c, l, s, b, n
	}(classRows, listRows, stopRows, startBytes, positions.ShortRows)
	var docs []*document
	for id := range 300 {
		title := "the"
		if id < 50 {
			title = "the fox"
		}
		docs = append(docs, doc(id, "title", title))
	}
	s := parseSettings(t, `{"stopWords":["the"],"rankingRules":["words","wordPosition","exactness"]}`)
	ix := build(t, s, [][]*document{docs}, nil)
	ix.Cache = query.NewCache(resultcache.New(64 << 20))
	classRows, listRows, stopRows, startBytes, positions.ShortRows = 1, 1, 16, 1<<20, 0
	ran := taken{}
	for limit := 10; limit < 13; limit++ { // a set is cached by its second request
		for _, q := range []string{"the", `"the"`} {
			got, err := ran.search(ix, &Request{Query: q, Limit: limit, MaxTotal: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for _, hit := range got.Hits {
				if hit.ID < 50 {
					t.Fatalf("%s, limit %d: document %d, whose title has one word more, is before those that match as a whole", q, limit, hit.ID)
				}
			}
		}
	}
	ran.wants(t, wordStarts)
}

// TestMoreHitsThanThereAre requests the maximum number of hits. The first documents have the word at another position.
func TestMoreHitsThanThereAre(t *testing.T) {
	defer func(c, l, s, b int) { classRows, listRows, stopRows, startBytes = c, l, s, b }(classRows, listRows, stopRows, startBytes)
	var docs []*document
	for id := range 300 {
		docs = append(docs, doc(id, "title", "red fox"))
	}
	s := parseSettings(t, `{"rankingRules":["words","wordPosition","exactness"]}`)
	ix := build(t, s, [][]*document{docs}, nil)
	classRows, listRows, stopRows, startBytes = 1, 1, 16, 1<<20
	for _, q := range []string{"fox", `"fox"`, `"red fox"`} {
		for _, limit := range []int{math.MaxInt, math.MaxInt/2 + 1} {
			got := mustSearch(t, ix, Request{Query: q, Limit: limit, MaxTotal: math.MaxInt})
			if len(got.Hits) != len(docs) {
				t.Errorf("%q, limit %d: %d hits", q, limit, len(got.Hits))
			}
		}
	}
}

// TestPhrasesInTheirPlace searches phrases whose words some documents have at their exact positions, but not all of them in one
// searched field.
func TestPhrasesInTheirPlace(t *testing.T) {
	defer func(c, l, b int) { classRows, listRows, startBytes = c, l, b }(classRows, listRows, startBytes)
	for _, tt := range []struct {
		precision, query string
		on               []string
		first, last      *document // except for ids
	}{
		{"byWord", `"fox red"`, []string{"body", "tags"}, doc(0, "title", "fox red", "tags", "fox", "body", "red"), doc(0, "title", "the", "body", "fox red the")},
		{"byAttribute", `"fox red read foxy"`, nil, doc(0, "title", "fox red read", "body", "read red read foxy"), doc(0, "title", "fox red read foxy the", "body", "red")},
		{"byWord", `"fox red" read`, nil, doc(0, "title", "fox red", "body", "red foxy read"), doc(0, "title", "fox red read the", "body", "red")},
		{"byWord", `"fox red"`, nil, doc(0, "title", "fox", "body", "read fox red"), doc(0, "title", "read", "body", "fox red the")},
	} {
		var docs []*document
		for id := range 100 {
			d := tt.first
			if id >= 60 {
				d = tt.last
			}
			docs = append(docs, &document{id: segment.DocID(id), values: d.values})
		}
		s := parseSettings(t, `{"searchableAttributes":["title","body","tags"],"rankingRules":["wordPosition","exactness"],"proximityPrecision":"`+tt.precision+`"}`)
		ix := build(t, s, [][]*document{docs}, nil)
		r := Request{Query: tt.query, SearchOn: tt.on, Limit: 20, MaxTotal: 1000, Details: true}
		classRows, listRows = 1000, 1000
		want := mustSearch(t, ix, r).Hits
		classRows, listRows, startBytes = 1, 1, 0
		ix.Cache = query.NewCache(resultcache.New(64 << 20))
		got := mustSearch(t, ix, r).Hits
		compareHits(t, tt.precision, r, got, want)
		if got[0].ID < 60 {
			t.Errorf("%s on %s, %s: document %d comes first", tt.query, tt.on, tt.precision, got[0].ID)
		}
	}
}

// compareHits compares a page with that of a search that ranks all documents as a list.
func compareHits(t *testing.T, rules string, r Request, got, want []Hit) {
	t.Helper()
	same := func(a, b Hit) bool {
		return a.ID == b.ID && a.Score == b.Score && string(a.Details) == string(b.Details)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Fatalf("rules %s, %q on %v, limit %d, offset %d: %s, as a list %s", rules, r.Query, r.SearchOn, r.Limit, r.Offset,
			found(&Result{Hits: got}), found(&Result{Hits: want}))
	}
}
