package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.etcd.io/bbolt"

	"svc/internal/vfs"
)

// copyStepBytes is how many bytes of keys and values are copied in one transaction.
const copyStepBytes = 1 << 20

// CopyLive writes the state that the transaction sees to a new file, durably. It writes in the order of keys, so that pages are full,
// and writes no free pages.
func (t *Tx) CopyLive(name string, o Options) error {
	return copyFile(name, &o, func(to *bbolt.DB) error {
		buckets, err := t.bucketNames()
		if err != nil {
			return err
		}
		for _, bucket := range buckets {
			for at := []byte{}; at != nil && err == nil; {
				at, err = copyStep(to, t, bucket, at, o.Fill)
			}
		}
		return err
	})
}

// copyFile makes a file that fill fills, durably.
func copyFile(name string, o *Options, fill func(*bbolt.DB) error) error {
	to, err := bbolt.Open(name, 0o600, &bbolt.Options{
		Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType, InitialMmapSize: AddressSpace(o.MapSize),
		NoSync: true, NoGrowSync: true, // the copy is synced once, when it is complete
	})
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", name, err)
	}
	if o.Step > 0 {
		to.AllocSize = o.Step
	}
	if err = fill(to); err == nil && !o.NoSync {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}

// bucketNames returns the names of all buckets.
func (t *Tx) bucketNames() (names []string, err error) {
	err = t.ForEach(func(name []byte, _ *Bucket) error {
		names = append(names, string(name))
		return nil
	})
	return names, err
}

// copyStep copies a part of a bucket, as a transaction sees it, from a key on. It returns the key to continue from, or nil at the
// end.
func copyStep(to *bbolt.DB, from *Tx, bucket string, at []byte, fill float64) (next []byte, err error) {
	err = to.Update(func(out *bbolt.Tx) error {
		b, err := out.CreateBucketIfNotExists([]byte(bucket))
		if err != nil {
			return err
		}
		if fill > 0 {
			b.FillPercent = fill
		}
		source := from.Bucket([]byte(bucket))
		if source == nil {
			return ErrOutrun // it was removed
		}
		c := source.Cursor()
		k, v := c.Seek(at)
		for size := 0; k != nil && size < copyStepBytes; k, v = c.Next() {
			if err := b.Put(k, v); err != nil {
				return err
			}
			size += len(k) + len(v)
		}
		next = bytes.Clone(k)
		return nil
	})
	return next, err
}

// A Copy is a copy of an open file without its free pages, made while others read and change the file. Changes are recorded, and
// applied to the copy afterwards. No transaction is open for long, because a writer that has to map more of the file waits for
// readers. A Copy belongs to one goroutine, and a file has at most one at a time.
type Copy struct {
	db    *DB
	name  string
	o     Options
	fresh *DB // nil until Run
}

// maxNoted bounds the bytes of keys that are noted.
const maxNoted = 64 << 20

// ErrOutrun is the error of a copy of a file that changes faster than it is copied.
var ErrOutrun = errors.New("too much changed while it was copied; try again")

// noted are the keys that were changed, by bucket.
type noted struct {
	mu     sync.Mutex
	keys   map[string]map[string]struct{}
	bytes  int
	outrun bool
}

// note is called with the writer's lock of the file held.
func (n *noted) note(bucket, key []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.outrun {
		return
	}
	keys := n.keys[string(bucket)]
	if keys == nil {
		keys = map[string]struct{}{}
		n.keys[string(bucket)] = keys
	}
	if _, ok := keys[string(key)]; ok {
		return
	}
	keys[string(key)] = struct{}{}
	if n.bytes += len(key) + 64; n.bytes > maxNoted {
		n.giveUp()
	}
}

func (n *noted) giveUp() { n.outrun, n.keys = true, nil }

// take returns the keys noted so far and starts again.
func (n *noted) take() (map[string]map[string]struct{}, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.outrun {
		return nil, ErrOutrun
	}
	keys := n.keys
	n.keys, n.bytes = map[string]map[string]struct{}{}, 0
	return keys, nil
}

// BeginCopy begins a copy of a file, under a name that nothing has. Close follows.
func BeginCopy(db *DB, name string, o Options) (*Copy, error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	if db.noted != nil {
		return nil, fmt.Errorf("cannot copy %s: it is being copied", db.path)
	}
	db.noted = &noted{keys: map[string]map[string]struct{}{}}
	return &Copy{db: db, name: name, o: o}, nil
}

// Run copies what the file has. each is called between two steps, when no transaction is open, and its error ends the copy, which is
// checked in the end.
func (c *Copy) Run(each func() error) error {
	var buckets []string
	err := c.db.View(func(tx *Tx) (err error) {
		buckets, err = tx.bucketNames()
		return err
	})
	if err == nil {
		err = copyFile(c.name, &c.o, func(to *bbolt.DB) error {
			for _, bucket := range buckets {
				if err := c.copyBucket(to, bucket, each); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		c.fresh, err = Open(c.name, c.o)
	}
	return err
}

// copyBucket copies a bucket in steps, each from the current state. Later changes to copied parts are recorded.
func (c *Copy) copyBucket(to *bbolt.DB, bucket string, each func() error) error {
	for at := []byte{}; at != nil; {
		err := c.db.View(func(tx *Tx) (err error) {
			at, err = copyStep(to, tx, bucket, at, c.o.Fill)
			return err
		})
		if err == nil {
			err = each()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CatchUp applies to the copy, durably, the changes of the file since the copy began or since the last CatchUp. It returns the number
// of keys. If the file does not change meanwhile, the copy then equals the file.
func (c *Copy) CatchUp() (n int, err error) {
	err = Guard(c.db.path, func() error {
		keys, tx, err := c.changes()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for _, of := range keys {
			n += len(of)
		}
		if n == 0 {
			return nil
		}
		return c.fresh.Update(func(to *Tx) error {
			for _, bucket := range slices.Sorted(maps.Keys(keys)) {
				if err := copyKeys(to, tx, bucket, slices.SortedFunc(maps.Keys(keys[bucket]), strings.Compare)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return n, err
}

// changes returns the keys noted so far, and a transaction that sees their changes.
func (c *Copy) changes() (map[string]map[string]struct{}, *Tx, error) {
	c.db.writer.Lock() // no change is noted, and not to be seen yet
	defer c.db.writer.Unlock()
	keys, err := c.db.noted.take()
	if err != nil {
		return nil, nil, err
	}
	tx, err := c.db.Read()
	return keys, tx, err
}

// copyKeys makes the values of keys in a bucket those that another transaction sees.
func copyKeys(to, from *Tx, bucket string, keys []string) error {
	source := from.Bucket([]byte(bucket))
	if source == nil {
		return nil // the change that made it failed
	}
	b, err := to.CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return err
	}
	for _, key := range keys {
		k := []byte(key)
		sealed, err := source.Get(k)
		switch {
		case err != nil:
			return err
		case sealed == nil:
			err = b.Delete(k)
		default:
			err = b.put(k, sealed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Take returns the open copy, for its caller to give it the file's name. Close no longer removes it.
func (c *Copy) Take() *DB {
	fresh := c.fresh
	c.fresh, c.name = nil, ""
	return fresh
}

// Close ends the copy, and removes it unless it was taken.
func (c *Copy) Close() error {
	c.db.writer.Lock()
	c.db.noted = nil
	c.db.writer.Unlock()
	if c.name == "" {
		return nil
	}
	var err error
	if c.fresh != nil {
		err = c.fresh.Close()
	}
	if e := vfs.OS.Remove(c.name); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}
