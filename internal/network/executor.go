package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/pace"
	"svc/internal/task"
)

// Executor runs the tasks that change the network.
func (n *Node) Executor(ctx context.Context, q *task.Queue, tasks []*task.Task, p index.Progress) ([]task.Outcome, error) {
	t := tasks[0]
	content, ok := t.Content.(task.ChangeTopology)
	if !ok {
		return nil, fmt.Errorf("task %d is not a change of the network", t.UID)
	}
	a, err := decodeAnnounced(content.State)
	if err != nil {
		return nil, err
	}
	n.queue.CompareAndSwap(nil, q)
	if err := n.install(t.UID, a); err != nil {
		return nil, err
	}
	ctx = pace.Beside(ctx, n.o.Catalog.Searches())
	r := &changing{n: n, ctx: ctx, uid: t.UID, network: n.snapshot().Network, previous: a.Previous, rebuilt: a.Rebuilt, absent: a.Absent, ages: a.Ages, version: a.Network.Version, progress: p}
	if o := n.snapshot().ended(r.version); o != nil {
		if !o.Committed {
			return nil, canceledChange()
		}
		return []task.Outcome{{Details: r.details("Finished")}}, nil
	}
	if err := r.run(); err != nil {
		return nil, err
	}
	return []task.Outcome{{Details: r.details(r.message)}}, nil
}

func canceledChange() error {
	return apierr.New("remote_remote_error", "The change of the network was canceled at one of its instances. The previous network is in force again; moved documents stay where they are. Send the change again.")
}

// changing is a change at work.
type changing struct {
	n        *Node
	ctx      context.Context
	uid      uint32
	version  uuid.UUID
	network  *Network // that is to be
	previous *Network
	rebuilt  []string
	absent   []string // of rebuilt
	ages     map[string]int
	progress index.Progress
	deleted  int    // documents that others own
	message  string // of the finished task
}

var changeSteps = []string{"computing the owners of documents", "moving documents", "waiting for the other instances", "switching searches", "deleting documents of others"}

// step shows the progress of a change and what is known of it in its task. A failure is only logged, because the next step shows it
// again.
func (r *changing) step(i int, message string) {
	r.progress(0, index.Step{Name: changeSteps[i], Finished: i, Total: len(changeSteps)})
	err := r.n.queue.Load().Amend(r.uid, task.ChangeTopology{State: encode(announced{r.network, r.previous, r.rebuilt, r.absent, r.ages}), MovedDocuments: r.deleted, Message: message})
	if err != nil && r.ctx.Err() == nil {
		r.n.o.Logger.Warn("cannot show the progress of a change of the network", "error", err)
	}
}

func (r *changing) details(message string) []byte {
	return encode(struct {
		Moved   int    `json:"movedDocuments"`
		Message string `json:"message"`
	}{r.deleted, message})
}

// change returns the state that is stored, nil when the change was given up.
func (r *changing) change() *change {
	s := r.n.snapshot()
	if s.Change == nil || s.Network.Version != r.version {
		return nil
	}
	return s.Change
}

// enter stores that a phase begins.
func (r *changing) enter(p phase) error {
	return r.n.update(func(s *stored) {
		if s.Change != nil && s.Network.Version == r.version {
			s.Change.Phase = max(s.Change.Phase, p)
		}
	})
}

// run runs the phases of the change. Its error is the context's if the task is canceled or the queue closes.
func (r *changing) run() error {
	r.step(0, "Computing the owners of documents")
	c := r.change()
	if c == nil {
		return canceledChange()
	}
	if c.Phase < moved {
		if err := r.move(); err != nil {
			return r.giveUp(err)
		}
	}
	if r.change() == nil {
		return canceledChange()
	}
	if c := r.change(); c.Phase < switched {
		r.step(2, "Waiting until all instances have their documents")
		if err := r.decide(); err != nil {
			return err
		}
		r.step(3, "Switching searches to the new shards")
		if err := r.enter(switched); err != nil {
			return err
		}
	}
	err := r.await(func(p phase) bool { return p >= switched }, false)
	forgotten := errors.Is(err, errForgotten) // it is unknown whether others have what would be deleted here
	if forgotten {
		err = nil
	} else if err == nil {
		r.step(4, "Deleting documents that other instances own")
		err = r.deleteOthers(r.network.keeps(r.network.SelfName()))
	}
	if err != nil && !task.IsCanceled(r.ctx) {
		return err // continues at the next start
	}
	r.n.exports.drop()
	e := r.n.update(func(s *stored) {
		if s.Change != nil && s.Network.Version == r.version {
			s.Restored = s.Restored && !s.rebuilds(r.network.SelfName()) && r.ages == nil
			s.Lost = slices.DeleteFunc(slices.Clone(s.Lost), func(name string) bool { return s.rebuilds(name) || r.network.Remotes[name] == nil })
			s.Change = nil
			s.record(r.version, true)
		}
	})
	if e != nil {
		return e
	}
	if err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.Cause(r.ctx)) {
			return err
		}
		r.message = cmp.Or(r.message, "Finished") + ". It was in force before it was canceled. Documents of other instances stay here, hidden, until the next change"
	}
	if r.network.Leads() {
		// A client that waits for this task may change the network again at once.
		_ = r.await(func(p phase) bool { return p == finished }, true)
		for name := range r.previous.Remotes {
			if r.network.Remotes[name] == nil {
				why := apierr.New("remote_could_not_send_request", "The remote `%s` left the network before it received this.", name)
				// Later requests are for a remote with this name that has been added meanwhile.
				if err := r.n.queue.Load().Abandon(name, r.uid, why); err != nil {
					return err
				}
			}
		}
	}
	if r.message == "" {
		r.message = "Finished"
	}
	return nil
}

// move fetches the documents that this instance will own.
func (r *changing) move() error {
	if err := r.enter(moving); err != nil {
		return err
	}
	r.step(1, "Moving documents")
	if err := r.clear(); err != nil {
		return err
	}
	if err := r.fetch(); err != nil {
		return err
	}
	return r.enter(moved)
}

// clear deletes the documents that this instance did not own before. A cancelled change left them here, and later deletions and
// updates of them were not sent to this instance.
func (r *changing) clear() error {
	c := r.change()
	self := r.network.SelfName()
	if c == nil || c.Cleared {
		return nil
	}
	if slices.Contains(r.rebuilt, self) {
		catalog := r.n.o.Catalog
		for _, uid := range catalog.UIDs() {
			if _, err := catalog.Delete(uid, catalog.LastBatch()); err != nil {
				return err
			}
		}
	} else if !r.previous.Led() || r.previous.Remotes[self] == nil {
		return nil
	} else if err := r.deleteOthers(r.trusted().keeps(self)); err != nil {
		return err
	}
	r.deleted = 0
	return r.n.update(func(s *stored) {
		if s.Change != nil && s.Network.Version == r.version {
			s.Change.Cleared = true
		}
	})
}

// giveUp ends a change for which this instance has not finished moving, so the leader cannot have committed it. Without a
// cancellation the change continues at the next start.
func (r *changing) giveUp(err error) error {
	if !task.IsCanceled(r.ctx) && r.ctx.Err() != nil {
		return err
	}
	r.n.giveUp(r.version)
	return err
}

// decide returns nil once the change is committed. On the leader it is what commits.
func (r *changing) decide() error {
	if r.network.Leads() {
		return r.lead()
	}
	for pause := firstPoll; ; pause = min(pause*3/2, lastPoll) {
		if task.IsCanceled(r.ctx) {
			// The leader may have committed already: it decides.
			if err := r.n.update(func(s *stored) {
				if s.Change != nil && s.Network.Version == r.version {
					s.Change.Cancel = true
				}
			}); err != nil {
				return err
			}
		} else if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		if r.change() == nil {
			return canceledChange()
		}
		st, err := r.n.changeAt(r.n.ctx, *r.network.Leader, r.network.Remotes[*r.network.Leader], r.version)
		switch {
		case err != nil:
		case st.Committed:
			return nil
		case st.Canceled:
			r.n.giveUp(r.version)
			if r.ctx.Err() != nil {
				return context.Cause(r.ctx)
			}
			return canceledChange()
		}
		select {
		case <-time.After(pause):
		case <-r.n.ctx.Done():
			<-r.ctx.Done() // the queue closes, too
			return context.Cause(r.ctx)
		}
	}
}

// lead waits until all have moved, and commits.
func (r *changing) lead() error {
	if c := r.change(); c != nil && c.Commit {
		return nil
	}
	err := r.await(func(p phase) bool { return p >= moved }, false)
	if err != nil {
		return r.giveUp(err)
	}
	committed := false
	err = r.n.update(func(s *stored) {
		if c := s.Change; c != nil && s.Network.Version == r.version {
			c.Commit, committed = true, true
		}
	})
	if err == nil && !committed {
		err = canceledChange()
	}
	return err
}

// errForgotten says that a change which is committed here was given up by an instance that was set back to a snapshot.
var errForgotten = errors.New("an instance does not know that the change of the network was committed")

func (r *changing) state() ChangeState { return r.n.state(r.version) }

const (
	firstPoll  = 5 * time.Millisecond
	lastPoll   = time.Second
	farewell   = 30 * time.Second // for how long a remote that leaves may keep a change waiting
	lateFinish = 10 * time.Second // for how long the leader waits for others to delete
)

// others returns the other instances that take part.
func (r *changing) others() []string {
	return slices.DeleteFunc(r.network.Others(), func(name string) bool { return slices.Contains(r.absent, name) })
}

// await waits until all other participants have reached a phase. late says that nothing depends on it.
func (r *changing) await(reached func(phase) bool, late bool) error {
	began := time.Now()
	left := r.others()
	for pause := firstPoll; len(left) > 0; pause = min(pause*3/2, lastPoll) {
		canceled, setBack := false, false
		left = slices.DeleteFunc(left, func(name string) bool {
			st, err := r.n.changeAt(r.ctx, name, r.network.Remotes[name], r.version)
			canceled = canceled || err == nil && st.Canceled
			setBack = setBack || err == nil && st.SetBack
			return err == nil && (reached(st.Phase) || st.Committed && st.Phase == finished || late && st.SetBack)
		})
		switch committed := r.state().Committed; {
		case (canceled || setBack) && !late && committed:
			return errForgotten
		case canceled && !late, !late && r.change() == nil:
			return canceledChange()
		case len(left) == 0:
			return nil
		case late && time.Since(began) > lateFinish:
			return nil
		}
		r.progress(1, index.Step{Name: "instances", Finished: len(r.others()) - len(left), Total: len(r.others())})
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
	return nil
}

// deleteOthers deletes the documents that are not kept.
func (r *changing) deleteOthers(keep func(id []byte) bool) error {
	for _, uid := range r.n.o.Catalog.UIDs() {
		ix := r.n.o.Catalog.Get(uid)
		if ix == nil {
			continue
		}
		ids, err := strangers(r.ctx, ix, keep)
		for err == nil && len(ids) > 0 {
			some := ids[:min(len(ids), deletedAtOnce)]
			ids = ids[len(some):]
			_, err = ix.ApplyBeside(r.ctx, []index.Op{index.DeleteDocuments{IDs: some}}, nil)
			r.deleted += len(some)
		}
		if err != nil {
			return fmt.Errorf("cannot delete documents of other instances from index %s: %w", uid, err)
		}
	}
	return nil
}

const deletedAtOnce = 100_000

// strangers returns the ids of the documents that this instance does not keep.
func strangers(ctx context.Context, ix *index.Index, keep func([]byte) bool) ([]string, error) {
	v, err := ix.PlainView()
	if err != nil {
		return nil, err
	}
	defer v.Release()
	var ids []string
	worker := pace.Of(ctx)
	v.DocIDs(func(id []byte) bool {
		worker.Yield()
		if !keep(id) {
			ids = append(ids, string(id))
		}
		return false
	})
	return ids, ctx.Err()
}

// Ended is called with the tasks of finished batches. A change ends with its task, even if the task was cancelled while it waited, or
// failed because of something that the instance lacks.
func (n *Node) Ended(tasks []*task.Task) {
	for _, t := range tasks {
		if t.Kind != task.NetworkTopologyChange || t.Status != task.Canceled && t.Status != task.Failed {
			continue
		}
		if c := n.snapshot().Change; c != nil && c.Task == t.UID {
			n.endChange()
		}
	}
}
