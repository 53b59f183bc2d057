package search

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPagesOfSeveralDistinctValues reads pages of a search at three instances whose documents have several distinct values. A page is a
// part of the list of all hits, although an instance sends no more hits than the page ends with at first. In some rounds, the instance that
// merges has documents, too.
func TestPagesOfSeveralDistinctValues(t *testing.T) {
	const instances = 3
	r := rand.New(rand.NewPCG(1, 2))
	again := 0
	for round := range 12 {
		var all [instances]*library
		local := round%3 > 0
		for i := range all {
			all[i] = newLibrary(t)
			var docs []string
			for n := range 40 {
				values := 1
				if i == round%instances { // the others have a value each
					values = 3 + r.IntN(5)
				}
				var g []string
				for range values {
					g = append(g, fmt.Sprintf(`"%c"`, 'a'+rune(r.IntN(10))))
				}
				docs = append(docs, fmt.Sprintf(`{"id":%d,"n":%d,"g":[%s]}`, instances*n+i, r.IntN(30), strings.Join(g, ",")))
			}
			all[i].put("a", `{"filterableAttributes":["g"],"sortableAttributes":["n"]}`, docs...)
		}
		g := "g"
		page := func(offset, limit int) (ids []int) {
			ctx := t.Context()
			views := make([]FederatedQuery, instances)
			for i, l := range all {
				v := held(l.c.Get("a").View())
				defer v.Release()
				views[i] = FederatedQuery{View: v, Request: &Request{Sort: []string{"n:asc"}}, Weight: 1, Position: i}
			}
			f := FederatedRequest{Offset: offset, Limit: limit, Distinct: &g, Networked: true, Self: "0"}
			first := 0
			if local {
				f.Queries, first = views[:1], 1
			}
			f.RemoteHits = func(_ context.Context, f *FederatedRequest) (answers []*RemoteAnswer) {
				if f.Least > 0 {
					again++
				}
				asked := f.Asked(nil, 1, false)
				for i := first; i < instances; i++ {
					peer := FederatedRequest{Limit: f.asksFor(), Distinct: &g, Proxy: true, Networked: true, Queries: views[i : i+1]}
					body := got(got(Federate(ctx, &peer, oneByOne)).AppendPeer(ctx, nil))
					answers = append(answers, got(ParsePeer(fmt.Sprint(i), body, &asked, new(Reading))))
				}
				return answers
			}
			f.Remotes = func(ctx context.Context) []*RemoteAnswer { return f.RemoteHits(ctx, &f) }
			var answer struct{ Hits []struct{ ID int } }
			body := got(got(Federate(ctx, &f, oneByOne)).AppendJSON(ctx, nil))
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			for _, h := range answer.Hits {
				ids = append(ids, h.ID)
			}
			return ids
		}
		whole := page(0, 200)
		for range 10 {
			offset, limit := r.IntN(3), 1+r.IntN(3)
			want := whole[min(offset, len(whole)):min(offset+limit, len(whole))]
			if list := page(offset, limit); fmt.Sprint(list) != fmt.Sprint(want) {
				t.Errorf("round %d, %d from %d on: %v, want %v of %v", round, limit, offset, list, want, whole)
			}
		}
	}
	if again == 0 {
		t.Error("no search was run again")
	}
}
