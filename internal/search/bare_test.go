package search

import (
	"context"
	"encoding/json"
	"testing"

	"svc/internal/turns"
)

// TestBareHits reads no document where hits show no attribute, and reads it where anything is made of it.
func TestBareHits(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{"searchableAttributes":["t"],"filterableAttributes":["kind"],"displayedAttributes":["id","t"]}`,
		`{"id":1,"t":"red hat","kind":"x"}`, `{"id":2,"t":"red cat","kind":"y"}`)
	v := held(l.c.Get("a").View())
	defer v.Release()
	none := []string{}
	for _, c := range []struct {
		name    string
		request Request
		bare    bool
		want    string // the first hit
	}{
		{"all", Request{}, false, `{"id":1,"t":"red hat"}`},
		{"none", Request{AttributesToRetrieve: none}, true, `{}`},
		{"hidden", Request{AttributesToRetrieve: []string{"kind"}}, true, `{}`},
		{"score", Request{AttributesToRetrieve: none, ShowRankingScore: true}, true, `{"_rankingScore":1.0}`},
		{"marked", Request{AttributesToRetrieve: none, AttributesToHighlight: []string{"t"}, HighlightPreTag: "<", HighlightPostTag: ">"}, false,
			`{"_formatted":{"t":"<red> <hat>"}}`},
		{"positions", Request{AttributesToRetrieve: none, ShowMatchesPosition: true}, false,
			`{"_matchesPosition":{"t":[{"start":0,"length":3},{"start":4,"length":3}]}}`},
	} {
		ctx := context.Background()
		request := c.request
		request.Query, request.Limit = "red hat", 2
		found := got(Search(ctx, v, &request))
		if w := newHitWriter(turns.Of(ctx), found, 0); w.bare != c.bare {
			t.Errorf("%s: bare is %v", c.name, w.bare)
		}
		var answer struct{ Hits []json.RawMessage }
		if err := json.Unmarshal(got(found.AppendJSON(ctx, nil)), &answer); err != nil {
			t.Fatal(err)
		}
		if len(answer.Hits) == 0 || string(answer.Hits[0]) != c.want {
			t.Errorf("%s: hits %s, want %s first", c.name, answer.Hits, c.want)
		}
	}
}
