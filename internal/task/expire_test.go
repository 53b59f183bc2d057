package task

import (
	"testing"
	"time"
)

func TestSteadyClock(t *testing.T) {
	var c steadyClock
	wall, mono := time.Unix(1_900_000_000, 0), 5*time.Minute
	for i, tt := range []struct {
		wall, mono time.Duration // since the last check
		steady     time.Duration
	}{
		{0, 0, 0},
		{time.Minute, time.Minute, time.Minute},
		{time.Minute + 900*time.Millisecond, time.Minute, 2 * time.Minute}, // a small correction by the time service
		{time.Minute - 900*time.Millisecond, time.Minute, 3 * time.Minute},
		{time.Hour, time.Minute, 0}, // forward
		{time.Hour, time.Hour, time.Hour},
		{-time.Hour, time.Minute, 0}, // back
		{time.Minute, time.Minute, time.Minute},
		{time.Hour, time.Second, 0}, // the machine was asleep
		{2 * time.Second, 0, 0},
		{0, 2 * time.Second, 0}, // the clock stands still
	} {
		wall, mono = wall.Add(tt.wall), mono+tt.mono
		if got := c.look(wall, mono); got != tt.steady {
			t.Errorf("check %d: steady for %v, want %v", i, got, tt.steady)
		}
	}
}

// TestExpiredDocumentsAreDeletedLate moves the clocks of a queue: expired documents are deleted only while the clock has been
// steady for an hour.
func TestExpiredDocumentsAreDeletedLate(t *testing.T) {
	o, e := testOptions(t)
	q := openQueue(t, o)
	wall, mono := time.Unix(1_900_000_000, 0), time.Duration(0)
	e.due = map[string]int64{"a": wall.Unix() + 60, "b": wall.Unix() + 30*60, "c": wall.Add(200 * 24 * time.Hour).Unix()}
	x := &expiry{last: make(map[string]uint32), swept: -expiryEvery}
	tasks := func() (all []New) {
		for uid := uint32(0); ; uid++ {
			if _, err := q.Task(uid, nil); err != nil {
				return all
			}
			task := wait(t, q, uid)
			all = append(all, New{IndexUID: task.IndexUID, Content: task.Content})
		}
	}
	pass := func(minutes int) {
		for range minutes {
			wall, mono = wall.Add(time.Minute), mono+time.Minute
			q.sweep(x, wall, mono)
		}
	}
	q.sweep(x, wall, mono)
	pass(59) // the clock has been steady for less than an hour
	if got := tasks(); len(got) != 0 {
		t.Fatalf("after 59 minutes: %+v", got)
	}
	pass(1) // a expired 59 minutes ago
	if got := tasks(); len(got) != 0 {
		t.Fatalf("after 60 minutes: %+v", got)
	}
	pass(10)
	if got := tasks(); len(got) != 1 || got[0].IndexUID != "a" || got[0].Content != (DeleteExpired{wall.Add(-expiryMargin).Unix()}) {
		t.Fatalf("after 70 minutes: %+v", got)
	}
	pass(9)
	wall = wall.Add(400 * 24 * time.Hour) // the clock is set wrong
	pass(59)
	if got := tasks(); len(got) != 1 {
		t.Fatalf("while the clock is wrong: %+v", got)
	}
	wall = wall.Add(-400 * 24 * time.Hour) // and set right again
	pass(59)
	if got := tasks(); len(got) != 1 {
		t.Fatalf("after the clock was wrong: %+v", got)
	}
	pass(11)
	for _, n := range tasks() {
		if n.IndexUID == "c" || n.Content.(DeleteExpired).Moment > wall.Add(-expiryMargin).Unix() {
			t.Errorf("%+v at %v", n, wall)
		}
	}
	if got := tasks(); len(got) != 3 { // a again, which still has expired documents, and b
		t.Errorf("at the end: %+v", got)
	}
}
