package publish

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zeebo/xxh3"
	"golang.org/x/time/rate"

	"svc/internal/bucket"
	"svc/internal/group"
	"svc/internal/vfs"
)

// stalled is a store that can stall images.
type stalled struct {
	bucket.Store
	stall, stalls chan struct{} // images wait until stall is closed; stalls receives when one waits
}

func (s *stalled) Create(ctx context.Context, name string, content []byte) error {
	if strings.HasPrefix(name, imagesPrefix) {
		select {
		case s.stalls <- struct{}{}:
		default:
		}
		select {
		case <-s.stall:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return s.Store.Create(ctx, name, content)
}

// TestEntriesDoNotWaitForImages publishes entries while an image is uploading. Before the first image is complete, nothing
// counts as published.
func TestEntriesDoNotWaitForImages(t *testing.T) {
	t.Parallel()
	store := &stalled{directory(t), make(chan struct{}), make(chan struct{}, 1)}
	r := rand.New(rand.NewPCG(1, 1))
	h := newHost(t, store, func(o *Options) { o.imageBytes = 1000 })
	<-store.stalls
	h.step(r)
	h.idle()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "entries are in the bucket", func() bool {
		all, err := a.history(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(all.logs) > 0
	})
	if s := h.pub.Status(); s.Position != "" || s.Known {
		t.Errorf("published before the first image: %+v", s)
	}
	store.stall <- struct{}{}
	h.published(h.w.Position())
	for range 3 { // a second image starts and keeps uploading
		h.step(r)
		h.idle()
	}
	<-store.stalls
	h.goOn(r, 1)
	got, _ := restored(t, store, Target{})
	if want := documents(t, h.catalog); len(got) != len(want) {
		t.Errorf("restored as %v, want %v", got, want)
	}
	close(store.stall)
}

// TestObjectsOfEntriesBesideAnImage checks that the files of entries after an image are in the image, or are sent after it began.
func TestObjectsOfEntriesBesideAnImage(t *testing.T) {
	file := func(n int64) upload { return upload{file: group.File{Size: n, Sum: xxh3.Uint128{Lo: uint64(n)}}} }
	name := func(n int64) string { return fileName(file(n).file) }
	o := newObjects()
	want := func(n int64, needed bool) (turn int) {
		t.Helper()
		turn, got := o.want(name(n), file(n))
		if got != needed {
			t.Errorf("file %d must be sent: %v", n, got)
		}
		return turn
	}
	send := func(n int64) { t.Helper(); o.made(name(n), want(n, true), true) }
	for n := range int64(4) {
		send(n)
	}
	early := want(9, true)
	o.begin()
	want(1, false) // needed by an entry after the image, which may lack it
	want(2, false)
	send(5)
	want(5, false)
	o.made(name(9), early, true) // for an entry before the image
	again := o.take([]upload{file(0), file(2)})
	if len(again) != 1 || again[0].file.Size != 1 {
		t.Errorf("%v is sent again, want file 1", again)
	}
	want(0, false)
	want(2, false)
	want(5, false)
	send(3)
	send(9)
	failed := errors.New("needed")
	if err := o.remove(name(2), func() error { return failed }); err != nil {
		t.Error("a known object is removed")
	}
	// An image that is not published forgets no object.
	o.begin()
	want(1, false)
	want(9, false)
	o.take([]upload{file(1)})
	send(2)
	o.commit()
	want(1, false)
	for _, n := range []int64{0, 3, 5} {
		turn := want(n, true)
		o.made(name(n), turn, false)
		send(n)
	}
	// A caller that needs an object which is being removed waits, and then sends it.
	removing, removed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(removed)
		if err := o.remove(name(7), func() error { close(removing); time.Sleep(time.Millisecond); return nil }); err != nil {
			t.Error(err)
		}
	}()
	<-removing
	send(7)
	<-removed
	// An upload that began before an image and ends after it does not count as known.
	late := want(8, true)
	o.begin()
	o.take(nil)
	o.commit()
	o.made(name(8), late, true)
	send(8)
	want(8, false)
}

// slow is a store that can stall files.
type slow struct {
	bucket.Store
	mu    sync.Mutex
	stall chan struct{}  // the next file waits until it is closed; nil: no stall
	puts  map[string]int // files that were sent
}

func (s *slow) Put(ctx context.Context, name string, size int64, content io.Reader) error {
	s.mu.Lock()
	stall := s.stall
	s.stall = nil
	s.mu.Unlock()
	if stall != nil {
		select {
		case <-stall:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := s.Store.Put(ctx, name, size, content)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.puts[name]++
	}
	return err
}

func (s *slow) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.puts)
}

// counted counts answers of a feed without entries.
type counted struct {
	Feed
	empty atomic.Int64
}

func (c *counted) Next(ctx context.Context, after group.Position, wait time.Duration) (*group.Batch, error) {
	b, err := c.Feed.Next(ctx, after, wait)
	if err == nil && len(b.Entries) == 0 {
		c.empty.Add(1)
	}
	return b, err
}

// TestFilesDoNotWaitForEarlierOnes publishes changes while a file of an earlier change is uploading. Entries must keep their order.
func TestFilesDoNotWaitForEarlierOnes(t *testing.T) {
	t.Parallel()
	store := &slow{Store: directory(t), puts: map[string]int{}}
	var feed *counted
	h := newHost(t, store, func(o *Options) {
		feed = &counted{Feed: o.Feed}
		o.Feed, o.poll = feed, time.Microsecond
	})
	h.published(h.w.Position())
	before := len(objectNames(t, store, logPrefix))
	stall := make(chan struct{})
	store.mu.Lock()
	store.stall = stall
	store.mu.Unlock()
	sent := store.count()
	h.put(0, 1)
	await(t, "a file waits", func() bool {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.stall == nil
	})
	h.idle()
	polled := feed.empty.Load()
	await(t, "the feed has nothing new more often than entries can wait", func() bool { return feed.empty.Load() > polled+ahead+10 })
	at := h.pub.Status().Position
	for v := range 3 {
		h.put(v, v)
		h.idle()
	}
	await(t, "later files are sent", func() bool { return store.count() >= sent+3 })
	if s := h.pub.Status(); s.Position != at || len(objectNames(t, store, logPrefix)) != before {
		t.Errorf("entries are published before an earlier one: %v", s)
	}
	close(stall)
	h.published(h.w.Position())
	got, _ := restored(t, store, Target{})
	if want := documents(t, h.catalog); !reflect.DeepEqual(got, want) {
		t.Errorf("restored as %v, want %v", got, want)
	}
}

// TestEntriesWaitInBoundedMemory sets the memory limit to one byte: entries must be read and published one by one.
func TestEntriesWaitInBoundedMemory(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, func(o *Options) { o.aheadBytes = 1 })
	h.goOn(rand.New(rand.NewPCG(rand.Uint64(), 1)), 5)
	got, _ := restored(t, store, Target{})
	if want := documents(t, h.catalog); !reflect.DeepEqual(got, want) {
		t.Errorf("restored as %v, want %v", got, want)
	}
}

// TestObjectsReadTogether checks how many objects are read at once: as many as fit the memory, and at least one.
func TestObjectsReadTogether(t *testing.T) {
	for want, sizes := range map[int][]int64{
		1:        {200, 1, 1},
		2:        {60, 40, 1},
		3:        {1, 1, 1},
		fetchers: make([]int64, fetchers+3),
	} {
		logs := make([]logRef, len(sizes))
		for i, n := range sizes {
			logs[i].bytes = n
		}
		if got := together(logs, 100); got != want {
			t.Errorf("%d of %v are read together, want %d", got, sizes, want)
		}
	}
}

// TestFilesAreSentOnce checks that files in the bucket are not sent again after restarts. Images have new copies of bbolt files.
func TestFilesAreSentOnce(t *testing.T) {
	t.Parallel()
	store := &slow{Store: directory(t), puts: map[string]int{}}
	h := newHost(t, store, nil)
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for range 3 {
		h.goOn(r, 2)
		h.stop()
		h.start()
	}
	h.published(h.w.Position())
	h.stop()
	if len(store.puts) == 0 {
		t.Error("no file was sent")
	}
	for name, n := range store.puts {
		if n != 1 {
			t.Errorf("%s was sent %d times", name, n)
		}
	}
}

// TestRate checks that a rate limit slows reads down as much as it should.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, perSecond = 20 << 20, 2 << 20
		limit := rate.NewLimiter(perSecond, rateBurst)
		began := time.Now()
		n, err := io.Copy(io.Discard, &paced{t.Context(), io.LimitReader(zeros{}, size), limit})
		if took := time.Since(began).Seconds(); err != nil || n != size || math.Abs(took-float64(size-rateBurst)/perSecond) > .1 {
			t.Errorf("%d bytes in %v s: %v", n, took, err)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestFreshness checks the time up to which all changes have been published.
func TestFreshness(t *testing.T) {
	now := time.Now()
	for _, x := range []struct {
		entries  int
		end      uint64
		appended time.Duration // time of the last entry
		want     time.Duration
	}{
		{0, 4, 0, 0},                       // nothing has changed
		{2, 6, -time.Minute, 0},            // all entries are published
		{2, 7, -time.Minute, -time.Minute}, // later entries exist
		{2, 7, time.Minute, 0},             // the clock was set back
	} {
		b := &group.Batch{Run: group.Position{Index: 5}, End: x.end, Now: now.UnixNano(), Entries: make([][]byte, x.entries)}
		e := &entries{batch: b, read: now, last: now.Add(x.appended).UnixNano()}
		if got := e.fresh().Sub(now); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// lateImage is a feed whose first images fail.
type lateImage struct {
	Feed
	fails  int
	failed time.Time // the last time
}

func (l *lateImage) Image(ctx context.Context, stores group.Stores) (*group.Image, error) {
	if l.fails > 0 {
		l.fails--
		time.Sleep(time.Millisecond)
		l.failed = time.Now()
		return nil, errors.New("the disk is full")
	}
	return l.Feed.Image(ctx, stores)
}

// TestImagesAreDatedByTheTryThatSucceeds lets images fail. The directory has changes from after those tries, so its image must not be
// restored for a time before them.
func TestImagesAreDatedByTheTryThatSucceeds(t *testing.T) {
	store := directory(t)
	var feed *lateImage
	h := newHost(t, store, func(o *Options) {
		feed = &lateImage{Feed: o.Feed, fails: 3}
		o.Feed = feed
	})
	h.published(h.w.Position())
	h.stop()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: path.Join(filepath.ToSlash(t.TempDir()), "r"), Target: Target{Time: feed.failed}})
	if err == nil || !strings.Contains(err.Error(), "no state before") {
		t.Errorf("a time before the image is restored: %v", err)
	}
}
