package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"svc/internal/consensus"
)

// reign is a time in which a voter leads.
type reign struct {
	term  uint64
	since time.Time
	over  chan struct{}
	end   func(error)
	err   error // why it ended
	// asked is closed when it is to end in order: see Transfer.
	asked  chan struct{}
	resign *resignation // nil: not requested; under the voter's mu
}

// Lead applies changes of this voter in the order of the log, until it no longer leads or ctx is done. Then the caller must close the
// stores of the directory.
func (v *Voter) Lead(ctx context.Context) error {
	v.mu.Lock()
	r := v.reign
	v.mu.Unlock()
	if r == nil { // a change failed before this goroutine ran
		return nil
	}
	defer r.end(ctx.Err())
	v.o.Logger.Info("this server leads the group", "term", r.term)
	for {
		s, changed := v.node.State()
		if !s.Leads || s.Term != r.term {
			r.end(errors.New("another member was elected, or a majority cannot be reached"))
		}
		select {
		case <-r.over:
			v.o.Logger.Warn("this server leads the group no longer", "term", r.term, "because", r.err)
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
		if err := v.turns(r, s.Committed); err != nil {
			r.end(err)
			continue
		}
		select {
		case <-changed:
		case <-r.over:
		case <-ctx.Done():
		}
	}
}

// turns has the changes up to an entry made.
func (v *Voter) turns(r *reign, to uint64) error {
	from := v.Position().Index + 1
	if from > to {
		return nil
	}
	var err error
	e := v.node.Entries(from, to, func(e consensus.Entry) bool {
		if e.Data == nil {
			v.reach(e.Index)
			return true
		}
		err = v.takeTurn(r, &e)
		return err == nil
	})
	return errors.Join(e, err)
}

// takeTurn lets the proposer of an entry make its change, with turn held, and waits for it. It fails if no proposer waits for the
// entry: another leader may have proposed it, and this one must follow instead.
func (v *Voter) takeTurn(r *reign, e *consensus.Entry) error {
	var nonce [16]byte
	if len(e.Data) > 17 {
		copy(nonce[:], e.Data[1:])
	}
	v.mu.Lock()
	p := v.pending[nonce]
	v.mu.Unlock()
	if p == nil {
		return fmt.Errorf("nobody waits for entry %d", e.Index)
	}
	v.turn.Lock()
	defer v.turn.Unlock()
	defer v.node.Begin()() // not before: an image that is taken may take longer than a write
	if err := v.settle(); err != nil {
		return err
	}
	select {
	case p.turn <- struct{}{}:
	case <-p.gone:
		return fmt.Errorf("nobody waits for entry %d any more", e.Index)
	case <-r.over:
		return r.err
	}
	if <-p.done != nil {
		return r.err // Do has ended the reign
	}
	if err := v.keep(e.Index); err != nil {
		return err
	}
	if v.node.Last() > e.Index {
		v.settleAhead()
	}
	return nil
}

// settleAhead starts early what settle does before the next change. An entry that was appended before the last change was applied
// does not record it, so settle has to sync. The group may not have accepted that entry yet, so the sync runs meanwhile.
func (v *Voter) settleAhead() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed { // Close waits for what runs
		return
	}
	v.running.Go(func() { _ = v.settle() }) // before the next change it is called again, and reports an error
}

// crown begins the reign of this voter.
func (v *Voter) crown(term uint64) {
	r := &reign{term: term, since: time.Now(), over: make(chan struct{}), asked: make(chan struct{})}
	var once sync.Once
	r.end = func(err error) {
		once.Do(func() {
			r.err = err
			v.mu.Lock()
			v.reign = nil
			v.mu.Unlock()
			close(r.over)
		})
	}
	v.mu.Lock()
	v.reign = r
	v.unsynced.crowned()
	v.reigns++
	clear(v.named)
	v.mu.Unlock()
}
