package task

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bytedance/sonic"
	"github.com/zeebo/xxh3"

	"svc/internal/apierr"
	"svc/internal/boltfile"
)

// A leader stores a task and the request for the other instances in one transaction. The outbox holds the requests that
// they have not received. Each instance gets requests in the order of tasks. The receiver stores the origin of a request
// with its own task, so it recognises a repeated request.
//
// Buckets of the queue file hold the outbox. They are created on first use.
var (
	outboxBucket   = []byte("outbox")    // uid → Outgoing, JSON
	originBucket   = []byte("origins")   // originKey → uid of the task here
	positionBucket = []byte("positions") // toldKey, gotKey → Position, JSON
	toldKey        = []byte("told")
	gotKey         = []byte("got")
)

// Position is a place among the requests of a leader. Later ones are greater: in their versions, then in their uids.
type Position struct {
	Version string `json:"version"` // of the network; "" is before all
	UID     uint32 `json:"uid"`     // of the task at the leader
}

// Compare is negative when p is before o.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Version, o.Version), cmp.Compare(p.UID, o.UID))
}

// keptOrigins is the maximum number of stored origins. An origin is only looked up again while its request is in flight.
const keptOrigins = 10_000

// Forward is a request that others get, too. The documents of an addition follow from the task.
type Forward struct {
	Version     string // of the network
	Method      string
	Path        string            // with the query string
	ContentType string            // "": no body
	Body        []byte            // nil where the payload is the body
	Bodies      map[string][]byte // by remote, instead of Body
	Remotes     []string          // who gets it
}

// Outgoing is a request of the outbox.
type Outgoing struct {
	Forward
	UID      uint32    // of the task
	Nonce    string    // distinguishes it from a request with the same uid, after the leader was reset to an earlier state
	File     string    // of the payload; "" for none
	Size     int64     // of the payload
	Enqueued time.Time // when the task was
	Pending  []string  // the remotes that have not got it
}

// Origin says which request of another instance a task is of.
type Origin struct {
	Remote  string `json:"remoteName"`
	TaskUID uint32 `json:"taskUid"`
	Version string `json:"networkVersion"`
	Nonce   string `json:"-"`
}

func (o *Origin) key() []byte {
	h := xxh3.HashString128(fmt.Sprintf("%q %d %q %q", o.Remote, o.TaskUID, o.Version, o.Nonce)).Bytes()
	return h[:]
}

// RemoteTask is what became of a task at another instance.
type RemoteTask struct {
	UID *uint32       // of the task there; nil: none (yet)
	Err *apierr.Error // of the last attempt
}

// MarshalJSON gives the object of the API.
func (r RemoteTask) MarshalJSON() ([]byte, error) {
	if r.Err != nil {
		return append(r.Err.AppendJSON([]byte(`{"error":`)), '}'), nil
	}
	return append(appendUID([]byte(`{"taskUid":`), r.UID), `,"error":null}`...), nil
}

// leaderNetwork is the member network of a task that others get.
type leaderNetwork struct {
	RemoteTasks map[string]json.RawMessage `json:"remote_tasks"`
	Version     string                     `json:"network_version"`
}

// networkOf is the member network of a new task, nil for none.
func networkOf(n *New) []byte {
	switch {
	case n.Forward != nil:
		l := leaderNetwork{map[string]json.RawMessage{}, n.Forward.Version}
		for _, remote := range n.Forward.Remotes {
			l.RemoteTasks[remote] = encode(RemoteTask{})
		}
		return encodeSorted(l)
	case n.Origin != nil:
		return encode(struct {
			Origin *Origin `json:"origin"`
		}{n.Origin})
	}
	return nil
}

// encodeSorted is encode for what holds maps.
func encodeSorted(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("task: %T cannot be JSON: %v", v, err))
	}
	return b
}

// outbox is what memory knows of the bucket.
type outbox struct {
	mu      sync.Mutex
	pending map[string][]uint32 // by remote, in order
	files   map[string]int      // how many of the queue and the outbox need a payload
	entries map[uint32]*outgoingFact
	bytes   int64    // the sizes of entries
	origins [][]byte // oldest first
	// The last request that others were to get, and the last one that was got from a leader.
	told, got Position
}

type outgoingFact struct {
	left  int // remotes that have not got it
	file  string
	size  int64 // of body and payload
	since time.Time
}

// load reads the buckets.
func (o *outbox) load(db *boltfile.DB) error {
	o.pending, o.files, o.entries = map[string][]uint32{}, map[string]int{}, map[uint32]*outgoingFact{}
	return db.View(func(tx *boltfile.Tx) error {
		damaged := func(bucket, k []byte, err error) error {
			return &apierr.Corruption{File: fileName(db.Path()), Section: string(bucket), Offset: -1, Reason: fmt.Sprintf("key %x: %v", k, err)}
		}
		if b := tx.Bucket(outboxBucket); b != nil {
			for c, k, v := cursorOf(b); k != nil; k, v = c.Next() {
				e, err := decodeOutgoing(k, v)
				if err != nil {
					return damaged(outboxBucket, k, err)
				}
				o.add(e)
			}
		}
		if b := tx.Bucket(positionBucket); b != nil {
			for k, p := range map[string]*Position{string(toldKey): &o.told, string(gotKey): &o.got} {
				v, err := boltfile.Get(b, []byte(k))
				if err == nil && v != nil {
					err = json.Unmarshal(v, p)
				}
				if err != nil {
					return damaged(positionBucket, []byte(k), err)
				}
			}
		}
		b := tx.Bucket(originBucket)
		if b == nil {
			return nil
		}
		byUID := map[uint32][]byte{}
		for c, k, v := cursorOf(b); k != nil; k, v = c.Next() {
			uid, err := boltfile.Value(k, v)
			if err == nil && len(uid) != 4 {
				err = errRecord
			}
			if err != nil {
				return damaged(originBucket, k, err)
			}
			byUID[binary.BigEndian.Uint32(uid)] = slices.Clone(k)
		}
		for _, uid := range slices.Sorted(maps.Keys(byUID)) {
			o.origins = append(o.origins, byUID[uid])
		}
		return nil
	})
}

func cursorOf(b *boltfile.Bucket) (c *boltfile.Cursor, k, v []byte) {
	c = b.Cursor()
	k, v = c.First()
	return c, k, v
}

// decodeOutgoing reads a request of the outbox. k and v are as they are stored. The result refers to neither.
func decodeOutgoing(k, v []byte) (*Outgoing, error) {
	value, err := boltfile.Value(k, v)
	if err != nil {
		return nil, err
	}
	e := new(Outgoing)
	if err := sonic.Unmarshal(slices.Clone(value), e); err != nil {
		return nil, err
	}
	if len(k) != 4 || e.UID != binary.BigEndian.Uint32(k) {
		return nil, errRecord
	}
	return e, nil
}

// change follows an entry that some of the remotes in was have now. mu is held.
func (o *outbox) change(was []string, now *Outgoing) {
	for _, remote := range was {
		if slices.Contains(now.Pending, remote) {
			continue
		}
		uids := o.pending[remote]
		if len(uids) > 0 && uids[0] == now.UID {
			uids = uids[1:]
		} else { // others read what they were without the lock
			uids = slices.DeleteFunc(slices.Clone(uids), func(u uint32) bool { return u == now.UID })
		}
		if o.pending[remote] = uids; len(uids) == 0 {
			delete(o.pending, remote)
		}
	}
	if fact := o.entries[now.UID]; fact != nil {
		if fact.left = len(now.Pending); fact.left == 0 {
			o.bytes -= fact.size
			delete(o.entries, now.UID)
		}
	}
}

// add adds an entry. The caller holds mu, or is the only holder of the outbox.
func (o *outbox) add(e *Outgoing) {
	for _, remote := range e.Pending {
		o.pending[remote] = append(o.pending[remote], e.UID)
	}
	size := e.Size + int64(len(e.Body))
	for _, b := range e.Bodies {
		size += int64(len(b))
	}
	o.entries[e.UID] = &outgoingFact{len(e.Pending), e.File, size, e.Enqueued}
	o.bytes += size
	if e.File != "" {
		o.files[e.File]++
	}
}

// insertNetwork stores, with a new task, the request to forward to remotes and the origin of the task.
func (tx *txn) insertNetwork(q *Queue, r *request, uid uint32, now int64) error {
	if f := r.Forward; f != nil && len(f.Remotes) > 0 {
		var nonce [8]byte
		rand.Read(nonce[:])
		e := &Outgoing{Forward: *f, UID: uid, Nonce: hex.EncodeToString(nonce[:]), Enqueued: fromNanos(now), Pending: f.Remotes}
		if c, ok := r.Content.(AddDocuments); ok {
			e.File, e.Size = c.File, c.Size
		}
		b, err := tx.tx.CreateBucketIfNotExists(outboxBucket)
		if err == nil {
			err = boltfile.Put(b, key(uid), encodeSorted(e))
		}
		if err != nil {
			return err
		}
		tx.effects.outgoing = append(tx.effects.outgoing, outgoingEffect{nil, e})
		if err := tx.pass(toldKey, &tx.effects.told, Position{f.Version, uid}); err != nil {
			return err
		}
	}
	k := r.knownBy()
	if k == nil {
		return nil
	}
	if r.Origin != nil {
		if err := tx.pass(gotKey, &tx.effects.got, Position{r.Origin.Version, r.Origin.TaskUID}); err != nil {
			return err
		}
	}
	b, err := tx.tx.CreateBucketIfNotExists(originBucket)
	if err != nil {
		return err
	}
	if err := boltfile.Put(b, k, key(uid)); err != nil {
		return err
	}
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	e := &tx.effects
	for len(q.outbox.origins)-e.forgotten+len(e.origins) >= keptOrigins && e.forgotten < len(q.outbox.origins) {
		if err := b.Delete(q.outbox.origins[e.forgotten]); err != nil {
			return err
		}
		e.forgotten++
	}
	e.origins = append(e.origins, k)
	return nil
}

// pass stores a position that was reached, and makes it the effect.
func (tx *txn) pass(key []byte, effect **Position, p Position) error {
	b, err := tx.tx.CreateBucketIfNotExists(positionBucket)
	if err == nil {
		err = boltfile.Put(b, key, encode(p))
	}
	*effect = &p
	return err
}

// Positions returns the last request that others were to get, and the last one that was got from a leader.
func (q *Queue) Positions() (told, got Position) {
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	return q.outbox.told, q.outbox.got
}

// knownBy returns the key in the bucket of origins that identifies a repeated request, or nil if it has none.
func (n *New) knownBy() []byte {
	switch {
	case n.Origin != nil:
		return n.Origin.key()
	case n.Key != "":
		h := xxh3.HashString128("key " + n.Key).Bytes() // an origin begins with a quote
		return h[:]
	}
	return nil
}

// known returns the task that an earlier try of a request created, or nil. key is the result of knownBy.
func (tx *txn) known(key []byte) (*Task, error) {
	b := tx.tx.Bucket(originBucket)
	if key == nil || b == nil {
		return nil, nil
	}
	v, err := boltfile.Get(b, key)
	if err != nil || v == nil {
		return nil, err
	}
	uid := binary.BigEndian.Uint32(v)
	rec, err := tx.record(uid)
	if err != nil {
		return nil, err
	}
	if rec == nil { // deleted since: all that is left of it is that it was
		return &Task{UID: uid, Kind: NetworkTopologyChange}, nil
	}
	return rec.task(uid, tx.names), nil
}
