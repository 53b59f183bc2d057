package simd

import "github.com/viterin/vek/vek32"

// Add adds y to x, element by element. They have the same length and do not overlap. The kernel is vek's: with AVX2 it takes about a
// fifteenth of the time of a loop, and gives the same bits; elsewhere it is the loop. For dot products and distances, svc has its own
// kernels: vek's are at best as fast with AVX2, and do not exist for AVX-512 and NEON.
func Add(x, y []float32) {
	if len(x) > 0 {
		vek32.Add_Inplace(x, y)
	}
}
