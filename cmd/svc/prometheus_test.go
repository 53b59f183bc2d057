package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/logs/logstest"
)

// usualDashboard are the panels of common dashboards for Meilisearch, in the names of its /metrics. Panels per index with
// path="/indexes/films/search" are not among them: that label is the route.
var usualDashboard = []string{
	// searches so far, and how long they took
	`round(sum(increase(meilisearch_http_requests_total{method="POST",path="/indexes/{index_uid}/search",job="$job"}[$__rate_interval])))`,
	`sum(meilisearch_http_requests_total{path=~".*/search|/multi-search",job="$job"})`,
	`rate(meilisearch_http_response_time_seconds_sum{job="$job"}[$__rate_interval]) / rate(meilisearch_http_response_time_seconds_count{job="$job"}[$__rate_interval])`,
	`histogram_quantile(0.95, sum by (le) (rate(meilisearch_http_response_time_seconds_bucket{path="/indexes/{index_uid}/search",job="$job"}[$__rate_interval])))`,
	`sum by (le) (increase(meilisearch_http_response_time_seconds_bucket{path="/indexes/{index_uid}/search",job="$job"}[$__rate_interval]))`,
	`meilisearch_searches_running{job="$job"}`,
	`meilisearch_searches_waiting_to_be_processed{job="$job"}`,
	`meilisearch_search_queue_size{job="$job"}`,
	`meilisearch_degraded_search_requests{job="$job"}`,
	`meilisearch_personalized_search_requests{job="$job"}`,
	// requests
	`sum by (method, path) (rate(meilisearch_http_requests_total{job="$job",instance="$instance"}[$__rate_interval]))`,
	`sum by (status) (rate(meilisearch_http_requests_total{status=~"4..|5..",job="$job"}[$__rate_interval]))`,
	// what is stored
	`meilisearch_index_count{job="$job",instance="$instance"}`,
	`meilisearch_index_docs_count{job="$job",index="films"}`,
	`sum(meilisearch_index_docs_count{job="$job"})`,
	`meilisearch_db_size_bytes{job="$job"}`,
	`meilisearch_used_db_size_bytes{job="$job"}`,
	`meilisearch_used_db_size_bytes{job="$job"} / meilisearch_db_size_bytes{job="$job"}`,
	`time() - meilisearch_last_update{job="$job"}`,
	// tasks
	`meilisearch_is_indexing{job="$job"}`,
	`meilisearch_nb_tasks{kind="statuses",job="$job"}`,
	`meilisearch_nb_tasks{kind="statuses",value="enqueued",job="$job"}`,
	`meilisearch_nb_tasks{kind="types",job="$job"}`,
	`meilisearch_nb_tasks{kind="indexes",value="films",job="$job"}`,
	`meilisearch_batch_running_progress_trace{job="$job"}`,
	`meilisearch_last_finished_batches_progress_trace_ms{job="$job"}`,
	`meilisearch_task_queue_latency_seconds{job="$job"}`,
	`meilisearch_task_queue_used_size{job="$job"} / meilisearch_task_queue_max_size{job="$job"}`,
	`meilisearch_task_queue_size_until_stop_registering{job="$job"}`,
	// conversations
	`sum by (type) (rate(meilisearch_chat_searches_total{job="$job"}[$__rate_interval]))`,
	`sum by (workspace, model) (meilisearch_chat_prompt_tokens_total{job="$job"})`,
	`sum by (workspace, model) (meilisearch_chat_completion_tokens_total{job="$job"})`,
	`sum by (workspace, model) (meilisearch_chat_tokens_total{job="$job"})`,
	// the process
	`rate(process_cpu_seconds_total{job="$job"}[$__rate_interval])`,
	`process_resident_memory_bytes{job="$job"}`,
	`process_virtual_memory_bytes{job="$job"}`,
	`process_open_fds{job="$job"} / process_max_fds{job="$job"}`,
	`process_threads{job="$job"}`,
	`time() - process_start_time_seconds{job="$job"}`,
}

// ownDashboard reads the expressions of deploy/grafana.json.
func ownDashboard(t *testing.T) (all []string) {
	t.Helper()
	b, err := os.ReadFile("../../deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	if len(all) < 30 {
		t.Errorf("the dashboard has only %d expressions", len(all))
	}
	return all
}

// newProvider starts a server that acts as embedding and chat provider. Texts with "wait" wait until release is called.
func newProvider(t *testing.T) (address string, release func()) {
	held := make(chan struct{})
	release = sync.OnceFunc(func() { close(held) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/chat/completions"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`+"\n\ndata: [DONE]\n\n")
			return
		case bytes.Contains(body, []byte("wait")):
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, `{"vector":[1,2]}`)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(release)
	return server.URL, release
}

// converse holds a conversation in the workspace w, and returns the text. A client sends a key even where none is needed.
func converse(t *testing.T, in *member) string {
	t.Helper()
	req, err := http.NewRequest("POST", in.url+"/chats/w/chat/completions", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"well?"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer anybody")
	resp, err := networkClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// fill gives an instance data for every series, and leaves a batch running.
func fill(t *testing.T, in *member, provider string) {
	t.Helper()
	in.must("PATCH", "/experimental-features", `{"metrics":true,"network":true,"chatCompletions":true}`, nil)
	in.must("PATCH", "/network", `{"self":"me","remotes":{"me":{"url":"`+in.url+`"},"other":{"url":"http://127.0.0.1:9"}}}`, nil)
	in.must("PATCH", "/chats/w/settings", `{"source":"vLlm","baseUrl":"`+provider+`"}`, nil)
	if said := converse(t, in); !strings.Contains(said, "yes") {
		t.Fatal(said)
	}
	var first, task struct{ TaskUID int }
	in.must("POST", "/indexes/films/documents", `[{"id":1,"title":"one"},{"id":2,"title":"two"}]`, &first)
	in.must("PATCH", "/indexes/films/settings", `{"embedders":{"e":{"source":"rest","url":"`+provider+
		`","dimensions":2,"documentTemplate":"{{doc.title}}","request":"{{text}}","response":{"vector":"{{embedding}}"}}}}`, &task)
	for _, uid := range []int{first.TaskUID, task.TaskUID} {
		if status, text := in.finish(uid); status != "succeeded" {
			t.Fatal(text)
		}
	}
	in.must("POST", "/indexes/films/documents", `[{"id":3,"title":"wait"}]`, nil)
}

// promClient is an instance of Prometheus.
type promClient struct {
	t       *testing.T
	address string
}

// startPrometheus starts a Prometheus that scrapes each instance under a job with its name.
func startPrometheus(t *testing.T, all []*member) *promClient {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed")
	}
	rules, err := filepath.Abs("../../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := "global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 1s}\nrule_files: [" + strconv.Quote(rules) + "]\nscrape_configs:\n"
	for _, in := range all {
		config += fmt.Sprintf("- {job_name: %s, params: {engine: ['true']}, static_configs: [{targets: [%q]}]}\n", in.name, strings.TrimPrefix(in.url, "http://"))
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	p := &promClient{t, freeAddress()}
	var log logstest.Buffer
	cmd := exec.Command(binary, "--config.file", file, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", p.address, "--log.level", "warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus:\n%s", log.String())
		}
	})
	return p
}

// get decodes the data of an answer, or returns false if there is none yet.
func (p *promClient) get(path string, query url.Values, into any) bool {
	p.t.Helper()
	resp, err := http.Get("http://" + p.address + path + "?" + query.Encode())
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable {
		return false
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Status != "success" {
		p.t.Fatalf("%s %s: %s %v", path, query.Get("query"), answer.Error, err)
	}
	return true
}

// hasData reports whether an expression has a numeric value.
func (p *promClient) hasData(expression string) bool {
	p.t.Helper()
	var found struct {
		Result []struct{ Value [2]any }
	}
	if !p.get("/api/v1/query", url.Values{"query": {expression}}, &found) {
		return false
	}
	for _, series := range found.Result {
		text, _ := series.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			return true
		}
	}
	return false
}

// TestPrometheusFillsTheDashboard checks that each panel of the dashboard in deploy/ has data, and each usual panel with the names
// of Meilisearch.
func TestPrometheusFillsTheDashboard(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("prometheus is not installed")
	}
	provider, release := newProvider(t)
	all := []*member{newMember(t, "svc"), newMember(t, "meilisearch", "--metrics-prefix", "meilisearch_")}
	t.Cleanup(release) // before the instances stop
	for _, in := range all {
		fill(t, in, provider)
	}
	p := startPrometheus(t, all)
	var lacking []string
	for i, in := range all {
		from := [][]string{ownDashboard(t), usualDashboard}[i]
		variables := strings.NewReplacer("$job", in.name, `instance=~"$instance"`, `instance=~".*"`, "$instance", strings.TrimPrefix(in.url, "http://"), "$__rate_interval", "30s")
		for _, expression := range from {
			lacking = append(lacking, variables.Replace(expression))
		}
	}
	asked := len(lacking)
	for deadline := time.Now().Add(90 * time.Second); len(lacking) > 0 && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		for _, in := range all {
			in.must("POST", "/indexes/films/search", `{"q":"one"}`, nil)
			in.must("POST", "/indexes/films/documents", `[{"id":4,"title":"four"}]`, nil)
			if status, text, err := in.ask("POST", "/indexes/none/search", `{}`, nil); status != 404 {
				t.Fatalf("%d %s %v", status, text, err)
			}
		}
		lacking = slices.DeleteFunc(lacking, p.hasData)
	}
	for _, expression := range lacking {
		t.Errorf("no data for %s", expression)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if !p.get("/api/v1/rules", nil, &rules) || len(rules.Groups) == 0 {
		t.Fatal("no rules")
	}
	for _, r := range rules.Groups[0].Rules {
		if r.Health == "err" {
			t.Errorf("the rule %s: %s", r.Name, r.LastError)
		}
	}
	t.Logf("%d expressions", asked)
}

// promtool runs promtool and returns its output.
func promtool(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	binary, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdin = strings.NewReader(input)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// TestPromtoolAcceptsTheMetrics checks the metrics with promtool, except five names from Meilisearch that its dashboards use.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not installed")
	}
	provider, _ := newProvider(t)
	in := newMember(t, "svc")
	fill(t, in, provider)
	in.must("POST", "/indexes/films/search", `{"q":"one"}`, nil)
	_, text, err := in.ask("GET", "/metrics?engine=true", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign := []string{
		"svc_index_count", "svc_index_docs_count", "svc_last_finished_batches_progress_trace_ms", "svc_last_indexed_documents_count", "svc_last_indexed_documents_duration_ms",
	}
	var own strings.Builder
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(foreign, func(name string) bool {
			return strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), name)
		}) {
			own.WriteString(line)
		}
	}
	if said, err := promtool(t, own.String(), "check", "metrics"); err != nil || said != "" {
		t.Errorf("%v: %s", err, said)
	}
	said, _ := promtool(t, text, "check", "metrics")
	for _, name := range foreign {
		if strings.Count(said, name+" ") != 1 || strings.Count(said, "\n") != len(foreign) {
			t.Errorf("all metrics: %s", said)
		}
	}
}

// TestPromtoolFiresTheAlerts checks that each alert fires for the instance that has its cause, and not for the other.
func TestPromtoolFiresTheAlerts(t *testing.T) {
	const rules, tests = "../../deploy/alerts.yaml", "testdata/alerts.yaml"
	alerts, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	tried, err := os.ReadFile(tests)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(alerts)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "- alert: "); ok && !strings.Contains(string(tried), "alertname: "+name+"\n") {
			t.Errorf("%s is not tested", name)
		}
	}
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", rules}, {"test", "rules", tests}} {
		if said, err := promtool(t, "", args...); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
}
