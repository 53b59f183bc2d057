package simd

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCommonNumbers intersects lists of all lengths and densities, at any alignment, in memory that ends at a guard page.
func TestCommonNumbers(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		room := guarded[CommonRoom](t, 1)
		dst := &room[0]
		var oracle CommonRoom
		found := 0
		for range 1000 {
			numbers := 1 + r.IntN(1<<16) // bound of both lists
			a, b := numbersAmong(t, r, numbers), numbersAmong(t, r, numbers)
			for _, kind := range []struct {
				fast, slow func(dst *CommonRoom, a, b []byte) int
			}{
				{k.common, commonPortable}, {k.commonPlaces, commonPlacesPortable},
			} {
				n := kind.slow(&oracle, a, b)
				if got := kind.fast(dst, a, b); got != n || !slices.Equal(dst[:2*n], oracle[:2*n]) {
					t.Fatalf("%d of %d and %d numbers are in both lists, got %d: % x and % x", n, len(a)/2, len(b)/2, got, oracle[:2*n], dst[:2*min(n, got)])
				}
				found += n
			}
		}
		if found == 0 {
			t.Fatal("all intersections were empty")
		}
	})
}

// numbersAmong returns ascending numbers below most in memory that ends at a guard page. The highest numbers occur with some probability.
func numbersAmong(t *testing.T, r *rand.Rand, most int) []byte {
	n := min(r.IntN(1<<r.IntN(14)), most, CommonMost)
	low := 0
	if r.IntN(3) == 0 {
		low = 1<<16 - most
	}
	list := r.Perm(most)[:n]
	slices.Sort(list)
	p := guarded[byte](t, 2*n)
	for i, x := range list {
		binary.LittleEndian.PutUint16(p[2*i:], uint16(low+x))
	}
	return p
}

// TestCommonOfDamagedLists intersects lists that do not ascend: the result must stay within dst.
func TestCommonOfDamagedLists(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		room := guarded[CommonRoom](t, 1)
		same := make([]byte, 2*CommonMost)
		for _, f := range []func(dst *CommonRoom, a, b []byte) int{k.common, k.commonPlaces} {
			for _, lengths := range [][2]int{{CommonMost, CommonMost}, {CommonMost, CommonMost - 1}, {CommonMost - 1, CommonMost}, {8, CommonMost}, {CommonMost, 31}} {
				f(&room[0], same[:2*lengths[0]], same[:2*lengths[1]])
			}
		}
	})
}

func BenchmarkCommon(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var lists [2][100][]byte
	for i, n := range []int{1000, 4000} {
		for j := range lists[i] {
			list := r.Perm(1 << 16)[:n]
			slices.Sort(list)
			for _, x := range list {
				lists[i][j] = binary.LittleEndian.AppendUint16(lists[i][j], uint16(x))
			}
		}
	}
	var dst CommonRoom
	for i := range b.N {
		Common(&dst, lists[0][i%100], lists[1][i%100])
	}
}
