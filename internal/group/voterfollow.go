package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"svc/internal/commit"
	"svc/internal/consensus"
	"svc/internal/logstore"
)

// Follow applies the changes of the log to the directory with an applier, until ctx is done: then it returns nil. Without an applier
// it only waits for data. It returns ErrReplace if the caller must close the stores and call Replace. It returns ErrLead if this
// voter was elected: then the caller opens the stores to lead, and calls Lead.
func (v *Voter) Follow(ctx context.Context, a Applier) error {
	wait, well := minBackoff, time.Now()
	var yielded time.Time
	for {
		s, changed := v.node.State()
		err := v.follow(ctx, a, &s)
		switch {
		case errors.Is(err, ErrLead) || errors.Is(err, ErrReplace):
			return err
		case ctx.Err() != nil:
			return nil
		case err != nil:
			v.failed(err)
			if s.Leads && time.Since(well) > failTime {
				v.yield(err)
			}
			select {
			case err := <-v.lapsed:
				return err
			case <-time.After(wait):
			case <-ctx.Done():
				return nil
			}
			wait = min(2*wait, maxBackoff)
			continue
		}
		v.failed(nil)
		wait, well = minBackoff, time.Now()
		if s.Leads && v.resting() && time.Since(yielded) >= yieldPause {
			v.yield(errRests)
			yielded = time.Now()
		}
		select {
		case err := <-v.lapsed:
			return err
		case x := <-v.replaces:
			v.mu.Lock()
			v.exchange = x
			v.mu.Unlock()
			return ErrReplace
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-time.After(pollTime): // for Renew
		}
	}
}

// follow applies the changes that are committed now. It returns ErrReplace once a copy is staged, and ErrLead if this voter leads and
// has everything.
func (v *Voter) follow(ctx context.Context, a Applier, s *consensus.State) error {
	if a == nil {
		return nil
	}
	v.mu.Lock()
	damaged := v.damaged
	v.damaged = false
	v.mu.Unlock()
	if damaged && !s.Leads {
		v.o.Logger.Info("files that are damaged are copied from the leader")
		if err := v.copy(ctx, v.Position().Index); err != nil {
			return err
		}
		return ErrReplace
	}
	if err := v.changes(ctx, a, s.Committed); err != nil {
		return err
	}
	pending := v.node.Pending() // read before what is committed
	now, _ := v.node.State()
	heard, at := v.node.Heard(), v.Position().Index // of a leader whose entries are on their way, perhaps
	if ago, known := v.node.Contact(); known && heard > 0 && at+caughtLag >= heard && at >= s.Committed {
		v.mu.Lock()
		v.fresh = time.Now().Add(-ago)
		v.mu.Unlock()
	}
	// After a reign in the same term, its last changes may still be in the log, and not committed.
	if now.Leads && !v.resting() && !pending && v.Position().Index >= now.Committed {
		v.crown(now.Term)
		return ErrLead
	}
	return nil
}

// changes makes the changes up to an entry.
func (v *Voter) changes(ctx context.Context, a Applier, to uint64) error {
	for ctx.Err() == nil {
		from := v.Position().Index + 1
		if from > to {
			return nil
		}
		var err error
		e := v.node.Entries(from, to, func(e consensus.Entry) bool {
			if e.Data != nil {
				err = v.make(a, &e)
			}
			if err == nil {
				v.reach(e.Index)
			}
			return err == nil && ctx.Err() == nil
		})
		if errors.Is(e, logstore.ErrNotStored) { // it is behind all of the log
			if err := v.copy(ctx, to); err != nil {
				return err
			}
			return ErrReplace
		}
		if err := errors.Join(e, err); err != nil {
			return err
		}
	}
	return nil
}

// make makes a change.
func (v *Voter) make(a Applier, e *consensus.Entry) error {
	p, err := decodeProposal(e.Data, v.o.level)
	if err != nil {
		return err
	}
	c := p.entry.Change
	if p.data != nil {
		if c.Data, err = v.dataOf(p.data); err != nil {
			return err
		}
	}
	v.turn.Lock()
	defer v.turn.Unlock()
	if err := v.settle(); err != nil {
		return err
	}
	if v.unsynced.many() {
		if err := v.settlePayloads(); err != nil {
			return err
		}
	}
	contents := p.payloads()
	if err := a.Apply(commit.Change{Kind: c.Kind, Name: c.Name, Data: c.Data, Files: c.Files, Contents: contents}, v.source(p)); err != nil {
		return err
	}
	for i, content := range contents { // after they exist, and before the position passes the entry
		if content != nil {
			v.unsynced.add(&p.entry.Files[i])
		}
	}
	return v.keep(e.Index)
}

// dataOf reads the data of a change that are a file.
func (v *Voter) dataOf(f *File) ([]byte, error) {
	in, err := v.spool.open(fileKey(f.Size, f.Sum))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err == nil && fileOf("", b).Sum != f.Sum {
		err = errSum
	}
	return b, err
}

// failed notes why the directory does not follow now.
func (v *Voter) failed(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil && (v.problem == nil || v.problem.Error() != err.Error()) {
		v.o.Logger.Warn("the log of the group cannot be followed: this is tried again", "error", err)
	}
	switch {
	case err == nil:
		v.troubled = time.Time{}
	case v.troubled.IsZero():
		v.troubled = time.Now()
	}
	v.problem = err
}

// Renew has Follow try once to copy files from the leader, as some of this directory are damaged.
func (v *Voter) Renew() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.damaged = true
}

// restore makes the directory equal to that of another voter, at an entry or a later one. The node waits for it.
func (v *Voter) restore(index uint64) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-v.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		err := v.copy(ctx, index)
		if err == nil {
			v.failed(nil)
			break
		}
		v.failed(err)
		if e := sleep(ctx, wait); e != nil {
			return errors.Join(e, err)
		}
	}
	x := &exchange{make(chan error, 1)}
	select {
	case v.replaces <- x:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-x.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// copy stages a copy of another voter's directory, which has the log at least up to an entry. Any voter may have it, and the leader
// is asked first.
func (v *Voter) copy(ctx context.Context, index uint64) error {
	v.copying.Lock()
	defer v.copying.Unlock()
	var failed error
	for _, addr := range v.others() {
		v.mu.Lock()
		v.reader.client, v.reader.id = v.dialer(addr), v.id
		v.reader.source = v.reader.client
		v.mu.Unlock()
		at, err := v.reader.copyAt(ctx)
		v.reader.client.close()
		if err == nil && at.Index >= index {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it has entries up to %d, and %d are needed", at.Index, index)
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", addr, err))
	}
	if failed == nil {
		failed = errors.New("no other voter is known")
	}
	return fmt.Errorf("cannot copy the data of another voter: %w", failed)
}

// copyAt stages a copy of the directory of the member that the client asks, and returns its position.
func (r *Reader) copyAt(ctx context.Context) (Position, error) {
	if err := r.stage(ctx, Position{}); err != nil {
		return Position{}, err
	}
	x, err := r.staged()
	if err != nil {
		return Position{}, err
	}
	return ParsePosition(x.Position)
}

// Replace puts a copy that was staged in the place of the directory's content. No store of the directory is open.
func (v *Voter) Replace() error {
	v.copying.Lock()
	defer v.copying.Unlock()
	v.mu.Lock()
	x, lapsed := v.exchange, v.id.Lapsed
	v.exchange = nil
	v.mu.Unlock()
	v.reader.mu.Lock()
	v.reader.id.Lapsed = lapsed // the leader may have said so since the copy started
	v.reader.mu.Unlock()
	v.saving.Lock()
	defer v.saving.Unlock()
	err := errors.Join(v.position.sync(), v.position.close()) // before the reader writes the file
	if err == nil {
		err = v.reader.Replace()
	}
	if err == nil {
		v.mu.Lock()
		v.begins(v.reader.pos)
		late := v.id.Lapsed && !lapsed // it has said so meanwhile
		v.id = v.reader.id
		v.id.Lapsed = lapsed || late
		me := v.id
		close(v.changed)
		v.changed = make(chan struct{})
		v.mu.Unlock()
		err = v.reader.position.close()
		if late {
			err = errors.Join(err, me.write(v.o.FS, v.o.Dir))
		}
	}
	if x != nil {
		x.done <- err
	}
	return err
}

// fileOf returns a file of some content.
func fileOf(name string, content []byte) File {
	return File{name, int64(len(content)), hash128(content)}
}
