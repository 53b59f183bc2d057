package fastapi

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/group"
)

// promotedMember is a reader that becomes the writer.
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

// TestDashboardShowsTheGroup looks at the group of a server that has none, and promotes a reader whose writer is gone. axe-core finds
// nothing there.
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
		t.Errorf("it was forced %d times after the questions %q", n, asked)
	}
	tab.look(1440, 900, false)
	clean("a writer")
}
