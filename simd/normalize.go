package simd

import "math"

// Normalize scales v in place to length 1 and returns the length that it had. A vector of length 0, or one whose length is no finite
// number, stays as it is.
//
// Segments have codes of scaled vectors, and the same documents give the same bytes on each processor. So no kernel is used: sums of
// kernels differ in the last bits, and so do vek's roots. Squares of float32 are exact in float64 and cannot overflow there.
func Normalize(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	norm := math.Sqrt(sum)
	if norm > 0 && norm-norm == 0 {
		for i, x := range v {
			v[i] = float32(float64(x) / norm)
		}
	}
	return norm
}
