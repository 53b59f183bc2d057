package group

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// A voter has promised its votes and the entries of its log. If its directory is replaced by an older copy, such as an image of its
// disk, it does not know of these promises: it could vote twice, or elect a leader that lacks acknowledged changes. The leader sees this
// if the log of the member ends before an entry that the member had in the same term. In another term it looks like a member that is
// behind.

func errLapsed(dir string) *RefusedError {
	return &RefusedError{refusedData, fmt.Sprintf("%s lacks changes that this voter has acknowledged: it was restored from an older copy. Make it a new member of its group: svc group rejoin --db-path %s", dir, dir)}
}

// errForgotten is the error of a voter whose directory is there in part. It could vote for a leader that lacks acknowledged changes.
func errForgotten(dir string) *RefusedError {
	return &RefusedError{refusedData, fmt.Sprintf("%s has the data of a voter, but not the votes that it gave: files below %s are missing. Make it a new member of its group: svc group rejoin --db-path %[1]s", dir, ballotDir)}
}

// tellLapsed notifies a member that its log ends before an entry that it had.
func (v *Voter) tellLapsed(id, addr string, term, index uint64) {
	v.o.Logger.Error("a member of the group lacks changes that it had acknowledged: its data directory was restored from an older copy. It gets no further changes before svc group rejoin", "address", addr, "member", id)
	ctx, cancel := context.WithTimeout(context.Background(), meetTimeout)
	defer cancel()
	q := url.Values{"member": {id}, "term": {strconv.FormatUint(term, 10)}, "index": {strconv.FormatUint(index, 10)}}
	err := v.send(ctx, http.MethodPost, addr, pathLapsed, q, nil, 0, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if err != nil {
		v.o.Logger.Warn("the member could not be told", "address", addr, "error", err)
	}
}

// lapse makes this voter leave its group after it has verified the leader's claim.
func (v *Voter) lapse(_ http.ResponseWriter, r *http.Request) error {
	id, err := guestOf(r)
	if err != nil {
		return err
	}
	term, err := strconv.ParseUint(r.FormValue("term"), 10, 64)
	if err != nil {
		return refused(http.StatusBadRequest, "term is no number")
	}
	index, err := strconv.ParseUint(r.FormValue("index"), 10, 64)
	if err != nil {
		return refused(http.StatusBadRequest, "index is no number")
	}
	node := v.current()
	switch {
	case node == nil:
		return refused(http.StatusServiceUnavailable, "this member %s", v.absent())
	case r.FormValue("member") != v.hello().Member:
		return refused(http.StatusConflict, "another member has this address now")
	}
	if leader, _ := node.Leader(); leader != id || term != node.Term() || index <= node.Last() {
		return refused(http.StatusConflict, "this member has all entries that it had")
	}
	v.mu.Lock()
	v.id.Lapsed = true
	me := v.id
	v.mu.Unlock()
	if err := me.write(v.o.FS, v.o.Dir); err != nil {
		return err
	}
	select {
	case v.lapsed <- errLapsed(v.o.Dir):
	default: // it knows
	}
	return nil
}
