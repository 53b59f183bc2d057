package simd

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// lengths returns every tail length of every kernel, around each step.
func lengths() []int {
	var n []int
	for i := range 140 {
		n = append(n, i)
	}
	return append(n, 255, 256, 257, 383, 384, 385, 768, 1000, 1024, 1535, 1536, 4096)
}

func eachTier(t *testing.T, f func(t *testing.T, k kernels)) {
	for tier, k := range tiers() {
		if tier != Portable {
			t.Run(tier.String(), func(t *testing.T) { f(t, k) })
		}
	}
}

func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// near reports whether two sums are equal within rounding. The terms of the sums add up to magnitude.
func near(a, b float32, magnitude float64) bool {
	if a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b)) {
		return true
	}
	return math.Abs(float64(a)-float64(b)) <= 1e-5*magnitude+1e-37
}

func TestFloatKernelsAgreeWithThePortableOnes(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e18, -1e18,
			math.SmallestNonzeroFloat32, 1e-40, 0, float32(math.Copysign(0, -1))}
		for _, n := range lengths() {
			a, b := guarded[float32](t, n+1), guarded[float32](t, n)
			for _, specials := range []bool{false, true} {
				for i := range b {
					a[i+1], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
				}
				if specials && n > 0 {
					a[1+r.IntN(n)] = special[r.IntN(len(special))]
					b[r.IntN(n)] = special[r.IntN(len(special))]
				}
				x := a[1:] // starts on any alignment, ends at the guard page
				var dots, squares float64
				for i := range x {
					dots += math.Abs(float64(x[i]) * float64(b[i]))
					squares += (float64(x[i]) - float64(b[i])) * (float64(x[i]) - float64(b[i]))
				}
				if want, got := dotPortable(x, b), k.dot(x, b); !near(got, want, dots) {
					t.Fatalf("dot of %d: got %v, want %v", n, got, want)
				}
				var own float64
				for _, y := range b {
					own += float64(y) * float64(y)
				}
				var dot, square [1]float32
				k.gatherFloats(dot[:], square[:], x, b, []uint32{0})
				if want := dotPortable(x, b); !near(dot[0], want, dots) {
					t.Fatalf("dot and squares of %d: the dot is %v, want %v", n, dot[0], want)
				}
				if want := dotPortable(b, b); !near(square[0], want, own) {
					t.Fatalf("dot and squares of %d: the squares are %v, want %v", n, square[0], want)
				}
				if want, got := l2Portable(x, b), k.l2(x, b); !near(got, want, squares) {
					t.Fatalf("l2 of %d: got %v, want %v", n, got, want)
				}
			}
		}
	})
}

func TestIntegerKernelsAreExact(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		for _, n := range lengths() {
			a, b := guarded[int8](t, n+1), guarded[int8](t, n)
			for _, fill := range []func() int8{
				func() int8 { return int8(r.Uint32()) },
				func() int8 { return -128 }, // products that overflow narrower sums
				func() int8 { return 127 },
			} {
				for i := range b {
					a[i+1], b[i] = fill(), fill()
				}
				if want, got := dotInt8Portable(a[1:], b), k.dotInt8(a[1:], b); got != want {
					t.Fatalf("dotInt8 of %d: got %d, want %d", n, got, want)
				}
			}
			for i := range b {
				a[i+1], b[i] = -128, 127
			}
			if want, got := dotInt8Portable(a[1:], b), k.dotInt8(a[1:], b); got != want {
				t.Fatalf("dotInt8 of %d opposite extremes: got %d, want %d", n, got, want)
			}

			x, y := guarded[uint64](t, n), guarded[uint64](t, n)
			for i := range x {
				x[i], y[i] = r.Uint64(), r.Uint64()
			}
			if want, got := hammingPortable(x, y), k.hamming(x, y); got != want {
				t.Fatalf("hamming of %d: got %d, want %d", n, got, want)
			}
			for i := range x {
				y[i] = ^x[i]
			}
			if got := k.hamming(x, y); got != int64(64*n) {
				t.Fatalf("hamming of %d opposites: got %d", n, got)
			}
		}
	})
}

func TestShorterSecondSlicePanics(t *testing.T) {
	for name, f := range map[string]func(){
		"Dot":      func() { Dot(make([]float32, 5), make([]float32, 4)) },
		"L2":       func() { L2(make([]float32, 5), make([]float32, 4)) },
		"DotInt8":  func() { DotInt8(make([]int8, 5), make([]int8, 4)) },
		"Quantize": func() { Quantize(make([]int8, 4), make([]float32, 5), 1) },
		"Halve":    func() { Halve(make([]uint16, 4), make([]float32, 5)) },
		"Widen":    func() { Widen(make([]float32, 4), make([]uint16, 5)) },
		"Hamming":  func() { Hamming(make([]uint64, 5), make([]uint64, 4)) },
		"DotRows":  func() { DotRows(make([]float32, 2), make([]float32, 4), make([]float32, 7)) },
	} {
		// With spare capacity, a kernel could read past the length.
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestDotRowsScoresEveryRow(t *testing.T) {
	r := random(t)
	const n, rows = 37, 11
	q, m := make([]float32, n), make([]float32, n*rows)
	for i := range m {
		m[i] = r.Float32()
		q[i%n] = r.Float32()
	}
	out := make([]float32, rows)
	DotRows(out, q, m)
	for i := range rows {
		if want := Dot(q, m[i*n:(i+1)*n]); out[i] != want {
			t.Errorf("row %d: %v, want %v", i, out[i], want)
		}
	}
}

func TestGatheredScoresAreExact(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		for _, n := range []int{64, 128, 384, 448, 1536} {
			const rows = 23
			q, m := guarded[int8](t, n), guarded[int8](t, n*rows)
			for _, extreme := range []bool{false, true} {
				for i := range m {
					m[i], q[i%n] = int8(r.Uint32()), int8(r.Uint32())
					if extreme {
						m[i], q[i%n] = -128, 127
					}
				}
				for count := range 9 {
					ids := make([]uint32, count)
					for i := range ids {
						ids[i] = uint32(r.IntN(rows))
					}
					want, got := make([]int32, count), make([]int32, count)
					gatherPortable(want, q, m, ids)
					k.gatherInt8(got, q, m, ids)
					if !slices.Equal(want, got) {
						t.Fatalf("%d of length %d: got %v, want %v", count, n, got, want)
					}
				}
			}
		}
	})
}

func TestGatheredBitsAreExact(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		for _, n := range []int{1, 2, 6, 7, 8, 9, 12, 16, 24, 33} {
			const rows = 23
			q, m := guarded[uint64](t, n), guarded[uint64](t, n*rows)
			for i := range m {
				m[i], q[i%n] = r.Uint64(), r.Uint64()
			}
			copy(m, q) // row 0 is the query, row 1 its opposite
			for i, x := range q {
				m[n+i] = ^x
			}
			for count := range 12 {
				ids := make([]uint32, count)
				for i := range ids {
					ids[i] = uint32(r.IntN(rows))
				}
				want, got := make([]int32, count), make([]int32, count)
				gatherBitsPortable(want, q, m, ids)
				k.gatherBits(got, q, m, ids)
				if !slices.Equal(want, got) {
					t.Fatalf("%d of %d words: got %v, want %v", count, n, got, want)
				}
			}
			got := make([]int32, 3)
			k.gatherBits(got, q, m, []uint32{0, 1, rows - 1})
			if got[0] != 0 || got[1] != int32(64*n) {
				t.Fatalf("%d words: the distance of the query itself is %d, of its opposite %d", n, got[0], got[1])
			}
		}
	})
}

func TestGatheredFloatsMatchTheirRows(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		const rows = 9
		for n := 1; n <= 384; n = n + 1 + n/40 {
			q, m := guarded[float32](t, n), guarded[float32](t, n*rows)
			for i := range m {
				m[i], q[i%n] = r.Float32(), r.Float32()
			}
			ids := []uint32{8, 0, 3, 3, 7, 8}
			for count := range len(ids) + 1 {
				dots, squares := guarded[float32](t, count), guarded[float32](t, count)
				k.gatherFloats(dots, squares, q, m, ids[:count])
				for i := range dots {
					row := m[int(ids[i])*n:][:n]
					dot, square := dotPortable(q, row), dotPortable(row, row)
					if !near(dots[i], dot, float64(n)) || !near(squares[i], square, float64(n)) {
						t.Fatalf("row %d of length %d: %v and %v, want %v and %v", ids[i], n, dots[i], squares[i], dot, square)
					}
				}
			}
		}
	})
}

func TestCodesOfVectorsAreExact(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32,
			-math.MaxFloat32, math.SmallestNonzeroFloat32, 0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, -126.5, -127.5, 0}
		for _, n := range lengths() {
			v, got := guarded[float32](t, n+1)[1:], guarded[int8](t, n)
			for _, scale := range []float32{1, 40, 1e-3, 1e30} {
				for i := range v {
					v[i] = float32(r.NormFloat64()) * 3
					if r.IntN(8) == 0 {
						v[i] = special[r.IntN(len(special))]
					}
				}
				want := make([]int8, n)
				quantizePortable(want, v, scale)
				k.quantize(got, v, scale)
				if !slices.Equal(want, got) {
					t.Fatalf("%d elements times %v: got %v, want %v, of %v", n, scale, got, want, v)
				}
				if want, got := largestPortable(v), k.largest(v); got != want {
					t.Fatalf("largest of %d: got %v, want %v, of %v", n, got, want, v)
				}
			}
		}
	})
}

func TestGatherChecksLengths(t *testing.T) {
	for name, f := range map[string]func(){
		"unpadded": func() { DotInt8Gather(make([]int32, 1), make([]int8, 63), make([]int8, 640), []uint32{0}) },
		"empty":    func() { DotInt8Gather(make([]int32, 1), nil, make([]int8, 640), []uint32{0}) },
		"outside":  func() { DotInt8Gather(make([]int32, 1), make([]int8, 64), make([]int8, 640), []uint32{10}) },
		"no float": func() {
			DotSquaresGather(make([]float32, 1), make([]float32, 1), make([]float32, 4), make([]float32, 40), []uint32{10})
		},
		"few floats": func() {
			DotSquaresGather(make([]float32, 2), make([]float32, 2), make([]float32, 4), make([]float32, 40), []uint32{1})
		},
		"few squares": func() {
			DotSquaresGather(make([]float32, 2), make([]float32, 1), make([]float32, 4), make([]float32, 40), []uint32{1, 2})
		},
		"empty floats": func() {
			DotSquaresGather(make([]float32, 1), make([]float32, 1), nil, make([]float32, 40), []uint32{1})
		},
		"no half": func() {
			DotSquaresGatherHalf(make([]float32, 1), make([]float32, 1), make([]float32, 4), make([]uint16, 40), []uint32{10})
		},
		"few squares of halves": func() {
			DotSquaresGatherHalf(make([]float32, 2), make([]float32, 1), make([]float32, 4), make([]uint16, 40), []uint32{1, 2})
		},
		"no bits":    func() { HammingGather(make([]int32, 1), make([]uint64, 4), make([]uint64, 40), []uint32{10}) },
		"empty bits": func() { HammingGather(make([]int32, 1), nil, make([]uint64, 40), []uint32{1}) },
		"no signs": func() {
			SignsAbove(make([]uint32, 1), make([]int32, 1), make([]uint64, 8), make([]uint64, 40), []uint32{20}, 2, 0)
		},
		"planes of other rows": func() {
			SignsAbove(make([]uint32, 1), make([]int32, 1), make([]uint64, 8), make([]uint64, 40), []uint32{1}, 3, 0)
		},
		"few places": func() {
			SignsAbove(make([]uint32, 1), make([]int32, 2), make([]uint64, 8), make([]uint64, 40), []uint32{1, 2}, 2, 0)
		},
		"few ids": func() { DotInt8Gather(make([]int32, 2), make([]int8, 64), make([]int8, 640), []uint32{1}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestOnesReturnsIndexesOfSetBits(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		var want, got OnesRoom
		for _, n := range append([]int{0, 1, 2, 3, 63, 64, 65, 1000, 1023}, OnesWords) {
			for _, one := range []float64{0, 0.0005, 0.002, 0.01, 0.02, 0.03, 0.06, 0.2, 0.9, 1} {
				words := guarded[uint64](t, n)
				clear(words)
				count := 0
				for i := range words {
					for bit := range 64 {
						if r.Float64() < one {
							words[i] |= 1 << bit
							count++
						}
					}
				}
				if got := CountOnes(words); got != count {
					t.Fatalf("%d bits in %d words, CountOnes returned %d", count, n, got)
				}
				if ones := onesPortable(&want, words, count); ones != count {
					t.Fatalf("the reference finds %d bits of %d in %d words", ones, count, n)
				}
				if n == 0 {
					continue // no kernel is called
				}
				for _, about := range []int{0, n / 2, 2 * n, 64 * n} {
					if ones := k.ones(&got, words, about); ones != count || !slices.Equal(got[:2*count], want[:2*count]) {
						t.Fatalf("got %d of %d bits in %d words, or other bits", ones, count, n)
					}
				}
			}
		}
	})
}

func TestOnesOfTooFewAndTooManyWords(t *testing.T) {
	var dst OnesRoom
	if n := Ones(&dst, nil, 0); n != 0 {
		t.Errorf("no words have %d bits", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for more words than dst has room for")
		}
	}()
	Ones(&dst, make([]uint64, OnesWords+1), 1)
}

func TestSkipMarkedBytes(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		for range 3000 {
			p := guarded[byte](t, r.IntN(300))
			share := r.Float64()
			for i := range p {
				if p[i] = byte(r.IntN(0x80)); r.Float64() < share {
					p[i] |= 0x80
				}
			}
			from := r.IntN(len(p) + 1)
			p = p[from:]
			for _, n := range []int{-1, 0, 1, 2, r.IntN(8), r.IntN(len(p) + 2), len(p), math.MaxInt} {
				want, left := 0, n
				for ; left > 0 && want < len(p); want++ {
					if p[want] >= 0x80 {
						left--
					}
				}
				if got := k.skipMarked(p, n); got != want {
					t.Fatalf("marked byte %d of %x ends at %d, want %d", n, p, got, want)
				}
			}
		}
	})
}

func TestFindLeadingBytes(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		for range 3000 {
			p := guarded[byte](t, r.IntN(400))
			low := byte(r.IntN(0x80))
			high := low + byte(r.IntN(int(0x80-low)))
			ending, rare := r.Float64(), r.Float64()
			for i := range p {
				if p[i] = byte(r.IntN(0x80)); r.Float64() < rare {
					p[i] = low - 1&0x7f
				}
				if r.Float64() < ending {
					p[i] |= 0x80
				}
			}
			p = p[r.IntN(len(p)+1):]
			begins := r.IntN(2) == 0

			var want, got []int // offset of a first byte, number of the group
			number := 0
			for i, b := range p {
				if first := i == 0 && begins || i > 0 && p[i-1] >= 0x80; first && low <= b&0x7f && b&0x7f <= high {
					want = append(want, i, number)
				}
				number += int(b >> 7)
			}
			group := 0
			for at := 0; at < len(p); at += 32 {
				passed, groups, firsts, ends := k.leading(p[at:], low, high-low, at == 0 && begins || at > 0 && p[at-1] >= 0x80)
				group += groups
				if at += passed; firsts == 0 {
					if at != len(p) || group != number || ends != 0 {
						t.Fatalf("the end of %d bytes with %d ends is found at %d with %d", len(p), number, at, group)
					}
					break
				}
				for ; firsts != 0; firsts &= firsts - 1 {
					bit := bits.TrailingZeros32(firsts)
					got = append(got, at+bit, group+bits.OnesCount32(ends&(1<<bit-1)))
				}
				group += bits.OnesCount32(ends)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("bytes of %x from %x to %x: got %v, want %v", p, low, high, got, want)
			}
		}
	})
}

func TestEnvironmentSelectsTier(t *testing.T) {
	t.Setenv("SVC_SIMD", "portable")
	if _, got := chosen(); got != Portable {
		t.Errorf("got %v, want portable", got)
	}
	t.Setenv("SVC_SIMD", "no such tier")
	if _, got := chosen(); got != Available() {
		t.Errorf("an unknown tier selects %v, want the best of %v", got, Available())
	}
}

func BenchmarkKernels(b *testing.B) {
	const n = 384
	r := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float32, n), make([]float32, n)
	xi, yi := make([]int8, n), make([]int8, n)
	xb, yb := make([]uint64, n/64), make([]uint64, n/64)
	for i := range x {
		x[i], y[i], xi[i], yi[i] = r.Float32(), r.Float32(), int8(r.Uint32()), int8(r.Uint32())
	}
	names := []Tier{}
	for tier := range tiers() {
		names = append(names, tier)
	}
	slices.Sort(names)
	for _, tier := range names {
		k := tiers()[tier]
		b.Run("dot/"+tier.String(), func(b *testing.B) {
			b.SetBytes(n * 8)
			for b.Loop() {
				k.dot(x, y)
			}
		})
		b.Run("l2/"+tier.String(), func(b *testing.B) {
			b.SetBytes(n * 8)
			for b.Loop() {
				k.l2(x, y)
			}
		})
		b.Run("dotInt8/"+tier.String(), func(b *testing.B) {
			b.SetBytes(n * 2)
			for b.Loop() {
				k.dotInt8(xi, yi)
			}
		})
		b.Run("quantize/"+tier.String(), func(b *testing.B) {
			b.SetBytes(n * 4)
			for b.Loop() {
				k.quantize(xi, x, 127/k.largest(x))
			}
		})
		for _, one := range []float64{0.001, 0.01, 0.03, 0.06} {
			words := make([]uint64, OnesWords)
			for range int(64 * OnesWords * one) {
				words[r.IntN(OnesWords)] |= 1 << r.IntN(64)
			}
			b.Run(fmt.Sprintf("ones of %g/%s", one, tier), func(b *testing.B) {
				var dst OnesRoom
				for b.Loop() {
					k.ones(&dst, words, int(64*OnesWords*one))
				}
			})
		}
		marked := make([]byte, 1<<16)
		for i := range marked {
			if marked[i] = byte(r.Uint32()); r.IntN(8) > 0 {
				marked[i] |= 0x80
			}
		}
		for _, n := range []int{1, 8, 64, 128} {
			b.Run(fmt.Sprintf("skip %d/%s", n, tier), func(b *testing.B) {
				at := 0
				for b.Loop() {
					if at += k.skipMarked(marked[at:], 1+(at*7)%(2*n)); at == len(marked) {
						at = 0
					}
				}
			})
		}
		b.Run("leading/"+tier.String(), func(b *testing.B) {
			b.SetBytes(int64(len(marked)))
			for b.Loop() {
				for at := 0; at < len(marked); at += 32 {
					passed, _, _, _ := k.leading(marked[at:], 0x40, 0, at > 0 && marked[at-1] >= 0x80)
					at += passed
				}
			}
		})
		b.Run("hamming/"+tier.String(), func(b *testing.B) {
			b.SetBytes(n / 4)
			for b.Loop() {
				k.hamming(xb, yb)
			}
		})
	}
}
