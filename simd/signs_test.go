package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSignsScoresAreExact(t *testing.T) {
	r := random(t)
	every := func(t *testing.T, k kernels) {
		for _, words := range []int{1, 2, 3, 4, 6, 7, 12, 24, 64, 500, 501} {
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

// TestMarkedSigns checks that marked rows get the same scores as listed rows.
func TestMarkedSigns(t *testing.T) {
	r := random(t)
	room := &guarded[MarkedRoom](t, 1)[0]
	every := func(t *testing.T, k kernels) {
		for range 30 {
			words := r.IntN(MarkedWords + 1)
			q, marks, m := make([]int8, 65+r.IntN(64)), guarded[uint64](t, words), guarded[uint64](t, 128*words)
			for i := range q {
				q[i] = int8(r.IntN(255) - 127)
			}
			for i := range m {
				m[i] = r.Uint64()
			}
			share := r.IntN(7)
			for i := range marks {
				marks[i] = ^uint64(0)
				for range share {
					marks[i] &= r.Uint64()
				}
			}
			planes, least := AppendCoarsePlanes(nil, q), -int32(r.IntN(400))
			if r.IntN(4) == 0 {
				least = -math.MaxInt32
			}
			var kept []uint32
			var scores []int32
			for i := range uint32(64 * words) {
				if score := coarseScore(q, m[2*i:2*i+2]); marks[i/64]>>(i%64)&1 == 1 && score > least {
					kept, scores = append(kept, i), append(scores, score)
				}
			}
			n := k.signsMarked(room, planes, m, marks, least)
			if !slices.Equal(room.Kept[:n], kept) || !slices.Equal(room.Scores[:n], scores) {
				t.Fatalf("%d words of marks, above %d: got %v %v, want %v %v", words, least, room.Kept[:n], room.Scores[:n], kept, scores)
			}
		}
	}
	every(t, portable)
	eachTier(t, every)
}

// coarseScore is the reference implementation of the score of SignsMarked.
func coarseScore(q []int8, row []uint64) int32 {
	squares, score := 0, -3*len(q)
	for _, x := range q {
		squares += int(x) * int(x)
	}
	for i, x := range q {
		coarse := 1
		if int(x)*int(x)*len(q) >= squares {
			coarse = 3
		}
		if (x < 0) != (row[i/64]>>(i%64)&1 == 1) {
			coarse = -coarse
		}
		score += coarse
	}
	for i := len(q); i < 128; i++ {
		if row[i/64]>>(i%64)&1 == 1 {
			score -= 6
		}
	}
	return int32(score / 2)
}

// TestLimitsOfMarkedSigns checks that every score exceeds math.MinInt32, and that planes, marks and rows of mismatched lengths panic.
func TestLimitsOfMarkedSigns(t *testing.T) {
	room, planes, rows, marks := new(MarkedRoom), AppendCoarsePlanes(nil, make([]int8, 128)), make([]uint64, 128*(MarkedWords+1)), make([]uint64, MarkedWords+1)
	for i := range marks {
		marks[i] = ^uint64(0)
	}
	if n := SignsMarked(room, planes, rows, marks[:MarkedWords], math.MinInt32); n != 64*MarkedWords {
		t.Errorf("%d rows of %d are above the minimum", n, 64*MarkedWords)
	}
	for name, call := range map[string]func(){
		"planes":     func() { SignsMarked(room, planes[1:], rows, marks[:1], 0) },
		"many marks": func() { SignsMarked(room, planes, rows, marks, 0) },
		"few rows":   func() { SignsMarked(room, planes, rows[:127], marks[:1], 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func BenchmarkMarkedSigns(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 9))
	const rows = 1 << 20
	m, q := make([]uint64, 2*rows), make([]int8, 128)
	for i := range m {
		m[i] = r.Uint64()
	}
	for i := range q {
		q[i] = int8(r.NormFloat64() * 40)
	}
	planes, coarse, room := AppendSignPlanes(nil, q), AppendCoarsePlanes(nil, q), new(MarkedRoom)
	for _, share := range []float64{0.02, 0.1, 0.2, 0.5, 1} {
		marks := make([]uint64, rows/64)
		var ids []uint32
		for i := range rows {
			if r.Float64() < share {
				marks[i/64] |= 1 << (i % 64)
				ids = append(ids, uint32(i))
			}
		}
		b.Run(fmt.Sprintf("marked, %v", share), func(b *testing.B) {
			for b.Loop() {
				for at := 0; at < len(marks); at += MarkedWords {
					SignsMarked(room, coarse, m[128*at:], marks[at:at+MarkedWords], -100)
				}
			}
		})
		b.Run(fmt.Sprintf("named, %v", share), func(b *testing.B) {
			for b.Loop() {
				for some := range slices.Chunk(ids, 256) {
					SignsAbove(room.Kept[:256], room.Scores[:256], planes, m, some, 2, 120)
				}
			}
		})
	}
}

// TestPlanesOfAQuery checks that components of a query are rounded to the nearest of fifteen values.
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
			t.Errorf("%d is rounded to %d", x, got)
		}
	}
}

// BenchmarkSignsAbove compares scores by signs with scores by codes of the same rows, in an order that the prefetcher cannot predict.
func BenchmarkSignsAbove(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, words := range []int{2, 6, 24} {
		rows := 1 << 24 / words / 8
		m, codes, q := make([]uint64, words*rows), make([]int8, 64*words*rows), make([]int8, 64*words)
		for i := range m {
			m[i] = r.Uint64()
		}
		for i := range codes {
			codes[i] = int8(i)
		}
		for i := range q {
			q[i] = int8(r.NormFloat64() * 40)
		}
		planes, kept, scores := AppendSignPlanes(nil, q), make([]uint32, 256), make([]int32, 256)
		ids := make([]uint32, rows/10)
		for i := range ids {
			ids[i] = uint32(10*i + r.IntN(10))
		}
		for tier, k := range tiers() {
			b.Run(fmt.Sprintf("%s/%d words", tier, words), func(b *testing.B) {
				for b.Loop() {
					for some := range slices.Chunk(ids, 256) {
						k.signsAbove(kept, scores, planes, m, some, words, 1<<20)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/row")
			})
			b.Run(fmt.Sprintf("%s/codes of %d words", tier, words), func(b *testing.B) {
				for b.Loop() {
					for some := range slices.Chunk(ids, 256) {
						k.gatherInt8(scores[:len(some)], q, codes, some)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/row")
			})
		}
	}
}
