package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// steady has the figures of three voters during a time without faults, while documents were written and searched as fast as they
// accepted them.
type steady struct {
	took        time.Duration
	terms       []uint32     // that were seen, in order: one if the leader stayed
	batches     atomic.Int64 // written, each of a part of the documents
	searches    latencies
	slowestPoll time.Duration // longest time in which a member reported its state of the group
}

const (
	steadyParts    = 40
	steadyWriters  = 2
	steadySearches = 2
	steadyQueries  = 2000 // of each kind, all of them distinct
	coolEvery      = 5 * time.Second
	termsEvery     = 50 * time.Millisecond
)

// steadyKinds draws steadyQueries distinct queries of each kind; fewer in a quick run.
func (m *measurement) steadyKinds() ([]queryKind, error) {
	n := steadyQueries
	if m.Quick {
		n /= 20
	}
	return drawQueries(m.data, n, true)
}

// runSteady writes all documents again and again, searches meanwhile, has the system forget the files of all members every few seconds,
// and looks which term the members are in.
func (m *measurement) runSteady(ctx context.Context) (*steady, error) {
	f := new(steady)
	kinds, err := m.steadyKinds()
	if err != nil {
		return nil, err
	}
	return f, m.voterRound(ctx, 3, func(e *electorate) error {
		l, err := e.leader()
		if err != nil {
			return err
		}
		if err := m.fillIndex(e.members[l]); err != nil {
			return err
		}
		progress("indexed: the time begins")
		return f.run(ctx, e, l, kinds)
	})
}

// run is what happens in the time.
func (f *steady) run(ctx context.Context, e *electorate, leader int, kinds []queryKind) error {
	ctx, stop := context.WithTimeout(ctx, e.m.Steady)
	defer stop()
	var (
		group  sync.WaitGroup
		mu     sync.Mutex // of f.searches and failed
		failed error
		next   atomic.Int64
	)
	work := func(n int, do func(worker int) error) {
		for worker := range n {
			group.Go(func() {
				for ctx.Err() == nil {
					if err := do(worker); err != nil {
						mu.Lock()
						failed = errors.Join(failed, err)
						mu.Unlock()
						stop()
					}
				}
			})
		}
	}
	began := time.Now()
	payloads := parts(e.m.data.payload, steadyParts)
	work(steadyWriters, func(int) error {
		i := next.Add(1)
		s := e.members[leader]
		if err := s.finish(s.post("/indexes/"+index+"/documents", "application/x-ndjson", payloads[int(i)%len(payloads)])); err != nil {
			return err
		}
		if n := f.batches.Add(1); n%steadyParts == 0 {
			progress("all documents were written %d times", n/steadyParts)
		}
		return nil
	})
	asked := make([]int, steadySearches)
	work(steadySearches, func(worker int) error {
		i := asked[worker]*steadySearches + worker
		asked[worker]++
		k := kinds[i%len(kinds)]
		began := time.Now()
		if _, err := e.members[i%len(e.members)].connection().search(k.bodies[i/len(kinds)%len(k.bodies)]); err != nil {
			return err
		}
		mu.Lock()
		f.searches = append(f.searches, time.Since(began))
		mu.Unlock()
		return nil
	})
	work(1, func(int) error {
		wait(ctx, coolEvery)
		for _, dir := range e.dirs {
			_ = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
				if err == nil && entry.Type().IsRegular() {
					_ = dropCache(name) // merges remove files meanwhile
				}
				return nil
			})
		}
		return nil
	})
	work(1, func(int) error {
		for _, s := range e.members {
			began := time.Now()
			term, err := s.term()
			if err != nil {
				return err
			}
			f.slowestPoll = max(f.slowestPoll, time.Since(began))
			if n := len(f.terms); n == 0 || f.terms[n-1] < term {
				f.terms = append(f.terms, term)
				progress("term %d", term)
			}
		}
		wait(ctx, termsEvery)
		return nil
	})
	group.Wait()
	f.took = time.Since(began)
	return failed
}

// term returns the term that a member is in.
func (s *server) term() (uint32, error) {
	b, err := s.do(fasthttp.MethodGet, "/group", "", nil)
	if err != nil {
		return 0, err
	}
	var v struct{ Term uint32 }
	return v.Term, json.Unmarshal(b, &v)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// table shows it.
func (f *steady) table() []byte {
	var b bytes.Buffer
	b.WriteString("Two writers send all documents again and again, two clients search with queries that were not asked before, and the system forgets the files every five seconds. All of it shares the cores. Aim: no change of the leader in an hour.\n\n")
	fmt.Fprintf(&b, "| figure | value |\n| --- | --- |\n| minutes | %.0f |\n| changes of the leader | %d |\n", f.took.Minutes(), len(f.terms)-1)
	fmt.Fprintf(&b, "| times that all documents were written | %.1f |\n", float64(f.batches.Load())/steadyParts)
	fmt.Fprintf(&b, "| searches | %d |\n| searches, ms: p50 | %.1f |\n| p99 | %.1f |\n| worst | %.1f |\n", len(f.searches), f.searches.quantile(.5), f.searches.quantile(.99), f.searches.quantile(1))
	fmt.Fprintf(&b, "| longest answer of `GET /group`, ms | %.0f |\n", float64(f.slowestPoll)/float64(time.Millisecond))
	return b.Bytes()
}
