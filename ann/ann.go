package ann

import (
	"math"
	"slices"

	"svc/simd"
)

// Quantizer turns unit vectors into codes of 8 bits with one scale for all, so
// that dot products of codes order pairs as dot products of vectors do.
type Quantizer struct {
	Dimensions int
	Scale      float32 // code = round(x·Scale), halves to even, cut off at ±127
}

// Stride is the length of a row of codes: the dimensions, padded with zeros.
func (q Quantizer) Stride() int {
	return (q.Dimensions + simd.CodeAlign - 1) / simd.CodeAlign * simd.CodeAlign
}

// NewQuantizer chooses the scale for the vectors (contiguous rows of the given dimensions). It clips only the largest components,
// about one in ten thousand.
func NewQuantizer(dimensions int, vectors []float32) Quantizer {
	const bins = 4096
	var largest float32
	for _, x := range vectors {
		largest = max(largest, abs(x))
	}
	if largest == 0 || math.IsInf(float64(largest), 0) || largest != largest {
		return Quantizer{dimensions, 127}
	}
	var histogram [bins]int
	for _, x := range vectors {
		histogram[min(int(abs(x)/largest*bins), bins-1)]++
	}
	cut, beyond := bins, 0
	for cut > 1 && beyond+histogram[cut-1] <= len(vectors)/10_000 {
		cut--
		beyond += histogram[cut]
	}
	return Quantizer{dimensions, 127 / (largest * float32(cut) / bins)}
}

// AppendCode appends one row of codes. A component that is not a number becomes 0.
func (q Quantizer) AppendCode(dst []int8, vector []float32) []int8 {
	at, end := len(dst), len(dst)+q.Stride()
	dst = slices.Grow(dst, q.Stride())[:end]
	code := dst[at:end]
	simd.Quantize(code, vector[:q.Dimensions], q.Scale)
	clear(code[q.Dimensions:])
	return dst
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// Neighbour is a row with its similarity to a query, in units of codes.
type Neighbour struct {
	Row   uint32
	Score int32
}
