package boltfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

func openChanged(t testing.TB, buckets ...string) *DB {
	t.Helper()
	o := Options{Format: 3, NoSync: true}
	for _, b := range buckets {
		o.Buckets = append(o.Buckets, []byte(b))
	}
	db, err := Open(filepath.Join(t.TempDir(), "x.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// contentOf returns the whole content of a file, including its buckets.
func contentOf(t testing.TB, db *DB) string {
	t.Helper()
	var b bytes.Buffer
	err := db.View(func(tx *Tx) error {
		return tx.ForEach(func(name []byte, bucket *Bucket) error {
			fmt.Fprintf(&b, "[%s]\n", name)
			return bucket.ForEach(func(k, v []byte) error {
				fmt.Fprintf(&b, "%q %q\n", k, v)
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// recordedUpdate runs Update with Record, and returns the recorded changes.
func recordedUpdate(t testing.TB, db *DB, f func(*Tx) error) (changes []byte) {
	t.Helper()
	err := db.Update(func(tx *Tx) error {
		tx.Record()
		err := f(tx)
		if err == nil {
			changes, err = tx.Changes()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// TestChangesMakeTheSameFile runs random transactions and applies their recorded changes to an empty file, each once or twice.
func TestChangesMakeTheSameFile(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	from, to := openChanged(t, "one", "two"), openChanged(t)
	emptied, deleted := 0, 0
	for range 60 {
		b := recordedUpdate(t, from, func(tx *Tx) error {
			for range r.IntN(6) {
				name := []byte([]string{"one", "two", "late"}[r.IntN(3)])
				bucket, err := tx.CreateBucketIfNotExists(name)
				if err != nil {
					return err
				}
				key := []byte{byte(r.IntN(20))}
				switch n := r.IntN(10); {
				case n < 6:
					err = Put(bucket, key, bytes.Repeat(key, r.IntN(300)))
				case n < 9:
					err = bucket.Delete(key)
					deleted++
				default:
					if err = tx.DeleteBucket(name); err == nil {
						_, err = tx.CreateBucket(name)
					}
					emptied++
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		c, err := DecodeChanges(b)
		if err != nil || c.Format != 3 {
			t.Fatalf("%+v: %v", c, err)
		}
		for range 1 + r.IntN(2) {
			if err := to.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := contentOf(t, to), contentOf(t, from); got != want {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
	}
	if emptied == 0 || deleted == 0 {
		t.Errorf("%d buckets were emptied, and %d keys deleted", emptied, deleted)
	}
}

// goldenChanges has one edit of each kind.
const goldenChanges = "\x03" + "\x02" + "\x03one" + "\x03two" +
	"\x01\x00" + "\x01k" + "\x05vdc\xa2\xb4" +
	"\x02\x01" + "\x01d" +
	"\x03\x01"

func TestFormatOfChanges(t *testing.T) {
	db := openChanged(t, "one", "two")
	b := recordedUpdate(t, db, func(tx *Tx) error {
		if err := Put(tx.Bucket([]byte("one")), []byte("k"), []byte("v")); err != nil {
			return err
		}
		if err := tx.Bucket([]byte("two")).Delete([]byte("d")); err != nil {
			return err
		}
		if err := tx.DeleteBucket([]byte("two")); err != nil {
			return err
		}
		_, err := tx.CreateBucket([]byte("two"))
		return err
	})
	if string(b) != goldenChanges {
		t.Errorf("%q, want %q", b, goldenChanges)
	}
	err := db.Update(func(tx *Tx) error {
		tx.Record()
		if err := tx.DeleteBucket([]byte("two")); err != nil {
			return err
		}
		if b, err := tx.Changes(); err == nil {
			t.Errorf("the deletion of a bucket is recorded: %q", b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamagedChanges(t *testing.T) {
	for n := range len(goldenChanges) {
		if c, err := DecodeChanges([]byte(goldenChanges[:n])); err == nil && len(c.edits) == 3 {
			t.Errorf("cut to %d bytes: %+v", n, c)
		}
	}
	for _, bad := range []string{
		"", "\x03\x01\x00", "\x03\x01\x04meta", "\x03\x02\x01a\x01a", // buckets: none, without a name, that of the format, twice
		"\x03\x01\x01a\x00\x00\x01k", "\x03\x01\x01a\x04\x00\x01k", "\x03\x01\x01a\x02\x01\x01k", "\x03\x01\x01a\x02\x00\x00", // edits: unknown, of no bucket, without a key
	} {
		if c, err := DecodeChanges([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, c)
		}
	}
}

// FuzzChanges applies any bytes that can be decoded as changes.
func FuzzChanges(f *testing.F) {
	f.Add([]byte(goldenChanges))
	db := openChanged(f, "one")
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeChanges(b)
		if err != nil {
			return
		}
		before := contentOf(t, db)
		if err := db.Apply(c); err != nil && contentOf(t, db) != before {
			t.Fatalf("failed changes have an effect: %v", err)
		}
	})
}
