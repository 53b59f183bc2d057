package main

import (
	"errors"
	"time"
)

// write sends a document to a member until it is acknowledged.
func (e *electorate) write(i int) error {
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if _, err = e.members[i].post("/indexes/failover/documents?primaryKey=id", "application/json", []byte(`[{"id":1,"text":"a word"}]`)); err == nil {
			return nil
		}
		time.Sleep(2 * time.Millisecond) // a refused connection fails at once
	}
	return err
}

// failovers kills the leader again and again, while the others are searched.
func (e *electorate) failovers(n int, f *survivors) (all latencies, err error) {
	for range n {
		l, err := e.leader()
		if err != nil {
			return nil, err
		}
		others := []*server{e.members[(l+1)%len(e.members)], e.members[(l+2)%len(e.members)]}
		if err := f.around(others, func() error {
			began := time.Now()
			e.members[l].kill()
			err := e.write((l + 1) % len(e.members))
			all = append(all, time.Since(began))
			return err
		}); err != nil {
			return nil, err
		}
		if err := e.start(l); err != nil {
			return nil, err
		}
		if err := e.settle(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// transfers has others lead, and returns the longest write meanwhile of each.
func (e *electorate) transfers(n int) (all latencies, err error) {
	for range n {
		l, err := e.leader()
		if err != nil {
			return nil, err
		}
		if _, err := e.members[l].post("/group/transfer", "application/json", []byte("{}")); err != nil {
			return nil, err
		}
		longest, asked := time.Duration(0), time.Now()
		for {
			if time.Since(asked) > time.Minute {
				return nil, errors.New("the leader leads a minute after it was asked to hand over")
			}
			began := time.Now()
			if err := e.write((l + 1) % len(e.members)); err != nil {
				return nil, err
			}
			longest = max(longest, time.Since(began))
			if v, err := e.members[l].voter(); err == nil && !v.Voter.Leads {
				break
			}
		}
		began := time.Now()
		if err := e.write((l + 1) % len(e.members)); err != nil {
			return nil, err
		}
		all = append(all, max(longest, time.Since(began)))
		if err := e.settle(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
