package simd

import (
	"math"
	"testing"
)

// slowWide computes a half-precision number from its parts.
func slowWide(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	exponent, fraction := int(h>>10&31), float64(h&0x3ff)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

func TestWidenConvertsAllHalves(t *testing.T) {
	all := guarded[uint16](t, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	want := make([]float32, len(all))
	widenPortable(want, all)
	for h, x := range want {
		if slow := slowWide(uint16(h)); float64(x) != slow && (x == x || slow == slow) || math.Signbit(float64(x)) != (h>>15 == 1) {
			t.Fatalf("%#04x is %v, want %v", h, x, slow)
		}
	}
	eachTier(t, func(t *testing.T, k kernels) {
		for _, n := range append(lengths(), len(all)) {
			got := guarded[float32](t, n)
			k.widen(got, all[len(all)-n:])
			for i, x := range got {
				if w := want[len(all)-n+i]; math.Float32bits(x) != math.Float32bits(w) {
					t.Fatalf("%#04x is %v, want %v", all[len(all)-n+i], x, w)
				}
			}
		}
	})
}

func TestHalveRoundsToNearest(t *testing.T) {
	r := random(t)
	v := []float32{0, float32(math.Copysign(0, -1)), 65504, 65519, 65520, 65536, math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)),
		float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(0x7f800001), math.Float32frombits(0xffc12345), 0x1p-14, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-26}
	for range 100_000 {
		switch x := math.Float32frombits(r.Uint32()); r.IntN(3) {
		case 0:
			v = append(v, x)
		case 1: // in range
			v = append(v, math.Float32frombits(math.Float32bits(x)&^(0x7f<<24)|uint32(0x33+r.IntN(0x15))<<24))
		case 2: // halfway between two halves, or next to it
			v = append(v, math.Float32frombits(math.Float32bits(float32(slowWide(uint16(r.Uint32()))))|1<<12+uint32(r.IntN(3))-1))
		}
	}
	want := make([]uint16, len(v))
	halvePortable(want, v)
	for i, x := range v {
		h, d := want[i], math.Min(math.Max(float64(x), -65504), 65504)
		if x != x {
			if h&0x7e00 != 0x7e00 {
				t.Fatalf("NaN becomes %#04x", h)
			}
			continue
		}
		off := math.Abs(slowWide(h) - d)
		for _, other := range []uint16{h - 1, h + 1} {
			if y := math.Abs(slowWide(other) - d); y < off || y == off && h&1 == 1 {
				t.Fatalf("%v becomes %v, %v is nearer", x, slowWide(h), slowWide(other))
			}
		}
		if math.Signbit(float64(x)) != (h>>15 == 1) {
			t.Fatalf("%v becomes %#04x", x, h)
		}
	}
	eachTier(t, func(t *testing.T, k kernels) {
		for _, n := range append(lengths(), len(v)) {
			got, in := guarded[uint16](t, n), guarded[float32](t, n)
			copy(in, v)
			k.halve(got, in)
			for i, h := range got {
				if h != want[i] {
					t.Fatalf("%v (%#x) becomes %#04x, want %#04x", v[i], math.Float32bits(v[i]), h, want[i])
				}
			}
		}
	})
}

func TestGatheredHalvesMatchTheirRows(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		const rows = 9
		for n := 1; n <= 384; n = n + 1 + n/40 {
			q, m := guarded[float32](t, n), guarded[uint16](t, n*rows)
			for i := range m {
				m[i], q[i%n] = uint16(r.IntN(0x3c00)), r.Float32() // up to 1
			}
			ids := []uint32{8, 0, 3, 3, 7, 8}
			for count := range len(ids) + 1 {
				dots, squares := guarded[float32](t, count), guarded[float32](t, count)
				k.gatherHalves(dots, squares, q, m, ids[:count])
				for i := range dots {
					row := make([]float32, n)
					widenPortable(row, m[int(ids[i])*n:][:n])
					dot, square := dotPortable(q, row), dotPortable(row, row)
					if !near(dots[i], dot, float64(n)) || !near(squares[i], square, float64(n)) {
						t.Fatalf("row %d of length %d: %v and %v, want %v and %v", ids[i], n, dots[i], squares[i], dot, square)
					}
				}
			}
		}
	})
}
