package ann

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// extended builds a graph over the first rows of a set, and extends it to all rows in another order, without those for which
// gone returns true.
func extended(t testing.TB, r *rand.Rand, rows, first, threads int, gone func(row int) bool) (*Graph, Quantizer, Codes) {
	t.Helper()
	vectors := clustered(r, rows, testDimensions)
	q := NewQuantizer(testDimensions, vectors)
	old := encode(q, vectors)
	base, err := Build(context.Background(), Codes{Bytes: old.Bytes[:first*old.Stride], Stride: old.Stride}, BuildOptions{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	// The codes of the new segment have another scale.
	wider := Quantizer{q.Dimensions, q.Scale * 0.8}
	renumbered := make([]uint32, first)
	for i := range renumbered {
		renumbered[i] = Dropped
	}
	codes := Codes{Stride: q.Stride()}
	for _, row := range r.Perm(rows) {
		if gone(row) {
			continue
		}
		if row < first {
			renumbered[row] = uint32(codes.Rows())
		}
		codes.Bytes = wider.AppendCode(codes.Bytes, vectors[row*testDimensions:(row+1)*testDimensions])
	}
	g, err := Extend(context.Background(), base, renumbered, codes, BuildOptions{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = Open(aligned(encoded(g)), codes, nil); err != nil {
		t.Fatal(err)
	}
	return g, wider, codes
}

func TestAnExtendedGraphFindsTheNearest(t *testing.T) {
	for _, c := range []struct {
		name        string
		rows, first int
		gone        func(row int) bool
	}{
		{"nothing new", 2000, 2000, func(int) bool { return false }},
		{"half is new", 3000, 1500, func(int) bool { return false }},
		{"a third is gone", 3000, 2400, func(row int) bool { return row%3 == 0 }},
		{"a range is gone", 3000, 2400, func(row int) bool { return row < 900 }},
		{"most is gone", 3000, 2400, func(row int) bool { return row < 2000 }},
		{"nothing remains", 1000, 300, func(row int) bool { return row < 300 }},
		{"from nothing", 500, 0, func(int) bool { return false }},
		{"one remains", 40, 2, func(row int) bool { return row == 0 }},
		{"nothing at all", 10, 10, func(row int) bool { return true }},
	} {
		for _, threads := range []int{1, 2} {
			r := seeded(t)
			g, q, codes := extended(t, r, c.rows, c.first, threads, c.gone)
			var sum float64
			const queries = 100
			for range queries {
				code := q.AppendCode(nil, clustered(r, 1, testDimensions))
				sum += recall(g.Search(nil, code, Reach{Pool: 128}, nil, Signs{}, 0), codes, code, 10, nil)
			}
			if got := sum / queries; got < 0.95 {
				t.Errorf("%s, %d threads: recall@10 is %.3f, want 0.95", c.name, threads, got)
			}
		}
	}
}

func TestExtensionsByOneThreadAreEqual(t *testing.T) {
	once := func() []byte {
		g, _, _ := extended(t, rand.New(rand.NewPCG(3, 3)), 1000, 700, 1, func(row int) bool { return row%5 == 0 })
		return encoded(g)
	}
	if !slices.Equal(once(), once()) {
		t.Error("two extensions differ")
	}
}

func TestRowsLeftAloneAreInsertedAgain(t *testing.T) {
	// Only the ends and the middle of a chain remain, too far apart to find each other through the removed rows.
	const rows = 300
	r := seeded(t)
	vectors := clustered(r, rows, testDimensions)
	q := NewQuantizer(testDimensions, vectors)
	codes := encode(q, vectors)
	base := &Graph{codes: codes, rows: rows, degree: 2, links: make([]uint32, rows*4)}
	renumbered := make([]uint32, rows)
	kept := Codes{Stride: q.Stride()}
	for i := range renumbered {
		var links []Neighbour
		for _, n := range []int{i - 1, i + 1} {
			if n >= 0 && n < rows {
				links = append(links, Neighbour{Row: uint32(n)})
			}
		}
		fill(base.links[4*i:4*i+4], links)
		renumbered[i] = Dropped
		if i%299 == 0 || i > 70 && i < 230 {
			renumbered[i] = uint32(kept.Rows())
			kept.Bytes = append(kept.Bytes, codes.row(uint32(i))...)
		}
	}
	g, err := Extend(context.Background(), base, renumbered, kept, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for row := range uint32(g.rows) {
		if len(neighbours(g.slots(nil, row, 0))) == 0 {
			t.Errorf("row %d of %d has no neighbours", row, g.rows)
		}
	}
}

func TestExtendRefusesAnInvalidRenumbering(t *testing.T) {
	g, _, codes := testGraph(t, seeded(t), 20, 1)
	rows := make([]uint32, 20)
	for i := range rows {
		rows[i] = uint32(i)
	}
	for name, change := range map[string]func(){
		"twice":   func() { rows[3] = 4 },
		"outside": func() { rows[3] = 20 },
		"short":   func() { rows = rows[:19] },
	} {
		saved := slices.Clone(rows)
		change()
		if _, err := Extend(context.Background(), g, rows, codes, BuildOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		rows = saved
	}
}

func TestExtendStopsWithItsContext(t *testing.T) {
	g, _, codes := testGraph(t, seeded(t), 20, 1)
	rows := make([]uint32, 20)
	for i := range rows {
		rows[i] = uint32(i)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Extend(ctx, g, rows, codes, BuildOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
