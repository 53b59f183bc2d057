package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/group"
	"svc/internal/logs/logstest"
	"svc/internal/powercut"
)

var (
	groupStates = flag.Int("group-states", 1, "how many power cuts TestPowerCutsOfAGroupLoseNothing starts the members after")
	groupWrites = flag.Int("group-writes", 4, "how many writes TestPowerCutsOfAGroupLoseNothing records")
	groupCuts   = flag.Int("group-cuts", 0, "how often it cuts the power of some members meanwhile")
)

// cutGroup is a group of three voters that are recorded in one log.
type cutGroup struct {
	dir     string
	random  *rand.Rand
	log     *powercut.Log
	members [3]*cutVoter
	trees   int // assigned tree numbers
	given   map[string]bool

	// The disks after the first events of the log.
	at    int
	disks map[int]*powercut.Disk
	tree  [3]int // tree of each member
	state groupState
}

// groupState is what clients know at a moment.
type groupState struct {
	formed      bool // all three vote
	sent, acked int  // writes
}

// cutVoter is a member of a recorded group.
type cutVoter struct {
	*cutServer
	number int
	addr   string // address for the others
	join   string
	left   atomic.Int64  // events before its power is cut
	ended  chan struct{} // closed when the recording has ended; nil: not recorded
	err    error         // result of the recording
	killed chan struct{} // closed when the process runs and may be killed
	kill   func()
}

func newCutGroup(dir string, random *rand.Rand) *cutGroup {
	g := &cutGroup{dir: dir, random: random, log: new(powercut.Log), disks: map[int]*powercut.Disk{}, tree: [3]int{-1, -1, -1}}
	var join []string
	for i := range g.members {
		g.members[i] = &cutVoter{cutServer: &cutServer{url: "http://" + freeAddress()}, number: i, addr: freeAddress()}
		join = append(join, g.members[i].addr)
	}
	for _, m := range g.members {
		m.join = strings.Join(join, ",")
	}
	return g
}

// command returns the command of a member with a data directory.
func (m *cutVoter) command(data string) *exec.Cmd {
	m.log = new(logstest.Buffer)
	cmd := m.cutServer.command(os.Args[0], data)
	cmd.Args = append(cmd.Args, "--group-name", "shop", "--group-role", "voter", "--group-addr", m.addr, "--group-join", m.join)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// record starts and records a member on the files in root.
func (g *cutGroup) record(m *cutVoter, root string) {
	tree := g.trees
	g.trees++
	g.log.Mark(fmt.Sprintf("disk %d %d", m.number, tree))
	m.left.Store(1 << 60)
	ended := make(chan struct{})
	m.ended, m.killed = ended, make(chan struct{})
	cmd := m.command(filepath.Join(root, "data"))
	go func() {
		m.err = powercut.Run(cmd, powercut.Options{
			Root: root, Log: g.log, Tree: tree, Ends: func() bool { return m.left.Add(-1) < 0 },
			Adopted: func() { g.log.Mark(fmt.Sprintf("tree %d %d", m.number, tree)) }, // until then the former disk counts
		}, func(p *os.Process) {
			m.kill = func() { _ = p.Kill() }
			close(m.killed)
		})
		close(ended)
	}()
}

// stop ends the recording of a member.
func (m *cutVoter) stop() error {
	if m.ended == nil {
		return nil
	}
	select {
	case <-m.ended:
		return m.err
	default:
	}
	select {
	case <-m.killed:
		m.kill()
		<-m.ended
	case <-m.ended:
	}
	return m.err
}

// replay builds the disks as of a moment, a number of events.
func (g *cutGroup) replay(events []powercut.Event, moment int) error {
	for ; g.at < moment; g.at++ {
		e := &events[g.at]
		if e.Kind != powercut.Mark {
			g.disks[e.Tree].Apply(g.at, e)
			continue
		}
		var what string
		var a, b int
		n, err := fmt.Sscan(string(e.Data), &what, &a, &b)
		switch {
		case what == "disk" && n == 3:
			g.disks[b] = powercut.NewDisk()
		case what == "tree" && n == 3:
			g.tree[a] = b
		case what == "formed" && n == 1:
			g.state.formed = true
		case what == "sent" && n == 2:
			g.state.sent = a
		case what == "acked" && n == 2:
			g.state.acked = a
		default:
			return fmt.Errorf("mark %q: %w", e.Data, err)
		}
	}
	return nil
}

// leave writes a directory with what a power cut at the replayed moment leaves on the disk of a member.
func (g *cutGroup) leave(m *cutVoter, root string) error {
	if err := os.Mkdir(root, 0o700); err != nil || g.tree[m.number] < 0 {
		return err
	}
	return g.disks[g.tree[m.number]].Leave("data", filepath.Join(root, "data"), g.random)
}

// errRefused is the error of a write that no retry makes acceptable.
var errRefused = errors.New("refused")

// send sends a write to one member after the other, starting with first, until one accepts it. Its Idempotency-Key identifies a retry.
func (g *cutGroup) send(w *cutWrite, n, first int) error {
	var err error
	for try, deadline := 0, time.Now().Add(2*time.Minute); time.Now().Before(deadline); try++ {
		var status int
		status, err = g.members[(first+try)%3].write(w, fmt.Sprint("write ", n))
		switch {
		case status >= 200 && status < 300:
			return nil
		case try > 0 && (status == http.StatusConflict || status == http.StatusNotFound): // the first try had no answer
			return nil
		case status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
			return fmt.Errorf("%w: %w", errRefused, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// write sends a write, and returns the status of the answer, or 0 without one.
func (m *cutVoter) write(w *cutWrite, key string) (status int, err error) {
	req, err := http.NewRequest(w.method, m.url+w.path, strings.NewReader(w.body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+powercutKey)
	req.Header.Set("Idempotency-Key", key)
	resp, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct{ Message string }
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	return resp.StatusCode, fmt.Errorf("%s %s: %s: %s", w.method, w.path, resp.Status, answer.Message)
}

// status returns the group as a member sees it, or nil if it does not answer.
func (m *cutVoter) status() *group.Status {
	s := new(group.Status)
	if _, err := m.call(http.MethodGet, "/group", "", s); err != nil {
		return nil
	}
	return s
}

// until waits until the states of all members satisfy a condition.
func (g *cutGroup) until(what string, is func(all []*group.Status) bool) error {
	var all []*group.Status
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		all = all[:0]
		for _, m := range g.members {
			if strings.Contains(m.log.String(), "svc: ") {
				return fmt.Errorf("member %d has ended", m.number)
			}
			all = append(all, m.status())
		}
		if !slices.Contains(all, nil) && is(all) {
			return nil
		}
	}
	b, _ := json.Marshal(all)
	return fmt.Errorf("the group is never %s: %s", what, b)
}

// vote reports whether all three members are voters and know it.
func vote(all []*group.Status) bool {
	return !slices.ContainsFunc(all, func(s *group.Status) bool {
		return len(s.Members) != 3 || s.Voter == nil || s.Voter.Leader == "" || slices.ContainsFunc(s.Members, func(m group.MemberStatus) bool { return !m.Votes })
	})
}

// idle waits until no task is left and all members have the same position.
func (g *cutGroup) idle() error {
	var bad error // of the last check: a member that has just started answers 503 until it has a leader
	err := g.until("at one position", func(all []*group.Status) bool {
		bad = nil
		for i, s := range all {
			var list struct{ Total int }
			_, err := g.members[i].call(http.MethodGet, "/tasks?statuses=enqueued,processing&limit=1", "", &list)
			if err != nil || list.Total > 0 || s.Position != all[0].Position {
				bad = err
				return false
			}
		}
		return vote(all)
	})
	return errors.Join(err, bad)
}

// run records the members while a client writes one request after the other. The power of some members is cut at any event; they restart
// on what it left.
func (g *cutGroup) run(writes, cuts int) (done []cutWrite, err error) {
	defer func() {
		for _, m := range g.members {
			err = errors.Join(err, m.stop())
		}
	}()
	for _, m := range g.members {
		root := filepath.Join(g.dir, fmt.Sprint("recorded-", m.number))
		if err := os.Mkdir(root, 0o700); err != nil {
			return nil, err
		}
		g.record(m, root)
	}
	if err := g.until("one of three voters", vote); err != nil {
		return nil, err
	}
	g.log.Mark("formed")
	model := newCutModel()
	when := map[int]bool{}
	for range cuts {
		when[g.random.IntN(writes)] = true
	}
	for n := range writes {
		if model.words = 0; g.random.IntN(2) == 0 {
			model.words = 60
		}
		w := model.write(g.random, n)
		done = append(done, w)
		var cut []*cutVoter
		if when[n] {
			if err := g.idle(); err != nil { // a task that runs during two cuts is given up
				return nil, err
			}
			for _, i := range g.random.Perm(3)[:1+g.random.IntN(3)] {
				cut = append(cut, g.members[i])
				g.members[i].left.Store(g.random.Int64N(60))
			}
		} else if w.settled {
			if err := g.idle(); err != nil {
				return nil, err
			}
		}
		g.log.Mark(fmt.Sprint("sent ", n+1))
		first, again := g.random.IntN(3), make(chan error, 1) // again also uses g.random
		go func() { again <- g.again(n, cut) }()
		err := g.send(&w, n, first)
		if err = errors.Join(err, <-again); err != nil {
			return nil, err
		}
		g.log.Mark(fmt.Sprint("acked ", n+1))
		if g.random.IntN(4) == 0 || cut != nil { // let the group finish accepted tasks
			if err := g.idle(); err != nil {
				return nil, err
			}
		}
	}
	return done, g.idle()
}

// again waits until the power of members is cut, and restarts them on what it left.
func (g *cutGroup) again(n int, cut []*cutVoter) error {
	for _, m := range cut {
		select {
		case <-m.ended:
			if m.err != nil {
				return m.err
			}
		case <-time.After(2 * time.Second): // the member did less
			if err := m.stop(); err != nil {
				return err
			}
		}
	}
	events := g.log.Events()
	if err := g.replay(events, len(events)); err != nil {
		return err
	}
	for _, m := range cut {
		root := filepath.Join(g.dir, fmt.Sprintf("recorded-%d-%d", m.number, n))
		if err := g.leave(m, root); err != nil {
			return err
		}
		g.record(m, root)
	}
	return nil
}

// check starts members on what a power cut leaves of their disks, one of them possibly on an empty disk, and compares their content
// with the writes.
func (g *cutGroup) check(dir string, lost int, done []cutWrite) (err error) {
	defer os.RemoveAll(dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var running []*exec.Cmd
	defer func() {
		for i, cmd := range running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if err != nil {
				err = fmt.Errorf("%w\nthe log of member %d:\n%s", err, i, g.members[i].log)
			}
		}
	}()
	for i, m := range g.members {
		root := filepath.Join(dir, fmt.Sprint("member-", i))
		if i == lost {
			err = os.Mkdir(root, 0o700)
		} else {
			err = g.leave(m, root)
		}
		if err != nil {
			return err
		}
		cmd := m.command(filepath.Join(root, "data"))
		if err := cmd.Start(); err != nil {
			return err
		}
		running = append(running, cmd)
	}
	if err := g.idle(); err != nil {
		return err
	}
	var tasks string
	for i, m := range g.members {
		all, err := m.call(http.MethodGet, "/tasks?limit=100000", "", nil)
		switch {
		case err != nil:
			return err
		case i == 0:
			tasks = all
		case all != tasks:
			return fmt.Errorf("members 0 and %d have different tasks: %s and %s", i, tasks, all)
		}
	}
	if strings.Contains(tasks, "The process ended 2 times while this task ran") { // running at two cuts
		g.given[tasks] = true
		return nil
	}
	var wants []string
	for n := g.state.acked; n <= g.state.sent; n++ {
		model := newCutModel()
		for _, w := range done[:n] {
			w.apply(model)
		}
		wants = append(wants, model.content())
	}
	for deadline := time.Now().Add(time.Minute); ; { // a newly founded group may still create its first keys
		contents := map[string]bool{}
		for _, m := range g.members {
			content, err := m.content()
			if err != nil {
				return err
			}
			contents[content] = true
		}
		if len(contents) == 1 && slices.ContainsFunc(wants, func(want string) bool { return contents[want] }) {
			return nil
		}
		if g.state.acked > 0 || time.Now().After(deadline) {
			return fmt.Errorf("the members hold\n%s\nwant\n%s", strings.Join(slices.Sorted(maps.Keys(contents)), "and\n"), strings.Join(wants, "or\n"))
		}
		if err := g.idle(); err != nil {
			return err
		}
	}
}

// TestPowerCutsOfAGroupLoseNothing records the file operations of three voters in one order while a client writes. The power of one, two
// or all of them is cut at random events, and they restart on what may be left. In the end the power of all is cut at random moments of
// the record. Three members start on what may be left, or two of them and one with an empty disk. Everything acknowledged must be there
// once, in order, and the members must agree.
func TestPowerCutsOfAGroupLoseNothing(t *testing.T) {
	if !powercut.Supported() {
		t.Skip("programs cannot be followed here")
	}
	seed := *cutSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d writes, %d cuts, %d states", seed, *groupWrites, *groupCuts, *groupStates)
	random := rand.New(rand.NewPCG(seed, 0))
	g := newCutGroup(t.TempDir(), random)
	began := time.Now()
	done, err := g.run(*groupWrites, *groupCuts)
	if err != nil {
		for _, m := range g.members {
			t.Logf("%s", m.log)
		}
		t.Fatal(err)
	}
	events := g.log.Events()
	t.Logf("%d events in %v", len(events), time.Since(began).Round(time.Millisecond))
	var marks []int
	for i := range events {
		if events[i].Kind == powercut.Mark && strings.HasPrefix(string(events[i].Data), "acked") {
			marks = append(marks, i)
		}
	}
	moments := make([]int, *groupStates)
	for i := range moments {
		moments[i] = random.IntN(len(events) + 1)
		if i%2 == 0 {
			moments[i] = marks[random.IntN(len(marks))] + 1
		}
	}
	slices.Sort(moments)
	g.at, g.disks, g.tree, g.state, g.given = 0, map[int]*powercut.Disk{}, [3]int{-1, -1, -1}, groupState{}, map[string]bool{}
	for i, moment := range moments {
		if err := g.replay(events, moment); err != nil {
			t.Fatal(err)
		}
		lost := -1
		if g.state.formed && random.IntN(3) == 0 {
			lost = random.IntN(3)
		}
		began := time.Now()
		if err := g.check(filepath.Join(g.dir, fmt.Sprint("cut-", i)), lost, done); err != nil {
			t.Fatalf("cut at event %d of %d, %d writes acknowledged, %d sent, disk %d lost: %v", moment, len(events), g.state.acked, g.state.sent, lost, err)
		}
		if testing.Verbose() {
			t.Logf("cut at event %d, disk %d lost: %v", moment, lost, time.Since(began).Round(time.Millisecond))
		}
	}
	t.Logf("%d states had tasks that were running at two cuts", len(g.given))
	if 2*len(g.given) > *groupStates {
		t.Error("most states were not compared")
	}
}
