package fastapi

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// aggregatedDocuments are the documents of the examples of docs/AGGREGATIONS.md, by index.
var aggregatedDocuments = map[string][2]string{
	"shop": {`["price","brand"]`, `[{"id":1,"brand":"acme","price":5},{"id":2,"brand":"acme","price":10},{"id":3,"brand":"bolt","price":20},{"id":4,"brand":"corax","price":40}]`},
	"logs": {`["at","took","user","status"]`, `[{"id":1,"status":500,"at":1769861000000,"took":100,"user":"x"},{"id":2,"status":503,"at":1769864399999,"took":200,"user":"x"},
		{"id":3,"status":500,"at":1769868000000,"took":40,"user":"y"},{"id":4,"status":200,"at":1769868000000,"took":1,"user":"z"}]`},
	"news": {`["published","section"]`, `[{"id":1,"title":"election day","section":"World","published":"2026-01-04T10:00:00Z"},{"id":2,"title":"election night","section":"World","published":1767700000},
		{"id":3,"title":"election songs","section":"Culture","published":"2026-03-01"},{"id":4,"title":"the election","section":"World","published":"2026-03-31T23:59:59Z"},
		{"id":5,"title":"weather","section":"World","published":"2026-02-01"}]`},
}

// TestAggregationsOfTheManual sends the requests of docs/AGGREGATIONS.md, and compares the answers with those that follow them.
func TestAggregationsOfTheManual(t *testing.T) {
	c, _ := newInstance(t, Options{})
	for uid, of := range aggregatedDocuments {
		c.wait(c.json("PATCH", "/indexes/"+uid+"/settings", `{"filterableAttributes":`+of[0]+`}`))
		c.wait(c.json("POST", "/indexes/"+uid+"/documents", of[1]))
	}
	document, err := os.ReadFile("../docs/AGGREGATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(document), "\n```")
	asked := 0
	for i, block := range blocks {
		request, ok := strings.CutPrefix(block, "http\n")
		if !ok {
			continue
		}
		asked++
		line, body, _ := strings.Cut(request, "\n")
		method, path, _ := strings.Cut(line, " ")
		want := strings.TrimPrefix(blocks[i+2], "json\n")
		var got struct{ Aggregations any }
		var expected any
		r := c.json(method, path, body)
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 {
			t.Fatalf("%s: %d %s", line, r.status, r.body)
		}
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatalf("%s: %v in %s", line, err, want)
		}
		if a, b := rounded(got.Aggregations), rounded(expected); a != b {
			t.Errorf("%s\ngot  %s\nwant %s", line, a, b)
		}
	}
	if asked < 3 {
		t.Errorf("%d examples", asked)
	}
}

// rounded formats a value with numbers to 9 decimals.
func rounded(value any) string {
	switch v := value.(type) {
	case map[string]any:
		all := map[string]string{}
		for name, x := range v {
			all[name] = rounded(x)
		}
		return fmt.Sprint(all)
	case []any:
		var all []string
		for _, x := range v {
			all = append(all, rounded(x))
		}
		return fmt.Sprint(all)
	case float64:
		return fmt.Sprintf("%.9f", v)
	}
	return fmt.Sprint(value)
}

// TestAggregationsInANetwork asks three instances with shards for the figures of all documents, with each kind of request.
func TestAggregationsInANetwork(t *testing.T) {
	all := newHosts(t, `{"x":{"remotes":["b"]},"y":{"remotes":["c"]}}`)
	all[0].wait(all[0].json("PATCH", "/indexes/i/settings", `{"filterableAttributes":["n"]}`))
	filled(all)
	const aggregations = `"aggregations":{"n":{"stats":"n"},"steps":{"histogram":"n","interval":40,"aggregations":{"n":{"terms":"n","limit":1,"order":"key:desc"}}}}`
	const want = `"aggregations":{"n":{"count":60,"min":0.0,"max":59.0,"sum":1770.0,"avg":29.5,"stdDev":17.318102282486574},` +
		`"steps":{"buckets":[{"from":0,"to":40,"count":40,"aggregations":{"n":{"buckets":[{"key":39,"count":1}],"otherCount":39}}},` +
		`{"from":40,"to":80,"count":20,"aggregations":{"n":{"buckets":[{"key":59,"count":1}],"otherCount":19}}}]}}`
	for path, body := range map[string]string{
		"/indexes/i/search":          `{"limit":1,` + aggregations + `}`,
		"/indexes/i/documents/fetch": `{"limit":1,` + aggregations + `}`,
		"/multi-search":              `{"queries":[{"indexUid":"i","limit":0,` + aggregations + `}]}`,
		"/multi-search?":             `{"federation":{"limit":0,` + aggregations + `},"queries":[{"indexUid":"i","q":"red"}]}`,
	} {
		for _, h := range all {
			var r reply
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && !strings.Contains(r.body, want); time.Sleep(5 * time.Millisecond) { // settings travel
				r = h.json("POST", path, body)
			}
			if !strings.Contains(r.body, want) {
				t.Errorf("%s at %s: %d %s", path, h.name, r.status, r.body)
			}
		}
	}
	for path, code := range map[string]string{"/indexes/i/search": "invalid_search_aggregations", "/indexes/i/documents/fetch": "invalid_document_aggregations"} {
		if r := all[1].json("POST", path, `{"aggregations":{"a":{"stats":"t"}}}`); r.code() != code || !strings.Contains(r.body, "filterable attributes") {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}
