package fastapi

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestGroupsOfTheManual sends the request of docs/GROUPS-OF-HITS.md and gets the answer that stands behind it, alone and as a query of a
// multi-search.
func TestGroupsOfTheManual(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("PATCH", "/indexes/shop/settings", `{"filterableAttributes":["brand"],"sortableAttributes":["price"]}`))
	c.wait(c.json("POST", "/indexes/shop/documents", `[{"id":1,"t":"shoe","brand":"acme","price":3},{"id":2,"t":"shoe","brand":"bolt"},{"id":3,"t":"shoe","brand":"corax"},
		{"id":4,"t":"shoe","brand":"acme","price":1},{"id":5,"t":"shoe","brand":"acme","price":2},{"id":6,"t":"hat","brand":"delta"}]`))
	document, err := os.ReadFile("../docs/GROUPS-OF-HITS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, request, _ := strings.Cut(string(document), "```http\nPOST /indexes/shop/search\n")
	body, rest, _ := strings.Cut(request, "\n```")
	_, want, _ := strings.Cut(rest, "```json\n")
	want, _, _ = strings.Cut(want, "\n```")
	check := func(what, answer string) {
		t.Helper()
		var got, expected map[string]any
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatalf("%s: %v in %s", what, err, answer)
		}
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatalf("%v in %s", err, want)
		}
		for _, name := range []string{"processingTimeMs", "requestUid", "indexUid"} {
			delete(got, name)
		}
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("%s: %s\nwant %s", what, answer, want)
		}
	}
	check("search", c.json("POST", "/indexes/shop/search", body).body)
	many := c.json("POST", "/multi-search", `{"queries":[{"indexUid":"shop",`+strings.TrimPrefix(body, "{")+`]}`)
	var results struct{ Results []json.RawMessage }
	if err := json.Unmarshal([]byte(many.body), &results); err != nil || len(results.Results) != 1 {
		t.Fatalf("%v: %s", err, many.body)
	}
	check("multi-search", string(results.Results[0]))

	sorted := c.json("POST", "/indexes/shop/search", strings.Replace(body, `"hitsPerGroup": 2`, `"hitsPerGroup": 2, "sort": ["price:asc"]`, 1))
	if !strings.Contains(sorted.body, `"groups":[{"key":"acme","count":3,"hits":[{"id":4},{"id":5}]}`) {
		t.Errorf("sorted by price: %s", sorted.body)
	}
	for _, wrong := range []string{`{"attribute":"t"}`, `{"attribute":"brand","sort":["brand:asc"]}`} {
		if r := c.json("POST", "/indexes/shop/search", `{"groupBy":`+wrong+`}`); r.code() != "invalid_search_group_by" {
			t.Errorf("%s: %s", wrong, r.body)
		}
	}
}
