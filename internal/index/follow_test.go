package index

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/commit"
	"svc/internal/vfs"
	"svc/segment"
)

// follower is a catalog that follows the catalog of a bed, on its own disk. It acts as the log of the file system of the bed.
type follower struct {
	*bed
	t      *testing.T
	from   *vfs.MemFS
	disk   *vfs.MemFS
	r      *rand.Rand
	fail   bool                 // fail each change at each of its file operations before it succeeds
	kinds  map[commit.Kind]int  // successful changes by kind
	failed map[commit.Kind]int  // failed operations by kind of change
	fault  func(o vfs.Op) error // fault of the disk
}

// newFollower returns a writer and the catalog that follows it.
func newFollower(t *testing.T, r *rand.Rand) (*bed, *follower) {
	t.Helper()
	f := &follower{t: t, from: vfs.NewMem(), disk: vfs.NewMem(), r: r, kinds: map[commit.Kind]int{}, failed: map[commit.Kind]int{}}
	clock := func() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }
	f.bed = newBed(t, vfs.Hook(f.disk, func(o vfs.Op) error {
		if f.fault == nil {
			return nil
		}
		return f.fault(o)
	}), Options{Follow: true, Now: clock})
	t.Cleanup(f.bed.close)
	w := newBed(t, commit.On(f.from, "data", f), Options{Now: clock})
	t.Cleanup(w.close)
	return w, f
}

// Do implements commit.Log.
func (f *follower) Do(c commit.Change, apply func() error) error {
	if err := apply(); err != nil || !f.c.follows.Load() {
		return err
	}
	c.Data = bytes.Clone(c.Data)
	var here []string
	if b, err := vfs.ReadFile(f.disk, path.Join("data", c.Name)); err == nil && c.Kind == commit.Manifest {
		if here, err = FilesOf(c.Name, b); err != nil {
			f.t.Error(err)
		}
	}
	for _, name := range c.Files {
		if slices.Contains(here, path.Base(name)) {
			continue
		}
		b, err := vfs.ReadFile(f.from, path.Join("data", name))
		if err == nil {
			_, err = vfs.Replace(f.disk, path.Join("data", name), b)
		}
		if err != nil {
			f.t.Error(err)
		}
	}
	f.kinds[c.Kind]++
	for n := 0; f.fail; n++ {
		at := 0
		f.fault = func(o vfs.Op) error {
			if !o.Kind.Changes() || o.Kind == vfs.OpRemove || o.Kind == vfs.OpRemoveAll { // a failed removal is only logged
				return nil
			}
			if at++; at == n+1 {
				return errTest
			}
			return nil
		}
		err := f.c.Follow(c)
		f.fault = nil
		if err == nil {
			break
		}
		if !errors.Is(err, errTest) {
			f.t.Errorf("%v of %s: %v", c.Kind, c.Name, err)
			break
		}
		f.failed[c.Kind]++
	}
	if err := f.c.Follow(c); err != nil { // also for a change that was made already
		f.t.Errorf("%v of %s: %v", c.Kind, c.Name, err)
	}
	for _, uid := range f.c.UIDs() {
		if ix := f.c.Get(uid); f.r.IntN(3) == 0 {
			ix.evict()
		}
	}
	return nil
}

var errTest = errors.New("injected failure")

// equals compares the state of the follower with that of the writer.
func (f *follower) equals(w *bed, what string) {
	f.t.Helper()
	f.bed.batch = w.batch
	if got, want := f.state(), w.state(); got != want {
		f.t.Fatalf("after %s:\n%s", what, firstDifference(got, want))
	}
	if aside, damaged := f.c.Damages(); len(aside)+len(damaged) > 0 {
		f.t.Fatalf("after %s: damaged are %v %v", what, aside, damaged)
	}
}

// sameFiles compares the files of both. No view may be held.
func (f *follower) sameFiles() {
	f.t.Helper()
	files := func(disk *vfs.MemFS) (all []string) {
		for _, d := range list(f.t, disk, catalogDir) {
			if _, ok := number(d); !ok {
				all = append(all, d)
				continue
			}
			for _, name := range list(f.t, disk, path.Join(catalogDir, d)) {
				all = append(all, path.Join(d, name))
			}
		}
		return all
	}
	if got, want := files(f.disk), files(f.from); !slices.Equal(got, want) {
		f.t.Errorf("the files %q, want %q", got, want)
	}
}

// testFollow makes every kind of change, with every kind of file, while views of earlier states are held.
func testFollow(t *testing.T, fail bool) *follower {
	r := rand.New(rand.NewPCG(1, 2))
	w, f := newFollower(t, r)
	f.fail = fail
	for _, s := range history(w) {
		type view struct {
			*View
			shows string
		}
		var held []view
		for _, uid := range f.c.UIDs() {
			v, err := f.c.Get(uid).View()
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, view{v, dump(t, v)})
		}
		func() {
			defer func() {
				for _, v := range held {
					v.Release()
				}
			}()
			w.batch++
			if err := s.do(w, w.batch); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			f.equals(w, s.name)
			for _, v := range held {
				if got := dump(t, v.View); got != v.shows {
					t.Errorf("%s changes an earlier view:\n%s", s.name, firstDifference(got, v.shows))
				}
			}
		}()
		f.sameFiles()
	}
	return f
}

func TestFollow(t *testing.T) {
	f := testFollow(t, false)
	if f.kinds[commit.Manifest] < 20 || f.kinds[commit.Catalog] < 8 {
		t.Errorf("only these changes: %v", f.kinds)
	}
}

// TestFollowAgain fails each change at each of its file operations. The next try must succeed.
func TestFollowAgain(t *testing.T) {
	f := testFollow(t, true)
	if f.failed[commit.Manifest] < 100 || f.failed[commit.Catalog] < 30 {
		t.Errorf("only these operations failed: %v", f.failed)
	}
}

// TestFollowRandomBatches follows random batches and merges, and then leads.
func TestFollowRandomBatches(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	w, f := newFollower(t, r)
	ix := w.create("a")
	for n := range 12 {
		w.try(ix, w.ops(randomBatch(r))...)
		if r.IntN(3) == 0 {
			w.compact(ix)
		}
		f.equals(w, fmt.Sprint("batch ", n))
	}
	f.sameFiles()
	for _, err := range []error{
		f.c.Swap(nil, 99), func() error { _, err := f.c.Create("b", "", 99); return err }(), f.c.Get("a").SetPrimaryKey("id", 99),
	} {
		if !errors.Is(err, errFollows) {
			t.Errorf("a write gives %v", err)
		}
	}
	if _, err := f.c.Get("a").Apply(t.Context(), 99, []Op{Clear{}}, nil); !errors.Is(err, errFollows) {
		t.Errorf("a batch gives %v", err)
	}
	f.equals(w, "writes that are refused")
	for name, b := range map[string]string{"000009/MANIFEST": "x", "000001/000001.seg": "x", "CATALOG" + vfs.TempSuffix: "x"} {
		if err := vfs.MakeDir(f.disk, path.Join(catalogDir, path.Dir(name))); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(f.disk, path.Join(catalogDir, name), []byte(b)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.c.Lead(); err != nil {
		t.Fatal(err)
	}
	if err := f.c.Follow(commit.Change{Kind: commit.Catalog, Name: "indexes/CATALOG"}); err == nil || !strings.Contains(err.Error(), "follow nobody") {
		t.Errorf("a leading catalog follows: %v", err)
	}
	if names := list(t, f.disk, catalogDir); slices.Contains(names, "000009") || slices.Contains(names, "CATALOG"+vfs.TempSuffix) {
		t.Errorf("the leading catalog has %q", names)
	}
	f.bed.batch = w.batch
	batch := randomBatch(r)
	w.try(w.c.Get("a"), w.ops(batch)...)
	f.bed.batch = w.batch - 1
	f.bed.try(f.c.Get("a"), f.bed.ops(batch)...)
	f.equals(w, "a batch of who leads")
}

// TestRefusedChanges checks that changes outside the indexes are refused.
func TestRefusedChanges(t *testing.T) {
	_, f := newFollower(t, rand.New(rand.NewPCG(1, 2)))
	for _, c := range []commit.Change{
		{Kind: commit.Tasks, Name: "indexes/CATALOG"},
		{Kind: commit.Catalog, Name: "indexes/000001/MANIFEST"},
		{Kind: commit.Manifest, Name: "indexes/x/MANIFEST"},
		{Kind: commit.Manifest, Name: "indexes/000001/MANIFEST", Data: []byte("x")},
		{Kind: commit.Catalog, Name: "indexes/CATALOG", Data: []byte("x")},
	} {
		if err := f.c.Follow(c); err == nil {
			t.Errorf("%v of %s is accepted", c.Kind, c.Name)
		}
	}
}

// TestSearchesWhileFollowing reads views while changes arrive: each view must show one state.
func TestSearchesWhileFollowing(t *testing.T) {
	w, f := newFollower(t, rand.New(rand.NewPCG(1, 2)))
	ix := w.create("a")
	documents := func(n int) (docs []string) {
		for id := range 5 {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"n":%d}`, id, n))
		}
		return docs
	}
	w.apply(ix, w.payload(documents(0)...))
	var readers sync.WaitGroup
	var passes atomic.Int64
	stop := make(chan struct{})
	seen := make([]map[string]bool, 4)
	for i := range seen {
		seen[i] = map[string]bool{}
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				v, err := f.c.Get("a").View()
				if err != nil {
					t.Error(err)
					return
				}
				all := ""
				for _, l := range v.Segments {
					for it := l.LiveRows().Iterator(); it.HasNext(); {
						doc, err := l.AppendDocument(nil, segment.Row(it.Next()))
						if err != nil {
							t.Error(err)
						}
						_, n, _ := strings.Cut(string(doc), `"n":`)
						all += n
					}
				}
				v.Release()
				if n, _, _ := strings.Cut(all, "}"); all != strings.Repeat(n+"}", 5) {
					t.Errorf("a view shows %s", all)
					return
				}
				seen[i][all] = true
				passes.Add(1)
			}
		})
	}
	for n := range 40 {
		w.apply(ix, w.payload(documents(n)...))
		if n%5 == 0 {
			w.compact(ix)
		}
		if n%10 == 0 { // enough passes that one began after the change
			for before := passes.Load(); passes.Load() <= before+int64(len(seen)) && !t.Failed(); {
				time.Sleep(time.Millisecond)
			}
		}
	}
	close(stop)
	readers.Wait()
	for _, all := range seen[1:] {
		maps.Copy(seen[0], all)
	}
	if len(seen[0]) < 4 {
		t.Errorf("only %d states were seen", len(seen[0]))
	}
}

// lostLead is a log that accepts a number of changes before another member leads.
type lostLead struct{ left int }

func (l *lostLead) Do(_ commit.Change, apply func() error) error {
	if l.left == 0 {
		return errors.New("another member leads")
	}
	l.left--
	return apply()
}

// TestALostLeadKeepsADirectory checks that a member which lost the lead while it created an index leaves the directory as it is when it
// tries again: the log has the manifest, and perhaps a CATALOG that names it.
func TestALostLeadKeepsADirectory(t *testing.T) {
	mem, log := vfs.NewMem(), &lostLead{left: 2}
	w := newBed(t, commit.On(mem, "data", log), Options{})
	name := "data/indexes/" + directoryName(0) + "/" + manifestName
	for range 3 {
		if _, err := w.c.Create("a", "", 1); err == nil {
			t.Fatal("an index was created without the log")
		}
		if b, err := vfs.ReadFile(mem, name); err != nil || len(b) == 0 {
			t.Fatalf("%s has %d bytes: %v", name, len(b), err)
		}
	}
	if log.left != 0 {
		t.Errorf("the log accepts %d more changes, want 0", log.left)
	}
}

// slowLog applies a change after a certain file operation was seen.
type slowLog struct {
	seen chan struct{}
	lost bool
	bad  bool // Do panics
}

func (l *slowLog) Do(c commit.Change, apply func() error) error {
	if l.bad {
		panic("a bad log")
	}
	if c.Kind == commit.Manifest && l.seen != nil {
		<-l.seen
	}
	if l.lost {
		return errors.New("another member leads")
	}
	return apply()
}

// TestAManifestIsStagedWhileTheLogWrites checks that a manifest is durable except for its name while the log accepts the change. A
// manifest that the log refuses leaves no file.
func TestAManifestIsStagedWhileTheLogWrites(t *testing.T) {
	mem, log := vfs.NewMem(), &slowLog{}
	temp := "data/indexes/" + directoryName(0) + "/" + manifestName + vfs.TempSuffix
	staged, synced, panics := false, false, false
	w := newBed(t, commit.On(vfs.Hook(mem, func(o vfs.Op) error {
		if panics && o.Name == temp {
			panic("a bad disk")
		}
		staged = staged || o.Kind == vfs.OpSync && o.Name == temp
		if staged && !synced && o.Kind == vfs.OpSyncDir && log.seen != nil {
			synced = true
			close(log.seen)
		}
		return nil
	}), "data", log), Options{})
	t.Cleanup(w.close)
	ix, err := w.c.Create("a", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	edit := func() error {
		staged, synced, log.seen = false, false, make(chan struct{})
		base, err := ix.take()
		if err != nil {
			return err
		}
		defer base.Release()
		return ix.commit(&change{base: base})
	}
	if err := edit(); err != nil {
		t.Fatal(err)
	}
	log.lost = true
	if err := edit(); err == nil {
		t.Error("a change was made without the log")
	}
	if _, err := mem.Stat(temp); err == nil {
		t.Errorf("%s is left", temp)
	}
	log.lost, log.bad = false, true
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the log does not panic")
			}
		}()
		_ = edit()
	}()
	if _, err := mem.Stat(temp); err == nil {
		t.Errorf("%s is left after a panic", temp)
	}
	log.bad, log.seen = false, nil
	base, err := ix.take()
	if err != nil {
		t.Fatal(err)
	}
	defer base.Release()
	panics = true
	if err := ix.commit(&change{base: base}); err == nil || !strings.Contains(err.Error(), "cannot commit to index a: cannot prepare a change: panic: a bad disk") {
		t.Errorf("staging panics: %v", err)
	}
	panics = false
	if err := edit(); err != nil {
		t.Error(err)
	}
}

// diskLog checks after each change that the files which the change writes and names are on the disk.
type diskLog struct {
	t     *testing.T
	mem   *vfs.MemFS
	kinds map[commit.Kind]int
}

func (l *diskLog) Do(c commit.Change, apply func() error) error {
	err := apply()
	if err != nil {
		return err
	}
	l.kinds[c.Kind]++
	left := l.mem.CrashClone(nil)
	for _, name := range append([]string{c.Name}, c.Files...) {
		name = path.Join("data", name)
		want, err := vfs.ReadFile(l.mem, name)
		if err != nil {
			l.t.Errorf("a %s writes no file: %v", c.Kind, err)
		}
		if got, err := vfs.ReadFile(left, name); err != nil || !bytes.Equal(got, want) {
			l.t.Errorf("a power failure after a %s leaves %d bytes of %s, %v", c.Kind, len(got), name, err)
		}
	}
	return nil
}

// TestChangesOfALogAreDurable checks that a change is durable when apply returns: the log may record it as done, and then does not repeat
// it after a power failure.
func TestChangesOfALogAreDurable(t *testing.T) {
	log := &diskLog{t: t, mem: vfs.NewMem(), kinds: map[commit.Kind]int{}}
	b := newBed(t, commit.On(log.mem, "data", log), Options{})
	defer b.close()
	for _, uid := range []string{"a", "b"} {
		ix := b.create(uid)
		b.apply(ix, b.payload(manyDocuments(40)...))
		b.apply(ix, update(t, `{"filterableAttributes":["id"]}`))
		b.apply(ix, b.payload(manyDocuments(30)...))
	}
	if log.kinds[commit.Manifest] < 8 || log.kinds[commit.Catalog] < 2 {
		t.Errorf("got only changes of the kinds %v", log.kinds)
	}
}
