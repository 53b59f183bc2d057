package rank

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// TestOnlyDocument compares rowsNear with bitmaps filled row by row, and checks that only finds the document of a set of one.
func TestOnlyDocument(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	alone := 0
	for range 5000 {
		segments := 1 + r.IntN(4)
		want, found := make(rows, segments), []near{}
		for range r.IntN(4) {
			n := near{segment: uint16(r.IntN(segments)), row: uint32(r.IntN(3)) << r.IntN(20)}
			if !slices.Contains(found, n) {
				found = append(found, n)
				if want[n.segment] == nil {
					want[n.segment] = roaring.New()
				}
				want[n.segment].Add(n.row)
			}
		}
		got := rowsNear(found, segments)
		for i := range want {
			if (got[i] == nil) != (want[i] == nil) || got[i] != nil && !got[i].Equals(want[i]) {
				t.Fatalf("%v: segment %d has %v, want %v", found, i, got[i], want[i])
			}
		}
		if r.IntN(2) == 0 {
			if i := r.IntN(segments); got[i] == nil {
				got[i] = roaring.New()
			}
		}
		seg, row, ok := got.only()
		if empty := slices.ContainsFunc(got, func(b *roaring.Bitmap) bool { return b != nil && b.IsEmpty() }); ok != (len(found) == 1 && !empty) {
			t.Fatalf("%v: %t", got, ok)
		}
		if !ok {
			continue
		}
		if alone++; seg != int(found[0].segment) || row != segment.Row(found[0].row) {
			t.Fatalf("%v: row %d of segment %d", got, row, seg)
		}
	}
	if alone < 500 {
		t.Errorf("%d sets have one document", alone)
	}
}

// TestNearestDocumentsPassAlone checks that a walk returns a document with a unique similarity as a part without rows, and that
// untaken removes it.
func TestNearestDocumentsPassAlone(t *testing.T) {
	of := func(all ...uint32) rows { return rows{roaring.BitmapOf(all...)} }
	ix := &Index{Segments: make([]segment.Live, 1)}
	s := &search{job: job{request: request{r: &Request{Vectors: &VectorQuery{}}}, findings: findings{ix: ix}}, scratch: scratch{memory: new(memory)}}
	b := &bucket{rows: of(0, 1, 2, 3), n: 4}
	w := &vectorWalk{s: s, b: b, left: b.rows, alone: true, found: []near{{0.9, 0, 1}, {0.8, 0, 0}, {0.8, 0, 2}}}
	first, said := w.next()
	if first.rows != nil || first.n != 1 || len(first.entries) != 1 || first.entries[0].row != 1 || float32(said.value.Number) != 0.9 {
		t.Fatalf("%+v, %+v", first, said)
	}
	p := &parts{alone: slices.Clone(first.entries)}
	second, _ := w.next()
	if second.entries != nil || second.n != 2 || !second.rows[0].Equals(of(0, 2)[0]) {
		t.Fatalf("%+v", second)
	}
	p.taken = append(p.taken, second.rows)
	if left := untaken(s, set{bucket: b, parts: p}); !left[0].Equals(of(3)[0]) {
		t.Errorf("%v are left", left)
	}
}
