package simd

import "math"

// Halve rounds v to half precision (IEEE 754 binary16), halves to even. What exceeds its range becomes ±65504; NaN stays
// NaN. It panics when dst is shorter than v.
func Halve(dst []uint16, v []float32) { current.halve(dst[:len(v)], v) }

// Widen sets dst to the numbers of half precision, exactly. It panics when dst is shorter than h.
func Widen(dst []float32, h []uint16) { current.widen(dst[:len(h)], h) }

// DotSquaresGatherHalf is DotSquaresGather for rows of half precision.
func DotSquaresGatherHalf(dots, squares, q []float32, rows []uint16, ids []uint32) {
	ids, squares = ids[:len(dots)], squares[:len(dots)]
	checkIDs(ids, len(rows)/len(q))
	current.gatherHalves(dots, squares, q, rows, ids)
}

func halvePortable(dst []uint16, v []float32) {
	const (
		largest  = 0x477fe000 // 65504
		normal   = 0x38800000 // 2⁻¹⁴, the least number with a full mantissa
		infinite = 0x7f800000
		half     = 0x3f000000 // a sum with ½ has the last place of the small numbers: 2⁻²⁴
	)
	for i, x := range v {
		b := math.Float32bits(x)
		sign := uint16(b >> 16 & 0x8000)
		switch b &= 1<<31 - 1; {
		case b > infinite:
			dst[i] = sign | 0x7e00 | uint16(b>>13&0x1ff)
		case b >= largest:
			dst[i] = sign | 0x7bff
		case b < normal:
			dst[i] = sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-half)
		default:
			dst[i] = sign | uint16((b+0xfff+b>>13&1-(normal-1<<23))>>13)
		}
	}
}

func widenPortable(dst []float32, h []uint16) {
	for i, x := range h {
		dst[i] = wide(x)
	}
}

// wide moves the exponent by a product, which is right for the small numbers as well.
func wide(h uint16) float32 {
	b := math.Float32bits(math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112)
	if h&0x7c00 == 0x7c00 {
		b |= 0x7f800000
		if h&0x3ff != 0 {
			b |= 1 << 22 // as conversions make it
		}
	}
	return math.Float32frombits(b | uint32(h&0x8000)<<16)
}

func gatherHalvesPortable(dots, squares, q []float32, rows []uint16, ids []uint32) {
	n := len(q)
	for j := range dots {
		var dot, square float32
		for i, x := range rows[int(ids[j])*n:][:n] {
			f := wide(x)
			dot += q[i] * f
			square += f * f
		}
		dots[j], squares[j] = dot, square
	}
}
