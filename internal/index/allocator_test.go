package index

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
	"svc/segment"
)

// TestIDsOfLiveDocuments compares the ids of live documents with those of a walk over all rows.
func TestIDsOfLiveDocuments(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		b := newBed(t, vfs.NewMem(), Options{})
		ix := b.create("a")
		for range 1 + rng.IntN(4) {
			var docs, gone []string
			for range rng.IntN(60) {
				docs = append(docs, fmt.Sprintf(`{"id":%d}`, rng.IntN(100)))
				gone = append(gone, fmt.Sprint(rng.IntN(100)))
			}
			b.apply(ix, b.payload(docs...), DeleteDocuments{gone[:len(gone)/3]})
		}
		v := held(ix.View())
		for _, l := range v.Segments {
			want := roaring.New()
			for it := l.LiveRows().Iterator(); it.HasNext(); {
				want.Add(uint32(l.DocID(segment.Row(it.Next()))))
			}
			if got := idsOf(l); !got.Equals(want) {
				t.Errorf("ids %v, want %v", got, want)
			}
		}
		v.Release()
		b.close()
	}
}

// TestIDsAreGivenOutOnce takes and frees ids over several batches, some of which are not committed, and compares them with a walk from 0.
// Sets of more than 65,536 ids have several containers, including full ones.
func TestIDsAreGivenOutOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, first := range []int{0, 1, 100, 65535, 65536, 65537, 131072, 200_000} {
		used := make([]bool, first+100_000)
		a := &allocator{used: roaring.New()}
		a.begin()
		take := func(n int) (ids []int) {
			at := 0
			for range n {
				id, err := a.take()
				if err != nil {
					t.Fatal(err)
				}
				for used[at] {
					at++
				}
				if int(id) != at {
					t.Fatalf("%d at first: got id %d, want %d", first, id, at)
				}
				ids = append(ids, at)
				at++
			}
			return ids
		}
		commit := func(given, freed []int) {
			a.committed()
			for _, id := range given {
				used[id] = true
			}
			for _, id := range freed {
				used[id] = false
			}
		}
		commit(take(first), nil)
		for round := range 6 {
			if round == 3 { // as after a start
				a.used.RunOptimize()
			}
			take(rng.IntN(5))
			a.begin() // a batch that fails
			given := take(rng.IntN(1 + rng.IntN(10_000)))
			var freed []int
			for range rng.IntN(20) {
				if id := rng.IntN(len(used)); used[id] {
					freed = append(freed, id)
					a.free(segment.DocID(id))
				}
			}
			commit(given, freed)
		}
	}
}

func TestNextAbsent(t *testing.T) {
	full := roaring.New()
	full.AddRange(0, 1<<32)
	top := roaring.New()
	top.AddRange(1<<32-100, 1<<32)
	for _, tt := range []struct {
		name       string
		set        *roaring.Bitmap
		from, want int64
	}{
		{"nothing", roaring.New(), 7, 7},
		{"all", full, 0, 1 << 32},
		{"all", full, 1<<32 - 1, 1 << 32},
		{"the end", top, 1<<32 - 50, 1 << 32},
		{"the end", top, 5, 5},
		{"past the end", top, 1 << 32, 1 << 32},
	} {
		if got := nextAbsent(tt.set, tt.from); got != tt.want {
			t.Errorf("%s from %d: %d, want %d", tt.name, tt.from, got, tt.want)
		}
	}
}

// TestManyDocuments adds documents to an index that has more of them than one container of a bitmap holds, and compacts it.
func TestManyDocuments(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	const first, more = 1<<16 + 10, 20
	docs := make([]string, first+more)
	for i := range docs {
		docs[i] = fmt.Sprintf(`{"id":%d}`, i)
	}
	b.apply(ix, b.payload(docs[:first]...))
	b.apply(ix, b.payload(docs[first:]...))
	if _, _, err := ix.Compact(t.Context(), b.batch+1, nil); err != nil {
		t.Fatal(err)
	}
	v := held(ix.View())
	defer v.Release()
	for _, id := range []int{0, 1, first - 1, first, first + more - 1} {
		i, row, ok := v.Find([]byte(fmt.Sprint(id)))
		if !ok || v.Segments[i].DocID(row) != segment.DocID(id) {
			t.Errorf("document %d: found = %v", id, ok)
		}
	}
}
