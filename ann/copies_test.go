package ann

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// withCopies returns random vectors. A share of them are copies of three others. of has the number of the copied vector for each row, or
// −1.
func withCopies(r *rand.Rand, rows int, share float64) (vectors []float32, of []int) {
	vectors = clustered(r, rows, testDimensions)
	few := clustered(r, 3, testDimensions)
	clear(few[2*testDimensions:]) // as the vector of an empty text may be
	for row := range rows {
		of = append(of, -1)
		if r.Float64() < share {
			one := 0
			for one < 2 && r.IntN(5) == 0 {
				one++
			}
			of[row] = one
			copy(vectors[row*testDimensions:][:testDimensions], few[one*testDimensions:])
		}
	}
	return vectors, of
}

// checkCopies searches for rows that are no copies, and for all copies of each kind.
func checkCopies(t *testing.T, r *rand.Rand, g *Graph, codes Codes, of []int) {
	t.Helper()
	var sum float64
	const queries = 100
	for range queries {
		row := r.IntN(len(of))
		for of[row] >= 0 {
			row = r.IntN(len(of))
		}
		code := codes.row(uint32(row))
		sum += recall(g.Search(nil, code, Reach{Pool: 128}, nil, Signs{}, 0), codes, code, 10, nil)
	}
	if got := sum / queries; got < 0.95 {
		t.Errorf("recall@10 is %.3f, want 0.95", got)
	}
	for kind := range 2 { // the third has no direction
		want := roaring.New()
		for row, k := range of {
			if k == kind {
				want.Add(uint32(row))
			}
		}
		found := roaring.New()
		for _, n := range g.Search(nil, codes.row(want.Minimum()), Reach{Pool: int(want.GetCardinality())}, nil, Signs{}, 0) {
			found.Add(n.Row)
		}
		if missing := roaring.AndNot(want, found).GetCardinality(); missing > want.GetCardinality()/50 {
			t.Errorf("%d of %d equal rows were not found", missing, want.GetCardinality())
		}
	}
}

func TestEqualRowsDoNotHideOthers(t *testing.T) {
	for _, threads := range []int{1, 2} {
		r := seeded(t)
		vectors, of := withCopies(r, 4000, 0.6)
		q := NewQuantizer(testDimensions, vectors)
		codes := encode(q, vectors)
		g, err := Build(context.Background(), codes, BuildOptions{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		if of[g.entry] >= 0 && isCopy(originals(codes, nil), g.entry) {
			t.Errorf("the entry is a copy")
		}
		if g, err = Open(aligned(encoded(g)), codes, nil); err == nil {
			err = g.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		checkCopies(t, r, g, codes, of)
	}
}

// TestExtensionsOfGraphsWithEqualRows drops rows of a graph, among them all of its originals, and adds others, with copies of those that
// stay. An older program linked copies like other rows: its graph is built anew.
func TestExtensionsOfGraphsWithEqualRows(t *testing.T) {
	for _, older := range []bool{false, true} {
		r := seeded(t)
		const rows, first = 4000, 2500
		vectors, of := withCopies(r, rows, 0.5)
		q := NewQuantizer(testDimensions, vectors)
		old := encode(q, vectors[:first*testDimensions])
		b, err := newBuilder(old, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var all []uint32
		for row := range uint32(first) {
			b.place(row, b.levelOf(row))
			all = append(all, row)
		}
		base := new(Graph)
		if !older {
			base, err = Build(context.Background(), old, BuildOptions{})
		} else if err = b.insertAll(context.Background(), BuildOptions{}, all, 0); err == nil {
			base = b.graph()
		}
		if err != nil {
			t.Fatal(err)
		}
		if a := (&adoption{base: base, original: originals(old, nil)}); a.linksCopies() != older {
			t.Errorf("the graph is of an older program: %v, want %v", !older, older)
		}
		wider := Quantizer{q.Dimensions, q.Scale * 0.8}
		was := originals(old, nil)
		renumbered := make([]uint32, first)
		codes, kinds, copies := Codes{Stride: q.Stride()}, []int(nil), 0
		for row := range rows {
			if row < first {
				renumbered[row] = Dropped
				if original := was[row] == uint32(row); original && of[row] >= 0 || r.IntN(5) == 0 {
					continue
				} else if !original {
					copies++
				}
				renumbered[row] = uint32(len(kinds))
			}
			kinds = append(kinds, of[row])
			codes.Bytes = wider.AppendCode(codes.Bytes, vectors[row*testDimensions:][:testDimensions])
		}
		if copies == 0 {
			t.Fatal("no copy stays")
		}
		g, err := Extend(context.Background(), base, renumbered, codes, BuildOptions{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Check(); err != nil {
			t.Fatal(err)
		}
		checkCopies(t, r, g, codes, kinds)
		again, err := Extend(context.Background(), g, slices.Collect(func(yield func(uint32) bool) {
			for row := range uint32(g.Rows()) {
				yield(row)
			}
		}), codes, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		checkCopies(t, r, again, codes, kinds)
	}
}

// TestOriginals compares the originals with those that a comparison of all rows finds.
func TestOriginals(t *testing.T) {
	r := seeded(t)
	for round := range 50 {
		c := Codes{Stride: 8, Bits: true, Bytes: make([]int8, 8*(1+r.IntN(200)))}
		kinds := 1 + r.IntN(2*c.Rows())
		known := make([]bool, c.Rows())
		for row := range c.Rows() {
			kind := r.IntN(kinds)
			c.Bytes[8*row], c.Bytes[8*row+1] = int8(kind), int8(kind>>8)
			known[row] = r.IntN(3) == 0
		}
		if round%2 == 0 {
			known = nil
		}
		touched := 0
		c.Touch = func(rows []uint32) { touched += len(rows) }
		got := originals(c, known)
		if touched != c.Rows() {
			t.Fatalf("%d of %d rows were touched", touched, c.Rows())
		}
		equal := false
		for row := range c.Rows() {
			want := -1
			for pass := range 2 {
				for other := range c.Rows() {
					if want < 0 && slices.Equal(c.row(uint32(row)), c.row(uint32(other))) && (pass == 1 || known == nil || known[other]) {
						want = other
					}
				}
			}
			equal = equal || want != row
			if got != nil && int(got[row]) != want || got == nil && want != row {
				t.Fatalf("round %d: the original of %d is not %d: %v", round, row, want, got)
			}
		}
		if (got != nil) != equal {
			t.Errorf("round %d: some rows are equal: %v, but got %v", round, equal, got)
		}
	}
}
