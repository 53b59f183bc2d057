package boltfile

import (
	"bytes"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"svc/internal/apierr"
)

// Tx is a transaction. It belongs to one goroutine.
type Tx struct {
	db       *DB
	tx       *bbolt.Tx
	id       uint64 // of the transaction whose pages it sees
	root     uint64 // page of the bucket of buckets
	writes   bool
	ended    bool
	compared *pageMemory // pages that were what they should be; nil: none yet
	known    [knownRanges]keyRange

	recording bool   // see Record
	edits     []edit // since then
}

// ID returns the number of the transaction whose state it sees or, for a change, its own number.
func (t *Tx) ID() int { return t.tx.ID() }

// Path returns the name that the file was opened under.
func (t *Tx) Path() string { return t.db.path }

// Size returns the bytes of the file.
func (t *Tx) Size() int64 { return t.tx.Size() }

// WriteTo writes the whole file, unchecked.
func (t *Tx) WriteTo(w io.Writer) (int64, error) { return t.tx.WriteTo(w) }

// CopyFile writes the whole file, unchecked, to another one.
func (t *Tx) CopyFile(name string) error { return t.tx.CopyFile(name, 0o600) }

// freeList compares the list of free pages, which bbolt frees with each change and reads again after one that failed.
func (t *Tx) freeList() error {
	if t.db.root.freeList == noFreeList {
		return nil
	}
	_, err := t.page(t.db.root.freeList)
	return err
}

// Commit writes a change. If bbolt panics, its list of free pages is unreliable, so nothing more is written.
func (t *Tx) Commit() error {
	db := t.db
	own := uint64(t.tx.ID())
	db.setCommitting(true)
	done := false
	defer func() {
		db.setCommitting(false)
		if done {
			t.end()
		} else {
			db.lose(fmt.Errorf("writes to %s have stopped: %w", db.path, &apierr.Corruption{File: db.path, Offset: -1,
				Reason: "a page was corrupted before it was changed. Restart, or restore the file from a snapshot"}))
		}
	}()
	err := t.tx.Commit()
	done = true
	// The commit may have failed after its root was written, and then readers see it.
	r, e := db.pages.rootOf(own, int64(own%2))
	if e == nil {
		e = db.pages.take(r)
	}
	switch {
	case e == nil:
		db.mu.Lock()
		db.root = r
		db.known.Store(own)
		db.mu.Unlock()
	case err == nil:
		err = fmt.Errorf("cannot read what was written to %s: %w", db.path, e)
		db.lose(err)
	}
	return err
}

// Rollback ends a transaction; without effect after a commit.
func (t *Tx) Rollback() {
	if t.ended {
		return
	}
	defer t.end()
	if t.db.held.Load() {
		return
	}
	done := false
	defer func() {
		if !done {
			t.db.held.Store(true)
		}
	}()
	_ = t.tx.Rollback() // it can only be closed already
	done = true
}

// end gives back what the transaction holds. Calling it again does nothing.
func (t *Tx) end() {
	if !t.ended && t.writes {
		t.db.writer.Unlock()
	}
	t.ended = true
	if t.compared != nil {
		t.db.pages.done(t.compared)
		t.compared, t.known = nil, [knownRanges]keyRange{}
	}
}

// failure is the value of panics for Guard.
type failure struct{ err error }

func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Bucket returns a bucket, or nil. It panics for Guard if a page on the path is damaged.
func (t *Tx) Bucket(name []byte) *Bucket {
	must(t.sound(t.root, name, false))
	return t.wrap(name, t.tx.Bucket(name))
}

func (t *Tx) wrap(name []byte, b *bbolt.Bucket) *Bucket {
	if b == nil {
		return nil
	}
	return &Bucket{tx: t, name: name, bolt: b, root: uint64(b.Root())}
}

// CreateBucket makes a bucket.
func (t *Tx) CreateBucket(name []byte) (*Bucket, error) {
	if t.Bucket(name) != nil {
		return nil, bolterrors.ErrBucketExists
	}
	b, err := t.tx.CreateBucket(name)
	return t.wrap(name, b), err
}

// CreateBucketIfNotExists returns a bucket, and creates it if there is none.
func (t *Tx) CreateBucketIfNotExists(name []byte) (*Bucket, error) {
	if b := t.Bucket(name); b != nil {
		return b, nil
	}
	return t.CreateBucket(name)
}

// DeleteBucket removes a bucket with all that is in it.
func (t *Tx) DeleteBucket(name []byte) error {
	if b := t.Bucket(name); b != nil {
		if err := b.ForEach(func(k, v []byte) error { return nil }); err != nil {
			return err
		}
	}
	if _, _, _, err := t.way(t.root, name, true); err != nil {
		return err
	}
	if n := t.db.noted; n != nil {
		n.mu.Lock()
		n.giveUp()
		n.mu.Unlock()
	}
	t.record(editEmpty, name, nil, nil)
	return t.tx.DeleteBucket(name)
}

// ForEach calls f with all buckets.
func (t *Tx) ForEach(f func(name []byte, b *Bucket) error) error {
	c := Cursor{tx: t, root: t.root, bolt: t.tx.Cursor()}
	for name, _ := c.First(); name != nil; name, _ = c.Next() {
		if err := f(name, t.Bucket(name)); err != nil {
			return err
		}
	}
	return nil
}

// Bucket is a bucket in a transaction.
type Bucket struct {
	tx   *Tx
	name []byte
	bolt *bbolt.Bucket
	root uint64 // its page; 0: it is inside a page of the bucket of buckets, or new
}

// Tx returns the transaction.
func (b *Bucket) Tx() *Tx { return b.tx }

// Fill sets how full pages become that are split: a share.
func (b *Bucket) Fill(share float64) { b.bolt.FillPercent = share }

// sound compares the pages on the way to a key, and for a deletion also those beside them.
func (b *Bucket) sound(key []byte, deleted bool) error {
	if b.root == 0 {
		return nil
	}
	return b.tx.sound(b.root, key, deleted)
}

// Get returns the stored value of a key, as in the file, or nil.
func (b *Bucket) Get(key []byte) ([]byte, error) {
	if err := b.sound(key, false); err != nil {
		return nil, err
	}
	return b.bolt.Get(key), nil
}

// put stores the value of a key, as in the file. Both belong to bbolt until the transaction ends.
func (b *Bucket) put(key, sealed []byte) error {
	if err := b.sound(key, false); err != nil {
		return err
	}
	b.note(key)
	b.tx.record(editPut, b.name, key, sealed)
	return b.bolt.Put(key, sealed)
}

// note records a change for a copy that is being made of the file.
func (b *Bucket) note(key []byte) {
	if n := b.tx.db.noted; n != nil {
		n.note(b.name, key)
	}
}

// Delete removes a key.
func (b *Bucket) Delete(key []byte) error {
	if err := b.sound(key, true); err != nil {
		return err
	}
	b.note(key)
	b.tx.record(editDelete, b.name, key, nil)
	return b.bolt.Delete(key)
}

// ForEach calls f with all keys, in order, and their stored values.
func (b *Bucket) ForEach(f func(k, v []byte) error) error {
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if err := f(k, v); err != nil {
			return err
		}
	}
	return nil
}

// Cursor returns a cursor on the bucket, which must not change meanwhile.
func (b *Bucket) Cursor() *Cursor { return &Cursor{tx: b.tx, root: b.root, bolt: b.bolt.Cursor()} }

// Cursor walks through a bucket in the order of keys. Its methods panic for Guard where a page on the way is damaged.
type Cursor struct {
	tx         *Tx
	root       uint64
	bolt       *bbolt.Cursor
	last, next []byte // of the leaf it is in the last key, nil: none; and the first key behind it, nil: none
	ends       bool   // it stands at last
}

// First moves to the first key and returns it with its value; nil when there is none.
func (c *Cursor) First() (k, v []byte) {
	c.to(nil)
	k, v = c.bolt.First()
	c.ends = bytes.Equal(k, c.last)
	return k, v
}

// Seek moves to a key, or to the next one, and returns it with its value. It returns nil if there is none.
func (c *Cursor) Seek(key []byte) (k, v []byte) {
	c.to(key)
	if c.last != nil && c.next != nil && bytes.Compare(key, c.last) > 0 {
		c.to(c.next) // where bbolt continues
	}
	k, v = c.bolt.Seek(key)
	c.ends = bytes.Equal(k, c.last)
	return k, v
}

// Next moves to the next key and returns it with its value, or nil at the end.
func (c *Cursor) Next() (k, v []byte) {
	if c.ends && c.next != nil {
		c.to(c.next)
	}
	k, v = c.bolt.Next()
	c.ends = bytes.Equal(k, c.last)
	return k, v
}

// to makes sure of the pages on the way to a key, and of the key that follows.
func (c *Cursor) to(key []byte) {
	if c.root == 0 {
		return
	}
	leaf, page, next, err := c.tx.way(c.root, key, false)
	must(err)
	c.next = next
	c.last, err = c.tx.db.pages.lastKey(leaf, page)
	must(err)
}
