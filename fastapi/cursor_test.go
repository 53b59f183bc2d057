package fastapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestCursors reads all hits by cursor over HTTP, by GET and by POST, beyond maxTotalHits, and sends invalid cursors.
func TestCursors(t *testing.T) {
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey)})
	master := c.as(masterKey)
	var docs []string
	for id := range 25 {
		docs = append(docs, fmt.Sprintf(`{"id": %d, "n": %d, "t": "red hat"}`, id, id*7%25))
	}
	master.wait(master.json("PATCH", "/indexes/shop/settings", `{"sortableAttributes": ["n"], "filterableAttributes": ["n"], "pagination": {"maxTotalHits": 10}}`))
	master.wait(master.json("POST", "/indexes/shop/documents", "["+strings.Join(docs, ",")+"]"))
	type page struct {
		Hits, Results []struct{ ID int }
		NextCursor    *string
	}
	read := func(ask func(cursor string) reply) (ids []int, first string) {
		t.Helper()
		for cursor := ""; ; {
			r := ask(cursor)
			var p page
			if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.status != 200 {
				t.Fatalf("%d %s: %v", r.status, r.body, err)
			}
			for _, h := range append(p.Hits, p.Results...) {
				ids = append(ids, h.ID)
			}
			if p.NextCursor == nil {
				return ids, first
			}
			if cursor = *p.NextCursor; first == "" {
				first = cursor
			}
		}
	}
	search := func(body string) func(string) reply {
		return func(cursor string) reply {
			return master.json("POST", "/indexes/shop/search", fmt.Sprintf(body, cursor))
		}
	}
	var byN, byID []int
	for n := range 25 {
		byID = append(byID, n)
		byN = append(byN, slices.IndexFunc(docs, func(d string) bool { return strings.Contains(d, fmt.Sprintf(`"n": %d,`, n)) }))
	}
	sorted := `{"q": "hat", "sort": ["n:asc"], "limit": 4, "cursor": %q}`
	got, next := read(search(sorted))
	if !slices.Equal(got, byN) {
		t.Errorf("sorted: %v, want %v", got, byN)
	}
	for what, ask := range map[string]func(string) reply{
		"search by GET": func(cursor string) reply {
			return master.get("/indexes/shop/search?limit=7&cursor=" + url.QueryEscape(cursor))
		},
		"documents by GET": func(cursor string) reply {
			return master.get("/indexes/shop/documents?limit=7&cursor=" + url.QueryEscape(cursor))
		},
		"documents by POST": func(cursor string) reply {
			return master.json("POST", "/indexes/shop/documents/fetch", fmt.Sprintf(`{"limit": 7, "cursor": %q}`, cursor))
		},
	} {
		if got, _ := read(ask); !slices.Equal(got, byID) {
			t.Errorf("%s: %v", what, got)
		}
	}
	flipped := []byte(next)
	flipped[len(flipped)/2] ^= 1
	for what, r := range map[string]reply{
		"another query": search(`{"q": "red", "sort": ["n:asc"], "limit": 4, "cursor": %q}`)(next),
		"a filter":      search(`{"q": "hat", "sort": ["n:asc"], "filter": "n > 3", "cursor": %q}`)(next),
		"a byte":        search(sorted)(string(flipped)),
		"documents":     master.json("POST", "/indexes/shop/documents/fetch", fmt.Sprintf(`{"cursor": %q}`, next)),
	} {
		if r.status != 400 || r.code() != "invalid_search_cursor" && r.code() != "invalid_document_cursor" {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	if r := search(sorted)(next); r.status != 410 || r.code() != "cursor_expired" { // later pages were already read
		t.Errorf("an earlier page: %d %s", r.status, r.body)
	}
}

// TestCursorsHoldNoRights sends the cursors of one caller with the token of another, whose filter must apply to the page.
func TestCursorsHoldNoRights(t *testing.T) {
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey), CursorSecret: []byte("x")})
	master := c.as(masterKey)
	master.wait(master.json("PATCH", "/indexes/toys/settings", `{"filterableAttributes":["owner"]}`))
	master.wait(master.json("POST", "/indexes/toys/documents", `[{"id":1,"t":"red","owner":"ann"},{"id":2,"t":"red","owner":"ann"},{"id":3,"t":"red","owner":"bob"},{"id":4,"t":"red","owner":"bob"}]`))
	bob := c.as(c.tenantToken(`{"searchRules": {"toys": {"filter": "owner = bob"}}}`))
	for _, query := range []string{"", "red"} { // paging by the last id, and by the set of returned ids
		body := `{"q":"` + query + `","limit":1,"cursor":%q}`
		var page struct {
			Hits       []struct{ ID int }
			NextCursor *string
		}
		r := master.json("POST", "/indexes/toys/search", fmt.Sprintf(body, ""))
		if err := json.Unmarshal([]byte(r.body), &page); err != nil || page.NextCursor == nil {
			t.Fatalf("%v: %s", err, r.body)
		}
		r = bob.json("POST", "/indexes/toys/search", fmt.Sprintf(body, *page.NextCursor))
		if err := json.Unmarshal([]byte(r.body), &page); err != nil || len(page.Hits) != 1 || page.Hits[0].ID != 3 {
			t.Errorf("q %q: the cursor of another caller: %s", query, r.body)
		}
	}
}
