package simd

import "github.com/viterin/vek/vek32"

// Normalize scales v in place to length 1 and returns the length that it had.
// A vector of length 0, or one whose length is no finite number, stays as it is.
func Normalize(v []float32) float32 {
	if len(v) == 0 {
		return 0
	}
	norm := vek32.Norm(v)
	if norm > 0 && norm-norm == 0 {
		vek32.DivNumber_Inplace(v, norm)
	}
	return norm
}
