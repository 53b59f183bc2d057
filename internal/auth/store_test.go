package auth

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"

	"svc/internal/apierr"
	"svc/internal/boltfile"
)

const master = "a-master-key-of-16+bytes"

// clock is a clock that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func openStore(t *testing.T, file, master string, now func() time.Time) *Keys {
	t.Helper()
	k, err := Open(Options{File: file, MasterKey: master, Now: now, noSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func closeStore(t *testing.T, k *Keys) {
	t.Helper()
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// newStore opens a store without keys.
func newStore(t *testing.T) (*Keys, *clock) {
	t.Helper()
	c := newClock()
	k := openStore(t, filepath.Join(t.TempDir(), "auth.db"), master, c.now)
	t.Cleanup(func() { closeStore(t, k) })
	for _, key := range k.List() {
		if err := k.Delete(key.UID.String()); err != nil {
			t.Fatal(err)
		}
	}
	return k, c
}

func create(t *testing.T, k *Keys, uid string, actions, indexes []string) *Key {
	t.Helper()
	key, err := k.Create(Key{UID: uuid.MustParse(uid), Actions: actions, Indexes: indexes})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

const someUID = "00000001-5e11-4c0d-9a57-0123456789ab"

func TestDefaultKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth.db")
	k := openStore(t, file, "", newClock().now)
	var names []string
	var held [][]string
	for _, key := range k.List() {
		names = append(names, *key.Name)
		held = append(held, key.Actions)
		if k.Value(key) != "" || !reflect.DeepEqual(key.Indexes, []string{"*"}) || !key.ExpiresAt.IsZero() || key.UID.Version() != 4 {
			t.Errorf("%+v has the value %q", key, k.Value(key))
		}
	}
	if want := []string{"Default Search API Key", "Default Admin API Key", "Default Read-Only Admin API Key", "Default Chat API Key"}; !slices.Equal(names, want) {
		t.Errorf("default keys are %q", names)
	}
	if want := [][]string{{"search"}, {"*"}, {"*.get", "keys.get"}, {"chatCompletions", "search"}}; !reflect.DeepEqual(held, want) {
		t.Errorf("their actions are %q", held)
	}
	before := k.List()
	if err := k.Delete(before[0].UID.String()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, k)

	k = openStore(t, file, master, newClock().now)
	defer closeStore(t, k)
	if got := k.List(); !reflect.DeepEqual(got, before[1:]) {
		t.Errorf("after a restart: %v, want %v", got, before[1:])
	}
	if got, err := k.Find(k.Value(before[1])); err != nil || got.UID != before[1].UID {
		t.Errorf("with a master key, Find returns %v, %v", got, err)
	}
}

func TestUnknownKeys(t *testing.T) {
	k, _ := newStore(t)
	create(t, k, someUID, []string{"search"}, []string{"*"})
	for _, uid := range []string{"", "unknown", "00000063-5e11-4c0d-9a57-0123456789ab", "e59483821d87634875da504f2f184393cea05629a4bcd2f0975ca23276307ecd"} {
		_, findErr := k.Find(uid)
		_, updateErr := k.Update(uid, Change{})
		for _, err := range []error{findErr, updateErr, k.Delete(uid)} {
			if codeOf(err) != "api_key_not_found" {
				t.Errorf("%q: %v", uid, err)
			}
		}
	}
	if _, err := k.Create(Key{UID: uuid.MustParse(someUID)}); codeOf(err) != "api_key_already_exists" {
		t.Errorf("a second key with the uid: %v", err)
	}
}

// TestFailedWritesChangeNothing closes the file of the store: failed changes must have no effect.
func TestFailedWritesChangeNothing(t *testing.T) {
	k := openStore(t, filepath.Join(t.TempDir(), "auth.db"), master, newClock().now)
	before := k.List()
	closeStore(t, k)
	text := "new"
	if _, err := k.Create(Key{UID: uuid.New()}); err == nil {
		t.Error("a creation succeeds without a file")
	}
	if _, err := k.Update(before[0].UID.String(), Change{Name: Text{true, &text}}); err == nil {
		t.Error("an update succeeds without a file")
	}
	if err := k.Delete(before[0].UID.String()); err == nil {
		t.Error("a deletion succeeds without a file")
	}
	if got := k.List(); !reflect.DeepEqual(got, before) {
		t.Errorf("got %v, want %v", got, before)
	}
}

func TestDamagedFile(t *testing.T) {
	stored := func(uid []byte, key string) func(string) error {
		return func(file string) error {
			db, err := boltfile.Open(file, boltfile.Options{Format: formatVersion})
			if err != nil {
				return err
			}
			err = db.Update(func(tx *boltfile.Tx) error { return boltfile.Put(tx.Bucket(keyBucket), uid, []byte(key)) })
			return errors.Join(err, db.Close())
		}
	}
	unsealed := func(bucket, key, value []byte) func(string) error {
		return func(file string) error {
			db, err := bbolt.Open(file, 0o600, nil)
			if err != nil {
				return err
			}
			err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key, value) })
			return errors.Join(err, db.Close())
		}
	}
	for name, damage := range map[string]func(string) error{
		"not JSON":       stored(make([]byte, 16), "{"),
		"short uid":      stored([]byte{1}, "{}"),
		"unknown action": stored(make([]byte, 16), `{"actions":["all"]}`),
		"checksum":       unsealed(keyBucket, make([]byte, 16), []byte(`{"actions":["*"]}`)),
		"format":         unsealed([]byte("meta"), []byte("format"), []byte{formatVersion + 1}),
	} {
		file := filepath.Join(t.TempDir(), "auth.db")
		closeStore(t, openStore(t, file, master, nil))
		if err := damage(file); err != nil {
			t.Fatal(err)
		}
		k, err := Open(Options{File: file})
		if err == nil {
			t.Errorf("%s: the store opens", name)
			closeStore(t, k)
		} else if apierr.IsCorruption(err) != (name != "format") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRandomWalk makes the same changes to a store and to a map, reopens the store now and then with another master key, and compares
// everything visible.
func TestRandomWalk(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	file := filepath.Join(t.TempDir(), "auth.db")
	c := newClock()
	key := master
	k := openStore(t, file, key, c.now)
	defer func() { closeStore(t, k) }()
	model := map[uuid.UUID]Key{}
	for _, d := range k.List() {
		model[d.UID] = *d
	}
	gone := map[uuid.UUID]bool{}
	any := func() uuid.UUID { // uid of an existing key
		uids := slices.SortedFunc(maps.Keys(model), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		return uids[r.IntN(len(uids))]
	}
	name := func(uid uuid.UUID) string { // uid or value
		if r.IntN(2) == 0 {
			return uid.String()
		}
		v := derive(key, uid)
		return v.text()
	}
	text := func() *string {
		if r.IntN(3) == 0 {
			return nil
		}
		s := string(rune('a' + r.IntN(26)))
		return &s
	}
	limits := func() RateLimit { return RateLimit{r.IntN(3), r.IntN(2), r.IntN(3)} }
	for range 400 {
		c.at = c.at.Add(time.Duration(1 + r.IntN(1e9)))
		switch n := r.IntN(10); {
		case n < 4:
			n := Key{UID: uuid.UUID{0: byte(r.IntN(40)), 6: 0x40, 8: 0x80}, Name: text(), Description: text(), Actions: []string{"search"}, Indexes: []string{"a*"}}
			n.RateLimit = limits()
			if r.IntN(2) == 0 {
				n.ExpiresAt = c.at.Add(time.Duration(r.IntN(1e9)) * 100)
			}
			_, exists := model[n.UID]
			_, err := k.Create(n)
			if (err != nil) != exists {
				t.Fatalf("creation of %s: %v", n.UID, err)
			}
			if err == nil {
				n.CreatedAt, n.UpdatedAt = c.at, c.at
				model[n.UID] = n
				delete(gone, n.UID)
			}
		case n < 6 && len(model) > 0:
			uid := any()
			ch := Change{Name: Text{r.IntN(2) == 0, text()}, Description: Text{r.IntN(2) == 0, text()}}
			m := model[uid]
			if r.IntN(2) == 0 {
				m.RateLimit = limits()
				ch.RateLimit = &m.RateLimit
			}
			if ch.Name.Given {
				m.Name = ch.Name.Text
			}
			if ch.Description.Given {
				m.Description = ch.Description.Text
			}
			m.UpdatedAt = c.at
			model[uid] = m
			if _, err := k.Update(name(uid), ch); err != nil {
				t.Fatal(err)
			}
		case n < 8 && len(model) > 1:
			uid := any()
			if err := k.Delete(name(uid)); err != nil {
				t.Fatal(err)
			}
			delete(model, uid)
			gone[uid] = true
		case n == 9:
			closeStore(t, k)
			key = []string{master, "another-master-key"}[r.IntN(2)]
			k = openStore(t, file, key, c.now)
		}
		var want []*Key
		for _, m := range model {
			want = append(want, &m)
		}
		slices.SortFunc(want, newestFirst)
		if got := k.List(); !equalKeys(got, want) {
			t.Fatalf("keys are %v, want %v", got, want)
		}
		for uid, m := range model {
			v := derive(key, uid)
			_, err := k.Authorize(v.text(), "search", "ab")
			may := slices.Contains(m.Actions, "search") || slices.Contains(m.Actions, "*") || slices.Contains(m.Actions, "*.get")
			if open := may && (m.ExpiresAt.IsZero() || c.at.Before(m.ExpiresAt)); (err == nil) != open {
				t.Fatalf("at %v, key %+v: %v", c.at, m, err)
			}
		}
		for uid := range gone {
			v := derive(key, uid)
			if _, err := k.Authorize(v.text(), "search", "ab"); err == nil {
				t.Fatalf("the deleted key %s is accepted", uid)
			}
		}
	}
}

func equalKeys(a, b []*Key) bool {
	return slices.EqualFunc(a, b, func(a, b *Key) bool {
		x, y := *a, *b
		same := x.ExpiresAt.Equal(y.ExpiresAt) && x.CreatedAt.Equal(y.CreatedAt) && x.UpdatedAt.Equal(y.UpdatedAt)
		x.ExpiresAt, x.CreatedAt, x.UpdatedAt = y.ExpiresAt, y.CreatedAt, y.UpdatedAt
		return same && reflect.DeepEqual(x, y)
	})
}

// TestReadersAndWriters is for the race detector. It also checks that an unchanged key is always known.
func TestReadersAndWriters(t *testing.T) {
	k, _ := newStore(t)
	stays := create(t, k, someUID, []string{"search"}, []string{"*"})
	value := k.Value(stays)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 50 {
				key, err := k.Create(Key{UID: uuid.New(), Actions: []string{"search"}, Indexes: []string{"*"}})
				if err == nil {
					err = k.Delete(key.UID.String())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		done.Go(func() {
			for range 2000 {
				if _, err := k.Authorize(value, "search", "a"); err != nil {
					t.Error(err)
				}
				k.List()
			}
		})
	}
	done.Wait()
	if got := k.List(); len(got) != 1 {
		t.Errorf("%d keys are left", len(got))
	}
}

// codeOf returns the code of an error for a caller, or "".
func codeOf(err error) apierr.Code {
	if err == nil {
		return ""
	}
	return apierr.From(err).Code
}

// TestAFailedChangeOfAKeyIsUndone checks that a key whose creation failed is not accepted, now or after a restart, although the change may
// have reached the disk. The store must stay usable.
func TestAFailedChangeOfAKeyIsUndone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth.db")
	failing := false
	open := func() *Keys {
		k, err := Open(Options{File: file, MasterKey: master, Now: newClock().now, noSync: true, commit: func(tx *boltfile.Tx) error {
			if failing {
				return errors.Join(errors.New("disk on fire"), tx.Commit())
			}
			return tx.Commit()
		}})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open()
	kept, err := k.Create(Key{UID: uuid.New(), Actions: []string{"search"}, Indexes: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	failing = true
	refused := uuid.New()
	if _, err := k.Create(Key{UID: refused, Actions: []string{"*"}, Indexes: []string{"*"}}); err == nil {
		t.Error("the key was stored")
	}
	if err := k.Delete(kept.UID.String()); err == nil {
		t.Error("the key was deleted")
	}
	name := "other"
	if _, err := k.Update(kept.UID.String(), Change{Name: Text{Given: true, Text: &name}}); err == nil {
		t.Error("the key was changed")
	}
	failing = false
	check := func(n int) {
		t.Helper()
		if _, err := k.Find(refused.String()); err == nil {
			t.Error("the refused key exists")
		}
		if found, err := k.Find(kept.UID.String()); err != nil || found.Name != nil {
			t.Errorf("%+v %v", found, err)
		}
		if len(k.List()) != n {
			t.Errorf("%d keys, want %d", len(k.List()), n)
		}
	}
	check(5)
	for n := range 2 {
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		k = open()
		check(5 + n)
		if _, err := k.Create(Key{UID: uuid.New(), Actions: []string{"search"}, Indexes: []string{"*"}}); err != nil {
			t.Error(err)
		}
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestADamagedRootUndoesNoChange checks that deleted and created keys stay so, whichever of the two roots of the file is damaged later.
func TestADamagedRootUndoesNoChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth.db")
	k, err := Open(Options{File: file, MasterKey: master})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, k)
	key := Key{UID: uuid.New(), Actions: []string{"search"}, Indexes: []string{"*"}}
	for _, there := range []bool{true, false} {
		if there {
			_, err = k.Create(key)
		} else {
			err = k.Delete(key.UID.String())
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for root := range 2 {
			damaged := filepath.Join(t.TempDir(), "auth.db")
			b[root*os.Getpagesize()+20] ^= 1
			if err := os.WriteFile(damaged, b, 0o600); err != nil {
				t.Fatal(err)
			}
			b[root*os.Getpagesize()+20] ^= 1
			of, err := Open(Options{File: damaged, MasterKey: master})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := of.Find(key.UID.String()); (err == nil) != there || len(of.List()) != len(k.List()) {
				t.Errorf("root %d is damaged: %d keys, want %d: %v", root, len(of.List()), len(k.List()), err)
			}
			closeStore(t, of)
		}
	}
}
