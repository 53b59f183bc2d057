package fastapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// taskEnd is the content of a finished task.
type taskEnd struct {
	Type, Status string
	Details      map[string]any
	Error        struct{ Code, Message string }
}

func (c *client) end(r reply) (end taskEnd) {
	c.t.Helper()
	body := c.wait(r)
	if err := json.Unmarshal([]byte(body), &end); err != nil {
		c.t.Fatalf("%s: %v", body, err)
	}
	return end
}

func TestPartialUpdates(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/a/documents", `[{"id": 1, "n": 1}, {"id": 2}]`))
	const path = "/indexes/a/documents"
	for _, tt := range []struct{ query, kind, body, code string }{
		{"", "text/csv", "id,n\n1,2", "invalid_content_type"},
		{"", "", `{}`, "missing_content_type"},
		{"", contentJSON, ``, "missing_payload"},
		{"", contentJSON, `[1]`, "malformed_payload"},
		{"", contentNDJSON, "{\"id\": 1}\n[", "malformed_payload"},
		{"?atomic=yes", contentJSON, `{}`, "invalid_document_atomic"},
		{"?ifMissing=never", contentJSON, `{}`, "invalid_document_if_missing"},
		{"?primaryKey=id", contentJSON, `{}`, "bad_request"},
	} {
		var headers []string
		if tt.kind != "" {
			headers = []string{"Content-Type", tt.kind}
		}
		r := c.send("PATCH", path+tt.query, strings.NewReader(tt.body), headers...)
		if r.status < 400 || !strings.Contains(r.body, `"code":"`+tt.code+`"`) {
			t.Errorf("%s %s %s: %d %s, want %s", tt.query, tt.kind, tt.body, r.status, r.body, tt.code)
		}
	}

	// An index is not created.
	if end := c.end(c.json("PATCH", "/indexes/none/documents", `{"id": 1, "set": {"a": 1}, "ifMissing": "create"}`)); end.Error.Code != "index_not_found" {
		t.Errorf("another index: %+v", end)
	}
	// Defaults from the query string, and operations that override them.
	end := c.end(c.json("PATCH", path+"?ifMissing=create", `[{"id": 3, "set": {"a": 1}}, {"id": 4, "set": {"a": 1}, "ifMissing": "skip"}, {"id": 5, "set": {"a": 1}, "ifMissing": "fail"}]`))
	if end.Type != "documentEdition" || end.Status != "succeeded" || end.Details["changedDocuments"] != 1.0 || end.Details["skippedDocuments"] != 1.0 || end.Details["failedDocuments"] != 1.0 {
		t.Errorf("%+v", end)
	}
	// CONTAINS needs the experimental feature.
	const contains = `[{"id": 1, "set": {"a": 1}, "filter": "s CONTAINS x"}]`
	c.wait(c.json("PATCH", "/indexes/a/settings", `{"filterableAttributes": ["s"]}`))
	if end := c.end(c.json("PATCH", path+"?atomic=true", contains)); end.Status != "failed" || end.Error.Code != "feature_not_enabled" {
		t.Errorf("%+v", end)
	}
	c.json("PATCH", "/experimental-features", `{"containsFilter": true}`)
	if end := c.end(c.json("PATCH", path+"?atomic=true", contains)); end.Status != "succeeded" || end.Details["skippedDocuments"] != 1.0 {
		t.Errorf("%+v", end)
	}
	// A failed task counts nothing.
	if end := c.end(c.json("PATCH", path+"?atomic=true", `[{"id": 1, "set": {"b": 1}}, {"id": 2, "sett": 1}]`)); end.Status != "failed" ||
		end.Error.Code != "invalid_document_operation" || !strings.Contains(end.Error.Message, "operation 1:") || end.Details["changedDocuments"] != 0.0 {
		t.Errorf("%+v", end)
	}
	if r := c.get(path + "/1"); r.body != `{"id":1,"n":1}` {
		t.Errorf("%s", r.body)
	}
	// The batch has counts, but no positions.
	if r := c.get("/batches?types=documentEdition&statuses=succeeded&limit=1"); !strings.Contains(r.body, `"skippedDocuments":1`) || strings.Contains(r.body, "failures") {
		t.Errorf("%s", r.body)
	}
}
