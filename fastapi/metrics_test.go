package fastapi

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"svc/internal/embed"
)

// sample returns the value of a series in the text of /metrics, or "".
func sample(text, series string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

func TestMetrics(t *testing.T) {
	c, _ := newInstance(t, Options{SearchQueue: 1000, Searches: 8})
	if r := c.get("/metrics"); r.status != 400 || r.code() != "feature_not_enabled" {
		t.Errorf("without the feature: %d %s", r.status, r.body)
	}
	c.json("PATCH", "/experimental-features", `{"metrics": true}`)
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1}, {"id": 2}]`))
	c.wait(c.json("POST", "/indexes", `{"uid": "films"}`)) // fails
	c.json("POST", "/indexes/films/search", `{}`)
	c.json("POST", "/indexes/none/search", `{}`)
	for i := range 3 {
		c.get(fmt.Sprintf("/made/up/%d", i))
	}
	c.send("BREW", "/health", nil)
	if r := c.get("/metrics"); r.status != 200 || strings.Contains(r.body, "degraded") || strings.Contains(r.body, "parked") || strings.Contains(r.body, "stalls") || strings.Contains(r.body, "last_indexed") || strings.Contains(r.body, "/multi-search") {
		t.Errorf("series without events: %d %s", r.status, r.body)
	}

	r := c.get("/metrics?engine=true")
	if kind := r.header.Get("Content-Type"); r.status != 200 || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Fatalf("%d %s", r.status, kind)
	}
	embedderCalls, _ := embed.Calls()
	for series, want := range map[string]string{
		`svc_http_requests_total{method="POST",path="/indexes/{index_uid}/search",status="200"}`:      "1",
		`svc_http_requests_total{method="POST",path="/indexes/{index_uid}/search",status="404"}`:      "1",
		`svc_http_requests_total{method="GET",path="/metrics",status="400"}`:                          "1",
		`svc_http_requests_total{method="GET",path="unknown",status="404"}`:                           "3",
		`svc_http_requests_total{method="other",path="/health",status="405"}`:                         "1",
		`svc_http_response_time_seconds_count{method="POST",path="/indexes/{index_uid}/search"}`:      "2",
		`svc_http_response_time_seconds_bucket{method="PATCH",path="/experimental-features",le="10"}`: "1",
		`svc_http_response_time_seconds_count{method="GET",path="unknown"}`:                           "",
		`svc_http_response_time_seconds_count{method="GET",path="/metrics"}`:                          "1",
		`svc_degraded_search_requests`:                                             "0",
		`svc_personalized_search_requests`:                                         "0",
		`svc_indexes_set_aside`:                                                    "0",
		`svc_damaged_segments{index="films"}`:                                      "0",
		`svc_parked_indexes{reason="no_space_left_on_device"}`:                     "0",
		`svc_parked_indexes{reason="vector_embedding_error"}`:                      "0",
		`svc_chat_searches_total{type="internal"}`:                                 "0",
		`svc_http_response_time_seconds_count{method="POST",path="/multi-search"}`: "0",
		`svc_index_count`:                                                          "1",
		`svc_index_segments{index="films"}`:                                        "1",
		`svc_index_tombstones{index="films"}`:                                      "0",
		`svc_indexed_documents_total`:                                              "2",
		`svc_batches_total`:                                                        "2",
		`svc_merges_total`:                                                         "0",
		`svc_merges_running`:                                                       "0",
		`svc_embedder_requests_total`:                                              fmt.Sprint(embedderCalls), // of the process
		`svc_index_docs_count{index="films"}`:                                      "2",
		`svc_is_indexing`:                                                          "0",
		`svc_nb_tasks{kind="statuses",value="succeeded"}`:                          "1",
		`svc_nb_tasks{kind="statuses",value="failed"}`:                             "1",
		`svc_nb_tasks{kind="statuses",value="processing"}`:                         "0",
		`svc_nb_tasks{kind="types",value="documentAdditionOrUpdate"}`:              "1",
		`svc_nb_tasks{kind="types",value="dumpCreation"}`:                          "0",
		`svc_nb_tasks{kind="indexes",value="films"}`:                               "2",
		`svc_search_queue_size`:                                                    "1000",
		`svc_searches_running`:                                                     "0",
		`svc_searches_waiting_to_be_processed`:                                     "0",
		`svc_search_stalls_total`:                                                  "0",
		`svc_task_queue_latency_seconds`:                                           "0",
		`svc_last_indexed_documents_count{batch_uid="0",index="films"}`:            "2",
		`svc_task_queue_max_size`:                                                  "1.073741824e+10",
	} {
		if got := sample(r.body, series); got != want {
			t.Errorf("%s is %q, want %q", series, got, want)
		}
	}
	for _, form := range []string{
		`svc_db_size_bytes [1-9]`, `svc_used_db_size_bytes [1-9]`, `svc_last_update 1\.[0-9]+e\+09`, `svc_task_queue_used_size [1-9]`,
		`svc_task_queue_size_until_stop_registering [1-9]`,
		`svc_mapped_file_bytes [1-9]`, `svc_anonymous_memory_bytes [1-9]`, `svc_fsync_seconds_count [1-9]`, `svc_task_queue_commit_seconds_count [1-9]`,
		`svc_index_segment_bytes\{index="films"\} [1-9]`, `svc_goroutines [1-9]`, `process_cpu_seconds_total `, `process_threads [1-9]`, `process_open_fds `, `process_start_time_seconds `,
		`svc_last_finished_batches_progress_trace_ms\{batch_uid="1",step_name="processing tasks"\} `,
		`svc_last_indexed_documents_duration_ms\{batch_uid="0",index="films"\} [0-9]`,
	} {
		if !regexp.MustCompile(`(?m)^` + form).MatchString(r.body) {
			t.Errorf("no %s", form)
		}
	}
	indexes, _ := c.server.catalog.DiskBytes()
	if total, used := c.server.diskBytes(); total != indexes+c.server.queue.DiskBytes()+c.server.keys.DiskBytes() || used > total || c.server.keys.DiskBytes() <= 0 {
		t.Errorf("%d bytes on disk, %d of them in use", total, used)
	}
	if strings.Contains(r.body, "\ngo_") {
		t.Error("the series of the Go runtime are exported")
	}

	c.json("PATCH", "/experimental-features", `{"metrics": false}`)
	if r := c.get("/metrics"); r.code() != "feature_not_enabled" {
		t.Errorf("switched off: %d %s", r.status, r.body)
	}
	c.json("PATCH", "/experimental-features", `{"metrics": true}`)
	// Requests are counted while the feature is off, but not timed.
	if r := c.get("/metrics"); sample(r.body, `svc_http_requests_total{method="GET",path="/metrics",status="400"}`) != "2" ||
		sample(r.body, `svc_http_response_time_seconds_count{method="GET",path="/metrics"}`) != "2" {
		t.Error("requests without the feature must be counted but not timed")
	}
	if r := c.get("/metrics"); r.status != 200 || strings.Contains(r.body, "svc_merges_total") || !strings.Contains(r.body, "svc_index_count") {
		t.Errorf("without the engine: %d %s", r.status, r.body)
	}
}

func TestMetricsNeedAllIndexes(t *testing.T) {
	c := newProtected(t)
	c.json("PATCH", "/experimental-features", `{"metrics": true}`)
	for _, indexes := range [][]string{{"a*"}, {"a*", "b"}} {
		if r := c.as(c.oldKey([]string{"metrics.get"}, indexes)).get("/metrics"); r.status != 403 || r.code() != "invalid_api_key" {
			t.Errorf("a key for %s: %d %s", indexes, r.status, r.body)
		}
	}
	if r := c.as(c.makeKey(`["metrics.get"]`, `["*"]`)).get("/metrics"); r.status != 200 {
		t.Errorf("a key for all indexes: %d %s", r.status, r.body)
	}
}

// TestMetricsPrefix checks that a prefix renames all series, for dashboards with other names.
func TestMetricsPrefix(t *testing.T) {
	c, _ := newInstance(t, Options{MetricsPrefix: "meilisearch_"})
	c.json("PATCH", "/experimental-features", `{"metrics": true}`)
	c.get("/health")
	for range 2 { // reading must not change anything
		text := c.get("/metrics").body
		for _, series := range []string{"meilisearch_index_count", `meilisearch_http_requests_total{method="GET",path="/health",status="200"}`,
			`meilisearch_http_response_time_seconds_count{method="GET",path="/health"}`, "process_open_fds"} {
			if sample(text, series) == "" {
				t.Errorf("no %s", series)
			}
		}
		if strings.Contains(text, "svc_") {
			t.Error("some series still have svc's prefix")
		}
	}
}

// TestResponseBuckets checks that the buckets resolve times below 5 ms, which most searches take.
func TestResponseBuckets(t *testing.T) {
	if !slices.IsSorted(responseBuckets) || responseBuckets[0] != .0001 || responseBuckets[len(responseBuckets)-1] != 10 {
		t.Errorf("buckets %v", responseBuckets)
	}
}

// TestDeployedSeries checks that the series in the dashboard and the alerts of deploy/ exist.
func TestDeployedSeries(t *testing.T) {
	c, _ := newInstance(t, Options{})
	descriptions := make(chan *prometheus.Desc, 1000)
	m := c.server.metrics
	for _, collector := range []prometheus.Collector{m.requests, m.times, state{c.server, true}} {
		collector.Describe(descriptions)
	}
	close(descriptions)
	known := map[string]bool{}
	for d := range descriptions {
		name := regexp.MustCompile(`fqName: "([a-z_]+)"`).FindStringSubmatch(d.String())
		known[name[1]] = true
	}
	for _, file := range []string{"grafana.json", "alerts.yaml"} {
		b, err := os.ReadFile("../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(b) {
			t.Errorf("%s is not JSON", file)
		}
		names := regexp.MustCompile(`\bsvc_[a-z_]+`).FindAllString(string(b), -1)
		if len(names) < 10 {
			t.Errorf("%s names only %q", file, names)
		}
		for _, name := range names {
			if !known[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s: unknown series %s", file, name)
			}
		}
	}
}
