package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svc/internal/group"
)

var voterRounds = flag.Int("voter-rounds", 1, "how often TestVotersKeepAcceptedWrites troubles a group")

// voterRun is a group of three voters in their own processes, and clients of all.
type voterRun struct {
	*groupRun
	voters []*member
	disks  map[*member]string // small disks with the data of voters
	n      int                // number of voters started so far
	rooms  []*namespace       // unused namespaces; see startVoterRun
	homes  int                // number of addresses used in namespaces
	deck   []*voterTrouble    // the next troubles

	program string   // program of new voters; "": the one of this test
	options []string // options of all, beside those of the group
}

func newVoterRun(t *testing.T, seed uint64, options ...string) *voterRun {
	return startVoterRun(t, seed, "", nil, options...)
}

// startVoterRun starts the voters with a program; "": the one of this test. With rooms, each voter runs in its own namespace.
func startVoterRun(t *testing.T, seed uint64, program string, rooms []*namespace, options ...string) *voterRun {
	g := &voterRun{groupRun: &groupRun{pair: &pair{t: t}, r: rand.New(rand.NewPCG(seed, 0))}, disks: map[*member]string{}, rooms: rooms, program: program, options: options}
	var join []string
	var homes []*namespace
	for range 3 {
		addr, room := g.home()
		join, homes = append(join, addr), append(homes, room)
	}
	for i, addr := range join {
		g.add(addr, homes[i], join)
	}
	for i := range 3 {
		g.clients = append(g.clients, &groupClient{r: rand.New(rand.NewPCG(seed, uint64(i+1))), id: i, acked: map[string]bool{}, sent: map[string]bool{}, keys: map[string]bool{}})
	}
	return g
}

// home returns a new address for a voter, and its namespace if there are any.
func (g *voterRun) home() (addr string, room *namespace) {
	if len(g.rooms) == 0 {
		return freeAddress(), nil
	}
	room, g.rooms = g.rooms[0], g.rooms[1:]
	g.homes++
	return fmt.Sprintf("%s:%d", room.ip, 7700+g.homes), room
}

// add starts a voter with an empty disk.
func (g *voterRun) add(addr string, room *namespace, join []string) *member {
	g.t.Helper()
	m := &member{t: g.t, name: string(rune('a' + g.n)), data: filepath.Join(g.t.TempDir(), "data"), room: room, key: groupKey, program: g.program, options: []string{
		"--master-key", groupKey, "--group-name", "shop", "--group-role", "voter", "--group-addr", addr, "--group-join", strings.Join(join, ","),
	}}
	m.options = append(m.options, g.options...)
	if disk := smallDisk(g.t, "400m"); disk != "" {
		m.data, g.disks[m] = filepath.Join(disk, "data"), disk
	}
	g.n++
	g.voters = append(g.voters, m)
	g.t.Cleanup(m.kill)
	m.start()
	return m
}

// addr returns the address for the other voters.
func (m *member) addr() string { return m.options[slices.Index(m.options, "--group-addr")+1] }

// addresses returns the addresses at which voters reach each other.
func (g *voterRun) addresses() (all []string) {
	for _, m := range g.voters {
		all = append(all, m.addr())
	}
	return all
}

func (g *voterRun) urls() (all []string) {
	for _, m := range g.voters {
		all = append(all, m.url)
	}
	return all
}

// status returns the group as a member sees it, or nil if it does not answer.
func (g *voterRun) status(i int) *group.Status {
	req, err := http.NewRequest("GET", g.voters[i].url+"/group", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+groupKey)
	c := http.Client{Timeout: 2 * time.Second}
	resp, err := c.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	s := new(group.Status)
	if resp.StatusCode != 200 || json.NewDecoder(resp.Body).Decode(s) != nil {
		return nil
	}
	return s
}

// standstill is the longest time that a group may take for its next step on any machine.
const standstill = 2 * time.Minute

// until waits until the states of all members satisfy a condition, as long as one of them still changes.
func (g *voterRun) until(what string, is func(all []*group.Status) bool) {
	g.t.Helper()
	var all []*group.Status
	last, moved := map[*member]string{}, time.Now()
	end, bounded := g.t.Deadline()
	end = end.Add(-standstill / 8) // to show what the members do
	for ; time.Since(moved) < standstill && !(bounded && time.Now().After(end)); time.Sleep(10 * time.Millisecond) {
		all = all[:0]
		for i, m := range g.voters {
			s := g.status(i)
			all = append(all, s)
			if now := step(s); s != nil && now != last[m] {
				last[m], moved = now, time.Now()
			}
		}
		if !slices.Contains(all, nil) && is(all) {
			return
		}
	}
	for _, m := range g.voters { // their logs then show what hangs
		_ = m.process.Process.Signal(syscall.SIGQUIT)
	}
	time.Sleep(time.Second)
	b, _ := json.Marshal(all)
	g.t.Fatalf("the group is never %s: %s", what, b)
}

// step returns the part of the state of a member that changes only if the member does something.
func step(s *group.Status) string {
	if s == nil {
		return ""
	}
	text := fmt.Sprint(s.Term, s.Position)
	if s.Voter != nil {
		text += fmt.Sprint(" ", s.Voter.Leader, s.Voter.Committed, s.Voter.Votes, s.Voter.Reigns)
	}
	for _, m := range s.Members {
		text += fmt.Sprint(" ", m.Address, m.Votes, m.State, m.Position)
	}
	return text
}

// leader returns the member that the others name as leader.
func (g *voterRun) leader() int {
	g.t.Helper()
	leader := -1
	g.until("led", func(all []*group.Status) bool {
		leader = slices.IndexFunc(g.voters, func(m *member) bool { return slices.Contains(m.options, all[0].Voter.Leader) })
		return leader >= 0 && all[leader].Voter.Leads
	})
	return leader
}

// TestVotersKeepAcceptedWrites writes to voters while the leader or another voter is killed, stopped, replaced, cut off in one or both
// directions, or has a full disk, and while voters are added and removed and the lead is transferred. No acknowledged write may be lost or
// repeated, all members must give the same answers, and the answers to clients must be linearizable.
func TestVotersKeepAcceptedWrites(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system cannot pause processes")
	}
	if inOwnNetwork(t) {
		return
	}
	seed := *groupSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d rounds", seed, *voterRounds)
	rooms, uncut := newNamespaces(t, mostVoters)
	if uncut != nil {
		t.Logf("no voter is cut off from others: %v", uncut)
		rooms = nil
	}
	g := startVoterRun(t, seed, "", rooms)
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range g.voters {
				t.Logf("%s:\n%s", m.name, m.log.String())
			}
		}
	})
	g.all()
	g.voters[1].must("PATCH", "/experimental-features", `{"dynamicSearchRules":true,"chatCompletions":true,"editDocumentsByFunction":true}`, nil)
	g.voters[2].must("PATCH", "/indexes/"+kept+"/settings", `{"filterableAttributes":["id"]}`, nil)
	var histories historyCount
	done, cuts := map[string]int{}, 0
	for round := range *voterRounds {
		stop := make(chan struct{})
		var writing sync.WaitGroup
		urls := g.urls()
		for _, c := range g.clients {
			writing.Go(func() { c.write(urls, stop) })
		}
		h, historians := newHistorians(t, seed, round)
		for _, c := range historians {
			writing.Go(func() { c.run(urls, stop) })
		}
		g.wait(300)
		i := g.leader()
		if round > 0 && g.r.IntN(3) == 0 {
			i = g.r.IntN(len(g.voters))
		}
		trouble := g.draw()
		trouble.do(i)
		done[trouble.what]++
		if trouble.cuts {
			cuts++
		}
		g.wait(300)
		g.leader()
		close(stop)
		writing.Wait()
		g.agree()
		h.check(historians[0], g.urls(), &histories)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	documents, keys := 0, 0
	for _, c := range g.clients {
		documents, keys = documents+len(c.acked), keys+len(c.keys)
	}
	t.Logf("acknowledged: %d documents, %d keys; histories of %d objects with %d operations, %d of them without an answer; %d were not decided", documents, keys,
		histories.objects, histories.ops, histories.unknown, histories.undecided)
	if 2*histories.undecided > histories.objects {
		t.Error("most histories were not decided")
	}
	t.Logf("members were %v; %d cuts", done, cuts)
	if deck := g.shuffled(); *voterRounds >= len(deck) {
		for _, x := range deck {
			if done[x.what] == 0 {
				t.Errorf("no member was %s", x.what)
			}
		}
	}
	if documents == 0 {
		t.Error("no write was acknowledged")
	}
}

// all waits until all members are voters and know it of each other.
func (g *voterRun) all() {
	g.t.Helper()
	g.until("one in which all vote", func(all []*group.Status) bool {
		return !slices.ContainsFunc(all, func(s *group.Status) bool {
			return len(s.Members) != len(all) || slices.ContainsFunc(s.Members, func(m group.MemberStatus) bool { return !m.Votes })
		})
	})
}

// agree compares the members when they have the same position and nothing runs.
func (g *voterRun) agree() {
	g.t.Helper()
	g.until("at one position", func(all []*group.Status) bool {
		for i, s := range all {
			var tasks struct{ Total int }
			g.decode(groupMember{&instance{t: g.t, url: g.voters[i].url}}, "/tasks?statuses=enqueued,processing&limit=1", &tasks)
			if s.Position != all[0].Position || tasks.Total > 0 {
				return false
			}
		}
		return true
	})
	for _, path := range []string{"/tasks?limit=1000000", "/keys?limit=1000000", "/indexes?limit=1000", "/indexes/" + kept + "/documents?limit=1000000", "/indexes/" + kept + "/settings"} {
		want := ""
		for i, m := range g.voters {
			got := groupMember{&instance{t: g.t, url: m.url}}.found(path)
			if i == 0 {
				want = got
			} else if got != want {
				g.t.Errorf("%s: two members answer differently:\n%s\n%s", path, want, got)
			}
		}
	}
	for i := range len(g.voters) {
		g.writer = groupMember{&instance{t: g.t, url: g.voters[i].url}}
		g.reader = g.writer
		g.promised()
	}
}
