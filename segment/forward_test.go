package segment

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestChosen selects rows by the bits of their ordinals, in tables of each width. Rows without an ordinal, and rows with an invalid one in
// a forged table, have the bit after the last ordinal.
func TestChosen(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	for round := range 600 {
		width := []int{1, 2, 4}[round%3]
		size := 1 + rng.IntN([]int{20, 70, 254, 300}[rng.IntN(4)]) // also more than fit into a byte
		f := forward{kind: forwardSingle, width: width, ords: make([]byte, width*rng.IntN(300))}
		for i := range len(f.ords) / width {
			ord := uint32(rng.IntN(size + 3))
			if rng.IntN(5) == 0 {
				ord = noOrdinal
			}
			var p [4]byte
			binary.LittleEndian.PutUint32(p[:], ord)
			copy(f.ords[width*i:], p[:width])
		}
		bits := make([]uint64, size/64+1)
		for i := range bits {
			bits[i] = rng.Uint64()
		}
		var rows, want []uint32
		for row := range 320 {
			if rng.IntN(3) == 0 {
				continue
			}
			rows = append(rows, uint32(row))
			ord := size
			if row < len(f.ords)/width {
				ord = min(int(readUint(f.ords, width, row)), size)
			}
			if bits[ord/64]>>(ord%64)&1 != 0 {
				want = append(want, uint32(row))
			}
		}
		if got := f.chosen([]uint32{7}, rows, bits, size); !slices.Equal(got[1:], want) || got[0] != 7 {
			t.Fatalf("round %d: %d values of width %d: got %v, want %v", round, size, width, got, want)
		}
	}
}
