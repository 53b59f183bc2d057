package task

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"svc/internal/index"
)

// TestEndsOfProcesses checks the count of processes that ended while they ran a task: live processes do not count, and other batches make
// no difference.
func TestEndsOfProcesses(t *testing.T) {
	for _, tt := range []struct{ crashes, ran, dead, want int }{
		{2, 2, 2, 2}, {2, 2, 1, 1}, {2, 2, 0, 0},
		{3, 2, 0, 1}, {3, 2, 2, 3}, // the first crash is of an unknown process
		{2, 4, 0, 0}, {2, 3, 2, 1}, {2, 4, 1, 0}, {2, 4, 4, 2}, // two batches were split: each live process counts for the task
	} {
		if got := ends(tt.crashes, tt.ran, tt.dead); got != tt.want {
			t.Errorf("%d crashes, %d of %d processes are dead: %d ends, want %d", tt.crashes, tt.dead, tt.ran, got, tt.want)
		}
	}
}

// TestATaskThatTakesTheLeadIsGivenUp checks when a task fails that makes each process lose the lead. A process that answered once may end
// later, and the task fails in the end even if all processes live.
func TestATaskThatTakesTheLeadIsGivenUp(t *testing.T) {
	for _, tt := range []struct {
		what   string
		living func(process string, picked, ran int) bool
		runs   int
		says   string
	}{
		{"all are dead", func(string, int, int) bool { return false }, maxCrashes, "ended 2 times"},
		{"all live", func(string, int, int) bool { return true }, maxLosses, "lost the lead of its group 40 times"},
		{"the last one answers once", func(process string, _, ran int) bool { return process == fmt.Sprint(ran) }, maxCrashes + 1, "ended 2 times"},
		{"all live at first", func(_ string, picked, _ int) bool { return picked < 6 }, 6, "ended 6 times"},
	} {
		o, e := testOptions(t)
		o.Executors = map[Kind]Executor{DumpCreation: func(context.Context, *Queue, []*Task, index.Progress) ([]Outcome, error) {
			return []Outcome{{}}, nil
		}}
		ran := 0
		o.hook = func(at string) error {
			if at != "journaled" {
				return nil
			}
			ran++
			return errCrash
		}
		again := func() *Queue {
			q := paused(t, o)
			q.RunIn(fmt.Sprint(ran+1), func(all []string) (living []string) {
				for _, process := range all {
					if tt.living(process, len(all), ran) {
						living = append(living, process)
					}
				}
				return living
			})
			return q
		}
		q := again()
		enqueue(t, q, New{Content: CreateDump{}})
		for range maxLosses + 2 {
			_, _, _ = q.turn()
			q.Close()
			q = again()
		}
		task, err := q.Task(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ran != tt.runs || task.Status != Failed || !strings.Contains(task.Error.Message, tt.says) || len(e.took()) > 0 {
			t.Errorf("%s: the task ran %d times, want %d, and is %s: %v", tt.what, ran, tt.runs, task.Status, task.Error)
		}
	}
}
