package simd

import "math"

// Normalize scales v in place to length 1 and returns its previous length. A vector of length 0, or of a length that is not finite,
// stays as it is.
//
// Segments have codes of scaled vectors, and the same documents must give the same bytes on each processor. So Normalize uses no
// kernel: sums of kernels, and vek's roots, differ in the last bits. Squares of float32 are exact in float64 and cannot overflow
// there.
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
