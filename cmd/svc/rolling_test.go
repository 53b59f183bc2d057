package main

import (
	"flag"
	mathrand "math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"svc/internal/group"
)

var olderProgram = flag.String("older-svc", "", "a program of an older version of svc, from which TestRollingUpgrade begins")

// TestRollingUpgrade replaces the programs of three voters one after the other, from an older version to this one and back, while clients
// write and read. No request may fail, nothing may be lost or repeated, and all members must give the same answers. The downgrade is
// possible because both versions write entries of level 1.
func TestRollingUpgrade(t *testing.T) {
	if *olderProgram == "" {
		t.Skip("-older-svc names no program: see make rolling")
	}
	g := startVoterRun(t, mathrand.Uint64(), *olderProgram, nil)
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range g.voters {
				t.Logf("%s:\n%s", m.name, m.log.String())
			}
		}
	})
	g.all()
	g.voters[0].must("PATCH", "/indexes/"+kept+"/settings", `{"filterableAttributes":["id"]}`, nil)
	l, writes := newLoad(t, g), 0
	for _, program := range []string{"", *olderProgram} {
		leader := g.leader()
		order := []int{(leader + 1) % 3, (leader + 2) % 3, leader} // the leader last, as docs/GROUP.md says
		for _, i := range order {
			m := g.voters[i]
			if err := m.process.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := m.process.Wait(); err != nil {
				t.Errorf("%s ends with %v", m.name, err)
			}
			m.process, m.program = nil, program
			m.address = m.url[len("http://"):] // clients use this address
			m.start()
			g.until("complete again", follow)
			writes++
			l.write(loadClients, writes)
		}
	}
	l.end()
	g.agree()
}

// follow reports whether all three vote, and the followers are close to the leader.
func follow(all []*group.Status) bool {
	return slices.ContainsFunc(all, func(s *group.Status) bool {
		return s.Voter.Leads && len(s.Members) == 3 && !slices.ContainsFunc(s.Members, func(m group.MemberStatus) bool { return !m.Votes || m.Lag == nil || *m.Lag > 64 })
	})
}
