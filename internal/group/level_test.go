package group

import (
	"strconv"
	"testing"

	"svc/internal/consensus"
)

// TestLevels upgrades three voters one after the other: entries have the old level until the last voter reads the new one.
func TestLevels(t *testing.T) {
	t.Parallel()
	all := newElectors(t, 3)
	voting(t, all, 3)
	n := 0
	written := func() byte {
		t.Helper()
		n++
		data := []byte(strconv.Itoa(n))
		accept(t, all, "a.json", data)
		agree(t, all, "a.json", data)
		l, level := leaderOf(t, all), byte(0)
		last := l.v.node.Last()
		if err := l.v.node.Entries(max(2, last-min(last, 10)), last, func(e consensus.Entry) bool {
			if len(e.Data) > 0 {
				level = e.Data[0]
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return level
	}
	restart := func(e *elector, level byte) {
		t.Helper()
		e.stop()
		e.o.level = level
		e.start()
		within(t, "it follows again", func() bool { return e.v.current() != nil && e.v.current().Last() >= leaderOf(t, all).v.node.Last() })
	}
	for i, e := range all {
		if level := written(); level != 1 {
			t.Errorf("after %d upgrades, entries have level %d", i, level)
		}
		restart(e, 2)
	}
	within(t, "entries have the new level", func() bool { return written() == 2 })
}
