package publish

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"svc/internal/bucket"
	"svc/internal/group"
)

// hooked is a store that calls open before it opens an object.
type hooked struct {
	bucket.Store
	open func(name string)
}

func (h hooked) Open(ctx context.Context, name string, from int64) (io.ReadCloser, error) {
	h.open(name)
	return h.Store.Open(ctx, name, from)
}

// stillFeed is a feed that supports only Read.
type stillFeed struct{ Feed }

func (stillFeed) Read() {}

// archived returns a publisher that does not run, with an image of files of these sizes, and counts how often each object is opened.
func archived(t *testing.T, sizes ...int) (*Publisher, *group.Image, map[string]int) {
	t.Helper()
	opened := map[string]int{}
	store := hooked{directory(t), func(name string) { opened[name]++ }}
	a := &Archive{store: store}
	st := &group.Image{Run: group.Position{Term: 1, Run: 1, Index: 5}, Whole: 5}
	for i, size := range sizes {
		content := bytes.Repeat([]byte{byte(i)}, size)
		f := group.File{Name: "f", Size: int64(size), Sum: xxh3.Hash128(content)}
		if _, err := a.put(t.Context(), fileName(f), bytes.NewReader(content), f.Size); err != nil {
			t.Fatal(err)
		}
		st.Files = append(st.Files, group.ImageFile{File: f})
	}
	o := Options{Store: store, Feed: stillFeed{}, Verify: 24 * time.Hour, Now: time.Now, Logger: slog.New(slog.DiscardHandler), heal: time.Hour}
	return &Publisher{o: o, archive: a, objects: newObjects()}, st, opened
}

// TestFilesAreReadOncePerPeriod takes steps of an hour: each file must be read once in 24 steps, whatever its size and however many
// images are made.
func TestFilesAreReadOncePerPeriod(t *testing.T) {
	for _, sizes := range [][]int{{1}, {1000}, {1000, 1001, 1002, 1003}, {100_000, 10, 11, 12}, {7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}} {
		for _, images := range []bool{false, true} {
			p, st, opened := archived(t, sizes...)
			s := newScrubber(p)
			if _, err := s.image(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			const times = 10
			for range times * 24 {
				if again, err := s.wake(t.Context()); again || err != nil {
					t.Fatal(again, err)
				}
				s.next = s.next.Add(-time.Hour) // an hour passes
				if images {
					before := s.next
					if again, err := s.image(t.Context(), st); again || err != nil || s.next != before {
						t.Fatalf("%v, %v: an image moved the next step from %v to %v", again, err, before, s.next)
					}
				}
			}
			for i := range st.Files {
				if n := opened[fileName(st.Files[i].File)]; n < times-1 || n > times+1 {
					t.Errorf("sizes %v: file %d was read %d times, want %d", sizes, i, n, times)
				}
			}
		}
	}
}

// TestRepairsAreSpaced finds damage just after an image was requested: the next image must be requested later.
func TestRepairsAreSpaced(t *testing.T) {
	for _, verify := range []time.Duration{0, 24 * time.Hour} {
		p, st, _ := archived(t, 10, 11)
		p.o.Verify = verify
		s := newScrubber(p)
		s.healed = time.Now()
		damage(t, p.o.Store, fileName(st.Files[0].File), "missing")
		if again, err := s.image(t.Context(), st); again || err != nil || s.due() == nil {
			t.Fatalf("%v, %v: an image is requested too early, or not scheduled", again, err)
		}
		if again, err := s.wake(t.Context()); again || err != nil {
			t.Fatal(again, err)
		}
		s.healed = s.healed.Add(-p.o.heal)
		select {
		case <-s.due():
		case <-time.After(time.Minute):
			t.Fatal("no repair is due")
		}
		if again, err := s.wake(t.Context()); !again || err != nil {
			t.Errorf("%v, %v: no image is requested", again, err)
		}
		if again, err := s.wake(t.Context()); again || err != nil {
			t.Errorf("%v, %v: a second image is requested", again, err)
		}
	}
}

// TestMissingEntriesAreFound removes objects with entries after an image. The first of them also has an entry before the image.
func TestMissingEntriesAreFound(t *testing.T) {
	for _, x := range []struct {
		missing []int // indexes of the objects with entries 5 and 6, 7 and 8, 9 and 10
		damaged int64
	}{{nil, 0}, {[]int{0}, 1}, {[]int{1}, 1}, {[]int{2}, 1}, {[]int{0, 2}, 2}, {[]int{0, 1, 2}, 1}} {
		p, st, opened := archived(t, 10)
		var names []string
		for i := range 3 {
			first := st.Run
			first.Index = uint64(5 + 2*i)
			e := &group.Batch{Run: first, End: first.Index + 1, Entries: [][]byte{{1}, {2}}}
			names = append(names, logName(first, first.Index+1, 1))
			if _, err := p.archive.createOnce(t.Context(), names[i], e.Encode()); err != nil {
				t.Fatal(err)
			}
		}
		p.last = group.Position{Term: 1, Run: 1, Index: 10}
		for _, i := range x.missing {
			if err := p.o.Store.Remove(t.Context(), names[i]); err != nil {
				t.Fatal(err)
			}
		}
		s := newScrubber(p)
		if _, err := s.image(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		bad, err := s.entries(t.Context())
		if bad || err != nil {
			t.Errorf("without %v: %v, %v: a stale list counts as damage", x.missing, bad, err)
		}
		for range 4 {
			found, err := s.entries(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			bad = bad || found
		}
		if n := p.Status().Damaged; n != x.damaged || bad != (n > 0) || s.from.Index != 10 {
			t.Errorf("without %v: damage %d times, %v, read up to %d", x.missing, n, bad, s.from.Index)
		}
		for i, name := range names {
			if n := opened[name]; !slices.Contains(x.missing, i) && n != 1 {
				t.Errorf("without %v: %s was read %d times", x.missing, name, n)
			}
		}
	}
}
