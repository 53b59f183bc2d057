package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"
)

// queueCost is how a program cancels and deletes very many tasks.
type queueCost struct {
	tasks         int
	canceled      partCost // while they waited
	deleted       partCost // when they had ended
	before, after int64    // bytes of the data directory before the deletion, and when the program rests
}

// partCost is what one task over very many tasks costs.
type partCost struct {
	took       time.Duration // until it has ended
	cpuSeconds float64
	peak       memory
	slowest    time.Duration // of requests that enqueue another task meanwhile
}

const manyTasks = 200_000

// holdTasks fills the queue of a directory of its own with tasks that wait, cancels all and deletes them.
func (p *program) holdTasks(ctx context.Context) (f queueCost, err error) {
	if f.tasks = manyTasks; p.Quick {
		f.tasks /= 20
	}
	own, remove := p.own("tasks")
	defer remove(&err)
	waiting := *own
	waiting.arguments = append([]string{"--experimental-max-number-of-batched-tasks", "0"}, own.arguments...)
	s, err := waiting.start(ctx)
	if err != nil {
		return f, err
	}
	defer func() { s.kill() }()
	if err := s.together(f.tasks, func(i int) error {
		_, err := s.post(fmt.Sprintf("/indexes/index-%d/documents/delete-batch", i%50), "application/json", fmt.Appendf(nil, "[%d]", i))
		return err
	}); err != nil {
		return f, err
	}
	cancelation, err := s.post("/tasks/cancel?statuses=enqueued", "application/json", nil)
	if err != nil {
		return f, err
	}
	if err := s.stop(); err != nil {
		return f, err
	}
	if s, err = own.start(ctx); err != nil { // now tasks run
		return f, err
	}
	running := program{p.name, own, s}
	if f.canceled, err = running.beside(cancelation); err != nil {
		return f, err
	}
	running.settle()
	if f.before, err = diskBytes(own.dir); err != nil {
		return f, err
	}
	deletion, err := s.do(fasthttp.MethodDelete, "/tasks?statuses=succeeded,failed,canceled", "", nil)
	if err != nil {
		return f, err
	}
	if f.deleted, err = running.beside(deletion); err != nil {
		return f, err
	}
	running.settle()
	if f.after, err = diskBytes(own.dir); err != nil {
		return f, err
	}
	return f, s.stop()
}

// beside waits for the task of an answer, and meanwhile enqueues others one after the other.
func (p *program) beside(answer []byte) (f partCost, err error) {
	p.resetPeak()
	cpu, began := p.cpuSeconds(), time.Now()
	finished := make(chan error, 1)
	go func() { finished <- p.finish(answer, nil) }()
	for {
		select {
		case err := <-finished:
			f.took, f.cpuSeconds, f.peak = time.Since(began), p.cpuSeconds()-cpu, p.memory()
			return f, err
		case <-time.After(10 * time.Millisecond):
		}
		asked := time.Now()
		if _, err := p.post("/indexes", "application/json", json.RawMessage(`{"uid":"beside"}`)); err != nil {
			return f, err
		}
		f.slowest = max(f.slowest, time.Since(asked))
	}
}
