package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// connections is how many ask at once where throughput is measured.
const connections = 8

type latencies []time.Duration

// quantile returns the latency that a share of all stays at or below, in milliseconds.
func (l latencies) quantile(share float64) float64 {
	if len(l) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l))
	at := min(int(share*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[at]) / float64(time.Millisecond)
}

// searching is what a kind of search costs.
type searching struct {
	name          string
	p50, p99      float64 // milliseconds, one connection
	qps           float64 // connections at once
	hits          float64 // mean of estimatedTotalHits
	cpuPerRequest float64 // milliseconds of the server's CPU
}

// search measures a kind of search: first alone, then with several connections at once.
func (m *measurement) search(s *server, k queryKind) (searching, error) {
	f := searching{name: k.name}
	c := s.connection()
	for _, body := range k.bodies { // to warm up, and to see that the queries find something
		answer, err := c.search(body)
		if err != nil {
			return f, err
		}
		var found struct {
			Total float64 `json:"estimatedTotalHits"`
		}
		if err := json.Unmarshal(answer, &found); err != nil {
			return f, fmt.Errorf("cannot read the answer to %s: %w", body, err)
		}
		f.hits += found.Total / float64(len(k.bodies))
	}
	rounds, seconds := 5, 4.0
	if m.Quick {
		rounds, seconds = 1, 0.3
	}
	var l latencies
	for range rounds {
		for _, body := range k.bodies {
			began := time.Now()
			if _, err := c.search(body); err != nil {
				return f, err
			}
			l = append(l, time.Since(began))
		}
	}
	f.p50, f.p99 = l.quantile(0.5), l.quantile(0.99)

	cpu := s.cpuSeconds()
	n, elapsed, err := s.load([]queryKind{k}, time.Duration(seconds*float64(time.Second)))
	if err != nil {
		return f, err
	}
	f.qps = float64(n) / elapsed.Seconds()
	f.cpuPerRequest = (s.cpuSeconds() - cpu) * 1000 / float64(n)
	return f, nil
}

// mixed returns the queries of all kinds, one of each after the other.
func mixed(kinds []queryKind) (bodies [][]byte) {
	for i := range queriesOfKind {
		for _, k := range kinds {
			bodies = append(bodies, k.bodies[i])
		}
	}
	return bodies
}

// load sends queries over several connections at once for a time, and returns the number of answers.
func (s *server) load(kinds []queryKind, d time.Duration) (n int64, elapsed time.Duration, err error) {
	bodies := mixed(kinds)
	var (
		wg     sync.WaitGroup
		count  atomic.Int64
		failed atomic.Pointer[error]
	)
	began := time.Now()
	for i := range connections {
		wg.Go(func() {
			c := s.connection()
			for at := i * len(bodies) / connections; time.Since(began) < d && failed.Load() == nil; at++ {
				if _, err := c.search(bodies[at%len(bodies)]); err != nil {
					failed.Store(&err)
					return
				}
				count.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	return count.Load(), time.Since(began), nil
}

// A connection asks one search after the other.
type connection struct {
	client *fasthttp.HostClient
	req    *fasthttp.Request
	resp   *fasthttp.Response
}

func (s *server) connection() *connection {
	c := &connection{s.client, new(fasthttp.Request), new(fasthttp.Response)}
	c.req.Header.SetMethod(fasthttp.MethodPost)
	c.req.Header.SetContentType("application/json")
	c.req.SetRequestURI("http://" + s.client.Addr + "/indexes/" + index + "/search")
	if s.key != "" {
		c.req.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+s.key)
	}
	return c
}

// search returns the answer, valid until the next search.
func (c *connection) search(body []byte) ([]byte, error) {
	c.req.SetBodyRaw(body)
	if err := c.client.Do(c.req, c.resp); err != nil {
		return nil, fmt.Errorf("searching for %s: %w", body, err)
	}
	if status := c.resp.StatusCode(); status != fasthttp.StatusOK {
		return nil, fmt.Errorf("searching for %s: status %d: %s", body, status, c.resp.Body())
	}
	return c.resp.Body(), nil
}
