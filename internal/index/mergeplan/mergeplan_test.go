package mergeplan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

func full(bytes ...int64) []Segment {
	s := make([]Segment, len(bytes))
	for i, b := range bytes {
		s[i] = Segment{Rows: 100, Live: 100, Bytes: b}
	}
	return s
}

func TestPlan(t *testing.T) {
	o := Default()
	o.MaxBytes = 1 << 30
	for name, c := range map[string]struct {
		in   []Segment
		want [][]int
	}{
		"nothing":                           {nil, nil},
		"one segment":                       {full(5 * mib), nil},
		"three tiny ones wait":              {full(kib, 2*kib, kib), nil},
		"four tiny ones go":                 {full(kib, 3*kib, kib, 2*kib), [][]int{{0, 1, 2, 3}}},
		"a large one stays out":             {full(90*mib, kib, kib, kib, kib), [][]int{{1, 2, 3, 4}}},
		"two large equals go":               {full(30*mib, 31*mib), [][]int{{0, 1}}},
		"a large one is no part of a chain": {full(100*mib, 3*mib), nil},
		"smaller ones come along":           {full(kib, 30*mib, 31*mib, kib), [][]int{{0, 1, 2, 3}}},
		"a doubling chain goes at once":     {full(mib, 2*mib, 4*mib, 8*mib), [][]int{{0, 1, 2, 3}}},
		"two runs": {full(kib, 50*mib, kib, kib, 40*mib, kib),
			[][]int{{0, 2, 3, 5}, {1, 4}}},
		"too large together":      {full(500*mib, 510*mib, 400*mib), [][]int{{0, 2}}},
		"each too large":          {full(600*mib, 600*mib), nil},
		"few deletions stay":      {[]Segment{{Rows: 100, Live: 67, Bytes: mib}}, nil},
		"many deletions go":       {[]Segment{{Rows: 100, Live: 66, Bytes: mib}}, [][]int{{0}}},
		"too large, many deleted": {[]Segment{{Rows: 100, Live: 60, Bytes: 2 << 30}}, [][]int{{0}}},
		"deleted rows weigh nothing": {[]Segment{{Rows: 100, Live: 70, Bytes: 40 * mib}, {Rows: 100, Live: 100, Bytes: 14 * mib}},
			[][]int{{0, 1}}},
		"empty segments": {[]Segment{{}, {}, {}, {}}, [][]int{{0, 1, 2, 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Plan(c.in, o)
			if len(got) != len(c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			for i, m := range got {
				if !slices.Equal(m.Inputs, c.want[i]) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			}
		})
	}
}

// TestStreamStaysLogarithmic checks that a stream of small batches leaves few segments, and rewrites each byte few times.
func TestStreamStaysLogarithmic(t *testing.T) {
	for name, size := range map[string]func(r *rand.Rand) int64{
		"single documents": func(*rand.Rand) int64 { return 3 * kib },
		"batches of all sizes": func(r *rand.Rand) int64 {
			return int64(math.Exp(r.Float64() * math.Log(8*mib)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			const seed, batches = 7, 20000
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			var live []Segment
			var written, merged int64
			most, merges := 0, 0
			for range batches {
				n := size(r)
				written += n
				live = append(live, Segment{Rows: 1, Live: 1, Bytes: n})
				for {
					plan := Plan(live, Default())
					if len(plan) == 0 {
						break
					}
					m := plan[0]
					merges++
					merged += m.Bytes
					live = m.apply(live)
				}
				most = max(most, len(live))
			}
			levels := math.Log2(float64(written) / (4 * kib))
			t.Logf("%d segments at most, %d merges, %.1f times rewritten, %.1f levels", most, merges, float64(merged)/float64(written), levels)
			if float64(most) > levels+4 {
				t.Errorf("%d segments at once", most)
			}
			if float64(merged) > levels*float64(written) {
				t.Errorf("each byte was rewritten %.1f times", float64(merged)/float64(written))
			}
		})
	}
}

// equals returns n segments of the same size.
func equals(n int, bytes int64) []Segment { return full(slices.Repeat([]int64{bytes}, n)...) }

// apply returns the segments after a merge.
func (m *Merge) apply(segments []Segment) []Segment {
	var out Segment
	var kept []Segment
	for i, s := range segments {
		if slices.Contains(m.Inputs, i) {
			out.Rows += s.Rows
			out.Live += s.Live
			out.Bytes += s.Bytes
		} else {
			kept = append(kept, s)
		}
	}
	return append(kept, out)
}

// TestLongRunsAreMergedInParts checks that a long run is merged in parts, and one that is tiny or not much longer than a part at once.
func TestLongRunsAreMergedInParts(t *testing.T) {
	o := Default()
	few := append(equals(20, 15*mib), equals(11, 240*mib)...)
	for name, c := range map[string]struct {
		in   []Segment
		want int // inputs of the first merge
	}{
		"up to twice a part":              {equals(2*o.Part-1, 15*mib), 2*o.Part - 1},
		"more":                            {equals(3*o.Part, 15*mib), o.Part},
		"small ones before large ones":    {few, 20},
		"tiny ones together":              {equals(100, 4*kib), 100},
		"a part of small ones is as long": {equals(1000, 64*kib), 64},
	} {
		t.Run(name, func(t *testing.T) {
			got := Plan(c.in, o)
			if len(got) == 0 || len(got[0].Inputs) != c.want {
				t.Fatalf("got %v, want %d inputs first", got, c.want)
			}
		})
	}
}

// TestImportsLeaveFewSegments checks that however many segments an import writes, at most a part per level remain at its commit, all
// merges are short, and each byte is rewritten few times.
func TestImportsLeaveFewSegments(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 100, 196, 500, 2000} {
		for _, c := range []struct {
			name string
			size func() int64
		}{
			{"equal", func() int64 { return 15 * mib }},
			{"similar", func() int64 { return 10*mib + r.Int64N(10*mib) }},
			{"all ways", func() int64 { return int64(math.Exp(r.Float64()*math.Log(64))) * mib / 4 }},
		} {
			var live []Segment
			var written, merged int64
			most, longest := 0, 0
			merge := func(o Options) {
				for plan := Plan(live, o); len(plan) > 0; plan = Plan(live, o) {
					m := plan[0]
					longest = max(longest, len(m.Inputs))
					merged += m.Bytes
					live = m.apply(live)
				}
			}
			o := Default()
			o.MaxBytes = math.MaxInt64
			young := OfImport()
			young.MaxBytes = o.MaxBytes
			for range n {
				b := c.size()
				written += b
				live = append(live, Segment{Rows: 1, Live: 1, Bytes: b})
				merge(young)
				most = max(most, len(live))
			}
			merge(o)
			times := float64(merged) / float64(written)
			levels := 1 + math.Log(float64(n))/math.Log(float64(o.Part))
			t.Logf("%d %s: %d segments at most, merges of %d, %d in the end, %.2f times rewritten, %.2f levels", n, c.name, most, longest, len(live), times, levels)
			if float64(most) > float64(o.Part)*levels || longest > 3*o.Part || times > levels || len(live) > 4 {
				t.Errorf("%d %s segments: %d at most, merges of %d, %d in the end, %.2f times rewritten", n, c.name, most, longest, len(live), times)
			}
		}
	}
}

// TestPlanIsSane plans random segments: merges must be disjoint, in range and within the bound, and repeated planning must end.
func TestPlanIsSane(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		o := Default()
		o.MaxBytes = int64(1+r.IntN(64)) * mib
		if r.IntN(4) == 0 {
			o.Part, o.Large = r.IntN(4), r.Int64N(2)*mib
		}
		in := make([]Segment, r.IntN(30))
		for i := range in {
			rows := r.IntN(1000)
			in[i] = Segment{Rows: rows, Live: r.IntN(rows + 1), Bytes: r.Int64N(1 << r.IntN(28))}
		}
		before := slices.Clone(in)
		seen := map[int]bool{}
		last := int64(0)
		for _, m := range Plan(in, o) {
			if len(m.Inputs) == 0 || !slices.IsSorted(m.Inputs) {
				t.Fatalf("inputs %v", m.Inputs)
			}
			if len(m.Inputs) > 1 && m.Bytes > o.MaxBytes {
				t.Fatalf("%d bytes, bound %d", m.Bytes, o.MaxBytes)
			}
			if len(m.Inputs) == 1 && in[m.Inputs[0]].Live == in[m.Inputs[0]].Rows {
				t.Fatalf("segment %d is rewritten needlessly", m.Inputs[0])
			}
			if m.Bytes < last {
				t.Fatal("a smaller merge comes after a larger one")
			}
			last = m.Bytes
			for _, i := range m.Inputs {
				if i < 0 || i >= len(in) || seen[i] {
					t.Fatalf("input %d out of range or twice", i)
				}
				seen[i] = true
			}
		}
		if !slices.Equal(in, before) {
			t.Fatal("the plan changed its input")
		}
	}
}
