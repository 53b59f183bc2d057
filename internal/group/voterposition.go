package group

import (
	"context"
	"fmt"
	"time"

	"svc/internal/consensus"
)

// recall finds the last entry that the directory has: from the position file, or from the log of the group if that is later. ok is
// false if there is no position. recall also restores payloads whose contents the log has.
func (v *Voter) recall() (ok bool, err error) {
	at, ok, err := v.position.read()
	if err != nil || !ok {
		return false, err
	}
	if err := v.position.settle(); err != nil {
		return false, err
	}
	m, err := v.newMender()
	if err != nil {
		return false, fmt.Errorf("cannot list the payloads of tasks: %w", err)
	}
	noted, err := v.logged(m.entry)
	if err != nil {
		return false, fmt.Errorf("cannot read which position the log of the group notes: %w", err)
	}
	if err := v.settlePayloads(); err != nil {
		return false, fmt.Errorf("cannot make the payloads of tasks durable: %w", err)
	}
	written := at.Index
	at.Index = max(at.Index, noted)
	v.begins(at)
	v.position.unsynced = at.Index > written // the log may be cut, and former versions read only the file
	return true, nil
}

// logged returns the position that the log notes; 0: none. Bytes that cannot be read just now are damage to the log store, so damage is
// an error here, too. It calls each with the changes in the log.
func (v *Voter) logged(each func(consensus.Entry) error) (uint64, error) {
	founded, err := consensus.Founded(v.o.FS, v.path(ballotDir))
	if err != nil || !founded || v.id.Group == "" {
		return 0, err
	}
	return consensus.Noted(v.o.FS, v.path(ballotDir), v.id.Member, each)
}

// begins has the directory begin at a position, which is durable.
func (v *Voter) begins(at Position) {
	v.pos, v.kept = at, at.Index
	v.position.last, v.position.unsynced = at, false
	v.made.Store(at.Index)
	v.durable.Store(at.Index)
}

// noted returns up to which entry the directory has the log, durably.
func (v *Voter) noted() uint64 { return v.durable.Load() }

// isDurable notes that the directory is known durably to have the log up to an entry.
func (v *Voter) isDurable(index uint64) {
	for was := v.durable.Load(); was < index && !v.durable.CompareAndSwap(was, index); was = v.durable.Load() {
	}
}

// Position returns up to which entry the directory has the log.
func (v *Voter) Position() Position {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pos
}

// Empty reports whether the directory has no data yet.
func (v *Voter) Empty() bool { return v.Position().Term == 0 }

// reach notes that the directory has the log up to an entry.
func (v *Voter) reach(index uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if index > v.pos.Index {
		v.pos.Index = index
		v.troubled = time.Time{}
		v.made.Store(index)
		close(v.changed)
		v.changed = make(chan struct{})
	}
}

// keep records in position that the directory has the log up to index. The next entry of the log, or settle, makes this durable.
func (v *Voter) keep(index uint64) error {
	at := v.Position()
	at.Index = index
	v.saving.Lock()
	defer v.saving.Unlock()
	if err := v.position.write(at); err != nil {
		return err
	}
	v.kept = index
	return nil
}

// settle makes the position of the directory in the log durable. It runs before each change, so that at most one change is applied
// twice. No sync is needed if an entry has been appended to the log since the last change.
func (v *Voter) settle() error {
	v.saving.Lock()
	defer v.saving.Unlock()
	if v.durable.Load() >= v.kept {
		return nil
	}
	if err := v.position.sync(); err != nil {
		return err
	}
	v.isDurable(v.kept)
	return nil
}

// save makes the position durable in its file, even if the log has it: entries may be cut from the log, or an older version of svc,
// which does not read positions in the log, may take over. The same holds for payloads whose contents the log has.
func (v *Voter) save() error {
	if err := v.settlePayloads(); err != nil {
		return fmt.Errorf("cannot make the payloads of tasks durable: %w", err)
	}
	v.saving.Lock()
	defer v.saving.Unlock()
	if at := v.Position(); at.Index > v.kept { // the log may have noted a change for which keep is still to come
		if err := v.position.write(at); err != nil {
			return err
		}
		v.kept = at.Index
	}
	if err := v.position.sync(); err != nil {
		return err
	}
	v.isDurable(v.kept)
	return nil
}

// Wait waits until the directory has the log up to a position. It returns only errors of ctx.
func (v *Voter) Wait(ctx context.Context, p Position) error {
	for {
		v.mu.Lock()
		at, changed := v.pos, v.changed
		v.mu.Unlock()
		if at.Compare(p) >= 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Staleness returns how long ago the directory had all that the leader had.
func (v *Voter) Staleness() (d time.Duration, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reign != nil {
		return 0, true
	}
	if v.fresh.IsZero() {
		return 0, false
	}
	return time.Since(v.fresh), true
}
