package auth

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/boltfile"
	"svc/internal/commit"
	"svc/internal/vfs"
)

// mirror is the log of a store that another store follows.
type mirror struct {
	t      *testing.T
	dir    string
	file   string // file of the follower
	k      *Keys  // the follower
	now    func() time.Time
	fails  bool // the first commit of each change fails
	failed int
}

var errTest = errors.New("injected failure")

// newMirror returns a store and the mirror that follows it.
func newMirror(t *testing.T, c *clock) (*Keys, *mirror) {
	t.Helper()
	m := &mirror{t: t, dir: t.TempDir(), file: filepath.Join(t.TempDir(), "auth.db"), now: c.now}
	m.open()
	t.Cleanup(func() { closeStore(t, m.k) })
	k, err := Open(Options{File: filepath.Join(m.dir, "auth.db"), FS: commit.On(vfs.OS, m.dir, m), MasterKey: master, Now: c.now, noSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, k) })
	return k, m
}

func (m *mirror) open() {
	m.t.Helper()
	var err error
	m.k, err = Open(Options{File: m.file, MasterKey: master, Now: m.now, Follow: true, noSync: true, commit: func(tx *boltfile.Tx) error {
		if m.fails {
			m.fails = false
			m.failed++
			return errTest
		}
		return tx.Commit()
	}})
	if err != nil {
		m.t.Fatal(err)
	}
}

// Do implements commit.Log.
func (m *mirror) Do(c commit.Change, apply func() error) error {
	c.Data = bytes.Clone(c.Data)
	if err := apply(); err != nil {
		return err
	}
	before := m.k.List()
	if m.fails {
		if err := m.k.Follow(c); !errors.Is(err, errTest) || !equalKeys(m.k.List(), before) {
			m.t.Errorf("a change that fails: %v", err)
		}
	}
	for range 2 { // the repeat must change nothing
		if err := m.k.Follow(c); err != nil {
			m.t.Error(err)
		}
	}
	return nil
}

// same compares what both stores show, and the follower with what a start would read.
func (m *mirror) same(k *Keys) {
	m.t.Helper()
	got, want := m.k.List(), k.List()
	if !equalKeys(got, want) {
		m.t.Fatalf("the follower has %v, want %v", got, want)
	}
	for _, key := range want {
		if found, err := m.k.Find(k.Value(key)); err != nil || found.UID != key.UID {
			m.t.Errorf("the value of %s finds %v, %v", key.UID, found, err)
		}
	}
	shown := m.k.table.Load()
	if len(shown.bySum) != len(want) {
		m.t.Errorf("%d values are accepted, want %d", len(shown.bySum), len(want))
	}
	if err := m.k.load(); err != nil {
		m.t.Fatal(err)
	}
	if read := m.k.List(); !equalKeys(read, want) {
		m.t.Errorf("a start reads %v, want %v", read, want)
	}
	m.k.table.Store(shown)
}

// TestFollow follows random changes, some of which fail at first, and restarts the follower in between.
func TestFollow(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c := newClock()
	k, m := newMirror(t, c)
	m.same(k) // the default keys are the writer's
	for range 60 {
		c.at = c.at.Add(time.Second)
		m.fails = r.IntN(4) == 0
		all := k.List()
		var err error
		switch n := r.IntN(10); {
		case n < 5 || len(all) == 0:
			_, err = k.Create(Key{UID: uuid.New(), Actions: []string{"search"}, Indexes: []string{"a"}, RateLimit: RateLimit{Searches: r.IntN(3)}})
		case n < 7:
			name := string(rune('a' + r.IntN(26)))
			_, err = k.Update(all[r.IntN(len(all))].UID.String(), Change{Name: Text{true, &name}})
		case n < 9:
			err = k.Delete(all[r.IntN(len(all))].UID.String())
		default:
			err = k.Replace(slices.Clone(all[:r.IntN(len(all))]))
		}
		if err != nil {
			t.Fatal(err)
		}
		m.same(k)
		if r.IntN(10) == 0 {
			closeStore(t, m.k)
			m.open()
			m.same(k)
		}
	}
	m.fails = true
	if _, err := k.Create(Key{UID: uuid.New(), Actions: []string{"search"}}); err != nil || m.failed == 0 {
		t.Errorf("%v, %d changes failed", err, m.failed)
	}
	m.same(k)
}

// TestFollowKeepsCounts changes a key whose requests are counted: the counts must stay.
func TestFollowKeepsCounts(t *testing.T) {
	c := newClock()
	k, m := newMirror(t, c)
	key, err := k.Create(Key{UID: uuid.New(), Actions: []string{"search"}, Indexes: []string{"*"}, RateLimit: RateLimit{Searches: 1}})
	if err != nil {
		t.Fatal(err)
	}
	search := func() bool {
		caller, err := m.k.Authorize(k.Value(key), "search", "a")
		if err != nil {
			t.Fatal(err)
		}
		_, err = caller.Admit("search", c.at)
		return err == nil
	}
	if !search() || search() {
		t.Error("want one admitted search per second")
	}
	name := "x"
	if _, err := k.Update(key.UID.String(), Change{Name: Text{true, &name}}); err != nil {
		t.Fatal(err)
	}
	if search() {
		t.Error("a change of the key resets its searches")
	}
}

// TestFollowMakesNoKeys checks that a following store makes no changes of its own until it leads.
func TestFollowMakesNoKeys(t *testing.T) {
	c := newClock()
	m := &mirror{t: t, file: filepath.Join(t.TempDir(), "auth.db"), now: c.now}
	m.open()
	defer func() { closeStore(t, m.k) }()
	if keys := m.k.List(); len(keys) > 0 {
		t.Errorf("the follower starts with %d keys", len(keys))
	}
	if _, err := m.k.Create(Key{UID: uuid.New(), Actions: []string{"search"}}); !errors.Is(err, errFollows) {
		t.Errorf("a new key: %v", err)
	}
	if err := m.k.Replace(nil); !errors.Is(err, errFollows) {
		t.Errorf("other keys: %v", err)
	}
	for _, change := range []commit.Change{
		{Kind: commit.Keys, Name: "tasks/queue.db"}, {Kind: commit.Tasks, Name: "auth.db"}, {Kind: commit.Keys, Name: "auth.db", Data: []byte("x")},
		{Kind: commit.Keys, Name: "auth.db", Data: []byte("\x09\x00")},
		{Kind: commit.Keys, Name: "auth.db", Data: []byte("\x02\x01\x05later\x01\x00\x01k\x04\x00\x00\x00\x00")},
		{Kind: commit.Keys, Name: "auth.db", Data: []byte("\x02\x01\x04keys\x01\x00\x01k\x04\x00\x00\x00\x00")},
	} {
		if err := m.k.Follow(change); err == nil {
			t.Errorf("%v of %s, %q is accepted", change.Kind, change.Name, change.Data)
		}
	}
	m.fails = true
	if err := m.k.Lead(); !errors.Is(err, errTest) {
		t.Errorf("Lead: %v", err)
	}
	for range 2 {
		if err := m.k.Lead(); err != nil || len(m.k.List()) != 4 {
			t.Errorf("the leading store has %d keys: %v", len(m.k.List()), err)
		}
	}
	if err := m.k.Follow(commit.Change{Kind: commit.Keys, Name: "auth.db"}); err == nil || !strings.Contains(err.Error(), "follow nobody") {
		t.Errorf("the leading store follows: %v", err)
	}
	if _, err := m.k.Create(Key{UID: uuid.New(), Actions: []string{"search"}}); err != nil {
		t.Error(err)
	}
}
