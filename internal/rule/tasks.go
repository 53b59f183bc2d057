package rule

import (
	"context"
	"fmt"

	"svc/internal/index"
	"svc/internal/task"
)

// Executor runs a batch of tasks that change rules, and stores all changes together.
func (s *Store) Executor(_ context.Context, _ *task.Queue, tasks []*task.Task, progress index.Progress) ([]task.Outcome, error) {
	outcomes := make([]task.Outcome, len(tasks))
	if tasks[0].Kind == task.RuleClear {
		progress(0, index.Step{Name: "deleting the search rules", Total: 1})
		n, err := s.Clear()
		if err != nil {
			return nil, err
		}
		for i := range outcomes {
			outcomes[i].Details = fmt.Appendf(nil, `{"deletedDocuments":%d}`, n)
			n = 0 // the first task deleted all of them
		}
		return outcomes, nil
	}
	progress(0, index.Step{Name: "updating the search rules", Total: len(tasks)})
	updates := make([]Update, len(tasks))
	for i, t := range tasks {
		c, ok := t.Content.(task.UpdateRule)
		if !ok {
			return nil, fmt.Errorf("task %d of type %s does not change a search rule", t.UID, t.Kind)
		}
		updates[i] = Update{UID: c.UID, Rule: c.Rule, AskedAt: t.EnqueuedAt}
	}
	refused, err := s.Apply(updates)
	if err != nil {
		return nil, err
	}
	for i := range outcomes {
		outcomes[i].Err = refused[i]
	}
	return outcomes, nil
}
