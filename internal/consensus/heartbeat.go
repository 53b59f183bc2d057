package consensus

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// Heartbeats reach raft outside its main goroutine, so that a slow disk does not delay them. In raft 1.8.0 that path adopts a newer term
// and steps down while the main goroutine may be appending. The former leader then appends entries with its successor's term, and two
// entries with the same index and term differ (hashicorp/raft#695). Here the fast path changes nothing. It answers only if this member is a
// follower in the heartbeat's term; all others go to the main goroutine.

// errBusy is the response to a heartbeat that raft does not handle in time.
var errBusy = errors.New("this member is busy")

// SetHeartbeatHandler implements raft.Transport.
func (t *transport) SetHeartbeatHandler(alone func(raft.RPC)) {
	if t.follows == nil {
		t.Carrier.SetHeartbeatHandler(alone)
		return
	}
	t.Carrier.SetHeartbeatHandler(t.heartbeat)
}

// heartbeat answers a heartbeat. A follower in its term answers at once, because a vote for another candidate can only come later.
// tell then passes the heartbeat to raft, which records the contact. tell drops it if an earlier one still waits. Other heartbeats
// wait up to beatTime for raft.
func (t *transport) heartbeat(rpc raft.RPC) {
	a, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if ok && t.follows(a.Term) {
		rpc.Respond(&raft.AppendEntriesResponse{Term: a.Term, Success: true}, nil)
		select {
		case t.beats <- raft.RPC{Command: a, RespChan: make(chan raft.RPCResponse, 1)}:
		default: // raft has not handled the previous one yet
		}
		return
	}
	busy := time.NewTimer(beatTime)
	defer busy.Stop()
	select {
	case t.rpcs <- rpc:
		return
	case <-busy.C:
	case <-t.done:
	}
	rpc.Respond(&raft.AppendEntriesResponse{}, errBusy)
}

// beatTime is how long a heartbeat that changes the state may wait for raft.
const beatTime = time.Second

// tell passes answered heartbeats on to raft.
func (t *transport) tell() {
	for {
		select {
		case rpc := <-t.beats:
			select {
			case t.rpcs <- rpc:
			case <-t.done:
				return
			}
		case <-t.done:
			return
		}
	}
}
