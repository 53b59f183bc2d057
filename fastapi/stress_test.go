package fastapi

import (
	"encoding/json"
	flags "flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	stressFor  = flags.Duration("stress-time", 0, "how long TestLargeRequestsAreAnswered goes on with each number of processors, beside busy loops; 0: for some requests")
	stressSeed = flags.Uint64("stress-seed", 1, "where TestLargeRequestsAreAnswered delays work")
)

// unansweredAfter is the time after which a request counts as never answered.
const unansweredAfter = time.Minute

// TestLargeRequestsAreAnswered has many clients send slow requests of all kinds with few processors. Turns change hands continuously, with
// delays at all these places. Every request must be answered, and nothing may be held afterwards.
func TestLargeRequestsAreAnswered(t *testing.T) {
	short := slice
	slice = short / 40
	defer func() { slice = short }()
	for _, processors := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(processors, " processors"), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			c := newStressed(t)
			delay := newDelays(*stressSeed)
			disturb = delay.next
			defer func() { disturb = nil }()
			requests := largeRequests(c)
			deadline := time.Now().Add(*stressFor)
			if *stressFor > 0 {
				defer beBusy(3)()
			}
			var clients sync.WaitGroup
			var sent atomic.Int64
			for i := range 2 * len(requests) {
				clients.Go(func() {
					r := rand.New(rand.NewPCG(*stressSeed, uint64(i)))
					for n := 0; *stressFor == 0 && n < 3 || time.Now().Before(deadline); n++ {
						q := requests[(i+n)%len(requests)]
						if answer := q.send(r); answer.status != 200 && answer.status != 202 {
							t.Errorf("%s: %d %s", q.name, answer.status, answer.body)
							return
						}
						sent.Add(1)
					}
				})
			}
			clients.Wait()
			t.Logf("%d requests, %d places of delay", sent.Load(), delay.places.Load())
			if delay.places.Load() < sent.Load() {
				t.Errorf("only %d requests passed only %d places of delay", sent.Load(), delay.places.Load())
			}
			if n := c.server.watchdog.stalls.Load(); n > 0 {
				t.Errorf("searches stalled %d times", n)
			}
			checkIdle(t, c.server.slots)
		})
	}
}

// newStressed starts a server with three indexes of long documents and a workspace for conversations.
func newStressed(t *testing.T) *client {
	c, _ := newTalking(t, Options{Searches: 4, SearchQueue: 1000, Keys: openKeys(t, masterKey)})
	c.http.Timeout = unansweredAfter
	r := rand.New(rand.NewPCG(1, 1))
	word := func() string { return strings.Repeat([]string{"ka", "to", "mi", "re"}[r.IntN(4)], 1+r.IntN(2)) }
	words := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = word()
		}
		return strings.Join(all, " ")
	}
	for i := range 3 {
		uid := fmt.Sprintf("i%d", i)
		c.json("PATCH", "/indexes/"+uid+"/settings", `{"filterableAttributes":["n","kind"],"sortableAttributes":["n"],"searchCutoffMs":60000}`)
		docs := make([]map[string]any, 300)
		for id := range docs {
			docs[id] = map[string]any{"id": id, "n": id, "kind": fmt.Sprint(word(), id%50), "title": words(3), "text": words(40)}
		}
		b, err := json.Marshal(docs)
		if err != nil {
			t.Fatal(err)
		}
		c.wait(c.json("POST", "/indexes/"+uid+"/documents", string(b)))
	}
	return c
}

// largeRequest is a kind of slow request.
type largeRequest struct {
	name string
	send func(r *rand.Rand) reply
}

func largeRequests(c *client) []largeRequest {
	words := func(r *rand.Rand) string {
		all := []string{"ka", "to", "mi", "re", "kaka", "toto mi", "re -ka", `\"ka mi\"`, ""}
		return all[r.IntN(len(all))]
	}
	uid := func(r *rand.Rand) string { return fmt.Sprintf("i%d", r.IntN(3)) }
	var parts []string
	for n := range 20 {
		parts = append(parts, fmt.Sprintf("n = %d", 10*n), fmt.Sprintf("n > %d", 150+n))
	}
	filter := strings.Join(parts, " OR ")
	queries := func(r *rand.Rand, more string) string {
		var all []string
		for i := range 6 {
			all = append(all, fmt.Sprintf(`{"indexUid":"i%d","q":"%s"%s}`, i%3, words(r), more))
		}
		return strings.Join(all, ",")
	}
	talker := c.as(c.makeKey(`["chatCompletions","search"]`, `["*"]`))
	c.server.serving.Lock()
	address := c.server.serving.listener.Addr().String()
	c.server.serving.Unlock()
	whole := `,"filter":"` + filter + `"`
	return []largeRequest{
		{"federated search", func(r *rand.Rand) reply {
			return c.json("POST", "/multi-search", `{"federation":{"limit":1000},"queries":[`+queries(r, whole)+`]}`)
		}},
		{"federated search with facets", func(r *rand.Rand) reply {
			return c.json("POST", "/multi-search", `{"federation":{"limit":1000,"facetsByIndex":{"i0":["kind"],"i1":["kind","n"]},"distinct":"kind"},"queries":[`+queries(r, `,"attributesToHighlight":["*"]`)+`]}`)
		}},
		{"multi-search", func(r *rand.Rand) reply {
			return c.json("POST", "/multi-search", `{"queries":[`+queries(r, whole+`,"limit":1000,"attributesToHighlight":["*"],"attributesToCrop":["text"],"facets":["kind"]`)+`]}`)
		}},
		{"search", func(r *rand.Rand) reply {
			return c.json("POST", "/indexes/"+uid(r)+"/search", `{"q":"`+words(r)+`","limit":1000,"facets":["*"],"attributesToHighlight":["*"]`+whole+`}`)
		}},
		{"search, compressed", func(r *rand.Rand) reply {
			return c.send("POST", "/indexes/"+uid(r)+"/search", strings.NewReader(`{"q":"`+words(r)+`","limit":1000,"attributesToHighlight":["*"]}`), "Content-Type", "application/json", "Accept-Encoding", "gzip")
		}},
		{"comparison", func(r *rand.Rand) reply {
			return c.json("POST", "/indexes/"+uid(r)+"/compare", `{"search":{"q":"`+words(r)+`","limit":500},"other":{"search":{"q":"`+words(r)+`","limit":500}}}`)
		}},
		{"list of documents", func(r *rand.Rand) reply { return c.get("/indexes/" + uid(r) + "/documents?limit=1000&sort=n:desc") }},
		{"fetch", func(r *rand.Rand) reply {
			return c.json("POST", "/indexes/"+uid(r)+"/documents/fetch", `{"limit":1000`+whole+`}`)
		}},
		{"facet search", func(r *rand.Rand) reply {
			return c.json("POST", "/indexes/"+uid(r)+"/facet-search", `{"facetName":"kind","facetQuery":"k","q":"`+words(r)+`"`+whole+`}`)
		}},
		{"conversation", func(r *rand.Rand) reply {
			return talker.json("POST", completions, question("search "+uid(r)+" for ka where n > 10"))
		}},
		{"list of tasks", func(*rand.Rand) reply { return c.get("/tasks?limit=1000") }},
		{"documents", func(r *rand.Rand) reply {
			return c.json("PUT", "/indexes/"+uid(r)+"/documents", fmt.Sprintf(`[{"id":%d,"title":"%s"}]`, r.IntN(300), strings.Repeat("ka ", 1000)))
		}},
		{"export", func(r *rand.Rand) reply {
			return c.json("POST", "/export", `{"url":"http://`+address+`","apiKey":"`+masterKey+`","indexes":{"`+uid(r)+`":{}}}`)
		}},
	}
}

// delays delays work at places chosen by the seed, by the order in which they are reached.
type delays struct {
	seed   uint64
	places atomic.Int64
}

func newDelays(seed uint64) *delays { return &delays{seed: seed} }

// next is a place of delay.
func (d *delays) next() {
	r := rand.NewPCG(d.seed, uint64(d.places.Add(1)))
	switch n := r.Uint64(); n % 8 {
	case 0:
		time.Sleep(time.Duration(n>>8%2000) * time.Microsecond)
	case 1, 2:
		runtime.Gosched()
	}
}

// beBusy keeps the processors busy. The returned function ends that.
func beBusy(n int) (end func()) {
	var over atomic.Bool
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() { over.Store(true); group.Wait() }
}
