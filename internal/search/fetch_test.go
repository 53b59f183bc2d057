package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/budget"
	"svc/segment"
)

// TestOrderedPages compares pages of the documents of several segments with parts of the sorted list of all, and the memory for a list
// with what it is charged.
func TestOrderedPages(t *testing.T) {
	l := newLibrary(t)
	random := rand.New(rand.NewPCG(1, 2))
	for from := range 4 {
		var docs []string
		for i := range 40 {
			docs = append(docs, fmt.Sprintf(`{"id":%d}`, (from*31+i*7)%120))
		}
		l.put("a", `{}`, docs...)
	}
	v := held(l.c.Get("a").View())
	defer v.Release()
	if len(v.Segments) < 2 {
		t.Fatalf("%d segments", len(v.Segments))
	}
	for range 300 {
		rows := make([]*roaring.Bitmap, len(v.Segments))
		var all []place
		for seg, s := range v.Segments {
			rows[seg] = roaring.New()
			if random.IntN(3) == 0 {
				continue
			}
			for it := s.LiveRows().Iterator(); it.HasNext(); {
				if row := it.Next(); random.IntN(3) > 0 {
					rows[seg].Add(row)
					all = append(all, place{segment: seg, row: segment.Row(row), id: s.DocID(segment.Row(row))})
				}
			}
		}
		slices.SortFunc(all, func(a, b place) int { return cmp.Compare(a.id, b.id) })
		offset, limit := random.IntN(len(all)+3), []int{1, random.IntN(50), math.MaxInt}[random.IntN(3)]
		want := all[min(offset, len(all)):]
		want = want[:min(limit, len(want))]
		b := budget.New(1<<20, nil)
		account := b.Open(1 << 20)
		got, err := listedPlaces(account, orderedPage(t.Context(), v, rows, offset, limit))
		same := func(a, b place) bool { return a.segment == b.segment && a.row == b.row && a.id == b.id }
		if err != nil || !slices.EqualFunc(got, want, same) {
			t.Fatalf("offset %d, limit %d: %v, %v, want %v", offset, limit, got, err, want)
		}
		if b.Used() != int64(cap(got))*placeBytes {
			t.Fatalf("a list with room for %d is charged %d bytes", cap(got), b.Used())
		}
		if n := len(want); n > 16 {
			short := budget.New(16*placeBytes, nil).Open(1 << 20)
			if _, err := listedPlaces(short, placesOf(want)); !errors.Is(err, budget.ErrFull) {
				t.Fatalf("a list of %d without memory: %v", n, err)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := listedPlaces(nil, orderedPage(ended, v, v.LiveRows(), 0, 5)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the request: %v", err)
	}
}

// TestPagesAreNotListed reads the first document of a page with as many documents as the index, which allocates nothing for the others.
func TestPagesAreNotListed(t *testing.T) {
	const documents = 20_000
	l := newLibrary(t)
	docs := make([]string, documents)
	for i := range docs {
		docs[i] = fmt.Sprintf(`{"id":%d}`, i)
	}
	l.put("a", `{}`, docs...)
	v := held(l.c.Get("a").View())
	defer v.Release()
	least := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := AppendPeerDocuments(t.Context(), nil, v, &FetchRequest{Limit: math.MaxInt, Bare: true}, 1); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if least > documents*placeBytes/4 {
		t.Errorf("%d bytes are allocated for one document of %d", least, documents)
	}
}
