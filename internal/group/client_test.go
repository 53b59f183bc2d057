package group

import (
	"slices"
	"testing"
	"time"
)

// TestTheLeaderIsTriedNext checks the order of addresses: a reader tries the leader that a voter names, and the others when that leader
// does not answer.
func TestTheLeaderIsTriedNext(t *testing.T) {
	t.Parallel()
	type step struct {
		dials, hears string // the address that is dialled, and the leader that it names
		fails        bool
		told         bool
		want         []string
	}
	for name, steps := range map[string][]step{
		"no voter knows":  {{"a", "", true, false, []string{"b", "c", "a"}}, {"b", "", true, false, []string{"c", "a", "b"}}},
		"a follower says": {{"a", "c", true, true, []string{"c", "a", "b"}}, {"c", "c", false, false, []string{"c", "a", "b"}}},
		"it was not listed": {
			{"a", "d", true, true, []string{"d", "a", "b", "c"}},
			{"d", "d", false, false, []string{"d", "a", "b", "c"}},
		},
		"what it says is old": {
			{"a", "c", true, true, []string{"c", "a", "b"}},
			{"c", "", true, false, []string{"a", "b", "c"}},
			{"a", "c", true, false, []string{"b", "c", "a"}}, // c has just failed
			{"b", "b", false, false, []string{"b", "c", "a"}},
		},
		"it cannot be reached": {
			{"a", "c", true, true, []string{"c", "a", "b"}},
			{"c", "", true, false, []string{"a", "b", "c"}},
			{"a", "c", true, false, []string{"b", "c", "a"}},
			{"b", "c", true, false, []string{"c", "b", "a"}}, // tried, but not at once
			{"c", "", true, false, []string{"b", "a", "c"}},
			{"b", "a", true, true, []string{"a", "b", "c"}},
		},
		"it leads and then another": {
			{"a", "a", false, false, []string{"a", "b", "c"}},
			{"a", "c", true, true, []string{"c", "a", "b"}},
		},
	} {
		c := newClient([]string{"a", "b", "c"}, nil, nil, nil, nil)
		for i, s := range steps {
			if got := c.address(); got != s.dials {
				t.Errorf("%s, step %d: %s is tried, want %s", name, i, got, s.dials)
			}
			c.tried = s.dials
			c.learn(s.hears)
			told := false
			if s.fails {
				told = c.next()
			}
			if told != s.told || !slices.Equal(c.addr, s.want) {
				t.Errorf("%s, step %d: %v, told %v; want %v, %v", name, i, c.addr, told, s.want, s.told)
			}
		}
	}
	again := newClient([]string{"a", "b"}, nil, nil, nil, nil)
	for _, late := range []bool{false, false, true} {
		again.tried, again.failed, again.addr = "a", "", []string{"a", "b"}
		again.learn("b")
		if late {
			again.toldAt = time.Now().Add(-toldPause)
		}
		want := late || again.told == ""
		if got := again.next(); got != want {
			t.Errorf("told %v, want %v", got, want)
		}
	}
	full := newClient([]string{"a"}, nil, nil, nil, nil)
	for i := range 2 * maxAddresses {
		full.learn(string(rune('A' + i)))
	}
	if len(full.addr) != maxAddresses {
		t.Errorf("%d addresses are kept", len(full.addr))
	}
}
