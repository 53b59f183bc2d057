package fastapi

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	c := newClient(t, Options{})
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
