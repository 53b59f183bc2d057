package ann

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// clustered returns unit vectors around a few hundred centres, like embeddings.
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

func encode(q Quantizer, vectors []float32) Codes {
	codes := Codes{Stride: q.Stride()}
	for at := 0; at < len(vectors); at += q.Dimensions {
		codes.Bytes = q.AppendCode(codes.Bytes, vectors[at:at+q.Dimensions])
	}
	return codes
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 7))
}

const testDimensions = 72 // not a multiple of the padding

func testGraph(t testing.TB, r *rand.Rand, rows, threads int) (*Graph, Quantizer, Codes) {
	t.Helper()
	vectors := clustered(r, rows, testDimensions)
	q := NewQuantizer(testDimensions, vectors)
	codes := encode(q, vectors)
	g, err := Build(context.Background(), codes, BuildOptions{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	return g, q, codes
}

// similarity scores two codes slowly.
func similarity(c Codes, a, b []int8) (s int32) {
	for i, x := range a {
		if c.Bits {
			s -= int32(bits.OnesCount8(uint8(x ^ b[i])))
		} else {
			s += int32(x) * int32(b[i])
		}
	}
	return s
}

// recall returns the share of the k exact neighbours, found by scoring every row, that got contains.
func recall(got []Neighbour, c Codes, q []int8, k int, allowed *roaring.Bitmap) float64 {
	var all []Neighbour
	for row := range uint32(c.Rows()) {
		if allowed == nil || allowed.Contains(row) {
			all = append(all, Neighbour{row, similarity(c, q, c.row(row))})
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
			sum += recall(g.Search(nil, code, Reach{Pool: 128}, nil, Signs{}, 0), codes, code, 10, nil)
		}
		if got := sum / queries; got < 0.95 {
			t.Errorf("%d threads: recall@10 is %.3f, want 0.95", threads, got)
		}
	}
}

// flat returns unit vectors of few dimensions, rotated into many.
func flat(r *rand.Rand, rows, few, dimensions int) []float32 {
	axes := make([]float32, few*dimensions)
	for i := range axes {
		axes[i] = float32(r.NormFloat64())
	}
	vectors := make([]float32, rows*dimensions)
	for v := range slices.Chunk(vectors, dimensions) {
		for axis := range slices.Chunk(axes, dimensions) {
			x := float32(r.NormFloat64())
			for i := range v {
				v[i] += x * axis[i]
			}
		}
		simd.Normalize(v)
	}
	return vectors
}

// TestReachGrowsWhereNeighboursAreAlike searches with one reach among rows that lie in few dimensions and among rows in all: the walk must
// score more rows among the latter.
func TestReachGrowsWhereNeighboursAreAlike(t *testing.T) {
	r := seeded(t)
	const rows, queries = 3000, 60
	scored := make(map[string]int)
	for name, vectors := range map[string][]float32{
		"few":  flat(r, rows+queries, 6, testDimensions),
		"many": flat(r, rows+queries, testDimensions, testDimensions),
	} {
		q := NewQuantizer(testDimensions, vectors)
		codes := encode(q, vectors[:rows*testDimensions])
		g, err := Build(context.Background(), codes, BuildOptions{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		g.codes.Touch = func(rows []uint32) { scored[name] += len(rows) }
		reach := Reach{Pool: 330, Wanted: 10, Patience: 40, Perfect: int64(q.Scale * q.Scale)}
		sum := 0.0
		for query := range slices.Chunk(vectors[rows*testDimensions:], testDimensions) {
			code := q.AppendCode(nil, query)
			found := g.Search(nil, code, reach, nil, Signs{}, 0)
			if !slices.IsSortedFunc(found, func(a, b Neighbour) int { return int(b.Score) - int(a.Score) }) || len(found) > reach.Pool {
				t.Fatalf("%s: %d hits are too many, or not in order", name, len(found))
			}
			sum += recall(found, codes, code, 10, nil)
		}
		if got := sum / queries; got < 0.95 {
			t.Errorf("%s: recall@10 is %.3f, want 0.95", name, got)
		}
	}
	if few, many := scored["few"], scored["many"]; few*3 > many*2 {
		t.Errorf("scored %d rows in few dimensions, %d in many; want more in many", few, many)
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
		for i := range queries {
			code := q.AppendCode(nil, clustered(r, 1, testDimensions))
			reach := Reach{Pool: int(60 / share)}
			if i%2 == 1 {
				reach = Reach{Pool: 330, Wanted: 10, Patience: 40, Perfect: int64(q.Scale * q.Scale)}
			}
			found := g.Search(nil, code, reach, allowed, Signs{}, 0)
			for _, n := range found {
				if !allowed.Contains(n.Row) {
					t.Fatalf("row %d is not allowed", n.Row)
				}
			}
			sum += recall(found, codes, code, 10, allowed)
		}
		if got := sum / queries; got < 0.95 {
			t.Errorf("share %v: recall@10 is %.3f, want 0.95", share, got)
		}
	}
}

// TestSearchInsteadOfAWalkIsExact checks that all codes are scanned if a walk would find little and signs are not compared.
func TestSearchInsteadOfAWalkIsExact(t *testing.T) {
	r := seeded(t)
	const rows, dimensions = 3000, 64
	codes := Codes{Bytes: make([]int8, rows*dimensions), Stride: dimensions}
	for i := range codes.Bytes {
		codes.Bytes[i] = int8(r.IntN(255) - 127)
	}
	g, err := Build(context.Background(), codes, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	allowed := roaring.New()
	for row := range uint32(rows) {
		if row%7 != 0 {
			allowed.Add(row)
		}
	}
	code, walked := make([]int8, dimensions), 0.0
	for range 50 {
		for i := range code {
			code[i] = int8(r.IntN(255) - 127)
		}
		walked += recall(g.Search(nil, code, Reach{Pool: 20}, nil, Signs{}, 0), codes, code, 10, nil) / 50
		for _, rows := range []*roaring.Bitmap{nil, allowed} {
			if got, want := g.Search(nil, code, Reach{Pool: 20}, rows, Signs{Instead: true}, 0), Scan(nil, codes, code, 20, rows); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	}
	if walked > 0.9 {
		t.Errorf("walks have recall %.2f, too good to prove that rows are scanned", walked)
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
		found := Scan(nil, codes, code, 25, allowed)
		if got := recall(found, codes, code, 25, allowed); got != 1 {
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
	if !slices.Equal(encoded(a), encoded(b)) {
		t.Error("two builds differ")
	}
}

func TestSmallGraphs(t *testing.T) {
	for rows := range 5 {
		r := seeded(t)
		g, q, codes := testGraph(t, r, rows, 1)
		g, err := Open(aligned(encoded(g)), codes, nil)
		if err != nil {
			t.Fatal(err)
		}
		code := q.AppendCode(nil, clustered(r, 1, testDimensions))
		if got := g.Search(nil, code, Reach{Pool: 10}, nil, Signs{}, 0); len(got) != rows {
			t.Errorf("%d rows: found %d", rows, len(got))
		}
	}
}

func TestEqualRowsDoNotTearTheGraph(t *testing.T) {
	q := Quantizer{testDimensions, 127}
	one := make([]float32, testDimensions)
	one[3] = 1
	codes := Codes{Stride: q.Stride()}
	for range 500 {
		codes.Bytes = q.AppendCode(codes.Bytes, one)
	}
	g, err := Build(context.Background(), codes, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Search(nil, q.AppendCode(nil, one), Reach{Pool: 20}, nil, Signs{}, 0); len(got) != 20 {
		t.Errorf("found %d of 20 equal rows", len(got))
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	vectors := clustered(seeded(t), 5000, testDimensions)
	q := NewQuantizer(testDimensions, vectors)
	_, err := Build(ctx, encode(q, vectors), BuildOptions{Progress: func(int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCodesAreRounded(t *testing.T) {
	r := seeded(t)
	for range 1000 {
		v, scale := make([]float32, 5), r.Float32()*200
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		v[4] = (float32(r.IntN(20)) + 0.5) / scale
		code := Quantizer{5, scale}.AppendCode([]int8{9}, v)
		for i, x := range v {
			if want := max(-127, min(127, math.RoundToEven(float64(x*scale)))); code[1+i] != int8(want) {
				t.Fatalf("%v at scale %v: code %d, want %v", x, scale, code[1+i], want)
			}
		}
		if len(code) != 65 || code[0] != 9 || slices.Max(code[6:]) != 0 || slices.Min(code[6:]) != 0 {
			t.Fatalf("code %v", code)
		}
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
// encoded returns the bytes of a graph.
func encoded(g *Graph) []byte {
	var b bytes.Buffer
	if n, err := g.WriteTo(&b); err != nil || n != int64(b.Len()) {
		panic(fmt.Sprintf("%d bytes of %d: %v", n, b.Len(), err))
	}
	return b.Bytes()
}

// aligned copies b to an address that is a multiple of 8.
func aligned(b []byte) []byte {
	c := make([]byte, len(b)+8)
	return append(c[:0], b...)
}

// TestLinksToNoRow checks that a link to a missing row ends its list in a search, and that Check reports it.
func TestLinksToNoRow(t *testing.T) {
	r := seeded(t)
	g, _, codes := testGraph(t, r, 300, 1)
	encoded := aligned(encoded(g))
	_, level0, _ := Parts(encoded)
	for _, row := range []uint32{300, 1 << 30, ^uint32(0) - 1} {
		binary.LittleEndian.PutUint32(level0[4*2*7*g.degree:], row)
		g, err := Open(encoded, codes, nil)
		if err != nil {
			t.Fatal(err)
		}
		if g.Check() == nil {
			t.Errorf("a link to row %d of 300 is not reported", row)
		}
		for i := range uint32(300) {
			for _, n := range g.Search(nil, codes.row(i), Reach{Pool: 50}, nil, Signs{}, 0) {
				if n.Row >= 300 {
					t.Fatalf("the search returns row %d of 300", n.Row)
				}
			}
		}
	}
}

// TestWalkersReleaseTheGraph checks that an idle walker keeps no reference to the memory of the graph, which may be unmapped.
func TestWalkersReleaseTheGraph(t *testing.T) {
	g, _, codes := testGraph(t, seeded(t), 300, 1)
	allowed := roaring.New()
	allowed.AddRange(0, 250)
	for i := range uint32(100) {
		g.Search(nil, codes.row(i), Reach{Pool: 20}, nil, Signs{}, 0)
		g.Search(nil, codes.row(i), Reach{Pool: 5}, allowed, Signs{}, 0)
		w := walkers.Get().(*walker)
		if w.links != nil {
			t.Fatal("a walker refers to links of a graph after the search")
		}
		walkers.Put(w)
	}
}

// FuzzOpen checks that a damaged graph is refused, or can be searched safely.
func FuzzOpen(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 5))
	vectors := clustered(r, 40, testDimensions)
	q := NewQuantizer(testDimensions, vectors)
	codes := encode(q, vectors)
	g, err := Build(context.Background(), codes, BuildOptions{Degree: 4})
	if err != nil {
		f.Fatal(err)
	}
	whole := encoded(g)
	f.Add(whole, 0, byte(0))
	f.Add(whole, 8, byte(0xff))
	f.Add(whole[:100], 4, byte(1))
	f.Fuzz(func(t *testing.T, b []byte, at int, flip byte) {
		b = aligned(b)
		if len(b) > 0 {
			b[uint(at)%uint(len(b))] ^= flip
		}
		if g, err := Open(b, codes, nil); err == nil {
			g.Search(nil, codes.row(0), Reach{Pool: 10}, nil, Signs{}, 0)
		}
	})
}

func TestBitsAreSearchedByHammingDistance(t *testing.T) {
	r := seeded(t)
	const dimensions = 150 // three words per row
	vectors := clustered(r, 3000, dimensions)
	codes := Codes{Stride: 24, Bits: true}
	for at := 0; at < len(vectors); at += dimensions {
		codes.Bytes = appendBits(codes.Bytes, vectors[at:at+dimensions])
	}
	g, err := Build(context.Background(), codes, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = Open(aligned(encoded(g)), codes, nil); err != nil {
		t.Fatal(err)
	}
	var walked float64
	const queries = 100
	for i := range queries {
		code := appendBits(nil, vectors[i*dimensions:(i+1)*dimensions])
		for range 20 {
			code[r.IntN(18)] ^= 1 << r.IntN(7)
		}
		walked += recall(g.Search(nil, code, Reach{Pool: 128}, nil, Signs{}, 0), codes, code, 10, nil)
		if got := recall(Scan(nil, codes, code, 10, nil), codes, code, 10, nil); got != 1 {
			t.Fatalf("a scan has recall %v", got)
		}
	}
	if got := walked / queries; got < 0.95 {
		t.Errorf("recall@10 is %.3f, want 0.95", got)
	}
}

func TestCodesThatTheKernelsCannotReadAreRefused(t *testing.T) {
	for name, c := range map[string]Codes{
		"no stride":        {Bytes: make([]int8, 640)},
		"not padded":       {Bytes: make([]int8, 640), Stride: 32},
		"bits not padded":  {Bytes: make([]int8, 640), Stride: 4, Bits: true},
		"bits not aligned": {Bytes: make([]int8, 640)[1:], Stride: 8, Bits: true},
	} {
		if _, err := Build(context.Background(), c, BuildOptions{}); err == nil {
			t.Errorf("%s: built", name)
		}
		empty := encoded(&Graph{degree: 2})
		if _, err := Open(aligned(empty), c, nil); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

// appendBits appends a row with one bit per component, 1 if it is above 0, padded with zeros to a multiple of 8 bytes.
func appendBits(dst []int8, vector []float32) []int8 {
	for len(vector) > 0 {
		n := min(64, len(vector))
		var word uint64
		for i, x := range vector[:n] {
			if x > 0 {
				word |= 1 << i
			}
		}
		for i := range 8 {
			dst = append(dst, int8(word>>(8*i)))
		}
		vector = vector[n:]
	}
	return dst
}

func TestBitsArePositiveComponents(t *testing.T) {
	vector := make([]float32, 70)
	vector[0], vector[1], vector[9], vector[69] = 1, -1, 0.5, 1e-40
	vector[2] = float32(math.NaN())
	got := appendBits(nil, vector)
	want := make([]int8, 16)
	want[0], want[1], want[8] = 1, 2, 1<<5
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestASearchRestrictedToFewRowsIsExact(t *testing.T) {
	r := seeded(t)
	g, q, codes := testGraph(t, r, 4000, 1)
	for _, share := range []float64{0, 0.001, 0.01, 0.1} {
		allowed := roaring.New()
		for row := range uint32(g.Rows()) {
			if r.Float64() < share {
				allowed.Add(row)
			}
		}
		code := q.AppendCode(nil, clustered(r, 1, testDimensions))
		found := g.Search(nil, code, Reach{Pool: 40}, allowed, Signs{}, 0)
		if len(found) != min(40, int(allowed.GetCardinality())) || recall(found, codes, code, 10, allowed) != 1 {
			t.Errorf("share %v: found %d of %d", share, len(found), allowed.GetCardinality())
		}
	}
}

// TestAWalkWithoutAllowedRowsEnds allows only rows on the far side from the query.
func TestAWalkWithoutAllowedRowsEnds(t *testing.T) {
	r := seeded(t)
	g, q, codes := testGraph(t, r, 4000, 1)
	code := q.AppendCode(nil, clustered(r, 1, testDimensions))
	all := Scan(nil, codes, code, g.Rows(), nil)
	far := roaring.New()
	for _, n := range all[len(all)/2:] {
		far.Add(n.Row)
	}
	found := g.Search(nil, code, Reach{Pool: 10}, far, Signs{}, 0)
	if got := recall(found, codes, code, 10, far); got != 1 {
		t.Errorf("recall %v", got)
	}
}
