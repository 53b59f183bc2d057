package simd

import "github.com/viterin/vek/vek32"

// Add adds y to x, element by element. They are as long as each other, and do not overlap. The kernel is vek's: with AVX2 it takes
// about a fifteenth of the time that a loop takes, and gives the same bits; elsewhere it is the loop. For dot products and distances
// ours stay: vek's are as fast as those for AVX2, at best, and there are none for AVX-512 and NEON.
func Add(x, y []float32) {
	if len(x) > 0 {
		vek32.Add_Inplace(x, y)
	}
}
