package group

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"svc/internal/consensus"
	"svc/internal/logstore"
)

// A reader of voters asks the leader, so its data are never older than they seem. When the leader changes, the reader asks the new
// one: all voters have the same entries at the same positions. Any voter can provide files.

// readerPaths are the requests that a reader makes of a voter.
var readerPaths = []string{pathLog, pathState, pathFile, pathSum}

// reading is what a voter knows of a reader.
type reading struct {
	hello
	addr  string
	after Position
	seen  time.Time
	state bool // an image was made for it
}

// see records that a reader is present, and returns whether an image was made for it.
func (v *Voter) see(g *guest, change func(*reading)) (had bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x := v.readers[g.hello.Member]
	if x == nil {
		for id, other := range v.readers {
			if len(v.readers) >= maxMembers || time.Since(other.seen) > readerTime {
				delete(v.readers, id)
			}
		}
		x = new(reading)
		v.readers[g.hello.Member] = x
	}
	had = x.state
	x.hello, x.addr, x.seen = *g.hello, g.RemoteAddr().String(), time.Now()
	change(x)
	return had
}

// fetches records that a member requests an image, or a file of an image that was made for it.
func (v *Voter) fetches(id string, image bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, made := v.states[id]; made || image {
		v.states[id] = time.Now()
	}
}

// sweepStates removes the files of images that members have not asked for within statesPause: these members are gone, or copy from
// another voter.
func (v *Voter) sweepStates(now time.Time) {
	v.mu.Lock()
	var old []string
	for id, at := range v.states {
		if now.Sub(at) >= statesPause {
			old = append(old, id)
			delete(v.states, id)
		}
	}
	v.mu.Unlock()
	for _, id := range old {
		v.removeState(id)
	}
}

// removeState removes the files of the image that was made for a member.
func (v *Voter) removeState(id string) {
	if err := v.o.FS.RemoveAll(v.path(stateDir(id))); err != nil {
		v.o.Logger.Warn("cannot remove copies for a member; the next start removes them", "error", err)
	}
}

// readerTime is how long a voter knows a reader that is away.
const readerTime = time.Hour

// log answers a reader with entries after a position. This voter, the leader, has applied them.
func (v *Voter) log(rw http.ResponseWriter, r *http.Request) error {
	after, err := ParsePosition(r.FormValue("after"))
	if err != nil {
		return refused(http.StatusBadRequest, "%w", err)
	}
	g, _ := r.Context().Value(guestKey{}).(*guest)
	if had := v.see(g, func(x *reading) { x.after, x.state = after, false }); had {
		v.removeState(g.hello.Member)
	}
	wait, _ := strconv.Atoi(r.FormValue("wait"))
	end := time.NewTimer(min(time.Duration(max(wait, 0))*time.Millisecond, maxWait))
	defer end.Stop()
	for waited := false; ; {
		t, changed, err := v.entries(after)
		if errors.Is(err, ErrCut) {
			return &statusError{http.StatusGone, err}
		}
		if err != nil {
			return err
		}
		if waited || len(t.Entries) > 0 {
			b := t.Encode()
			rw.Header().Set("Content-Length", strconv.Itoa(len(b)))
			return send(rw, b)
		}
		select {
		case <-changed:
		case <-end.C:
			waited = true
		case <-r.Context().Done():
			return nil
		case <-v.done:
			return refused(http.StatusServiceUnavailable, "this member stops")
		}
	}
}

// entries returns the entries after a position, up to batchBytes or a single entry, and a channel that is closed when there may be
// more.
func (v *Voter) entries(after Position) (*Batch, <-chan struct{}, error) {
	v.mu.Lock()
	pos, changed, leads, node := v.pos, v.changed, v.reign != nil, v.node
	v.mu.Unlock()
	switch {
	case !leads || node == nil:
		return nil, nil, refused(http.StatusServiceUnavailable, "this member does not lead the group")
	case !after.SameLog(pos):
		return nil, nil, fmt.Errorf("%w: position %v, and it is at %v", ErrCut, after, pos)
	}
	if after.Index > pos.Index {
		return nil, nil, refused(http.StatusConflict, "this member is at position %v, before %v", pos, after)
	}
	t := &Batch{Run: Position{pos.Term, pos.Run, after.Index + 1}, End: pos.Index, Now: time.Now().UnixNano()}
	if after.Index == pos.Index {
		return t, changed, nil
	}
	size := 0
	err := node.Entries(after.Index+1, pos.Index, func(e consensus.Entry) bool {
		size += len(e.Data) + 1
		if len(t.Entries) > 0 && size > batchBytes {
			return false
		}
		t.Entries = append(t.Entries, e.Data)
		return true
	})
	if errors.Is(err, logstore.ErrNotStored) {
		return nil, nil, fmt.Errorf("%w: it no longer has the entries after position %v", ErrCut, after)
	}
	return t, changed, err
}

// readings returns the states of the readers that this voter, the leader, knows. mu is held.
func (v *Voter) readings() (list []MemberStatus) {
	for _, x := range v.readers {
		m := MemberStatus{Member: x.Member, Role: RoleReader, Address: x.addr, Version: x.Version, State: StateFollows, Position: x.after.String(), Seen: x.seen.UTC()}
		switch {
		case time.Since(x.seen) > readerAway:
			m.State = StateAway
		case x.state:
			m.State = StateCopies
		}
		if x.after.SameLog(v.pos) {
			lag := max(v.pos.Index, x.after.Index) - x.after.Index
			m.Lag = &lag
		}
		list = append(list, m)
	}
	return list
}

// readerAway is how long a reader may send no request before it counts as away.
const readerAway = 5 * time.Second
