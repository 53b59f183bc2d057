package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRemoteAnswers splits two indexes over two instances, and compares with one instance that has both entirely.
func TestRemoteAnswers(t *testing.T) {
	words := []string{"red", "fox", "blue", "moon", "ox", "river"}
	const settings = `{"filterableAttributes":["g","n"],"sortableAttributes":["n"],"displayedAttributes":["id","t","n"]}`
	whole, here, there := newLibrary(t), newLibrary(t), newLibrary(t)
	r := rand.New(rand.NewPCG(1, 2))
	var docs [2][]string
	var all []string
	for i := range 60 {
		doc := fmt.Sprintf(`{"id":%d,"t":"%s %s","g":"%c","n":%d}`, i, words[r.IntN(6)], words[r.IntN(6)], 'A'+rune(r.IntN(4)), r.IntN(5))
		all = append(all, doc)
		docs[i%2] = append(docs[i%2], doc)
	}
	whole.put("a", settings, all...)
	here.put("a", settings, docs[0]...)
	there.put("a", settings, docs[1]...)
	g, seven := "g", 7
	for _, tt := range []struct {
		what   string
		f      FederatedRequest
		facets []string
		r      Request
	}{
		{"sorted", FederatedRequest{Limit: 20}, []string{"g", "n"}, Request{Sort: []string{"n:desc"}}},
		{"paged", FederatedRequest{HitsPerPage: &seven}, []string{"*"}, Request{Query: "fox"}},
		{"offset", FederatedRequest{Limit: 17, Offset: 3}, nil, Request{Query: "red moon"}},
		{"distinct by what is not shown", FederatedRequest{Limit: 20, Distinct: &g}, []string{"n"}, Request{Sort: []string{"n:asc"}}},
	} {
		facets := map[string][]string{}
		if tt.facets != nil {
			facets["a"] = tt.facets
		}
		want, _, err := whole.federate(&tt.f, facets, asked{uid: "a", weight: 1, Request: tt.r})
		if err != nil {
			t.Fatal(err)
		}
		offset, limit, _ := tt.f.page()
		remote := FederatedRequest{Limit: offset + limit, Distinct: tt.f.Distinct, Proxy: true, Networked: true}
		if tt.f.HitsPerPage != nil {
			n := offset + limit
			remote.HitsPerPage = &n
		}
		_, body, err := there.federate(&remote, facets, asked{uid: "a", weight: 1, Request: tt.r})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := ParseRemote("there", []byte(body), everything, new(Reading))
		if err != nil {
			t.Fatalf("%s: %v in %s", tt.what, err, body)
		}
		f := tt.f
		f.Queries, f.Facets, f.Networked, f.Self = nil, nil, true, "here"
		f.Remotes = func(context.Context) []*RemoteAnswer { return []*RemoteAnswer{answer} }
		got, body, err := here.federate(&f, facets, asked{uid: "a", weight: 1, Request: tt.r})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Hits) != len(want.Hits) {
			t.Errorf("%s: %d hits, want %d: %s", tt.what, len(got.Hits), len(want.Hits), body)
		}
		if !strings.Contains(body, `"remote":"there"`) || !strings.Contains(body, `"remote":"here"`) || !strings.Contains(body, `"remoteErrors":{}`) {
			t.Errorf("%s: hits do not name their remote: %s", tt.what, body)
		}
		for _, inner := range []string{"weightedScoreValues", "extra_document"} {
			if strings.Contains(body, inner) {
				t.Errorf("%s: the answer shows %s: %s", tt.what, inner, body)
			}
		}
		if tt.f.Distinct == nil {
			if w, g := string(want.FacetsByIndex["a"]), string(got.FacetsByIndex["a"]); w != g {
				t.Errorf("%s: facets\ngot  %s\nwant %s", tt.what, g, w)
			}
		}
		if w, g := total(want.EstimatedTotalHits, want.TotalHits), total(got.EstimatedTotalHits, got.TotalHits); w != g {
			t.Errorf("%s: %d in all, want %d", tt.what, g, w)
		}
	}
}

func total(estimated, exact *int) int {
	if exact != nil {
		return *exact
	}
	return *estimated
}

// TestRemoteQuery parses the query that is sent to a remote.
func TestRemoteQuery(t *testing.T) {
	half, threshold, d := .5, .25, "g"
	r := Request{Query: `a "b"`, Sort: []string{"n:asc"}, CropLength: 3, CropMarker: "…", HighlightPreTag: "<em>", HighlightPostTag: "</em>", Distinct: &d,
		RankingScoreThreshold: &threshold, Hybrid: &Hybrid{Embedder: "e", Ratio: &half}, Vector: []float32{1, .5}, ShowRankingScore: true, AttributesToRetrieve: []string{}}
	got := string(r.AppendRemote(nil, "x", 2, 3))
	want := `{"indexUid":"x","q":"a \"b\"","rankingScoreThreshold":0.25,"hybrid":{"embedder":"e","semanticRatio":0.5},"vector":[1.0,0.5],"sort":["n:asc"],"attributesToRetrieve":[],"cropLength":3,"cropMarker":"…","highlightPreTag":"<em>","highlightPostTag":"</em>",` +
		`"showRankingScore":true,"distinct":"g","federationOptions":{"weight":2.0,"queryPosition":3}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRemoteFederation parses the federation that is sent to a remote: instances refuse pages that are not integers.
func TestRemoteFederation(t *testing.T) {
	two, five := 2, 5
	for want, r := range map[string]FederatedRequest{
		`{"offset":0,"limit":25}`:     {Offset: 5, Limit: 20},
		`{"page":1,"hitsPerPage":10}`: {Page: &two, HitsPerPage: &five},
	} {
		if got := string(r.AppendRemote(nil, nil)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzRemoteAnswer parses arbitrary answers. A parsed answer can be merged, shown and dropped, and its memory is charged and bounded
// by its length.
func FuzzRemoteAnswer(f *testing.F) {
	const hit = `{"id":1,"g":["x",2],"_federation":{"indexUid":"a","queriesPosition":0,"weightedRankingScore":1,"weightedScoreValues":[{"weightedScore":1},{"sort":{"asc":true,"value":"x"}},{"geoSort":{"asc":false,"distance":3}}],"extra_document":{"h":true}}}`
	f.Add(`{"hits":[` + hit + `],"estimatedTotalHits":1,"facetsByIndex":{"a":{"distribution":{"g":{"x":1}},"stats":{"g":{"min":1,"max":2}}}}}`)
	f.Add(`{"hits":[` + hit + `,{}],"totalHits":1}`)
	f.Add(`{"hits":[` + strings.Replace(hit, `"extra`, `"pinnedPosition":3,"extra`, 1) + `],"totalHits":1}`)
	f.Add(`{"hits":[1,[],{"_federation":3}],"totalHits":1}`)
	f.Add(`{"hits":[],"totalHits":0,"facetsByIndex":{"a":null}}`)
	f.Add(`{}`)
	f.Add(``)
	for _, body := range grownAnswers(300) {
		f.Add(string(body))
	}
	f.Fuzz(func(t *testing.T, body string) { _ = bounded(t, "JSON", []byte(body), everything) })
}

// TestIncompleteRemoteAnswers parses answers that cannot be merged.
func TestIncompleteRemoteAnswers(t *testing.T) {
	const federation = `{"indexUid":"a","queriesPosition":0,"weightedRankingScore":1,"weightedScoreValues":[],"extra_document":{}}`
	answer := func(federation string) string {
		return `{"hits":[{"id":1,"_federation":` + federation + `}],"estimatedTotalHits":1}`
	}
	if a, err := ParseRemote("r", []byte(" "+answer(federation)+"\n"), everything, new(Reading)); err != nil || len(a.hits) != 1 ||
		string(a.hits[0].appendShown(nil, "r")) != `{"id":1,"_federation":{"indexUid":"a","queriesPosition":0,"weightedRankingScore":1.0,"remote":"r"}}` {
		t.Fatalf("a valid answer is parsed as %+v, %v", a, err)
	}
	for what, body := range map[string]string{
		"no list of hits":       `{"estimatedTotalHits":1}`,
		"hits that are none":    `{"hits":{},"estimatedTotalHits":1}`,
		"no total":              `{"hits":[]}`,
		"a total that is none":  `{"hits":[],"totalHits":"1"}`,
		"a hit without it":      `{"hits":[{"id":1}],"totalHits":1}`,
		"a number as its uid":   answer(strings.Replace(federation, `"a"`, `1`, 1)),
		"no position":           answer(strings.Replace(federation, `"queriesPosition":0,`, ``, 1)),
		"no score":              answer(strings.Replace(federation, `Score":1`, `Score":null`, 1)),
		"a value of new kind":   answer(strings.Replace(federation, `[]`, `[{"other":1}]`, 1)),
		"an empty value":        answer(strings.Replace(federation, `[]`, `[{}]`, 1)),
		"a value of wrong type": answer(strings.Replace(federation, `[]`, `[{"weightedScore":"1"}]`, 1)),
		"a broken end":          answer(federation) + "}",
	} {
		if _, err := ParseRemote("r", []byte(body), everything, new(Reading)); err == nil {
			t.Errorf("%s: %s is accepted", what, body)
		}
	}
}
