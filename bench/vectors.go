package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"svc/segment"
	"svc/simd"
)

// vectorFigures are all figures about vectors of a run.
type vectorFigures struct {
	environment
	set       *vectorSet
	tier      simd.Tier
	kernels   []kernelFigures // a tier each
	buildAll  float64         // seconds with all cores
	libraries []*library      // svc first
	threads   float64         // queries a second at the usual effort, on all cores
	firstCold time.Duration   // the first search of a file that is not in memory, at once when it is opened
	firstRead time.Duration   // the same after a while
	firstHeld time.Duration   // the same of a file that is in memory
	nextCold  time.Duration   // each of the 99 after it
	warm      time.Duration
	restricts []restriction
	deleted   []deletion
	overHTTP  *overHTTP
}

// A library has the measurements of one library, on one thread.
type library struct {
	name   string
	build  float64 // seconds of processor time
	memory float64 // bytes a vector: of svc's segment, which is mapped; by how much the others' process grew
	points []*point
}

// A point is one effort.
type point struct {
	effort  int
	recall  float64
	seconds float64 // for all queries, in the best round; of processor time where one thread asks
}

// Best of this many rounds: what else the machine does only ever slows a round down.
const vectorRounds = 5

// efforts are the efforts of the peers: how many candidates are kept. For svc they are steps without a result, of which fewer have
// the same effect.
func efforts() []int { return []int{10, 15, 20, 30, 40, 50, 60, 80, 100, 130, 170, 220} }

func ownEfforts() []int { return []int{1, 2, 4, 7, 10, 15, 20, 30, 40, 60, 80, 110, 150, 220} }

func (o *options) vectorSet() (*vectorSet, error) {
	s := &vectorSet{}
	if o.Vectors == "generated" {
		s = generateVectors(o.Rows, 1000, o.Dimensions)
	} else {
		var err error
		if s, err = readVectorSet(o.Vectors); err != nil {
			return nil, err
		}
	}
	if o.Quick {
		s.first(5000, 50)
	}
	return s, nil
}

// runVectors measures what holds vectors, in this process and then over HTTP.
func runVectors(ctx context.Context, o options, dir, binary string) (*vectorFigures, error) {
	set, err := o.vectorSet()
	if err != nil {
		return nil, err
	}
	f := &vectorFigures{environment: readEnvironment(o), set: set, tier: simd.Running()}
	if !set.large() { // kernels are what they are with any vectors
		if f.kernels, err = measureTiers(ctx, o.Quick); err != nil {
			return nil, err
		}
		progress("measured the kernels")
	}
	truth := set.truth(nil)
	kept := dir
	if o.Keep != "" {
		kept = filepath.Join(o.Keep, fmt.Sprintf("%s, %d rows", set.name, set.base.rows))
		if err := os.MkdirAll(kept, 0o700); err != nil {
			return nil, fmt.Errorf("cannot make a directory to keep graphs in: %w", err)
		}
	}
	name := filepath.Join(kept, "all.seg")
	w, err := set.keepSegment(ctx, name, runtime.NumCPU())
	if err != nil {
		return nil, err
	}
	f.buildAll = w.Wall.Seconds()
	if !set.large() {
		name = filepath.Join(kept, "one.seg")
		if w, err = set.keepSegment(ctx, name, 1); err != nil {
			return nil, err
		}
	}
	svc := &library{name: "svc", build: w.CPU.Seconds(), memory: float64(w.Bytes) / float64(set.base.rows)}
	f.libraries = append(f.libraries, svc)
	progress("built the graph in %.1f s", svc.build)

	if err := f.cold(name); err != nil {
		return nil, err
	}
	r, err := openSegment(name, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.ReadAhead() // as an index does
	segment.AwaitReadAhead(ctx)
	v := r.Vectors(1)
	for _, e := range ownEfforts() {
		p := &point{effort: e}
		p.recall = recallOf(truth, func(i int, dst []segment.Scored) []segment.Scored {
			return v.SearchEffort(dst, set.queries.row(i), neighbours, e, nil)
		})
		svc.points = append(svc.points, p)
	}
	var others *peers
	if o.Peers != "" {
		if others, err = startPeers(ctx, o.Peers, kept, set); err != nil {
			return nil, err
		}
		defer others.stop()
		if err := f.buildPeers(others); err != nil {
			return nil, err
		}
	}
	for round := range vectorRounds {
		for _, p := range svc.points {
			p.offer(f.timed(func(i int, dst []segment.Scored) []segment.Scored {
				return v.SearchEffort(dst, set.queries.row(i), neighbours, p.effort, nil)
			}))
		}
		if others != nil {
			if err := f.askPeers(others, truth); err != nil {
				return nil, err
			}
		}
		progress("round %d of %d", round+1, vectorRounds)
	}
	usual := func(i int, dst []segment.Scored) []segment.Scored {
		return v.Search(dst, set.queries.row(i), neighbours, nil)
	}
	var one, all point
	for range vectorRounds {
		one.offer(f.timed(usual))
		all.offer(f.timedOnAll(usual))
	}
	f.warm = each(one.seconds, set.queries.rows)
	f.threads = float64(set.queries.rows) / all.seconds
	for _, filter := range set.filters() {
		f.restricts = append(f.restricts, f.restricted(v, filter))
		progress("searched among %s", filter.name)
	}
	if set.large() {
		return f, nil
	}
	if err := f.deletions(ctx, dir); err != nil {
		return nil, err
	}
	m := measurement{options: o, binary: binary, dir: filepath.Join(dir, "data")}
	f.overHTTP, err = m.runVectorsOverHTTP(ctx, set)
	return f, err
}

// large sets are linked on all cores, once, and not sent over HTTP; fewer queries are scanned for.
func (s *vectorSet) large() bool { return s.base.rows > 100_000 || s.base.columns > 1000 }

func each(seconds float64, n int) time.Duration {
	return time.Duration(seconds / float64(n) * float64(time.Second))
}

func (p *point) offer(d time.Duration) {
	if s := d.Seconds(); p.seconds == 0 || s < p.seconds {
		p.seconds = s
	}
}

func (p *point) qps(queries int) float64 { return float64(queries) / p.seconds }

// timed runs every query once, and returns the processor time, which does not include other work on the machine.
func (f *vectorFigures) timed(search func(i int, dst []segment.Scored) []segment.Scored) time.Duration {
	runtime.GC()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dst := make([]segment.Scored, 0, neighbours)
	began := threadTime()
	for i := range f.set.queries.rows {
		dst = search(i, dst[:0])
	}
	return threadTime() - began
}

// timedOnAll runs every query once on all cores, and returns the elapsed time.
func (f *vectorFigures) timedOnAll(search func(i int, dst []segment.Scored) []segment.Scored) time.Duration {
	runtime.GC()
	began := time.Now()
	inParallel(f.set.queries.rows, runtime.NumCPU(), func(i int) { search(i, make([]segment.Scored, 0, neighbours)) })
	return time.Since(began)
}

func recallOf(truth [][]uint32, search func(i int, dst []segment.Scored) []segment.Scored) float64 {
	found := make([]map[uint32]bool, len(truth))
	for i := range truth {
		found[i] = make(map[uint32]bool)
		for _, x := range search(i, nil) {
			found[i][uint32(x.Row)] = true
		}
	}
	return recall(truth, func(i int, row uint32) bool { return found[i][row] })
}

// afterOpen is the time until the data that opening a file requests from the disk is in memory.
const afterOpen = 250 * time.Millisecond

// cold searches a file that is not in memory, at once when it is opened and after a while, and one that is.
func (f *vectorFigures) cold(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("cannot look at the segment: %w", err)
	}
	segment.ReadAheadOf(4 * info.Size()) // a machine with memory for it
	for _, c := range []struct {
		first   *time.Duration
		dropped bool
		wait    time.Duration
	}{{&f.firstCold, true, 0}, {&f.firstRead, true, afterOpen}, {&f.firstHeld, false, afterOpen}} {
		if err := f.firstSearches(name, c.dropped, c.wait, c.first); err != nil {
			return err
		}
	}
	return nil
}

// firstSearches opens a file as an index does, and searches it after a while for the first time, and 99 times more.
func (f *vectorFigures) firstSearches(name string, dropped bool, wait time.Duration, first *time.Duration) error {
	r, err := openSegment(name, dropped)
	if err != nil {
		return err
	}
	defer r.Close()
	r.ReadAhead()
	time.Sleep(wait)
	v := r.Vectors(1)
	f.nextCold = 0
	for i := range min(100, f.set.queries.rows) {
		began := time.Now()
		v.Search(nil, f.set.queries.row(i), neighbours, nil)
		if took := time.Since(began); i == 0 {
			*first = took
		} else {
			f.nextCold += took / 99
		}
	}
	return nil
}

func (f *vectorFigures) buildPeers(p *peers) error {
	for _, x := range p.list {
		threads := 1
		if f.set.large() {
			threads = runtime.NumCPU()
		}
		a, err := p.do(peerCommand{Do: "build", Peer: x.Name, Threads: threads})
		if err != nil {
			return err
		}
		l := &library{name: x.Name, build: a.Seconds, memory: float64(a.Grown) / float64(f.set.base.rows)}
		if x.Version != "" {
			l.name += " " + x.Version
		}
		l.points = []*point{{effort: 1}}
		if x.Name != "faiss flat, exact" {
			l.points = nil
			for _, e := range efforts() {
				l.points = append(l.points, &point{effort: e})
			}
		}
		f.libraries = append(f.libraries, l)
		progress("%s built in %.1f s", l.name, l.build)
	}
	return nil
}

func (f *vectorFigures) askPeers(p *peers, truth [][]uint32) error {
	for i, x := range p.list {
		for _, at := range f.libraries[i+1].points {
			a, err := p.do(peerCommand{Do: "search", Peer: x.Name, Effort: at.effort})
			if err != nil {
				return err
			}
			at.offer(time.Duration(a.Seconds * float64(time.Second)))
			at.recall = recall(truth, func(i int, row uint32) bool { return slices.Contains(a.Found[i], int(row)) })
		}
	}
	return nil
}

// qpsAt interpolates the queries a second at a recall; ok is false when no effort reached it.
func (l *library) qpsAt(recall float64, queries int) (qps float64, ok bool) {
	for i, p := range l.points {
		if p.recall < recall {
			continue
		}
		if i == 0 {
			return p.qps(queries), true
		}
		before := l.points[i-1]
		part := (recall - before.recall) / (p.recall - before.recall)
		return before.qps(queries) + part*(p.qps(queries)-before.qps(queries)), true
	}
	return 0, false
}

func (l *library) cell(recall float64, queries int) string {
	qps, ok := l.qpsAt(recall, queries)
	if !ok {
		return fmt.Sprintf("– (%.3f at best)", l.points[len(l.points)-1].recall)
	}
	return fmt.Sprintf("%.0f", qps)
}
