package rank

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"svc/internal/query"
	"svc/internal/text"
)

// Queries find words in segments of older versions of the analysis as these cut them, beside words of the current one.
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
			t.Fatal("the first version of German is not kept")
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
