package index

import (
	"time"

	"golang.org/x/sync/errgroup"

	"svc/internal/pace"
)

// crew runs tasks of a batch on all of its threads. While there are searches, only the steady threads start tasks, and tasks on other
// threads yield.
type crew struct {
	b      *batch
	group  *errgroup.Group
	steady chan *pace.Worker // the paces of steady threads that are free
	beside *pace.Worker
}

// newCrew makes a crew for tasks of a group, which bounds them.
func (b *batch) newCrew(group *errgroup.Group) *crew {
	threads := b.threads()
	group.SetLimit(threads)
	c := &crew{b: b, group: group, steady: make(chan *pace.Worker, threads), beside: pace.Of(pace.Beside(b.ctx, b.ix.catalog.Searches()))}
	for range min(threads, b.ix.options.steadyThreads()) {
		c.steady <- pace.Of(b.ctx)
	}
	return c
}

// Go runs a task, which yields to searches by p. It waits for a thread.
func (c *crew) Go(task func(p *pace.Worker) error) {
	c.group.Go(func() error {
		for c.b.ix.catalog.Searches().Going() {
			select {
			case p := <-c.steady:
				defer func() { c.steady <- p }()
				return task(p)
			case <-c.b.ctx.Done():
				return c.b.ctx.Err()
			case <-time.After(searchCheckPause):
			}
		}
		select {
		case p := <-c.steady:
			defer func() { c.steady <- p }()
			return task(p)
		default:
			return task(c.beside)
		}
	})
}
