package consensus

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// Heartbeats come to raft on a path of their own, beside the goroutine that has its state, so that a slow disk does not delay them. There
// raft 1.8.0 takes up a newer term and stops leading, whatever that goroutine does meanwhile: a leader of before then appends entries with
// the term of its successor, and two entries with one index and one term differ (hashicorp/raft#695). Here only a follower in the term of
// the heartbeat is answered beside that goroutine, and nothing is changed there.

// errBusy is the answer to a heartbeat that raft does not get to.
var errBusy = errors.New("this member is busy")

// SetHeartbeatHandler implements raft.Transport.
func (t *transport) SetHeartbeatHandler(alone func(raft.RPC)) {
	if t.follows == nil {
		t.Carrier.SetHeartbeatHandler(alone)
		return
	}
	t.Carrier.SetHeartbeatHandler(t.heartbeat)
}

// heartbeat answers a heartbeat. A follower says at once that it follows: a vote for another leader that it gives comes later. Raft learns
// that it was in touch with the leader when it has time: it notes that itself after whatever keeps it from that.
func (t *transport) heartbeat(rpc raft.RPC) {
	a, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if ok && t.follows(a.Term) {
		rpc.Respond(&raft.AppendEntriesResponse{Term: a.Term, Success: true}, nil)
		select {
		case t.beats <- raft.RPC{Command: a, RespChan: make(chan raft.RPCResponse, 1)}:
		default: // raft is still to learn of the one before
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

// beatTime is how long a heartbeat that changes something may wait for raft.
const beatTime = time.Second

// tell passes on to raft the heartbeats that were answered.
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
