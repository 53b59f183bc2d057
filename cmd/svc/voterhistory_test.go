package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/history"
)

// historian sends requests to any voter whose answers must be linearizable. It reads with Svc-Min-Position.
type historian struct {
	t    *testing.T
	r    *rand.Rand
	id   int
	http http.Client
	all  *historians
}

// historians share a history.
type historians struct {
	*history.Recorder
	registers []*register

	mu   sync.Mutex
	keys []historyKey
	next int // next value
}

// register is a document or a setting that tasks change. It has its own index.
type register struct {
	uid     string
	setting bool

	mu    sync.Mutex
	acked []positioned // acknowledged writes, and ends of tasks
	ops   int
}

// positioned is an operation whose answer had a position.
type positioned struct {
	*history.Op
	position string
}

type historyKey struct{ uid, value string }

// mostOps bounds the operations of a register in a round.
const mostOps = 150

// latest makes a member answer with everything acknowledged before the request.
const latest = "latest"

// ask sends a request. The status is 0 without an answer, or if the answer leaves the outcome open.
func (c *historian) ask(url, method, path, key, position string, body string, into any) (status int, at string) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return 0, ""
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	if position != "" {
		req.Header.Set("Svc-Min-Position", position)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 500 {
		return 0, ""
	}
	switch resp.StatusCode {
	case http.StatusUnprocessableEntity, http.StatusRequestTimeout: // full disk, or the machine is too busy to read the body
		return 0, ""
	}
	if into != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(b, into); err != nil {
			c.t.Errorf("%s %s: %v: %s", method, path, err, b)
		}
	}
	return resp.StatusCode, resp.Header.Get("Svc-Position")
}

// record records an operation. do returns whether its answer is known.
func (c *historian) record(o *history.Op, do func() bool) {
	o.Client, o.Call = c.id, c.all.Now()
	o.Unknown = !do()
	c.all.Add(o)
}

// refuse reports an answer that is never right here.
func (c *historian) refuse(o *history.Op, status int) bool {
	c.t.Errorf("%v: status %d", o, status)
	return false
}

// run sends requests until stop is closed.
func (c *historian) run(urls []string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		url := urls[c.r.IntN(len(urls))]
		if c.r.IntN(4) == 0 {
			c.key(url)
		} else {
			c.register(url, c.all.registers[c.r.IntN(len(c.all.registers))])
		}
		time.Sleep(time.Duration(c.r.IntN(5)) * time.Millisecond) // the other clients write without pauses
	}
}

func (c *historian) register(url string, g *register) {
	g.mu.Lock()
	g.ops++
	full := g.ops > mostOps
	known := slices.Clone(g.acked)
	g.mu.Unlock()
	if full {
		return
	}
	var one positioned
	if len(known) > 0 {
		one = known[max(0, len(known)-1-c.r.IntN(4))]
	}
	switch n := c.r.IntN(20); {
	case n < 5 || one.Op == nil && n < 14:
		c.write(url, g)
	case n < 9 && one.Op != nil:
		c.status(url, g, one.Task)
	case n < 10 && one.Op != nil:
		c.cancel(url, g, one.Task)
	case n < 13 && one.Op != nil:
		c.read(url, g, &one)
	case n < 15:
		c.list(url, g)
	default:
		c.read(url, g, nil)
	}
}

func (c *historian) write(url string, g *register) {
	c.all.mu.Lock()
	c.all.next++
	o := &history.Op{Object: g.uid, Kind: history.Write, Value: c.all.next}
	c.all.mu.Unlock()
	method, path, body := "POST", fmt.Sprintf("/indexes/%s/documents?primaryKey=id&customMetadata=%d", g.uid, o.Value), fmt.Sprintf(`[{"id":1,"v":%d}]`, o.Value)
	if g.setting {
		method, path, body = "PATCH", "/indexes/"+g.uid+"/settings", fmt.Sprintf(`{"pagination":{"maxTotalHits":%d}}`, o.Value)
	}
	at := ""
	c.record(o, func() bool {
		var made struct{ TaskUID int64 }
		var status int
		status, at = c.ask(url, method, path, groupKey, "", body, &made)
		o.Task = made.TaskUID
		return status == 202 || status != 0 && c.refuse(o, status)
	})
	g.told(o, at)
}

// told records an operation whose position readers may require.
func (g *register) told(o *history.Op, at string) {
	if o.Unknown || at == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.acked = append(g.acked, positioned{o, at})
}

func stateOf(status string) history.State {
	return map[string]history.State{"succeeded": history.Succeeded, "failed": history.Failed, "canceled": history.Canceled}[status]
}

func (c *historian) status(url string, g *register, task int64) {
	o := &history.Op{Object: g.uid, Kind: history.Status, Task: task}
	at := ""
	c.record(o, func() bool {
		var x struct{ Status string }
		var status int
		status, at = c.ask(url, "GET", fmt.Sprint("/tasks/", task), groupKey, latest, "", &x)
		o.State = stateOf(x.Status)
		return status == 200 || status != 0 && c.refuse(o, status)
	})
	if o.State == history.Succeeded {
		g.told(o, at)
	}
}

func (c *historian) cancel(url string, g *register, task int64) {
	o := &history.Op{Object: g.uid, Kind: history.Cancel, Task: task}
	c.record(o, func() bool {
		status, _ := c.ask(url, "POST", fmt.Sprint("/tasks/cancel?uids=", task), groupKey, "", "", nil)
		return status == 200 || status == 202 || status != 0 && c.refuse(o, status)
	})
}

func (c *historian) list(url string, g *register) {
	o := &history.Op{Object: g.uid, Kind: history.List}
	c.record(o, func() bool {
		var all struct {
			Results []struct {
				UID            int64
				Status         string
				CustomMetadata string
				Details        struct{ Pagination struct{ MaxTotalHits int } }
			}
		}
		status, _ := c.ask(url, "GET", "/tasks?limit=10000&indexUids="+g.uid, groupKey, latest, "", &all)
		for _, x := range slices.Backward(all.Results) {
			value := x.Details.Pagination.MaxTotalHits
			if !g.setting {
				fmt.Sscan(x.CustomMetadata, &value)
			}
			o.Tasks = append(o.Tasks, history.Task{UID: x.UID, Value: value, State: stateOf(x.Status)})
		}
		return status == 200 || status != 0 && c.refuse(o, status)
	})
}

// read reads the value, as of another operation or as of now.
func (c *historian) read(url string, g *register, after *positioned) {
	o, position := &history.Op{Object: g.uid, Kind: history.Read}, latest
	if after != nil {
		o.After, position = after.Op, after.position
	}
	c.record(o, func() bool {
		if g.setting {
			var x struct{ MaxTotalHits int }
			status, _ := c.ask(url, "GET", "/indexes/"+g.uid+"/settings/pagination", groupKey, position, "", &x)
			if o.Value = x.MaxTotalHits; o.Value == 1000 { // the default
				o.Value = 0
			}
			return status == 200 || status == 404 || status != 0 && c.refuse(o, status)
		}
		var x struct{ Hits []struct{ V int } }
		status, _ := c.ask(url, "POST", "/indexes/"+g.uid+"/search", groupKey, position, `{"limit":2}`, &x)
		for _, h := range x.Hits {
			o.Value = h.V
		}
		return len(x.Hits) < 2 && (status == 200 || status == 404) || status != 0 && c.refuse(o, status)
	})
}

// key creates, uses or deletes a key. Only the historian that created a key uses it: otherwise a retry might create it again.
func (c *historian) key(url string) {
	c.all.mu.Lock()
	keys := slices.Clone(c.all.keys)
	c.all.mu.Unlock()
	n := c.r.IntN(10)
	if len(keys) == 0 || n == 0 && len(keys) < 12 {
		made := historyKey{uid: uuid.NewString()}
		o := &history.Op{Object: made.uid, Kind: history.Make}
		c.record(o, func() bool {
			var x struct{ Key string }
			status, _ := c.ask(url, "POST", "/keys", groupKey, "", fmt.Sprintf(`{"uid":%q,"actions":["search"],"indexes":["*"],"expiresAt":null}`, made.uid), &x)
			made.value = x.Key
			return status == 201 || status != 0 && c.refuse(o, status)
		})
		if !o.Unknown {
			c.all.mu.Lock()
			c.all.keys = append(c.all.keys, made)
			c.all.mu.Unlock()
		}
		return
	}
	k := keys[c.r.IntN(len(keys))]
	o := &history.Op{Object: k.uid, Kind: history.Use}
	if n == 1 {
		o.Kind = history.Drop
		c.record(o, func() bool {
			status, _ := c.ask(url, "DELETE", "/keys/"+k.uid, groupKey, "", "", nil)
			return status == 204 || status == 404 || status != 0 && c.refuse(o, status)
		})
		return
	}
	c.record(o, func() bool {
		status, _ := c.ask(url, "POST", "/indexes/"+c.all.registers[0].uid+"/search", k.value, latest, `{"limit":1}`, nil)
		if status != 403 {
			o.Value = 1
		}
		return status == 200 || status == 403 || status == 404 || status != 0 && c.refuse(o, status)
	})
}

// newHistorians starts a history with its own registers.
func newHistorians(t *testing.T, seed uint64, round int) (*historians, []*historian) {
	h := &historians{Recorder: history.NewRecorder()}
	for i := range 3 {
		h.registers = append(h.registers, &register{uid: fmt.Sprintf("history-%d-%d", round, i), setting: i == 2})
	}
	h.next = 10_000 // so that no value is the default of a setting
	var all []*historian
	for i := range 3 {
		all = append(all, &historian{t: t, r: rand.New(rand.NewPCG(seed, uint64(1000*round+100+i))), id: i, all: h})
	}
	return h, all
}

// historyCount counts what was checked.
type historyCount struct{ ops, unknown, objects, undecided int }

// check reads everything from all members once more, and checks the history.
func (h *historians) check(c *historian, urls []string, sum *historyCount) {
	c.t.Helper()
	for _, url := range urls {
		for _, g := range h.registers {
			c.list(url, g)
			c.read(url, g, nil)
		}
	}
	for object, ops := range h.Take() {
		sum.ops += len(ops)
		sum.objects++
		for _, o := range ops {
			if o.Unknown {
				sum.unknown++
			}
		}
		switch history.Check(ops, 10*time.Second) {
		case history.Violated:
			c.t.Errorf("the history of %s is not linearizable:\n%s", object, history.Print(ops))
		case history.Undecided:
			sum.undecided++
			c.t.Logf("the history of %s has too many possible orders:\n%s", object, history.Print(ops))
		}
	}
}
