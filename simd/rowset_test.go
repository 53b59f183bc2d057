package simd

import (
	"maps"
	"slices"
	"testing"
)

// TestRowSet compares sets with maps over many resets and past the last epoch. Words, rows and results end at guard pages.
func TestRowSet(t *testing.T) {
	eachTier(t, func(t *testing.T, k kernels) {
		r := random(t)
		known, stale := 0, 0
		for range 50 {
			most := 1 + r.IntN(1<<r.IntN(14))
			s := RowSet{words: guarded[uint64](t, (most+rowsOfWord-1)/rowsOfWord)}
			s.epoch = (1<<rowsOfWord - 1 - uint64(r.IntN(20))) << rowsOfWord
			for range 30 {
				limit := 1 + r.IntN(most)
				s.Reset(limit)
				has := map[uint32]bool{}
				for range r.IntN(20) {
					if r.IntN(4) == 0 {
						row := uint32(r.IntN(limit))
						if s.Add(row) == has[row] {
							t.Fatalf("row %d of a set with %v was added: %v", row, slices.Sorted(maps.Keys(has)), !has[row])
						}
						has[row] = true
					}
					rows := guarded[uint32](t, r.IntN(70))
					for i := range rows {
						if rows[i] = uint32(r.IntN(limit)); r.IntN(200) == 0 {
							rows[i] = ^uint32(r.IntN(2) * r.IntN(1<<31))
						}
					}
					var want []uint32
					for _, row := range rows {
						if row >= uint32(limit) {
							stale++
							break
						}
						if has[row] {
							known++
						} else {
							want = append(want, row)
						}
						has[row] = true
					}
					got := guarded[uint32](t, len(rows))
					n := k.addRows(got, s.words[:(limit+rowsOfWord-1)/rowsOfWord], s.epoch, s.limit, rows, make([]int8, 100), r.IntN(200))
					if !slices.Equal(got[:n], want) {
						t.Fatalf("rows %v, limit %d: new are %v, want %v", rows, limit, got[:n], want)
					}
				}
			}
		}
		if known == 0 || stale == 0 {
			t.Fatalf("%d rows were known, %d lists ended early", known, stale)
		}
	})
}

// TestRowSetAppends appends rows to a slice with and without spare capacity.
func TestRowSetAppends(t *testing.T) {
	var s RowSet
	if got := s.AppendNew(nil, []uint32{0}, nil, 0); len(got) > 0 {
		t.Fatalf("an empty set accepted %v", got)
	}
	s.Reset(100)
	for _, room := range []int{0, 2, 10} {
		s.Reset(100)
		s.Add(7)
		dst := append(make([]uint32, 0, 1+room), 1)
		if got, want := s.AppendNew(dst, []uint32{5, 7, 5, 99, 100, 6}, nil, 0), []uint32{1, 5, 99}; !slices.Equal(got, want) {
			t.Fatalf("rows are %v, want %v", got, want)
		}
	}
}
