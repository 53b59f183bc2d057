package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"
)

// What a server that has run for long holds.
const (
	serviceKeys    = 500
	serviceIndexes = 200
	serviceTasks   = 100_000

	serviceMasterKey = "the-master-key-of-a-measurement"
)

// service is how a server fares that holds many keys, indexes and finished tasks.
type service struct {
	keys, indexes, tasks int
	start                time.Duration
	requests             []searching
}

// runService fills a server, restarts it and queries it.
func (m *measurement) runService(ctx context.Context) (*service, error) {
	f := &service{keys: serviceKeys, indexes: serviceIndexes, tasks: serviceTasks}
	if m.Quick {
		f.keys, f.indexes, f.tasks = f.keys/20, f.indexes/20, f.tasks/20
	}
	m.masterKey = serviceMasterKey
	s, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { s.kill() }()
	if err := f.fill(ctx, s); err != nil {
		return nil, err
	}
	if err := s.stop(); err != nil {
		return nil, err
	}
	if s, err = m.start(ctx); err != nil {
		return nil, err
	}
	f.start = s.startTime
	for _, path := range []string{
		"/tasks?limit=20", "/tasks?limit=20&statuses=failed", "/tasks?limit=20&indexUids=index-7&types=settingsUpdate",
		"/tasks?limit=20&afterEnqueuedAt=2020-01-01&reverse=true", "/batches?limit=20", "/indexes?limit=20", "/keys?limit=20", "/stats",
	} {
		took := make(latencies, 0, 1000)
		for range cap(took) {
			began := time.Now()
			if _, err := s.do(fasthttp.MethodGet, path, "", nil); err != nil {
				return nil, err
			}
			took = append(took, time.Since(began))
		}
		f.requests = append(f.requests, searching{name: "GET " + path, p50: took.quantile(.5), p99: took.quantile(.99)})
	}
	return f, s.stop()
}

// fill creates the keys and the indexes, and then changes their settings in few batches, until there are enough tasks.
func (f *service) fill(ctx context.Context, s *server) error {
	for i := range f.keys {
		body := fmt.Sprintf(`{"name": "key %d", "actions": ["search"], "indexes": ["index-%d"], "expiresAt": null}`, i, i%f.indexes)
		if _, err := s.post("/keys", "application/json", []byte(body)); err != nil {
			return err
		}
	}
	for i := range f.indexes {
		if _, err := s.post("/indexes", "application/json", fmt.Appendf(nil, `{"uid": "index-%d"}`, i)); err != nil {
			return err
		}
	}
	if err := s.together(f.tasks-f.indexes, func(i int) error {
		_, err := s.patch(fmt.Sprintf("/indexes/index-%d/settings", i/100%f.indexes), fmt.Appendf(nil, `{"stopWords": ["w%d"]}`, i%7))
		return err
	}); err != nil {
		return err
	}
	return s.finishAll(ctx)
}

// table shows it.
func (f *service) table() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d keys, %d indexes, %d finished tasks: answers %.0f ms after its start.\n\n", f.keys, f.indexes, f.tasks, float64(f.start)/float64(time.Millisecond))
	fmt.Fprintf(&b, "| request | p50 ms | p99 ms |\n| --- | ---: | ---: |\n")
	for _, r := range f.requests {
		fmt.Fprintf(&b, "| `%s` | %.2f | %.2f |\n", r.name, r.p50, r.p99)
	}
	return b.Bytes()
}
