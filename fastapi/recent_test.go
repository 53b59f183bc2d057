package fastapi

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRecent counts requests of a few steps on several goroutines, and compares with a list of all of them.
func TestRecent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	began := time.Unix(1_700_000_000, 0)
	var hits uint64
	r := recent{began: began, read: func() reading { hits += 10; return reading{memory: 7, hits: hits} }}
	type request struct {
		at     time.Time
		status int
		took   time.Duration // < 0: not a search
	}
	steps := make([][]request, recentSteps+20)
	for i := range steps {
		if i%7 == 3 {
			continue // no requests
		}
		for range 1 + rnd.IntN(200) {
			x := request{began.Add(time.Duration(i)*recentStep + time.Duration(rnd.Int64N(int64(recentStep)))), []int{200, 200, 404, 503}[rnd.IntN(4)], -1}
			if rnd.IntN(3) > 0 {
				x.took = time.Duration(rnd.ExpFloat64() * float64(5*time.Millisecond))
			}
			steps[i] = append(steps[i], x)
		}
	}
	for _, requests := range steps {
		var group sync.WaitGroup
		for part := range slices.Chunk(requests, 50) {
			group.Go(func() {
				for _, x := range part {
					r.add(x.at.Sub(began), x.status, x.took >= 0, x.took)
				}
			})
		}
		group.Wait()
	}
	now := time.Duration(len(steps)) * recentStep
	shown := r.view(now, began.Add(now))
	if len(shown) != recentSteps {
		t.Fatalf("%d steps", len(shown))
	}
	for i, got := range shown {
		requests := steps[len(steps)-recentSteps+i]
		var want stepView
		var times []time.Duration
		for _, x := range requests {
			want.Requests++
			switch {
			case x.status >= 500:
				want.Failed++
			case x.status >= 400:
				want.Refused++
			}
			if x.took >= 0 {
				times = append(times, x.took)
			}
		}
		want.Searches = int64(len(times))
		if got.Requests != want.Requests || got.Failed != want.Failed || got.Refused != want.Refused || got.Searches != want.Searches {
			t.Errorf("step %d: %+v, want %+v", i, got, want)
		}
		if len(requests) == 0 {
			if got.Memory != nil || got.SearchMs != nil {
				t.Errorf("step %d without requests: %+v", i, got)
			}
			continue
		}
		if *got.Memory != 7 || got.Hits != 10 {
			t.Errorf("step %d: %+v", i, got)
		}
		if len(times) == 0 {
			if got.SearchMs != nil {
				t.Errorf("step %d without searches: %+v", i, got)
			}
			continue
		}
		slices.Sort(times)
		for share, shown := range map[float64]float64{.5: got.SearchMs.P50, .95: got.SearchMs.P95, 1: got.SearchMs.Longest} {
			exact := milliseconds(times[max(int(share*float64(len(times))+.9999)-1, 0)])
			if low, high := exact-.002, max(exact*1.2, .05)+.002; shown < low || shown > high {
				t.Errorf("step %d: the %g quantile is %g ms, shown as %g", i, share, exact, shown)
			}
		}
	}
	r.add(0, 200, true, time.Hour) // long ago
	if after := r.view(now, began.Add(now)); after[0] != shown[0] && after[0].Requests != shown[0].Requests {
		t.Errorf("an old request changes a step: %+v", after[0])
	}
}

// TestRecentDay counts requests of thirty hours, some without requests, and compares each step with a list of all of them.
func TestRecentDay(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	began := time.Unix(1_700_000_000, 0)
	n := int64(0)
	r := recent{began: began, read: func() reading {
		n++
		return reading{memory: n % 1000, tasks: n % 7, hits: uint64(10 * n), misses: uint64(n)}
	}}
	type sum struct {
		requests, searches, refused, failed int64
		longest                             time.Duration
		memory, tasks                       int64
		first, after                        int64 // readings: the first, and the first of a later step
	}
	want := map[int64]*sum{}
	now, ago, lastReading := began, int64(0), int64(-1)
	var order []*sum
	for now.Before(began.Add(30 * time.Hour)) {
		if now = now.Add(time.Duration(rnd.ExpFloat64() * float64(20*time.Second))); rnd.IntN(300) == 0 {
			now = now.Add(time.Duration(rnd.Int64N(int64(30 * time.Minute)))) // no requests
		}
		number := now.UnixNano() / int64(dayStepTime)
		w := want[number]
		if w == nil {
			w = &sum{}
			want[number] = w
			order = append(order, w)
		}
		status, took := []int{200, 200, 404, 503}[rnd.IntN(4)], time.Duration(rnd.ExpFloat64()*float64(5*time.Millisecond))
		searching := rnd.IntN(2) == 0
		r.add(now.Sub(began), status, searching, took)
		if step := now.UnixNano() / int64(recentStep); step != lastReading {
			lastReading = step
			if w.first == 0 {
				w.first = n
				if len(order) > 1 {
					order[len(order)-2].after = n
				}
			}
			w.memory, w.tasks = max(w.memory, n%1000), max(w.tasks, n%7)
		}
		w.requests++
		if searching {
			w.searches++
			w.longest = max(w.longest, took)
		}
		switch status {
		case 404:
			w.refused++
		case 503:
			w.failed++
		}
		if rnd.IntN(200) > 0 {
			continue
		}
		views := r.dayView(now.Sub(began), now)
		if most := min(int64(daySteps), now.UnixNano()/int64(dayStepTime)-began.UnixNano()/int64(dayStepTime)); int64(len(views)) != most {
			t.Fatalf("%d steps, want %d", len(views), most)
		}
		for i, v := range views {
			at := now.UnixNano()/int64(dayStepTime) - int64(len(views)-i)
			w := want[at]
			if w == nil {
				ago++
				if v.Requests != 0 || v.Memory != nil || v.Tasks != nil || v.SearchMs != nil || v.Hits != 0 {
					t.Fatalf("step %d of %d without requests: %+v", i, len(views), v)
				}
				continue
			}
			if v.Requests != w.requests || v.Searches != w.searches || v.Refused != w.refused || v.Failed != w.failed || *v.Memory != w.memory || *v.Tasks != w.tasks ||
				(v.SearchMs != nil) != (w.searches > 0) || v.SearchMs != nil && v.SearchMs.Longest != milliseconds(w.longest) || int64(v.Hits) != 10*(w.after-w.first) || int64(v.Misses) != w.after-w.first {
				t.Fatalf("step %d of %d: %+v, want %+v", i, len(views), v, *w)
			}
		}
	}
	if ago == 0 {
		t.Error("no step is without requests")
	}
}

// TestRecentWhenTheClockIsSet sets the clock back and forward while requests are counted. All requests stay in their steps, and the steps
// end at the present time.
func TestRecentWhenTheClockIsSet(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	r := recent{began: began, read: func() reading { return reading{} }}
	now := time.Duration(0)
	for i, set := range []time.Duration{0, -time.Hour, -24 * time.Hour, 48 * time.Hour} {
		for range 3 {
			r.add(now, 200, true, time.Millisecond)
			now += dayStepTime
		}
		clock := began.Add(now + set)
		if views := r.view(now, clock); len(views) != recentSteps || views[0].Requests != 1 || views[len(views)-1].At != rfc3339(clock.Add(-recentStep)) {
			t.Errorf("clock set by %v: %d steps, the first %+v, the last %+v", set, len(views), views[0], views[len(views)-1])
		}
		views := r.dayView(now, clock)
		if len(views) != 3*(i+1) || views[len(views)-1].At != rfc3339(clock.Truncate(dayStepTime).Add(-dayStepTime)) {
			t.Fatalf("clock set by %v: %d steps of the day, the last %+v", set, len(views), views[len(views)-1])
		}
		for at, v := range views {
			if v.Requests != 1 || v.Searches != 1 {
				t.Errorf("clock set by %v: step %d of the day: %+v", set, at, v)
			}
		}
	}
}

func TestRecentMetrics(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1}]`))
	c.json("POST", "/indexes/i/search", `{}`)
	c.get("/nowhere")
	var shown struct {
		StepSeconds float64
		Steps       []stepView
		Now         momentView
	}
	c.server.recent.began = time.Now().Add(-2 * recentStep)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(recentStep / 20) { // until the steps of the requests have ended
		r := c.get("/metrics/recent")
		if err := json.Unmarshal([]byte(r.body), &shown); err != nil || r.status != 200 {
			t.Fatalf("%v: %d %s", err, r.status, r.body)
		}
		var all stepView
		for _, s := range shown.Steps {
			all.Requests, all.Searches, all.Refused = all.Requests+s.Requests, all.Searches+s.Searches, all.Refused+s.Refused
			if (s.SearchMs != nil) != (s.Searches > 0) || s.Searches > 0 && s.Memory == nil {
				t.Errorf("%s", r.body)
			}
		}
		if all.Searches > 0 && all.Refused > 0 {
			if all.Searches != 1 || all.Refused != 1 || all.Requests < 4 {
				t.Errorf("%s", r.body)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the search is not shown: %s", r.body)
		}
	}
	if n := shown.Now; n.Memory == 0 || n.RequestLimit == 0 || n.DiskBytes == 0 || n.Connections == 0 || n.TasksEnqueued != 0 {
		t.Errorf("%+v", n)
	}
	if r := c.get("/metrics/recent?day=true"); r.status != 200 || !strings.HasPrefix(r.body, `{"stepSeconds":300,"steps":[`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := c.get("/metrics/recent?x=1"); r.code() != "bad_request" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestSegments(t *testing.T) {
	c := newProtected(t)
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1}, {"id": 2}]`))
	c.wait(c.send("DELETE", "/indexes/i/documents/1", nil))
	var shown struct {
		Segments []segmentView
		Merges   []mergeView
	}
	r := c.get("/indexes/i/segments")
	if err := json.Unmarshal([]byte(r.body), &shown); err != nil || len(shown.Segments) == 0 || shown.Merges == nil {
		t.Fatalf("%v: %d %s", err, r.status, r.body)
	}
	live := 0
	for _, s := range shown.Segments {
		live += s.Rows - s.Deleted
		if s.Bytes == 0 {
			t.Errorf("%+v", s)
		}
	}
	if live != 1 {
		t.Errorf("%d documents: %s", live, r.body)
	}
	for path, code := range map[string]string{"/indexes/none/segments": "index_not_found", "/indexes/a%20b/segments": "invalid_index_uid", "/indexes/i/segments?x=1": "bad_request"} {
		if r := c.get(path); r.code() != code {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	key := c.as(c.makeKey(`["stats.get"]`, `["i"]`))
	if r := key.get("/indexes/i/segments"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := key.get("/indexes/other/segments"); r.status != 403 {
		t.Errorf("%d %s", r.status, r.body)
	}
}
