package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/boltfile"
	"svc/internal/commit"
	"svc/internal/vfs"
)

// keyBucket is the bucket of the file that maps a uid of 16 bytes to a storedKey.
var keyBucket = []byte("keys")

const formatVersion = 2

// Options of a store.
type Options struct {
	File      string
	FS        vfs.FS           // its log, if any, gets the changes; nil: vfs.OS. The file itself is always on the operating system's
	MasterKey string           // "": none; then everything except the keys is open to all
	Now       func() time.Time // nil: time.Now
	Logger    *slog.Logger     // nil: none
	Follow    bool             // open in follow mode: see Keys.Follow

	noSync bool                        // for tests: the file need not survive a power failure
	commit func(tx *boltfile.Tx) error // for tests: replaces bbolt's
}

// Keys is the store of API keys. It is safe for concurrent use.
type Keys struct {
	db     atomic.Pointer[boltfile.DB] // replaced under mu
	file   string
	fs     vfs.FS
	bolt   boltfile.Options
	log    *slog.Logger
	master string
	// masterSum is the SHA-256 of the master key. Sums have a fixed length, so they can be compared in constant time.
	masterSum [sha256.Size]byte
	salt      [sha256.Size]byte
	now       func() time.Time
	commit    func(tx *boltfile.Tx) error // nil: bbolt's

	mu      sync.Mutex // held while keys are changed
	follows bool       // under mu: see Follow
	// unsure, under mu: the state of the last change on disk is unknown; see revert.
	unsure bool
	last   int // under mu: the number of the file's last transaction
	table  atomic.Pointer[table]
}

// entry is a key with what requests need to know about it.
type entry struct {
	*Key
	value   value
	may     set
	limiter *limiter
}

// table holds all keys. It is immutable.
type table struct {
	byUID map[uuid.UUID]*entry
	// bySum maps the salted sum of a value to its entry. The time of a lookup depends only on the sum of what was sent, and the salt
	// is secret.
	bySum map[[sha256.Size]byte]*entry
}

// Open opens or creates the file of keys. A store without keys gets the default ones, except in follow mode.
func Open(o Options) (*Keys, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Keys{
		file: o.File, fs: o.FS, bolt: boltfile.Options{Format: formatVersion, Buckets: [][]byte{keyBucket}, Logger: o.Logger, NoSync: o.noSync},
		log: o.Logger, master: o.MasterKey, masterSum: sha256.Sum256([]byte(o.MasterKey)), now: o.Now, commit: o.commit, follows: o.Follow,
	}
	db, err := boltfile.Open(o.File, k.bolt)
	if err != nil {
		return nil, fmt.Errorf("cannot open the API keys: %w", advised(err, o.File))
	}
	k.db.Store(db)
	k.last = boltfile.LastTx(db)
	rand.Read(k.salt[:])
	if err := k.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read the API keys: %w", err), db.Close())
	}
	return k, nil
}

// advised adds advice for the operator to the error of a damaged file.
func advised(err error, file string) error {
	if !apierr.IsCorruption(err) {
		return err
	}
	return fmt.Errorf("%w. Restore a snapshot. Without one, remove %s and its line in STORES: svc then makes new default keys", err, file)
}

// Close closes the file.
func (k *Keys) Close() error { return k.db.Load().Close() }

// DiskBytes returns the size of the file; 0 once it is closed.
func (k *Keys) DiskBytes() (size int64) {
	if err := k.db.Load().View(func(tx *boltfile.Tx) error { size = tx.Size(); return nil }); err != nil {
		return 0
	}
	return size
}

// load fills the table from the file.
func (k *Keys) load() error {
	var keys []*Key
	err := k.db.Load().View(func(tx *boltfile.Tx) error {
		return tx.Bucket(keyBucket).ForEach(func(uid, v []byte) error {
			var key *Key
			v, err := boltfile.Value(uid, v)
			if err == nil {
				key, err = decodeKey(uid, v)
			}
			if err != nil {
				return &apierr.Corruption{File: k.file, Section: "keys", Offset: -1, Reason: fmt.Sprintf("key %x: %v", uid, err)}
			}
			keys = append(keys, key)
			return nil
		})
	})
	if err != nil {
		return err
	}
	if len(keys) == 0 && !k.follows {
		keys = defaults(k.now())
		if err := k.write(keys...); err != nil {
			return err
		}
	}
	k.show(keys)
	return nil
}

// show replaces the table by one with these keys.
func (k *Keys) show(keys []*Key) {
	t := &table{map[uuid.UUID]*entry{}, map[[sha256.Size]byte]*entry{}}
	for _, key := range keys {
		k.enter(t, key)
	}
	k.table.Store(t)
}

// defaults returns the keys of a new store. Their creation times differ by a nanosecond, which keeps them in order.
func defaults(now time.Time) []*Key {
	var keys []*Key
	for i, d := range []struct {
		name, description string
		actions           []string
	}{
		{"Default Chat API Key", "Use it to chat and search from the frontend", []string{"chatCompletions", "search"}},
		{"Default Read-Only Admin API Key", "Use it to read information across the whole database. Caution! Do not expose this key on a public frontend", []string{"*.get", "keys.get"}},
		{"Default Admin API Key", "Use it for anything that is not a search operation. Caution! Do not expose it on a public frontend", []string{"*"}},
		{"Default Search API Key", "Use it to search from the frontend", []string{"search"}},
	} {
		at := now.UTC().Add(time.Duration(i))
		keys = append(keys, &Key{
			UID: uuid.New(), Name: &d.name, Description: &d.description, Actions: d.actions, Indexes: []string{"*"}, CreatedAt: at, UpdatedAt: at,
		})
	}
	return keys
}

// write stores keys durably.
func (k *Keys) write(keys ...*Key) error {
	return k.update(func(tx *boltfile.Tx) error {
		for _, key := range keys {
			b, err := key.encode()
			if err != nil {
				return err
			}
			if err := boltfile.Put(tx.Bucket(keyBucket), key.UID[:], b); err != nil {
				return err
			}
		}
		return nil
	})
}

// update makes a change of this program. The caller holds mu, or opens the store.
func (k *Keys) update(f func(*boltfile.Tx) error) error {
	if k.follows {
		return errFollows
	}
	return k.change(f)
}

// change changes the file durably, or not at all. The caller holds mu, or opens the store.
func (k *Keys) change(f func(*boltfile.Tx) error) error {
	if k.unsure {
		if err := k.revert(); err != nil {
			return err
		}
	}
	db := k.db.Load()
	id := k.last + 1
	err := boltfile.Guard(k.file, func() error {
		tx, err := boltfile.Begin(db, k.last)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after a commit
		if commit.Logged(k.fs) {
			tx.Record()
		}
		if err := f(tx); err != nil {
			return err
		}
		write := tx.Commit
		if k.commit != nil {
			write = func() error { return k.commit(tx) }
		}
		if k.follows { // the change was read from a log
			return write()
		}
		return commit.Do(k.fs, func() (commit.Change, error) {
			b, err := tx.Changes()
			return commit.Change{Kind: commit.Keys, Name: k.file, Data: b}, err
		}, write)
	})
	if err != nil {
		if boltfile.Unsure(db, id) {
			k.unsure = true
			if e := k.revert(); e != nil {
				k.log.Error("a change of the API keys failed; svc writes no others until the previous state is restored", "error", e)
			}
		}
		return err
	}
	k.last = id
	// Even if a root is damaged later, a deleted key must not work again.
	if k.last, err = boltfile.Settle(db, id); err != nil {
		k.unsure = boltfile.Unsure(db, id+1)
		k.log.Warn("a change of the API keys is durable, but only in one of the two roots of their file", "error", err)
	}
	return nil
}

// revert restores the file after a change that failed after its commit point: the client was told that it failed.
func (k *Keys) revert() error {
	old := k.db.Load()
	before, err := boltfile.Revert(old, k.file, k.bolt)
	if err != nil {
		return err
	}
	k.db.Store(before)
	k.unsure, k.last = false, boltfile.LastTx(before)
	return old.Close()
}

func (k *Keys) enter(t *table, key *Key) *entry {
	e := &entry{Key: key, value: derive(k.master, key.UID), may: rights(key.Actions), limiter: new(limiter)}
	t.byUID[key.UID] = e
	t.bySum[k.sum(&e.value)] = e
	return e
}

// remove removes a key from a table that is not published yet.
func (k *Keys) remove(t *table, e *entry) {
	delete(t.bySum, k.sum(&e.value))
	delete(t.byUID, e.UID)
}

func (t *table) clone() *table { return &table{maps.Clone(t.byUID), maps.Clone(t.bySum)} }

func (k *Keys) sum(v *value) [sha256.Size]byte {
	return sha256.Sum256(append(append(make([]byte, 0, 2*sha256.Size), k.salt[:]...), v[:]...))
}

// publish makes the change of one key visible. before is nil for a new key, now for a deleted one.
func (k *Keys) publish(before, now *Key) {
	t := k.table.Load().clone()
	var limits *limiter
	if before != nil {
		e := t.byUID[before.UID]
		limits = e.limiter
		k.remove(t, e)
	}
	if now != nil {
		if e := k.enter(t, now); limits != nil {
			e.limiter = limits
		}
	}
	k.table.Store(t)
}

// byValue returns the key with a value as clients send it, or nil.
func (k *Keys) byValue(text string) *entry {
	if k.master == "" {
		return nil
	}
	v, ok := parseValue(text)
	if !ok {
		return nil
	}
	e := k.table.Load().bySum[k.sum(&v)]
	if e == nil || subtle.ConstantTimeCompare(e.value[:], v[:]) != 1 {
		return nil
	}
	return e
}

// isMaster reports whether text is the master key.
func (k *Keys) isMaster(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return k.master != "" && subtle.ConstantTimeCompare(sum[:], k.masterSum[:]) == 1
}

// Value returns the secret of a key, or "" without a master key.
func (k *Keys) Value(key *Key) string {
	if k.master == "" {
		return ""
	}
	v := derive(k.master, key.UID)
	return v.text()
}

// List returns all keys, the newest first.
func (k *Keys) List() []*Key {
	t := k.table.Load()
	keys := make([]*Key, 0, len(t.byUID))
	for _, e := range t.byUID {
		keys = append(keys, e.Key)
	}
	slices.SortFunc(keys, newestFirst)
	return keys
}

// Find returns the key with a uid or a value, in upper or lower case (api_key_not_found).
func (k *Keys) Find(uidOrValue string) (*Key, error) {
	if uid, err := uuid.Parse(uidOrValue); err == nil {
		if e := k.table.Load().byUID[uid]; e != nil {
			return e.Key, nil
		}
	} else if e := k.byValue(uidOrValue); e != nil {
		return e.Key, nil
	}
	return nil, apierr.New("api_key_not_found", "There is no such API key. `GET /keys` lists them.")
}

// Create stores a new key (api_key_already_exists). If an earlier try of the same request created the key, Create returns it.
func (k *Keys) Create(key Key) (*Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.table.Load()
	if key.Request != uuid.Nil {
		for _, e := range t.byUID {
			if e.Request == key.Request {
				return e.Key, nil
			}
		}
	}
	if t.byUID[key.UID] != nil {
		return nil, apierr.New("api_key_already_exists", "There is already an API key with the uid `%s`. Leave `uid` out to get a new one.", key.UID)
	}
	key.CreatedAt = k.now().UTC()
	key.UpdatedAt = key.CreatedAt
	if err := k.write(&key); err != nil {
		return nil, fmt.Errorf("cannot store the API key %s: %w", key.UID, err)
	}
	k.publish(nil, &key)
	return &key, nil
}

// Change has the properties of a key that can change.
type Change struct {
	Name, Description Text
	RateLimit         *RateLimit // nil: unchanged
}

// Text is an optional text. A given text may be null, which clears it.
type Text struct {
	Given bool
	Text  *string
}

// Update changes a key. It always sets the time of the update.
func (k *Keys) Update(uidOrValue string, c Change) (*Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, err := k.Find(uidOrValue)
	if err != nil {
		return nil, err
	}
	key := *before
	if c.Name.Given {
		key.Name = c.Name.Text
	}
	if c.Description.Given {
		key.Description = c.Description.Text
	}
	if c.RateLimit != nil {
		key.RateLimit = *c.RateLimit
	}
	key.UpdatedAt = k.now().UTC()
	if err := k.write(&key); err != nil {
		return nil, fmt.Errorf("cannot store the API key %s: %w", key.UID, err)
	}
	k.publish(before, &key)
	return &key, nil
}

// Delete deletes a key, which from then on grants nothing.
func (k *Keys) Delete(uidOrValue string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, err := k.Find(uidOrValue)
	if err != nil {
		return err
	}
	err = k.update(func(tx *boltfile.Tx) error { return tx.Bucket(keyBucket).Delete(key.UID[:]) })
	if err != nil {
		return fmt.Errorf("cannot delete the API key %s: %w", key.UID, err)
	}
	k.publish(key, nil)
	return nil
}
