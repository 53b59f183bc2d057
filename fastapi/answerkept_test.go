package fastapi

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"svc/internal/search"
)

// TestCachedAnswers repeats requests in three forms while documents, settings, features and rules change. Every answer must equal that to
// the same request in new bytes, which cannot be cached.
func TestCachedAnswers(t *testing.T) {
	c := newProtected(t)
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	word := func() string { return pick("red", "green", "blue", "tree", "house", "river") }
	document := func() string {
		return fmt.Sprintf(`[{"id": %d, "title": "%s %s", "text": "%s %s", "owner": "%s", "n": %d}]`,
			r.IntN(60), word(), word(), word(), word(), pick("ann", "bob"), r.IntN(9))
	}
	change := func(method, path, body string) {
		t.Helper()
		if done := c.wait(c.json(method, path, body)); !strings.Contains(done, `"succeeded"`) {
			t.Fatal(done)
		}
	}
	change("PATCH", "/indexes/toys/settings", `{"filterableAttributes": ["owner", "n"], "sortableAttributes": ["n"]}`)
	change("POST", "/indexes/toys/documents", `[{"id": 1, "title": "pinned by a rule"}]`)
	for range 40 {
		change("POST", "/indexes/toys/documents", document())
	}
	ann := c.as(c.tenantToken(`{"searchRules": {"toys": {"filter": "owner = ann"}}}`))
	bob := c.as(c.tenantToken(`{"searchRules": {"toys": {"filter": "owner = bob"}}}`))
	const pin = `{"actions": [{"selector": {"id": "1"}, "action": {"type": "pin", "position": 0}}]}`
	c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": true}`)
	c.json("PATCH", "/dynamic-search-rules/first", pin)
	c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": false}`)
	questions := []string{
		`{}`, `{"q": "red"}`, `{"q": "gren", "limit": 3}`, `{"q": "red tree", "offset": 1}`, `{"q": "b", "facets": ["owner", "n"]}`,
		`{"q": "house", "filter": "n > 4", "sort": ["n:desc"]}`, `{"q": "tree", "attributesToHighlight": ["*"], "showMatchesPosition": true}`,
		`{"q": "\"blue river\"", "page": 1, "hitsPerPage": 2}`, `{"q": "red", "distinct": "owner"}`,
		`{"q": "red", "showRankingScoreDetails": true}`, `{"q": "red", "limit": -1}`, `{"q": "red", "nothing": 1}`, `{"filter": "gone = 1"}`,
		`{"q": "red", "useNetwork": false}`, `{"q": "blue", "showPerformanceDetails": false, "attributesToRetrieve": ["id"]}`,
	}
	spaces := 0
	body := questions[0]
	for n := range 600 {
		if r.IntN(3) == 0 {
			switch r.IntN(14) {
			case 0:
				change("DELETE", fmt.Sprintf("/indexes/toys/documents/%d", 2+r.IntN(58)), "")
			case 1:
				change("PATCH", "/indexes/toys/settings", `{"displayedAttributes": `+pick(`["*"]`, `["id", "title"]`)+`, "stopWords": `+pick(`[]`, `["red"]`)+`}`)
			case 2:
				change("POST", "/indexes/toys/documents", document())
			case 3:
				c.json("PATCH", "/experimental-features", `{"network": `+pick("true", "false", "false")+`}`)
			case 4, 5, 6:
				c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": `+pick("true", "false", "false")+`, "network": false}`)
			case 7:
				c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": true, "network": false}`)
				fallthrough
			case 8, 9:
				c.json("PATCH", "/dynamic-search-rules/first", `{"active": `+pick("true", "false")+`}`)
			default:
				c.json("PATCH", "/experimental-features", `{"containsFilter": `+pick("true", "false")+`}`)
			}
		}
		if r.IntN(3) == 0 {
			if body = questions[r.IntN(len(questions))]; r.IntN(3) == 0 {
				body = `{"q": "river", "filter": "owner CONTAINS n"}`
			}
		}
		caller := []*client{c, c, c, ann, bob}[r.IntN(5)]
		spaces++
		want := caller.json("POST", "/indexes/toys/search", "{"+strings.Repeat(" ", spaces)+body[1:])
		again := 1 + r.IntN(4)
		for i := range again {
			got := caller.json("POST", "/indexes/toys/search", body)
			if got.status != want.status || still(got.body) != still(want.body) {
				t.Fatalf("seed %d, %d: %s, for the %d. time:\ngot  %d %s\nwant %d %s", seed, n, body, i+1, got.status, got.body, want.status, want.body)
			}
			inMany := caller.json("POST", "/multi-search", `{"queries": [{"indexUid": "toys", `+strings.TrimPrefix(body, "{")+`, {"indexUid": "toys"}]}`)
			if body == `{}` {
				continue // has a comma too many there
			}
			if wanted := `{"results":[{"indexUid":"toys",` + strings.TrimPrefix(still(want.body), "{"); want.status == 200 && !strings.HasPrefix(still(inMany.body), wanted) {
				t.Fatalf("seed %d, %d: %s, one of many, for the %d. time:\ngot  %s\nwant %s", seed, n, body, i+1, inMany.body, wanted)
			}
		}
		if q := word(); want.status == 200 {
			spaces++
			want := caller.json("POST", "/indexes/toys/search", "{"+strings.Repeat(" ", spaces)+`"q": "`+q+`", "filter": "n > 2"}`)
			for range again {
				if got := caller.get("/indexes/toys/search?q=" + q + "&filter=" + url.QueryEscape("n > 2")); still(got.body) != still(want.body) {
					t.Fatalf("seed %d, %d: %s in a query string:\ngot  %s\nwant %s", seed, n, q, got.body, want.body)
				}
			}
		}
	}
}

// TestAnswersAreCached checks that nothing is searched from the third request on, until the index changes.
func TestAnswersAreCached(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/toys/documents", `[{"id": 1, "title": "red car"}]`))
	body := `{"q": "red"}`
	key := []byte{askedByBody}
	for range featureNames {
		key = append(key, 0)
	}
	key = append(key, body...)
	isKept := func() bool {
		v, err := c.server.catalog.Get("toys").View()
		if err != nil {
			t.Fatal(err)
		}
		defer v.Release()
		return search.Answer(v, key, time.Now()) != nil
	}
	ids := map[string]bool{}
	for i := range 5 {
		if i < 2 && isKept() {
			t.Errorf("cached after only %d requests", i+1)
		}
		r := c.json("POST", "/indexes/toys/search", body)
		_, id, _ := strings.Cut(r.body, `"requestUid":"`)
		if ids[id] || !strings.Contains(r.body, `"title":"red car"`) {
			t.Errorf("%d: %s", i, r.body)
		}
		ids[id] = true
	}
	if !isKept() {
		t.Error("not cached")
	}
	if r := c.send("POST", "/indexes/toys/search", strings.NewReader(body), "Content-Type", "application/json", "Meili-Include-Metadata", "1"); !strings.Contains(r.body, `"metadata":`) {
		t.Errorf("with metadata: %s", r.body)
	}
	c.wait(c.json("POST", "/indexes/toys/documents", `[{"id": 2, "title": "red train"}]`))
	if isKept() {
		t.Error("still cached after the index changed")
	}
	if r := c.json("POST", "/indexes/toys/search", body); !strings.Contains(r.body, "red train") {
		t.Errorf("after a change: %s", r.body)
	}
}

// TestCachedAnswersAreCharged checks that the limit of an answer also applies to answers made from cached ones.
func TestCachedAnswersAreCharged(t *testing.T) {
	c, _ := newInstance(t, Options{AnswerLimit: 200000})
	c.wait(c.json("POST", "/indexes/toys/documents", `[{"id": 1, "title": "red", "text": "`+strings.Repeat("car ", 12000)+`"}]`))
	many := func(query string, n int) reply {
		return c.json("POST", "/multi-search", `{"queries": [`+strings.TrimSuffix(strings.Repeat(query+",", n), ",")+`]}`)
	}
	const query = `{"indexUid": "toys", "q": "red"}`
	for range 3 {
		if r := many(query, 1); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	want := many(`{"indexUid": "toys",  "q": "red"}`, 12)
	if got := many(query, 12); want.code() != "invalid_search_limit" || got.code() != want.code() {
		t.Errorf("cached: %d %.200s, not cached: %d %.200s", got.status, got.body, want.status, want.body)
	}
}
