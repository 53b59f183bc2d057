package network

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A member of a group that does not lead it has the network of the member that leads, and answers searches as that instance. It does
// not deliver requests and does not change the network.

// Follow has searches know whether this instance is complete, until Start or Close. Without a leader of the network it always is.
func (n *Node) Follow() {
	ctx, stop := context.WithCancel(n.ctx)
	var asking sync.WaitGroup
	n.unfollow = func() {
		stop()
		asking.Wait()
	}
	n.follows.Store(true)
	s := n.snapshot()
	n.lagging.Store(s.Network.Led() && (!s.Network.Leads() || s.Restored))
	asking.Add(1)
	n.done.Go(func() {
		defer asking.Done()
		n.attend(ctx)
	})
}

// attend asks the leader of the network whether this instance lacks something. It does not report that the instance was restored,
// because the leader of the network acts on that. The member that leads the group reports it.
func (n *Node) attend(ctx context.Context) {
	for {
		s := n.snapshot()
		lagging := s.Network.Led() && s.Restored
		if s.Network.Led() && !s.Network.Leads() && !lagging {
			leader := *s.Network.Leader
			st, err := n.askChange(ctx, leader, s.Network.Remotes[leader], s.Network.Version, false)
			lagging = err == nil && st.Behind
		}
		if ctx.Err() != nil {
			return
		}
		n.lagging.Store(lagging)
		pause := watchInterval
		if lagging {
			pause = lagInterval
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// VersionHeader says in a request for other instances by which version of the network it was planned, and in the answer by which one it
// was answered.
const VersionHeader = "Svc-Network-Version"

// AnswersBy returns the version of the network by which this instance answers a search planned with another version: that version, if
// this instance still knows it, or else the current one.
func (n *Node) AnswersBy(version string) string {
	v := n.view.Load()
	if id, err := uuid.Parse(version); err == nil {
		if _, known := v.rings[id]; known {
			return version
		}
	}
	return v.network.Version.String()
}

// outdated reports whether a remote answered with a later version of the network than the one that this instance, a member of a
// group, has received. Documents may have moved since.
func (n *Node) outdated(asked *Network, answer http.Header) bool {
	if !n.follows.Load() || !asked.Led() {
		return false
	}
	by, err := uuid.Parse(answer.Get(VersionHeader))
	return err == nil && newer(by, asked.Version)
}
