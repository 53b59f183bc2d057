package simd

import (
	"math"
	"slices"
	"testing"
)

func TestNormalizeAgreesWithTheTwin(t *testing.T) {
	r := random(t)
	for _, n := range lengths() {
		v := guarded[float32](t, n+1)[1:]
		want := make([]float32, n)
		var sum float64
		for i := range v {
			v[i] = float32(r.NormFloat64())
			want[i] = v[i]
			sum += float64(v[i]) * float64(v[i])
		}
		length := math.Sqrt(sum)
		if got := Normalize(v); math.Abs(float64(got)-length) > 1e-5*length {
			t.Fatalf("%d: length %v, want %v", n, got, length)
		}
		for i := range v {
			if math.Abs(float64(v[i])-float64(want[i])/length) > 1e-5 {
				t.Fatalf("%d: element %d is %v, want %v", n, i, v[i], float64(want[i])/length)
			}
		}
	}
}

func TestNormalizeLeavesWhatHasNoDirection(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{nil, {0, 0, 0}, {1, nan}, {inf, 1}, {math.MaxFloat32, math.MaxFloat32}} {
		before := slices.Clone(v)
		Normalize(v)
		for i := range v {
			if v[i] != before[i] && v[i] == v[i] {
				t.Errorf("%v became %v", before, v)
			}
		}
	}
}
