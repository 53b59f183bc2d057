package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// network is what instances on one machine cost each other. They and the load generator share its processors.
type network struct {
	moves     []move    // each of all documents, without searches
	crossing  []move    // each of about half of them, while both sides are searched
	searched  []crossed // at the sender and the receiver
	federated []federating
}

// move is a change of the network by which an instance gets documents.
type move struct {
	documents int
	took      time.Duration // from the request to the finished task
}

func (m move) rate() float64 { return float64(m.documents) / m.took.Seconds() }

// crossed has searches of one instance before, during and after moves. The receiver has twice as many documents after a move.
type crossed struct {
	where                 string
	before, moving, after latencies
}

// quiet are those without a move.
func (c *crossed) quiet() latencies { return slices.Concat(c.before, c.after) }

// federating is the additional time of a search over three instances compared with the slowest of them. All of its figures are
// medians per query.
type federating struct {
	kind           string
	slowest, whole float64   // milliseconds, medians over the queries
	beyond         latencies // of each query; may be negative
}

const (
	networkRounds   = 3                    // moves of a kind
	networkPace     = 5 * time.Millisecond // between searches beside a move
	networkQuiet    = 4 * time.Second      // of searches before each of those moves, and after it
	crossedOfKind   = 2500                 // queries, if there are so many different ones
	networkRepeats  = 7                    // of a federated search
	networkQueries  = 100
	networkOpenings = `{"network":true}`
)

// runNetwork starts three instances and has them move documents and search together.
func (m *measurement) runNetwork(ctx context.Context) (*network, error) {
	kinds, err := drawQueries(m.data, queriesOfKind, false)
	if err != nil {
		return nil, err
	}
	var all []*server
	defer func() {
		for _, s := range all {
			s.kill()
		}
	}()
	remotes := map[string]map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		one := *m
		one.dir = filepath.Join(m.dir, name)
		one.arguments = []string{"--experimental-allowed-ip-networks", "127.0.0.0/8"}
		s, err := one.start(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		if _, err := s.patch("/experimental-features", []byte(networkOpenings)); err != nil {
			return nil, err
		}
		remotes[name] = map[string]string{"url": "http://" + s.client.Addr}
	}
	a := all[0]
	begin, err := json.Marshal(map[string]any{"self": "a", "leader": "a", "remotes": remotes, "shards": map[string]any{"x": map[string]any{"remotes": []string{"a"}}}})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the network: %w", err)
	}
	if err := a.finish(a.patch("/network", begin)); err != nil {
		return nil, err
	}
	if err := a.finish(a.patch("/indexes/"+index+"/settings", []byte(indexSettings))); err != nil {
		return nil, err
	}
	if _, err := m.index(a); err != nil {
		return nil, err
	}
	f := &network{}
	rounds := networkRounds
	if m.Quick {
		rounds = 1
	}
	for range rounds {
		step, err := a.change(all[1], `{"shards":{"x":{"addRemotes":["b"]}}}`)
		if err != nil {
			return nil, err
		}
		progress("moved %d documents in %.2f s: %.0f a second", step.documents, step.took.Seconds(), step.rate())
		f.moves = append(f.moves, step)
		if _, err := a.change(all[1], `{"shards":{"x":{"removeRemotes":["b"]}}}`); err != nil {
			return nil, err
		}
	}
	if err := m.cross(f, all, rounds); err != nil {
		return nil, err
	}
	if _, err := a.change(all[2], `{"shards":{"z":{"remotes":["c"]}}}`); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		one, err := m.federate(all, k)
		if err != nil {
			return nil, err
		}
		progress("%-32s slowest instance %.2f ms, all %.2f ms, beyond it p50 %.2f ms, p99 %.2f ms", k.name, one.slowest, one.whole, one.beyond.quantile(.5), one.beyond.quantile(.99))
		f.federated = append(f.federated, one)
	}
	return f, nil
}

// change changes the network and waits until this is done. documents is the number of documents that to gains.
func (s *server) change(to *server, body string) (move, error) {
	before, err := to.documents()
	if err != nil {
		return move{}, err
	}
	began := time.Now()
	if err := s.finish(s.patch("/network", []byte(body))); err != nil {
		return move{}, err
	}
	took := time.Since(began)
	after, err := to.documents()
	return move{after - before, took}, err
}

// documents counts those that an instance has itself.
func (s *server) documents() (int, error) {
	b, err := s.do(fasthttp.MethodGet, "/stats", "", nil)
	if err != nil {
		return 0, err
	}
	var stats struct {
		Indexes map[string]struct{ NumberOfDocuments int }
	}
	if err := json.Unmarshal(b, &stats); err != nil {
		return 0, fmt.Errorf("cannot read the statistics: %w", err)
	}
	return stats.Indexes[index].NumberOfDocuments, nil
}

// cross splits the documents between two instances and moves those of one to the other while both are searched. Before and after each
// move, both are searched for as long without one. Queries do not repeat soon, because a cached answer would measure nothing.
func (m *measurement) cross(f *network, all []*server, rounds int) error {
	kinds, err := drawQueries(m.data, crossedOfKind, true)
	if err != nil {
		return err
	}
	a, b := all[0], all[1]
	if _, err := a.change(b, `{"shards":{"y":{"remotes":["b"]}}}`); err != nil {
		return err
	}
	quiet := networkQuiet
	if m.Quick {
		quiet = time.Second
	}
	sides := []*crossing{{server: a, bodies: localQueries(kinds)}, {server: b, bodies: localQueries(kinds)}}
	f.searched = []crossed{{where: "the sender"}, {where: "the receiver"}}
	if _, err := together(sides, pausing(quiet)); err != nil { // to warm up
		return err
	}
	for range rounds {
		before, err := together(sides, pausing(quiet))
		if err != nil {
			return err
		}
		var step move
		beside, err := together(sides, func() (err error) {
			step, err = a.change(b, `{"shards":{"x":{"addRemotes":["b"]}}}`)
			return err
		})
		if err != nil {
			return err
		}
		after, err := together(sides, pausing(quiet))
		if err != nil {
			return err
		}
		for i := range f.searched {
			c := &f.searched[i]
			c.before, c.moving, c.after = append(c.before, before[i]...), append(c.moving, beside[i]...), append(c.after, after[i]...)
			progress("%s: p99 %.2f ms before the move, %.2f ms beside it, %.2f ms after it", c.where, before[i].quantile(.99), beside[i].quantile(.99), after[i].quantile(.99))
		}
		progress("moved %d documents beside searches in %.2f s: %.0f a second", step.documents, step.took.Seconds(), step.rate())
		f.crossing = append(f.crossing, step)
		if _, err := a.change(b, `{"shards":{"x":{"removeRemotes":["b"]}}}`); err != nil {
			return err
		}
	}
	return nil
}

// crossing is an instance that is searched, and where it is in its queries.
type crossing struct {
	server *server
	bodies [][]byte
	next   int
}

// together searches some instances while f runs, and returns how long searches of each took.
func together(sides []*crossing, f func() error) ([]latencies, error) {
	done := make(chan struct{})
	var group sync.WaitGroup
	took, errs := make([]latencies, len(sides)), make([]error, len(sides))
	for i, s := range sides {
		group.Go(func() { took[i], errs[i] = s.paced(done) })
	}
	err := f()
	close(done)
	group.Wait()
	return took, errors.Join(append(errs, err)...)
}

// pausing returns what waits for a time.
func pausing(d time.Duration) func() error {
	return func() error { time.Sleep(d); return nil }
}

// inTurn are queries of all kinds, one of each kind after the other.
func inTurn(kinds []queryKind) (list [][]byte) {
	for i := range crossedOfKind {
		for _, k := range kinds {
			if i < len(k.bodies) {
				list = append(list, k.bodies[i])
			}
		}
	}
	return list
}

// localQueries returns those of inTurn that one instance answers alone.
func localQueries(kinds []queryKind) [][]byte {
	list := inTurn(kinds)
	for i, body := range list {
		list[i] = append([]byte(`{"useNetwork":false,`), body[1:]...)
	}
	return list
}

// paced sends a search each networkPace, however long the earlier ones take, until done is closed. Each latency counts from when the
// search was due.
func (c *crossing) paced(done <-chan struct{}) (latencies, error) {
	var (
		mu     sync.Mutex
		l      latencies
		failed error
		group  sync.WaitGroup
	)
	began := time.Now()
	for i := 0; ; i++ {
		due := began.Add(time.Duration(i) * networkPace)
		select {
		case <-done:
			group.Wait()
			return l, failed
		case <-time.After(time.Until(due)):
		}
		body := c.bodies[c.next%len(c.bodies)]
		c.next++
		group.Go(func() {
			_, err := c.server.connection().search(body)
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			l = append(l, took)
			if err != nil {
				failed = err
			}
		})
	}
}

// federate compares searches over all instances with searches of each alone: they have to wait for the slowest one. On shared
// processors the three searches slow each other down, unlike on hosts of their own. This is part of the measurement.
func (m *measurement) federate(all []*server, k queryKind) (federating, error) {
	f := federating{kind: k.name}
	shards := []string{"x", "y", "z"}
	repeats, queries := networkRepeats, networkQueries
	if m.Quick {
		repeats, queries = 2, 10
	}
	var slowest, whole latencies
	for _, body := range k.bodies[:queries] {
		var together latencies
		alone := make([]latencies, len(all))
		for range repeats {
			for i, s := range all {
				took, err := s.timed(s.connection(), partQuery(body, shards[i]))
				if err != nil {
					return f, err
				}
				alone[i] = append(alone[i], took)
			}
			took, err := all[0].timed(all[0].connection(), body)
			if err != nil {
				return f, err
			}
			together = append(together, took)
		}
		var most time.Duration
		for _, l := range alone {
			most = max(most, l.median())
		}
		slowest, whole, f.beyond = append(slowest, most), append(whole, together.median()), append(f.beyond, together.median()-most)
	}
	f.slowest, f.whole = slowest.quantile(.5), whole.quantile(.5)
	return f, nil
}

// partQuery is what an instance does of a search in the network.
func partQuery(body []byte, shard string) []byte {
	var r map[string]any
	if err := json.Unmarshal(body, &r); err != nil {
		panic("bench: " + err.Error())
	}
	r["useNetwork"], r["showRankingScoreDetails"] = false, true
	in := fmt.Sprintf("_shard = %s", shard)
	if filter, ok := r["filter"].(string); ok {
		in = "(" + filter + ") AND " + in
	}
	r["filter"] = in
	b, err := json.Marshal(r)
	if err != nil {
		panic("bench: " + err.Error())
	}
	return b
}

func (s *server) timed(c *connection, body []byte) (time.Duration, error) {
	began := time.Now()
	_, err := c.search(body)
	return time.Since(began), err
}

func (l latencies) median() time.Duration {
	sorted := slices.Sorted(slices.Values(l))
	return sorted[len(sorted)/2]
}

// table shows it.
func (f *network) table() []byte {
	var b bytes.Buffer
	rates := func(moves []move) string {
		var list []float64
		for _, m := range moves {
			list = append(list, m.rate())
		}
		slices.Sort(list)
		return fmt.Sprintf("%.0f documents/s (%.0f to %.0f, %d times)", list[len(list)/2], list[0], list[len(list)-1], len(list))
	}
	fmt.Fprintf(&b, "Three instances, the load generator and all that they say to each other share the cores. Aims: %s\n\n",
		"5,000 documents/s moved while nobody searches; a p99 beside moves of at most 2 ×; at most 1 ms (p50) beyond the instance that is slowest alone.")
	fmt.Fprintf(&b, "| moving documents between two instances | |\n| --- | --- |\n")
	fmt.Fprintf(&b, "| %d documents, from the request to the finished task | %s |\n", f.moves[0].documents, rates(f.moves))
	fmt.Fprintf(&b, "| %d documents, while each side answers %d searches a second | %s |\n", f.crossing[0].documents, time.Second/networkPace, rates(f.crossing))
	fmt.Fprintf(&b, "\nBoth sides are searched at once, before, beside and after moves, by queries of which none comes again soon. Quiet is before and after together.\n")
	fmt.Fprintf(&b, "\n| searches beside a move | p50 ms quiet | p50 ms | p99 ms before | p99 ms after | p99 ms quiet | p99 ms | × |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range f.searched {
		quiet, moving := c.quiet().quantile(.99), c.moving.quantile(.99)
		fmt.Fprintf(&b, "| at %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.1f |\n", c.where, c.quiet().quantile(.5), c.moving.quantile(.5),
			c.before.quantile(.99), c.after.quantile(.99), quiet, moving, moving/quiet)
	}
	fmt.Fprintf(&b, "\n| searches over three instances | slowest alone, ms | together, ms | beyond it p50 ms | p99 ms |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range f.federated {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %.2f |\n", strings.TrimSpace(k.kind), k.slowest, k.whole, k.beyond.quantile(.5), k.beyond.quantile(.99))
	}
	return b.Bytes()
}
