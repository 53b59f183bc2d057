package simd

import (
	"math"
	"testing"
)

// TestAdd compares sums bit by bit with those of a loop.
func TestAdd(t *testing.T) {
	r := random(t)
	for _, n := range lengths() {
		x, y := guarded[float32](t, n+1)[1:], guarded[float32](t, n+1)[1:]
		sum := make([]float32, n)
		for i := range x {
			x[i], y[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
			sum[i] = x[i] + y[i]
		}
		Add(x, y)
		for i := range x {
			if math.Float32bits(x[i]) != math.Float32bits(sum[i]) {
				t.Fatalf("%d: element %d is %v, want %v", n, i, x[i], sum[i])
			}
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	x, y := make([]float32, 384), make([]float32, 384)
	for b.Loop() {
		Add(x, y)
	}
}
