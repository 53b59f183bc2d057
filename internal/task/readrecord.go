package task

import (
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/boltfile"
)

// record reads a task, or returns nil if there is none.
func (tx *txn) record(uid uint32) (*record, error) { return readRecord(tx.tasks, uid) }

// readRecord reads the record of a task, or returns nil if there is none. Damage is an *apierr.Corruption that names the task.
func readRecord(tasks *boltfile.Bucket, uid uint32) (*record, error) {
	v, err := boltfile.Get(tasks, key(uid))
	if v == nil && err == nil {
		return nil, nil
	}
	var r *record
	if err == nil {
		r, err = decodeRecord(v)
	}
	if err != nil {
		return nil, damagedTask(tasks, uid, err)
	}
	return r, nil
}

// readShown reads a task without its content, or returns nil if there is none.
func readShown(tasks *boltfile.Bucket, uid uint32, room Room) (*record, error) {
	v, err := boltfile.Get(tasks, key(uid))
	if v == nil && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, damagedTask(tasks, uid, err)
	}
	r, _, err := decodeShown(v, room)
	if errors.Is(err, errRecord) {
		err = damagedTask(tasks, uid, err)
	}
	return r, err
}

func damagedTask(tasks *boltfile.Bucket, uid uint32, err error) error {
	return &apierr.Corruption{File: fileName(tasks.Tx().Path()), Section: "tasks", Offset: -1, Reason: fmt.Sprintf("task %d: %v", uid, err)}
}

// lostTask is the error of a task that is known to be there, and that a page damaged since does not lead to any more.
func lostTask(tasks *boltfile.Bucket, uid uint32) error {
	return damagedTask(tasks, uid, errors.New("its record is not found where it was"))
}

// readHead reads the part of a task that decodeHead decodes. found is false if there is no task.
func readHead(tasks *boltfile.Bucket, uid uint32, r *record) (found bool, err error) {
	v, err := boltfile.Get(tasks, key(uid))
	if v == nil && err == nil {
		return false, nil
	}
	if err == nil {
		_, err = r.decodeHead(v)
	}
	if err != nil {
		return false, damagedTask(tasks, uid, err)
	}
	return true, nil
}

// eachOf calls f for the uids that a bucket has, in order, with their values, until f returns false. f must not change the
// bucket. damaged makes the error for a damaged value.
func eachOf(b *boltfile.Bucket, uids *roaring.Bitmap, damaged func(*boltfile.Bucket, uint32, error) error, f func(uid uint32, v []byte) (more bool, err error)) error {
	it := uids.Iterator()
	if !it.HasNext() {
		return nil
	}
	c := b.Cursor()
	k, v := c.Seek(key(it.PeekNext()))
	for k != nil && it.HasNext() {
		at, want := uidOf(k), it.PeekNext()
		switch {
		case at > want: // there is no such key
			it.Next()
		case at+1 < want: // far before it, maybe
			k, v = c.Seek(key(want))
		case at < want:
			k, v = c.Next()
		default:
			value, err := boltfile.Value(k, v)
			if err != nil {
				return damaged(b, at, err)
			}
			if more, err := f(at, value); !more || err != nil {
				return err
			}
			it.Next()
			k, v = c.Next()
		}
	}
	return nil
}

// storedBatchOf reads a batch and its tasks, or returns nil if there is none.
func storedBatchOf(batches *boltfile.Bucket, uid uint32, room Room) (*Batch, *roaring.Bitmap, error) {
	v, err := boltfile.Get(batches, key(uid))
	if v == nil && err == nil {
		return nil, nil, nil
	}
	if len(v) >= largeBytes && room != nil {
		if err := room.Hold(len(v)); err != nil {
			return nil, nil, err
		}
	}
	var b *Batch
	var tasks *roaring.Bitmap
	if err == nil {
		b, tasks, err = decodeBatch(uid, v)
	}
	if err != nil {
		return nil, nil, damagedBatch(batches, uid, err)
	}
	return b, tasks, nil
}

func damagedBatch(batches *boltfile.Bucket, uid uint32, err error) error {
	return &apierr.Corruption{File: fileName(batches.Tx().Path()), Section: "batches", Offset: -1, Reason: fmt.Sprintf("batch %d: %v", uid, err)}
}
