package fastapi

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"svc/internal/dump"
	"svc/internal/embed"
	"svc/internal/index"
	"svc/internal/network"
	"svc/internal/outbound"
	"svc/internal/rule"
	"svc/internal/task"
	"svc/internal/vfs"
)

// newInstance starts a server with its own catalog and queue in a temporary directory.
func newInstance(t testing.TB, o Options) (c *client, dir string) {
	t.Helper()
	dir = openInstance(t, &o)
	return newClient(t, o), dir
}

// openInstance opens a catalog and a queue in a temporary directory.
func openInstance(t testing.TB, o *Options) (dir string) {
	return openInstanceIn(t, o, network.Options{})
}

// openInstanceIn is openInstance with network options.
func openInstanceIn(t testing.TB, o *Options, in network.Options) (dir string) {
	return openInstanceOf(t, o, in, index.Options{Now: time.Now})
}

// openInstanceOf is openInstanceIn with options of the catalog.
func openInstanceOf(t testing.TB, o *Options, in network.Options, of index.Options) (dir string) {
	t.Helper()
	dir = t.TempDir()
	o.Logger = slog.New(slog.DiscardHandler)
	pool := embed.New(embed.Options{Policy: outbound.Any()})
	of.FS, of.Logger, of.MaxIndexingMemory, of.MaxIndexingThreads, of.Embedders = vfs.OS, o.Logger, 64<<20, 1, pool
	catalog, err := index.OpenCatalog(filepath.Join(dir, "indexes"), of)
	if err != nil {
		t.Fatal(err)
	}
	in.FS, in.File, in.Work, in.Catalog = vfs.NewMem(), "network.json", dir, catalog
	node, err := network.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	maker := dump.New(dump.Options{FS: vfs.OS, Place: dump.PlaceIn(dir), Logger: o.Logger, Now: time.Now, Catalog: catalog, Allowed: outbound.Any(), PayloadLimit: 1 << 20})
	rules, err := rule.Open(rule.Options{FS: vfs.OS, File: filepath.Join(dir, "rules.json"), Objects: o.Newest, Log: o.Logger})
	if err != nil {
		t.Fatal(err)
	}
	o.Rules = rules
	queue, err := task.Open(task.Options{
		Dir: filepath.Join(dir, "tasks"), Catalog: catalog, Logger: o.Logger, Now: time.Now, MaxBatchTasks: -1, MaxBatchBytes: -1,
		OnBatch: node.Ended, OnForward: node.Forwarded, Owned: node.Owned,
		Executors: map[task.Kind]task.Executor{
			task.NetworkTopologyChange: node.Executor, task.Export: maker.Executors()[task.Export], task.RuleUpdate: rules.Executor, task.RuleClear: rules.Executor,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	node.Start(queue)
	t.Cleanup(func() { // after the server has stopped
		if err := node.Close(); err != nil {
			t.Error(err)
		}
		if err := queue.Close(); err != nil {
			t.Error(err)
		}
		if err := catalog.Close(); err != nil {
			t.Error(err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Catalog, o.Queue, o.Network = catalog, queue, node
	return dir
}

// wait waits for the task of a summary and returns it.
func (c *client) wait(r reply) string {
	c.t.Helper()
	var summary struct{ TaskUID *int }
	if err := json.Unmarshal([]byte(r.body), &summary); err != nil || summary.TaskUID == nil {
		c.t.Fatalf("no task: %d %s", r.status, r.body)
	}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		body := c.get(fmt.Sprintf("/tasks/%d", *summary.TaskUID)).body
		if !strings.Contains(body, `"status":"enqueued"`) && !strings.Contains(body, `"status":"processing"`) {
			return body
		}
	}
	c.t.Fatalf("task %d does not end", *summary.TaskUID)
	return ""
}

var moving = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"|"PT[0-9.]+S"|"[0-9a-f]{8}-[0-9a-f-]{27}"|("processingTimeMs"|"databaseSize"|"usedDatabaseSize"|"rawDocumentDbSize"|"avgDocumentSize"):\d+`)

// still replaces the parts that change from run to run.
func still(body string) string { return moving.ReplaceAllString(body, "~") }

// TestConversation uses the resources of the API like a client.
func TestConversation(t *testing.T) {
	c, _ := newInstance(t, Options{Version: Version{Commit: "abc", Date: "unknown", Package: "1.42.1", Program: "0.2.0"}})
	const none = "\x00"
	for _, tt := range []struct {
		method, path, body string
		status             int
		answer             string // "": not compared
		task               string // start of the finished task, from its status on; "": no task
	}{
		{"GET", "/version", none, 200, `{"commitSha":"abc","commitSha1":"abc","commitDate":"unknown","pkgVersion":"1.42.1","svcVersion":"0.2.0"}`, ""},
		{"GET", "/indexes", none, 200, `{"results":[],"offset":0,"limit":20,"total":0}`, ""},
		{"GET", "/stats", none, 200, `{~,~,"lastUpdate":null,"indexes":{}}`, ""},
		{"GET", "/tasks", none, 200, `{"results":[],"total":0,"limit":20,"from":null,"next":null}`, ""},

		{"POST", "/indexes", `{"uid": "films", "primaryKey": "id"}`, 202,
			`{"taskUid":0,"indexUid":"films","status":"enqueued","type":"indexCreation","enqueuedAt":~}`, `"succeeded","type":"indexCreation"`},
		{"POST", "/indexes", `{"uid": "films"}`, 202, "", `"failed","type":"indexCreation"`},
		{"GET", "/indexes/films", none, 200, `{"uid":"films","createdAt":~,"updatedAt":~,"primaryKey":"id"}`, ""},
		{"GET", "/indexes/none", none, 404, "", ""},

		{"PATCH", "/indexes/films/settings", `{"filterableAttributes": ["genre", "year"], "sortableAttributes": ["year"]}`, 202, "", `"succeeded","type":"settingsUpdate"`},
		{"GET", "/indexes/films/settings/sortable-attributes", none, 200, `["year"]`, ""},
		{"POST", "/indexes/films/documents?customMetadata=first", `[{"id": 1, "title": "Metropolis", "genre": "sf", "year": 1927}, {"id": 2, "title": "Stalker", "genre": "sf", "year": 1979},
			{"id": 3, "title": "Playtime", "genre": "comedy", "year": 1967}]`, 202,
			`{"taskUid":3,"indexUid":"films","status":"enqueued","type":"documentAdditionOrUpdate","enqueuedAt":~,"customMetadata":"first"}`,
			`"succeeded","type":"documentAdditionOrUpdate","canceledBy":null,"details":{"receivedDocuments":3,"indexedDocuments":3}`},
		{"PUT", "/indexes/films/documents", `{"id": 3, "director": "Tati"}`, 202, "", `"succeeded"`},
		{"GET", "/indexes/films/documents/3", none, 200, `{"id":3,"title":"Playtime","genre":"comedy","year":1967,"director":"Tati"}`, ""},
		{"GET", "/indexes/films/documents/3?fields=title", none, 200, `{"title":"Playtime"}`, ""},
		{"GET", "/indexes/films/documents/nope", none, 404, "", ""},
		{"GET", "/indexes/films/documents?fields=id&limit=2&sort=year:desc", none, 200, `{"results":[{"id":2},{"id":3}],"offset":0,"limit":2,"total":3}`, ""},
		{"POST", "/indexes/films/documents/fetch", `{"filter": "genre = sf", "fields": ["id"]}`, 200, `{"results":[{"id":1},{"id":2}],"offset":0,"limit":20,"total":2}`, ""},
		{"GET", "/indexes/films/stats", none, 200, `{"numberOfDocuments":3,~,~,"isIndexing":false,"numberOfEmbeddings":0,"numberOfEmbeddedDocuments":0,` +
			`"fieldDistribution":{"director":1,"genre":3,"id":3,"title":3,"year":3}}`, ""},

		{"POST", "/indexes/films/search", `{"q": "metro", "attributesToRetrieve": ["id"]}`, 200,
			`{"hits":[{"id":1}],"query":"metro",~,"limit":20,"offset":0,"estimatedTotalHits":1,"requestUid":~}`, ""},
		{"GET", "/indexes/films/search?filter=year+%3C+1970&attributesToRetrieve=id&hitsPerPage=9223372036854775807", none, 200,
			`{"hits":[{"id":1},{"id":3}],"query":"",~,"hitsPerPage":9223372036854775807,"page":1,"totalPages":1,"totalHits":2,"requestUid":~}`, ""},
		{"GET", "/indexes/films/search?filter=year+%3C+1970&attributesToRetrieve=id&hitsPerPage=1", none, 200,
			`{"hits":[{"id":1}],"query":"",~,"hitsPerPage":1,"page":1,"totalPages":2,"totalHits":2,"requestUid":~}`, ""},
		{"POST", "/indexes/films/facet-search", `{"facetName": "genre", "facetQuery": "s", "limit": 3}`, 200, `{"facetHits":[{"value":"sf","count":2}],"facetQuery":"s",~}`, ""},
		{"POST", "/indexes/none/search", `{}`, 404, "", ""},

		{"POST", "/indexes/films/documents/delete-batch", `[1, "2", 77]`, 202, "",
			`"succeeded","type":"documentDeletion","canceledBy":null,"details":{"providedIds":3,"deletedDocuments":2,"originalFilter":null}`},
		{"POST", "/indexes/films/documents/delete", `{"filter": "genre = none"}`, 202, "", `"succeeded"`},
		{"DELETE", "/indexes/films/documents/x%20y", `null`, 202, "", `"succeeded"`},
		{"PATCH", "/indexes/films", `{"uid": "movies"}`, 202, "", `"succeeded","type":"indexUpdate"`},
		{"POST", "/indexes/films/documents", `[]`, 202, "", `"succeeded"`},
		{"POST", "/swap-indexes", `[{"indexes": ["films", "movies"]}]`, 202, "", `"succeeded","type":"indexSwap"`},
		{"GET", "/indexes/films/documents?fields=id", none, 200, `{"results":[{"id":3}],"offset":0,"limit":20,"total":1}`, ""},
		{"POST", "/indexes/films/compact", none, 202, "", `"succeeded","type":"indexCompaction"`},
		{"DELETE", "/indexes/films/documents", none, 202, "", `"succeeded"`},
		{"DELETE", "/indexes/movies", none, 202, "", `"succeeded","type":"indexDeletion"`},
		{"POST", "/tasks/cancel?uids=*", none, 200, "", `"succeeded","type":"taskCancelation"`},
		{"GET", "/tasks?types=indexDeletion&limit=1", none, 200, "", ""},
		{"GET", "/batches?limit=0", none, 200, "", ""},
		{"GET", "/batches/0", none, 200, "", ""},
		{"DELETE", "/tasks?statuses=failed", none, 200, "", `"succeeded","type":"taskDeletion"`},
		{"GET", "/tasks/1", none, 404, "", ""},
	} {
		var headers []string
		var body io.Reader
		if tt.body != none {
			headers, body = []string{"Content-Type", "application/json"}, strings.NewReader(tt.body)
		}
		r := c.send(tt.method, tt.path, body, headers...)
		if r.status != tt.status || tt.answer != "" && still(r.body) != tt.answer {
			t.Errorf("%s %s: %d\ngot  %s\nwant %s", tt.method, tt.path, r.status, still(r.body), tt.answer)
		}
		if tt.task != "" {
			if got := c.wait(r); !strings.Contains(got, `"status":`+tt.task) {
				t.Errorf("%s %s: the task is %s, want %s", tt.method, tt.path, got, tt.task)
			}
		}
	}
}

// TestListOfFields checks the listing of configured fields.
func TestListOfFields(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("PATCH", "/indexes/f/settings", `{"searchableAttributes": ["title", "about.text"], "displayedAttributes": ["about"], "sortableAttributes": ["price"],
		"filterableAttributes": ["price", {"attributePatterns": ["about.*"], "features": {"facetSearch": true, "filter": {"equality": true, "comparison": false}}}],
		"distinctAttribute": "group", "rankingRules": ["words", "price:desc"], "localizedAttributes": [{"locales": ["fra"], "attributePatterns": ["title*"]}],
		"faceting": {"sortFacetValuesBy": {"price": "count"}}}`))
	c.wait(c.json("POST", "/indexes/f/documents", `[{"id": 1, "title": "T", "price": 3, "group": "g", "about": {"text": "x", "lang": "fr"}}]`))
	field := func(name string, displayed, searchable, sortable, distinct bool, rule, filterable, locales string) string {
		return fmt.Sprintf(`{"name":%q,"displayed":{"enabled":%t},"searchable":{"enabled":%t},"sortable":{"enabled":%t},"distinct":{"enabled":%t},`+
			`"rankingRule":{%s},"filterable":{%s},"localized":{"locales":[%s]}}`, name, displayed, searchable, sortable, distinct, rule, filterable, locales)
	}
	const (
		noRule   = `"enabled":false`
		noFilter = `"enabled":false,"sortBy":"alpha","facetSearch":false,"equality":false,"comparison":false`
		equality = `"enabled":true,"sortBy":"alpha","facetSearch":true,"equality":true,"comparison":false`
	)
	all := map[string]string{
		"about":      field("about", true, false, false, false, noRule, noFilter, ""),
		"about.lang": field("about.lang", false, false, false, false, noRule, equality, ""),
		"about.text": field("about.text", false, true, false, false, noRule, equality, ""),
		"group":      field("group", false, false, false, true, noRule, noFilter, ""),
		"id":         field("id", false, false, false, false, noRule, noFilter, ""),
		"price": field("price", false, false, true, false, `"enabled":true,"order":"desc"`,
			`"enabled":true,"sortBy":"count","facetSearch":true,"equality":true,"comparison":true`, ""),
		"title": field("title", false, true, false, false, noRule, noFilter, `"fra"`),
	}
	for _, tt := range []struct {
		body  string
		names []string
		page  string
	}{
		{`{}`, []string{"about", "about.lang", "about.text", "group", "id", "price", "title"}, `"offset":0,"limit":20,"total":7`},
		{`{"offset": 1, "limit": 2}`, []string{"about.lang", "about.text"}, `"offset":1,"limit":2,"total":7`},
		{`{"offset": 9}`, nil, `"offset":9,"limit":20,"total":7`},
		{`{"filter": {"displayed": true}}`, []string{"about"}, `"offset":0,"limit":20,"total":1`},
		{`{"filter": {"searchable": true}}`, []string{"about.text", "title"}, `"offset":0,"limit":20,"total":2`},
		{`{"filter": {"filterable": false, "distinct": false}}`, []string{"about", "id", "title"}, `"offset":0,"limit":20,"total":3`},
		{`{"filter": {"rankingRule": true, "sortable": true}}`, []string{"price"}, `"offset":0,"limit":20,"total":1`},
		{`{"filter": {"attributePatterns": ["about.*", "*i*e"]}}`, []string{"about.lang", "about.text"}, `"offset":0,"limit":20,"total":2`},
		{`{"filter": {"attributePatterns": ["*ice"]}}`, []string{"price"}, `"offset":0,"limit":20,"total":1`},
		{`{"filter": {"attributePatterns": []}}`, nil, `"offset":0,"limit":20,"total":0`},
	} {
		var shown []string
		for _, name := range tt.names {
			shown = append(shown, all[name])
		}
		want := `{"results":[` + strings.Join(shown, ",") + `],` + tt.page + `}`
		if r := c.json("POST", "/indexes/f/fields", tt.body); r.body != want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.body, r.body, want)
		}
	}
}

// TestPayloads streams documents in every format and encoding, and checks that an invalid payload leaves nothing behind.
func TestPayloads(t *testing.T) {
	c, dir := newInstance(t, Options{PayloadLimit: 200_000})
	const ndjson, csv = "application/x-ndjson", "text/csv"
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "{\"id\": %d, \"t\": \"document number %d\"}\n", i, i)
	}
	for _, tt := range []struct {
		name, kind, encoding string
		body                 []byte
		documents            int // -1: refused
		code                 string
	}{
		{"array", contentJSON, "", []byte(`[{"id": 1}, {"id": 2}]`), 2, ""},
		{"object", contentJSON + "; charset=utf-8", "", []byte(`{"id": 1}`), 1, ""},
		{"no documents", contentJSON, "", []byte(`[]`), 0, ""},
		{"lines", ndjson, "", []byte("{\"id\": 1}\n\n{\"id\": 2}{\"id\": 3}"), 3, ""},
		{"cells", csv, "", []byte("id,n:number\n1,2\n"), 1, ""},
		{"many lines", ndjson, "", []byte(many.String()), 3000, ""},
		{"gzip", ndjson, "gzip", compressed(t, "gzip", many.String()), 3000, ""},
		{"brotli", ndjson, "br", compressed(t, "br", many.String()), 3000, ""},
		{"deflate", ndjson, "deflate", compressed(t, "zlib", many.String()), 3000, ""},

		{"empty", contentJSON, "", nil, -1, "missing_payload"},
		{"empty lines", ndjson, "", nil, -1, "missing_payload"},
		{"empty gzip", csv, "gzip", compressed(t, "gzip", ""), -1, "missing_payload"},
		{"blank", contentJSON, "", []byte(" "), -1, "malformed_payload"},
		{"cut short", contentJSON, "", []byte(`[{"id": 1}, {"id": `), -1, "malformed_payload"},
		{"not UTF-8", contentJSON, "", []byte("[{\"id\": \"\xff\"}]"), -1, "malformed_payload"},
		{"deep", contentJSON, "", []byte(strings.Repeat("[", 100_000)), -1, "malformed_payload"},
		{"a document, deep", contentJSON, "", []byte(`{"id":` + strings.Repeat("[", 100_000)), -1, "malformed_payload"},
		{"bad last line", ndjson, "", []byte(many.String() + "{"), -1, "malformed_payload"},
		{"bad row", csv, "", []byte("id,n\n1,2,3\n"), -1, "malformed_payload"},
		{"broken gzip", ndjson, "gzip", compressed(t, "gzip", many.String())[:500], -1, "bad_request"},
		{"too large", ndjson, "", []byte(strings.Repeat(many.String(), 3)), -1, "payload_too_large"},
		{"too large when unpacked", ndjson, "gzip", compressed(t, "gzip", strings.Repeat(many.String(), 3)), -1, "payload_too_large"},
	} {
		for suffix, wrap := range map[string]func(io.Reader) io.Reader{
			"":           func(r io.Reader) io.Reader { return r },
			" in chunks": func(r io.Reader) io.Reader { return chunked{r} },
		} {
			headers := []string{"Content-Type", tt.kind}
			if tt.encoding != "" {
				headers = append(headers, "Content-Encoding", tt.encoding)
			}
			uid := strings.ReplaceAll(tt.name+suffix, " ", "_")
			r := c.send("POST", "/indexes/"+strings.ReplaceAll(uid, ",", "")+"/documents?primaryKey=id", wrap(strings.NewReader(string(tt.body))), headers...)
			if tt.documents < 0 {
				if r.code() != tt.code {
					t.Errorf("%s%s: %d %s, want %s", tt.name, suffix, r.status, r.body, tt.code)
				}
				continue
			}
			if r.status != 202 {
				t.Errorf("%s%s: %d %s", tt.name, suffix, r.status, r.body)
				continue
			}
			want := fmt.Sprintf(`"receivedDocuments":%d,"indexedDocuments":%[1]d`, tt.documents)
			if got := c.wait(r); !strings.Contains(got, want) {
				t.Errorf("%s%s: %s, want %s", tt.name, suffix, got, want)
			}
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "tasks", "payloads")); err != nil || len(left) > 0 {
		t.Errorf("payloads are left: %v %v", left, err)
	}
	var tasks struct{ Total int }
	if err := json.Unmarshal([]byte(c.get("/tasks?limit=0").body), &tasks); err != nil || tasks.Total != 18 {
		t.Errorf("%d tasks, want 18 without those of refused payloads (%v)", tasks.Total, err)
	}
}

// TestReplicationHeaders lets another instance choose task uids, and make dry runs.
func TestReplicationHeaders(t *testing.T) {
	replica, _ := newInstance(t, Options{Replication: true})
	plain, _ := newInstance(t, Options{})
	for _, tt := range []struct {
		id, dry string
		status  int
		uid     int // uid in the summary
		plain   int // the same with the option off
	}{
		{"", "TRUE", 202, 0, 0},
		{"", "", 202, 0, 1},
		{"7", "", 202, 7, 2},
		{"9", "true", 202, 9, 3},
		{"5", "", 400, 0, 4},
		{"x", "", 400, 0, 5},
		{"", "maybe", 400, 0, 6},
		{"", "false", 202, 8, 7},
	} {
		for c, want := range map[*client]int{replica: tt.uid, plain: tt.plain} {
			status := tt.status
			if c == plain {
				status = 202
			}
			headers := []string{"Content-Type", contentJSON}
			if tt.id != "" {
				headers = append(headers, "TaskId", tt.id)
			}
			if tt.dry != "" {
				headers = append(headers, "DryRun", tt.dry)
			}
			r := c.send("POST", "/indexes/a/documents", strings.NewReader(`[{"id": 1}]`), headers...)
			if r.status != status || status == 202 && !strings.HasPrefix(r.body, fmt.Sprintf(`{"taskUid":%d,`, want)) {
				t.Errorf("%+v: %d %s, want uid %d", tt, r.status, r.body, want)
			}
		}
	}
}

func TestCompactTasks(t *testing.T) {
	c, dir := newInstance(t, Options{})
	if r := c.send("POST", "/tasks/compact", nil); r.code() != "feature_not_enabled" {
		t.Errorf("without the feature: %d %s", r.status, r.body)
	}
	c.json("PATCH", "/experimental-features", `{"taskQueueCompactionRoute": true}`)
	c.wait(c.json("POST", "/indexes", `{"uid": "a"}`))
	r := c.send("POST", "/tasks/compact", nil)
	if want := regexp.MustCompile(`^\{"preSize":"\d.* [KM]i?B","postSize":"\d.* [KM]i?B","status":"succeeded","actionRequired":"none.*"\}$`); r.status != 200 || !want.MatchString(r.body) {
		t.Errorf("%d %s", r.status, r.body)
	}
	c.wait(c.json("POST", "/indexes", `{"uid": "b"}`))
	if err := os.MkdirAll(filepath.Join(dir, "tasks", "queue.db.compact", "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := c.send("POST", "/tasks/compact", nil); r.status != 500 || !strings.HasPrefix(r.body, `{"status":"failed","errorMessage":"`) {
		t.Errorf("without room for the copy: %d %s", r.status, r.body)
	}
	c.wait(c.json("POST", "/indexes", `{"uid": "c"}`))
}
