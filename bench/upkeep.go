package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// upkeep is the cost of other work than searches and documents: another filterable attribute, very many indexes, very many tasks, and
// documents that expire.
type upkeep struct {
	attribute attributeCost
	indexes   indexesCost
	queue     queueCost
	lifecycle lifecycleCost
}

// attributeCost is what one more filterable attribute costs until the program rests.
type attributeCost struct {
	took       time.Duration // of the task
	cpuSeconds float64
	written    int64 // bytes
}

// indexesCost is how a program fares that holds very many small indexes.
type indexesCost struct {
	indexes, asked    int
	start             time.Duration // to the first answer
	startCPU          float64       // seconds, until it rests
	started, searched memory        // then, and when some of them were searched
	first             latencies     // of the first search of an index
}

const (
	manyIndexes     = 10_000
	searchedIndexes = 1000
	newAttribute    = "maintainer" // none of indexSettings
)

// addAttribute makes another attribute filterable, and reverts this.
func (p *program) addAttribute() (f attributeCost, err error) {
	more := strings.Replace(indexSettings, `"filterableAttributes":[`, `"filterableAttributes":["`+newAttribute+`",`, 1)
	p.settle()
	cpu, written, began := p.cpuSeconds(), p.written(), time.Now()
	if err := p.finish(p.patch("/indexes/"+index+"/settings", []byte(more))); err != nil {
		return f, err
	}
	f.took = time.Since(began)
	p.settle()
	f.cpuSeconds, f.written = p.cpuSeconds()-cpu, p.written()-written
	if err := p.finish(p.patch("/indexes/"+index+"/settings", []byte(indexSettings))); err != nil {
		return f, err
	}
	p.settle()
	return f, nil
}

// own returns the measurement with a data directory of its own, named after what is measured, and a function that removes the
// directory. That function sets *err if it is nil.
func (p *program) own(what string) (own *measurement, remove func(err *error)) {
	m := *p.measurement
	m.dir = filepath.Join(filepath.Dir(p.dir), what+"-"+p.name)
	return &m, func(err *error) {
		if e := os.RemoveAll(m.dir); *err == nil && e != nil {
			*err = fmt.Errorf("cannot remove a data directory: %w", e)
		}
	}
}

// holdIndexes fills a directory of its own with small indexes, starts the program on it and searches some of them.
func (p *program) holdIndexes(ctx context.Context) (f indexesCost, err error) {
	f.indexes, f.asked = manyIndexes, searchedIndexes
	if p.Quick {
		f.indexes, f.asked = f.indexes/20, f.asked/20
	}
	own, remove := p.own("indexes")
	defer remove(&err)
	s, err := own.start(ctx)
	if err != nil {
		return f, err
	}
	defer func() { s.kill() }()
	uid := func(i int) string { return fmt.Sprintf("index-%d", i) }
	if err := s.together(f.indexes, func(i int) error {
		_, err := s.post("/indexes/"+uid(i)+"/documents", "application/json", fmt.Appendf(nil, `[{"id":%d,"name":"first %[1]d"},{"id":%d,"name":"second"}]`, i, i+1))
		return err
	}); err != nil {
		return f, err
	}
	if err := s.finishAll(ctx); err != nil {
		return f, err
	}
	if err := s.stop(); err != nil {
		return f, err
	}
	if s, err = own.start(ctx); err != nil {
		return f, err
	}
	started := program{p.name, own, s}
	started.settle()
	f.start, f.startCPU, f.started = s.startTime, s.cpuSeconds(), s.memory()
	for i := range f.asked {
		began := time.Now()
		if _, err := s.post("/indexes/"+uid(i*f.indexes/f.asked)+"/search", "application/json", []byte(`{"q":"second"}`)); err != nil {
			return f, err
		}
		f.first = append(f.first, time.Since(began))
	}
	f.searched = s.memory()
	return f, s.stop()
}

// together calls do for each number below n, several at a time.
func (s *server) together(n int, do func(i int) error) error {
	var asking sync.WaitGroup
	failed := make(chan error, 64)
	for worker := range cap(failed) {
		asking.Go(func() {
			for i := worker; i < n; i += cap(failed) {
				if err := do(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	asking.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// finishAll waits until no task is left.
func (s *server) finishAll(ctx context.Context) error {
	for {
		b, err := s.do(fasthttp.MethodGet, "/tasks?limit=1&statuses=enqueued,processing", "", nil)
		if err != nil {
			return err
		}
		var left struct{ Total int }
		if err := json.Unmarshal(b, &left); err != nil {
			return fmt.Errorf("cannot read how many tasks are left: %w", err)
		}
		if left.Total == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// upkeepTables shows the measurements of it.
func (c *comparison) upkeepTables(b *bytes.Buffer) {
	table := func(title string, rows []string, of func(u *upkeep) []float64) {
		fmt.Fprintf(b, "\n| %s |", title)
		rule := "\n| --- |"
		figures := make([][]float64, len(c.programs))
		for i, p := range c.programs {
			figures[i] = of(&c.upkeep[i])
			fmt.Fprintf(b, " %s |", p.name)
			rule += " ---: |"
		}
		b.WriteString(rule + "\n")
		for row, name := range rows {
			fmt.Fprintf(b, "| %s |", name)
			for i := range c.programs {
				fmt.Fprintf(b, " %.3g |", figures[i][row])
			}
			b.WriteByte('\n')
		}
	}
	if slices.Contains(c.measured, "attribute") {
		table("one more filterable attribute", []string{"until the task is finished, s", "CPU until the program rests, s", "written meanwhile, MiB"}, func(u *upkeep) []float64 {
			return []float64{u.attribute.took.Seconds(), u.attribute.cpuSeconds, mib(u.attribute.written)}
		})
	}
	if slices.Contains(c.measured, "indexes") {
		first := &c.upkeep[0].indexes
		table(fmt.Sprintf("%d indexes of 2 documents", first.indexes), []string{"from the start to the first answer, ms", "CPU until the program rests, s", "anonymous memory then, MiB",
			"first search of an index, median ms", "first search of an index, p99 ms", fmt.Sprintf("anonymous memory when %d were searched, MiB", first.asked)}, func(u *upkeep) []float64 {
			f := &u.indexes
			return []float64{1000 * f.start.Seconds(), f.startCPU, mib(f.started.anonymous), f.first.quantile(0.5), f.first.quantile(0.99), mib(f.searched.anonymous)}
		})
	}
	if slices.Contains(c.measured, "queue") {
		var rows []string
		for _, what := range []string{"cancel all", "delete all"} {
			rows = append(rows, what+", s", what+", CPU s", what+", peak RSS, MiB", what+", slowest enqueue meanwhile, ms")
		}
		rows = append(rows, "data directory before the deletion, MiB", "data directory afterwards, MiB")
		table(fmt.Sprintf("%d tasks", c.upkeep[0].queue.tasks), rows, func(u *upkeep) (figures []float64) {
			f := &u.queue
			for _, part := range []*partCost{&f.canceled, &f.deleted} {
				figures = append(figures, part.took.Seconds(), part.cpuSeconds, mib(part.peak.peak), 1000*part.slowest.Seconds())
			}
			return append(figures, mib(f.before), mib(f.after))
		})
	}
	if slices.Contains(c.measured, "lifecycle") {
		f := &c.upkeep[0].lifecycle
		table(fmt.Sprintf("%d documents that expire", f.documents), f.rows(), func(u *upkeep) []float64 { return u.lifecycle.figures() })
	}
}
