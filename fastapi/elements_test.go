package fastapi

import (
	"regexp"
	"strings"
	"testing"
)

// TestFiltersOnOneObject sends filters with braces to every route that takes a filter.
func TestFiltersOnOneObject(t *testing.T) {
	c := newProtected(t)
	send := func(method, path, body string) reply {
		t.Helper()
		return c.send(method, path, strings.NewReader(body), "Content-Type", "application/json")
	}
	do := func(method, path, body string) {
		t.Helper()
		if got := c.wait(send(method, path, body)); !strings.Contains(got, `"succeeded"`) {
			t.Fatalf("%s %s: %s", method, path, got)
		}
	}
	ids := func(r reply) string {
		t.Helper()
		if r.status != 200 {
			return r.code()
		}
		var all []string
		for _, m := range regexp.MustCompile(`\{"id":(\d+)`).FindAllStringSubmatch(r.body, -1) {
			all = append(all, m[1])
		}
		return strings.Join(all, " ")
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	const filter = `"filter": "variants.{color = red AND size > 40}"`
	const rule = `{"attributePatterns": ["variants.*"], "features": {"elements": true, "filter": {"equality": true, "comparison": true}}}`
	const plain = `{"attributePatterns": ["variants.*"], "features": {"filter": {"equality": true, "comparison": true}}}`

	do("PATCH", "/indexes/shop/settings", `{"filterableAttributes": [`+plain+`]}`)
	do("POST", "/indexes/shop/documents", `[
		{"id": 1, "variants": [{"color": "red", "size": 38}, {"color": "blue", "size": 44}]},
		{"id": 2, "variants": [{"color": "red", "size": 44}]},
		{"id": 3, "variants": {"color": "red", "size": 45}},
		{"id": 4}]`)
	expect("without the rule", ids(send("POST", "/indexes/shop/search", `{`+filter+`}`)), "invalid_search_filter")
	expect("documents without the rule", ids(send("POST", "/indexes/shop/documents/fetch", `{`+filter+`}`)), "invalid_document_filter")
	do("PATCH", "/indexes/shop/settings", `{"filterableAttributes": [`+rule+`]}`)
	if got := send("GET", "/indexes/shop/settings/filterable-attributes", "").body; !strings.Contains(got, `"elements":true`) {
		t.Errorf("the settings are %s", got)
	}
	expect("search", ids(send("POST", "/indexes/shop/search", `{`+filter+`}`)), "2 3")
	expect("query string", ids(c.get("/indexes/shop/search?filter=variants.%7Bcolor+%3D+red+AND+size+%3E+40%7D")), "2 3")
	expect("negated", ids(send("POST", "/indexes/shop/search", `{"filter": [["NOT variants.{color = red AND size > 40}"]]}`)), "1 4")
	expect("documents", ids(send("POST", "/indexes/shop/documents/fetch", `{`+filter+`}`)), "2 3")
	expect("federated", ids(send("POST", "/multi-search", `{"federation": {}, "queries": [{"indexUid": "shop", `+filter+`}]}`)), "2 3")
	const contains = `"sort": ["variants.{color CONTAINS e}.size:desc"]`
	sorts := [][2]string{
		{"/indexes/shop/search", `{` + contains + `}`},
		{"/indexes/shop/search", `{"groupBy": {"attribute": "variants.color", ` + contains + `}}`},
		{"/indexes/shop/documents/fetch", `{` + contains + `}`},
		{"/indexes/shop/documents/fetch", `{"cursor": "", ` + contains + `}`},
		{"/multi-search", `{"federation": {}, "queries": [{"indexUid": "shop", ` + contains + `}]}`},
	}
	for _, sort := range sorts {
		expect("CONTAINS in a sort of "+sort[0], ids(send("POST", sort[0], sort[1])), "feature_not_enabled")
	}
	send("PATCH", "/experimental-features", `{"containsFilter": true}`)
	for _, sort := range sorts {
		if !strings.Contains(sort[1], "groupBy") { // its answer has no order
			expect("a sort of "+sort[0], ids(send("POST", sort[0], sort[1])), "3 1 2 4")
		}
	}
	expect("syntax", ids(send("POST", "/indexes/shop/search", `{"filter": "variants.{color = red"}`)), "invalid_search_filter")
	token := c.as(c.tenantToken(`{"searchRules": {"shop": {` + filter + `}}}`))
	expect("tenant token", ids(token.send("POST", "/indexes/shop/search", strings.NewReader(`{"filter": "variants.size < 45"}`), "Content-Type", "application/json")), "2")

	send("PATCH", "/experimental-features", `{"foreignKeys": true, "editDocumentsByFunction": true}`)
	do("PATCH", "/indexes/orders/settings", `{"filterableAttributes": ["product"], "foreignKeys": [{"fieldName": "product", "foreignIndexUid": "shop"}]}`)
	do("POST", "/indexes/orders/documents", `[{"id": 7, "product": 1}, {"id": 8, "product": 2}]`)
	r := send("POST", "/indexes/orders/search", `{"filter": "_foreign(product, variants.{color = red AND size > 40})"}`)
	if !strings.Contains(r.body, `"id":8`) || strings.Contains(r.body, `"id":7`) {
		t.Errorf("foreign: %s", r.body)
	}

	do("POST", "/indexes/shop/documents/edit", `{`+filter+`, "function": "doc.found = 1"}`)
	expect("edited", ids(send("POST", "/indexes/shop/search", `{"q": "1", "attributesToSearchOn": ["found"]}`)), "2 3")
	do("POST", "/indexes/shop/documents/delete", `{"filter": "variants.{color = red AND size > 44}"}`)
	expect("after the deletion", ids(send("POST", "/indexes/shop/documents/fetch", `{}`)), "1 2 4")
}
