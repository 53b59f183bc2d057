package fastapi

import (
	"strings"
	"testing"
)

func TestWebhooks(t *testing.T) {
	c := newClient(t, Options{})
	const unknown = "9f8e7d6c-5b4a-4c3d-8e2f-1a0b9c8d7e6f"
	if r := c.get("/webhooks"); r.status != 200 || r.body != `{"results":[]}` {
		t.Fatalf("before any was created: %d %s", r.status, r.body)
	}
	r := c.json("POST", "/webhooks", `{"url": "https://hooks.test/", "headers": {"X-\u0041": "b", "authorization": "Bearer abcdefghijkl", "N": null}}`)
	_, id, _ := strings.Cut(r.body, `{"uuid":"`)
	id, rest, _ := strings.Cut(id, `"`)
	const shown = `,"isEditable":true,"url":"https://hooks.test/","headers":{"N":"","X-A":"b","authorization":"Bearer abXXXX..."}}`
	if r.status != 201 || rest != shown {
		t.Fatalf("created: %d %s", r.status, r.body)
	}
	if again := c.get("/webhooks/" + strings.ToUpper(id)); again.status != 200 || again.body != r.body {
		t.Errorf("got: %d %s", again.status, again.body)
	}
	if list := c.get("/webhooks"); list.body != `{"results":[`+r.body+`]}` {
		t.Errorf("listed: %s", list.body)
	}
	for _, tt := range []struct{ method, path, body, code string }{
		{"POST", "/webhooks", `{}`, "invalid_webhook_url"},
		{"POST", "/webhooks", `{"url": null}`, "invalid_webhook_url"},
		{"POST", "/webhooks", `{"url": 12}`, "invalid_webhook_url"},
		{"POST", "/webhooks", `{"url": "https://hooks.test/", "headers": "x"}`, "invalid_webhook_headers"},
		{"POST", "/webhooks", `{"url": "https://hooks.test/", "headers": ["x"]}`, "invalid_webhook_headers"},
		{"POST", "/webhooks", `{"url": "https://hooks.test/", "headers": {"X": 1}}`, "invalid_webhook_headers"},
		{"POST", "/webhooks", `{"url": "https://hooks.test/", "uuid": "` + unknown + `"}`, "immutable_webhook_uuid"},
		{"POST", "/webhooks", `{"url": "https://hooks.test/", "isEditable": true}`, "immutable_webhook_is_editable"},
		{"POST", "/webhooks", `{"url": "https://hooks.test/", "name": "x"}`, "bad_request"},
		{"POST", "/webhooks", `[]`, "bad_request"},
		{"POST", "/webhooks", `{`, "malformed_payload"},
		{"PATCH", "/webhooks/" + id, `{"url": null}`, "invalid_webhook_url"},
		{"PATCH", "/webhooks/" + id, `{"headers": {"a b": "c"}}`, "invalid_webhook_headers"},
		{"PATCH", "/webhooks/" + unknown, `{}`, "webhook_not_found"},
		{"PATCH", "/webhooks/00000000-0000-0000-0000-000000000000", `{}`, "immutable_webhook"},
		{"DELETE", "/webhooks/00000000-0000-0000-0000-000000000000", ``, "immutable_webhook"},
		{"DELETE", "/webhooks/" + unknown, ``, "webhook_not_found"},
		{"GET", "/webhooks/" + unknown, ``, "webhook_not_found"},
		{"GET", "/webhooks/12", ``, "invalid_webhook_uuid"},
		{"PATCH", "/webhooks/12", `{}`, "invalid_webhook_uuid"},
		{"DELETE", "/webhooks/12", ``, "invalid_webhook_uuid"},
	} {
		if r := c.json(tt.method, tt.path, tt.body); r.code() != tt.code {
			t.Errorf("%s %s %s: %d %s, want %s", tt.method, tt.path, tt.body, r.status, r.body, tt.code)
		}
	}
	if r := c.json("PATCH", "/webhooks/"+id, `{"headers": {"N": null, "X-A": "c"}}`); r.status != 200 || !strings.Contains(r.body, `"headers":{"X-A":"c","authorization":"Bearer abXXXX..."}`) {
		t.Errorf("merged: %d %s", r.status, r.body)
	}
	if r := c.json("PATCH", "/webhooks/"+id, `{"url": "https://hooks.test/b", "headers": null}`); !strings.Contains(r.body, `"url":"https://hooks.test/b","headers":{}`) {
		t.Errorf("cleared: %d %s", r.status, r.body)
	}
	if r := c.send("DELETE", "/webhooks/"+id, nil); r.status != 204 || r.body != "" {
		t.Errorf("deleted: %d %s", r.status, r.body)
	}
	if r := c.get("/webhooks"); r.body != `{"results":[]}` {
		t.Errorf("after that: %s", r.body)
	}
}
