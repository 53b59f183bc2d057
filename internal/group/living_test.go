package group

import (
	"slices"
	"testing"
)

// TestLiving checks that a leader knows which processes of its group are alive. A restarted member is another process.
func TestLiving(t *testing.T) {
	t.Parallel()
	all := newElectors(t, 3)
	voting(t, all, 3)
	l := leaderOf(t, all)
	var runs []string
	for _, e := range all {
		runs = append(runs, e.v.Run())
	}
	within(t, "all live", func() bool { return len(l.v.Living(append(runs, "gone"))) == 3 })
	again := all[(slices.Index(all, l)+1)%3]
	before := again.v.Run()
	again.stop()
	again.start()
	within(t, "it is another process", func() bool {
		living := leaderOf(t, all).v.Living([]string{before, again.v.Run()})
		return slices.Equal(living, []string{again.v.Run()})
	})
}
