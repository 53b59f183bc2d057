package network

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/outbound"
	"svc/internal/shard"
	"svc/internal/task"
	"svc/internal/vfs"
)

// Options of a Node.
type Options struct {
	FS      vfs.FS
	File    string // a sealed JSON file
	Work    string // a directory for downloads; its content does not outlive a task
	Catalog *index.Catalog
	Logger  *slog.Logger // nil: none

	Allowed        outbound.Policy  // of requests to remotes
	SearchTimeout  time.Duration    // of all that remotes are asked in one search; 0: 25 s
	RequestTimeout time.Duration    // of another request, with more for large bodies; 0: 30 s
	OutboxLimit    int64            // bytes of writes that others lack, at most; 0: 4 GiB
	AnswerTimeout  time.Duration    // how long the answer to a write waits for remotes to get it; 0: 25 s
	Now            func() time.Time // nil: time.Now
}

// Node is this instance's part in its network.
type Node struct {
	o       Options
	process uuid.UUID                  // a new one in each process
	queue   atomic.Pointer[task.Queue] // set by Start, or by a task that runs before it

	patching sync.Mutex   // held by a change of a network with a leader while remotes are asked
	ordering sync.RWMutex // held by a write that others get until it is stored, and alone by a change of the network
	mu       sync.Mutex   // held while the stored state changes
	stored   *stored
	view     atomic.Pointer[view]

	http         http.Client
	searched     http.Client // of searches: http without goroutines of its own
	availability *availability
	sender       sender
	lagging      atomic.Bool          // this instance lacks writes that the leader has
	follows      atomic.Bool          // see Follow
	unfollow     func()               // ends what Follow began; nil: nothing
	reuniting    string               // why the last attempt to continue after a snapshot failed; only for watch
	alone        map[string]uuid.UUID // by remote: the network in which it was told to continue alone; guarded by patching
	exports      exports

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	done sync.WaitGroup
}

// Open reads the network of an instance. It sends no requests before Start.
func Open(o Options) (*Node, error) {
	s, err := read(o.FS, o.File)
	if err != nil {
		return nil, err
	}
	for d, standard := range map[*time.Duration]time.Duration{
		&o.SearchTimeout: 25 * time.Second, &o.RequestTimeout: 30 * time.Second, &o.AnswerTimeout: 25 * time.Second,
	} {
		if *d == 0 {
			*d = standard
		}
	}
	if o.OutboxLimit == 0 {
		o.OutboxLimit = 4 << 30
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{o: o, process: uuid.New(), stored: s, alone: map[string]uuid.UUID{}, http: http.Client{Transport: newTransport(o.Allowed), CheckRedirect: outbound.RepeatOnly},
		searched: http.Client{Transport: newWires(o.Allowed), CheckRedirect: outbound.RepeatOnly}}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.availability = &availability{now: o.Now, outages: map[string]*outage{}, told: map[string]time.Time{}}
	n.sender.init(n)
	n.publish()
	return n, nil
}

// Reload reads the file again after another program may have replaced it. After an error the old network stays.
func (n *Node) Reload() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, err := read(n.o.FS, n.o.File)
	if err != nil {
		return err
	}
	n.stored = s
	n.publish()
	return nil
}

// Start begins to deliver what remotes have not got. The queue was opened with the node's Executor, Owned, Forwarded and Ended.
func (n *Node) Start(q *task.Queue) {
	if n.unfollow != nil {
		n.unfollow()
		n.follows.Store(false)
	}
	n.queue.Store(q)
	n.adopt()
	n.sender.wakeUp()
	// Until the leader has said that nothing is lacking, this instance does not know.
	s := n.snapshot()
	n.lagging.Store(s.Network.Led() && (!s.Network.Leads() || s.Restored))
	n.done.Go(n.watch)
}

// Close ends what the node does, and gives its connections up. The queue is closed before it.
func (n *Node) Close() error {
	n.stop()
	n.done.Wait()
	n.exports.drop()
	n.http.CloseIdleConnections()
	n.searched.CloseIdleConnections()
	return nil
}

// Network returns the current network. It must not be modified.
func (n *Node) Network() *Network { return n.view.Load().network }

// nameAt returns the name that this instance has in a version of the network: the one that others know it by.
func (n *Node) nameAt(version string) string {
	s := n.snapshot()
	if c := s.Change; c != nil && c.Before.Version.String() == version {
		return c.Before.SelfName()
	}
	return s.Network.SelfName()
}

// Searching returns the network that searches use. It must not be modified.
func (n *Node) Searching() *Network { return n.view.Load().searching }

// Ring returns the shards of a version of the network that searches of others may have been planned by; nil when it is not known, or
// without shards.
func (n *Node) Ring(version string) *shard.Ring {
	id, err := uuid.Parse(version)
	if err != nil {
		return nil
	}
	return n.view.Load().rings[id]
}

// Owned returns a function that tells which documents of additions this instance keeps, or nil for all.
func (n *Node) Owned() func(id []byte) bool {
	w := n.view.Load().writing
	return w.keeps(w.SelfName())
}

// JSON returns the network as the API shows it, with only those keys of remotes that sees accepts. A nil sees accepts all.
func (n *Node) JSON(sees func(key string) bool) []byte { return n.Network().shown(n.status, sees) }

// IsSearchKey reports whether a credential is the key with which the other instances of the network search this one. All of them have
// the same entry for it.
func (n *Node) IsSearchKey(credential string) bool {
	v := n.view.Load()
	for _, now := range [...]*Network{v.network, v.searching} { // while the network changes, each may be the one that others go by
		if now.Self == nil {
			continue
		}
		if r := now.Remotes[*now.Self]; r != nil && r.SearchAPIKey != nil && *r.SearchAPIKey != "" &&
			subtle.ConstantTimeCompare([]byte(*r.SearchAPIKey), []byte(credential)) == 1 {
			return true
		}
	}
	return false
}

// DumpJSON returns the network as dumps have it.
func (n *Node) DumpJSON() []byte { return encode(n.Network()) }

// status says whether searches ask a remote.
func (n *Node) status(remote string) string {
	if n.usable(remote) {
		return "available"
	}
	return "unavailable"
}

// usable reports whether a remote has everything that it should have, and has not failed a search a moment ago.
func (n *Node) usable(remote string) bool {
	if remote == n.Network().SelfName() {
		return !n.lagging.Load()
	}
	return n.availability.available(remote) && !n.sender.behind(remote)
}

// replace stores s and then publishes it. mu is held.
func (n *Node) replace(s *stored) error {
	if err := s.write(n.o.FS, n.o.File); err != nil {
		return err
	}
	n.stored = s
	n.publish()
	return nil
}

// publish makes the stored state visible.
func (n *Node) publish() {
	v := viewOf(n.stored)
	n.view.Store(v)
	if n.o.Catalog != nil {
		n.o.Catalog.SetShards(ringOf(v.searching))
	}
}

// update changes the stored state. edit gets a copy, whose parts it replaces.
func (n *Node) update(edit func(s *stored)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.replace(n.edited(edit))
}

// impose is update for facts that hold even if they cannot be stored now. They are stored by the next update, or found again after a
// start.
func (n *Node) impose(edit func(s *stored)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stored = n.edited(edit)
	n.publish()
	return n.stored.write(n.o.FS, n.o.File)
}

// edited returns a changed copy of the stored state. mu is held.
func (n *Node) edited(edit func(s *stored)) *stored {
	s := *n.stored
	if s.Change != nil {
		c := *s.Change
		s.Change = &c
	}
	edit(&s)
	return &s
}

// snapshot returns the stored state. The caller must not modify it.
func (n *Node) snapshot() *stored {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stored
}

// CheckWrite refuses a write that is not for this instance (not_a_leader). forward says that others are to get it.
func (n *Node) CheckWrite() (forward bool, err error) {
	now := n.Network()
	if !now.Led() {
		return false, nil
	}
	if !now.Leads() {
		return false, apierr.New("not_a_leader", "`%s` is the leader of the network and accepts all writes. Send this request to it.", *now.Leader)
	}
	if n.snapshot().Restored {
		return false, setBack()
	}
	return true, n.makeRoom()
}

// Forward returns what other instances get of a write; the caller adds the request. The network does not change until the caller has
// stored the task and calls stored. So a write is before or after a change on every instance.
func (n *Node) Forward() (f *task.Forward, stored func()) {
	n.ordering.RLock()
	s := n.snapshot()
	f = &task.Forward{Version: s.Network.Version.String(), Remotes: slices.DeleteFunc(s.Network.Others(), s.forgoes)}
	return f, n.ordering.RUnlock
}
