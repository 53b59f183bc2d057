package boltfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"svc/internal/apierr"
)

// TestCopyBesideWriters copies a file while it changes: the copy must have the same content, and no free pages except those of
// the last changes.
func TestCopyBesideWriters(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5 {
		name, want := made(t, r)
		db, err := Open(name, options())
		if err != nil {
			t.Fatal(err)
		}
		copied, err := BeginCopy(db, name+".copy", options())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := BeginCopy(db, name+".other", options()); err == nil {
			t.Error("two copies run at the same time")
		}
		failed := errors.New("failed")
		change := func() error {
			// A transaction that is rolled back is no change.
			if err := db.Update(func(tx *Tx) error { return errors.Join(tx.Bucket(things).Delete(at(uint32(r.IntN(900)))), failed) }); !errors.Is(err, failed) {
				return err
			}
			return changeSome(db, r, want)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := copied.Run(change); err != nil {
			t.Fatal(err)
		}
		for range r.IntN(3) {
			if n, err := copied.CatchUp(); err != nil || n == 0 {
				t.Fatalf("%d changes, %v", n, err)
			}
			if err := change(); err != nil {
				t.Fatal(err)
			}
		}
		// A new bucket.
		if err := db.Update(func(tx *Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("new"))
			if err == nil {
				err = Put(b, at(1), []byte("one"))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if n, err := copied.CatchUp(); err != nil || n == 0 {
			t.Fatalf("%d changes, %v", n, err)
		}
		if n, err := copied.CatchUp(); err != nil || n != 0 {
			t.Fatalf("%d changes, %v", n, err)
		}
		fresh := copied.Take()
		if err := copied.Close(); err != nil {
			t.Fatal(err)
		}
		if err := changeSome(db, r, map[uint32]string{}); err != nil { // which is no longer recorded
			t.Fatal(err)
		}
		if err := errors.Join(db.Close(), holds(fresh, want)); err != nil {
			t.Fatal(err)
		}
		err = fresh.View(func(tx *Tx) error {
			v, err := Get(tx.Bucket([]byte("new")), at(1))
			if string(v) != "one" {
				err = errors.Join(err, fmt.Errorf("the new bucket has %q", v))
			}
			return err
		})
		if err := errors.Join(err, fresh.Close()); err != nil {
			t.Fatal(err)
		}
		again, err := Open(name+".copy", options())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(holds(again, want), again.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCopyBesideABusyWriter checks that a copy has the same content as the file, whoever changes the file at any time.
func TestCopyBesideABusyWriter(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	name, want := made(t, r)
	db, err := Open(name, options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := changeSome(db, r, want); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var copied *Copy
	for range 20 {
		if copied != nil {
			if err := copied.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if copied, err = BeginCopy(db, name+".copy", options()); err != nil {
			t.Fatal(err)
		}
		if err := copied.Run(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, err := copied.CatchUp(); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	writer.Wait()
	if _, err := copied.CatchUp(); err != nil {
		t.Fatal(err)
	}
	fresh := copied.Take()
	if err := errors.Join(copied.Close(), holds(fresh, want), fresh.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestCopyFails checks that a failed or canceled copy leaves nothing, and that the file can be copied again.
func TestCopyFails(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	name, _ := made(t, r)
	db, err := Open(name, options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stop := errors.New("stop")
	none := func() error { return nil }
	ends := map[string]func(*Copy) error{
		"each": func(c *Copy) error { return c.Run(func() error { return stop }) },
		"outrun": func(c *Copy) error {
			if err := c.Run(none); err != nil {
				return err
			}
			db.noted.bytes = maxNoted
			if err := changeSome(db, r, map[uint32]string{}); err != nil {
				return err
			}
			if _, err := c.CatchUp(); !errors.Is(err, ErrOutrun) {
				return err
			}
			return stop
		},
		"canceled":  func(c *Copy) error { return errors.Join(c.Run(none), stop) },
		"never run": func(*Copy) error { return stop },
	}
	for what, end := range ends {
		c, err := BeginCopy(db, name+".copy", options())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := end(c); !errors.Is(err, stop) {
			t.Errorf("%s: %v", what, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(name + ".copy"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the copy is left: %v", what, err)
		}
		if db.Readers() != 0 {
			t.Errorf("%s: a reader is left open", what)
		}
	}
}

// TestCopyOfADamagedFile checks that copying does not hide damage.
func TestCopyOfADamagedFile(t *testing.T) {
	name, want := made(t, rand.New(rand.NewPCG(2, 2)))
	db, err := Open(name, options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if len(want) == 0 {
		t.Fatal("the file is empty")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	damaged := 0
	for page := int64(2); page < int64(len(b))/db.pages.size; page++ {
		if !db.pages.inUse(uint64(page)) || uint64(page) == db.root.freeList {
			continue
		}
		damaged++
		at := page*db.pages.size + 20
		if _, err := f.WriteAt([]byte{b[at] ^ 1}, at); err != nil {
			t.Fatal(err)
		}
		c, err := BeginCopy(db, filepath.Join(t.TempDir(), "copy"), options())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(func() error { return nil }); !apierr.IsCorruption(err) {
			t.Errorf("page %d: %v", page, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b[at:at+1], at); err != nil {
			t.Fatal(err)
		}
	}
	if damaged < 20 {
		t.Errorf("only %d pages", damaged)
	}
}

// TestSeek checks that a cursor finds the first key from a given one on, in any leaf.
func TestSeek(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	name, want := made(t, r)
	db, err := Open(name, options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *Tx) error {
		c := tx.Bucket(things).Cursor()
		for from := range uint32(810) {
			next := from
			for ; next < 810; next++ {
				if _, ok := want[next]; ok {
					break
				}
			}
			k, v := c.Seek(at(from))
			for range 3 {
				if next == 810 {
					if k != nil {
						return fmt.Errorf("seek %d: got key %x", from, k)
					}
					break
				}
				value, err := Value(k, v)
				if err != nil || string(k) != string(at(next)) || string(value) != want[next] {
					return fmt.Errorf("seek %d: got %x, %q, want %d, %q: %v", from, k, value, next, want[next], err)
				}
				for next++; next < 810; next++ {
					if _, ok := want[next]; ok {
						break
					}
				}
				k, v = c.Next()
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
