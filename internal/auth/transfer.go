package auth

import (
	"fmt"
	"io"

	"svc/internal/boltfile"
)

// Copy calls f with the current size of the file of keys and a function that writes it.
func (k *Keys) Copy(f func(size int64, write func(io.Writer) error) error) error {
	return k.db.Load().View(func(tx *boltfile.Tx) error {
		return f(tx.Size(), func(w io.Writer) error {
			if _, err := tx.WriteTo(w); err != nil {
				return fmt.Errorf("cannot copy the API keys: %w", err)
			}
			return nil
		})
	})
}

// Replace replaces all keys, all or nothing. An empty list means the default keys.
func (k *Keys) Replace(keys []*Key) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(keys) == 0 {
		keys = defaults(k.now())
	}
	err := k.update(func(tx *boltfile.Tx) error {
		if err := tx.DeleteBucket(keyBucket); err != nil {
			return err
		}
		b, err := tx.CreateBucket(keyBucket)
		if err != nil {
			return err
		}
		for _, key := range keys {
			v, err := key.encode()
			if err != nil {
				return err
			}
			if err := boltfile.Put(b, key.UID[:], v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot store the API keys: %w", err)
	}
	k.show(keys)
	return nil
}
