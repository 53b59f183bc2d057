package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"svc/internal/apierr"
)

// A reader takes over from a running writer without losing a change, in two steps:
//
//  1. The writer pauses: new changes wait until those under way are in the log, and the reader learns the last position. If the
//     second step does not follow within standTime, the writer continues.
//  2. The reader has applied all changes. The writer records, durably, that it is over, and refuses the waiting changes.
//
// Only then does the reader become the writer (Become). If the reader is cut off in between, there is no writer: an operator promotes
// a reader that has the last position.

const (
	standTime = 10 * time.Second // for how long a writer stands still
	quietTime = 5 * time.Second  // for changes that are under way, and for the reader to make the last ones
	overTime  = 2 * time.Second  // until a writer that is over ends: a reader that missed the answer asks again
)

// Steps of pathYield.
const (
	stepStand = "stand"
	stepEnd   = "end"
)

// yieldAnswer is the answer to a step.
type yieldAnswer struct {
	Position string `json:"position"`
}

// stand is a pause of the writer. Writer.mu guards it.
type stand struct {
	by    string        // id of the reader
	over  chan struct{} // closed when changes continue, or are refused
	timer *time.Timer
}

// enter waits until a change may be made. leave ends it.
func (w *Writer) enter() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.stand != nil && !w.id.Fenced {
		over := w.stand.over
		w.mu.Unlock()
		<-over
		w.mu.Lock()
	}
	if w.id.Fenced {
		return w.fenceError()
	}
	w.changing++
	return nil
}

// leave ends a change that enter began, and wakes waiters when it was the last.
func (w *Writer) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changing--
	if w.changing == 0 && w.quiet != nil {
		close(w.quiet)
		w.quiet = nil
	}
}

// fenceError is the error of a change after another member has become the writer.
func (w *Writer) fenceError() error {
	return apierr.New("no_writer", "Another member of the group `%s` has become its writer, in term %d: this one accepts no more writes.", w.id.Name, w.id.Term)
}

// standStill has changes wait, for a reader, and returns the position of the last one.
func (w *Writer) standStill(ctx context.Context, by string) (Position, error) {
	ctx, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.id.Fenced:
		return Position{}, refused(http.StatusConflict, "%w", w.fenceError())
	case w.broken != nil:
		return Position{}, w.noLog()
	case w.stand != nil && w.stand.by != by:
		return Position{}, refused(http.StatusConflict, "another reader is taking over")
	}
	if w.stand == nil {
		s := &stand{by: by, over: make(chan struct{})}
		s.timer = time.AfterFunc(w.o.standTime, func() { w.goOn(s) })
		w.stand = s
	}
	s := w.stand
	s.timer.Reset(w.o.standTime)
	for w.changing > 0 {
		if w.quiet == nil {
			w.quiet = make(chan struct{})
		}
		quiet := w.quiet
		w.mu.Unlock()
		select {
		case <-quiet:
		case <-ctx.Done():
		}
		w.mu.Lock()
		if ctx.Err() != nil && w.changing > 0 {
			w.goOnLocked(s)
			return Position{}, refused(http.StatusServiceUnavailable, "changes under way do not end")
		}
	}
	if w.broken != nil { // by one of these changes, which the reader cannot get
		w.goOnLocked(s)
		return Position{}, w.noLog()
	}
	return w.pos, nil
}

// noLog is the error of a request to a writer whose log lacks changes. mu is held.
func (w *Writer) noLog() error {
	return refused(http.StatusServiceUnavailable, "the writer has no log: %w", w.broken)
}

// goOn ends a stand.
func (w *Writer) goOn(s *stand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.goOnLocked(s)
}

// goOnLocked ends a stand, unless another one has started. mu is held.
func (w *Writer) goOnLocked(s *stand) {
	if w.stand == s {
		s.timer.Stop()
		close(s.over)
		w.stand = nil
	}
}

// end durably ends a writer that is paused at a position. The reader by has all of its changes and becomes the writer, in a later
// term.
func (w *Writer) end(by string, at Position, term uint32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.id.Fenced && w.id.Successor == by && w.id.Term == term: // the first answer did not arrive
		return nil
	case w.id.Fenced:
		return refused(http.StatusConflict, "%w", w.fenceError())
	case w.stand == nil || w.stand.by != by || w.changing > 0 || w.pos != at:
		return refused(http.StatusConflict, "the writer has gone on meanwhile")
	case term <= w.id.Term:
		return refused(http.StatusConflict, "term %d is not after %d", term, w.id.Term)
	}
	id := w.id
	id.Term, id.Fenced, id.Successor = term, true, by
	if err := id.write(w.o.FS, w.o.Dir); err != nil {
		return err
	}
	w.id = id
	w.goOnLocked(w.stand)
	w.o.Logger.Warn("a reader of the group has all changes and becomes the writer: this one stops", "member", by, "term", term)
	return nil
}

// yield answers a reader that takes over.
func (s *serving) yield(rw http.ResponseWriter, r *http.Request, m *member) error {
	var at Position
	var err error
	switch r.FormValue("step") {
	case stepStand:
		at, err = s.w.standStill(r.Context(), m.id)
	case stepEnd:
		var term uint64
		if at, err = ParsePosition(r.FormValue("at")); err == nil {
			term, err = strconv.ParseUint(r.FormValue("term"), 10, 32)
		}
		if err != nil {
			return refused(http.StatusBadRequest, "%w", err)
		}
		if err = s.w.end(m.id, at, uint32(term)); err == nil {
			s.w.tellFencedLater()
		}
	default:
		return refused(http.StatusBadRequest, "there is no such step")
	}
	if err != nil {
		return err
	}
	b, err := json.Marshal(yieldAnswer{at.String()})
	if err != nil {
		return err
	}
	return send(rw, b)
}

// tellFencedLater closes fenced after a time in which the successor may ask again.
func (w *Writer) tellFencedLater() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over == nil && !w.closed {
		w.over = time.AfterFunc(overTime, w.tellFenced)
	}
}

// yield asks the writer to stand still, or to end.
func (c *client) yield(ctx context.Context, q url.Values) (Position, error) {
	b, err := c.read(ctx, http.MethodPost, pathYield, q, maxMessage)
	if away := new(awayError); errors.As(err, &away) && away.status == http.StatusConflict {
		err = &RefusedError{refusedTerm, away.Error()}
	}
	if err != nil {
		return Position{}, err
	}
	var a yieldAnswer
	if err := json.Unmarshal(b, &a); err != nil {
		return Position{}, &awayError{err: fmt.Errorf("cannot read what the writer answers: %w", err)}
	}
	return ParsePosition(a.Position)
}

// TakeOver makes the writer end without losing a change. Meanwhile, Follow applies its last changes. If TakeOver returns nil, the
// caller ends Follow and calls Become. Its error is a *RefusedError, or that of a writer that cannot be reached (Unreachable).
func (r *Reader) TakeOver(ctx context.Context) error {
	if r.Empty() {
		return &RefusedError{refusedData, "this reader has no data of the group yet"}
	}
	if r.client == nil {
		return &RefusedError{refusedRole, "this reader follows a publication, whose writer it cannot ask"}
	}
	if r.FollowsVoters() {
		return &RefusedError{refusedRole, "this reader follows voters, which elect another leader themselves"}
	}
	at, err := r.client.yield(ctx, url.Values{"step": {stepStand}})
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	if own := r.Position(); !own.SameLog(at) || r.Wait(wait, at) != nil {
		return &RefusedError{refusedData, fmt.Sprintf("this reader is at position %v and has not reached %v, where the writer is. Try again when it follows", r.Position(), at)}
	}
	q := url.Values{"step": {stepEnd}, "at": {at.String()}, "term": {strconv.FormatUint(uint64(r.nextTerm()), 10)}}
	for {
		_, err := r.client.yield(ctx, q)
		away := new(awayError)
		if err == nil || !errors.As(err, &away) || away.status != 0 || wait.Err() != nil {
			return err
		}
		if err := sleep(wait, minBackoff); err != nil {
			return away
		}
	}
}

// Unreachable reports whether an error of TakeOver says that the writer did not answer, or cannot now.
func Unreachable(err error) bool { return errors.As(err, new(*awayError)) }

// nextTerm returns the term that begins when this reader becomes the writer.
func (r *Reader) nextTerm() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.id.Term, r.pos.Term) + 1
}

// Become turns the directory into that of the writer, with a new term. Follow must have ended; the stores may be open. former has the
// addresses of the former writer. It is told as soon as it can be reached, and then writes nothing more. The caller closes the reader
// next.
func (r *Reader) Become(former []string) (*Identity, error) {
	at := r.Position()
	if at.Term == 0 {
		return nil, errors.New("it has no data of the group yet")
	}
	if err := r.settled(at); err != nil {
		return nil, err
	}
	term := r.nextTerm()
	id, err := r.becomes(term, former)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{replaceFile, joinDir, positionFile, unsettledFile} {
		if err := r.o.FS.RemoveAll(path.Join(r.o.Dir, name)); err != nil {
			return nil, fmt.Errorf("cannot remove what the reader needs no longer: %w", err)
		}
	}
	r.reach(at) // for callers of Wait
	return id, nil
}

// becomes durably records that this member is the writer. Connections that are made meanwhile do not change this (heard).
func (r *Reader) becomes(term uint32, former []string) (*Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.id
	id.Role, id.Term, id.Run, id.Former, id.Promoted = RoleWriter, max(id.Term+1, term), 0, slices.Clone(former), true
	if err := errors.Join(r.position.close(), id.write(r.o.FS, r.o.Dir)); err != nil {
		return nil, err
	}
	r.id, r.became = id, true
	return &id, nil
}
