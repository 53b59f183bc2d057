package task

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/mapped"
	"svc/internal/script"
)

// result is the end of one task.
type result struct {
	outcome
	err     *apierr.Error
	details []byte // instead of those of outcome, when not nil
}

func failed(err error) result {
	return result{outcome: outcome{failed: true}, err: apierr.From(err)}
}

// errApplied is index.ErrApplied, as the engine interface gives it.
var errApplied = index.ErrApplied

// run runs a batch and stores its end. On an error nothing is stored, and the tasks are enqueued again: the batch was canceled, the
// queue is closing, or the machine failed (*parkedError if only the batch's indexes are affected).
func (q *Queue) run(run *running) error {
	switch {
	case run.kinds == 1<<TaskCancelation:
		return q.cancelTasks(run)
	case run.kinds == 1<<TaskDeletion:
		return q.deleteTasks(run)
	}
	if err := q.at("picked"); err != nil {
		return err
	}
	if err := q.engine.settle(); err != nil {
		return err
	}
	if run.changesCatalog() {
		// The catalog knows its last change again, after a crash, and no other: see index.Catalog.
		q.catalog.Lock()
		defer q.catalog.Unlock()
	}
	limit := maxCrashes
	if slices.ContainsFunc(run.tasks, func(t *Task) bool { return t.Network != nil }) {
		limit = maxSharedCrashes
	}
	// A change of the network is a task of all its instances: one alone cannot give it up.
	if run.crashes > 0 && run.kinds != 1<<NetworkTopologyChange && !q.changed(run) {
		switch {
		case len(run.tasks) > 1 && run.kinds != 1<<UpgradeDatabase:
			return errTakenApart
		case run.ends >= limit || run.crashes >= maxLosses:
			return q.giveUp(run)
		}
	}
	if err := q.journal.write(run.entry(false)); err != nil {
		if reason := apierr.From(err); reason.Code == noSpace && len(run.touched()) > 0 {
			return &parkedError{reason} // a deletion in another index may make room
		}
		return err
	}
	run.journaled = true
	if err := q.at("journaled"); err != nil {
		return err
	}
	results, err := q.execute(run)
	if err != nil {
		return err
	}
	if err := q.at("applied"); err != nil {
		return err
	}
	if run.kinds == 1<<UpgradeDatabase && results[0].err != nil {
		q.upgradeFailed = true
		q.log.Error("the upgrade of the data directory failed: no task runs until a restart", "error", results[0].err)
	}
	ends := make([]end, len(run.tasks))
	for i, t := range run.tasks {
		ends[i] = end{task: t, result: results[i], status: Succeeded}
		if results[i].err != nil {
			ends[i].status = Failed
		}
	}
	return q.finish(run, ends, func(tx *txn) error {
		for i, t := range run.tasks {
			if results[i].err != nil {
				continue
			}
			for _, s := range renames(t) {
				if err := tx.rename(t.UID, s.Indexes[0], s.Indexes[1]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// changed reports whether an earlier run of a batch changed an index. Then the batch is nearly done and continues.
func (q *Queue) changed(run *running) bool {
	first, end := marks(run.uid, run.Create)
	return q.engine.marked(first, end-1)
}

// marks returns the steps that show that a batch changed an index, without the end. An index that it created but did not fill does not
// count.
func marks(batch uint32, creates bool) (first, end uint64) {
	first = step(batch, 0)
	if creates {
		first = step(batch, 1)
	}
	return first, step(batch+1, 0)
}

// giveUp fails a batch that was running whenever the program ended, or lost the lead, of late.
func (q *Queue) giveUp(run *running) error {
	what, times := "ended", run.ends
	if run.crashes >= maxLosses {
		what, times = "ended or lost the lead of its group", run.crashes
	}
	reason := apierr.New("internal", "The process %s %d times while this task ran, so svc does not run it again. "+
		"If the process was not killed on purpose, the task needs more memory than available, or triggers a bug in svc. See its log and the system log.", what, times)
	q.log.Error("a batch was running each time the process "+what+": its tasks fail", "batch", run.uid, "tasks", len(run.tasks), "times", times)
	ends := make([]end, len(run.tasks))
	for i, t := range run.tasks {
		ends[i] = end{task: t, result: result{outcome: outcome{failed: true}, err: reason}, status: Failed}
	}
	return q.finish(run, ends, nil)
}

// execute runs the tasks and returns a result for each. Its error is the end of the context or a *parkedError: an accepted
// write fails only for a reason of its own. Work for other packages (a dump, an export), except changes of search rules,
// is not a write: a client waits for the answer, and it fails with the machine.
func (q *Queue) execute(run *running) (results []result, err error) {
	all := func(r result) []result {
		rs := make([]result, len(run.tasks))
		for i := range rs {
			rs[i] = r
		}
		return rs
	}
	defer func() {
		if p := recover(); p != nil {
			q.log.Error("a batch panicked", "batch", run.uid, "panic", p, "stack", string(debug.Stack()))
			results, err = all(failed(fmt.Errorf("the batch stopped at an internal error: %v", p))), nil
		}
	}()
	err = mapped.Guard(func() (err error) {
		if kind := run.tasks[0].Kind; q.o.Executors[kind] != nil {
			results, err = q.executeOther(run, q.o.Executors[kind])
		} else {
			results, err = q.executeHere(run)
		}
		return err
	})
	switch {
	case err == nil:
		return results, nil
	case errors.Is(err, errCrash):
		return nil, err
	case run.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(run.ctx))):
		return nil, context.Cause(run.ctx)
	case (q.o.Executors[run.tasks[0].Kind] == nil || run.tasks[0].Kind.ofRules()) && machineAtFault(err):
		return nil, &parkedError{apierr.From(err)}
	}
	return all(failed(err)), nil
}

// executeOther runs the tasks with the executor of their kind.
func (q *Queue) executeOther(run *running, x Executor) ([]result, error) {
	outcomes, err := x(run.ctx, q, run.tasks, run.progress.inside)
	if err != nil {
		return nil, err
	}
	if len(outcomes) != len(run.tasks) {
		return nil, fmt.Errorf("%d outcomes of %d tasks of type %s", len(outcomes), len(run.tasks), run.tasks[0].Kind)
	}
	results := make([]result, len(outcomes))
	for i, o := range outcomes {
		if o.Err != nil {
			results[i] = failed(o.Err)
		}
		results[i].details = o.Details
	}
	return results, nil
}

// executeHere runs what only needs the indexes.
func (q *Queue) executeHere(run *running) ([]result, error) {
	if run.Mode == single {
		r, err := q.executeSingle(run, run.tasks[0])
		return []result{r}, err
	}
	if !run.Existed && !run.Create {
		return nil, notFound(run.Index)
	}
	if run.Mode == removal {
		return q.executeRemoval(run)
	}
	if run.WrongKey {
		return nil, q.wrongKey(run)
	}
	if run.Create {
		if _, ok := q.engine.info(run.Index); !ok {
			if err := q.engine.create(run.Index, "", noStep); err != nil {
				return nil, err
			}
		}
		if err := q.at("created"); err != nil {
			return nil, err
		}
	}
	return q.executeOps(run)
}

// wrongKey is the error of an addition that asks for a primary key which its index does not have, or cannot.
func (q *Queue) wrongKey(run *running) error {
	if state, ok := q.engine.info(run.Index); run.PrimaryKey == "" && (!ok || state.primaryKey == "") {
		return apierr.New("missing_document_id", "The parameter `primaryKey` is empty. Name a field, or remove the parameter.")
	}
	return apierr.New("index_primary_key_already_exists",
		"Index `%s` has another primary key than `%s`. Remove the parameter, or delete the documents and update the index.",
		run.Index, run.PrimaryKey)
}

// executeRemoval deletes the index of a batch; what other tasks would have done to it is not done.
func (q *Queue) executeRemoval(run *running) ([]result, error) {
	run.progress.inside(0, index.Step{Name: "deleting the index", Total: 1})
	count := run.Documents
	if run.Existed {
		// After a crash the index may already be deleted.
		_, there := q.engine.info(run.Index)
		n, err := q.engine.delete(run.Index, step(run.uid, 0))
		switch {
		case err == nil && there:
			count = n
		case err != nil && there:
			return nil, err
		}
	}
	results := make([]result, len(run.tasks))
	for i, t := range run.tasks {
		if t.Kind == IndexDeletion {
			results[i].count = count
		}
	}
	return results, nil
}

// executeOps applies document and settings tasks to their index in one commit.
func (q *Queue) executeOps(run *running) ([]result, error) {
	var ops []index.Op
	var of []int // the task of each operation
	results := make([]result, len(run.tasks))
	if q.o.Owned != nil {
		run.owned = q.o.Owned()
	}
	for _, last := range []bool{false, true} { // settings come last
		for i, t := range run.tasks {
			c, ok := t.Content.(operator)
			if !ok || (classOf(t.Content) == settingsClass) != last {
				continue
			}
			op, err := c.operation(q, run, &results[i])
			if err != nil {
				return nil, err
			}
			if op != nil {
				ops, of = append(ops, op), append(of, i)
			}
		}
	}
	applied, err := q.engine.apply(run.ctx, run.Index, step(run.uid, 1), ops, run.progress.inside, &run.requests)
	recovered := errors.Is(err, errApplied)
	if err != nil && !recovered {
		return nil, err
	}
	if !recovered && len(applied) != len(ops) {
		return nil, fmt.Errorf("index `%s` gave %d results for %d operations", run.Index, len(applied), len(ops))
	}
	cleared := false
	for n, op := range ops {
		r := &results[of[n]]
		var o index.OpResult
		if n < len(applied) {
			o = applied[n]
		} else if add, ok := op.(index.AddDocuments); ok {
			// Applied before a crash, and the counts are lost: the payload's is the best there is.
			o.Indexed = add.Documents
		} else if patch, ok := op.(index.PatchDocuments); ok {
			o.Patched = &index.PatchResult{Changed: patch.Operations}
		}
		switch op.(type) {
		case index.AddDocuments:
			r.count = o.Indexed
		case index.PatchDocuments:
			r.patched = o.Patched
		case index.Clear:
			// The first Clear reports the documents that the index had before the batch, including those that earlier deletions of
			// the batch removed.
			if !cleared {
				r.count = run.Documents
			}
			cleared = true
		default:
			r.count = o.Deleted
		}
		if o.Err != nil {
			*r = failed(o.Err)
		}
	}
	return results, nil
}

// operation returns the operation on the index for the task. It is nil if the batch deletes all documents anyway. Then the payload is
// not read.
func (c AddDocuments) operation(q *Queue, run *running, r *result) (index.Op, error) {
	switch payload := q.payloadPath(c.File); {
	case run.Mode == clears, run.Mode == settingsClear:
		// All documents go: the payload is not read, as if it had been indexed and deleted.
		r.count, r.patched = c.Documents, &index.PatchResult{Changed: c.Documents}
		return nil, nil
	case c.Operations:
		missing, _ := document.ParseIfMissing(c.IfMissing)
		return index.PatchDocuments{
			Payload: payload, Sum: c.Sum, Owned: run.owned, Operations: c.Documents, Atomic: c.Atomic, IfMissing: missing, Contains: c.Contains,
		}, nil
	default:
		return index.AddDocuments{
			Payload: payload, Sum: c.Sum, Owned: run.owned, Documents: c.Documents, Merge: c.Merge, SkipCreation: c.SkipCreation, PrimaryKey: run.PrimaryKey,
		}, nil
	}
}

func (c DeleteDocuments) operation(*Queue, *running, *result) (index.Op, error) {
	return index.DeleteDocuments{IDs: c.IDs}, nil
}

func (c DeleteByFilter) operation(*Queue, *running, *result) (index.Op, error) {
	return index.DeleteByFilter{Filter: c.Filter}, nil
}

func (c DeleteExpired) operation(*Queue, *running, *result) (index.Op, error) {
	return index.DeleteExpired{Moment: c.Moment}, nil
}

func (ClearDocuments) operation(_ *Queue, run *running, _ *result) (index.Op, error) {
	if run.uncounted != nil { // the task is to tell how many there were
		return nil, run.uncounted
	}
	return index.Clear{}, nil
}

func (c UpdateSettings) operation(*Queue, *running, *result) (index.Op, error) {
	return index.UpdateSettings{Update: c.Update}, nil
}

// executeSingle runs a task that never shares its batch.
func (q *Queue) executeSingle(run *running, t *Task) (result, error) {
	if c, ok := t.Content.(runner); ok {
		return c.run(q, run, t)
	}
	return result{}, fmt.Errorf("this server cannot run tasks of type %s", t.Kind)
}

func (c CreateIndex) run(q *Queue, run *running, t *Task) (result, error) {
	run.progress.inside(0, index.Step{Name: "creating the index", Total: 1})
	return result{}, q.engine.create(t.IndexUID, c.PrimaryKey, step(run.uid, 0))
}

func (c UpdateIndex) run(q *Queue, run *running, t *Task) (result, error) {
	return result{}, q.updateIndex(run, t.IndexUID, c)
}

// run swaps all pairs in one change of the catalog.
func (c SwapIndexes) run(q *Queue, run *running, _ *Task) (result, error) {
	run.progress.inside(0, index.Step{Name: "swapping the indexes", Finished: 1, Total: 2})
	var pairs []index.Pair
	for _, s := range c.Swaps {
		pairs = append(pairs, index.Pair{A: s.Indexes[0], B: s.Indexes[1], Rename: s.Rename})
	}
	if len(pairs) == 0 {
		return result{}, nil
	}
	return result{}, q.engine.swap(pairs, step(run.uid, 0))
}

// run merges all segments of the index into one, and reports the sizes before and after.
func (CompactIndex) run(q *Queue, run *running, t *Task) (result, error) {
	if _, ok := q.engine.info(t.IndexUID); !ok {
		return result{}, notFound(t.IndexUID)
	}
	before, after, err := q.engine.compact(run.ctx, t.IndexUID, step(run.uid, 0), run.progress.inside)
	return result{outcome: outcome{before: before, after: after}}, err
}

func (c EditDocuments) run(q *Queue, run *running, t *Task) (result, error) {
	return q.edit(run, t.IndexUID, c)
}

// updateIndex checks everything that can fail before it changes anything.
func (q *Queue) updateIndex(run *running, uid string, c UpdateIndex) error {
	run.progress.inside(0, index.Step{Name: "updating the index", Total: 1})
	if !run.Existed {
		return notFound(uid)
	}
	if run.NewExisted && c.NewUID != uid {
		return apierr.New("index_already_exists", "Index `%s` already exists. Choose another uid, or delete it first.", c.NewUID)
	}
	if of := q.engine.behind(c.NewUID); of != "" {
		return index.AliasExists(c.NewUID, of)
	}
	if state, there := q.engine.info(uid); there && c.EmptyKey {
		if state.uncounted != nil {
			return state.uncounted
		}
		if state.documents > 0 {
			return index.PrimaryKeyExists(uid, state.primaryKey)
		}
	}
	// After a crash the index may have its new uid already, and then also its key. Without a key this only renews updatedAt.
	if _, there := q.engine.info(uid); there {
		if err := q.engine.setPrimaryKey(uid, c.PrimaryKey, step(run.uid, 0)); err != nil {
			return err
		}
	}
	if c.NewUID == "" || c.NewUID == uid {
		return nil
	}
	if err := q.at("key set"); err != nil {
		return err
	}
	return q.engine.swap([]index.Pair{{A: uid, B: c.NewUID, Rename: true}}, step(run.uid, 1))
}

// edit runs a function on documents. If the index applied the batch before a crash and the results are lost, the counts are unknown
// and stay 0.
func (q *Queue) edit(run *running, uid string, c EditDocuments) (result, error) {
	if !run.Existed {
		return result{}, notFound(uid)
	}
	var op index.EditDocuments
	var err error
	if op.Function, err = script.Compile(c.Function, c.Context); err != nil {
		return result{}, err
	}
	if c.Filter != nil {
		if op.Filter, err = filter.FromJSON(c.Filter, "invalid_document_filter"); err != nil {
			return result{}, err
		}
	}
	applied, err := q.engine.apply(run.ctx, uid, step(run.uid, 0), []index.Op{op}, run.progress.inside, &run.requests)
	if err != nil && !errors.Is(err, errApplied) {
		return result{}, err
	}
	if len(applied) != 1 {
		return result{}, nil // applied before a crash, and the count is lost
	}
	if applied[0].Err != nil {
		return result{}, applied[0].Err
	}
	return result{outcome: outcome{count: applied[0].Edited, deleted: applied[0].Deleted}}, nil
}
