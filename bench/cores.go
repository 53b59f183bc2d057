package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// growth is what a server does with more and more processors.
type growth struct {
	data  *dataset
	steps []step
	kinds []queryKind
}

// step has the results with a number of processors.
type step struct {
	processors            int
	indexing              indexing
	first, warm, updating []rate // by kind
}

const (
	firstOfStep    = 4000 // distinct queries of a kind
	connectionsPer = 4    // per processor: concurrent requests
	mostAtOnce     = 64
)

// runCores indexes the documents and asks everything with the server held to one number of processors after the other.
// Those that ask share the machine with it, so figures are right while the server has at most half of it.
func (m *measurement) runCores(ctx context.Context) (*growth, error) {
	g := &growth{data: m.data}
	n, d := firstOfStep, loadTime
	if m.Quick {
		n, d = n/20, d/10
	}
	var err error
	if g.kinds, err = drawQueries(m.data, n, true); err != nil {
		return nil, err
	}
	for i, processors := range m.Cores {
		own := *m
		own.processors, own.dir = processors, filepath.Join(filepath.Dir(m.dir), fmt.Sprintf("cores-%d", i))
		s, err := own.step(ctx, g.kinds, d)
		if err != nil {
			return nil, fmt.Errorf("with %d processors: %w", processors, err)
		}
		g.steps = append(g.steps, s)
		if err := os.RemoveAll(own.dir); err != nil {
			return nil, fmt.Errorf("cannot remove a data directory: %w", err)
		}
	}
	return g, nil
}

func (m *measurement) step(ctx context.Context, kinds []queryKind, d time.Duration) (f step, err error) {
	f.processors = m.processors
	p := &program{name: "svc", measurement: m}
	defer func() {
		if p.server != nil {
			p.kill()
		}
	}()
	if f.indexing, err = p.fill(ctx); err != nil {
		return f, err
	}
	atOnce := min(max(connections, connectionsPer*m.processors), mostAtOnce)
	for _, k := range kinds {
		r, err := p.once(k.bodies, atOnce)
		if err != nil {
			return f, err
		}
		f.first = append(f.first, r)
		warm := k.bodies[:min(loadQueries, len(k.bodies))]
		if r, err = p.rate(warm, d, atOnce, false); err != nil {
			return f, err
		}
		f.warm = append(f.warm, r)
		if r, err = p.rate(warm, d, atOnce, true); err != nil {
			return f, err
		}
		f.updating = append(f.updating, r)
	}
	if m.Profiles != "" && m.processors == slices.Max(m.Cores) {
		all := queryKind{name: "all kinds"}
		for i := range kinds[0].bodies[:min(loadQueries, len(kinds[0].bodies))] {
			for _, k := range kinds {
				all.bodies = append(all.bodies, k.bodies[i%len(k.bodies)])
			}
		}
		for _, part := range []string{"warm", "updates"} {
			if err := m.profileRate(p, part, all, 4*d, atOnce); err != nil {
				return f, err
			}
		}
	}
	progress("%d processors: indexed in %.1f s", m.processors, f.indexing.seconds)
	return f, p.stop()
}

// once asks each query once, several at once.
func (p *program) once(bodies [][]byte, atOnce int) (r rate, err error) {
	var next atomic.Int64
	cpu, began := p.cpuSeconds(), time.Now()
	r.took, err = p.ask(atOnce, func(int) []byte {
		if at := next.Add(1) - 1; at < int64(len(bodies)) {
			return bodies[at]
		}
		return nil
	})
	r.seconds, r.cpuSeconds = time.Since(began).Seconds(), p.cpuSeconds()-cpu
	return r, err
}

// tables shows the figures for each number of processors, and their ratios to those for the first number.
func (g *growth) tables() []byte {
	var b bytes.Buffer
	table := func(title string, rows []string, grows bool, of func(s *step, row int) float64) {
		fmt.Fprintf(&b, "| %s |", title)
		rule := "\n| --- |"
		for _, s := range g.steps {
			fmt.Fprintf(&b, " %d |", s.processors)
			rule += " --- |"
		}
		b.WriteString(rule + "\n")
		for row, name := range rows {
			fmt.Fprintf(&b, "| %s |", name)
			first := of(&g.steps[0], row)
			for i := range g.steps {
				v := of(&g.steps[i], row)
				fmt.Fprintf(&b, " %.3g", v)
				if i > 0 && grows {
					fmt.Fprintf(&b, " (× %.1f)", v/first)
				}
				b.WriteString(" |")
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	table("processors of the server", []string{"indexing, documents a second"}, true, func(s *step, _ int) float64 {
		return float64(g.data.documents) / s.indexing.seconds
	})
	var names []string
	for _, k := range g.kinds {
		names = append(names, k.name)
	}
	for _, part := range []struct {
		title string
		of    func(s *step) []rate
	}{
		{"first queries", func(s *step) []rate { return s.first }},
		{"searches that come again", func(s *step) []rate { return s.warm }},
		{"beside 20 updates a second", func(s *step) []rate { return s.updating }},
	} {
		table(part.title+", QPS", names, true, func(s *step, row int) float64 { return part.of(s)[row].qps() })
		table(part.title+", CPU ms each", names, true, func(s *step, row int) float64 { return part.of(s)[row].cpu() })
		table(part.title+", p99 ms", names, false, func(s *step, row int) float64 { return part.of(s)[row].took.quantile(0.99) })
	}
	return b.Bytes()
}
