package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"svc/internal/consensus"
)

const (
	meetTime    = 200 * time.Millisecond // between two rounds of looking for the others
	meetTimeout = 3 * time.Second
	tendTime    = 200 * time.Millisecond // between two looks of a leader at the members
	// caughtTime is how long a new member has nearly all of the log before it votes.
	caughtTime = time.Second
	caughtLag  = 64 // entries
	// maxSkew is the maximum difference between the clocks of a member and of one that joins, because keys expire by the clock of the
	// member that receives a request.
	maxSkew = time.Minute
)

// met is what another member says of itself.
type met struct {
	addr string
	*hello
}

// meet turns the directory into that of a voter: of the group that other servers are in, or of a new one.
func (v *Voter) meet(ctx context.Context) error {
	said := ""
	for {
		err := v.meetOnce(ctx)
		if err == nil {
			return nil
		}
		if refused := new(RefusedError); errors.As(err, &refused) && refused.Code != refusedRole {
			return err
		}
		if text := err.Error(); text != said && ctx.Err() == nil {
			v.o.Logger.Info("this server waits for its group", "because", text)
			said = text
		}
		if err := sleep(ctx, meetTime); err != nil {
			return err
		}
	}
}

// meetOnce asks all addresses once. If one of them is in a group, it asks to be added. If all answer and none is in a group, all
// choose the same founder: the member with data, else the one with the lowest id. Until the founder has created the group, the error
// names the founder.
func (v *Voter) meetOnce(ctx context.Context) error {
	v.mu.Lock()
	me, data := v.id, v.data
	v.mu.Unlock()
	var all []met
	var away error
	for _, addr := range v.o.Join {
		before := v.o.now()
		h, err := v.ask(ctx, addr)
		if refused := new(RefusedError); errors.As(err, &refused) {
			return err
		}
		if err != nil {
			away = errors.Join(away, fmt.Errorf("%s: %w", addr, err))
			continue
		}
		if err := checkClock(addr, h, before, v.o.now()); err != nil {
			if h.Group != "" {
				return err
			}
			away = errors.Join(away, errors.New(err.Error())) // a group that is being founded waits until that clock is set
			continue
		}
		all = append(all, met{addr, h})
	}
	groups := map[string][]met{}
	for _, m := range all {
		if m.Group != "" && m.Member != me.Member {
			groups[m.Group] = append(groups[m.Group], m)
		}
	}
	switch {
	case len(groups) > 1:
		return &RefusedError{refusedGroup, fmt.Sprintf("the addresses of --group-join belong to %d groups of the name %q", len(groups), me.Name)}
	case len(groups) == 1:
		if data {
			return &RefusedError{refusedData, fmt.Sprintf("%s has data of its own, and there is a group already. A voter joins a group with an empty data directory", v.o.Dir)}
		}
		var failed error
		for _, members := range groups {
			for _, m := range members {
				if me.Group == "" {
					v.mu.Lock()
					v.id.Group = m.Group
					me = v.id
					v.mu.Unlock()
					if err := me.write(v.o.FS, v.o.Dir); err != nil {
						return err
					}
				}
				err := v.apply(ctx, m.addr)
				if err == nil {
					return nil
				}
				failed = errors.Join(failed, err)
			}
		}
		return failed
	case me.Group != "" || me.Rejoins:
		return errors.Join(errors.New("no member of its group answers"), away)
	case away != nil:
		return away
	}
	// All are here, and none is in a group. So all of them come to the same conclusion.
	ids := map[string]bool{}
	for _, m := range all {
		ids[m.Member] = true
	}
	if n := len(ids); n%2 == 0 {
		return &RefusedError{refusedGroup, fmt.Sprintf("--group-join lists %d servers. A group begins with 1, 3 or 5 voters: with %d, it survives the loss of no more servers than with %d. List another server", n, n, n-1)}
	}
	clear(ids)
	var founder *met
	for i := range all {
		m := &all[i]
		if ids[m.Member] {
			continue
		}
		ids[m.Member] = true
		switch {
		case founder == nil || m.Data && !founder.Data || m.Data == founder.Data && m.Member < founder.Member:
			if founder != nil && founder.Data && m.Data {
				return tooMuchData(founder, m)
			}
			founder = m
		case m.Data && founder.Data:
			return tooMuchData(founder, m)
		}
	}
	if !ids[me.Member] {
		return &RefusedError{refusedGroup, fmt.Sprintf("--group-join does not list this server: it is %s", v.o.Addr)}
	}
	if founder.Member != me.Member {
		return fmt.Errorf("%s founds the group", founder.addr)
	}
	v.mu.Lock()
	v.id.Group, v.id.Founds = newID(), true
	me = v.id
	v.mu.Unlock()
	if err := me.write(v.o.FS, v.o.Dir); err != nil {
		return err
	}
	return v.found()
}

// checkClock compares the clock of another member with that of this one, before and after the request.
func checkClock(addr string, h *hello, before, after time.Time) error {
	if h.Time == 0 {
		return nil
	}
	at := time.UnixMilli(h.Time)
	how, d := "ahead of", at.Sub(after)
	if behind := before.Sub(at); behind > d {
		how, d = "behind", behind
	}
	if d <= maxSkew {
		return nil
	}
	return &RefusedError{refusedClock, fmt.Sprintf("the clock of the member at %s is %v %s that of this server. Set the clocks of all servers, for example by NTP", addr, d.Round(time.Second), how)}
}

func tooMuchData(a, b *met) error {
	return &RefusedError{refusedData, fmt.Sprintf("%s and %s have data of their own, each. At most one server that founds a group has data: empty the directory of the other, or move it away", a.addr, b.addr)}
}

// found makes the group. It may have been cut off before.
func (v *Voter) found() error {
	v.mu.Lock()
	id := v.id
	v.mu.Unlock()
	if v.o.Init != nil {
		if err := v.o.Init(); err != nil {
			return err
		}
	}
	at := Position{Term: id.Term, Run: 1, Index: 1}
	if err := v.position.restart(at); err != nil {
		return err
	}
	if err := consensus.Found(v.o.FS, v.path(ballotDir), id.Member, v.o.Addr); err != nil {
		return fmt.Errorf("cannot found the group: %w", err)
	}
	id.Founds = false
	if err := id.write(v.o.FS, v.o.Dir); err != nil {
		return err
	}
	v.mu.Lock()
	v.id, v.data = id, false
	v.begins(at)
	v.mu.Unlock()
	v.o.Logger.Info("this server has founded the group", "group", id.Name)
	return nil
}

// ask asks a member who it is.
func (v *Voter) ask(ctx context.Context, addr string) (*hello, error) {
	ctx, cancel := context.WithTimeout(ctx, meetTimeout)
	defer cancel()
	var them *hello
	c := newClient([]string{addr}, v.own, v.key, v.hello, func(h *hello) { them = h })
	conn, err := c.dial(ctx, addr, forGroup)
	if err != nil {
		return nil, err
	}
	return them, conn.Close()
}

// candidate asks to be a member.
type candidate struct {
	Member string `json:"member"`
	Addr   string `json:"address"`
}

// apply asks a member that this one be added to the group, or that its address be changed.
func (v *Voter) apply(ctx context.Context, addr string) error {
	body, err := json.Marshal(candidate{v.hello().Member, v.o.Addr})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*meetTimeout)
	defer cancel()
	return v.send(ctx, http.MethodPost, addr, pathJoin, nil, strings.NewReader(string(body)), int64(len(body)), nil)
}

// join answers a candidate: the leader adds it as a member that does not vote yet.
func (v *Voter) join(rw http.ResponseWriter, r *http.Request) error {
	var c candidate
	if err := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxMessage)).Decode(&c); err != nil || !memberForm(c.Member) || c.Addr == "" {
		return refused(http.StatusBadRequest, "this is no candidate")
	}
	node := v.current()
	if node == nil {
		return refused(http.StatusServiceUnavailable, "this member %s", v.absent())
	}
	if s, _ := node.State(); !s.Leads {
		_, addr := node.Leader()
		if addr == "" || r.URL.Query().Get("passed") != "" {
			return refused(http.StatusServiceUnavailable, "the group has no leader now")
		}
		b, err := json.Marshal(c)
		if err != nil {
			return err
		}
		return v.send(r.Context(), http.MethodPost, addr, pathJoin+"?passed=1", nil, strings.NewReader(string(b)), int64(len(b)), nil)
	}
	for _, m := range node.Members() {
		switch {
		case m.ID == c.Member && m.Addr == c.Addr:
			return nil
		case m.ID == c.Member:
			return node.Add(consensus.Member{ID: m.ID, Addr: c.Addr, Votes: m.Votes})
		case m.Addr == c.Addr && m.ID == v.hello().Member:
			return refused(http.StatusConflict, "%s is the address of the leader", c.Addr)
		case m.Addr == c.Addr: // its disk was replaced: what was there before is gone
			v.o.Logger.Warn("a member of the group has a new disk: the one before is removed", "address", m.Addr, "member", m.ID)
			if err := node.Remove(m.ID); err != nil {
				return err
			}
		}
	}
	v.o.Logger.Info("a server joins the group", "address", c.Addr, "member", c.Member)
	return node.Add(consensus.Member{ID: c.Member, Addr: c.Addr})
}

// tend maintains the group: the leader lets members vote that have caught up, files that are no longer needed are removed, and a
// member whose address has changed reports it. A leader changes its own address.
func (v *Voter) tend() {
	tick := time.NewTicker(tendTime)
	defer tick.Stop()
	told, made := false, uint64(0)
	for {
		select {
		case <-tick.C:
		case <-v.done:
			return
		}
		if err := v.spool.sweep(v.held(time.Now())); err != nil {
			v.o.Logger.Warn("files of the log of the group stay until later", "error", err)
		}
		if now := v.made.Load(); now == made { // nothing changes, so no entry of the log notes it
			if err := v.settle(); err != nil {
				v.o.Logger.Warn("the position in the log of the group is noted later", "error", err)
			}
		} else {
			made = now
		}
		v.sweepStates(time.Now())
		s, _ := v.node.State()
		if s.Leads {
			v.promote()
			continue
		}
		if _, addr := v.node.Leader(); addr != "" && !told {
			ctx, cancel := context.WithTimeout(context.Background(), meetTimeout)
			told = v.apply(ctx, addr) == nil
			cancel()
		}
	}
}

// promote has members vote that have nearly all of the log for some time, and corrects the address of this one, which leads.
func (v *Voter) promote() {
	last, own := v.node.Last(), v.hello().Member
	for _, m := range v.node.Members() {
		if m.ID == own && m.Addr != v.o.Addr {
			if err := v.node.Add(consensus.Member{ID: own, Addr: v.o.Addr, Votes: m.Votes}); err != nil {
				v.o.Logger.Warn("the address of this server in its group cannot be changed yet", "error", err)
			}
			continue
		}
		index, ago, known := v.node.Matched(m.ID)
		if m.Votes || !known || index == 0 || ago > caughtTime || index+caughtLag < last {
			delete(v.caught, m.ID)
			continue
		}
		since, ok := v.caught[m.ID]
		if !ok {
			v.caught[m.ID] = time.Now()
			continue
		}
		if time.Since(since) < caughtTime {
			continue
		}
		if err := v.node.Add(consensus.Member{ID: m.ID, Addr: m.Addr, Votes: true}); err != nil {
			v.o.Logger.Warn("a member of the group cannot vote yet", "member", m.ID, "error", err)
			continue
		}
		v.o.Logger.Info("a member of the group votes from now on", "address", m.Addr, "member", m.ID)
	}
}

// others returns the addresses of the other voters, the leader's first. Without a node, it returns those of the first voters.
func (v *Voter) others() []string {
	var all []string
	if node := v.current(); node != nil {
		if _, addr := node.Leader(); addr != "" {
			all = append(all, addr)
		}
		for _, m := range node.Members() {
			all = append(all, m.Addr)
		}
	}
	all = append(all, v.o.Join...)
	seen := map[string]bool{v.o.Addr: true}
	return slices.DeleteFunc(all, func(addr string) bool {
		was := seen[addr]
		seen[addr] = true
		return was
	})
}

// take takes an image of the directory between two changes.
func (v *Voter) take(id string, known *sums) (*Image, error) {
	v.turn.Lock()
	defer v.turn.Unlock()
	if err := v.settle(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	stores, pos := v.stores, v.pos
	pos.Index = v.durable.Load()
	v.mu.Unlock()
	if stores == nil {
		return nil, refused(http.StatusServiceUnavailable, "the data of this member are not open")
	}
	w := &Writer{o: WriterOptions{FS: v.o.FS, Dir: v.o.Dir, Logger: v.o.Logger}, sums: known}
	st, m := &Image{Run: pos, Whole: pos.Index}, &member{id: id}
	for _, add := range []func(*Image, *member, Stores) error{w.takeIndexes, w.takeSmall, w.takeCopies} {
		if err := add(st, m, stores); err != nil {
			return nil, fmt.Errorf("cannot take the state: %w", err)
		}
	}
	// The directory continues to change, so immutable files get a second name until they are fetched.
	for i := range st.Files {
		if f := &st.Files[i]; f.At == f.Name {
			to := v.path(path.Join(pinnedDir(id), f.Name))
			err := v.o.FS.MkdirAll(path.Dir(to))
			if err == nil {
				_ = v.o.FS.Remove(to) // it is another one
				err = linkOrCopy(v.o.FS, v.path(f.Name), to)
			}
			if err != nil {
				return nil, fmt.Errorf("cannot take the state: %w", err)
			}
		}
	}
	return st, nil
}

// stateDir has the files of an image that a member fetches. pinnedDir, inside it, has those that also have a name in the directory.
func stateDir(id string) string  { return path.Join(workDir, "state", id) }
func pinnedDir(id string) string { return path.Join(stateDir(id), "pinned") }
