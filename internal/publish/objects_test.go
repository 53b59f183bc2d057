package publish

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"svc/internal/bucket"
	"svc/internal/group"
)

// stalled is a store whose images wait.
type stalled struct {
	bucket.Store
	stall, stalls chan struct{} // images wait while stall is open; stalls has one that does
}

func (s *stalled) Create(ctx context.Context, name string, content []byte) error {
	if strings.HasPrefix(name, statesPrefix) {
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

// TestEntriesDoNotWaitForImages publishes entries while an image is on its way. Before there is a first image, nothing is called published.
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
		t.Errorf("without an image, %+v is published", s)
	}
	store.stall <- struct{}{}
	h.published(h.w.Position())
	for range 3 { // there is another image, which stays on its way
		h.step(r)
		h.idle()
	}
	<-store.stalls
	h.goOn(r, 1)
	got, _ := restored(t, store, Target{})
	if want := documents(t, h.catalog); len(got) != len(want) {
		t.Errorf("restored as %v, and was %v", got, want)
	}
	close(store.stall)
}

// TestObjectsOfEntriesBesideAnImage: what entries behind an image need is in the image, or is sent after it was started.
func TestObjectsOfEntriesBesideAnImage(t *testing.T) {
	file := func(n int64) upload { return upload{file: group.File{Size: n, Sum: xxh3.Uint128{Lo: uint64(n)}}} }
	name := func(n int64) string { return fileName(file(n).file) }
	o := newObjects()
	want := func(n int64, needed bool) (turn int) {
		t.Helper()
		turn, got := o.want(name(n), file(n))
		if got != needed {
			t.Errorf("file %d is to be sent: %v", n, got)
		}
		return turn
	}
	send := func(n int64) { t.Helper(); o.made(name(n), want(n, true), true) }
	for n := range int64(4) {
		send(n)
	}
	early := want(9, true)
	o.begin()
	want(1, false) // by an entry behind the image, which may lack it
	want(2, false)
	send(5)
	want(5, false)
	o.made(name(9), early, true) // for an entry before the image
	again := o.take([]upload{file(0), file(2)})
	if len(again) != 1 || again[0].file.Size != 1 {
		t.Errorf("%v is sent again, and not file 1", again)
	}
	want(0, false)
	want(2, false)
	want(5, false)
	send(3)
	send(9)
	failed := errors.New("it is needed")
	if err := o.remove(name(2), func() error { return failed }); err != nil {
		t.Error("an object is removed that is known")
	}
	// An image that was not published forgets nothing.
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
	// Who needs an object that is being removed waits, and sends it.
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
}
