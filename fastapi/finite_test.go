package fastapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestNumbersOfAnswersAreFinite makes every source of numbers in answers overflow: factors of rules, weights, numbers of documents,
// vectors, points and functions. client.send checks that answers are JSON, which has neither infinities nor NaN.
func TestNumbersOfAnswersAreFinite(t *testing.T) {
	c, _ := newInstance(t, Options{})
	ok := func(r reply) reply {
		t.Helper()
		if r.status >= 300 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return r
	}
	ok(c.json("PATCH", "/experimental-features", `{"dynamicSearchRules":true,"network":true,"editDocumentsByFunction":true,"renderRoute":true}`))
	ok(c.json("PATCH", "/indexes/a/settings", `{"filterableAttributes":["n","_geo"],"sortableAttributes":["n","_geo"],"embedders":{"e":{"source":"userProvided","dimensions":2}}}`))
	for _, vector := range []string{"[3e38,3e38]", "[1e-45,1e-45]", "[1e300,1]", "[0,0]"} {
		c.json("POST", "/indexes/a/documents", fmt.Sprintf(`[{"id":9,"_vectors":{"e":%s}}]`, vector)) // may fail
	}
	ok(c.json("POST", "/indexes/a/documents", `[{"id":1,"t":"red","n":1.7976931348623157e308,"_geo":{"lat":90,"lng":180},"_vectors":{"e":[3e38,3e38]}},{"id":2,"t":"red","n":-1.7976931348623157e308,"_geo":{"lat":-90,"lng":-180},"_vectors":{"e":[-3e38,1e-40]}},{"id":3,"t":"red hat","n":5e-324,"_vectors":{"e":[0,0]}}]`))
	ok(c.send("POST", "/indexes/b/documents", strings.NewReader("id,n:number\n4,1e308\n5,-1.7976931348623157e308\n"), "Content-Type", "text/csv"))
	c.wait(c.json("POST", "/indexes/a/documents/edit", `{"function":"doc.x = 1e308 * 10.0; doc.y = 0.0 / 0.0"}`))
	for i, factor := range []string{"1e308", "1e308", "1e-308", "1.7976931348623157e308", "5e-324"} {
		for _, selector := range []string{`"id":"1"`, `"filter":"n > 0"`} {
			ok(c.json("PATCH", fmt.Sprintf("/dynamic-search-rules/r%d%d", i, len(selector)), fmt.Sprintf(`{"actions":[{"selector":{%s},"action":{"type":"scale","factor":%s}}]}`, selector, factor)))
		}
	}
	const shown = `"showRankingScore":true,"showRankingScoreDetails":true,"retrieveVectors":true,"showPerformanceDetails":true`
	bodies := []string{`"q":"red"`, `"q":""`, `"q":"red","sort":["n:asc"],"facets":["*"]`, `"q":"","sort":["_geoPoint(90,-180):desc"]`, `"q":"red","rankingScoreThreshold":1`,
		`"vector":[3e38,-3e38],"hybrid":{"embedder":"e","semanticRatio":1}`, `"q":"red","vector":[1e-45,0],"hybrid":{"embedder":"e","semanticRatio":0.5}`, `"vector":[0,0],"hybrid":{"embedder":"e","semanticRatio":1}`}
	largest, hits := 0, 0
	for _, body := range bodies {
		r := ok(c.json("POST", "/indexes/a/search", `{`+body+`,`+shown+`}`))
		largest += strings.Count(r.body, "1.7976931348623157e308")
		hits += strings.Count(r.body, `"_rankingScore":`)
		for _, weight := range []string{"1e308", "1.7976931348623157e308", "5e-324", "0"} {
			query := `{"indexUid":"a",` + strings.Replace(body, `,"facets":["*"]`, "", 1) + `,"showRankingScore":true,"showRankingScoreDetails":true,"retrieveVectors":true,"federationOptions":{"weight":` + weight + `}}`
			r := ok(c.json("POST", "/multi-search", `{"federation":{"facetsByIndex":{"a":["n"]}},"queries":[`+query+`,`+query+`]}`))
			largest += strings.Count(r.body, `"weightedRankingScore":1.7976931348623157e308`)
			ok(c.send("POST", "/multi-search", strings.NewReader(`{"federation":{},"queries":[`+query+`]}`), "Content-Type", "application/json", "Svc-Proxy-Search", "true"))
		}
	}
	if largest < 20 || hits < 20 {
		t.Errorf("only %d scores of %d hits reach the largest number", largest, hits)
	}
	for _, id := range []string{"1", "2", "3", "4"} {
		c.json("POST", "/indexes/a/similar", `{"id":"`+id+`","embedder":"e","showRankingScore":true,"showRankingScoreDetails":true,"retrieveVectors":true}`)
		c.get("/indexes/a/documents/" + id + "?retrieveVectors=true")
	}
	for _, path := range []string{"/indexes/a/documents?retrieveVectors=true", "/indexes/b/documents", "/tasks", "/batches", "/stats", "/indexes/a/stats", "/dynamic-search-rules/r08", "/indexes/a/settings", "/indexes/a/fields"} {
		c.get(path)
	}
	c.json("POST", "/dynamic-search-rules", `{}`)
	for _, template := range []string{`{{ 1e308 | times: 10 }}`, `{{ 1e400 }}`, `{{ 0.0 | divided_by: 0.0 }}`, `{{ doc.n }}`} {
		c.json("POST", "/render-template", fmt.Sprintf(`{"template":{"kind":"inlineDocumentTemplate","inline":%q},"input":{"kind":"inlineDocument","inline":{"n":1e400}}}`, template))
	}
}
