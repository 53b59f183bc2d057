package ann

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"svc/simd"
)

const forecastDimensions = 384

// signed returns codes of rows distributed like embeddings, with their signs, a quantizer and queries.
func signed(r *rand.Rand, rows, queries int) (Codes, Signs, [][]int8) {
	vectors := flat(r, rows+queries, 48, forecastDimensions)
	q := NewQuantizer(forecastDimensions, vectors)
	all := encode(q, vectors)
	codes := Codes{Bytes: all.Bytes[:rows*all.Stride], Stride: all.Stride}
	signs, centre := Signs{Stride: all.Stride / 64}, make([]int8, all.Stride)
	for code := range slices.Chunk(codes.Bytes, codes.Stride) {
		signs.Words = AppendSigns(signs.Words, code, centre)
	}
	return codes, signs, slices.Collect(slices.Chunk(all.Bytes[rows*all.Stride:], all.Stride))
}

// TestForecastsSpareCodes checks that a walk with forecasts has about the same recall as one without, and compares the codes of less than
// half as many rows.
func TestForecastsSpareCodes(t *testing.T) {
	r := seeded(t)
	codes, signs, queries := signed(r, 4000, 40)
	touched := 0
	codes.Touch = func(rows []uint32) { touched += len(rows) }
	g, err := Build(t.Context(), codes, BuildOptions{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	reach := Reach{Pool: 300, Wanted: 10, Patience: 40, Perfect: math.MaxInt32}
	plain, foretold, compared, spared := 0.0, 0.0, 0, 0
	for _, q := range queries {
		reach.Perfect = int64(similarity(codes, q, q))
		signs.Query = q
		walk := func(with bool) ([]Neighbour, int) {
			w := walkers.Get().(*walker)
			defer w.end()
			w.descend(g, g.codes, q, g.rows, g.entry, len(g.upper), 0)
			f := forecast{}
			if with {
				f = w.newForecast(signs)
			}
			touched = 0
			w.seek(g, q, reach, f)
			return appendPool(nil, w.pool), touched
		}
		found, n := walk(false)
		plain, compared = plain+recall(found, codes, q, 10, nil), compared+n
		found, n = walk(true)
		foretold, spared = foretold+recall(found, codes, q, 10, nil), spared+n
	}
	n := float64(len(queries))
	t.Logf("recall %.3f and %.3f, codes of %d and %d rows", plain/n, foretold/n, compared, spared)
	if foretold < plain-0.04*n {
		t.Errorf("recall is %.3f with forecasts, %.3f without", foretold/n, plain/n)
	}
	if 2*spared > compared {
		t.Errorf("codes of %d rows are compared with forecasts, of %d without", spared, compared)
	}
}

// TestForecastIsALine compares the rows that a forecast lets pass with a slow reference that handles components and rows one by one.
func TestForecastIsALine(t *testing.T) {
	r := seeded(t)
	const rows = 2000
	codes, signs, queries := signed(r, rows, 20)
	passed, excluded := 0, 0
	for _, q := range queries {
		signs.Query = q
		var touched []uint32
		signs.TouchRows = func(rows []uint32) { touched = append(touched, rows...) }
		w := new(walker)
		w.met.Reset(rows)
		f := w.newForecast(signs)
		met := make([]bool, rows)
		var x, y []float64
		for step := 1; step < 40; step++ {
			group := make([]uint32, 1+r.IntN(32))
			for i := range group {
				group[i] = uint32(r.IntN(rows))
			}
			least := int64(math.MinInt64)
			if r.IntN(4) > 0 {
				least = int64(r.IntN(2_000) * 100)
			}
			touched = touched[:0]
			w.fresh = w.fresh[:0]
			f.meet(w, codes, group)
			f.score(w, codes, q, least)
			var want, compared []uint32
			for _, row := range group {
				if met[row] {
					continue
				}
				met[row] = true
				compared = append(compared, row)
				bySigns := slowSigns(q, codes.row(row))
				switch {
				case step <= forecastSteps:
					x, y = append(x, float64(similarity(codes, q, codes.row(row)))), append(y, bySigns)
				case f.slope > 0 && least > math.MinInt64 && bySigns <= math.Floor(f.base+f.slope*float64(least)-f.spread):
					excluded++
					continue
				}
				want = append(want, row)
			}
			if !slices.Equal(w.fresh, want) {
				t.Fatalf("step %d: rows %v pass, want %v", step, w.fresh, want)
			}
			if (step <= forecastSteps || f.slope > 0 && least > math.MinInt64) && !slices.Equal(touched, compared) {
				t.Fatalf("step %d: signs of rows %v are touched, want %v", step, touched, compared)
			}
			for i, row := range want {
				if s := similarity(codes, q, codes.row(row)); w.scores[i] != s {
					t.Fatalf("row %d scores %d, want %d", row, w.scores[i], s)
				}
			}
			passed += len(want)
		}
		if len(x) >= forecastRows {
			slope, base, spread := slowLine(x, y)
			for _, c := range [][2]float64{{f.slope, slope}, {f.base, base}, {f.spread, spread}} {
				if math.Abs(c[0]-c[1]) > 1e-6*(1+math.Abs(c[1])) {
					t.Fatalf("the line is %g·x%+g ±%g, want %g·x%+g ±%g", f.slope, f.base, f.spread, slope, base, spread)
				}
			}
		}
	}
	if passed == 0 || excluded == 0 {
		t.Errorf("%d rows pass and %d do not", passed, excluded)
	}
}

// slowSigns scores a row by its signs; it is the reference for simd.SignsAbove.
func slowSigns(q, code []int8) (score float64) {
	for i, x := range code {
		if x < 0 {
			score -= float64((int(q[i])*7+127*7+63)/127 - 7)
		}
	}
	return score
}

// slowLine fits a line by its definition.
func slowLine(x, y []float64) (slope, base, spread float64) {
	mean := func(all []float64) (sum float64) {
		for _, x := range all {
			sum += x / float64(len(all))
		}
		return sum
	}
	mx, my, varied, together, squares := mean(x), mean(y), 0.0, 0.0, 0.0
	for i := range x {
		varied += (x[i] - mx) * (x[i] - mx)
		together += (x[i] - mx) * (y[i] - my)
	}
	slope = together / varied
	base = my - slope*mx
	for i := range x {
		squares += (y[i] - base - slope*x[i]) * (y[i] - base - slope*x[i])
	}
	return slope, base, math.Sqrt(squares / float64(len(x)))
}

// TestForecastWithoutALinePassesAll checks that equal rows give no line, and that all of them pass.
func TestForecastWithoutALinePassesAll(t *testing.T) {
	const rows = 300
	codes := Codes{Bytes: make([]int8, rows*forecastDimensions), Stride: forecastDimensions}
	signs := Signs{Stride: forecastDimensions / 64, Words: make([]uint64, rows*forecastDimensions/64), Query: make([]int8, forecastDimensions)}
	w := new(walker)
	w.met.Reset(rows)
	f := w.newForecast(signs)
	for from := uint32(0); from < rows; from += 20 {
		group := make([]uint32, 20)
		for i := range group {
			group[i] = from + uint32(i)
		}
		w.fresh = w.fresh[:0]
		f.meet(w, codes, group)
		if f.score(w, codes, signs.Query, 1); !slices.Equal(w.fresh, group) {
			t.Fatalf("of rows %v, %v pass", group, w.fresh)
		}
	}
}

// TestSearchForecasts checks that Search uses forecasts with kernels for which they pay off.
func TestSearchForecasts(t *testing.T) {
	codes, signs, queries := signed(seeded(t), 2000, 5)
	signs.Query = queries[0]
	if !signs.Forecast() {
		t.Skipf("%v does not use forecasts", simd.Running())
	}
	touched := 0
	signs.TouchRows = func(rows []uint32) { touched += len(rows) }
	g, err := Build(t.Context(), codes, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g.Search(nil, queries[0], Reach{Pool: 100, Wanted: 10, Patience: 40, Perfect: 1 << 20}, nil, signs, 0)
	if touched == 0 {
		t.Error("no signs are read")
	}
}
