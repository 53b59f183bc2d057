package fastapi

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	o := Options{}
	openInstance(t, &o)
	c := newClient(t, o)
	const path = "/dynamic-search-rules"
	for _, r := range []reply{c.json("POST", path, `{}`), c.get(path + "/a"), c.json("PATCH", path+"/a", `{"active": true}`), c.send("DELETE", path+"/a", nil)} {
		if r.code() != "feature_not_enabled" {
			t.Errorf("while the feature is off: %d %s", r.status, r.body)
		}
	}
	c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": true}`)
	const pin = `"actions":[{"selector":{"id":"1"},"action":{"type":"pin","position":0}}]`
	for _, uid := range []string{"b-2", "a_1", "A"} {
		want := `{"uid":"` + uid + `","active":true,"conditions":[],` + pin + `}`
		if r := c.json("PATCH", path+"/"+uid, `{`+pin+`}`); r.status != 201 || r.body != want {
			t.Errorf("created: %d %s, want %s", r.status, r.body, want)
		}
	}
	const changed = `{"uid":"b-2","description":"d\"","priority":18446744073709551615,"active":false,"conditions":[],` + pin + `}`
	if r := c.json("PATCH", path+"/b-2", `{"description": "d\"", "priority": 18446744073709551615, "active": false}`); r.status != 200 || r.body != changed {
		t.Errorf("changed: %d %s, want %s", r.status, r.body, changed)
	}
	if r := c.get(path + "/b-2"); r.status != 200 || r.body != changed {
		t.Errorf("got: %d %s, want %s", r.status, r.body, changed)
	}
	for _, tt := range []struct{ method, path, body, code string }{
		{"PATCH", "/new", `{}`, "invalid_dynamic_search_rule_actions"},
		{"PATCH", "/new", `{"actions": null}`, "invalid_dynamic_search_rule_actions"},
		{"PATCH", "/new", `{"actions": []}`, "invalid_dynamic_search_rule_actions"},
		{"PATCH", "/new", `{"actions": [{"selector": {"filter": "a CONTAINS b"}, "action": {"type": "scale", "factor": 2}}]}`, "feature_not_enabled"},
		{"PATCH", "/A", `{"description": 3}`, "invalid_dynamic_search_rule_description"},
		{"PATCH", "/A", `{"description": ["x"]}`, "invalid_dynamic_search_rule_description"},
		{"PATCH", "/A", `{"priority": -1}`, "invalid_dynamic_search_rule_priority"},
		{"PATCH", "/A", `{"priority": 1.5}`, "invalid_dynamic_search_rule_priority"},
		{"PATCH", "/A", `{"priority": "1"}`, "invalid_dynamic_search_rule_priority"},
		{"PATCH", "/A", `{"priority": 18446744073709551616}`, "invalid_dynamic_search_rule_priority"},
		{"PATCH", "/A", `{"active": 1}`, "invalid_dynamic_search_rule_active"},
		{"PATCH", "/A", `{"active": "true"}`, "invalid_dynamic_search_rule_active"},
		{"PATCH", "/A", `{"conditions": "x"}`, "invalid_dynamic_search_rule_conditions"},
		{"PATCH", "/A", `{"conditions": [{"scope": "query"}]}`, "bad_request"},
		{"PATCH", "/A", `{"actions": {}}`, "invalid_dynamic_search_rule_actions"},
		{"PATCH", "/A", `{"conditions": {}}`, "invalid_dynamic_search_rule_conditions"},
		{"PATCH", "/A", `{"uid": "A"}`, "bad_request"},
		{"PATCH", "/A", `{"Active": true}`, "bad_request"},
		{"PATCH", "/A", `[]`, "bad_request"},
		{"PATCH", "/A", `null`, "bad_request"},
		{"PATCH", "/A", `{`, "malformed_payload"},
		{"PATCH", "/A", ``, "missing_payload"},
		{"PATCH", "/a%20b", `{` + pin + `}`, "dynamic_search_rule_not_found"},
		{"GET", "/a%20b", ``, "dynamic_search_rule_not_found"},
		{"GET", "/none", ``, "dynamic_search_rule_not_found"},
		{"DELETE", "/none", ``, "dynamic_search_rule_not_found"},
		{"POST", "", `{"offset": -1}`, "invalid_dynamic_search_rule_offset"},
		{"POST", "", `{"limit": "x"}`, "invalid_dynamic_search_rule_limit"},
		{"POST", "", `{"filter": []}`, "invalid_dynamic_search_rule_filter"},
		{"POST", "", `{"filter": {"x": 1}}`, "invalid_dynamic_search_rule_filter"},
		{"POST", "", `{"filter": {"active": 1}}`, "invalid_dynamic_search_rule_filter_active"},
		{"POST", "", `{"filter": {"query": 1}}`, "invalid_dynamic_search_rule_filter_query"},
		{"POST", "", `{"filter": {"attributePatterns": [1]}}`, "invalid_dynamic_search_rule_filter_attribute_patterns"},
		{"POST", "", `{"x": 1}`, "bad_request"},
	} {
		if r := c.json(tt.method, path+tt.path, tt.body); r.code() != tt.code {
			t.Errorf("%s %s %s: %d %s, want %s", tt.method, tt.path, tt.body, r.status, r.body, tt.code)
		}
	}
	for body, want := range map[string]string{
		`{}`: "A a_1 b-2", `{"offset": 1, "limit": 1}`: "a_1", `{"limit": 0}`: "", `{"filter": null}`: "A a_1 b-2",
		`{"filter": {"active": false}}`: "b-2", `{"filter": {"active": null, "attributePatterns": ["*_*", "A"]}}`: "A a_1",
		`{"filter": {"attributePatterns": []}}`: "",
	} {
		r := c.json("POST", path, body)
		var uids []string
		for _, part := range strings.Split(r.body, `{"uid":"`)[1:] {
			uid, _, _ := strings.Cut(part, `"`)
			uids = append(uids, uid)
		}
		if got := strings.Join(uids, " "); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if r := c.send("DELETE", path+"/A", nil); r.status != 204 || r.body != "" {
		t.Errorf("deleted: %d %s", r.status, r.body)
	}
	if r := c.get(path); r.status != 405 {
		t.Errorf("GET %s: %d", path, r.status)
	}
}

// newRules returns a client of an instance with search rules, and a function that lists the uids of rules.
func newRules(t *testing.T, o Options) (c *client, listed func(body string) string) {
	openInstance(t, &o)
	c = newClient(t, o)
	c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": true}`)
	return c, func(body string) string {
		t.Helper()
		r := c.json("POST", rulesPath, body)
		var list struct{ Results []struct{ UID string } }
		if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.status != 200 {
			t.Fatalf("%s: %d %s", body, r.status, r.body)
		}
		var uids []string
		for _, r := range list.Results {
			uids = append(uids, r.UID)
		}
		return strings.Join(uids, " ")
	}
}

const rulesPath = "/dynamic-search-rules"

// TestNewerRules writes rules in the forms of v1.50 and v1.54, reads, finds and deletes them.
func TestNewerRules(t *testing.T) {
	c, listed := newRules(t, Options{})
	if r := c.json("PATCH", rulesPath+"/a?customMetadata=noted", `{"precedence": 2, "conditions": {"query": {"words": "winter sale"}}, "actions": {"pin": [{"id": "1", "position": 0}]}}`); r.status != 202 {
		t.Fatalf("%d %s", r.status, r.body)
	} else if got := c.wait(r); !strings.Contains(got, `"indexUid":".meili_dsr","status":"succeeded","type":"dsrUpdate","canceledBy":null,"details":{"rule":{"precedence":2,"conditions":{"query":{"words":"winter sale"}},"actions":{"pin":[{"id":"1","position":0}]}},"updatedRules":1}`) ||
		!strings.Contains(got, `"customMetadata":"noted"`) || !strings.Contains(r.body, `"indexUid":".meili_dsr","status":"enqueued","type":"dsrUpdate"`) {
		t.Errorf("%s, then %s", r.body, got)
	}
	moment := regexp.MustCompile(`"lastUpdatedAt":"(20[^"]*Z)"`)
	shown := func(uid string) string {
		return moment.ReplaceAllString(c.get(rulesPath+"/"+uid).body, `"lastUpdatedAt":"T"`)
	}
	if got, want := shown("a"), `{"uid":"a","precedence":2,"active":true,"conditions":{"query":{"words":"winter sale"}},"actions":{"pin":[{"id":"1","position":0}]},"lastUpdatedAt":"T"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// An update without a form uses that of the rule; a rule of v1.42 stays one.
	c.wait(c.json("PATCH", rulesPath+"/a", `{"active": false, "description": "Coats of winter"}`))
	c.wait(c.json("PATCH", rulesPath+"/b", `{"precedence": null, "actions": [{"selector": {"id": "1"}, "action": {"type": "pin", "position": 0}}]}`))
	c.wait(c.json("PATCH", rulesPath+"/b", `{"actions": [{"selector": {"id": "2"}, "action": {"type": "pin", "position": 0}}]}`))
	for uid, want := range map[string]string{
		"a": `{"uid":"a","description":"Coats of winter","precedence":2,"active":false,"conditions":{"query":{"words":"winter sale"}},"actions":{"pin":[{"id":"1","position":0}]},"lastUpdatedAt":"T"}`,
		"b": `{"uid":"b","active":true,"conditions":{},"actions":[{"selector":{"id":"2"},"action":{"type":"pin","position":0}}],"lastUpdatedAt":"T"}`,
	} {
		if got := shown(uid); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for i, status := range []int{201, 200} {
		const old = `{"uid":"old","active":true,"conditions":[],"actions":[{"selector":{"id":"1"},"action":{"type":"pin","position":0}}]}`
		if r := c.json("PATCH", rulesPath+"/old", `{"actions": [{"selector": {"id": "1"}, "action": {"type": "pin", "position": 0}}]}`); r.status != status || r.body != old {
			t.Errorf("%d: %d %s", i, r.status, r.body)
		}
	}
	for body, want := range map[string]string{
		`{}`: "b a old", `{"limit": 1}`: "b", `{"offset": 2}`: "old", `{"filter": {"active": false}}`: "a", `{"filter": {"query": "wintre"}}`: "a", `{"filter": {"query": "coats nothing"}}`: "a",
		`{"filter": {"query": "sale", "active": true}}`: "", `{"filter": {"query": null}}`: "b a old", `{"filter": {"query": ""}}`: "b a old",
	} {
		if got := listed(body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	// A failed task leaves the rule as it was.
	c.json("PATCH", rulesPath+"/two", `{"priority": 1, "conditions": [{"scope": "query", "contains": "a"}, {"scope": "query", "contains": "b"}], "actions": [{"selector": {"id": "1"}, "action": {"type": "pin", "position": 0}}]}`)
	before := c.get(rulesPath + "/two").body
	if got := c.wait(c.json("PATCH", rulesPath+"/two", `{"precedence": 3}`)); !strings.Contains(got, `"status":"failed"`) || !strings.Contains(got, `"code":"bad_request"`) || c.get(rulesPath+"/two").body != before {
		t.Errorf("%s, and then %s", got, c.get(rulesPath+"/two").body)
	}
	if r := c.send("DELETE", rulesPath+"/two", nil); r.status != 204 {
		t.Errorf("a rule of v1.42 is deleted: %d %s", r.status, r.body)
	}
	if r := c.send("DELETE", rulesPath+"/none", nil); r.status != 404 {
		t.Errorf("a missing rule is deleted: %d %s", r.status, r.body)
	}
	if got := c.wait(c.send("DELETE", rulesPath+"/a", nil)); !strings.Contains(got, `"type":"dsrUpdate","canceledBy":null,"details":{"updatedRules":1}`) || listed(`{}`) != "b old" {
		t.Errorf("%s, rules left: %s", got, listed(`{}`))
	}
	if got := c.wait(c.send("DELETE", rulesPath, nil)); !strings.Contains(got, `"indexUid":".meili_dsr","status":"succeeded","type":"dsrClear","canceledBy":null,"details":{"deletedDocuments":2}`) || listed(`{}`) != "" {
		t.Errorf("%s, rules left: %s", got, listed(`{}`))
	}
	if r := c.get("/tasks?types=dsrUpdate,dsrClear&indexUids=.meili_dsr&limit=1"); !strings.Contains(r.body, `"total":7`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestNewerRulesInSearches pins and hides documents by words and by filters.
func TestNewerRulesInSearches(t *testing.T) {
	c, _ := newRules(t, Options{})
	c.wait(c.json("PATCH", "/indexes/toys/settings", `{"filterableAttributes": ["color", "size"]}`))
	c.wait(c.json("POST", "/indexes/toys/documents", `[{"id": 1, "title": "where is call history", "color": "red", "size": 3}, {"id": 2, "title": "history of calls", "color": "red", "size": 5}, {"id": 3, "title": "other", "color": "blue", "size": 3}]`))
	c.json("PATCH", rulesPath+"/words", `{"precedence": 1, "conditions": {"query": {"words": "History call"}}, "actions": {"pin": [{"id": "3", "position": 0, "indexUid": "toys"}]}}`)
	c.json("PATCH", rulesPath+"/filter", `{"precedence": 2, "conditions": {"filter": {"values": {"color": "red", "size": 5}}}, "actions": {"scale": [{"weight": 0, "ids": ["2"]}]}}`)
	c.wait(c.json("PATCH", rulesPath+"/elsewhere", `{"precedence": 0, "actions": {"pin": [{"id": "1", "position": 0, "indexUid": "other"}]}}`))
	for body, want := range map[string]string{
		`{"q": "where is call history"}`: "3 1", `{"q": "history"}`: "2 1", `{"q": "call histor"}`: "1",
		`{"q": "history", "filter": "color = red AND size > 4"}`: "", `{"q": "history", "filter": "color IN [red, blue] AND size > 2"}`: "1", `{"q": "history", "filter": "color = red"}`: "2 1", `{"q": "history", "filter": "color = red AND size != 3"}`: "",
		`{"q": "history", "filter": "color = red AND size != 5"}`: "1",
	} {
		r := c.json("POST", "/indexes/toys/search", strings.TrimSuffix(body, "}")+`, "attributesToRetrieve": ["id"]}`)
		var ids []string
		for _, m := range regexp.MustCompile(`"id":(\d)`).FindAllStringSubmatch(r.body, -1) {
			ids = append(ids, m[1])
		}
		if got := strings.Join(ids, " "); got != want || r.status != 200 {
			t.Errorf("%s: %s, want %s: %s", body, got, want, r.body)
		}
	}
}

// TestRulesOfTheNewestAPI checks rules of v1.54 where it conflicts with v1.42.
func TestRulesOfTheNewestAPI(t *testing.T) {
	c, listed := newRules(t, Options{Newest: true})
	for _, body := range []string{`{}`, `{"actions": {}}`, `{"conditions": {}, "actions": []}`, `{"active": true}`} {
		c.wait(c.json("PATCH", rulesPath+"/r", body))
	}
	if got := c.get(rulesPath + "/r").body; !strings.HasPrefix(got, `{"uid":"r","active":true,"conditions":{},"actions":[],"lastUpdatedAt":"`) {
		t.Errorf("%s", got)
	}
	if r := c.json("PATCH", rulesPath+"/old", `{"priority": 1, "actions": [{"selector": {"id": "1"}, "action": {"type": "pin", "position": 0}}]}`); r.status != 201 {
		t.Errorf("the form of v1.42: %d %s", r.status, r.body)
	}
	if r := c.json("POST", rulesPath, `{"filter": {"attributePatterns": ["*"]}}`); r.code() != "invalid_dynamic_search_rule_filter" {
		t.Errorf("patterns: %d %s", r.status, r.body)
	}
	for _, uid := range []string{"r", "old", "none"} {
		c.wait(c.send("DELETE", rulesPath+"/"+uid, nil))
	}
	if got := listed(`{}`); got != "" {
		t.Errorf("rules left: %s", got)
	}
}
