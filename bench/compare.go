package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// comparison is several servers of one API, with the same documents and queries. A machine does not stay the same for minutes, so
// they take turns.
type comparison struct {
	data     *dataset
	programs []*program
	kinds    []queryKind
	figures  [][]asked // by kind and program
	upkeep   []upkeep  // by program
	measured []string  // first, between, updates, warm, attribute, indexes
}

// program is one of the servers.
type program struct {
	name string
	*measurement
	*server
}

// asked is what the queries of a kind cost a program.
type asked struct {
	first          latencies
	worst          []byte        // the first query that took longest
	slowest        time.Duration // and how long it took
	cpuPerFirst    float64       // milliseconds
	turns          []float64     // the same, of each turn of first queries
	between        between
	warm, updating rate
}

// between has the queries asked while nothing changes, but only until the next change. Unlike a rate this is the same work for all
// programs, however busy the machine is.
type between struct {
	took                latencies
	searching, changing float64 // seconds of the server's processors
	updates             int
}

// rate is what several connections get at once.
type rate struct {
	took       latencies // of each query
	seconds    float64
	cpuSeconds float64 // of the server, with the updates
	updates    latencies
}

func (r *rate) qps() float64 { return float64(len(r.took)) / r.seconds }

// cpu is the cost of a query, including its share of the updates during the measurement, in milliseconds.
func (r *rate) cpu() float64 { return 1000 * r.cpuSeconds / float64(len(r.took)) }

func (r *rate) add(o rate) {
	r.took, r.updates = append(r.took, o.took...), append(r.updates, o.updates...)
	r.seconds, r.cpuSeconds = r.seconds+o.seconds, r.cpuSeconds+o.cpuSeconds
}

const (
	firstQueries    = 2000 // of a kind, distinct
	manyDocuments   = 200_000
	firstOfMany     = 600  // with so many documents
	loadQueries     = 1000 // of a kind, distinct, asked again and again
	turnQueries     = 25   // first queries of one program before it is the next one's turn
	betweenChanges  = 40   // updates of a program
	askedBetween    = 100  // queries after each
	loadTurns       = 4
	loadTime        = time.Second // of a turn
	betweenUpdates  = time.Second / 20
	quietTime       = 3 * time.Second // without background work
	dearKind        = "known to be slow"
	unasked         = 0.004            // seconds of CPU in half a second that still count as idle: svc reads its files with 0.01 after the start
	patience        = 10 * time.Minute // with a program that always works
	stillnessChecks = int(quietTime / (500 * time.Millisecond))
)

// dearQueries are expensive with many documents: frequent words, what is derived from them, many words.
var dearQueries = []string{
	"the", "for the", `"of the"`, "forthe", "p", "s", "th", "a library for the", `"for the"`,
	"this package contains the files that are needed for the", "tools for the development of programs with the library in",
}

// compare measures the server and its peers.
func (m *measurement) compare(ctx context.Context) (_ *comparison, err error) {
	c := &comparison{data: m.data, measured: m.Measure}
	if len(c.measured) == 0 {
		c.measured = []string{"first", "between", "updates", "warm"}
	}
	defer func() {
		for _, p := range c.programs {
			p.kill()
		}
	}()
	if m.Keep != "" {
		m.dir = filepath.Join(m.Keep, "svc")
	}
	for _, name := range append([]string{"svc"}, slices.Sorted(maps.Keys(m.Peer))...) {
		own := *m
		if binary, ok := m.Peer[name]; ok {
			own.binary, own.dir = binary, filepath.Join(filepath.Dir(m.dir), name)
		}
		p := &program{name: name, measurement: &own}
		if _, err := p.fill(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.programs = append(c.programs, p)
	}
	n := firstQueries
	if m.data.documents >= manyDocuments {
		n = firstOfMany
	}
	if m.Quick {
		n /= 20
	}
	if c.kinds, err = drawQueries(m.data, max(n, loadQueries), true); err != nil {
		return nil, err
	}
	dear := queryKind{name: dearKind}
	for _, q := range dearQueries {
		body, err := json.Marshal(request{Q: q})
		if err != nil {
			return nil, fmt.Errorf("cannot encode a query: %w", err)
		}
		dear.bodies = append(dear.bodies, body)
	}
	if !m.data.short {
		c.kinds = append(c.kinds, dear)
	}
	c.kinds = slices.DeleteFunc(c.kinds, func(k queryKind) bool { return !strings.Contains(k.name, m.Kinds) })
	c.figures = make([][]asked, len(c.kinds))
	for i, k := range c.kinds {
		c.figures[i] = make([]asked, len(c.programs))
		if !slices.Contains(c.measured, "first") {
			continue
		}
		if err := c.first(i, k.bodies[:min(n, len(k.bodies))]); err != nil {
			return nil, err
		}
		progress("first queries: %s", k.name)
	}
	d, changes := loadTime, betweenChanges
	if m.Quick {
		d, changes = d/10, changes/10
	}
	for _, part := range []string{"between", "updates", "warm"} {
		if !slices.Contains(c.measured, part) {
			continue
		}
		updating := part == "updates"
		for i, k := range c.kinds {
			if part == "between" {
				if err := c.between(i, k.bodies[:min(loadQueries, len(k.bodies))], changes); err != nil {
					return nil, err
				}
				progress("%s: %s", part, k.name)
				continue
			}
			for turn := range loadTurns {
				for j, p := range c.turn(turn) {
					r, err := p.rate(k.bodies[:min(loadQueries, len(k.bodies))], d, connections, updating)
					if err != nil {
						return nil, fmt.Errorf("%s: %w", p.name, err)
					}
					if updating {
						c.figures[i][j].updating.add(r)
					} else {
						c.figures[i][j].warm.add(r)
					}
				}
			}
			if m.Profiles != "" {
				if err := m.profileRate(c.programs[0], part, k, 4*d, connections); err != nil {
					return nil, err
				}
			}
			progress("%s: %s", part, k.name)
		}
	}
	c.upkeep = make([]upkeep, len(c.programs))
	for j, p := range c.programs {
		if slices.Contains(c.measured, "attribute") {
			if c.upkeep[j].attribute, err = p.addAttribute(); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			progress("%s: a new attribute", p.name)
		}
		if slices.Contains(c.measured, "indexes") {
			if c.upkeep[j].indexes, err = p.holdIndexes(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			progress("%s: %d indexes", p.name, c.upkeep[j].indexes.indexes)
		}
		if slices.Contains(c.measured, "queue") {
			if c.upkeep[j].queue, err = p.holdTasks(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			progress("%s: %d tasks", p.name, c.upkeep[j].queue.tasks)
		}
		if slices.Contains(c.measured, "lifecycle") {
			if c.upkeep[j].lifecycle, err = p.liveAndDie(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			progress("%s: %d documents that expire", p.name, c.upkeep[j].lifecycle.documents)
		}
	}
	return c, nil
}

// compareSizes sends first queries, and queries during updates, of the collection and of a large one.
func (m *measurement) compareSizes(ctx context.Context, r *results) error {
	collections := []*dataset{m.data}
	if m.Large > 0 {
		collections = append(collections, generate(m.Large))
	}
	for _, data := range collections {
		own := *m
		own.data, own.dir = data, filepath.Join(filepath.Dir(m.dir), fmt.Sprintf("size-%d", data.documents))
		own.Peer, own.Keep, own.Kinds, own.Profiles, own.Measure = nil, "", "", "", []string{"first", "updates"}
		c, err := own.compare(ctx)
		if err != nil {
			return err
		}
		if err := os.RemoveAll(own.dir); err != nil {
			return fmt.Errorf("cannot remove a data directory: %w", err)
		}
		r.sizes = append(r.sizes, c)
	}
	return nil
}

// fill adds the documents, unless the directory of the program has them, and restarts it when merges have ended.
func (p *program) fill(ctx context.Context) (f indexing, err error) {
	_, missing := os.Stat(p.dir)
	if p.server, err = p.start(ctx); err != nil {
		return f, err
	}
	if missing == nil {
		p.settle()
		return f, nil
	}
	if err := p.finish(p.patch("/indexes/"+index+"/settings", p.data.settings())); err != nil {
		return f, err
	}
	if f, err = p.index(p.server); err != nil {
		return f, err
	}
	progress("%s: indexed in %.1f s, CPU %.1f s, peak %.0f MiB", p.name, f.seconds, f.cpuSeconds, mib(f.peak))
	p.settle()
	if disk, err := diskBytes(p.dir); err == nil {
		progress("%s: data directory %.3f × the input", p.name, float64(disk)/float64(len(p.data.payload)))
	}
	if err := p.stop(); err != nil {
		return f, err
	}
	if p.server, err = p.start(ctx); err != nil {
		return f, err
	}
	p.settle()
	return f, nil
}

// settle waits until the program has no background work: merges, the check of files at its start. It gives up on a program that never
// becomes idle.
func (s *server) settle() {
	began := time.Now()
	for still, last := 0, s.cpuSeconds(); still < stillnessChecks && time.Since(began) < patience; still++ {
		time.Sleep(500 * time.Millisecond)
		now := s.cpuSeconds()
		if now-last > unasked {
			still = -1
		}
		last = now
	}
}

// turn yields all programs with their indexes, each time another one first. Otherwise the remains of one program (garbage, a
// processor's clock) would always burden the same next one.
func (c *comparison) turn(n int) iter.Seq2[int, *program] {
	return func(yield func(int, *program) bool) {
		for i := range c.programs {
			if j := (n + i) % len(c.programs); !yield(j, c.programs[j]) {
				return
			}
		}
	}
}

// first asks queries that no program was asked before.
func (c *comparison) first(kind int, bodies [][]byte) error {
	connections := make([]*connection, len(c.programs))
	cpu := make([]float64, len(c.programs))
	for j, p := range c.programs {
		connections[j] = p.connection()
		cpu[j] = p.cpuSeconds()
	}
	turn := 0
	for asked := range slices.Chunk(bodies, turnQueries) {
		for j, p := range c.turn(turn) {
			f := &c.figures[kind][j]
			before := p.cpuSeconds()
			for _, body := range asked {
				began := time.Now()
				if _, err := connections[j].search(body); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				took := time.Since(began)
				f.first = append(f.first, took)
				if took > f.slowest {
					f.slowest, f.worst = took, body
				}
			}
			f.turns = append(f.turns, 1000*(p.cpuSeconds()-before)/float64(len(asked)))
		}
		turn++
	}
	for j, p := range c.programs {
		c.figures[kind][j].cpuPerFirst = 1000 * (p.cpuSeconds() - cpu[j]) / float64(len(bodies))
	}
	return nil
}

// between asks some queries after each of a number of updates.
func (c *comparison) between(kind int, bodies [][]byte, updates int) error {
	next := make([]int, len(c.programs))
	for i := range updates {
		for j, p := range c.turn(i) {
			f, asking := &c.figures[kind][j].between, p.connection()
			cpu := p.cpuSeconds()
			if err := p.change(i); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			changed := p.cpuSeconds()
			for range askedBetween {
				began := time.Now()
				if _, err := asking.search(bodies[next[j]%len(bodies)]); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				f.took = append(f.took, time.Since(began))
				next[j]++
			}
			f.changing += changed - cpu
			f.searching += p.cpuSeconds() - changed
			f.updates++
		}
	}
	return nil
}

// profileRate profiles the processors for d while it sends queries of a kind.
func (m *measurement) profileRate(p *program, part string, k queryKind, d time.Duration, atOnce int) error {
	if err := os.MkdirAll(m.Profiles, 0o755); err != nil {
		return fmt.Errorf("cannot make the directory of profiles: %w", err)
	}
	name := part + " " + strings.NewReplacer("+", "and", "–", "-").Replace(k.name)
	return m.capture(p.server, strings.ReplaceAll(name, " ", "-"), math.Max(1, math.Floor(d.Seconds())), func() error {
		_, err := p.rate(k.bodies[:min(loadQueries, len(k.bodies))], d, atOnce, part == "updates")
		return err
	})
}

// change changes the i-th document of a sequence that jumps all over the collection, and waits until this is done.
func (p *program) change(i int) error {
	id := i * 7919 % p.data.documents
	body := fmt.Appendf(nil, `[{"id":%d,"summary":"changed for the %d. time while others search"}]`, id, i)
	return p.finish(p.put("/indexes/"+index+"/documents", body))
}

// keepChanging changes 20 documents a second, or fewer if a change takes longer, until over returns true. It returns the duration of
// each change.
func (p *program) keepChanging(over func() bool) (took latencies, err error) {
	for i := 0; !over(); i++ {
		at := time.Now()
		if err := p.change(i); err != nil {
			return nil, err
		}
		took = append(took, time.Since(at))
		time.Sleep(betweenUpdates - time.Since(at))
	}
	return took, nil
}

// rate asks over several connections at once; updating: while one more changes documents.
func (p *program) rate(bodies [][]byte, d time.Duration, atOnce int, updating bool) (r rate, err error) {
	var (
		changing sync.WaitGroup
		failed   error
	)
	cpu, began := p.cpuSeconds(), time.Now()
	if updating {
		changing.Go(func() {
			r.updates, failed = p.keepChanging(func() bool { return time.Since(began) >= d })
		})
	}
	next := make([]int, atOnce)
	for i := range next {
		next[i] = i * len(bodies) / atOnce
	}
	took, err := p.ask(atOnce, func(i int) []byte {
		if time.Since(began) >= d {
			return nil
		}
		next[i]++
		return bodies[next[i]%len(bodies)]
	})
	r.seconds, r.cpuSeconds = time.Since(began).Seconds(), p.cpuSeconds()-cpu
	changing.Wait()
	r.took = took
	return r, cmp.Or(err, failed)
}

// ask sends the queries of draw over several connections at once, until draw returns nil.
func (p *program) ask(atOnce int, draw func(connection int) []byte) (took latencies, err error) {
	var (
		asking sync.WaitGroup
		failed atomic.Pointer[error]
		mu     sync.Mutex
	)
	for i := range atOnce {
		asking.Go(func() {
			c := p.connection()
			var own latencies
			for body := draw(i); body != nil && failed.Load() == nil; body = draw(i) {
				sent := time.Now()
				if _, err := c.search(body); err != nil {
					failed.Store(&err)
					return
				}
				own = append(own, time.Since(sent))
			}
			mu.Lock()
			took = append(took, own...)
			mu.Unlock()
		})
	}
	asking.Wait()
	if err := failed.Load(); err != nil {
		return took, *err
	}
	return took, nil
}
