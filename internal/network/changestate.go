package network

import (
	"context"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/task"
)

// ChangeState is how far a change is at an instance.
type ChangeState struct {
	Phase     phase `json:"phase"`
	Committed bool  `json:"committed"`
	Canceled  bool  `json:"canceled"`
	Behind    bool  `json:"behind"` // the asking instance lacks writes that this one, the leader, has for it
	// SetBack says that the instance was restored from a snapshot and does not know the change. It may still learn of it, unless the
	// change is committed: then it knew it before the restore.
	SetBack bool `json:"setBack,omitempty"`
	// Alone says that the asking instance was restored from a snapshot and that no other instance has all that it owns. It is to
	// continue with its own data, in the network with the version Shown here. There, the network gets the version Version, which its
	// next requests refer to.
	Alone bool       `json:"alone,omitempty"`
	Shown *uuid.UUID `json:"shown,omitempty"` // nil: Version
	// Got is the last request of a leader that the instance has.
	Got task.Position `json:"got"`
	// Version is the version of the network there.
	Version uuid.UUID `json:"version"`
	// Process tells an instance from a copy of it.
	Process uuid.UUID `json:"process"`
}

// State returns how far a change has progressed here. remote is the instance that asks, or "". It may lack writes. restored says that
// it was restored from a snapshot.
func (n *Node) State(version uuid.UUID, remote string, restored bool) ChangeState {
	st := n.state(version)
	var alone *goingOn
	if restored && n.Network().Leads() && n.Network().Remotes[remote] != nil {
		var err error
		if alone, err = n.lose(remote); err != nil {
			n.o.Logger.Error("cannot store that a remote was restored from a snapshot", "remote", remote, "error", err)
		}
	}
	st.Version, st.Process = n.Network().Version, n.process
	if alone != nil {
		st.Alone, st.Version, st.Shown = true, alone.told, &alone.shown
	}
	if q := n.queue.Load(); q != nil {
		_, st.Got = q.Positions()
	}
	st.Behind = remote != "" && n.sender.behind(remote)
	return st
}

// state returns how far a change is here, also if it has ended or was never heard of.
func (n *Node) state(version uuid.UUID) ChangeState {
	s := n.snapshot()
	if o := s.ended(version); o != nil {
		return ChangeState{Phase: finished, Committed: o.Committed, Canceled: !o.Committed}
	}
	if c := s.Change; c != nil && s.Network.Version == version {
		return ChangeState{Phase: c.Phase, Committed: c.Commit || c.Phase >= switched, Canceled: c.Cancel}
	}
	return ChangeState{Canceled: n.forgotten(version) || s.outlived(version), SetBack: s.Restored}
}

// changeAt asks an instance how far a change has progressed there.
func (n *Node) changeAt(ctx context.Context, name string, r *Remote, version uuid.UUID) (st ChangeState, err error) {
	s := n.snapshot()
	restored := s.Restored && !s.Network.Leads() && !s.rebuilds(s.Network.SelfName()) // or who leads knows already, and may have ended that change
	return n.askChange(ctx, name, r, version, restored)
}

// askChange is changeAt with the state that the instance reports about itself. If it reports that it was restored, it gets a copy of
// its documents.
func (n *Node) askChange(ctx context.Context, name string, r *Remote, version uuid.UUID, restored bool) (st ChangeState, err error) {
	if r == nil {
		return st, apierr.New("remote_could_not_send_request", "There is no remote `%s`.", name)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	self := n.Network().SelfName()
	body := encode(map[string]any{"version": version, "remote": self, "restored": restored})
	err = n.ask(ctx, name, r, &request{Message: changeMessage, key: r.WriteAPIKey, contentType: "application/json", body: body}, &st)
	return st, err
}
