package group

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"svc/internal/apierr"
	"svc/internal/consensus"
)

const (
	// A voter whose stores cannot lead does not lead for minRest, and for twice as long after each further failure.
	minRest = time.Second
	maxRest = time.Minute
	// failTime is how long an elected voter may fail to apply the changes of the log before it hands over the lead.
	failTime = 2 * time.Second
	// yieldPause is the time between two attempts of a voter that rests to hand the lead over.
	yieldPause = time.Second
)

// resignation is a request to hand over the lead.
type resignation struct{ to string } // its id; "": any

// errHandedOver is why a reign ended.
var errHandedOver = errors.New("it has handed the lead over")

// errRests is why a voter that was elected hands the lead over at once.
var errRests = errors.New("its stores could not lead a short time ago")

// Depose ends the reign of this voter, if it leads, because its stores cannot lead. The voter hands over the lead, and does not lead
// for a time that grows with each failure. If it has lost the lead meanwhile, this is why its stores failed, and it may lead again at
// once.
func (v *Voter) Depose(err error) {
	v.mu.Lock()
	r := v.reign
	if r != nil {
		v.tire(time.Now())
	}
	v.mu.Unlock()
	if r == nil {
		return
	}
	r.end(err)
	v.yield(err)
}

// tire has this voter not lead for some time. The lock is held.
func (v *Voter) tire(now time.Time) {
	if now.Sub(v.rested) > maxRest { // it was well since
		v.rest = 0
	}
	v.rest = min(max(2*v.rest, minRest), maxRest)
	v.rested = now.Add(v.rest)
}

// resting reports whether this voter is not to lead, as its stores could not.
func (v *Voter) resting() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Now().Before(v.rested)
}

// yield hands the lead to another voter, if this one was elected and there is another one.
func (v *Voter) yield(because error) {
	if s, _ := v.node.State(); !s.Leads || len(v.node.Members()) < 2 {
		return
	}
	v.o.Logger.Warn("this server hands the lead of the group over", "because", because)
	if err := v.node.Transfer(""); err != nil {
		v.o.Logger.Warn("no other member leads the group yet", "error", err)
	}
}

// Resigning is closed when this voter, which leads, is to hand the lead over: its stores are to be closed while Lead still runs, and Resign
// is to be called then. So the changes by which they end reach the group: batches that run are given up in order.
func (v *Voter) Resigning() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reign == nil {
		return nil
	}
	return v.reign.asked
}

// Resign hands the lead over and ends the reign of this voter. If no other voter can lead, this voter leads again once its stores are
// open.
func (v *Voter) Resign() {
	v.mu.Lock()
	r, to := v.reign, ""
	if r != nil && r.resign != nil {
		to = r.resign.to
	}
	v.mu.Unlock()
	if r == nil {
		return
	}
	if len(v.node.Members()) > 1 {
		if err := v.node.Transfer(to); err != nil {
			v.o.Logger.Warn("no other member leads the group yet", "error", err)
		}
	}
	r.end(errHandedOver)
}

// Drain makes another voter lead, if this one leads and another one can. It waits for that until ctx is done. From then on, Draining
// returns true.
func (v *Voter) Drain(ctx context.Context) {
	v.mu.Lock()
	if !v.draining {
		v.draining = true
		close(v.drains)
	}
	r := v.reign
	v.mu.Unlock()
	if r == nil {
		return
	}
	err := v.Transfer("")
	v.mu.Lock()
	started := r.resign != nil // perhaps before
	v.mu.Unlock()
	if err != nil && !started {
		return
	}
	select {
	case <-r.over:
	case <-ctx.Done():
	}
}

// Draining reports whether Drain was called.
func (v *Voter) Draining() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.draining
}

// Drains returns what Drain closes.
func (v *Voter) Drains() <-chan struct{} { return v.drains }

// find returns the member with an id, a unique prefix of an id, or an address.
func find(all []consensus.Member, text string) (consensus.Member, error) {
	var found []consensus.Member
	for _, m := range all {
		switch {
		case m.ID == text || m.Addr == text:
			return m, nil
		case len(text) >= 4 && strings.HasPrefix(m.ID, text):
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
	case 1:
		return found[0], nil
	default:
		return consensus.Member{}, apierr.New("group_member_not_found", "The ids of %d members of the group begin with `%s`. Send more of the id, or the address.", len(found), text)
	}
	return consensus.Member{}, apierr.New("group_member_not_found", "The group has no member `%s`. `GET /group` lists the ids and the addresses of all members.", text)
}

// Transfer begins to hand the lead over: to the voter with an id or an address, or with "" to the one that has most of the log. It returns
// at once; Status shows when another voter leads.
func (v *Voter) Transfer(to string) error {
	v.mu.Lock()
	r, node, me := v.reign, v.node, v.id.Member
	v.mu.Unlock()
	if r == nil {
		return errFollows
	}
	all := node.Members()
	id := ""
	if to != "" {
		m, err := find(all, to)
		switch {
		case err != nil:
			return err
		case m.ID == me:
			return apierr.New("transfer_refused", "The member `%s` leads the group already.", to)
		case !m.Votes:
			return apierr.New("transfer_refused", "The member `%s` does not vote yet, so it cannot lead the group.", to)
		}
		if _, ago, known := node.Matched(m.ID); !known || ago > caughtTime {
			return apierr.New("transfer_refused", "The member `%s` cannot be reached.", to)
		}
		id = m.ID
	}
	if living, _ := v.living(all, me); living < 2 {
		return apierr.New("transfer_refused", "No other voter of the group can be reached.")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.reign != r:
		return errFollows
	case r.resign != nil:
		return apierr.New("transfer_refused", "The lead of the group is being handed over already.")
	}
	r.resign = &resignation{id}
	close(r.asked)
	return nil
}

// errFollows is the error of a request that only the leader answers.
var errFollows = apierr.New("no_writer", "This server does not lead its group. Send the request again.")

// living counts voters, without `but`, and those that the leader reaches. The leader counts as reached.
func (v *Voter) living(all []consensus.Member, me string, but ...string) (living, voters int) {
	for _, m := range all {
		if !m.Votes || len(but) > 0 && m.ID == but[0] {
			continue
		}
		voters++
		if _, ago, known := v.node.Matched(m.ID); m.ID == me || known && ago <= caughtTime {
			living++
		}
	}
	return living, voters
}

// Remove removes the member with an id or an address from the group. Only the leader can.
func (v *Voter) Remove(text string) error {
	v.mu.Lock()
	r, node, me := v.reign, v.node, v.id.Member
	v.mu.Unlock()
	if r == nil {
		return errFollows
	}
	all := node.Members()
	m, err := find(all, text)
	if err != nil {
		return err
	}
	if m.ID == me {
		return apierr.New("removal_refused", "The member `%s` leads the group. Send `POST /group/transfer` first.", text)
	}
	if living, voters := v.living(all, me, m.ID); m.Votes && living < voters/2+1 {
		return apierr.New("removal_refused", "Without the member `%s`, the group has %d voters, of which %d can be reached: it could take no writes.", text, voters, living)
	}
	if err := node.Remove(m.ID); err != nil {
		return apierr.New("removal_refused", "The member `%s` cannot be removed now: %v.", text, err)
	}
	v.unship(m.ID)
	v.o.Logger.Info("a member of the group was removed", "address", m.Addr, "member", m.ID)
	return nil
}

// Latest returns a position that includes all changes acknowledged before the call, so a reader that waits for it sees nothing older.
// The leader makes sure that it still leads. Calls that wait at the same time share one question to the leader.
func (v *Voter) Latest(ctx context.Context) (Position, error) {
	return v.rounds.join(ctx, v.askLatest)
}

// askLatest returns a position whose data include everything that was acknowledged before the call. The leader knows it, and other
// members ask the leader.
func (v *Voter) askLatest(ctx context.Context) (Position, error) {
	node := v.current()
	if node == nil {
		return Position{}, errNoLeader
	}
	at := v.Position()
	if v.leads() {
		index, err := node.ReadIndex(ctx)
		if err != nil {
			return at, errNoLeader
		}
		at.Index = index
		return at, nil
	}
	_, addr := node.Leader()
	if addr == "" || addr == v.o.Addr {
		return at, errNoLeader
	}
	err := v.send(ctx, http.MethodGet, addr, pathLatest, nil, nil, 0, func(r io.Reader) error {
		return json.NewDecoder(io.LimitReader(r, maxMessage)).Decode(&at.Index)
	})
	if err != nil {
		return at, errNoLeader
	}
	return at, nil
}

var errNoLeader = apierr.New("writer_unreachable", "The group has no leader that a majority follows, so nobody knows the latest position. Send the request again.")

// latest answers another voter that asks for Latest.
func (v *Voter) latest(rw http.ResponseWriter, r *http.Request) error {
	if !v.leads() {
		return refused(http.StatusServiceUnavailable, "this member does not lead the group")
	}
	at, err := v.Latest(r.Context())
	if err != nil {
		return refused(http.StatusServiceUnavailable, "%v", err)
	}
	return json.NewEncoder(rw).Encode(at.Index)
}
