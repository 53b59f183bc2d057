package fastapi

import (
	"fmt"
	"testing"
)

// TestListsAreBounded requests lists that exceed the limit of an answer.
func TestListsAreBounded(t *testing.T) {
	o := Options{AnswerLimit: 64 << 10, Keys: openKeys(t, masterKey)}
	openInstance(t, &o)
	c := newClient(t, o).as(masterKey)
	var last reply
	for i := range 300 {
		last = c.json("POST", "/indexes", fmt.Sprintf(`{"uid":"index-%d"}`, i))
		c.json("POST", "/keys", `{"actions":["search"],"indexes":["*"],"expiresAt":null}`)
	}
	c.wait(last)
	for path, code := range map[string]string{"/tasks": "invalid_task_limit", "/batches": "invalid_task_limit", "/keys": "invalid_api_key_limit"} {
		r := c.get(path + "?limit=20")
		if r.status != 200 {
			t.Errorf("a page of %s: %d %.300s", path, r.status, r.body)
		}
		if r := c.get(path + "?limit=1000"); r.status != 400 || r.code() != code {
			t.Errorf("all of %s: %d %.300s", path, r.status, r.body)
		}
	}
	if r := c.get("/indexes?limit=1000"); r.status != 200 || len(r.body) < 300*50 {
		t.Errorf("/indexes: %d %.300s", r.status, r.body)
	}
	if held := heldAtEnd(c.server); held != 0 {
		t.Errorf("%d bytes are held when all is answered", held)
	}
}
