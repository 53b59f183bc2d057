package fastapi

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestSearchesDuringASettingsChange searches continuously while a change of settings rebuilds the index. Every answer must follow the old
// settings in all parts until the first that follows the new ones.
func TestSearchesDuringASettingsChange(t *testing.T) {
	c, _ := newInstance(t, Options{})
	var docs strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&docs, `{"id":%d,"left":"red fox %d","right":"blue fox","size":%d}`+"\n", i, i%7, i%50)
	}
	states := []string{
		`{"searchableAttributes":["left"],"displayedAttributes":["id","left"],"filterableAttributes":["size"],"sortableAttributes":["id"],
			"rankingRules":["words","typo","size:asc"],"stopWords":[],"synonyms":{"canine":["red"]}}`,
		`{"searchableAttributes":["right"],"displayedAttributes":["id","right"],"filterableAttributes":["size","left"],"sortableAttributes":["size"],
			"rankingRules":["words","typo","size:desc"],"stopWords":["fox"],"synonyms":{"canine":["blue"]}}`,
	}
	if body := c.wait(c.json("PATCH", "/indexes/i/settings", states[0])); !strings.Contains(body, "succeeded") {
		t.Fatal(body)
	}
	if body := c.wait(c.send("POST", "/indexes/i/documents", strings.NewReader(docs.String()), "Content-Type", "application/x-ndjson")); !strings.Contains(body, "succeeded") {
		t.Fatal(body)
	}
	queries := []string{
		`{"q":"red","facets":["*"],"limit":5}`,
		`{"q":"blue","filter":"size > 20","limit":5,"attributesToHighlight":["*"]}`,
		`{"q":"canine fox","hitsPerPage":3,"showRankingScoreDetails":true}`,
		`{"limit":5,"filter":"size < 40","facets":["size"]}`,
	}
	search := func(q string) (reply, string) {
		r := c.json("POST", "/indexes/i/search", q)
		return r, still(r.body)
	}
	answers := make([][]string, len(states)) // by state and query
	for state, s := range states {
		if body := c.wait(c.json("PATCH", "/indexes/i/settings", s)); !strings.Contains(body, "succeeded") {
			t.Fatal(body)
		}
		for _, q := range queries {
			_, body := search(q)
			answers[state] = append(answers[state], body)
		}
	}
	for i := range queries {
		if answers[0][i] == answers[1][i] {
			t.Fatalf("%s has one answer with both settings: %s", queries[i], answers[0][i])
		}
	}
	for round := range 6 {
		before, after := answers[(round+1)%2], answers[round%2]
		done := make(chan struct{})
		var clients sync.WaitGroup
		for n := range 2 {
			clients.Go(func() {
				changed := false
				for i := n; ; i++ {
					last := false
					select {
					case <-done:
						last = true
					default:
					}
					k := i % len(queries)
					switch r, body := search(queries[k]); {
					case r.status != 200:
						t.Errorf("%s: %d %s", queries[k], r.status, r.body)
						return
					case body == after[k]:
						changed = true
					case changed || last || body != before[k]:
						t.Errorf("%s, the new settings seen: %v, the change done: %v: %s", queries[k], changed, last, body)
						return
					}
					if last {
						return
					}
				}
			})
		}
		body := c.wait(c.json("PATCH", "/indexes/i/settings", states[round%2]))
		close(done)
		clients.Wait()
		if !strings.Contains(body, "succeeded") {
			t.Fatal(body)
		}
	}
}
