package fastapi

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"github.com/valyala/fasthttp"

	"svc/internal/auth"
	"svc/internal/chat"
	"svc/internal/task"
)

// metrics are the numbers of GET /metrics. Those of requests are counted as they
// come; all others are read from their owners when somebody asks.
type metrics struct {
	registry     *prometheus.Registry // what Meilisearch tells, and what is wrong
	full         *prometheus.Registry // that and the engine
	prefix       string               // of the names of svc's own series, in place of metricsPrefix
	requests     *prometheus.CounterVec
	times        *prometheus.HistogramVec
	chatSearches *prometheus.CounterVec
	chatTokens   [3]*prometheus.CounterVec // of prompts, of completions and of both
	chatSeries   chatSeries
	degraded     atomic.Int64 // searches whose ranking the deadline cut short
	// Searches whose hits a service was asked to order.
	personalized atomic.Int64
}

// metricsPrefix begins the names of svc's own series, unless Options.MetricsPrefix does.
const metricsPrefix = "svc_"

// unknownPath is the path label of requests that no route takes. Their own paths
// would let anybody add series without end.
const unknownPath = "unknown"

// chatSearchType is the label of searches that models asked for: svc runs them itself.
const chatSearchType = "internal"

// Buckets of response times, in seconds.
var responseBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

func newMetrics(s *Server, prefix string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		full:     prometheus.NewRegistry(),
		prefix:   cmp.Or(prefix, metricsPrefix),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricsPrefix + "http_requests_total", Help: "Requests answered.",
		}, []string{"method", "path", "status"}),
		times: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: metricsPrefix + "http_response_time_seconds", Help: "How long answers took, while the feature metrics is on.", Buckets: responseBuckets,
		}, []string{"method", "path"}),
	}
	m.chatSearches = prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricsPrefix + "chat_searches_total", Help: "Searches that models asked for."}, []string{"type"})
	register := func(all ...prometheus.Collector) {
		m.registry.MustRegister(all...)
		m.full.MustRegister(all...)
	}
	register(m.chatSearches)
	for i, c := range [...]prometheus.CounterOpts{
		{Name: metricsPrefix + "chat_prompt_tokens_total", Help: "Tokens that models were sent."},
		{Name: metricsPrefix + "chat_completion_tokens_total", Help: "Tokens that models made."},
		{Name: metricsPrefix + "chat_tokens_total", Help: "Tokens that models were sent or made."},
	} {
		m.chatTokens[i] = prometheus.NewCounterVec(c, []string{"workspace", "model"})
		register(m.chatTokens[i])
	}
	m.registry.MustRegister(state{s: s})
	m.full.MustRegister(state{s, true})
	register(m.requests, m.times, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if _, ok := threads(); ok {
		register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "process_threads", Help: "Threads of the process."},
			func() float64 { n, _ := threads(); return float64(n) }))
	}
	return m
}

// talked takes up a conversation.
func (m *metrics) talked(workspace, model string, r *chat.Report) {
	if r.Usage == (chat.Usage{}) {
		return
	}
	model = m.chatSeries.label(workspace, model)
	for i, n := range [...]int{r.Usage.Prompt, r.Usage.Completion, r.Usage.Total} {
		m.chatTokens[i].WithLabelValues(workspace, model).Add(float64(max(n, 0)))
	}
}

// maxChatSeries bounds how many models of workspaces have series of their own: clients name models, and a provider may take any name.
const maxChatSeries = 1000

// chatSeries are the models of workspaces that have series of their own.
type chatSeries struct {
	mu    sync.Mutex
	known map[[2]string]bool
}

// label returns the model as a label. There is no room for all of them.
func (c *chatSeries) label(workspace, model string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	pair := [2]string{workspace, strings.ToValidUTF8(model, "\uFFFD")}
	switch {
	case c.known[pair]:
	case len(c.known) >= maxChatSeries:
		return "other"
	case c.known == nil:
		c.known = map[[2]string]bool{}
		fallthrough
	default:
		c.known[pair] = true
	}
	return pair[1]
}

// threads counts the threads of the process, where the system tells.
func threads() (n int, ok bool) {
	all, err := os.ReadDir("/proc/self/task")
	return len(all), err == nil
}

// tally takes up an answered request.
func (s *Server) tally(ctx *fasthttp.RequestCtx, began time.Time) {
	path := unknownPath
	res, known := ctx.UserValue(resourceKey{}).(*resource)
	if known {
		path = res.path
	}
	method := knownMethod(ctx.Method())
	s.metrics.requests.WithLabelValues(method, path, strconv.Itoa(ctx.Response.StatusCode())).Inc()
	now := time.Now()
	took := now.Sub(began)
	s.recent.add(now, ctx.Response.StatusCode(), known && res.searches, took)
	if known && s.features.on("metrics") {
		s.metrics.times.WithLabelValues(method, path).Observe(took.Seconds())
	}
}

// knownMethod returns the method as a label; all that HTTP does not define are one.
func knownMethod(method []byte) string {
	for _, known := range [...]string{methodGet, methodPost, methodPut, methodPatch, methodDelete, fasthttp.MethodHead, fasthttp.MethodOptions, fasthttp.MethodConnect, fasthttp.MethodTrace} {
		if string(method) == known {
			return known
		}
	}
	return "other"
}

// state collects what the server's parts say of themselves when asked.
type state struct {
	s      *Server
	engine bool // what Meilisearch has no series of, too
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(metricsPrefix+name, help, labels, nil)
}

var (
	degradedSearches = describe("degraded_search_requests", "Searches whose ranking was cut short by searchCutoffMs, since the start.")
	personalSearches = describe("personalized_search_requests", "Searches whose hits were ordered for a user, since the start.")
	databaseBytes    = describe("db_size_bytes", "Bytes of all files of indexes, tasks and keys.")
	usedBytes        = describe("used_db_size_bytes", "The part of db_size_bytes that is in use.")
	indexCount       = describe("index_count", "Indexes.")
	lastUpdate       = describe("last_update", "When an index last changed, in seconds since 1970; 0 for never.")
	isIndexing       = describe("is_indexing", "1 while a batch runs, else 0.")
	indexDocuments   = describe("index_docs_count", "Documents of an index.", "index")
	taskCounts       = describe("nb_tasks", "Stored tasks by status, type and index.", "kind", "value")
	runningTrace     = describe("batch_running_progress_trace", "How far each current step of the running batch is, from 0 to 1.", "batch_uid", "step_name")
	finishedTrace    = describe("last_finished_batches_progress_trace_ms", "How long each step of the last finished batch took, in milliseconds.", "batch_uid", "step_name")
	lastIndexed      = describe("last_indexed_documents_count", "Documents that the last finished batch of additions and updates indexed.", "batch_uid", "index")
	lastIndexedTook  = describe("last_indexed_documents_duration_ms", "How long the last finished batch of additions and updates took, in milliseconds.", "batch_uid", "index")
	searchQueueSize  = describe("search_queue_size", "Searches that may wait.")
	searchesRunning  = describe("searches_running", "Searches that run now.")
	searchesWaiting  = describe("searches_waiting_to_be_processed", "Searches that wait now.")
	searchStalls     = describe("search_stalls_total", "How often searches waited and none made progress for 10 seconds, since the start.")
	limitedRequests  = describe("rate_limited_requests_total", "Requests that were beyond a limit of their API key, since the start.", "key", "limit")
	countedQueries   = describe("analytics_queries", "Queries that the analytics of this hour tell apart.")
	countedFilters   = describe("analytics_filters", "Filters that the analytics of this hour tell apart.")
	foldedSearches   = describe("analytics_folded_searches_total", "Searches that the analytics counted without their query, since the start.")
	countedEvents    = describe("analytics_events_total", "Clicks and conversions that were counted, since the start.")
	unknownEvents    = describe("analytics_unknown_events_total", "Clicks and conversions of searches that are not known, since the start.")
	analyticsErrors  = describe("analytics_write_failures_total", "Writes of analytics that failed, since the start.")
	taskLatency      = describe("task_queue_latency_seconds", "Age of the oldest unfinished task; 0 when there is none.")
	parkedIndexes    = describe("parked_indexes", "Indexes whose tasks wait because the machine fails them: a full or failing disk, damage.", "reason")
	damagedSegments  = describe("damaged_segments", "Segment files of which damage is known, by index.", "index")
	indexesSetAside  = describe("indexes_set_aside", "Indexes that are not served because a file of theirs cannot be used.")
	taskQueueMax     = describe("task_queue_max_size", "Bytes that the task queue's file may use.")
	taskQueueUsed    = describe("task_queue_used_size", "Bytes that the task queue's file uses.")
	outboxTasks      = describe("network_outbox_tasks", "Writes that another instance of the network has not got.", "remote")
	outboxBytes      = describe("network_outbox_bytes", "Bytes of the writes that another instance of the network has not got.", "remote")
	outboxLag        = describe("network_outbox_lag_seconds", "Age of the oldest write that another instance of the network has not got.", "remote")
	segmentCount     = describe("index_segments", "Segment files of an index.", "index")
	segmentBytes     = describe("index_segment_bytes", "Bytes of the segment files of an index.", "index")
	tombstones       = describe("index_tombstones", "Documents of an index that are deleted and still in its segment files.", "index")
	mergesRunning    = describe("merges_running", "Merges of segments that run now.")
	mergesDone       = describe("merges_total", "Merges of segments since the start.")
	mergedBytes      = describe("merged_bytes_total", "Bytes of the segments that merges made since the start.")
	documentsDone    = describe("indexed_documents_total", "Documents that batches wrote to segments since the start.")
	batchesDone      = describe("batches_total", "Batches of tasks that have ended since the start.")
	cacheBytes       = describe("search_cache_bytes", "Bytes of what searches computed that are kept for later ones.")
	cacheHits        = describe("search_cache_hits_total", "How often a search found there what it needs, since the start.")
	cacheMisses      = describe("search_cache_misses_total", "How often a search did not find there what it needs, since the start.")
	requestBytes     = describe("request_memory_bytes", "Bytes that bodies and answers of requests hold.")
	mappedMemory     = describe("mapped_file_bytes", "Bytes of files that are mapped; the system has in memory what of them is used.")
	anonymousMemory  = describe("anonymous_memory_bytes", "Bytes that the program has of the system's memory beside mapped files.")
	goroutines       = describe("goroutines", "Goroutines of the program.")
	collections      = describe("garbage_collections_total", "Collections of garbage since the start.")
	collectionTime   = describe("garbage_collection_cpu_seconds_total", "Time of processors that collecting garbage took since the start.")
	syncTimes        = describe("fsync_seconds", "How long syncs of files and directories of indexes and documents took.")
	commitTimes      = describe("task_queue_commit_seconds", "How long commits to the file of the task queue took, with their syncs.")
	embedderCalls    = describe("embedder_requests_total", "Requests to providers of embeddings since the start.")
	embedderFailures = describe("embedder_request_failures_total", "Those of them that failed, also if a later try did not.")
	taskQueueLeft    = describe("task_queue_size_until_stop_registering", "Bytes that are left before the task queue takes no more tasks.")
)

// Describe names everything that Collect may give.
func (state) Describe(to chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{
		degradedSearches, personalSearches, databaseBytes, usedBytes, indexCount, lastUpdate, isIndexing, indexDocuments, taskCounts, runningTrace,
		finishedTrace, lastIndexed, lastIndexedTook, searchQueueSize, searchesRunning, searchesWaiting, searchStalls, limitedRequests, countedQueries, countedFilters, foldedSearches, countedEvents, unknownEvents, analyticsErrors, taskLatency, parkedIndexes, damagedSegments, indexesSetAside, taskQueueMax, taskQueueUsed, taskQueueLeft,
		outboxTasks, outboxBytes, outboxLag, segmentCount, segmentBytes, tombstones, mergesRunning, mergesDone, mergedBytes, documentsDone, batchesDone,
		cacheBytes, cacheHits, cacheMisses, requestBytes, mappedMemory, anonymousMemory, goroutines, collections, collectionTime, syncTimes, commitTimes,
		embedderCalls, embedderFailures,
	} {
		to <- d
	}
}

// Collect reads the values.
func (c state) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	s := c.s
	if n := s.metrics.degraded.Load(); n > 0 || c.engine {
		gauge(degradedSearches, float64(n))
	}
	if n := s.metrics.personalized.Load(); n > 0 || c.engine {
		gauge(personalSearches, float64(n))
	}
	capacity, running, waiting := s.slots.now()
	gauge(searchQueueSize, float64(capacity))
	gauge(searchesRunning, float64(running))
	gauge(searchesWaiting, float64(waiting))
	if n := s.watchdog.stalls.Load(); n > 0 || c.engine {
		to <- prometheus.MustNewConstMetric(searchStalls, prometheus.CounterValue, float64(n))
	}
	s.keys.Refusals(func(key uuid.UUID, limit auth.LimitKind, refused uint64) {
		to <- prometheus.MustNewConstMetric(limitedRequests, prometheus.CounterValue, float64(refused), key.String(), limit.String())
	})
	c.collectAnalytics(to, gauge)
	c.collectIndexes(gauge)
	c.collectTasks(to, gauge)
	if c.engine {
		c.collectEngine(to, gauge)
	}
}

func (c state) collectAnalytics(to chan<- prometheus.Metric, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	if c.s.analytics == nil {
		return
	}
	n := c.s.analytics.Numbers()
	gauge(countedQueries, float64(n.Queries))
	gauge(countedFilters, float64(n.Filters))
	for d, value := range map[*prometheus.Desc]uint64{foldedSearches: n.Folded, countedEvents: n.Events, unknownEvents: n.Unknown, analyticsErrors: n.WriteFailures} {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value))
	}
}

func (c state) collectIndexes(gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	s := c.s
	total, used := s.diskBytes()
	gauge(databaseBytes, float64(total))
	gauge(usedBytes, float64(used))
	uids := s.catalog.UIDs()
	gauge(indexCount, float64(len(uids)))
	var last int64
	merges := 0
	for _, uid := range uids {
		ix := s.catalog.Get(uid)
		if ix == nil { // deleted since
			continue
		}
		size, err := ix.Size()
		if err != nil { // it cannot be opened now
			continue
		}
		last = max(last, ix.Outline().UpdatedAt.Unix())
		gauge(indexDocuments, float64(size.Documents), uid)
		if !c.engine {
			continue
		}
		gauge(segmentCount, float64(size.Segments), uid)
		gauge(segmentBytes, float64(size.SegmentBytes), uid)
		gauge(tombstones, float64(size.DeletedRows), uid)
		merges += ix.Merges()
	}
	gauge(lastUpdate, float64(last))
	if c.engine {
		gauge(mergesRunning, float64(merges))
	}
	aside, damaged := s.catalog.Damages()
	if len(aside) > 0 || c.engine {
		gauge(indexesSetAside, float64(len(aside)))
	}
	if c.engine {
		damaged = zeros(damaged, uids)
	}
	for uid, n := range damaged {
		gauge(damagedSegments, float64(n), uid)
	}
}

func (c state) collectTasks(to chan<- prometheus.Metric, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	q, err := c.s.queue.Statistics()
	if err != nil {
		to <- prometheus.NewInvalidMetric(taskCounts, err)
		return
	}
	for kind, counts := range map[string]map[string]int{"statuses": q.Statuses, "types": q.Kinds, "indexes": q.Indexes} {
		for value, n := range counts {
			gauge(taskCounts, float64(n), kind, value)
		}
	}
	if c.engine {
		to <- prometheus.MustNewConstMetric(batchesDone, prometheus.CounterValue, float64(q.Batches))
		to <- histogram(commitTimes, q.Commits)
	}
	indexing := 0.0
	if q.Running {
		indexing = 1
		batch := strconv.FormatUint(uint64(q.RunningBatch), 10)
		for _, step := range q.RunningSteps {
			gauge(runningTrace, float64(step.Finished)/float64(max(step.Total, 1)), batch, step.Name)
		}
	}
	gauge(isIndexing, indexing)
	if q.Finished {
		batch := strconv.FormatUint(uint64(q.LastBatch), 10)
		for _, step := range q.LastTrace {
			gauge(finishedTrace, float64(step.Took)/float64(time.Millisecond), batch, step.Path)
		}
	}
	if x := q.Indexed; x != nil && (c.engine || c.s.newest) { // of v1.47
		batch := strconv.FormatUint(uint64(x.UID), 10)
		gauge(lastIndexed, float64(x.Documents), batch, x.IndexUID)
		gauge(lastIndexedTook, float64(x.Took)/float64(time.Millisecond), batch, x.IndexUID)
	}
	latency := 0.0
	if !q.Oldest.IsZero() {
		latency = max(time.Since(q.Oldest).Seconds(), 0)
	}
	gauge(taskLatency, latency)
	lags := c.s.queue.Lags()
	if c.engine {
		lags = zeros(lags, c.s.network.Network().Others())
	}
	for remote, lag := range lags {
		age := 0.0
		if !lag.Oldest.IsZero() {
			age = max(time.Since(lag.Oldest).Seconds(), 0)
		}
		gauge(outboxTasks, float64(lag.Requests), remote)
		gauge(outboxBytes, float64(lag.Bytes), remote)
		gauge(outboxLag, age, remote)
	}
	parked := map[string]int{}
	if c.engine {
		parked = zeros(parked, task.ParkingReasons())
	}
	for _, p := range c.s.queue.Parked() {
		parked[string(p.Reason.Code)]++
	}
	for reason, n := range parked {
		gauge(parkedIndexes, float64(n), reason)
	}
	gauge(taskQueueUsed, float64(q.UsedBytes))
	gauge(taskQueueMax, float64(q.MaxBytes))
	gauge(taskQueueLeft, float64(max(q.MaxBytes-q.UsedBytes, 0)))
}

// metricsQuery is the query string of the metrics.
type metricsQuery struct{ engine bool }

var metricsParams = []param[metricsQuery]{
	{name: "engine", code: "bad_request", kind: flag, set: func(q *metricsQuery, a *arg) error { q.engine = a.flag; return nil }},
}

// getMetrics answers in the text format of Prometheus.
func (s *Server) getMetrics(ctx *fasthttp.RequestCtx) error {
	if err := s.features.need("metrics", "reading metrics"); err != nil {
		return err
	}
	if caller(ctx).Limit() != nil {
		return auth.Refuse("The metrics tell of all indexes: they need a key for all indexes.")
	}
	var q metricsQuery
	if v := ctx.QueryArgs().Peek("engine"); v != nil { // others pass
		var known fasthttp.Args
		known.SetBytesV("engine", v)
		if err := decodeQuery(&q, &known, metricsParams); err != nil {
			return err
		}
	}
	registry := s.metrics.registry
	if q.engine {
		registry = s.metrics.full
		s.metrics.seed()
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, format)
	for _, family := range families {
		if rest, ok := strings.CutPrefix(family.GetName(), metricsPrefix); ok {
			name := s.metrics.prefix + rest
			family.Name = &name
		}
		if err := encoder.Encode(family); err != nil {
			return err
		}
	}
	ctx.SetContentType(string(format))
	ctx.Response.SetBodyRaw(slices.Clip(text.Bytes()))
	return nil
}
