package network

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/outbound"
	"svc/internal/vfs"
)

// Options of a Node.
type Options struct {
	FS   vfs.FS
	File string // a sealed JSON file

	Allowed       outbound.Policy  // of requests to remotes
	SearchTimeout time.Duration    // of all that remotes are asked in one search; 0: 25 s
	Now           func() time.Time // nil: time.Now
}

// Node is this instance's part in its network.
type Node struct {
	o Options

	mu      sync.Mutex // held by who changes what is stored
	stored  *stored
	current atomic.Pointer[Network]

	http         http.Client
	availability *availability
}

// Open reads the network of an instance.
func Open(o Options) (*Node, error) {
	s, err := read(o.FS, o.File)
	if err != nil {
		return nil, err
	}
	if o.SearchTimeout == 0 {
		o.SearchTimeout = 25 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	n := &Node{o: o, stored: s, http: http.Client{Transport: newTransport(o.Allowed), CheckRedirect: outbound.RepeatOnly}}
	n.availability = &availability{now: o.Now, until: map[string]period{}}
	n.current.Store(s.Network)
	return n, nil
}

// Network returns the network as it is now. It is not to be modified.
func (n *Node) Network() *Network { return n.current.Load() }

// JSON returns the network as the API shows it.
func (n *Node) JSON() []byte { return n.Network().shown(n.status) }

// DumpJSON returns the network as dumps have it.
func (n *Node) DumpJSON() []byte { return encode(n.Network()) }

// status says whether searches ask a remote.
func (n *Node) status(remote string) string {
	if n.availability.available(remote) {
		return "available"
	}
	return "unavailable"
}

// Close gives idle connections up.
func (n *Node) Close() error {
	n.http.CloseIdleConnections()
	return nil
}

// Patch changes the network. Its errors are *apierr.Error where the patch is at fault; see Network.apply.
func (n *Node) Patch(p *Patch) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	to, err := n.stored.Network.apply(p)
	if err != nil {
		return err
	}
	to.Version = newVersion()
	return n.replace(&stored{Network: to})
}

// replace makes s what is stored, and then what is seen. mu is held.
func (n *Node) replace(s *stored) error {
	if err := s.write(n.o.FS, n.o.File); err != nil {
		return err
	}
	n.stored = s
	n.current.Store(s.Network)
	return nil
}
