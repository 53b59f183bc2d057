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

// TestRollingUpgrade exchanges the programs of three voters, one after the other, from an older version to this one and back, while clients
// write and read: no request fails, nothing is lost or made twice, and all members give the same answers. It goes back, as both versions
// have level 1 of entries. A downgrade below a level is not possible.
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
		order := []int{(leader + 1) % 3, (leader + 2) % 3, leader} // as docs/GROUP.md says: the leader last
		for _, i := range order {
			m := g.voters[i]
			if err := m.process.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := m.process.Wait(); err != nil {
				t.Errorf("%s ends with %v", m.name, err)
			}
			m.process, m.program = nil, program
			m.address = m.url[len("http://"):] // clients know it by that
			m.start()
			g.until("complete again", follow)
			writes++
			l.write(loadClients, writes)
		}
	}
	l.end()
	g.agree()
}

// follow reports whether all three vote, and all but the leader have nearly all that it has.
func follow(all []*group.Status) bool {
	return slices.ContainsFunc(all, func(s *group.Status) bool {
		return s.Voter.Leads && len(s.Members) == 3 && !slices.ContainsFunc(s.Members, func(m group.MemberStatus) bool { return !m.Votes || m.Lag == nil || *m.Lag > 64 })
	})
}
