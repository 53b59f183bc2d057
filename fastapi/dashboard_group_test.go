package fastapi

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/group"
)

// promotedMember is a reader that can become the writer.
type promotedMember struct {
	fakeMember
	writes atomic.Bool
}

func (m *promotedMember) Status() *group.Status {
	s := m.fakeMember.Status()
	if m.writes.Load() {
		s.Role, s.Reader, s.Term = group.RoleWriter, nil, 2
	}
	return s
}

// TestDashboardShowsTheGroup opens the group page of a server without a group, and promotes a reader whose writer is gone. axe-core
// must find nothing.
func TestDashboardShowsTheGroup(t *testing.T) {
	tab := startChromium(t).open()
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills + `window.asked = []; window.confirm = text => asked.push(text) > 0;`}, nil)
	clean := func(where string) {
		t.Helper()
		for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
			t.Errorf("%s: %s", where, line)
		}
	}
	_, alone := openPage(t, Options{})
	tab.look(390, 844, true)
	tab.goTo(alone + "/#/system?view=group")
	tab.until(`document.querySelector("#main .empty")?.textContent.includes("belongs to no group")`)
	clean("alone")

	m := &promotedMember{fakeMember: fakeMember{pos: group.Position{Term: 1, Run: 2, Index: 30}, state: group.StateAway}}
	var forced atomic.Int32
	_, url := openPage(t, Options{Member: m, Forward: func(*fasthttp.RequestCtx) error { return nil }, TakeOver: func(_ context.Context, force bool) (Member, error) {
		if !force {
			return nil, apierr.New("writer_unreachable", "The writer cannot be asked to hand over.")
		}
		forced.Add(1)
		m.writes.Store(true)
		return m, nil
	}})
	tab.goTo(url + "/#/system?view=group")
	tab.until(`texts("#main tbody .status").join() === "away,"`)
	clean("a reader")
	var members []string
	tab.eval(`texts("#main tbody tr:first-child td")`, &members)
	if len(members) != 7 || members[0] != "ab (this server)" || members[1] != "reader" || members[3] != "1.2.30" || members[4] != "3" {
		t.Errorf("the page shows %q", members)
	}
	tab.eval(`press("Promote this reader"), 0`, nil)
	tab.until(`texts("#main tbody .status").join() === "leads,"`)
	tab.until(`document.getElementById("said").textContent.includes("is the writer") && !texts("#main button").includes("Promote this reader")`)
	var asked []string
	tab.eval(`asked`, &asked)
	if n := forced.Load(); n != 1 || len(asked) != 2 {
		t.Errorf("forced %d times after the questions %q", n, asked)
	}
	tab.look(1440, 900, false)
	clean("a writer")
}

// operatedVoter is the leader of three voters. It hands over the lead and removes members on request.
type operatedVoter struct {
	fakeMember

	mu     sync.Mutex
	leader string
	all    []string
	told   []string
}

func (v *operatedVoter) Status() *group.Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	lag := uint64(1234)
	s := &group.Status{Name: "shop", Role: group.RoleVoter, Member: "aaaaaaaa-1", Term: 1, Position: "1.1.2000", Voter: &group.VoterStatus{Leader: v.leader + ":7701", Leads: v.leader == v.all[0], Votes: true}}
	for i, addr := range v.all {
		m := group.MemberStatus{Member: []string{"aaaaaaaa-1", "bbbbbbbb-2", "cccccccc-3"}[i], Address: addr + ":7701", Votes: true, State: group.StateFollows}
		if addr == v.leader {
			m.State = group.StateLeads
		}
		if s.Voter.Leads {
			m.Lag, m.Position = &lag, "1.1.766"
		}
		s.Members = append(s.Members, m)
	}
	return s
}

func (v *operatedVoter) Draining() bool                                 { return false }
func (v *operatedVoter) Votes() bool                                    { return true }
func (v *operatedVoter) Behind() bool                                   { return false }
func (v *operatedVoter) Latest(context.Context) (group.Position, error) { return v.pos, nil }

func (v *operatedVoter) Transfer(to string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leader, v.told = v.all[1], append(v.told, "transfer "+to)
	return nil
}

func (v *operatedVoter) Remove(member string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all, v.told = v.all[:2], append(v.told, "remove "+member)
	return nil
}

// TestDashboardOperatesVoters shows three voters led by this one, removes one, and hands the lead over to the other.
func TestDashboardOperatesVoters(t *testing.T) {
	v := &operatedVoter{leader: "10.0.0.1", all: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}}
	_, url := openPage(t, Options{Member: v})
	tab := startChromium(t).open()
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills + `window.asked = []; window.sure = false; window.confirm = text => { asked.push(text); return sure; };`}, nil)
	tab.look(1440, 900, false)
	clean := func(where string) {
		t.Helper()
		for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
			t.Errorf("%s: %s", where, line)
		}
	}
	told := func() []string {
		v.mu.Lock()
		defer v.mu.Unlock()
		return slices.Clone(v.told)
	}
	tab.goTo(url + "/#/system?view=group")
	tab.until(`texts("#main tbody .status").join() === "leads,follows,follows"`)
	clean("the leader")
	var shown []string
	tab.eval(`texts("#main tbody tr:last-child td")`, &shown)
	if len(shown) != 8 || shown[1] != "voter" || shown[4] != "1,234" || shown[5] != "" || shown[6] != "10.0.0.3:7701" {
		t.Errorf("the page shows %q", shown)
	}
	tab.eval(`texts("#main tbody tr:first-child button")`, &shown)
	if len(shown) != 0 {
		t.Errorf("for the leader the page offers %q", shown)
	}
	const remove, transfer = `document.querySelector("button[aria-label='Remove 10.0.0.3:7701']").click(), 0`, `document.querySelector("button[aria-label='Transfer lead 10.0.0.2:7701']").click(), 0`
	tab.eval(remove, nil) // then cancel
	tab.until(`asked.length === 1`)
	tab.eval(`sure = true, 0`, nil)
	tab.eval(remove, nil)
	tab.until(`texts("#main tbody .status").join() === "leads,follows" && document.getElementById("said").textContent.includes("10.0.0.3:7701 was removed")`)
	tab.eval(transfer, nil)
	tab.until(`texts("#main tbody .status").join() === "follows,leads" && document.getElementById("said").textContent.includes("10.0.0.2:7701")`)
	tab.until(`document.getElementById("main").textContent.includes("Only the leader knows")`)
	if got := told(); !slices.Equal(got, []string{"remove cccccccc-3", "transfer bbbbbbbb-2"}) {
		t.Errorf("the voter got %q", got)
	}
	tab.eval(`asked`, &shown)
	if len(shown) != 3 {
		t.Errorf("the page asked %q", shown)
	}
	tab.look(390, 844, true)
	clean("a follower")
}
