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

// spoolWays are the ways into a spool. Each adds content, and leaves it to others to make the name durable.
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

// contentOfSpool is long: a crash may leave a part.
var contentOfSpool = bytes.Repeat([]byte("the bytes of a file "), 100)

func keyOf(content []byte) string { return fileKey(int64(len(content)), hash128(content)) }

// ownFile makes a file system with a file of the data directory.
func ownFile(t *testing.T, content []byte) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	if err := errors.Join(vfs.MakeDir(mem, "data"), vfs.WriteFile(mem, "data/own", content), mem.SyncDir("data")); err != nil {
		t.Fatal(err)
	}
	return mem
}

// testingSpool opens a spool.
func testingSpool(t *testing.T, fsys vfs.FS) *spool {
	t.Helper()
	s, err := openSpool(fsys, testSpool)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFilesOfTheSpoolAreDurable: an entry on a disk means that its files are there, too. They are synced before.
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
			t.Errorf("%s: a power failure takes %q", what, names)
		}
	}
}

// TestEntriesAreTakenWithDurableFiles: a file may be here whose name is not durable. An entry that names the file is taken only once it is.
// If that cannot be done, the file is to come again.
func TestEntriesAreTakenWithDurableFiles(t *testing.T) {
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
				return errors.New("of the test")
			}
			return nil
		})))
		v := &Voter{o: VoterOptions{level: proposalVersion}, spool: s}
		if v.check(entries) == nil {
			t.Errorf("%s: an entry is taken without its file", what)
		}
		stalls = true
		if err := add(s, key, contentOfSpool); (err != nil) != (what == "received") {
			t.Fatalf("%s: %v", what, err)
		}
		if there := s.has(key, 2); there == (what == "received") {
			t.Errorf("%s: the file is there: %v", what, there)
		}
		for _, stalls = range []bool{true, false} { // the second sync says nothing about the names of the first
			if v.check(entries) == nil {
				t.Errorf("%s: an entry is taken whose file is not durable", what)
			}
			if s.has(key, 2) { // a leader that asks is told what lacks
				t.Fatalf("%s: the file is there", what)
			}
		}
		if err := add(s, key, contentOfSpool); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := v.check(entries); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if names := lost(t, mem, map[string]string{s.path(key): string(contentOfSpool)}); len(names) > 0 {
			t.Errorf("%s: a power failure takes %q, which an entry names", what, names)
		}
		// Other names are not waited for.
		other := []byte("another file")
		if err := s.put(keyOf(other), other, 3); err != nil {
			t.Fatal(err)
		}
		syncs = 0
		if err := v.check(entries); err != nil || syncs != 0 {
			t.Errorf("%s: the same entry is taken after %d syncs, %v", what, syncs, err)
		}
	}
}

// TestNamesOfTheSpoolAreSynced: one sync serves all names that were added before it. One that failed counts for none.
func TestNamesOfTheSpoolAreSynced(t *testing.T) {
	syncs, fails := 0, false
	s := testingSpool(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
		if o.Kind != vfs.OpSyncDir || o.Name != testSpool {
			return nil
		}
		if syncs++; fails {
			return errors.New("of the test")
		}
		return nil
	}))
	syncs = 0
	sync := func() error { return s.syncNames(s.named.Load()) }
	if err := sync(); err != nil || syncs != 0 {
		t.Errorf("without a name there are %d syncs, %v", syncs, err)
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
		t.Error("a sync that failed counts")
	}
	fails = false
	if err := sync(); err != nil { // as that of somebody else
		t.Fatal(err)
	}
	if s.sync(slices.Values([]string{third})) == nil || s.has(third, 1) {
		t.Error("a name is taken for durable whose sync has failed")
	}
	if err := s.sync(slices.Values([]string{keyOf([]byte("one"))})); err != nil {
		t.Errorf("a name is lost that was durable: %v", err)
	}
}

// TestSpooledNamesOfAKilledProcessAreDurable: a start holds a file that a process named before it was killed, so it makes the name
// durable.
func TestSpooledNamesOfAKilledProcessAreDurable(t *testing.T) {
	key := keyOf(contentOfSpool)
	mem := ownFile(t, contentOfSpool)
	killed := testingSpool(t, mem)
	if err := killed.link("data/own", key, int64(len(contentOfSpool)), 1); err != nil {
		t.Fatal(err)
	}
	s := testingSpool(t, mem)
	if names := lost(t, mem, map[string]string{s.path(key): string(contentOfSpool)}); !s.has(key, 1) || len(names) > 0 {
		t.Errorf("a power failure takes %q", names)
	}
}

// TestCrashesOfTheSpool crashes the machine before each operation. A start holds whole files only, and removes what else is there.
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
					t.Errorf("%s, seed %d, %s: a start holds %q with %d bytes, and other ones, %v", what, seed, when, names, len(b), err)
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
			t.Errorf("%s: %d starts hold the file, and remove %d others", what, held, torn)
		}
	}
	mem := ownFile(t, contentOfSpool)
	s := testingSpool(t, mem)
	if err := vfs.WriteFile(mem, s.path(key), contentOfSpool[1:]); err != nil { // by a former version
		t.Fatal(err)
	}
	if s = testingSpool(t, mem); s.has(key, 1) {
		t.Error("a start holds a part of a file")
	}
	if _, err := mem.Stat(s.path(key)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the part of a file stays: %v", err)
	}
}

// TestAFileIsAddedTwice: changes may name the same file at the same time. Once it is there, it stays.
func TestAFileIsAddedTwice(t *testing.T) {
	key := keyOf(contentOfSpool)
	for first, add := range spoolWays {
		for second, again := range spoolWays {
			for at, between := 0, true; between; at++ {
				mem := ownFile(t, contentOfSpool)
				s, n, adding, added := testingSpool(t, mem), 0, false, false
				whole := func(when string) {
					if b, err := vfs.ReadFile(mem, s.path(key)); err != nil || !bytes.Equal(b, contentOfSpool) {
						t.Errorf("%s while it is %s, %s: there are %d bytes, %v", second, first, when, len(b), err)
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
					t.Errorf("%s while it is %s: there are %q, %v", second, first, names, err)
				}
			}
		}
	}
}

// TestFailuresOfTheSpool: an operation that fails leaves nothing behind but files that are held, and a second try succeeds: also if
// the next operation fails, too.
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
			fail := vfs.FailFrom(n, failures, nil, errors.New("of the test"))
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
					t.Errorf("%s: nothing fails", what)
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
				t.Errorf("%s: after a second try a power failure takes %q", what, names)
			}
		}
	}
}

// TestTheSpoolIsOpenBeforeTheNode: a node takes part while it is opened. Entries that it is sent, or sends, may name files then.
func TestTheSpoolIsOpenBeforeTheNode(t *testing.T) {
	t.Parallel()
	e := idleElectors(t, 1)[0]
	e.o.Heartbeat = 100 * time.Millisecond // there is nobody whom it could take for dead
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
	// A node that was just opened may be told to copy the data of another voter.
	v := &Voter{o: VoterOptions{Addr: "a", Join: []string{"a", "b"}}}
	if all := v.others(); !slices.Equal(all, []string{"b"}) {
		t.Errorf("others are %q", all)
	}
}
