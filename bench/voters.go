package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// voters is the cost of a group of three voters, and how long writes fail after its leader is killed or changed. All members, and the
// load generator, share the processors of one machine, and its disk unless --directories names several.
type voters struct {
	failover, planned     latencies  // from the kill of the leader, or the request for another one, to the next acknowledged write
	survivors             *survivors // searches meanwhile
	enqueue, visible, all [2][]float64
	// worked is the processor time of the lone server, or of the leader, while all documents are indexed. others is the mean of the
	// other voters.
	worked [2][]float64
	others []float64
	syncs  *syncs // with --sync-delay
}

// The places of a lone server and of a group.
const (
	lone = iota
	grouped
)

const (
	voterKills     = 30 // without --kills
	voterTransfers = 10
	voterRounds    = 3
	voterWrites    = 2000 // of each round
	voterUpdates   = 100  // as above
)

// electorate is three voters.
type electorate struct {
	m       *measurement
	ctx     context.Context
	members []*server
	dirs    []string
	options [][]string
	addrs   []string // of the members, for each other
}

// voterState is what GET /group says of a voter.
type voterState struct {
	Position string
	Voter    struct{ Leads bool }
	Members  []struct{ Votes bool }
}

func (s *server) voter() (*voterState, error) {
	b, err := s.do(fasthttp.MethodGet, "/group", "", nil)
	if err != nil {
		return nil, err
	}
	v := new(voterState)
	return v, json.Unmarshal(b, v)
}

// newElectorate starts a voter for each directory, or a lone server.
func (m *measurement) newElectorate(ctx context.Context, dirs []string) (*electorate, error) {
	e := &electorate{m: m, ctx: ctx, dirs: dirs}
	n := len(dirs)
	var addresses []string
	for range n {
		a, err := freeAddress()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, a)
	}
	e.addrs = addresses
	for _, a := range addresses {
		var options []string
		if n > 1 {
			options = []string{"--group-name", "bench", "--group-role", "voter", "--group-addr", a, "--group-join", strings.Join(addresses, ",")}
		}
		e.options, e.members = append(e.options, options), append(e.members, nil)
	}
	started := make(chan error, n)
	for i := range n { // at once: none answers before all are running
		go func() { started <- e.start(i) }()
	}
	var failed error
	for range n {
		failed = errors.Join(failed, <-started)
	}
	if failed != nil {
		e.end()
		return nil, failed
	}
	if n > 1 {
		if err := e.settle(); err != nil {
			e.end()
			return nil, err
		}
	}
	return e, nil
}

func (e *electorate) start(i int) (err error) {
	one := *e.m
	one.dir, one.masterKey, one.arguments = e.dirs[i], groupKey, e.options[i]
	if one.Apart {
		one.processors = 1
		if i > 0 {
			one.processors = -1
		}
		// A Go program on one processor runs nothing else until it notices that a call waits, for example for a sync.
		one.environment = []string{"GOMAXPROCS=2"}
	}
	e.members[i], err = one.start(e.ctx)
	return err
}

func (e *electorate) end() {
	for _, s := range e.members {
		if s != nil {
			s.kill()
		}
	}
}

// settle waits until all members vote and are at one position.
func (e *electorate) settle() error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		at, ok := "", true
		for _, s := range e.members {
			v, err := s.voter()
			if err != nil {
				ok = false
				break
			}
			votes := 0
			for _, m := range v.Members {
				if m.Votes {
					votes++
				}
			}
			ok = ok && votes == len(e.members) && (at == "" || at == v.Position)
			at = v.Position
		}
		if ok {
			return nil
		}
	}
	return errors.New("the voters do not come to one position")
}

// leader returns the number of the member that leads.
func (e *electorate) leader() (int, error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for i, s := range e.members {
			if v, err := s.voter(); err == nil && v.Voter.Leads {
				return i, nil
			}
		}
	}
	return 0, errors.New("no voter leads")
}

// crown makes the first member leader.
func (e *electorate) crown() error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		l, err := e.leader()
		if l == 0 || err != nil {
			return err
		}
		// It is refused while another one is under way.
		_, _ = e.members[l].post("/group/transfer", "application/json", fmt.Appendf(nil, `{"member":%q}`, e.addrs[0]))
	}
	return errors.New("the first voter does not lead")
}

// load measures a leader, or a lone server: writes a second, an update until it is found, and the indexing of all documents.
func (e *electorate) load(f *voters, kind int, quick bool) error {
	if len(e.members) > 1 {
		if err := e.crown(); err != nil {
			return err
		}
		if err := e.settle(); err != nil {
			return err
		}
	}
	s := e.members[0]
	writes, updates := voterWrites, voterUpdates
	if quick {
		writes, updates = writes/20, updates/20
	}
	text := bytes.Repeat([]byte("word "), 200) // 1 KiB
	began := time.Now()
	if err := s.together(writes, func(i int) error {
		_, err := s.post("/indexes/written/documents?primaryKey=id", "application/json", fmt.Appendf(nil, `[{"id":%d,"text":%q}]`, i, text))
		return err
	}); err != nil {
		return err
	}
	f.enqueue[kind] = append(f.enqueue[kind], float64(writes)/time.Since(began).Seconds())
	if err := s.finishAll(e.ctx); err != nil {
		return err
	}
	var seen latencies
	for i := range updates {
		began := time.Now()
		if _, err := s.post("/indexes/seen/documents?primaryKey=id", "application/json", fmt.Appendf(nil, `[{"id":1,"v":"w%dx"}]`, i)); err != nil {
			return err
		}
		for {
			b, err := s.post("/indexes/seen/search", "application/json", fmt.Appendf(nil, `{"q":"\"w%dx\"","limit":1}`, i))
			if err == nil && bytes.Contains(b, fmt.Appendf(nil, `"w%dx"`, i)) && bytes.Contains(b, []byte(`"v"`)) {
				break
			}
			if time.Since(began) > 30*time.Second {
				return fmt.Errorf("an update is not found: %s, %v", b, err)
			}
		}
		seen = append(seen, time.Since(began))
	}
	f.visible[kind] = append(f.visible[kind], seen.quantile(.5))
	if err := s.finishAll(e.ctx); err != nil {
		return err
	}
	if err := s.finish(s.patch("/indexes/"+index+"/settings", []byte(indexSettings))); err != nil {
		return err
	}
	before := e.worked()
	began = time.Now()
	for _, part := range parts(e.m.data.payload, 10) {
		if err := s.finish(s.post("/indexes/"+index+"/documents?primaryKey=id", "application/x-ndjson", part)); err != nil {
			return err
		}
	}
	f.all[kind] = append(f.all[kind], time.Since(began).Seconds())
	worked, others := e.worked(), 0.0
	if worked[0] == 0 { // this system does not tell
		return nil
	}
	for i := range worked {
		worked[i] -= before[i]
		if i > 0 {
			others += worked[i] / float64(len(worked)-1)
		}
	}
	f.worked[kind] = append(f.worked[kind], worked[0])
	if kind == grouped {
		f.others = append(f.others, others)
	}
	return nil
}

// fillIndex indexes all documents.
func (m *measurement) fillIndex(s *server) error {
	if err := s.finish(s.patch("/indexes/"+index+"/settings", m.data.settings())); err != nil {
		return err
	}
	return s.finish(s.post("/indexes/"+index+"/documents?primaryKey=id", "application/x-ndjson", m.data.payload))
}

// worked returns the processor time of each member so far, in seconds.
func (e *electorate) worked() (all []float64) {
	for _, s := range e.members {
		all = append(all, cpuTime(s.process.Process.Pid).Seconds())
	}
	return all
}

// runVoters measures a lone server and a group of three voters by turns, and then the group without its leader.
func (m *measurement) runVoters(ctx context.Context) (*voters, error) {
	f := new(voters)
	rounds, kills, transfers := voterRounds, voterKills, voterTransfers
	if m.Quick {
		rounds, kills, transfers = 1, 4, 2
	}
	switch {
	case m.Kills > 0:
		rounds, kills = 0, m.Kills
	case m.Kills < 0:
		kills = 0
	}
	if m.SyncDelay > 0 {
		var err error
		if f.syncs, err = measureSyncs(ctx, m.above(0), m.SyncDelay); err != nil {
			return nil, err
		}
		if m.under, err = delaying(m.SyncDelay); err != nil {
			return nil, err
		}
		defer func() { m.under = nil }()
	}
	for round := range rounds {
		for _, kind := range []int{(round + 1) % 2, round % 2} {
			n := 1
			if kind == grouped {
				n = 3
			}
			if err := m.voterRound(ctx, n, func(e *electorate) error { return e.load(f, kind, m.Quick) }); err != nil {
				return nil, err
			}
			progress("%d members: %.0f writes a second, an update is found after %.2f ms, all documents %.2f s", n, last(f.enqueue[kind]), last(f.visible[kind]), last(f.all[kind]))
		}
	}
	if kills == 0 {
		return f, nil
	}
	err := m.voterRound(ctx, 3, func(e *electorate) (err error) {
		l, err := e.leader()
		if err != nil {
			return err
		}
		if err := errors.Join(m.fillIndex(e.members[l]), e.settle()); err != nil {
			return err
		}
		if f.survivors, err = newSurvivors(m); err != nil {
			return err
		}
		if f.failover, err = e.failovers(kills, f.survivors); err != nil {
			return err
		}
		f.planned, err = e.transfers(transfers)
		return err
	})
	return f, err
}

func last(list []float64) float64 { return list[len(list)-1] }

func (m *measurement) voterRound(ctx context.Context, n int, do func(*electorate) error) (err error) {
	var dirs []string
	defer func() {
		for _, dir := range dirs {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	for i := range n {
		dir, err := os.MkdirTemp(m.above(i), "voter-")
		if err != nil {
			return fmt.Errorf("cannot make a working directory: %w", err)
		}
		dirs = append(dirs, dir)
	}
	e, err := m.newElectorate(ctx, dirs)
	if err != nil {
		return err
	}
	defer e.end()
	return do(e)
}

// above returns where the directory of a member is made.
func (m *measurement) above(i int) string {
	if len(m.Directories) > 0 {
		return m.Directories[i]
	}
	return filepath.Dir(m.dir)
}

// table shows it.
func (f *voters) table(o options) []byte {
	var b bytes.Buffer
	median := func(list []float64) float64 {
		list = slices.Sorted(slices.Values(list))
		return list[len(list)/2]
	}
	cores := "Three voters, their clients and the load generator share the cores"
	if o.Apart {
		cores = "The lone server and the first leader are held to one core, the other two voters to another one, with GOMAXPROCS=2. The load generator may use all"
	}
	fmt.Fprintf(&b, "%s, and the disk unless --directories names several: hosts of their own do better. Aims on such hosts: %s\n\n", cores,
		"enqueue at least 0.6 ×; an update at most 2.5 ×; indexing at most 1.18 × the time; failover p50 at most 1.2 s, p99 2 s; planned 0.3 s; p99 of searches at most 2 × after a kill.")
	if f.syncs != nil {
		fmt.Fprintf(&b, "%s\n\n", f.syncs.sentence(o.SyncDelay))
	}
	if len(f.all[lone]) > 0 {
		fmt.Fprintf(&b, "| | lone server | leader of three | × |\n| --- | --- | --- | --- |\n")
	}
	for _, row := range []struct {
		name, format string
		of           *[2][]float64
	}{
		{"writes of 1 KiB a second, 64 writers", "%.0f", &f.enqueue},
		{"one update, sent to found, ms, median", "%.2f", &f.visible},
		{"indexing in 10 batches, s", "%.2f", &f.all},
		{"its processor time, s", "%.2f", &f.worked},
	} {
		if len(row.of[lone]) == 0 {
			continue
		}
		a, c := median(row.of[lone]), median(row.of[grouped])
		fmt.Fprintf(&b, "| %s | "+row.format+" | "+row.format+" | %.2f |\n", row.name, a, c, c/a)
	}
	if len(f.others) > 0 {
		fmt.Fprintf(&b, "| that of each other voter, s | | %.2f | |\n", median(f.others))
	}
	if len(f.failover) == 0 {
		return b.Bytes()
	}
	fmt.Fprintf(&b, "\n| time without acknowledged writes | p50, s | p99, s | longest, s | times |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range []struct {
		name string
		l    latencies
	}{{"leader killed", f.failover}, {"planned change of leader", f.planned}} {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %d |\n", row.name, row.l.quantile(.5)/1e3, row.l.quantile(.99)/1e3, row.l.quantile(1)/1e3, len(row.l))
	}
	f.survivors.table(&b)
	return b.Bytes()
}
