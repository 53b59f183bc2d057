package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"svc/internal/group"
)

// mostVoters is the number of voters up to which troubles let a group grow.
const mostVoters = 5

// voterTrouble is something that happens to a member or to the group while clients write.
type voterTrouble struct {
	what  string      // what members were, for the log
	often int         // number of times in a deck
	least int         // fewest voters with which it is possible
	most  int         // most voters with which it happens; 0: any
	cuts  bool        // cuts members off: only with namespaces
	fills bool        // fills a disk: only if each member has its own
	do    func(i int) // acts on this member or on the group
}

func (g *voterRun) troubles() []voterTrouble {
	return []voterTrouble{
		{what: "killed", often: 4, do: g.killed},
		{what: "paused", often: 3, do: func(i int) {
			pause(g.voters[i].process.Process)
			g.wait(3000)
			resume(g.voters[i].process.Process)
		}},
		{what: "stopped in order", often: 2, do: g.stopped},
		{what: "replaced as leader", often: 2, do: func(int) { g.transfer() }},
		{what: "without room on the disk", often: 2, fills: true, do: func(i int) { g.fill(g.disks[g.voters[i]]) }},
		{what: "added", often: 2, most: mostVoters - 1, do: func(int) { g.grow() }},
		{what: "removed", often: 2, least: 2, do: func(int) { g.shrink() }},
		{what: "given an empty disk", often: 1, least: 3, do: g.replace}, // of two voters, the other one alone is no majority
		{what: "cut off from all", often: 2, least: 2, cuts: true, do: func(i int) {
			g.voters[i].room.cut(true)
			g.wait(4000)
			g.voters[i].room.cut(false)
		}},
		{what: "cut off from one", often: 1, least: 2, cuts: true, do: func(i int) { g.muted(g.between(i, g.another(i), true)) }},
		{what: "not heard by any other", often: 1, least: 2, cuts: true, do: func(i int) { g.muted(g.ways(i, true)) }},
		{what: "hearing no other", often: 1, least: 2, cuts: true, do: func(i int) { g.muted(g.ways(i, false)) }},
		{what: "not heard by one", often: 1, least: 2, cuts: true, do: func(i int) { g.muted(g.between(i, g.another(i), false)) }},
	}
}

// shuffled returns all troubles that are possible here, each as often as it should occur, in random order.
func (g *voterRun) shuffled() (deck []*voterTrouble) {
	for _, x := range g.troubles() {
		if x.cuts && g.voters[0].room == nil || x.fills && len(g.disks) == 0 {
			continue
		}
		for range x.often {
			deck = append(deck, &x)
		}
	}
	g.r.Shuffle(len(deck), func(i, k int) { deck[i], deck[k] = deck[k], deck[i] })
	return deck
}

// draw returns the next trouble that is possible now. The first one is a kill.
func (g *voterRun) draw() *voterTrouble {
	possible := func(x *voterTrouble) bool {
		return len(g.voters) >= x.least && (x.most == 0 || len(g.voters) <= x.most)
	}
	if g.deck == nil {
		possible = func(x *voterTrouble) bool { return x.what == "killed" }
	}
	for {
		if k := slices.IndexFunc(g.deck, possible); k >= 0 {
			x := g.deck[k]
			g.deck = slices.Delete(g.deck, k, k+1)
			return x
		}
		g.deck = append(g.deck, g.shuffled()...)
	}
}

// another returns another voter.
func (g *voterRun) another(i int) int { return (i + 1 + g.r.IntN(len(g.voters)-1)) % len(g.voters) }

// direction is the direction of packets between two voters.
type direction struct{ from, to *namespace }

// ways returns the directions from a voter to all others, or to it.
func (g *voterRun) ways(i int, from bool) (all []direction) {
	for k, m := range g.voters {
		switch {
		case k == i:
		case from:
			all = append(all, direction{g.voters[i].room, m.room})
		default:
			all = append(all, direction{m.room, g.voters[i].room})
		}
	}
	return all
}

// between returns the direction from a voter to another one, or both directions.
func (g *voterRun) between(i, k int, both bool) []direction {
	all := []direction{{g.voters[i].room, g.voters[k].room}}
	if both {
		all = append(all, direction{g.voters[k].room, g.voters[i].room})
	}
	return all
}

// muted drops packets for some time.
func (g *voterRun) muted(ways []direction) {
	g.t.Helper()
	for _, w := range ways {
		w.from.mute(w.to, true)
	}
	g.wait(4000)
	for _, w := range ways {
		w.from.mute(w.to, false)
	}
}

func (g *voterRun) killed(i int) {
	g.t.Helper()
	g.voters[i].kill()
	g.wait(2000)
	g.voters[i].start()
}

func (g *voterRun) stopped(i int) {
	g.t.Helper()
	m := g.voters[i]
	if err := m.process.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Error(err)
	}
	if err := m.process.Wait(); err != nil {
		g.t.Errorf("%s ends with %v: %s", m.name, err, m.log.String())
	}
	m.process = nil
	g.wait(1000)
	m.start()
}

// transfer asks a random member to transfer the lead.
func (g *voterRun) transfer() {
	g.t.Helper()
	if status, text, err := g.voters[g.r.IntN(len(g.voters))].ask("POST", "/group/transfer", "{}", nil); err != nil || status != 202 && status != 409 && status != 503 {
		g.t.Errorf("a transfer: %d %s %v", status, text, err)
	}
	g.wait(1000)
}

// replace gives a voter an empty disk.
func (g *voterRun) replace(i int) {
	g.t.Helper()
	m := g.voters[i]
	m.kill()
	if err := os.RemoveAll(m.data); err != nil {
		g.t.Fatal(err)
	}
	// The voters that it was started with may be gone.
	m.options[slices.Index(m.options, "--group-join")+1] = strings.Join(g.addresses(), ",")
	m.start()
	g.all()
}

// shrink removes a voter other than the leader.
func (g *voterRun) shrink() {
	g.t.Helper()
	gone := -1
	g.until("without one of them", func([]*group.Status) bool {
		l := g.leader()
		gone = g.another(l)
		status, text, err := g.voters[l].ask("DELETE", "/group/members/"+g.voters[gone].addr(), "", nil)
		if err == nil && (status == 204 || status == 404) {
			return true
		}
		g.t.Logf("%s is not removed: %d %s %v", g.voters[gone].name, status, text, err)
		return false
	})
	m := g.voters[gone]
	m.kill()
	g.voters = slices.Delete(g.voters, gone, gone+1)
	if m.room != nil {
		g.rooms = append(g.rooms, m.room)
	}
}

// grow adds a voter.
func (g *voterRun) grow() {
	g.t.Helper()
	addr, room := g.home()
	g.add(addr, room, append(g.addresses(), addr))
	g.all()
}

// fill fills the disk of a voter for some time.
func (g *voterRun) fill(disk string) {
	g.t.Helper()
	name := filepath.Join(disk, "ballast")
	for deadline := time.Now().Add(time.Duration(200+g.r.IntN(2500)) * time.Millisecond); time.Now().Before(deadline); g.wait(20) {
		if err := fillDisk(name); err != nil {
			g.t.Error(err)
		}
	}
	if err := os.Remove(name); err != nil {
		g.t.Error(err)
	}
}
