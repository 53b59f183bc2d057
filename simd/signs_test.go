package simd

import (
	"slices"
	"testing"
)

func TestSignsAreScoredExactly(t *testing.T) {
	r := random(t)
	every := func(t *testing.T, k kernels) {
		for _, words := range []int{1, 2, 3, 4, 6, 7, 12, 24, 64} {
			const rows = 61
			q, m := make([]int8, 64*words), guarded[uint64](t, words*rows)
			for _, extreme := range []bool{false, true} {
				for i := range q {
					q[i] = int8(r.IntN(255) - 127)
				}
				for i := range m {
					m[i] = r.Uint64()
				}
				if extreme {
					for i := range q {
						q[i] = []int8{-127, 127}[r.IntN(2)]
					}
					for i := range m {
						m[i] = ^uint64(0) * uint64(r.IntN(2))
					}
				}
				planes := AppendSignPlanes(nil, q)
				for _, count := range []int{0, 1, 2, 23, 24, 25, 60} {
					ids := guarded[uint32](t, count)
					var wantRows []uint32
					var wantScores []int32
					least := int32(r.IntN(21)-10) * int32(words)
					for i := range ids {
						ids[i] = uint32(r.IntN(rows))
						score := 0
						for j, x := range q {
							if m[int(ids[i])*words+j/64]>>(j%64)&1 == 1 {
								score -= (int(x)*7+127*7+63)/127 - 7
							}
						}
						if int32(score) > least {
							wantRows, wantScores = append(wantRows, ids[i]), append(wantScores, int32(score))
						}
					}
					kept, scores := guarded[uint32](t, count), guarded[int32](t, count)
					n := k.signsAbove(kept, scores, planes, m, ids, words, least)
					if !slices.Equal(kept[:n], wantRows) || !slices.Equal(scores[:n], wantScores) {
						t.Fatalf("%d rows of %d words above %d: got %v %v, want %v %v", count, words, least, kept[:n], scores[:n], wantRows, wantScores)
					}
				}
			}
		}
	}
	every(t, portable)
	eachTier(t, every)
}

// The components of a query are rounded to the nearest of fifteen values.
func TestPlanesOfAQuery(t *testing.T) {
	query := make([]int8, 256)
	for i := range query {
		query[i] = int8(max(i-128, -127))
	}
	p := AppendSignPlanes(nil, query)
	for i, x := range query {
		got := 0
		for bit := range SignPlanes {
			weight := 1 << bit
			if bit == SignPlanes-1 {
				weight = -weight
			}
			got += weight * int(p[i/128*2*SignPlanes+2*bit+i/64%2]>>(i%64)&1)
		}
		if d := 7*int(x) - 127*got; d < -64 || d > 63 {
			t.Errorf("%d becomes %d", x, got)
		}
	}
}
