package auth

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"github.com/google/uuid"

	"svc/internal/boltfile"
	"svc/internal/commit"
)

// A store in follow mode shows the keys of another program, the writer. Follow applies the writer's changes; the store makes none of
// its own.

// errFollows is the error of a change in follow mode.
var errFollows = errors.New("the API keys are a copy of those of another svc, and only that one can change them")

// Follow applies a change of the file of keys. Keys that exist before and after it keep their request counts. After an error the
// caller applies the same change again before any other; applying it twice does no harm.
func (k *Keys) Follow(c commit.Change) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !k.follows:
		return errors.New("cannot follow a change of the API keys: they follow nobody")
	case c.Kind != commit.Keys || path.Base(c.Name) != filepath.Base(k.file):
		return fmt.Errorf("%s is not the file of API keys", c.Name)
	}
	changes, err := boltfile.DecodeChanges(c.Data)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", k.file, err)
	}
	if changes.Format != formatVersion {
		return fmt.Errorf("cannot write %s: the change has format version %d, and this svc writes version %d", k.file, changes.Format, formatVersion)
	}
	t, err := k.after(changes) // before the file changes, so that it never gets keys that this svc cannot read
	if err != nil {
		return err
	}
	if err := k.change(func(tx *boltfile.Tx) error { return tx.Apply(changes) }); err != nil {
		return err
	}
	k.table.Store(t)
	return nil
}

// after returns the table that results from changes of the file.
func (k *Keys) after(c *boltfile.Changes) (*table, error) {
	before := k.table.Load()
	t := before.clone()
	err := c.Each(func(bucket string, uid, stored []byte) error {
		if bucket != string(keyBucket) {
			return fmt.Errorf("cannot follow a change of %s: this svc does not know the bucket %q: a later one wrote it", k.file, bucket)
		}
		if uid == nil { // the bucket was emptied
			clear(t.byUID)
			clear(t.bySum)
			return nil
		}
		id, err := uuid.FromBytes(uid)
		var key *Key
		if err == nil && stored != nil {
			var v []byte
			if v, err = boltfile.Value(uid, stored); err == nil {
				key, err = decodeKey(uid, v)
			}
		}
		if err != nil {
			return fmt.Errorf("cannot follow a change of %s, key %x: %w", k.file, uid, err)
		}
		if e := t.byUID[id]; e != nil {
			k.remove(t, e)
		}
		if key == nil {
			return nil
		}
		e := k.enter(t, key)
		if old := before.byUID[id]; old != nil {
			e.limiter = old.limiter
		}
		return nil
	})
	return t, err
}

// Lead ends follow mode: from then on the store accepts changes, as if it had been opened without Options.Follow. No call of Follow
// may be running.
func (k *Keys) Lead() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.follows {
		return nil
	}
	k.follows = false
	if len(k.table.Load().byUID) > 0 {
		return nil
	}
	keys := defaults(k.now())
	if err := k.write(keys...); err != nil {
		k.follows = true
		return fmt.Errorf("cannot store the API keys: %w", err)
	}
	k.show(keys)
	return nil
}
