package publish

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/bucket"
	"svc/internal/bucket/s3test"
	"svc/internal/group"
	"svc/internal/index"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// readOnly is a store that fails the test on writes.
type readOnly struct {
	bucket.Store
	t *testing.T
}

func (s readOnly) Put(context.Context, string, int64, io.Reader) error {
	s.t.Error("a follower puts an object")
	return errors.ErrUnsupported
}

func (s readOnly) Create(context.Context, string, []byte) error {
	s.t.Error("a follower creates an object")
	return errors.ErrUnsupported
}

func (s readOnly) Remove(context.Context, string) error {
	s.t.Error("a follower removes an object")
	return errors.ErrUnsupported
}

// follower is a data directory that follows a publication.
type follower struct {
	t     *testing.T
	dir   string
	store bucket.Store
	r     *group.Reader
	end   context.CancelFunc
	done  sync.WaitGroup
	times int // how often the directory was replaced
}

func (f *follower) start() {
	f.t.Helper()
	from := NewFollower(FollowOptions{Store: readOnly{f.store, f.t}, MasterKey: masterKey, Interval: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	r, err := group.OpenReader(group.ReaderOptions{FS: vfs.OS, Dir: f.dir, Format: "4", From: from, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	f.r, f.end = r, end
	f.done.Go(func() {
		err := r.Join(ctx)
		for err == nil && ctx.Err() == nil {
			d := standby.Open(standby.Options{FS: vfs.OS, Dir: f.dir})
			err = errors.Join(r.Follow(ctx, d), d.Close())
			if errors.Is(err, group.ErrReplace) {
				f.times++
				err = r.Replace()
			}
		}
		if err != nil && ctx.Err() == nil {
			f.t.Error(err)
		}
	})
}

func (f *follower) stop() {
	f.t.Helper()
	f.end()
	f.done.Wait()
	if err := f.r.Close(); err != nil {
		f.t.Error(err)
	}
}

// compare waits until the follower is where the host is, stops it, and compares the two directories.
func (f *follower) compare(h *host) {
	f.t.Helper()
	await(f.t, "the follower is where the writer is", func() bool { return f.r.Position() == h.w.Position() }) // the writer may merge segments meanwhile
	want := documents(f.t, h.catalog)
	f.stop()
	catalog, err := index.OpenCatalog(path.Join(f.dir, "indexes"), index.Options{FS: vfs.OS, MaxIndexingThreads: 1, Follow: true})
	if err != nil {
		f.t.Fatal(err)
	}
	if got := documents(f.t, catalog); !reflect.DeepEqual(got, want) {
		f.t.Errorf("at %v the follower has %v, want %v", f.r.Position(), got, want)
	}
	if err := catalog.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// TestFollowersEqualTheWriter follows random changes while the store fails, the writer restarts, old positions expire, and the follower is
// away for some of them.
func TestFollowersEqualTheWriter(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := s3test.New()
	defer s.Close()
	odds := rand.New(rand.NewPCG(seed, 2))
	s.Fault = func(*http.Request) s3test.Fault {
		if odds.IntN(30) > 0 {
			return s3test.None
		}
		return s3test.Fault(1 + odds.IntN(int(s3test.Stale)))
	}
	store := s3Store(t, s)
	h := newHost(t, store, func(o *Options) {
		o.imageBytes, o.Keep, o.margin = int64(2000+r.IntN(5000)), time.Nanosecond, time.Nanosecond
	})
	f := &follower{t: t, dir: path.Join(filepath.ToSlash(t.TempDir()), "follower"), store: store}
	f.start()
	for range *rounds + 1 {
		for range 1 + r.IntN(5) {
			h.step(r)
		}
		if r.IntN(3) == 0 {
			h.stop()
			h.start()
		}
		h.idle()
		f.compare(h)
		for range r.IntN(4) { // while the follower is away
			h.step(r)
		}
		h.idle()
		f.start()
	}
	f.compare(h)
	t.Logf("the directory was replaced %d times", f.times)
}

// TestFollowersOutliveDamage damages an object that a follower needs next, and checks that it continues from a later image.
func TestFollowersOutliveDamage(t *testing.T) {
	t.Parallel()
	for _, what := range []string{logPrefix, filesPrefix, imagesPrefix} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := s3test.New()
			defer s.Close()
			store := s3Store(t, s)
			h := newHost(t, store, func(o *Options) { o.imageBytes = 2000 })
			f := &follower{t: t, dir: path.Join(filepath.ToSlash(t.TempDir()), "follower"), store: store}
			r := rand.New(rand.NewPCG(1, 1))
			h.step(r)
			h.idle()
			f.start()
			f.compare(h)
			before := s.Objects()
			h.goOn(r, 3)
			damaged := 0
			for name, content := range s.Objects() {
				if inside := strings.TrimPrefix(name, "/backups/svc/"); before[name] == nil && strings.HasPrefix(inside, what) {
					content[len(content)/2] ^= 1
					damaged++
					if what == filesPrefix {
						break
					}
				}
			}
			f.start()
			if what == imagesPrefix { // the follower needs only the log, which is sound
				f.compare(h)
				return
			}
			if damaged == 0 {
				t.Fatal("no object to damage")
			}
			// The next image has everything. Lost objects are sent again.
			h.stop()
			for name := range s.Objects() {
				if inside := strings.TrimPrefix(name, "/backups/svc/"); what == filesPrefix && before[name] == nil && strings.HasPrefix(inside, what) {
					if err := store.Remove(t.Context(), inside); err != nil {
						t.Fatal(err)
					}
				}
			}
			h.start()
			h.step(r)
			h.idle()
			f.compare(h)
			if f.times == 0 {
				t.Error("the follower has not copied the directory again")
			}
		})
	}
}

// TestFollowersDoNotGoBack follows a store that returns old lists: the directory must never go back, nor be copied again for that.
func TestFollowersDoNotGoBack(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	r := rand.New(rand.NewPCG(1, 1))
	h.published(h.w.Position())
	h.goOn(r, 1)
	h.stop()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	all, err := a.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := all.latest()
	if err != nil {
		t.Fatal(err)
	}
	f := NewFollower(FollowOptions{Store: store, MasterKey: masterKey, Interval: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if _, err := f.Image(t.Context(), at); err != nil {
		t.Errorf("the position %v is not found: %v", at, err)
	}
	later := at
	later.Index++
	if _, err := f.Image(t.Context(), later); err == nil || errors.Is(err, group.ErrCut) {
		t.Errorf("the image leads to %v: %v", later, err)
	}
	if b, err := f.Next(t.Context(), at, time.Millisecond); err != nil || len(b.Entries) > 0 || b.End != at.Index {
		t.Errorf("after the end: %v, %v", b, err)
	}
	// An entry is missing although later ones exist.
	next := group.Position{Term: at.Term, Run: at.Run, Index: at.Index + 2}
	batch := &group.Batch{Run: next, End: next.Index, Entries: [][]byte{(&group.Entry{}).Encode()}}
	if _, err := a.createOnce(t.Context(), logName(next, next.Index, 1), batch.Encode()); err != nil {
		t.Fatal(err)
	}
	cut := false
	for range 100 {
		b, err := f.Next(t.Context(), at, time.Millisecond)
		if cut = errors.Is(err, group.ErrCut); cut {
			break
		}
		if err != nil || len(b.Entries) > 0 {
			t.Fatalf("a gap is %v, %v", b, err)
		}
	}
	if !cut {
		t.Error("the follower waits forever for the missing entry")
	}
	// A batch that is read from the middle.
	first := all.logs[0].first
	first.Index--
	middle := at
	middle.Index--
	if middle.Compare(first) < 0 {
		t.Fatal("no entries")
	}
	b, err := f.Next(t.Context(), middle, 0)
	if err != nil || len(b.Entries) != 1 || b.Run != at {
		t.Fatalf("after %v: %v, %v", middle, b, err)
	}
	whole, err := f.Next(t.Context(), first, 0)
	if err != nil || whole.Run != all.logs[0].first || !bytes.Equal(b.Entries[0], lastEntry(t, f, whole)) {
		t.Errorf("from the start: %v, %v", whole, err)
	}
}

// lastEntry reads the entries after a batch to the end, and returns the last one.
func lastEntry(t *testing.T, f *Follower, b *group.Batch) []byte {
	t.Helper()
	var last []byte
	for len(b.Entries) > 0 {
		last = b.Entries[len(b.Entries)-1]
		at := b.Run
		at.Index += uint64(len(b.Entries)) - 1
		var err error
		if b, err = f.Next(t.Context(), at, 0); err != nil {
			t.Fatal(err)
		}
	}
	return last
}
