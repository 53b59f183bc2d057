package fastapi

import (
	"math"
	"os"
	runtimemetrics "runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/auth"
)

const (
	recentStep  = 5 * time.Second
	recentSteps = 60 // whole ones, that are shown

	// Times of searches are counted in buckets that grow by a quarter of a doubling each; the last one has the rest.
	recentFirst   = 50 * time.Microsecond
	recentPerTwo  = 4
	recentBuckets = 85 // up to 100 s
)

// recent has the figures of the last minutes. Requests add to them without a lock. There is no goroutine: the first request of a step
// makes room for the step and records the use of memory.
//
// Moments are durations since began. So steps stay in order when the clock of the machine is set.
type recent struct {
	began time.Time
	read  func() reading // of the moment

	making sync.Mutex
	steps  [recentSteps + 2]step // the current step, and one that a request which began in it may still write to
	day    [daySteps + 1]dayStep // of the steps before those; making is held
}

// step is what happened in a recentStep.
type step struct {
	number             atomic.Int64 // as recent.number returns it; 0: none yet
	requests, searches atomic.Int64
	refused, failed    atomic.Int64 // answered with 4xx and 5xx
	longest            atomic.Int64 // of searches, ns
	times              [recentBuckets]atomic.Uint32
	start              atomic.Pointer[reading] // when it began
}

// reading has what is measured at the start of a step.
type reading struct {
	memory       int64 // of the heap and related memory, in bytes
	tasks        int64 // unfinished
	hits, misses uint64
}

// bucketOf returns the bucket of a time.
func bucketOf(d time.Duration) int {
	if d <= recentFirst {
		return 0
	}
	return min(int(math.Ceil(recentPerTwo*math.Log2(float64(d)/float64(recentFirst)))), recentBuckets-1)
}

// bucketTime is the longest time of a bucket.
func bucketTime(i int) time.Duration {
	return time.Duration(float64(recentFirst) * math.Exp2(float64(i)/recentPerTwo))
}

// number returns the number of the step of a moment, for steps of a length. While the clock is not set, steps are counted since 1970.
func (r *recent) number(now, length time.Duration) int64 {
	return (r.began.UnixNano() + int64(now)) / int64(length)
}

// start returns when a step started by the clock, which shows a time at the moment now.
func (r *recent) start(number int64, length, now time.Duration, clock time.Time) string {
	set := clock.Round(0).Sub(r.began.Add(now).Round(0)).Round(recentStep)
	return rfc3339(time.Unix(0, number*int64(length)).Add(set))
}

// at returns the step of a moment, nil when it is too long ago.
func (r *recent) at(now time.Duration) *step {
	number := r.number(now, recentStep)
	s := &r.steps[number%int64(len(r.steps))]
	if is := s.number.Load(); is == number {
		return s
	} else if is > number {
		return nil
	}
	r.making.Lock()
	defer r.making.Unlock()
	if is := s.number.Load(); is >= number {
		return s
	}
	r.keep(s)
	for _, n := range [...]*atomic.Int64{&s.requests, &s.searches, &s.refused, &s.failed, &s.longest} {
		n.Store(0)
	}
	for i := range s.times {
		s.times[i].Store(0)
	}
	start := r.read()
	s.start.Store(&start)
	s.number.Store(number)
	return s
}

// add takes up an answered request.
func (r *recent) add(now time.Duration, status int, searching bool, took time.Duration) {
	s := r.at(now)
	if s == nil {
		return
	}
	s.requests.Add(1)
	switch {
	case status >= 500:
		s.failed.Add(1)
	case status >= 400:
		s.refused.Add(1)
	}
	if !searching {
		return
	}
	s.searches.Add(1)
	s.times[bucketOf(took)].Add(1)
	for longest := s.longest.Load(); int64(took) > longest; longest = s.longest.Load() {
		if s.longest.CompareAndSwap(longest, int64(took)) {
			break
		}
	}
}

// searchTimes are percentiles, in milliseconds: the ends of their buckets, at most 19% above the time itself.
type searchTimes struct {
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
	Longest float64 `json:"longest"`
}

func (s *step) percentiles() *searchTimes {
	var counts [recentBuckets]uint32
	for i := range s.times {
		counts[i] = s.times[i].Load()
	}
	return percentiles(&counts, time.Duration(s.longest.Load()))
}

// percentiles computes percentiles from the buckets of times; nil: there are no times.
func percentiles(counts *[recentBuckets]uint32, longest time.Duration) *searchTimes {
	total := uint64(0)
	for _, n := range counts {
		total += uint64(n)
	}
	if total == 0 {
		return nil
	}
	of := func(share float64) float64 {
		left := uint64(math.Ceil(share * float64(total)))
		for i, n := range counts {
			if uint64(n) >= left {
				return milliseconds(min(bucketTime(i), longest))
			}
			left -= uint64(n)
		}
		return milliseconds(longest)
	}
	return &searchTimes{of(.5), of(.95), of(.99), milliseconds(longest)}
}

// milliseconds rounds to a microsecond.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// stepView is a step as it is shown.
type stepView struct {
	At       string       `json:"at"`
	Requests int64        `json:"requests"`
	Refused  int64        `json:"refused"`
	Failed   int64        `json:"failed"`
	Searches int64        `json:"searches"`
	SearchMs *searchTimes `json:"searchMs"`
	Memory   *int64       `json:"memoryBytes"` // null: no request
	Tasks    *int64       `json:"tasks"`
	Hits     uint64       `json:"cacheHits"`
	Misses   uint64       `json:"cacheMisses"`
}

// view returns the complete steps before now, oldest first. Steps without requests since the start have zeros. clock is the time of day.
func (r *recent) view(now time.Duration, clock time.Time) []stepView {
	r.at(now) // ends the one before
	last := r.number(now, recentStep)
	views := []stepView{}
	for number := max(last-recentSteps, r.number(0, recentStep)); number < last; number++ {
		v := stepView{At: r.start(number, recentStep, now, clock)}
		if s := &r.steps[number%int64(len(r.steps))]; s.number.Load() == number {
			v.Requests, v.Refused, v.Failed, v.Searches, v.SearchMs = s.requests.Load(), s.refused.Load(), s.failed.Load(), s.searches.Load(), s.percentiles()
			start := s.start.Load()
			v.Memory, v.Tasks = &start.memory, &start.tasks
			if end := r.after(number, last); end != nil {
				v.Hits, v.Misses = end.hits-start.hits, end.misses-start.misses
			}
		}
		views = append(views, v)
	}
	return views
}

// after returns the first reading after a step, up to the reading of last.
func (r *recent) after(number, last int64) *reading {
	for n := number + 1; n <= last; n++ {
		if s := &r.steps[n%int64(len(r.steps))]; s.number.Load() == n {
			return s.start.Load()
		}
	}
	return nil
}

// measure reads the figures that a step begins with.
func (s *Server) measure() reading {
	m := reading{memory: heapBytes()}
	if s.queue != nil {
		m.tasks = s.queue.Unfinished()
	}
	if s.catalog != nil {
		_, m.hits, m.misses = s.catalog.SearchCache()
	}
	return m
}

// heapBytes returns how much memory the runtime has from the system, without mapped files.
func heapBytes() int64 {
	all := [...]runtimemetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	runtimemetrics.Read(all[:])
	return int64(all[0].Value.Uint64() - all[1].Value.Uint64())
}

// residentBytes returns the resident memory of the process, including mapped files, if the system reports it.
func residentBytes() *int64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return nil
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return nil
	}
	bytes := pages * int64(os.Getpagesize())
	return &bytes
}

// momentView is how the server is now.
type momentView struct {
	Uptime          float64 `json:"uptimeSeconds"`
	Running         int     `json:"searchesRunning"`
	Waiting         int     `json:"searchesWaiting"`
	QueueSize       int     `json:"searchQueueSize"`
	Connections     int     `json:"connections"`
	Memory          int64   `json:"memoryBytes"`
	Resident        *int64  `json:"residentBytes"`
	RequestBytes    int64   `json:"requestBytes"`
	RequestLimit    int64   `json:"requestBytesLimit"`
	CacheBytes      int64   `json:"cacheBytes"`
	CacheHits       uint64  `json:"cacheHits"` // since the start
	CacheMisses     uint64  `json:"cacheMisses"`
	DiskBytes       int64   `json:"diskBytes"`
	UsedDiskBytes   int64   `json:"usedDiskBytes"`
	TasksEnqueued   int     `json:"tasksEnqueued"`
	TasksProcessing int     `json:"tasksProcessing"`
	OldestTask      float64 `json:"oldestTaskSeconds"` // of those that have not ended; 0: none
	TaskStreams     int64   `json:"taskStreams"`
	Conversations   int64   `json:"conversations"`

	Publication *publicationView `json:"publication,omitempty"` // nil: the data directory is not published
}

// recentQuery says which numbers are shown.
type recentQuery struct{ day bool }

var recentParams = []param[recentQuery]{
	{name: "day", code: "bad_request", kind: flag, set: func(q *recentQuery, a *arg) error { q.day = a.flag; return nil }},
}

// recentMetrics answers with the figures of the last five minutes or of a day, and the present ones.
func (s *Server) recentMetrics(ctx *fasthttp.RequestCtx) error {
	if caller(ctx).Limit() != nil {
		return auth.Refuse("Metrics cover all indexes, so they need a key for all indexes.")
	}
	var asked recentQuery
	if err := decodeQuery(&asked, ctx.QueryArgs(), recentParams); err != nil {
		return err
	}
	q, err := s.queue.Statistics()
	if err != nil {
		return err
	}
	now := time.Now()
	m := momentView{Uptime: now.Sub(s.recent.began).Seconds(), Memory: heapBytes(), Resident: residentBytes(), RequestBytes: s.budget.Used(), RequestLimit: s.budget.Limit(),
		TasksEnqueued: q.Statuses["enqueued"], TasksProcessing: q.Statuses["processing"], TaskStreams: s.taskStreams.Load(), Conversations: s.conversations.Load()}
	m.QueueSize, m.Running, m.Waiting = s.slots.now()
	m.Connections = s.conns.count()
	m.CacheBytes, m.CacheHits, m.CacheMisses = s.catalog.SearchCache()
	m.DiskBytes, m.UsedDiskBytes = s.diskBytes()
	m.Publication = s.publication()
	if !q.Oldest.IsZero() {
		m.OldestTask = max(now.Sub(q.Oldest).Seconds(), 0)
	}
	span, steps := recentStep, s.recent.view
	if asked.day {
		span, steps = dayStepTime, s.recent.dayView
	}
	return answer(ctx, struct {
		StepSeconds float64    `json:"stepSeconds"`
		Steps       []stepView `json:"steps"`
		Now         momentView `json:"now"`
	}{span.Seconds(), steps(now.Sub(s.recent.began), now), m})
}
