package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/group"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// witness is a feed that keeps all entries of the log, and the files that they name. While it is held, it returns no entries.
type witness struct {
	Feed
	t       *testing.T
	mu      sync.Mutex
	held    chan struct{} // nil or closed: not held
	entries map[uint64]*group.Entry
	files   map[string][]byte // by name of their object
}

func newWitness(t *testing.T) *witness {
	return &witness{t: t, entries: map[uint64]*group.Entry{}, files: map[string][]byte{}}
}

// goOn makes n changes. Most entries arrive together, however long each change takes; a Next that waits already returns the
// first one earlier.
func (w *witness) goOn(h *host, r *rand.Rand, n int) {
	h.t.Helper()
	held := make(chan struct{})
	w.mu.Lock()
	w.held = held
	w.mu.Unlock()
	func() {
		defer close(held) // otherwise the publisher does not end
		for range n {
			h.step(r)
		}
		h.idle()
	}()
	h.published(h.w.Position())
}

func (w *witness) Next(ctx context.Context, after group.Position, wait time.Duration) (*group.Batch, error) {
	w.mu.Lock()
	held := w.held
	w.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	b, err := w.Feed.Next(ctx, after, wait)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, raw := range b.Entries {
		e, err := group.DecodeEntry(bytes.Clone(raw))
		if err != nil {
			w.t.Error(err)
			continue
		}
		w.entries[b.Run.Index+uint64(i)] = e
		for _, f := range e.Files {
			if w.files[fileName(f)] != nil {
				continue
			}
			in, err := w.Open(f.Name)
			if err != nil {
				w.t.Error(err)
				continue
			}
			w.files[fileName(f)], err = io.ReadAll(in)
			if err = errors.Join(err, in.Close()); err != nil {
				w.t.Error(err)
			}
		}
	}
	return b, nil
}

// combining is a host whose entries are combined whenever they name new files. With images, it makes images again and again.
func combining(t *testing.T, r *rand.Rand, images bool) (*host, *witness) {
	w := newWitness(t)
	h := newHost(t, directory(t), func(o *Options) {
		w.Feed = o.Feed
		o.Feed, o.restBytes, o.Interval = w, 1, 10*time.Millisecond
		if images {
			o.Interval = time.Duration(1+r.IntN(40)) * time.Millisecond
			o.imageBytes = int64(2000 + r.IntN(20_000))
		}
	})
	h.published(h.w.Position())
	for range 4 {
		if n := 1 + r.IntN(6); images {
			h.goOn(r, n)
		} else {
			w.goOn(h, r, n)
		}
	}
	h.stop()
	return h, w
}

// TestCombinedEntriesAreRestored restores positions of combined entries and compares the directory with that of the log. A position inside
// a combined group must be refused with an error that names its neighbours.
func TestCombinedEntriesAreRestored(t *testing.T) {
	t.Parallel()
	for n := range 2 * *rounds {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			h, w := combining(t, r, n%2 == 1)
			a, err := Open(t.Context(), h.store, masterKey)
			if err != nil {
				t.Fatal(err)
			}
			if got := damages(t, h.store, nil); got != nil {
				t.Errorf("%q are damaged", got)
			}
			lacking := 0
			for name := range w.files {
				if in, err := a.open(t.Context(), name); errors.Is(err, fs.ErrNotExist) {
					lacking++
				} else if err == nil {
					_ = in.Close()
				}
			}
			all, err := a.history(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			last, err := all.latest()
			if err != nil {
				t.Fatal(err)
			}
			restored, refused := 0, 0
			for _, to := range someOf(t, a, all, last, r) {
				p, err := all.planFor(to)
				if err != nil {
					break // the first image comes later
				}
				root := filepath.ToSlash(t.TempDir())
				o := RestoreOptions{FS: vfs.OS, Dir: path.Join(root, "restored"), Target: Target{Position: to}}
				_, err = a.Restore(t.Context(), o)
				if err != nil && strings.Contains(err.Error(), "it was combined with later changes") {
					refused++
					_, near, _ := strings.Cut(err.Error(), "Restore ")
					text, other, _ := strings.Cut(near, " or ")
					for _, text := range []string{text, other} {
						if text == "" {
							continue
						}
						if o.Target.Position, err = group.ParsePosition(text); err != nil {
							t.Fatal(err)
						}
						if _, err = a.Restore(t.Context(), o); err != nil {
							t.Fatalf("of %q: %v", near, err)
						}
						if err := os.RemoveAll(o.Dir); err != nil {
							t.Fatal(err)
						}
					}
					at := time.Unix(0, w.entries[to.Index].At)
					made, err := a.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: path.Join(root, "timed"), Target: Target{Time: at}})
					if err == nil && (made.At.After(at) || made.Position.Index >= to.Index && w.entries[to.Index+1].At != at.UnixNano()) {
						t.Errorf("restoring %v gives position %v", to, made.Position)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				restored++
				replay(t, a, w, p, path.Join(root, "replayed"))
				if got, want := filesBelow(t, path.Join(root, "restored")), filesBelow(t, path.Join(root, "replayed")); !reflect.DeepEqual(got, want) {
					t.Errorf("position %v of %v is restored as %v, want %v", to, p.image.name, got, want)
				}
			}
			if restored == 0 || refused == 0 && n%2 == 0 {
				t.Errorf("%d positions were restored, %d refused; want some of both", restored, refused)
			}
			t.Logf("%d of %d files are not stored; %d positions were restored, %d refused", lacking, len(w.files), restored, refused)
		})
	}
}

// someOf returns some of the last 40 positions, and the last one inside combined entries.
func someOf(t *testing.T, a *Archive, all *history, last group.Position, r *rand.Rand) (some []group.Position) {
	t.Helper()
	next, inside := last.Index, false
	for to := last; to.Index > last.Index-min(last.Index, 40); to.Index-- {
		p, err := all.planFor(to)
		if err != nil {
			break // the first image comes later
		}
		refused := a.settles(t.Context(), p) != nil
		if to.Index == next || refused && !inside {
			some = append(some, to)
			inside = inside || refused
		}
		if to.Index == next {
			next -= 1 + r.Uint64N(4)
		}
	}
	return some
}

// replay builds a directory from an image and the log entries after it.
func replay(t *testing.T, a *Archive, w *witness, p *plan, dir string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	filled(t, a, p, dir)
	d := standby.Open(standby.Options{FS: vfs.OS, Dir: dir})
	for index := p.image.from.Index + 1; index <= p.to.Index; index++ {
		e := w.entries[index]
		must(d.Apply(e.Change, func(name string) (io.ReadCloser, error) {
			for _, f := range e.Files {
				if f.Name == name {
					return io.NopCloser(bytes.NewReader(w.files[fileName(f)])), nil
				}
			}
			return nil, fs.ErrNotExist
		}))
		for _, name := range e.Removed {
			if err := vfs.OS.Remove(path.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
				must(err)
			}
		}
	}
	must(d.Close())
}

// TestFollowersAmongCombinedEntries kills a follower at random points. It must be able to go on, and may be promoted only if its directory
// is one that the writer had.
func TestFollowersAmongCombinedEntries(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h, w := combining(t, rand.New(rand.NewPCG(seed, 1)), false)
	a, err := Open(t.Context(), h.store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	all, err := a.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last, err := all.latest()
	if err != nil {
		t.Fatal(err)
	}
	refused, promoted := 0, 0
	for shift := 0; shift == 0 || shift < 50 && (promoted == 0 || refused == 0); shift += 7 { // other moments if these are all of one kind
		for n := -8; ; n += 1 + max(0, n)/8 {
			// The follower is killed after a number of file operations, most of which may belong to the image; or when it starts with
			// combined entries, or some operations later.
			if n == 0 {
				n = 100 + shift
			}
			dir := path.Join(filepath.ToSlash(t.TempDir()), "follower")
			from := NewFollower(FollowOptions{Store: readOnly{h.store, t}, MasterKey: masterKey, Interval: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
			left, counting, dead := n, n > 0, make(chan struct{})
			var mu sync.Mutex // files are fetched side by side
			cut := vfs.Hook(vfs.OS, func(o vfs.Op) error {
				mu.Lock()
				defer mu.Unlock()
				if !counting && strings.HasSuffix(o.NewName, "/unsettled") {
					counting, left = true, n+8
				}
				if !counting {
					return nil
				}
				if left--; left < 0 {
					if left == -1 {
						close(dead)
					}
					return errCut
				}
				return nil
			})
			reader, err := group.OpenReader(group.ReaderOptions{FS: cut, Dir: dir, Format: "4", From: from, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				continue
			}
			ctx, end := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() {
				if reader.Join(ctx) == nil {
					d := standby.Open(standby.Options{FS: cut, Dir: dir})
					_ = errors.Join(reader.Follow(ctx, d), d.Close())
				}
			})
			whole := false
			await(t, "the follower is killed, or has all", func() bool {
				select {
				case <-dead:
					return true
				default:
					whole = reader.Position().Compare(last) >= 0
					return whole
				}
			})
			end()
			done.Wait()
			_ = reader.Close()
			if whole {
				break
			}
			if reader.Position().Term == 0 {
				continue
			}
			// A killed follower may have recorded more than it knew.
			reader, err = group.OpenReader(group.ReaderOptions{FS: vfs.OS, Dir: dir, Format: "4", From: from, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			at := reader.Position()
			if err := reader.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err = group.Promote(vfs.OS, dir, nil); err != nil {
				if !strings.Contains(err.Error(), "inside changes that were combined") {
					t.Errorf("at %v of %v: %v", at, last, err)
				}
				refused++
				f := &follower{t: t, dir: dir, store: h.store} // continues
				f.start()
				await(t, "the follower has all", func() bool { return f.r.Position().Compare(last) >= 0 })
				f.stop()
				continue
			}
			promoted++
			p, err := all.planFor(at)
			if err == nil {
				err = a.settles(t.Context(), p)
			}
			if err != nil && strings.Contains(err.Error(), "it was combined with later changes") {
				t.Errorf("promoted at %v: %v", at, err)
			}
		}
	}
	if promoted == 0 || refused == 0 {
		t.Errorf("%d followers were promoted, %d refused, with %d entries", promoted, refused, len(w.entries))
	}
}
