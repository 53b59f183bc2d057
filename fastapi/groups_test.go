package fastapi

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestGroupsOfTheManual sends the request of docs/GROUPS-OF-HITS.md, alone and as a query of a multi-search, and compares the answer with
// the documented one.
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

// TestGroupsInANetwork asks three instances with shards for groups: of the first page, which each of them has, and of a later page, for
// which groups are requested again.
func TestGroupsInANetwork(t *testing.T) {
	all := newHosts(t, `{"x":{"remotes":["b"]},"y":{"remotes":["c"]}}`)
	all[0].wait(all[0].json("PATCH", "/indexes/i/settings", `{"filterableAttributes":["n","t"],"sortableAttributes":["n"]}`))
	filled(all)
	for _, tt := range []struct{ path, body, want string }{
		{"/indexes/i/search", `{"q":"red","sort":["n:desc"],"limit":1,"offset":%d,"groupBy":{"attribute":"n"},"attributesToRetrieve":["id"]}`, `"key":%d,"count":1,"hits":[{"id":%[1]d,`},
		{"/multi-search", `{"federation":{"limit":1,"offset":%d,"groupBy":{"attribute":"n"}},"queries":[{"indexUid":"i","q":"red","sort":["n:desc"],"attributesToRetrieve":["id"]}]}`,
			`"key":%d,"count":1,"hits":[{"id":%[1]d,`},
	} {
		for _, offset := range []int{0, 40} {
			body, want := fmt.Sprintf(tt.body, offset), `"hits":[],"groups":[{`+fmt.Sprintf(tt.want, 59-offset)
			for _, h := range all {
				var r reply
				for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && !strings.Contains(r.body, want); time.Sleep(5 * time.Millisecond) { // settings travel
					r = h.json("POST", tt.path, body)
				}
				if !strings.Contains(r.body, want) || !strings.Contains(r.body, `"estimatedTotalHits":60`) {
					t.Errorf("%s at %s: %d %s", body, h.name, r.status, r.body)
				}
			}
		}
	}
	const one = `{"q":"red","groupBy":{"attribute":"t","hitsPerGroup":60}}`
	for _, h := range all {
		if r := h.json("POST", "/indexes/i/search", one); !strings.Contains(r.body, `"groups":[{"key":"red","count":60,"hits":[{`) || strings.Count(r.body, `"id":`) != 60 || !strings.Contains(r.body, `"estimatedTotalHits":1,`) {
			t.Errorf("%s: %s", h.name, r.body)
		}
	}
	if r := all[1].json("POST", "/indexes/i/search", `{"groupBy":{"attribute":"id"}}`); r.code() != "invalid_search_group_by" {
		t.Error(r.body)
	}
	if r := all[1].json("POST", "/multi-search", `{"federation":{"groupBy":{"attribute":"id"}},"queries":[{"indexUid":"i"}]}`); r.code() != "invalid_multi_search_group_by" || !strings.Contains(r.body, "in the index `i`") {
		t.Error(r.body)
	}
}
