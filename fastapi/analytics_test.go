package fastapi

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"svc/internal/analytics"
	"svc/internal/vfs"
)

// newCounting starts an instance with two indexes that counts searches.
func newCounting(t testing.TB) *client {
	t.Helper()
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey), Analytics: openAnalytics(t)})
	c.key = masterKey
	for _, uid := range []string{"films", "books"} {
		c.wait(c.json("POST", "/indexes/"+uid+"/documents", `[{"id": 1, "title": "Dune", "genre": "SF"}, {"id": 2, "title": "Alien", "genre": "SF"}]`))
		c.wait(c.json("PATCH", "/indexes/"+uid+"/settings", `{"filterableAttributes": ["genre"]}`))
	}
	return c
}

func openAnalytics(t testing.TB) *analytics.Recorder {
	t.Helper()
	r, err := analytics.Open(analytics.Options{FS: vfs.NewMem(), Dir: "analytics", Retention: 24 * time.Hour, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

var durations = regexp.MustCompile(`"(mean|longest)Ms":[0-9.e-]+`)

// counted returns a report without zeros.
func (c *client) counted(path string) string {
	c.t.Helper()
	r := c.get(path)
	var report struct {
		Results []map[string]any
		Other   int
	}
	if err := json.Unmarshal([]byte(r.body), &report); err != nil || r.status != 200 || report.Results == nil {
		c.t.Fatalf("%s: %d %s", path, r.status, r.body)
	}
	var all []string
	for _, row := range report.Results {
		name := row["query"]
		if name == nil {
			name = row["filter"]
		}
		all = append(all, fmt.Sprintf("%v/%v %v-%v", row["indexUid"], name, row["count"], row["noResults"]))
	}
	return strings.Join(all, ", ")
}

// requestUID returns the requestUid of an answer.
func requestUID(t testing.TB, r reply) string {
	t.Helper()
	m := regexp.MustCompile(`"requestUid":"([^"]*)"`).FindStringSubmatch(r.body)
	if m == nil {
		t.Fatalf("no requestUid: %d %s", r.status, r.body)
	}
	return m[1]
}

// TestEverySearchIsCounted searches in every way, also often enough for a cached answer.
func TestEverySearchIsCounted(t *testing.T) {
	c := newCounting(t)
	for range 5 {
		if r := c.json("POST", "/indexes/films/search", `{"q": " DUNE", "filter": "genre = \"SF\""}`); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		if r := c.get("/indexes/films/search?q=dune&filter=genre+=+%22SF%22"); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		if r := c.json("POST", "/multi-search", `{"queries": [{"indexUid": "films", "q": "nothing"}, {"indexUid": "books", "q": "alien"}]}`); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	c.json("POST", "/multi-search", `{"federation": {}, "queries": [{"indexUid": "films", "q": "alien", "filter": ["genre = SF"]}, {"indexUid": "books", "q": "dune"}]}`)
	c.json("POST", "/indexes/films/search", `{"q": "dune", "offset": 10}`)
	c.json("POST", "/indexes/films/search", `{"q": "dune", "filter": "nothing = 1"}`) // an error
	c.json("POST", "/indexes/none/search", `{"q": "dune"}`)
	c.json("POST", "/indexes/films/facet-search", `{"facetName": "genre"}`)
	for path, want := range map[string]string{
		"/analytics/top-queries":                              "films/dune 11-0, books/alien 5-0, films/nothing 5-5, films/alien 1-0, books/dune 1-0",
		"/analytics/top-queries?indexUid=books&limit=1":       "books/alien 5-0",
		"/analytics/no-results":                               "films/nothing 5-5",
		"/analytics/filters":                                  `films/genre = "SF" 10-0, films/["genre = SF"] 1-0`,
		"/analytics/top-queries?to=2020-01-01":                "",
		"/analytics/top-queries?from=2020-01-01&limit=0":      "",
		"/analytics/no-results?from=2020-01-01T00:00:00.5Z":   "films/nothing 5-5",
		"/analytics/filters?indexUid=books&from=2020-01-01":   "",
		"/analytics/no-results?from=2020-01-01&to=9999-12-31": "films/nothing 5-5",
	} {
		if got := c.counted(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	r := c.get("/analytics/slow?limit=1")
	if !strings.Contains(r.body, `"longestMs":`) || c.counted("/analytics/slow") == "" {
		t.Errorf("%s", r.body)
	}
	if r := c.get("/analytics/top-queries?limit=1"); durations.ReplaceAllString(r.body, `"${1}Ms":~`) != `{"results":[{"query":"dune","indexUid":"films","count":11,"noResults":0,"meanMs":~,"longestMs":~,`+
		`"clicks":0,"clickThroughRate":0,"meanPosition":null,"conversions":0,"conversionRate":0}],"other":0}` {
		t.Errorf("%s", r.body)
	}
}

// TestKeysOfReports uses keys of one index: they may read and delete only the data of that index.
func TestKeysOfReports(t *testing.T) {
	c := newCounting(t)
	for _, uid := range []string{"films", "books"} {
		c.get("/indexes/" + uid + "/search?q=dune")
	}
	if r := c.json("PUT", "/aliases/shelf", `{"indexUid": "books"}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	c.get("/indexes/shelf/search?q=alien")
	one := c.as(c.makeKey(`["analytics.get", "analytics.delete", "search"]`, `["films"]`))
	if got := one.counted("/analytics/top-queries"); got != "films/dune 1-0" {
		t.Errorf("a key of one index sees %s", got)
	}
	if got := c.counted("/analytics/top-queries?indexUid=shelf"); got != "books/alien 1-0, books/dune 1-0" {
		t.Errorf("by an alias there is %s", got)
	}
	for _, r := range []reply{
		one.get("/analytics/top-queries?indexUid=books"), one.get("/analytics/top-queries?indexUid=shelf"), one.send("DELETE", "/analytics?indexUid=books", nil),
		c.as(c.makeKey(`["search"]`, `["*"]`)).get("/analytics/top-queries"), c.as(c.makeKey(`["analytics.get"]`, `["*"]`)).send("DELETE", "/analytics", nil),
	} {
		if r.status != 403 || r.code() != "invalid_api_key" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	uid := requestUID(t, c.get("/indexes/books/search?q=dune"))
	click := `[{"requestUid": "` + uid + `", "type": "click"}]`
	if r := one.json("POST", "/events", click); r.body != `{"counted":0,"unknown":1}` {
		t.Errorf("a key of another index counts an event: %s", r.body)
	}
	if r := c.as(c.makeKey(`["search"]`, `["books"]`)).json("POST", "/events", click); r.body != `{"counted":1,"unknown":0}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := one.send("DELETE", "/analytics", nil); r.status != 204 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if got := c.counted("/analytics/top-queries"); got != "books/dune 2-0, books/alien 1-0" {
		t.Errorf("after the deletion of another index there is %s", got)
	}
	if r := c.send("DELETE", "/analytics?to=2020-01-01", nil); r.status != 204 || c.counted("/analytics/no-results") != "" || c.counted("/analytics/top-queries") == "" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := c.send("DELETE", "/analytics", nil); r.status != 204 || c.counted("/analytics/top-queries") != "" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestEventsOfSearches(t *testing.T) {
	c := newCounting(t)
	var first string
	for range 4 { // cached answers have their own requestUid
		first = requestUID(t, c.json("POST", "/indexes/films/search", `{"q": "dune"}`))
	}
	multi := requestUID(t, c.json("POST", "/multi-search", `{"queries": [{"indexUid": "films", "q": "x"}, {"indexUid": "books", "q": "dune"}]}`))
	r := c.json("POST", "/events", `[
		{"requestUid": "`+first+`", "type": "click", "position": 2}, {"requestUid": "`+first+`", "type": "click", "position": 5, "queryPosition": 0},
		{"requestUid": "`+first+`", "type": "conversion"}, {"requestUid": "`+multi+`", "type": "click", "queryPosition": 1},
		{"requestUid": "`+multi+`", "type": "click", "queryPosition": 2}, {"requestUid": "00000000-0000-0000-0000-000000000000", "type": "click"}]`)
	if r.status != 200 || r.body != `{"counted":4,"unknown":2}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	got := durations.ReplaceAllString(c.get("/analytics/top-queries?indexUid=films&limit=1").body, `"${1}Ms":0`)
	if !strings.Contains(got, `"count":4,"noResults":0,"meanMs":0,"longestMs":0,"clicks":2,"clickThroughRate":0.25,"meanPosition":3.5,"conversions":1,"conversionRate":0.25`) {
		t.Errorf("%s", got)
	}
	if got := c.get("/analytics/top-queries?indexUid=books").body; !strings.Contains(got, `"clicks":1,"clickThroughRate":1,"meanPosition":null`) {
		t.Errorf("%s", got)
	}
	if m := metricsOf(c); sample(m, "svc_analytics_events_total") != "4" || sample(m, "svc_analytics_unknown_events_total") != "2" || sample(m, "svc_analytics_queries") != "3" {
		t.Errorf("metrics: %s", m)
	}
}

func metricsOf(c *client) string {
	c.json("PATCH", "/experimental-features", `{"metrics": true}`)
	return c.get("/metrics").body
}

func TestWrongAnalytics(t *testing.T) {
	c := newCounting(t)
	const uid = `"requestUid": "00000000-0000-0000-0000-000000000000"`
	for body, code := range map[string]string{
		`{}`: "invalid_events", `[]`: "invalid_events", `[1]`: "invalid_events", `[{"type": "click"}]`: "missing_event_request_uid", `[{` + uid + `}]`: "missing_event_type",
		`[{"requestUid": "x"}]`: "invalid_event_request_uid", `[{"requestUid": 1}]`: "invalid_event_request_uid", `[{` + uid + `, "type": "buy"}]`: "invalid_event_type",
		`[{"position": 0}]`: "invalid_event_position", `[{"position": 1000001}]`: "invalid_event_position", `[{"position": -1}]`: "invalid_event_position",
		`[{"queryPosition": "1"}]`: "invalid_event_query_position", `[{"queryPosition": 1000001}]`: "invalid_event_query_position", `[{"user": "x"}]`: "bad_request",
		`[{` + uid + `, "type": "click"` + strings.Repeat(" ", maxEventBytes) + `}]`:                       "invalid_events",
		`[` + strings.Repeat(`{`+uid+`, "type": "click"},`, maxEvents) + `{` + uid + `, "type": "click"}]`: "invalid_events",
	} {
		if r := c.json("POST", "/events", body); r.status != 400 || r.code() != code {
			t.Errorf("%.100s: %d %s, want %s", body, r.status, r.body, code)
		}
	}
	if r := c.json("POST", "/events", `[{`+uid+`, "type": "click"}, {`+uid+`, "type": 1}]`); !strings.Contains(r.body, "[1].type") {
		t.Errorf("%s", r.body)
	}
	for query, code := range map[string]string{
		"from=yesterday": "invalid_analytics_from", "to=2020-13-01": "invalid_analytics_to", "limit=1001": "invalid_analytics_limit", "limit=-1": "invalid_analytics_limit",
		"indexUid=a%20b": "invalid_index_uid", "uid=a": "bad_request",
	} {
		if r := c.get("/analytics/filters?" + query); r.status != 400 || r.code() != code {
			t.Errorf("%s: %d %s, want %s", query, r.status, r.body, code)
		}
		if r := c.send("DELETE", "/analytics?"+query, nil); r.status != 400 || r.code() != code && !strings.HasPrefix(query, "limit") {
			t.Errorf("DELETE %s: %d %s, want %s", query, r.status, r.body, code)
		}
	}
	off := newClient(t, Options{})
	for _, r := range []reply{off.get("/analytics/slow"), off.send("DELETE", "/analytics", nil), off.json("POST", "/events", `[{`+uid+`, "type": "click"}]`)} {
		if r.status != 400 || r.code() != "feature_not_enabled" || !strings.Contains(r.body, "--analytics-retention") {
			t.Errorf("without analytics: %d %s", r.status, r.body)
		}
	}
}

func TestTheExamplesOfAnalytics(t *testing.T) {
	c, _ := newInstance(t, Options{Analytics: openAnalytics(t)})
	c.wait(c.json("POST", "/indexes/goods/documents", `[{"id": 1, "name": "boots", "stock": 1}]`))
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"filterableAttributes": ["stock"]}`))
	runExamples(t, c, "../docs/ANALYTICS.md")
}
