package ann

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// clustered makes unit vectors around a few hundred centres, as embeddings lie.
func clustered(r *rand.Rand, rows, dimensions int) []float32 {
	centres := make([]float32, 200*dimensions)
	for i := range centres {
		centres[i] = float32(r.NormFloat64())
	}
	vectors := make([]float32, 0, rows*dimensions)
	for range rows {
		c := centres[r.IntN(200)*dimensions:][:dimensions]
		v := make([]float32, dimensions)
		for i := range v {
			v[i] = c[i] + 0.6*float32(r.NormFloat64())
		}
		simd.Normalize(v)
		vectors = append(vectors, v...)
	}
	return vectors
}

func encode(q Quantizer, vectors []float32) []int8 {
	var codes []int8
	for at := 0; at < len(vectors); at += q.Dimensions {
		codes = q.AppendCode(codes, vectors[at:at+q.Dimensions])
	}
	return codes
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 7))
}

const testDimensions = 72 // not a multiple of the padding

func testGraph(t testing.TB, r *rand.Rand, rows, threads int) (*Graph, Quantizer, []int8) {
	t.Helper()
	vectors := clustered(r, rows, testDimensions)
	q := NewQuantizer(testDimensions, vectors)
	codes := encode(q, vectors)
	g, err := Build(context.Background(), codes, q.Stride(), BuildOptions{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	return g, q, codes
}

// recall is the share of the exact neighbours, by the twin that scores every row, that got has.
func recall(got []Neighbour, codes []int8, stride int, q []int8, k int, allowed *roaring.Bitmap) float64 {
	var all []Neighbour
	for row := range uint32(len(codes) / stride) {
		if allowed == nil || allowed.Contains(row) {
			var s int32
			for i, x := range q {
				s += int32(x) * int32(codes[int(row)*stride+i])
			}
			all = append(all, Neighbour{row, s})
		}
	}
	slices.SortFunc(all, func(a, b Neighbour) int { return int(b.Score) - int(a.Score) })
	k = min(k, len(all))
	if k == 0 {
		return 1
	}
	hit := 0
	for _, n := range got[:min(k, len(got))] {
		if n.Score >= all[k-1].Score {
			hit++
		}
	}
	return float64(hit) / float64(k)
}

func TestSearchFindsTheNearest(t *testing.T) {
	for _, threads := range []int{1, 2} {
		r := seeded(t)
		g, q, codes := testGraph(t, r, 5000, threads)
		var sum float64
		const queries = 200
		for range queries {
			code := q.AppendCode(nil, clustered(r, 1, testDimensions))
			sum += recall(g.Search(nil, code, 128, nil), codes, q.Stride(), code, 10, nil)
		}
		if got := sum / queries; got < 0.95 {
			t.Errorf("%d threads: recall@10 is %.3f, want 0.95", threads, got)
		}
	}
}

func TestFilteredSearchFindsTheNearestAllowed(t *testing.T) {
	r := seeded(t)
	g, q, codes := testGraph(t, r, 4000, 1)
	for _, share := range []float64{0.5, 0.1} {
		allowed := roaring.New()
		for row := range uint32(g.Rows()) {
			if r.Float64() < share {
				allowed.Add(row)
			}
		}
		var sum float64
		const queries = 100
		for range queries {
			code := q.AppendCode(nil, clustered(r, 1, testDimensions))
			found := g.Search(nil, code, int(60/share), allowed)
			for _, n := range found {
				if !allowed.Contains(n.Row) {
					t.Fatalf("row %d is not allowed", n.Row)
				}
			}
			sum += recall(found, codes, q.Stride(), code, 10, allowed)
		}
		if got := sum / queries; got < 0.95 {
			t.Errorf("share %v: recall@10 is %.3f, want 0.95", share, got)
		}
	}
}

func TestScanIsExact(t *testing.T) {
	r := seeded(t)
	vectors := clustered(r, 700, testDimensions)
	q := NewQuantizer(testDimensions, vectors)
	codes := encode(q, vectors)
	some := roaring.New()
	for range 300 {
		some.Add(uint32(r.IntN(700)))
	}
	for _, allowed := range []*roaring.Bitmap{nil, some, roaring.New()} {
		code := q.AppendCode(nil, clustered(r, 1, testDimensions))
		found := Scan(nil, codes, q.Stride(), code, 25, allowed)
		if got := recall(found, codes, q.Stride(), code, 25, allowed); got != 1 {
			t.Errorf("recall %v", got)
		}
		if !slices.IsSortedFunc(found, func(a, b Neighbour) int { return int(b.Score) - int(a.Score) }) {
			t.Error("not best first")
		}
	}
}

func TestOneThreadBuildsTheSameGraphAgain(t *testing.T) {
	a, _, _ := testGraph(t, rand.New(rand.NewPCG(1, 1)), 800, 1)
	b, _, _ := testGraph(t, rand.New(rand.NewPCG(1, 1)), 800, 1)
	if !slices.Equal(a.Append(nil), b.Append(nil)) {
		t.Error("two builds differ")
	}
}

func TestSmallGraphs(t *testing.T) {
	for rows := range 5 {
		r := seeded(t)
		g, q, codes := testGraph(t, r, rows, 1)
		g, err := Open(aligned(g.Append(nil)), codes, q.Stride())
		if err != nil {
			t.Fatal(err)
		}
		code := q.AppendCode(nil, clustered(r, 1, testDimensions))
		if got := g.Search(nil, code, 10, nil); len(got) != rows {
			t.Errorf("%d rows: found %d", rows, len(got))
		}
	}
}

func TestEqualRowsDoNotTearTheGraph(t *testing.T) {
	q := Quantizer{testDimensions, 127}
	one := make([]float32, testDimensions)
	one[3] = 1
	var codes []int8
	for range 500 {
		codes = q.AppendCode(codes, one)
	}
	g, err := Build(context.Background(), codes, q.Stride(), BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Search(nil, q.AppendCode(nil, one), 20, nil); len(got) != 20 {
		t.Errorf("found %d of 20 equal rows", len(got))
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	vectors := clustered(seeded(t), 5000, testDimensions)
	q := NewQuantizer(testDimensions, vectors)
	_, err := Build(ctx, encode(q, vectors), q.Stride(), BuildOptions{Progress: func(int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestQuantizerSurvivesOddVectors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{{0, 0}, {nan, 1}, {inf, -inf}, {1e-40, 0}, {math.MaxFloat32, 1}} {
		q := NewQuantizer(2, v)
		if code := q.AppendCode(nil, v); len(code) != q.Stride() {
			t.Errorf("%v: %d bytes", v, len(code))
		}
	}
}

// aligned copies b to an address that is a multiple of 8.
func aligned(b []byte) []byte {
	c := make([]byte, len(b)+8)
	return append(c[:0], b...)
}

// FuzzOpen checks that a damaged graph is refused or searched without harm.
func FuzzOpen(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 5))
	vectors := clustered(r, 40, testDimensions)
	q := NewQuantizer(testDimensions, vectors)
	codes := encode(q, vectors)
	g, err := Build(context.Background(), codes, q.Stride(), BuildOptions{Degree: 4})
	if err != nil {
		f.Fatal(err)
	}
	whole := g.Append(nil)
	f.Add(whole, 0, byte(0))
	f.Add(whole, 8, byte(0xff))
	f.Add(whole[:100], 4, byte(1))
	f.Fuzz(func(t *testing.T, b []byte, at int, flip byte) {
		b = aligned(b)
		if len(b) > 0 {
			b[uint(at)%uint(len(b))] ^= flip
		}
		if g, err := Open(b, codes, q.Stride()); err == nil {
			g.Search(nil, codes[:q.Stride()], 10, nil)
		}
	})
}
