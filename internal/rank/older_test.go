package rank

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"svc/internal/query"
	"svc/internal/rank/positions"
	"svc/internal/resultcache"
	"svc/internal/text"
)

// TestWordsOfOlderVersionsAreFound checks that queries find words in segments of older versions of the analysis, as those tokenized them,
// and in current segments.
func TestWordsOfOlderVersionsAreFound(t *testing.T) {
	const body = `{"localizedAttributes":[{"attributePatterns":["t"],"locales":["deu"]}]%s}`
	docs := func(first int) []*document {
		return []*document{
			doc(first, "t", "Der Schifffahrtskalender 2024"),
			doc(first+1, "t", "Straße125 epsilon"),
			doc(first+2, "t", "Donaudampfschifffahrtsgesellschaft"),
			doc(first+3, "t", "Kalender der Schifffahrt"),
		}
	}
	for _, precision := range []string{"", `,"proximityPrecision":"byAttribute"`} {
		s := parseSettings(t, fmt.Sprintf(body, precision))
		at, lost := text.VersionsOf([]text.Part{{Pipeline: uint16(text.German), Version: 1}})
		if lost != nil {
			t.Fatal("the first version of German is missing")
		}
		older := analyzerOf(s).At(at)
		ix := buildBy(t, s, older, [][]*document{docs(0)}, nil, false)
		ix.Analyzer, ix.Older = analyzerOf(s), []*text.Analyzer{older}
		ix.Segments = append(ix.Segments, build(t, s, [][]*document{docs(10)}, nil).Segments...)
		for _, test := range []struct {
			query    string
			strategy query.Strategy
			want     string
		}{
			{`"Schifffahrtskalender"`, query.All, "0 10"},
			{`"Schifffahrtskalender 2024"`, query.All, "0 10"},
			{`"der Schifffahrtskalender" 2024`, query.All, "0 10"},
			{`"Straße125"`, query.All, "1 11"},
			{`"epsilon"`, query.All, "1 11"},
			{`epsilon`, query.All, "1 11"},
			{`epsilo`, query.All, "1 11"},
			{`Donaudampfschifffahrtsgesellschaft`, query.All, "2 12"},
			{`Donaudampfschifffahrtsgesellschaft `, query.Last, "2 12"},
			{`"Donaudampfschifffahrtsgesellschaft"`, query.All, "2 12"},
			{`Schifffahrt -"Schifffahrtskalender"`, query.All, "3 12 13"},
			{`2024 -"Schifffahrtskalender"`, query.All, ""},
		} {
			r, err := Search(context.Background(), ix, &Request{Universe: universe(ix), Query: test.query, Strategy: test.strategy, Limit: 20, MaxTotal: 100})
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(r.Hits, func(a, b Hit) int { return int(a.ID) - int(b.ID) })
			if got := found(r); got != test.want {
				t.Errorf("%s%s: found %q, want %q", test.query, precision, got, test.want)
			}
		}
	}
}

// TestPhrasesOfOlderVersionsTakeAllPaths ranks phrases that older versions tokenize differently, in segments where one or both readings
// match: all access paths must agree.
func TestPhrasesOfOlderVersionsTakeAllPaths(t *testing.T) {
	defer func(c, l, s, u, d, b int) {
		classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes = c, l, s, u, d, b
	}(classRows, listRows, stopRows, unorderedRows, positions.DenseRows, startBytes)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	s := parseSettings(t, `{"localizedAttributes":[{"attributePatterns":["t"],"locales":["deu"]}]}`)
	at, _ := text.VersionsOf([]text.Part{{Pipeline: uint16(text.German), Version: 1}})
	now := analyzerOf(s)
	older := now.At(at)
	phrases := []string{"Schifffahrtskalender", "Der Schifffahrtskalender", "Schifffahrtskalender 2024", "alt Schifffahrtskalender 2024 der", "Kalender der Schifffahrt", "Kalender Schifffahrts",
		"der 2024 alt Schifffahrtskalender"}
	id := 0
	docs := func(fields ...string) []*document { // all versions read u as one word
		var out []*document
		for range 10 + rng.IntN(60) {
			out = append(out, doc(id, fields[rng.IntN(len(fields))], phrases[rng.IntN(len(phrases))]))
			id++
		}
		return out
	}
	for range 20 {
		id = 0
		ix := buildBy(t, s, older, [][]*document{docs("t")}, nil, false)
		rest := buildBy(t, s, now, [][]*document{docs("t"), docs("t", "u")}, nil, false)
		ix.Segments, ix.Analyzer, ix.Fields, ix.Older = append(ix.Segments, rest.Segments...), now, rest.Fields, []*text.Analyzer{older}
		for _, q := range []string{`"Schifffahrtskalender"`, `"der Schifffahrtskalender"`, `"Schifffahrtskalender 2024"`, `"Schifffahrtskalender" alt`, `2024 "Schifffahrtskalender"`} {
			var want string
			for path, least := range []int{1000, 1} {
				classRows, listRows = least, least
				stopRows, unorderedRows, positions.DenseRows, startBytes = 1+rng.IntN(30), rng.IntN(10), least, rng.IntN(2)<<10
				ix.Cache = query.NewCache(resultcache.New(64 << 20))
				r, err := Search(context.Background(), ix, &Request{Universe: universe(ix), Query: q, Limit: 1 + id/10, MaxTotal: 1000})
				if err != nil {
					t.Fatal(err)
				}
				if path == 0 {
					want = found(r)
				} else if got := found(r); got != want {
					t.Fatalf("%s: found %s\nby sets, and row by row %s", q, got, want)
				}
			}
		}
	}
}
