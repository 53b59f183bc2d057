package aggregate

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"svc/internal/numeric"
)

// TestWholeVariance compares the variance of integers, computed with 128 bits, with one of 300 bits.
func TestWholeVariance(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	taken := 0
	for range 20_000 {
		sum, squares := new(big.Int), new(big.Int)
		n := 1 + r.Uint64N(1<<(1+r.UintN(31)))
		if r.IntN(2) == 0 { // as of n values
			x := new(big.Int).SetInt64(r.Int64N(1<<(1+r.UintN(30))) - 1<<r.UintN(30))
			count := new(big.Int).SetUint64(n)
			sum.Mul(x, count)
			squares.Mul(x, x).Mul(squares, count).Add(squares, new(big.Int).SetUint64(r.Uint64N(1<<(1+r.UintN(40)))))
		} else {
			sum.SetInt64(r.Int64N(1<<(1+r.UintN(61))) - r.Int64N(1<<(1+r.UintN(61))))
			squares.SetUint64(r.Uint64N(1 << (1 + r.UintN(61))))
		}
		s, q := doubleOf(sum), doubleOf(squares)
		got, ok := wholeVariance(&s, &q, n)
		v := new(big.Int).Mul(squares, new(big.Int).SetUint64(n))
		if v.Sub(v, new(big.Int).Mul(sum, sum)); v.Sign() < 0 {
			if ok {
				t.Fatalf("seed %d: %v and %v of %d have the variance %v", seed, sum, squares, n, got)
			}
			continue
		}
		if !ok {
			continue
		}
		taken++
		of := new(big.Float).SetPrec(precision).SetUint64(n)
		want, _ := new(big.Float).SetPrec(precision).Quo(new(big.Float).SetPrec(precision).SetInt(v), of.Mul(of, of)).Float64()
		if got != want {
			t.Fatalf("seed %d: %v and %v of %d have the variance %v, want %v", seed, sum, squares, n, got, want)
		}
	}
	if taken < 5_000 {
		t.Errorf("seed %d: only %d variances used 128 bits", seed, taken)
	}
}

// doubleOf converts an integer below 2¹⁰⁶ exactly.
func doubleOf(x *big.Int) double {
	high, _ := new(big.Float).SetInt(x).Float64()
	rest, _ := new(big.Float).SetFloat64(high).Int(nil)
	low, _ := new(big.Float).SetInt(rest.Sub(x, rest)).Float64()
	return double{high, low}
}

// TestNearIsInterval compares the interval of a number found by multiplication with that by division, at bounds and close to them.
func TestNearIsInterval(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	taken := 0
	for range 2000 {
		spec := &Spec{interval: math.Ldexp(1+r.Float64(), r.IntN(60)-30), offset: math.Ldexp(r.Float64()-.5, r.IntN(60)-30)}
		switch r.IntN(3) {
		case 0:
			spec.interval = []float64{.1, .01, .3, 1, 2.5, 1000}[r.IntN(6)]
		case 1:
			spec.offset = 0
		}
		h := newHistogram(spec).(*buckets).by.(histogram)
		first := math.Floor(math.Ldexp(r.Float64()-.5, r.IntN(42)))
		n := near{histogram: h, factor: 1 / spec.interval, first: first - 1, size: 5}
		if !h.apart(first, first+2) {
			continue
		}
		taken++
		for range 20 {
			x := h.begin(first + float64(r.IntN(3)))
			switch r.IntN(4) {
			case 0:
				x = math.Nextafter(x, math.Inf(1))
			case 1:
				x = math.Nextafter(x, math.Inf(-1))
			case 2:
				x += r.Float64() * spec.interval
			}
			at, ok := n.near(x)
			if got, want := n.first+float64(at), h.interval(x); got != want || !ok {
				t.Fatalf("seed %d: %v is in interval %v, want %v, of %v from %v on", seed, numeric.Of(x), got, want, spec.interval, spec.offset)
			}
		}
	}
	n := near{histogram: newHistogram(&Spec{interval: 1}).(*buckets).by.(histogram), factor: 1, first: 5, size: 2}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 4.5, 3, -1e300, 7, 7.5, 1e300} {
		if at, ok := n.near(x); ok {
			t.Errorf("%v is at %d, want no interval", x, at)
		}
	}
	if taken < 500 {
		t.Errorf("seed %d: only %d histograms had well separated bounds", seed, taken)
	}
}
