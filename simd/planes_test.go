package simd

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// planesOf returns the bit planes of the numbers of whole blocks of rows.
func planesOf(numbers []int, planes int) []byte {
	blocks := make([]byte, len(numbers)/PlaneRows*planes*PlaneBytes)
	for i, x := range numbers {
		block := blocks[i/PlaneRows*planes*PlaneBytes:]
		for p := range planes {
			block[p*PlaneBytes+i%PlaneRows/8] |= byte(x >> p & 1 << (i % 8))
		}
	}
	return blocks
}

func TestMarkPlanes(t *testing.T) {
	r := random(t)
	for planes := 1; planes <= MaxPlanes; planes++ {
		for n := range 5 {
			numbers := make([]int, n*PlaneRows)
			most := 1 << planes
			if r.IntN(2) == 0 {
				most = min(most, 5)
			}
			for i := range numbers {
				if numbers[i] = r.IntN(most); r.IntN(20) == 0 {
					numbers[i] = 1<<planes - 1
				}
			}
			blocks := guarded[byte](t, n*planes*PlaneBytes)
			copy(blocks, planesOf(numbers, planes))
			for range 20 {
				lo := r.IntN(1 << planes)
				hi := lo + 1
				if r.IntN(2) == 0 {
					hi = r.IntN(1 << planes)
				}
				if hi == 1<<planes {
					continue // it has no bound
				}
				before := make([]uint64, 4*n+r.IntN(4))
				for i := range before {
					before[i] = r.Uint64() & r.Uint64() & r.Uint64()
				}
				want := slices.Clone(before)
				for i, x := range numbers {
					if lo <= x && x < hi {
						want[i/64] |= 1 << (i % 64)
					}
				}
				for tier, k := range tiers() {
					got := guarded[uint64](t, len(before))
					copy(got, before)
					with(k, func() { MarkPlanes(got, blocks, planes, lo, hi) })
					if !slices.Equal(got, want) {
						t.Fatalf("%s: %d planes of %d blocks from %d to %d: %x, want %x", tier, planes, n, lo, hi, got, want)
					}
				}
				for i := range n {
					got := FindInPlanes(blocks[i*planes*PlaneBytes:(i+1)*planes*PlaneBytes], lo, hi)
					for j, w := range got {
						if lo < hi && w|before[4*i+j] != want[4*i+j] {
							t.Fatalf("%d planes from %d to %d: %x in block %d", planes, lo, hi, got, i)
						}
					}
				}
			}
		}
	}
}

// with runs f with the kernels of one tier.
func with(k kernels, f func()) {
	defer func(k kernels) { current = k }(current)
	current = k
	f()
}

func TestFoldMarks(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		if k.fold == nil {
			t.Skip("no kernel")
		}
		r := random(t)
		for range 3000 {
			words, begin, carry := r.IntN(20), r.IntN(64), r.Uint64N(2)
			marks, ends := guarded[uint64](t, words), guarded[uint64](t, words)
			apart, rare := 1+r.IntN([]int{1, 3, 200}[r.IntN(3)]), 1+r.IntN([]int{1, 3, 200}[r.IntN(3)])
			n, set, any := begin, carry > 0, []bool{}
			for i := range 64 * words {
				if r.IntN(rare) == 0 {
					marks[i/64] |= 1 << (i % 64)
					set = true
				}
				if r.IntN(apart) == 0 {
					ends[i/64] |= 1 << (i % 64)
					any = append(any, set)
					set = false
				}
			}
			got := guarded[uint64](t, (begin+len(any)+63)/64)
			if len(got) > 0 {
				got[0] |= r.Uint64() & (1<<begin - 1)
			}
			want := slices.Clone(got)
			for _, set := range any {
				if set {
					want[n/64] |= 1 << (n % 64)
				}
				n++
			}
			var left uint64
			with(k, func() { left = FoldMarks(got, begin, marks, ends, carry) })
			if !slices.Equal(got, want) || (left > 0) != set || left > 1 {
				t.Fatalf("%x of groups %x, from %d: %x and %d, want %x and %v", marks, ends, begin, got, left, want, set)
			}
		}
	})
}

func TestSpreadMarks(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		if k.spread == nil {
			t.Skip("no kernel")
		}
		r := random(t)
		for range 3000 {
			words, apart, n := r.IntN(20), 1+r.IntN([]int{1, 3, 200}[r.IntN(3)]), 0
			masks, got, all := guarded[uint64](t, words), guarded[uint64](t, words), []uint64{0, 0}
			for i := range got {
				got[i] = r.Uint64() & r.Uint64()
			}
			want := slices.Clone(got)
			for i := range 64 * words {
				if r.IntN(apart) > 0 {
					continue
				}
				masks[i/64] |= 1 << (i % 64)
				if r.IntN(2) == 0 {
					want[i/64] |= 1 << (i % 64)
					all[n/64] |= 1 << (n % 64)
				}
				if n++; n%64 == 0 {
					all = append(all, 0)
				}
			}
			bits := guarded[uint64](t, len(all))
			copy(bits, all)
			with(k, func() { SpreadMarks(got, masks, bits) })
			if !slices.Equal(got, want) {
				t.Fatalf("%x at %x: %x, want %x", bits, masks, got, want)
			}
		}
	})
}

func TestPlanesAndMarksCheckLengths(t *testing.T) {
	for what, f := range map[string]func(){
		"fewer marks":     func() { FoldMarks(make([]uint64, 9), 0, make([]uint64, 1), make([]uint64, 2), 0) },
		"no room":         func() { FoldMarks(nil, 0, make([]uint64, 1), []uint64{1}, 0) },
		"room for fewer":  func() { FoldMarks(make([]uint64, 1), 60, make([]uint64, 1), []uint64{31}, 0) },
		"behind the word": func() { FoldMarks(make([]uint64, 9), 64, make([]uint64, 1), make([]uint64, 1), 0) },
		"fewer bits":      func() { SpreadMarks(make([]uint64, 1), []uint64{1}, make([]uint64, 1)) },
		"fewer words":     func() { SpreadMarks(nil, []uint64{1}, make([]uint64, 9)) },
		"fewer blocks":    func() { MarkPlanes(make([]uint64, 8), make([]byte, 63), 1, 0, 1) },
		"more planes":     func() { MarkPlanes(make([]uint64, 4), make([]byte, 1<<10), MaxPlanes+1, 0, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			f()
		}()
	}
}

func BenchmarkMarkPlanes(b *testing.B) {
	const rows = 1 << 20
	marks := make([]uint64, rows/64)
	for _, planes := range []int{4, 7, 12} {
		blocks := make([]byte, rows/PlaneRows*planes*PlaneBytes)
		r := rand.New(rand.NewPCG(1, 2))
		for i := 0; i < len(blocks); i += 8 {
			binary.LittleEndian.PutUint64(blocks[i:], r.Uint64())
		}
		for tier, k := range tiers() {
			for _, hi := range []int{4, 9} {
				b.Run(fmt.Sprintf("%d/%d/%s", planes, hi-3, tier), func(b *testing.B) {
					for b.Loop() {
						k.planes(marks, blocks, planes, 3, hi)
					}
				})
			}
		}
	}
}

func BenchmarkFoldMarks(b *testing.B) {
	const words = 1 << 14
	marks, ends, dst := make([]uint64, words), make([]uint64, words), make([]uint64, words)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range marks {
		marks[i], ends[i] = r.Uint64(), r.Uint64()
	}
	for tier, k := range tiers() {
		if k.fold != nil {
			b.Run(tier.String(), func(b *testing.B) {
				for b.Loop() {
					clear(dst)
					with(k, func() { FoldMarks(dst, 5, marks, ends, 0) })
				}
			})
		}
	}
}
