package scroll

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/turns"
	"svc/internal/vfs"
	"svc/segment"
)

// clock is a store whose clock stands still.
type clock struct {
	*Store
	at time.Time
}

func newClock(secret string) *clock {
	c := &clock{at: time.Unix(1e9, 0)}
	c.Store = NewStore([]byte(secret), func() time.Time { return c.at })
	return c
}

const wrong apierr.Code = "invalid_search_cursor"

func (c *clock) open(t *testing.T, cursor string) *Page {
	t.Helper()
	p, err := c.Open(context.Background(), cursor, Digest{1}, wrong)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (c *clock) code(cursor string, of Digest) apierr.Code {
	p, err := c.Open(context.Background(), cursor, of, wrong)
	if err == nil {
		p.Close()
		return ""
	}
	var e *apierr.Error
	if !errors.As(err, &e) {
		return apierr.Code(err.Error())
	}
	return e.Code
}

// turn reads a page with some documents.
func (c *clock) turn(t *testing.T, cursor string, ids ...segment.DocID) string {
	t.Helper()
	p := c.open(t, cursor)
	defer p.Close()
	return p.Next(ids)
}

func TestAPageMayBeReadTwice(t *testing.T) {
	c := newClock("x")
	first := c.turn(t, "", 5, 3)
	lost := c.turn(t, first, 7)
	second := c.turn(t, first, 9) // the answer with document 7 was lost
	if lost != second {
		t.Errorf("the cursors after the same page are %s and %s", lost, second)
	}
	p := c.open(t, second)
	if got := p.place.seen.ToArray(); !slices.Equal(got, []uint32{3, 5, 9}) || p.Before() != 3 {
		t.Errorf("seen %v, before %d", got, p.Before())
	}
	p.Close() // closed without an answer
	p = c.open(t, second)
	if got := p.place.seen.ToArray(); !slices.Equal(got, []uint32{3, 5, 9}) || p.Before() != 3 {
		t.Errorf("second read: seen %v, before %d", got, p.Before())
	}
	p.Close()
	if got := c.code(first, Digest{1}); got != "cursor_expired" {
		t.Errorf("a page before: %q", got)
	}
}

func TestPlacesThatAreDropped(t *testing.T) {
	c := newClock("x")
	cursor := c.turn(t, "", 1)
	c.at = c.at.Add(IdleTime)
	cursor = c.turn(t, cursor, 2)
	c.at = c.at.Add(IdleTime + 1)
	if got := c.code(cursor, Digest{1}); got != "cursor_expired" {
		t.Errorf("after a while: %q", got)
	}
	if n, bytes := c.Places(); n != 0 || bytes != 0 {
		t.Errorf("%d places with %d bytes", n, bytes)
	}
	c.maxPlaces = 3
	var cursors []string
	for range 4 {
		cursors = append(cursors, c.turn(t, "", 1))
		if len(cursors) == 3 {
			cursors[0] = c.turn(t, cursors[0], 2)
		}
	}
	for i, want := range []apierr.Code{"", "cursor_expired", "", ""} {
		if got := c.code(cursors[i], Digest{1}); got != want {
			t.Errorf("cursor %d: %q, want %q", i, got, want)
		}
	}
	c.maxBytes = 3*placeBytes + 100
	ids := make([]segment.DocID, 4000)
	for i := range ids {
		ids[i] = segment.DocID(7 * i)
	}
	c.turn(t, "", ids...)
	if n, _ := c.Places(); n != 0 {
		t.Errorf("%d places exceed the limit", n)
	}
	// A place that is dropped while a page is being read stays dropped.
	c.maxBytes = MaxBytes
	cursor = c.turn(t, "", 1)
	p := c.open(t, cursor)
	c.at = c.at.Add(IdleTime + 1)
	c.turn(t, "", 1)
	cursor = p.Next([]segment.DocID{2})
	p.Close()
	if got := c.code(cursor, Digest{1}); got != "cursor_expired" {
		t.Errorf("dropped at work: %q", got)
	}
	if n, bytes := c.Places(); n != 1 || bytes < placeBytes || bytes > 2*placeBytes {
		t.Errorf("%d places with %d bytes", n, bytes)
	}
}

func TestOnePageAtATime(t *testing.T) {
	c := newClock("x")
	cursor := c.turn(t, "", 1)
	p := c.open(t, cursor)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Open(ctx, cursor, Digest{1}, wrong); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that waits for a page gets %v", err)
	}
	p.Close()
	p.Close()
	c.open(t, cursor).Close()
}

// pausedTurn counts how often it was paused and resumed.
type pausedTurn struct {
	turns.Turn
	pauses, resumes atomic.Int32
}

func (p *pausedTurn) Pause()  { p.pauses.Add(1) }
func (p *pausedTurn) Resume() { p.resumes.Add(1) }

// TestAWaitForAPageReleasesTheTurn has requests wait for a page that another one works on, until that one ends or the wait is
// cancelled.
func TestAWaitForAPageReleasesTheTurn(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newClock("x")
			cursor := c.turn(t, "", 1)
			p := c.open(t, cursor)
			var own pausedTurn
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), turns.Key, turns.Turn(&own)))
			defer cancel()
			counts := func() [2]int32 { return [2]int32{own.pauses.Load(), own.resumes.Load()} }
			opened := make(chan error)
			go func() {
				again, err := c.Open(ctx, cursor, Digest{1}, wrong)
				if err == nil {
					again.Close()
				}
				opened <- err
			}()
			synctest.Wait()
			if got := counts(); got != [2]int32{1, 0} {
				t.Errorf("during the wait: %d pauses, and ends of a pause", got)
			}
			var want error
			if cancelled {
				want = context.Canceled
				cancel()
			} else {
				p.Close()
			}
			if err := <-opened; !errors.Is(err, want) {
				t.Errorf("the wait ends with %v, want %v", err, want)
			}
			p.Close()
			again, err := c.Open(ctx, cursor, Digest{1}, wrong)
			if err != nil {
				t.Fatalf("a page that is free: %v", err)
			}
			again.Close()
			if got := counts(); got != [2]int32{1, 1} {
				t.Errorf("at the end: %d pauses, and ends of a pause", got)
			}
		})
	}
}

func TestCursorsThatAreRefused(t *testing.T) {
	c, other := newClock("x"), newClock("y")
	place := c.turn(t, "", 1)
	p := c.open(t, "")
	after := p.NextAfter([]segment.DocID{4, 70000})
	for what, cursor := range map[string]string{"of a place": place, "behind an id": after} {
		if got := c.code(cursor, Digest{1}); got != "" {
			t.Errorf("%s: %q", what, got)
		}
		if got := c.code(cursor, Digest{2}); got != wrong {
			t.Errorf("%s, of another search: %q", what, got)
		}
		if got := other.code(cursor, Digest{1}); got != wrong {
			t.Errorf("%s, of another server: %q", what, got)
		}
		if len(cursor) > MaxCursorBytes {
			t.Errorf("%s: %d bytes", what, len(cursor))
		}
	}
	same := newClock("x")
	if got := same.code(place, Digest{1}); got != "cursor_expired" {
		t.Errorf("after a restart: %q", got)
	}
	p = same.open(t, after)
	if p.Before() != 2 || p.after != 70000 {
		t.Errorf("after a restart the cursor continues after %d, %d documents", p.after, p.Before())
	}
	longest := c.print(&cursor{kind: atPlace, page: 1<<64 - 1})
	if len(longest) > MaxCursorBytes {
		t.Errorf("the longest cursor has %d bytes", len(longest))
	}
}

func FuzzCursor(f *testing.F) {
	c := newClock("x")
	f.Add(c.print(&cursor{kind: afterID, of: Digest{1}, after: 9, hits: 4}))
	f.Add(c.print(&cursor{kind: atPlace, of: Digest{1}, place: placeID{3}, page: 300}))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if got, ok := c.parse(text); ok && c.print(&got) != text {
			t.Errorf("%q is read as %+v", text, got)
		}
	})
}

// TestRowsOfIds compares the rows of random ids, in segments with and without gaps, with a check of each row.
func TestRowsOfIds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fs := vfs.NewMem()
	for range 100 {
		gap := 1 + r.IntN(4)
		b := segment.NewBuilder(segment.BuilderOptions{})
		id := segment.DocID(r.IntN(50))
		n := 1 + r.IntN(60)
		for range n {
			b.StartDoc(id, fmt.Append(nil, id), []byte(`{}`))
			b.EndDoc()
			id += segment.DocID(1 + r.IntN(gap))
		}
		if _, err := b.Write(context.Background(), fs, "s.seg"); err != nil {
			t.Fatal(err)
		}
		reader, err := segment.Open(fs, "s.seg")
		if err != nil {
			t.Fatal(err)
		}
		ids := roaring.New()
		for range r.IntN(80) {
			ids.Add(uint32(r.IntN(300)))
		}
		want := roaring.New()
		for row := range n {
			if ids.Contains(uint32(reader.DocID(segment.Row(row)))) {
				want.Add(uint32(row))
			}
		}
		if got := rowsOf(reader, ids); !got.Equals(want) {
			t.Fatalf("rows %v, want %v", got, want)
		}
		high := int64(r.IntN(300)) - 1
		want = roaring.New()
		for row := range n {
			if int64(reader.DocID(segment.Row(row))) <= high {
				want.Add(uint32(row))
			}
		}
		if got := upTo(reader, high); !got.Equals(want) {
			t.Fatalf("rows up to %d are %v, want %v", high, got, want)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
