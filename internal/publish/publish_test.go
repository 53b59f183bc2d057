package publish

import (
	"bytes"
	cryptorand "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svc/internal/bucket"
	"svc/internal/bucket/s3test"
	"svc/internal/group"
	"svc/internal/task"
	"svc/internal/vfs"
)

var rounds = flag.Int("rounds", 1, "rounds of TestEveryPositionIsRestored")

// s3Store returns a bucket of an S3 server.
func s3Store(t *testing.T, s *s3test.Server) bucket.Store {
	t.Helper()
	store, err := bucket.Open(bucket.Options{URL: "s3://backups/svc", Endpoint: s.URL, Region: "here-1", AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func directory(t *testing.T) bucket.Store {
	t.Helper()
	store, err := bucket.Open(bucket.Options{URL: "file://" + filepath.ToSlash(t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

var errCut = errors.New("the disk failed")

// TestEveryPositionIsRestored publishes random changes while the store fails and the server is killed. It then restores each position at
// which no task was running, and compares the documents.
func TestEveryPositionIsRestored(t *testing.T) {
	for range *rounds {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			everyPosition(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func everyPosition(t *testing.T, r *rand.Rand) {
	s := s3test.New()
	defer s.Close()
	odds := rand.New(rand.NewPCG(r.Uint64(), 2))
	faults := true
	s.Fault = func(*http.Request) s3test.Fault {
		if !faults || odds.IntN(12) > 0 {
			return s3test.None
		}
		return s3test.Fault(1 + odds.IntN(int(s3test.Stale)))
	}
	store := s3Store(t, s)
	h := newHost(t, store, func(o *Options) { o.imageBytes = int64(500 + r.IntN(5000)) })
	type moment struct {
		at        group.Position
		time      time.Time // zero: not published by then
		documents map[string]map[string]int
		tasks     int
	}
	var moments []moment
	for range 4 {
		for range 1 + r.IntN(6) {
			h.step(r)
		}
		if r.IntN(4) == 0 { // a kill: running uploads are abandoned
			h.stop()
			h.start()
		}
		h.idle()
		l, err := h.queue.Tasks(task.Filter{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		m := moment{at: h.w.Position(), documents: documents(t, h.catalog), tasks: int(l.Total)}
		if r.IntN(2) == 0 {
			h.published(m.at)
			m.time = time.Now()
		}
		moments = append(moments, m)
		time.Sleep(time.Millisecond) // the next change has a later time
	}
	h.published(moments[len(moments)-1].at)
	h.stop()
	faults = false
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	ranges, err := a.Ranges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, m := range moments {
		for _, x := range ranges {
			if m.at.Compare(x.From) < 0 || m.at.Compare(x.To) > 0 {
				continue
			}
			found++
			target := Target{Position: m.at}
			if i%2 == 1 && !m.time.IsZero() {
				target = Target{Time: m.time}
			}
			restoredAlone(t, store, target, m.documents)
			got, counts := restored(t, store, target)
			if !reflect.DeepEqual(got, m.documents) || counts[0] != m.tasks {
				t.Errorf("position %v is restored as %v with %d tasks, want %v with %d", m.at, got, counts[0], m.documents, m.tasks)
			}
			if counts[1] == 0 {
				t.Errorf("position %v has no keys", m.at)
			}
			break
		}
	}
	last := moments[len(moments)-1]
	if got, _ := restored(t, store, Target{}); !reflect.DeepEqual(got, last.documents) {
		t.Errorf("the last position is restored as %v, want %v", got, last.documents)
	}
	t.Logf("%d of %d positions can be restored", found, len(moments))
}

// TestARealStore publishes to a store named in the environment, and verifies, restores and follows the publication.
func TestARealStore(t *testing.T) {
	t.Parallel()
	real := s3test.Real("/publish")
	if real == nil {
		t.Skip("make s3-test publishes to a store")
	}
	store, err := bucket.Open(bucket.Options{URL: real.URL, Endpoint: real.Endpoint, Region: real.Region, AccessKey: real.AccessKey, SecretKey: real.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	h := newHost(t, store, func(o *Options) { o.imageBytes, o.Keep, o.margin = 2000, time.Nanosecond, time.Nanosecond })
	f := &follower{t: t, dir: path.Join(filepath.ToSlash(t.TempDir()), "follower"), store: store}
	f.start()
	for range 5 {
		h.goOn(r, 1)
	}
	f.compare(h)
	want := documents(t, h.catalog)
	h.stop()
	if got := damages(t, store, nil); got != nil {
		t.Errorf("%q are damaged", got)
	}
	if got, _ := restored(t, store, Target{}); !reflect.DeepEqual(got, want) {
		t.Errorf("restored as %v, want %v", got, want)
	}
	names := objectNames(t, store, "")
	for _, name := range names {
		if err := store.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if left := objectNames(t, store, ""); len(names) < 5 || len(left) > 0 {
		t.Errorf("of %d objects, %q are left after Remove", len(names), left)
	}
}

// TestRetention checks that retention removes only objects that no remaining position needs.
func TestRetention(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	store := directory(t)
	h := newHost(t, store, func(o *Options) {
		o.imageBytes, o.Keep = 1000, time.Nanosecond
		o.margin = time.Nanosecond
	})
	var want map[string]map[string]int
	for range 5 {
		for range 1 + r.IntN(4) { // images are made in between
			h.step(r)
		}
		h.idle()
		h.published(h.w.Position())
		want = documents(t, h.catalog)
	}
	if h.pub.Status().Removed == 0 {
		t.Error("nothing was removed")
	}
	h.stop()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	ranges, err := a.Ranges(t.Context())
	if err != nil || len(ranges) == 0 {
		t.Fatalf("%d ranges: %v", len(ranges), err)
	}
	for _, x := range ranges {
		every := 1 + (x.To.Index-x.From.Index)/10 // restoring every position would take too long
		for i := x.From.Index; i <= x.To.Index; i += 1 + r.Uint64N(2*every-1) {
			restored(t, store, Target{Position: group.Position{Term: x.From.Term, Run: x.From.Run, Index: i}})
		}
	}
	if got, _ := restored(t, store, Target{}); !reflect.DeepEqual(got, want) {
		t.Errorf("the last position is restored as %v, want %v", got, want)
	}
}

// TestUnfinishedObjectsAreRemoved leaves what a killed publisher may leave, an old file and a new one.
func TestUnfinishedObjectsAreRemoved(t *testing.T) {
	t.Parallel()
	store := directory(t)
	dir := strings.TrimPrefix(store.String(), "file://")
	var left [2]string
	for i, age := range []time.Duration{2 * unfinishedTime, 0} {
		left[i] = path.Join(dir, filesPrefix, "x."+cryptorand.Text()+vfs.TempSuffix)
		if err := errors.Join(os.MkdirAll(path.Dir(left[i]), 0o700), os.WriteFile(left[i], nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(left[i], time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	await(t, "the old file is removed", func() bool { _, err := os.Stat(left[0]); return errors.Is(err, fs.ErrNotExist) })
	if _, err := os.Stat(left[1]); err != nil {
		t.Error(err)
	}
}

func TestArchivesAreSealed(t *testing.T) {
	t.Parallel()
	s := s3test.New()
	defer s.Close()
	store := s3Store(t, s)
	h := newHost(t, store, nil)
	h.step(rand.New(rand.NewPCG(1, 1)))
	h.idle()
	h.published(h.w.Position())
	h.stop()
	for name, content := range s.Objects() {
		for _, plain := range []string{"VERSION", "indexes/", "\"id\"", masterKey} {
			if strings.Contains(name, "svc.json") {
				continue
			}
			if bytes.Contains(content, []byte(plain)) {
				t.Errorf("%s has %q in the clear", name, plain)
			}
		}
	}
	for key, want := range map[string]string{"": "--master-key", "another": "another master key"} {
		if _, err := Open(t.Context(), store, key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the key %q opens it: %v", key, err)
		}
	}
	// A changed byte is detected.
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range s.Objects() {
		if inside, ok := strings.CutPrefix(name, "/backups/svc/files/"); ok {
			content[len(content)/2] ^= 1
			_, err := a.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: path.Join(filepath.ToSlash(t.TempDir()), "r"), pause: time.Millisecond})
			if err == nil {
				t.Errorf("the restore did not detect the damage of %s", inside)
			}
			break
		}
	}
}

// TestStoresThatReplaceAreRefused checks that nothing is published to a store that ignores create-if-absent.
func TestStoresThatReplaceAreRefused(t *testing.T) {
	t.Parallel()
	s := s3test.New()
	defer s.Close()
	s.Replaces = true
	h := newHost(t, s3Store(t, s), nil)
	await(t, "the store is refused", func() bool { return strings.Contains(h.pub.Status().Problem, "If-None-Match") })
	h.put(1, 1)
	h.idle()
	h.stop()
	if left := s.Objects(); len(left) > 0 || h.pub.Status().Position != "" {
		t.Errorf("%d objects are published", len(left))
	}
}

func TestOthersAreRefused(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	other := newHost(t, store, nil)
	await(t, "another directory is refused", func() bool { return strings.Contains(other.pub.Status().Problem, "another data directory") })

	// A copy of the directory continues from the same position: one of the two must stop.
	h.stop()
	copied := filepath.ToSlash(t.TempDir())
	if err := os.CopyFS(copied, os.DirFS(h.dir)); err != nil {
		t.Fatal(err)
	}
	twin := &host{t: t, dir: copied, store: store}
	h.start()
	h.step(rand.New(rand.NewPCG(1, 1)))
	h.idle()
	h.published(h.w.Position())
	twin.start()
	t.Cleanup(twin.stop)
	twin.step(rand.New(rand.NewPCG(2, 2)))
	twin.idle()
	await(t, "the copy is refused", func() bool { return strings.Contains(twin.pub.Status().Problem, "another svc publishes") })
	if p := h.pub.Status().Problem; p != "" {
		t.Errorf("the first publisher reports %q", p)
	}

	if _, err := Open(t.Context(), directory(t), masterKey); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty bucket is accepted: %v", err)
	}
	later := directory(t)
	if err := later.Create(t.Context(), infoName, []byte(`{"version":2}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), later, masterKey); err == nil || !strings.Contains(err.Error(), "Update") {
		t.Errorf("a later format is accepted: %v", err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	h.stop()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	full := filepath.ToSlash(t.TempDir())
	if err := os.WriteFile(path.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		dir    string
		target Target
		want   string
	}{
		{full, Target{}, "not empty"},
		{path.Join(full, "new"), Target{Position: group.Position{Term: 9, Run: 9, Index: 9}}, "the archive does not have the position"},
		{path.Join(full, "new"), Target{Time: time.Unix(1, 0)}, "no state before"},
	} {
		if _, err := a.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: x.dir, Target: x.target}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// TestRestoreToAMountPoint restores to an empty directory that cannot be removed: that is refused before anything is fetched.
func TestRestoreToAMountPoint(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	h.stop()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.ToSlash(t.TempDir())
	fsys := vfs.Hook(vfs.OS, func(op vfs.Op) error {
		if op.Kind == vfs.OpRemove && op.Name == dir {
			return syscall.EBUSY
		}
		return nil
	})
	if _, err := a.Restore(t.Context(), RestoreOptions{FS: fsys, Dir: dir}); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "mount point") {
		t.Error(err)
	}
	if _, err := os.Stat(dir + restoreSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was fetched: %v", err)
	}
}

// TestRestoresToOneDirectory begins a restore while another one to the same directory waits for a read.
func TestRestoresToOneDirectory(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	h.stop()
	open := func() *Archive {
		a, err := Open(t.Context(), store, masterKey)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	dir := path.Join(filepath.ToSlash(t.TempDir()), "below", "restored")
	reads, goOn, first := make(chan bool), make(chan bool), open()
	begun := sync.OnceFunc(func() { close(reads); <-goOn })
	first.store = hooked{store, func(name string) {
		if strings.HasPrefix(name, filesPrefix) {
			begun()
		}
	}}
	ended := make(chan error, 1)
	go func() {
		_, err := first.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: dir})
		ended <- err
	}()
	<-reads
	if _, err := open().Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: dir}); err == nil || !strings.Contains(err.Error(), "another restore") {
		t.Errorf("a second restore to the directory: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(path.Dir(dir)); err != nil || len(names) != 1 {
		t.Errorf("beside the restored directory are %v, %v", names, err)
	}
}

// TestRestoreResumes checks that a restore interrupted at any point ends with the same directory when it is repeated.
func TestRestoreResumes(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	h.goOn(r, 4)
	want := documents(t, h.catalog)
	h.stop()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	for n := int64(0); ; n = n*5/4 + 1 {
		dir := path.Join(filepath.ToSlash(t.TempDir()), "restored")
		count := 0
		cut := vfs.Hook(vfs.OS, func(vfs.Op) error {
			if count++; int64(count) > n {
				return errCut
			}
			return nil
		})
		_, err := a.Restore(t.Context(), RestoreOptions{FS: cut, Dir: dir, pause: time.Microsecond})
		if err == nil {
			break
		}
		if _, err := os.Stat(dir); err == nil {
			if names, _ := os.ReadDir(dir); len(names) > 0 && n < 5 {
				t.Fatalf("after %d operations the directory already has its final name", n)
			}
			continue // the restore was complete
		}
		if _, err := a.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: dir, pause: time.Microsecond}); err != nil {
			t.Fatalf("after %d operations: %v", n, err)
		}
	}
	if got, _ := restored(t, store, Target{}); !reflect.DeepEqual(got, want) {
		t.Errorf("restored as %v, want %v", got, want)
	}
}

func TestTargets(t *testing.T) {
	for text, want := range map[string]Target{
		"":                     {},
		"1.2.3":                {Position: group.Position{Term: 1, Run: 2, Index: 3}},
		"2026-01-31T12:00:00Z": {Time: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)},
		"2026-01-31 12:00:00Z": {Time: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)},
	} {
		if got, err := ParseTarget(text); err != nil || got.Position != want.Position || !got.Time.Equal(want.Time) {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"yesterday", "1.2", "2026-01-31"} {
		if _, err := ParseTarget(text); err == nil {
			t.Errorf("%q is accepted as a target", text)
		}
	}
}

// FuzzNames checks that formatting a parsed name gives the same name.
func FuzzNames(f *testing.F) {
	f.Add(strings.TrimPrefix(imageName(group.Position{Term: 1, Run: 2, Index: 3}, 4, 5), imagesPrefix))
	f.Add("0000000100000002/0000000000000003-0000000000000004-00000000000000zz")
	f.Fuzz(func(t *testing.T, name string) {
		if p, second, at, ok := parseRef(name); ok && imageName(p, second, at) != imagesPrefix+name {
			t.Errorf("%q is read as %v, %d, %d", name, p, second, at)
		}
	})
}
