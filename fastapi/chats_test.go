package fastapi

import (
	"strings"
	"testing"
)

func TestChatWorkspaces(t *testing.T) {
	c := newClient(t, Options{})
	if r := c.get("/chats"); r.code() != "feature_not_enabled" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	c.json("PATCH", "/experimental-features", `{"chatCompletions": true}`)
	for _, tt := range []struct{ method, path, body, code string }{
		{"GET", "/chats/w", ``, "chat_not_found"}, {"GET", "/chats/w/settings", ``, "chat_not_found"},
		{"DELETE", "/chats/w", ``, "chat_not_found"}, {"DELETE", "/chats/w/settings", ``, "chat_not_found"},
		{"PATCH", "/chats/w/settings", ``, "missing_payload"}, {"PATCH", "/chats/w/settings", `{`, "malformed_payload"},
		{"PATCH", "/chats/w/settings", `[]`, "bad_request"}, {"PATCH", "/chats/w/settings", `{"model": "x"}`, "bad_request"},
		{"PATCH", "/chats/w/settings", `{"prompts": {"q": "x"}}`, "bad_request"}, {"PATCH", "/chats/w/settings", `{"prompts": 3}`, "bad_request"},
		{"PATCH", "/chats/w/settings", `{"source": ""}`, "bad_request"}, {"PATCH", "/chats/w/settings", `{"source": 1}`, "bad_request"},
		{"GET", "/chats?limit=x", ``, "invalid_index_limit"}, {"GET", "/chats?x=1", ``, "bad_request"},
	} {
		if r := c.json(tt.method, tt.path, tt.body); r.code() != tt.code {
			t.Errorf("%s %s %s: %d %s, want %s", tt.method, tt.path, tt.body, r.status, r.body, tt.code)
		}
	}
	for _, name := range []string{"orgId", "projectId", "apiVersion", "deploymentId", "baseUrl", "apiKey"} {
		for _, bad := range []string{`1`, `{"a":"sk-hidden"}`, `["sk-hidden"]`, `true`} {
			r := c.json("PATCH", "/chats/w/settings", `{"`+name+`": `+bad+`}`)
			if r.code() != "bad_request" || name == "apiKey" && strings.Contains(r.body, "hidden") {
				t.Errorf("%s %s: %d %s", name, bad, r.status, r.body)
			}
		}
	}
	for _, name := range []string{"system", "searchDescription", "searchQParam", "searchFilterParam", "searchIndexUidParam"} {
		if r := c.json("PATCH", "/chats/w/settings", `{"prompts": {"`+name+`": 1}}`); r.code() != "bad_request" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if r := c.get("/chats"); r.body != `{"results":[],"offset":0,"limit":20,"total":0}` {
		t.Errorf("a refused change created a workspace: %s", r.body)
	}

	r := c.json("PATCH", "/chats/a%2Fb%20c/settings", `{"source":"vLlm","baseUrl":"http://localhost:1/v1","apiKey":"sk-0123456789abcdefgh","orgId":"o","prompts":{"system":"S","searchDescription":"D","searchQParam":"Q","searchFilterParam":"F","searchIndexUidParam":"I"}}`)
	const shown = `{"source":"vLlm","orgId":"o","projectId":null,"apiVersion":null,"deploymentId":null,"baseUrl":"http://localhost:1/v1","apiKey":"sk-XXXXX...","prompts":{"system":"S","searchDescription":"D","searchQParam":"Q","searchFilterParam":"F","searchIndexUidParam":"I"}}`
	if r.status != 200 || r.body != shown {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := c.get("/chats/a%2Fb%20c"); r.body != `{"uid":"a/b c"}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := c.json("PATCH", "/chats/a%2Fb%20c/settings", `{"source":null,"baseUrl":"http://elsewhere.test/"}`); r.code() != "bad_request" || !strings.Contains(r.body, "apiKey") {
		t.Errorf("the key is sent to another host: %d %s", r.status, r.body)
	}
	if r := c.json("PATCH", "/chats/a%2Fb%20c/settings", `{"orgId":null,"prompts":null}`); !strings.Contains(r.body, `"orgId":null`) || strings.Contains(r.body, `"system":"S"`) || strings.Contains(r.body, `"system":null`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := c.send("DELETE", "/chats/a%2Fb%20c/settings", nil); r.status != 200 || !strings.Contains(r.body, `"apiKey":null`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := c.send("DELETE", "/chats/a%2Fb%20c", nil); r.status != 204 || r.body != "" {
		t.Errorf("%d %s", r.status, r.body)
	}
}
