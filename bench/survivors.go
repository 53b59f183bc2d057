package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// survivors is what searches cost on the members that outlive the leader: in some time before it is killed, and from then on.
type survivors struct {
	bodies        [][]byte // of searches, in any order
	next          int
	before, after latencies
}

const (
	survivorEvery  = 10 * time.Millisecond // a search on each member that stays
	survivorWarmup = time.Second           // searches that do not count: the leader before is among those that stay
	survivorTime   = 2 * time.Second       // before a kill, and from it on
)

func newSurvivors(m *measurement) (*survivors, error) {
	kinds, err := m.steadyKinds()
	if err != nil {
		return nil, err
	}
	f := new(survivors)
	for i := range steadyQueries {
		for _, k := range kinds {
			if i < len(k.bodies) {
				f.bodies = append(f.bodies, k.bodies[i])
			}
		}
	}
	return f, nil
}

// around searches on members at a steady rate while do kills the leader: from survivorTime before do until survivorTime after its start,
// or until it ends. No search may fail. The latency of a search counts from when it is due, and one that waits does not delay the next.
func (f *survivors) around(members []*server, do func() error) error {
	var (
		running sync.WaitGroup
		mu      sync.Mutex // of f.before, f.after and failed
		failed  error
		event   time.Time // when do began
	)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	began := time.Now()
	running.Go(func() {
		for due := began; ctx.Err() == nil; due = due.Add(survivorEvery) {
			wait(ctx, time.Until(due))
			for _, s := range members {
				body := f.bodies[f.next%len(f.bodies)]
				f.next++
				running.Go(func() {
					_, err := s.connection().search(body)
					took := time.Since(due)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err != nil:
						failed = errors.Join(failed, err)
					case due.Sub(began) < survivorWarmup:
					case event.IsZero() || due.Before(event):
						f.before = append(f.before, took)
					default:
						f.after = append(f.after, took)
					}
				})
			}
		}
	})
	time.Sleep(survivorWarmup + survivorTime)
	mu.Lock()
	event = time.Now()
	mu.Unlock()
	err := do()
	time.Sleep(time.Until(event.Add(survivorTime)))
	stop()
	running.Wait()
	return errors.Join(err, failed)
}

// table shows it.
func (f *survivors) table(w io.Writer) {
	fmt.Fprintf(w, "\n| %d searches a second on the two members that stay, ms | p50 | p99 | longest | searches |\n| --- | --- | --- | --- | --- |\n", 2*time.Second/survivorEvery)
	for _, row := range []struct {
		name string
		l    latencies
	}{{"in the %.0f s before the leader is killed", f.before}, {"in the %.0f s from then on", f.after}} {
		fmt.Fprintf(w, "| "+row.name+" | %.2f | %.2f | %.2f | %d |\n", survivorTime.Seconds(), row.l.quantile(.5), row.l.quantile(.99), row.l.quantile(1), len(row.l))
	}
}
