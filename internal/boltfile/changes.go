package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The encoded changes of a transaction:
//
//	u8       format of the file, that of Options
//	uvarint  number of buckets
//	         for each: its name
//	         edits, to the end, in the order in which they were made:
//	u8       what: editPut, editDelete or editEmpty
//	uvarint  bucket, by its place in the list above
//	         of editPut and editDelete, the key
//	         of editPut, the value as it stands in the file
//
// Names, keys and values are a uvarint length and as many bytes. The list has all buckets that the transaction leaves.
const (
	editPut    = 1
	editDelete = 2
	editEmpty  = 3 // the bucket was deleted and created again
)

// edit is one change of a file. A value must not change until the transaction ends: see Put.
type edit struct {
	what       byte
	bucket     string
	key, value []byte
}

// Record makes the transaction keep its further changes, for Changes.
func (t *Tx) Record() { t.recording = true }

func (t *Tx) record(what byte, bucket, key, value []byte) {
	if t.recording {
		t.edits = append(t.edits, edit{what, string(bucket), bytes.Clone(key), value})
	}
}

// Changes returns the encoded changes of the transaction since Record, before it is committed. Apply makes the same changes in
// another file.
func (t *Tx) Changes() ([]byte, error) {
	meta := t.Bucket(metaBucket)
	if meta == nil {
		return nil, fmt.Errorf("cannot record a change of %s: it has no format version", t.db.path)
	}
	format, err := meta.Get(formatKey)
	if err != nil || len(format) != 1 {
		return nil, errors.Join(err, fmt.Errorf("cannot record a change of %s: it has format version %d", t.db.path, format))
	}
	names, err := t.bucketNames()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == string(metaBucket) })
	size := 16
	for i := range t.edits {
		e := &t.edits[i]
		size += 12 + len(e.key) + len(e.value)
		if !slices.Contains(names, e.bucket) {
			return nil, fmt.Errorf("cannot record a change of %s: it deletes the bucket %q", t.db.path, e.bucket)
		}
	}
	b := append(make([]byte, 0, size+32*len(names)), format...)
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, name := range names {
		b = appendBytes(b, []byte(name))
	}
	for i := range t.edits {
		e := &t.edits[i]
		b = binary.AppendUvarint(append(b, e.what), uint64(slices.Index(names, e.bucket)))
		if e.what != editEmpty {
			b = appendBytes(b, e.key)
		}
		if e.what == editPut {
			b = appendBytes(b, e.value)
		}
	}
	return b, nil
}

func appendBytes(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

// Changes are what a transaction has changed.
type Changes struct {
	Format  byte // of the file
	buckets [][]byte
	edits   []edit
}

var errChanges = errors.New("the changes of a transaction are damaged")

// DecodeChanges reads what Tx.Changes returned. The result refers to b.
func DecodeChanges(b []byte) (*Changes, error) {
	bad := false
	number := func() uint64 {
		n, length := binary.Uvarint(b)
		if length <= 0 {
			bad, b = true, nil
			return 0
		}
		b = b[length:]
		return n
	}
	text := func() []byte {
		n := number()
		if n > uint64(len(b)) {
			bad, b = true, nil
			return nil
		}
		s := b[:n:n]
		b = b[n:]
		return s
	}
	if len(b) == 0 {
		return nil, errChanges
	}
	c := &Changes{Format: b[0]}
	b = b[1:]
	for n := number(); n > 0 && !bad; n-- {
		name := text()
		if len(name) == 0 || bytes.Equal(name, metaBucket) || slices.ContainsFunc(c.buckets, func(other []byte) bool { return bytes.Equal(other, name) }) {
			bad = true
			break
		}
		c.buckets = append(c.buckets, name)
	}
	for len(b) > 0 && !bad {
		e := edit{what: b[0]}
		b = b[1:]
		at := number()
		if at >= uint64(len(c.buckets)) || e.what < editPut || e.what > editEmpty {
			bad = true
			break
		}
		e.bucket = string(c.buckets[at])
		if e.what != editEmpty {
			if e.key = text(); len(e.key) == 0 {
				bad = true
			}
		}
		if e.what == editPut {
			e.value = text()
		}
		c.edits = append(c.edits, e)
	}
	if bad {
		return nil, errChanges
	}
	return c, nil
}

// Each calls f with each value that was put and each key that was deleted, in order, until f returns an error. stored is the value as
// in the file (see Value); nil: the key was deleted. For a bucket that was emptied, key is nil.
func (c *Changes) Each(f func(bucket string, key, stored []byte) error) error {
	for i := range c.edits {
		e := &c.edits[i]
		if err := f(e.bucket, e.key, e.value); err != nil {
			return err
		}
	}
	return nil
}

// Apply makes the changes of another file's transaction, in one transaction: durably, or none of them. Applied again they change nothing.
func (db *DB) Apply(c *Changes) error {
	return db.Update(func(tx *Tx) error { return tx.Apply(c) })
}

// Apply makes the changes of another file's transaction in this one.
func (t *Tx) Apply(c *Changes) error {
	buckets := map[string]*Bucket{}
	for _, name := range c.buckets {
		b, err := t.CreateBucketIfNotExists(name)
		if err != nil {
			return err
		}
		buckets[string(name)] = b
	}
	for i := range c.edits {
		e := &c.edits[i]
		b := buckets[e.bucket]
		var err error
		switch e.what {
		case editPut:
			err = b.put(e.key, e.value)
		case editDelete:
			err = b.Delete(e.key)
		case editEmpty:
			if err = t.DeleteBucket([]byte(e.bucket)); err == nil {
				buckets[e.bucket], err = t.CreateBucket([]byte(e.bucket))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
