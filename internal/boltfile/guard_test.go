package boltfile

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"go.etcd.io/bbolt"

	"svc/internal/apierr"
)

// TestPagesThatChangeUnderAnOpenFile checks that a damaged page of an open file leads to an error, never to a crash: within a Guard, the
// file can be read, changed and closed.
func TestPagesThatChangeUnderAnOpenFile(t *testing.T) {
	name, want := made(t, rand.New(rand.NewPCG(1, 2)))
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for range 300 {
		if err := os.WriteFile(name, sound, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(name, options())
		if err != nil {
			t.Fatal(err)
		}
		last := LastTx(db)
		page := rand.IntN(len(sound) / os.Getpagesize())
		b := append([]byte(nil), sound[page*os.Getpagesize():][:os.Getpagesize()]...)
		for range 4 { // mostly in the structure of a page
			b[rand.IntN(64)] ^= 1 << rand.IntN(8)
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b, int64(page*os.Getpagesize())); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		_ = Guard(name, func() error { return holds(db, want) })
		err = Guard(name, func() error {
			tx, err := Begin(db, last)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			for k := range want {
				bucket := tx.Bucket(things)
				if bucket == nil {
					return errSum
				}
				if err := Put(bucket, at(k), []byte("new")); err != nil {
					return err
				}
			}
			return tx.Commit()
		})
		if apierr.IsCorruption(err) {
			damaged++
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if damaged == 0 {
		t.Error("no damage was detected")
	}
}

// TestALostRootStopsChanges checks that no change starts from the older root if the newest one was damaged after the file was opened.
func TestALostRootStopsChanges(t *testing.T) {
	name, _ := made(t, rand.New(rand.NewPCG(3, 4)))
	db, err := Open(name, options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	last := LastTx(db)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("damage"), int64(last%2*os.Getpagesize()+30)); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(db, last); !apierr.IsCorruption(err) {
		t.Errorf("a change begins: %v", err)
	}
	if now, err := Settle(db, last); !apierr.IsCorruption(err) || now != last {
		t.Errorf("transaction %d, %v", now, err)
	}
}

// TestPagesThatCannotBeRead checks that an unreadable page, here after the end of a truncated file, gives an error.
func TestPagesThatCannotBeRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system cannot truncate a mapped file")
	}
	name, want := made(t, rand.New(rand.NewPCG(5, 6)))
	db, err := Open(name, options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := os.Truncate(name, int64(2*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if err := Guard(name, func() error { return holds(db, want) }); !apierr.IsCorruption(err) {
		t.Error(err)
	}
}

// TestGuardPropagatesOtherPanics checks that Guard does not turn other panics into damage.
func TestGuardPropagatesOtherPanics(t *testing.T) {
	oops := errors.New("oops")
	for _, f := range []func(){func() { panic(oops) }, func() { var b *bbolt.Bucket; _ = *b }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a panic of another kind became an error")
				}
			}()
			_ = Guard("x", func() error { f(); return nil })
		}()
	}
}
