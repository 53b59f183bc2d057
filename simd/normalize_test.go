package simd

import (
	"math"
	"slices"
	"testing"
)

func TestNormalize(t *testing.T) {
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
		if got := Normalize(v); math.Abs(got-length) > 1e-12*length {
			t.Fatalf("%d: length %v, want %v", n, got, length)
		}
		for i := range v {
			if math.Abs(float64(v[i])-float64(want[i])/length) > 1e-7 {
				t.Fatalf("%d: element %d is %v, want %v", n, i, v[i], float64(want[i])/length)
			}
		}
	}
}

func TestNormalizeLeavesVectorsWithoutDirection(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{nil, {0, 0, 0}, {1, nan}, {inf, 1}} {
		before := slices.Clone(v)
		Normalize(v)
		for i := range v {
			if v[i] != before[i] && v[i] == v[i] {
				t.Errorf("%v became %v", before, v)
			}
		}
	}
}

// TestNormalizeIsExact checks that every processor computes the bits that segments store, even if squares overflow float32.
func TestNormalizeIsExact(t *testing.T) {
	half := float32(math.Sqrt(.5))
	for _, test := range []struct{ v, want []float32 }{
		{[]float32{0, 2}, []float32{0, 1}},
		{[]float32{3, 4}, []float32{.6, .8}},
		{[]float32{math.MaxFloat32, math.MaxFloat32}, []float32{half, half}},
		{[]float32{0, -math.SmallestNonzeroFloat32}, []float32{0, -1}},
	} {
		if Normalize(test.v); !slices.Equal(test.v, test.want) {
			t.Errorf("got %v, want %v", test.v, test.want)
		}
	}
}
