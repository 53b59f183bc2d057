//go:build !noasm

package simd

import (
	"testing"

	"github.com/klauspost/cpuid/v2"
)

// TestBothDotProductsOfBytesAreExact tests both kernels: a tier uses one of them only.
func TestBothDotProductsOfBytesAreExact(t *testing.T) {
	kernels := map[string]func(a, b []int8) int32{"NEON": dotInt8NEON}
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		kernels["SDOT"] = dotInt8SDOT
	}
	r := random(t)
	for name, dot := range kernels {
		for _, n := range lengths() {
			a, b := guarded[int8](t, n+1), guarded[int8](t, n)
			for _, extreme := range []bool{false, true} {
				for i := range b {
					a[i+1], b[i] = int8(r.Uint32()), int8(r.Uint32())
					if extreme {
						a[i+1], b[i] = -128, -128
					}
				}
				if want, got := dotInt8Portable(a[1:], b), dot(a[1:], b); got != want {
					t.Fatalf("%s of %d: got %d, want %d", name, n, got, want)
				}
			}
		}
	}
}
