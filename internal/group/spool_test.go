package group

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/commit"
	"svc/internal/consensus"
	"svc/internal/vfs"
)

const testSpool = "data/group/spool"

// spoolWays are the ways to add content to a spool. Except for received, they do not make the name durable.
var spoolWays = map[string]func(s *spool, key string, content []byte) error{
	"received": func(s *spool, key string, content []byte) error { return s.receive(key, 1, bytes.NewReader(content)) },
	"put":      func(s *spool, key string, content []byte) error { return s.put(key, content, 1) },
	"linked": func(s *spool, key string, content []byte) error {
		return s.link("data/own", key, int64(len(content)), 1)
	},
	"copied": func(s *spool, key string, content []byte) error {
		linking := s.fs
		s.fs = unlinkableFS{linking}
		defer func() { s.fs = linking }()
		return s.link("data/own", key, int64(len(content)), 1)
	},
}

// contentOfSpool is long enough that a crash may leave a part of it.
var contentOfSpool = bytes.Repeat([]byte("the bytes of a file "), 100)

func keyOf(content []byte) string { return fileKey(int64(len(content)), hash128(content)) }

// ownFile returns a file system that has one file in the data directory.
func ownFile(t *testing.T, content []byte) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	if err := errors.Join(vfs.MakeDir(mem, "data"), vfs.WriteFile(mem, "data/own", content), mem.SyncDir("data")); err != nil {
		t.Fatal(err)
	}
	return mem
}

func testingSpool(t *testing.T, fsys vfs.FS) *spool {
	t.Helper()
	s, err := openSpool(fsys, testSpool)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFilesOfTheSpoolAreDurable checks that a file added in any way survives a power failure once names are synced.
func TestFilesOfTheSpoolAreDurable(t *testing.T) {
	key := keyOf(contentOfSpool)
	for what, add := range spoolWays {
		mem := ownFile(t, contentOfSpool)
		s := testingSpool(t, mem)
		if err := add(s, key, contentOfSpool); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if what != "received" {
			if err := s.syncNames(s.named.Load()); err != nil {
				t.Fatal(err)
			}
		}
		if names := lost(t, mem, map[string]string{s.path(key): string(contentOfSpool)}); len(names) > 0 {
			t.Errorf("%s: a power failure loses %q", what, names)
		}
	}
}

// TestEntriesNeedDurableFiles checks that an entry is accepted only when the names of its files are durable. If the sync of a name fails,
// the file must be sent again.
func TestEntriesNeedDurableFiles(t *testing.T) {
	key := keyOf(contentOfSpool)
	f := fileOf("tasks/payloads/1", contentOfSpool)
	p := &proposal{level: proposalVersion, entry: &Entry{Change: commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Files: []string{f.Name}}, Files: []File{f}}}
	entries := []consensus.Entry{{Index: 2, Data: p.encode()}}
	for what, add := range spoolWays {
		mem := ownFile(t, contentOfSpool)
		syncs, stalls := 0, false
		s := testingSpool(t, vfs.Hook(mem, mem.LoseOnError(func(o vfs.Op) error {
			if o.Kind != vfs.OpSyncDir || o.Name != testSpool {
				return nil
			}
			if syncs++; stalls {
				return errors.New("injected failure")
			}
			return nil
		})))
		v := &Voter{o: VoterOptions{level: proposalVersion}, spool: s}
		if v.check(entries) == nil {
			t.Errorf("%s: an entry is accepted without its file", what)
		}
		stalls = true
		if err := add(s, key, contentOfSpool); (err != nil) != (what == "received") {
			t.Fatalf("%s: %v", what, err)
		}
		if there := s.has(key, 2); there == (what == "received") {
			t.Errorf("%s: has = %v after the failed sync", what, there)
		}
		for _, stalls = range []bool{true, false} { // the second sync says nothing about the names of the first
			if v.check(entries) == nil {
				t.Errorf("%s: an entry is accepted whose file is not durable", what)
			}
			if s.has(key, 2) { // so the leader sends it again
				t.Fatalf("%s: the file counts as present", what)
			}
		}
		if err := add(s, key, contentOfSpool); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := v.check(entries); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if names := lost(t, mem, map[string]string{s.path(key): string(contentOfSpool)}); len(names) > 0 {
			t.Errorf("%s: a power failure loses %q, which an entry names", what, names)
		}
		// An entry does not sync names that it does not need.
		other := []byte("another file")
		if err := s.put(keyOf(other), other, 3); err != nil {
			t.Fatal(err)
		}
		syncs = 0
		if err := v.check(entries); err != nil || syncs != 0 {
			t.Errorf("%s: the same entry needed %d syncs, %v; want 0", what, syncs, err)
		}
	}
}

// TestNamesOfTheSpoolAreSynced checks that one sync covers all names that were added before it, and that a failed sync covers none.
func TestNamesOfTheSpoolAreSynced(t *testing.T) {
	syncs, fails := 0, false
	s := testingSpool(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
		if o.Kind != vfs.OpSyncDir || o.Name != testSpool {
			return nil
		}
		if syncs++; fails {
			return errors.New("injected failure")
		}
		return nil
	}))
	syncs = 0
	sync := func() error { return s.syncNames(s.named.Load()) }
	if err := sync(); err != nil || syncs != 0 {
		t.Errorf("%d syncs without a new name, %v", syncs, err)
	}
	for _, content := range []string{"one", "another"} {
		if err := s.put(keyOf([]byte(content)), []byte(content), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(sync(), sync(), s.syncNames(1)); err != nil || syncs != 1 {
		t.Errorf("%d syncs, %v; want 1", syncs, err)
	}
	third := keyOf([]byte("a third"))
	if err := s.put(third, []byte("a third"), 1); err != nil {
		t.Fatal(err)
	}
	fails = true
	if sync() == nil {
		t.Error("the error of a sync is lost")
	}
	fails = false
	if err := sync(); err != nil { // a sync for another caller succeeds
		t.Fatal(err)
	}
	if s.sync(slices.Values([]string{third})) == nil || s.has(third, 1) {
		t.Error("a name counts as durable whose sync has failed")
	}
	if err := s.sync(slices.Values([]string{keyOf([]byte("one"))})); err != nil {
		t.Errorf("a durable name is lost: %v", err)
	}
}

// TestSpooledNamesOfAKilledProcessAreDurable checks that a start syncs the names of files that a killed process left in the spool.
func TestSpooledNamesOfAKilledProcessAreDurable(t *testing.T) {
	key := keyOf(contentOfSpool)
	mem := ownFile(t, contentOfSpool)
	killed := testingSpool(t, mem)
	if err := killed.link("data/own", key, int64(len(contentOfSpool)), 1); err != nil {
		t.Fatal(err)
	}
	s := testingSpool(t, mem)
	if names := lost(t, mem, map[string]string{s.path(key): string(contentOfSpool)}); !s.has(key, 1) || len(names) > 0 {
		t.Errorf("a power failure loses %q", names)
	}
}

// TestCrashesOfTheSpool crashes the machine before each operation. After a restart the spool must have only whole files, and must have
// removed all others.
func TestCrashesOfTheSpool(t *testing.T) {
	key := keyOf(contentOfSpool)
	for what, add := range spoolWays {
		held, torn := 0, 0
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 1))
			mem := ownFile(t, contentOfSpool)
			crash := func(when string) {
				left := mem.CrashClone(r)
				before, err := left.List(testSpool)
				if errors.Is(err, fs.ErrNotExist) {
					return
				}
				s := testingSpool(t, left)
				names, err := left.List(testSpool)
				if err != nil {
					t.Fatal(err)
				}
				torn += len(before) - len(names)
				if len(names) == 0 {
					return
				}
				held++
				b, err := vfs.ReadFile(left, s.path(key))
				if len(names) > 1 || !s.has(key, 1) || err != nil || !bytes.Equal(b, contentOfSpool) {
					t.Errorf("%s, seed %d, %s: after a start %q has %d wrong bytes, %v", what, seed, when, names, len(b), err)
				}
			}
			s := testingSpool(t, vfs.Hook(mem, func(o vfs.Op) error {
				crash("before " + o.String())
				return nil
			}))
			if err := add(s, key, contentOfSpool); err != nil {
				t.Fatal(err)
			}
			crash("after all")
		}
		if held == 0 || torn == 0 && what != "linked" {
			t.Errorf("%s: %d starts kept the file, %d removed a torn one; want some of both", what, held, torn)
		}
	}
	mem := ownFile(t, contentOfSpool)
	s := testingSpool(t, mem)
	if err := vfs.WriteFile(mem, s.path(key), contentOfSpool[1:]); err != nil { // by an earlier version of svc
		t.Fatal(err)
	}
	if s = testingSpool(t, mem); s.has(key, 1) {
		t.Error("a start accepts a part of a file")
	}
	if _, err := mem.Stat(s.path(key)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the part of a file is not removed: %v", err)
	}
}

// TestAFileIsAddedTwice checks that two changes may add the same file at the same time. Once it is added, it stays.
func TestAFileIsAddedTwice(t *testing.T) {
	key := keyOf(contentOfSpool)
	for first, add := range spoolWays {
		for second, again := range spoolWays {
			for at, between := 0, true; between; at++ {
				mem := ownFile(t, contentOfSpool)
				s, n, adding, added := testingSpool(t, mem), 0, false, false
				whole := func(when string) {
					if b, err := vfs.ReadFile(mem, s.path(key)); err != nil || !bytes.Equal(b, contentOfSpool) {
						t.Errorf("%s while it is %s, %s: the file has %d bytes, %v", second, first, when, len(b), err)
					}
				}
				s.fs = vfs.Hook(mem, func(o vfs.Op) error {
					switch {
					case added:
						whole("before " + o.String())
					case adding || o.Kind == vfs.OpRename || o.Kind == vfs.OpSyncDir: // a lock is held
					default:
						if n++; n > at {
							adding = true
							if err := again(s, key, contentOfSpool); err != nil {
								t.Fatal(err)
							}
							added = true
						}
					}
					return nil
				})
				if err := add(s, key, contentOfSpool); err != nil {
					t.Fatal(err)
				}
				between = added
				whole("at the end")
				if names, err := mem.List(testSpool); err != nil || len(names) != 1 {
					t.Errorf("%s while it is %s: the spool has %q, %v", second, first, names, err)
				}
			}
		}
	}
}

// TestFailuresOfTheSpool fails each operation, alone or with the next one. A failure leaves nothing behind but held files, and a second
// try succeeds.
func TestFailuresOfTheSpool(t *testing.T) {
	for _, failures := range []int64{1, 2} {
		t.Run(fmt.Sprint(failures), func(t *testing.T) { failInTheSpool(t, failures) })
	}
}

func failInTheSpool(t *testing.T, failures int64) {
	key := keyOf(contentOfSpool)
	for what, add := range spoolWays {
		for n := int64(0); ; n++ {
			mem := ownFile(t, contentOfSpool)
			s := testingSpool(t, mem)
			failed := false
			fail := vfs.FailFrom(n, failures, nil, errors.New("injected failure"))
			s.fs = vfs.Hook(mem, mem.LoseOnError(func(o vfs.Op) error {
				err := fail(o)
				failed = failed || err != nil
				return err
			}))
			err := add(s, key, contentOfSpool)
			if err == nil {
				err = s.syncNames(s.named.Load())
			}
			fail = func(vfs.Op) error { return nil }
			if !failed {
				if n == 0 {
					t.Errorf("%s: no operation failed", what)
				}
				break
			}
			names, e := mem.List(testSpool)
			if e != nil {
				t.Fatal(e)
			}
			if held := s.has(key, 1); held && fmt.Sprint(names) != fmt.Sprint([]string{key}) || !held && len(names) > 0 && failures == 1 || !held && err == nil {
				t.Errorf("%s: when operation %d fails there are %q, held: %v, %v", what, n, names, held, err)
			}
			if err := errors.Join(add(s, key, contentOfSpool), s.syncNames(s.named.Load())); err != nil {
				t.Errorf("%s: when operation %d has failed: %v", what, n, err)
			}
			if names := lost(t, mem, map[string]string{path.Join(testSpool, key): string(contentOfSpool)}); len(names) > 0 {
				t.Errorf("%s: after a second try a power failure loses %q", what, names)
			}
		}
	}
}

// TestTheSpoolIsOpenBeforeTheNode checks the order of opening: the node takes part while it opens, and its entries may name files in the
// spool.
func TestTheSpoolIsOpenBeforeTheNode(t *testing.T) {
	t.Parallel()
	e := idleElectors(t, 1)[0]
	e.o.Heartbeat = 100 * time.Millisecond // a single voter has no other to take for dead
	e.start()
	t.Cleanup(e.stop)
	accept(t, []*elector{e}, "a.json", []byte("1"))
	e.stop()
	var mu sync.Mutex
	var listed []string
	fsys := e.o.FS
	e.o.FS = vfs.Hook(fsys, func(o vfs.Op) error {
		if o.Kind == vfs.OpList {
			mu.Lock()
			defer mu.Unlock()
			listed = append(listed, strings.TrimPrefix(o.Name, e.o.Dir+"/"))
		}
		return nil
	})
	e.start()
	accept(t, []*elector{e}, "a.json", []byte("2"))
	mu.Lock()
	defer mu.Unlock()
	inSpool := slices.Index(listed, spoolDir)
	inLog := len(listed) - 1
	for inLog >= 0 && !strings.HasPrefix(listed[inLog], ballotDir) {
		inLog--
	}
	if inSpool < 0 || inSpool > inLog {
		t.Errorf("directories are read in this order: %q", listed)
	}
	// The leader may ask a newly opened node to copy the data of another voter.
	v := &Voter{o: VoterOptions{Addr: "a", Join: []string{"a", "b"}}}
	if all := v.others(); !slices.Equal(all, []string{"b"}) {
		t.Errorf("others are %q", all)
	}
}
