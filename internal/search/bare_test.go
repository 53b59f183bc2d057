package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"svc/internal/turns"
)

// TestBareHits checks that a search reads documents only if hits show an attribute or something computed from them.
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

// TestPlainHits compares hits whose documents are read into the answer with those that are copied there. Some documents have vectors, which
// are left out, or seem to have some.
func TestPlainHits(t *testing.T) {
	l, rng := newLibrary(t), rand.New(rand.NewPCG(4, 4))
	const n = 300
	lines := make([]string, n)
	for i := range lines {
		more := ""
		switch rng.IntN(6) {
		case 0:
			more = `,"_vectors":{"e":[1,2]}`
		case 1:
			more = `,"o":{"_vectors":[1]}`
		case 2:
			more = fmt.Sprintf(`,"long":"%s"`, strings.Repeat("some words ", rng.IntN(4000)))
		}
		lines[i] = fmt.Sprintf(`{"id":%d,"t":"hat %d"%s,"end":[%d]}`, i, rng.IntN(9), more, rng.IntN(1<<20))
	}
	l.put("a", `{"searchableAttributes":["t"]}`, lines...)
	v := held(l.c.Get("a").View())
	defer v.Release()
	ctx := context.Background()
	found := got(Search(ctx, v, &Request{Query: "hat", Limit: n}))
	for range 3 { // the second time, documents become cached
		w := newHitWriter(turns.Of(ctx), found, 0)
		if !w.plain {
			t.Fatal("documents are copied")
		}
		var plain, copied []byte
		for i := range found.result.Hits {
			plain = got(w.append(plain, &found.result.Hits[i]))
		}
		w.plain = false
		for i := range found.result.Hits {
			copied = got(w.append(copied, &found.result.Hits[i]))
		}
		if len(found.result.Hits) != n || !bytes.Equal(plain, copied) || bytes.Contains(plain, []byte(`"_vectors":{`)) {
			t.Fatalf("%d hits, %d bytes, copied %d", len(found.result.Hits), len(plain), len(copied))
		}
	}
	for name, r := range map[string]Request{"some": {AttributesToRetrieve: []string{"t"}}, "positions": {ShowMatchesPosition: true}, "marked": {AttributesToHighlight: []string{"*"}}} {
		r.Query, r.Limit = "hat", 1
		if newHitWriter(turns.Of(ctx), got(Search(ctx, v, &r)), 0).plain {
			t.Errorf("%s: documents are read into the answer", name)
		}
	}
}
