package aggregate

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestQuantiles compares percentiles of many values with exact ones: ranks may be off by at most 1 % of all, however the values are merged
// and sent. Few different values must be exact.
func TestQuantiles(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range 40 {
		w := &work{}
		var all []float64
		whole := new(quantiles)
		different := []int{5, 900, 1 << 30}[r.IntN(3)]
		for range 1 + r.IntN(4) {
			part := new(quantiles)
			for range r.IntN(5000) {
				x := float64(r.IntN(different))
				if r.IntN(2) == 0 {
					x = x * x
				}
				all = append(all, x)
				if err := part.add(w, exactFew, weighted{x, 1}); err != nil {
					t.Fatal(err)
				}
			}
			sent := new(quantiles)
			m := &message{left: part.appendPeer(nil)}
			if err := sent.readPeer(w, m); err != nil || m.bad || len(m.left) > 0 {
				t.Fatalf("seed %d: %v, bad %v, %d bytes left", seed, err, m.bad, len(m.left))
			}
			if err := whole.merge(w, exactFew, sent); err != nil {
				t.Fatal(err)
			}
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		if distinct := len(slices.Compact(slices.Clone(all))); (distinct > 2*exactFew+8) != (whole.digest != nil) && (distinct <= exactFew) != (whole.digest == nil) {
			t.Fatalf("seed %d: %d different values, digest used: %v", seed, distinct, whole.digest != nil)
		}
		for _, percent := range []float64{0, 1, 10, 25, 50, 75, 90, 99, 99.9, 100} {
			got := whole.at([]float64{percent})[0]
			rank := percent / 100 * float64(len(all)-1)
			slack := 0.01*float64(len(all)) + 1
			if whole.digest == nil {
				slack = 0
			}
			low, high := all[max(int(rank-slack), 0)], all[min(int(rank+slack)+1, len(all)-1)]
			if got < low || got > high {
				t.Fatalf("seed %d, round %d: percentile %v of %d values is %v, want %v to %v", seed, round, percent, len(all), got, low, high)
			}
		}
	}
}

// TestSortedListBecomesDigest condenses a long list in runs.
func TestSortedListBecomesDigest(t *testing.T) {
	const n = 300_000
	q := new(quantiles)
	for i := range n {
		q.list = append(q.list, weighted{float64(i), 2})
	}
	q.sorted = n
	sent := new(quantiles)
	if err := sent.readPeer(&work{}, &message{left: q.appendPeer(nil)}); err != nil {
		t.Fatal(err)
	}
	if q.digest != nil || sent.digest == nil || sent.digest.Count() != 2*n {
		t.Fatalf("the digest has %v values", sent.digest)
	}
	for _, percent := range []float64{0, 1, 50, 99, 100} {
		if got, want := sent.at([]float64{percent})[0], q.at([]float64{percent})[0]; got < want-n/100 || got > want+n/100 {
			t.Errorf("percentile %v: %v, want about %v", percent, got, want)
		}
	}
}

// TestRunsAreInserted joins lists with short and long runs, and compares them with a map of the values.
func TestRunsAreInserted(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 2))
	for round := range 300 {
		q, times := new(quantiles), map[float64]uint64{}
		if err := q.reserve(&work{}, 4000); err != nil {
			t.Fatal(err)
		}
		room := cap(q.list)
		different := 1 + r.IntN([]int{3, 100, 3000}[r.IntN(3)])
		for range 1 + r.IntN(4) {
			for range r.IntN([]int{5, 50, 900}[r.IntN(3)]) {
				v := weighted{float64(r.IntN(different) - different/2), 1 + r.Uint64N(3)}
				if r.IntN(10) == 0 {
					v.value = -v.value // zero has two signs
				}
				q.list = append(q.list, v)
				times[v.value] += v.times
			}
			q.compact()
			want := make([]weighted, 0, len(times))
			for value, n := range times {
				want = append(want, weighted{value, n})
			}
			slices.SortFunc(want, byValue)
			if !slices.Equal(q.list, want) || q.sorted != len(want) || cap(q.list) != room {
				t.Fatalf("seed %d, round %d: %v, want %v", seed, round, q.list, want)
			}
		}
	}
}

func BenchmarkInsertRun(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{10, 1000, 40_000} {
		list, run := make([]weighted, 40_000), make([]weighted, n)
		for i := range list {
			list[i] = weighted{float64(2 * i), 1}
		}
		for i := range run {
			run[i] = weighted{float64(r.IntN(2 * len(list))), 1}
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			q := new(quantiles)
			for b.Loop() {
				q.list = append(append(q.list[:0], list...), run...)
				q.sorted = len(list)
				q.compact()
			}
		})
	}
}
